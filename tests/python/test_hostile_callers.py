# SPDX-License-Identifier: Apache-2.0
"""Objects, texts and orders of calls that only a hostile or confused program uses: an exception, never a crash or a leak."""
import gc
import sys
import threading

import numpy as onp
import pytest

from twibil import _core, autograd, image, np, npx

HALF = "\ud800"  # half of a surrogate pair: a str may hold it, UTF-8 cannot


@pytest.mark.parametrize("call", [
    lambda: np.arctanh(np.ones(3), **{HALF: 1}), lambda: np.ones(3, ctx=HALF), lambda: np.ones(3, order=HALF),
    lambda: np.ones(3, dtype=HALF), lambda: _core.functions(HALF),
    lambda: _core.multi_update("sgd_update", [np.ones(3)], [np.ones(3)], [()], [0.1], [0.1], **{HALF: 1})])
def test_half_characters_are_refused(call):
    with pytest.raises(UnicodeEncodeError):
        call()


@pytest.mark.parametrize("call, message", [
    (lambda: autograd.mark_variables([None], [np.ones(3)]), "variables must be an array"),
    (lambda: autograd.mark_variables([np.ones(3)], [np.ones(3)], [3]), "grad_req must be a string"),
    (lambda: autograd.backward([None]), "heads must be an array"),
    (lambda: autograd.grad([np.ones(3)], [None]), "variables must be an array"),
    (lambda: _core.functions(3), "bad argument type")])
def test_objects_of_a_wrong_type_are_refused(call, message):
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize("switch", [_core.set_recording, _core.set_training, _core.recording_scope])
def test_a_truth_that_raises_is_passed_on(switch):
    with pytest.raises(ValueError, match="ambiguous"):
        switch(np.ones(3))
    assert not autograd.is_recording()


def test_a_list_that_holds_itself_is_refused():
    cycle = [np.ones(1)]
    cycle.append(cycle)
    with pytest.raises(ValueError, match="nested at most"):
        np.array(cycle)


def test_objects_of_subclasses_leave_the_class_alone():
    class Named(np.ndarray):
        pass

    x = np.ones(3)
    before = sys.getrefcount(Named)
    for _ in range(100):
        Named(x)
    assert sys.getrefcount(Named) == before
    for _ in range(2000):  # cycles through the dictionary are collected
        array = Named(x)
        array.me = array
    del array
    gc.collect()
    assert sys.getrefcount(Named) == before


class Emptying:
    """Converts to an array and empties a list on the way."""

    def __init__(self, items):
        self.items = items

    def __array__(self, dtype=None, copy=None):
        self.items.clear()
        self.fresh = [np.full(100, 7.0) for _ in range(50)]  # would take over a block that was given back too early
        return onp.ones(100)


def test_lists_emptied_during_a_call_keep_what_they_held():
    out = [np.zeros((1, 100))]
    hostile = Emptying(out)
    assert np.add(out=out, x1=np.ones(100), x2=[hostile]).tolist() == [[2.0] * 100]
    assert all(f.tolist() == [7.0] * 100 for f in hostile.fresh)
    parts = [np.ones((1, 100)), None, np.ones(3)]
    parts[1] = [Emptying(parts)]
    assert np.concatenate(parts).shape == (2, 100)
    rates, weights = [], [np.ones(3), np.ones(3)]

    class Rate:
        def __float__(self):
            weights.clear()
            return 0.5

    rates += [Rate(), Rate()]
    _core.multi_update("sgd_update", weights, [np.ones(3)] * 2, [()] * 2, rates, [0.0, 0.0])
    assert weights == []


def test_an_index_that_changes_between_looks_is_looked_at_once():
    class Changing:
        looks = 0

        def __array__(self, dtype=None, copy=None):
            Changing.looks += 1
            return onp.zeros(1, int) if Changing.looks == 1 else onp.ones((1,) * 7, bool)

    assert np.ones((2, 3))[[Changing()]].shape == (1, 1, 3)


def test_numpy_arrays_in_another_byte_order_keep_their_dtype():
    for dtype in ("f2", "f4", "f8", "i4", "i8"):
        x = np.array(onp.arange(6).reshape(2, 3).astype(">" + dtype).T)
        assert x.dtype == onp.dtype(dtype) and x.tolist() == [[0, 3], [1, 4], [2, 5]]
    odd = onp.zeros(33, "u1")[1:].view("f4")
    assert not odd.flags.aligned and np.array(odd).shape == (8,)
    field = onp.ones(1, [("a", "i1"), ("b", "f4")])["b"]
    assert np.array(field).tolist() == [1.0]


def test_a_numpy_subclass_with_its_own_astype():
    class Stubborn(onp.ndarray):
        def astype(self, *args, **options):
            return self

    assert np.array(onp.arange(3, dtype="i2").view(Stubborn)).tolist() == [0, 1, 2]


