# SPDX-License-Identifier: Apache-2.0
"""Several mistakes in one call, through every operator and its gradient: attributes and shapes that are far out of range.

A check of one attribute may trust another one, or a size; so they change together, and lists in each of their entries.
A result or a refusal is right. The build of `./dev asan` reports sums that overflow and memory of somebody else; here a
crash, a hang and an error that no user's mistake explains are failures.
"""
from __future__ import annotations

import random

import pytest
import registry as reg
from test_operators_errors import NUMBERS, attrs_of, base_arrays, candidates, limited_memory  # noqa: F401 - a fixture
from test_operators_extremes import attempt
from twibil import autograd, np, npx

CALLS = 60  # per operator
INTEGERS = [2, 3, -2, *NUMBERS["integer"], (1 << 31) - 1, (1 << 62) + 1, 1 - (1 << 63)]
LONG = [1 << 20, 1 << 31, 1 << 40, 1 << 58, (1 << 60) - 1, 1 << 60, 1 << 62, (1 << 63) - 1]  # of an axis of an empty array


def changed_list(rng, values, lengths):
    """The sample's numbers, or small ones, of which some are replaced."""
    new = list(values) if values and rng.random() < 0.7 else rng.choices([1, 1, 2, 0], k=rng.choice(lengths))
    for _ in range(rng.randint(1, 3)):
        if new:
            new[rng.randrange(len(new))] = rng.choice(INTEGERS)
    return tuple(new)


def changed_attribute(rng, attr, given, lengths):
    kind = attr["kind"].removeprefix("maybe_")
    if kind == "integer":
        return rng.choice(INTEGERS)
    if kind == "int_list" and rng.random() < 0.8:
        value = given.get(attr["name"])
        return changed_list(rng, value if isinstance(value, (list, tuple)) else (), lengths)
    return rng.choice(candidates(attr))


def changed_shape(rng, shape):
    """One axis becomes empty; another one perhaps very long, which costs no memory then."""
    new = list(shape)
    axes = rng.sample(range(len(new)), min(2, len(new)))
    if len(axes) == 2 and rng.random() < 0.7:
        new[axes[1]] = rng.choice(LONG)
    new[axes[0]] = 0
    return tuple(new)


def changed_call(rng, op, sample):
    """Arrays and attributes of a sample, of which one to four are changed."""
    arrays, given = base_arrays(op, sample), attrs_of(op, sample)
    attrs, shape = dict(given), None
    lengths = sorted({n for a in arrays if a is not None for n in (a.ndim, a.ndim - 2) if n > 0} | {1, 2})
    places = op["attrs"] * 2 + [i for i, a in enumerate(arrays) if a is not None and a.ndim]
    for place in rng.sample(places, min(len(places), rng.randint(1, 4))):
        if isinstance(place, dict):
            attrs[place["name"]] = changed_attribute(rng, place, given, lengths)
            continue
        shape = shape if shape and rng.random() < 0.6 else changed_shape(rng, arrays[place].shape)  # often one for several
        try:
            arrays[place] = np.zeros(shape, dtype=str(arrays[place].dtype))
        except ValueError:  # its sizes do not fit
            pass
    return arrays, attrs


@pytest.mark.parametrize("op", reg.OPERATORS, ids=lambda op: op["name"])
def test_several_mistakes_at_once(op):
    failures: list[str] = []
    rng = random.Random(reg.seed_of(op["name"], "mutations"))
    for turn in range(CALLS if op["samples"] else 0):
        arrays, attrs = changed_call(rng, op, rng.choice(op["samples"]))
        what = f"{op['name']}({attrs}) of {[None if a is None else a.shape for a in arrays]}"
        attempt("mutations", op, arrays, attrs, op["has_grad"] and turn % 2 == 1, failures, what)
    assert not failures, reg.report(failures)


def test_elements_far_outside_are_refused():
    """Steps whose product with the number of elements is a multiple of 2**64 seem to come back into the array."""
    x = np.zeros((5, 5))
    for start, step, size in ((0, 1 << 62, 5), (0, 1 << 63, 3), (4, -(1 << 62), 5), (1, (1 << 63) - 1, 3), (0, 3, 3), (4, -3, 3), (-1, 1, 2)):
        step -= 1 << 64 if step > (1 << 63) - 1 else 0
        attrs = {"start": (start, 0), "step": (step, 1), "size": (size, 5)}
        for call in (lambda: reg._core.call_operator("basic_index", [x], attrs),
                     lambda: reg._core.call_operator("assign_basic", [x, np.zeros(())], attrs)):
            with pytest.raises(IndexError, match="does not hold"):
                call()[0].wait_to_read()
    assert x[:: 1 << 62].shape == (1, 5) and x[4 :: -(1 << 62)].shape == (1, 5)


def test_sizes_of_empty_arrays_are_limited():
    """As in NumPy, which counts the sizes beside a zero too."""
    assert np.zeros((0, 1 << 60)).shape == (0, 1 << 60)
    for shape, dtype in (((0, (1 << 60) + 1), "float32"), ((1 << 62, 0), "float64"), ((0, (1 << 62) + 1), "int8")):
        with pytest.raises(ValueError, match=r"sizes beyond 2\^62 bytes|does not fit 64 bits"):
            np.zeros(shape, dtype=dtype)


def test_mining_needs_a_class():
    anchor, label = np.array([[[0.1, 0.1, 0.5, 0.5]]]), np.array([[[0, 0.1, 0.1, 0.5, 0.5]]])
    with pytest.raises(ValueError, match="^multibox_target: cls_pred must have shape"):
        npx.multibox_target(anchor, label, np.zeros((1, 0, 1)), negative_mining_ratio=3)


def test_many_products_of_nothing_take_no_time():
    many = np.zeros((1 << 58, 0, 2))
    assert np.matmul(many, np.zeros((1 << 58, 2, 0))).shape == (1 << 58, 0, 0)
    long = np.zeros((0, 1 << 58))
    assert npx.fully_connected(long, long).shape == (0, 0)
    assert np.take_along_axis(np.zeros((1 << 58, 0)), np.zeros((1 << 58, 0), dtype="int64"), axis=1).shape == (1 << 58, 0)
    assert npx.multibox_prior(np.zeros((1, 3, 1 << 58, 0))).shape == (1, 0, 4)
    x = np.zeros((0, 3))
    x.attach_grad()
    for mode in ("constant", "edge", "wrap"):
        with autograd.record():
            y = npx.pad_axes(x, before=(0, 1 << 58), after=(0, 0), mode=mode)
        y.backward()
        assert y.shape == (0, (1 << 58) + 3) and x.grad.shape == (0, 3)
    z = np.zeros((1 << 58, 0))
    z.attach_grad()
    with autograd.record():
        y = npx.pad_axes(z, before=(1, 0), after=(0, 0))
    y.backward()
    assert z.grad.shape == z.shape


def test_transposed_convolution_of_nothing_has_gradients():
    x, weight, bias = np.zeros((1, 2, 0)), np.ones((2, 1, 3)), np.ones((1,))
    for v in (x, weight, bias):
        v.attach_grad()
    with autograd.record():
        y = npx.deconvolution(x, weight, bias, kernel=(3,), num_filter=1)
    y.backward()
    assert y.tolist() == [[[1, 1]]] and bias.grad.tolist() == [2]
    assert x.grad.shape == x.shape and weight.grad.tolist() == np.zeros_like(weight).tolist()


def test_strides_longer_than_the_data_take_no_time():
    x = np.ones((1, 1, 5))
    x.attach_grad()
    with autograd.record():
        y = npx.convolution(x, np.ones((1, 1, 2)), kernel=(2,), stride=((1 << 31) - 1,), num_filter=1, no_bias=True)
    y.backward()
    assert y.tolist() == [[[2]]] and x.grad.tolist() == [[[1, 1, 0, 0, 0]]]


def test_steps_and_offsets_as_long_as_integers_go():
    """MXNet's older operators for parts: their sums must not overflow."""
    def parts(name, arrays, **attrs):
        return [y.tolist() for y in reg._core.call_operator(name, arrays, attrs)]

    x, most = np.arange(5), (1 << 63) - 1
    assert parts("slice", [x], begin=(1,), end=(5,), step=(most,)) == [[1]]
    assert parts("slice", [x], begin=(3,), end=(None,), step=(-most,)) == [[3]]
    assert parts("slice", [x], begin=(4,), end=(-most,), step=(-2,)) == [[4, 2, 0]]
    assert parts("slice", [x], begin=(3,), end=(1,), step=(most,)) == [[]]
    assert parts("slice", [x], begin=(-most,), end=(most,), step=(2,)) == [[0, 2, 4]]
    picture = np.zeros((1, 1, 4, 5))
    for attrs in ({"h_w": (-1 - most, 2), "center_crop": True}, {"h_w": (2, most)}, {"h_w": (2, 2), "offset": (most, 0)}):
        with pytest.raises(ValueError, match="^crop_picture: Crop: .* not lie within"):
            parts("crop_picture", [picture], **attrs)
    with pytest.raises(ValueError, match="split_v2: the indices .* must rise"):
        parts("split_v2", [x], axis=0, indices=(0, -most, most))
    with pytest.raises(ValueError, match="does not fit 64 bits"):
        parts("up_sampling", [np.zeros((1, 0, 1, 1 << 40))], scale=1 << 30, sample_type="nearest")