def test_uint64_beyond_int64():
    assert np.array(onp.array([3, 2**63 - 1], "u8")).tolist() == [3, 2**63 - 1]
    assert np.array(onp.ones(0, "u8")).shape == (0,)
    with pytest.raises(OverflowError, match="18446744073709551615 does not fit int64"):
        np.array(onp.array([1, 2**64 - 1], "u8"))
    assert np.array(onp.array([2**64 - 1], "u8"), dtype="float64").tolist() == [2.0**64]


def test_scopes_of_two_threads_do_not_mix():
    inside, leave, seen = threading.Event(), threading.Event(), []

    def record():
        with autograd.record():
            with autograd.pause():
                inside.set()
                leave.wait(10)
            seen.append(autograd.is_recording())

    thread = threading.Thread(target=record)
    with autograd.pause():
        thread.start()
        inside.wait(10)
    assert not autograd.is_recording()
    leave.set()
    thread.join()
    assert seen == [True]


class Sigmoid(autograd.Function):
    def forward(self, x):
        y = 1 / (1 + np.exp(-x))
        self.save_for_backward(y)
        return y

    def backward(self, dy):
        y, = self.saved_tensors
        return dy * y * (1 - y)


def test_a_function_that_keeps_its_output_is_released():
    x = np.ones(1000)
    x.attach_grad()

    def step():
        with autograd.record():
            y = Sigmoid()(x)
        y.backward()
        with autograd.record():
            Sigmoid()(x)  # never run backward

    step()
    before = _core.memory_stats()["current_bytes"]
    for _ in range(50):
        step()
    assert _core.memory_stats()["current_bytes"] == before
    assert onp.allclose(x.grad.asnumpy(), 0.19661193)


@pytest.mark.parametrize("forward, backward, message", [
    (lambda self, x: None, None, "forward must return an array or a tuple of arrays; got NoneType"),
    (lambda self, x: 5.0, None, "forward must return"), (lambda self, x: [x, 3], None, "forward must return"),
    (lambda self, x: x * 2, lambda self, dy: 3.0, "gradient 0 must be an array or None; got float")])
def test_functions_that_return_no_arrays(forward, backward, message):
    kind = type("Wrong", (autograd.Function,), {"forward": forward, "backward": backward})
    x = np.ones(2)
    x.attach_grad()
    with pytest.raises(TypeError, match=message):
        with autograd.record():
            y = kind()(x)
        y.backward()
    assert not autograd.is_recording() and x.grad.tolist() == [0.0, 0.0]


def test_names_in_files_may_hold_a_zero(tmp_path):
    npx.save(str(tmp_path / "a"), {"a\0b": np.ones(1), "a\0c": np.zeros(1)})
    assert {k: v.tolist() for k, v in npx.load(str(tmp_path / "a")).items()} == {"a\0b": [1.0], "a\0c": [0.0]}


def test_median_of_nan_is_nan():
    x = onp.array([[onp.inf, -onp.inf, onp.nan, 0], [1, 2, 3, 4]], "float32")
    for axis in (None, 0, 1):
        onp.testing.assert_array_equal(np.median(np.array(x), axis=axis).asnumpy(), onp.median(x, axis=axis))
    assert np.median(np.array([1, 2, 3, 4], dtype="int32")).item() == 2.5


def test_an_empty_list_of_outputs_is_none_at_all():
    x = np.array([[1.0, 2.0, 3.0]])
    for out in ([], (), [None], (None,)):
        assert np.transpose(x, out=out).tolist() == [[1.0], [2.0], [3.0]] and np.add(x, 1, out=out).shape == (1, 3)


def test_reading_a_picture_wants_a_path():
    with pytest.raises(TypeError, match="PathLike"):
        image.imread(0)


@pytest.mark.parametrize("dtype, numbers", [("uint8", (-1, 256, 300, -(2**40))), ("int8", (128, -129, 300)),
                                            ("int32", (2**31, -(2**31) - 1, 2**32 + 1))])
def test_numbers_beyond_an_integer_dtype(dtype, numbers):
    x = onp.array([0, 1, 44, 100, 127], dtype)
    ours = np.array(x)
    for number in numbers:
        for relation in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and"):
            expected = getattr(onp, relation)(x.astype("int64"), number).tolist()
            assert getattr(np, relation)(ours, number).tolist() == expected, (relation, number)
        assert (number < ours).tolist() == (number < x.astype("int64")).tolist()
        for call in (lambda: ours + number, lambda: number - ours, lambda: np.maximum(ours, number),
                     lambda: np.where(ours > 1, ours, number), lambda: ours.copy().__iadd__(number),
                     lambda: np.clip(ours, min(number, 0), max(number, 100))):
            with pytest.raises(OverflowError, match=f"number {number} must fit the dtype of the arrays, {dtype}"):
                call()
        assert onp.allclose((ours / number).asnumpy(), x / number)
        assert (ours.astype("float32") + number).dtype == onp.float32


def test_a_format_is_a_text():
    with pytest.raises(TypeError, match="must be a string; got int"):
        np.ones(3).__format__(3)
