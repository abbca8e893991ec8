# SPDX-License-Identifier: Apache-2.0
"""Bad inputs to every operator of the registry: the right exception, a message that names the operator, never a crash."""
from __future__ import annotations

import numpy as np
import pytest
import registry as reg

# What a user's mistake may raise. RuntimeError is for our own mistakes and for what happens later.
MISTAKES = (ValueError, TypeError, IndexError, MemoryError, OverflowError, NotImplementedError, KeyError)
LIMIT = 1 << 30  # bytes that a test may ask for

OPERATORS = pytest.mark.parametrize("op", reg.OPERATORS, ids=lambda op: op["name"])


@pytest.fixture(autouse=True)
def limited_memory():
    reg._core.set_memory_limit(LIMIT)
    yield
    reg._core.set_memory_limit(0)


def names_of(op):
    return [op["name"]] + [n.partition(".")[2] for n in op["names"]]


def try_call(op, arrays, attrs, failures, what, must_fail=None):
    """Calls; an exception must be one of MISTAKES (or `must_fail`) and its message must start with the operator's name."""
    if not reg.chosen():
        return
    reg.count("errors")
    try:
        for y in reg.call(op, arrays, attrs):
            if y is not None:
                y.wait_to_read()
    except MISTAKES as e:
        message = str(e.args[0]) if e.args else ""
        if must_fail and not isinstance(e, must_fail):
            failures.append(f"{what}: {type(e).__name__} instead of {must_fail}: {message}")
        elif not message.startswith(op["name"] + ":") and not isinstance(e, MemoryError):
            failures.append(f"{what}: the message does not start with the operator: {type(e).__name__}: {message}")
    except Exception as e:  # noqa: BLE001 - every failure is reported with its case
        failures.append(f"{what}: {type(e).__name__}: {e}")
    else:
        if must_fail:
            failures.append(f"{what}: nothing was raised")


def samples(op):
    return op["samples"] or []


def base_arrays(op, sample, dtype=None):
    dtype = dtype or ("float32" if "float32" in op["dtypes"] or not op["dtypes"] else op["dtypes"][-1])
    return [reg.array(v, dtype) for v in reg.sample_values(op, sample, dtype)]


@OPERATORS
def test_missing_and_unknown_arguments(op):
    failures: list[str] = []
    required = [i for i, (_, kind) in enumerate(op["inputs"]) if kind in ("required", "aux")]
    if required:
        attrs = samples(op)[0]["attrs"] if samples(op) else ""
        try_call(op, [], attrs, failures, "no arrays", TypeError)
        if samples(op):
            arrays = base_arrays(op, samples(op)[0])
            for i in required:
                if i < len(arrays):
                    try_call(op, arrays[:i] + [None] + arrays[i + 1:], attrs, failures, f"None for input {i}", TypeError)
            if not op["variadic"]:
                too_many = (arrays + [None] * len(op["inputs"]))[: len(op["inputs"])] + [arrays[0]]
                try_call(op, too_many, attrs, failures, "one array too many", TypeError)
    if samples(op):
        arrays = base_arrays(op, samples(op)[0])
        try_call(op, arrays, {"no_such_argument": 1}, failures, "unknown attribute", TypeError)
    for attr in op["attrs"]:
        if attr["kind"] in ("integer", "real", "int_list", "choice", "maybe_integer", "maybe_int_list", "maybe_real", "scalar"):
            arrays = base_arrays(op, samples(op)[0]) if samples(op) else []
            try_call(op, arrays, {attr["name"]: object()}, failures, f"an object for {attr['name']}", TypeError)
    assert not failures, reg.report(failures)


@OPERATORS
def test_public_functions_refuse_unknown_keywords(op):
    for name in op["names"]:
        space, _, short = name.rpartition(".")
        if space == "ndarray":
            continue
        reg.count("errors")
        function = reg._core.functions(space)[short]
        arrays = [a for a in base_arrays(op, samples(op)[0]) if a is not None]
        with pytest.raises(TypeError) as caught:
            function(*arrays, no_such_keyword=1)
        assert str(caught.value).startswith(op["name"] + ":")


@OPERATORS
def test_every_dtype_works_or_is_refused(op):
    failures: list[str] = []
    for sample in samples(op):
        for dtype in ("bool",) + reg.INTEGERS + reg.FLOATS:
            arrays = [reg.array(v, dtype) for v in reg.sample_values(op, sample, dtype)]
            try_call(op, arrays, sample["attrs"], failures, f"{dtype} {sample['attrs']}")
            for i in range(len(arrays)):  # one input of another dtype
                if arrays[i] is not None and len(arrays) > 1:
                    mixed = base_arrays(op, sample)
                    mixed[i] = arrays[i]
                    try_call(op, mixed, sample["attrs"], failures, f"input {i} as {dtype} {sample['attrs']}")
    assert not failures, reg.report(failures)


SHAPES = [(), (0,), (1,), (3,), (0, 4), (4, 0), (2, 3, 4, 5), (1, 2, 1, 2, 1, 2), (1,) * 8, (5, 7), (2, 0, 3)]


@OPERATORS
def test_wrong_shapes(op):
    failures: list[str] = []
    for sample in samples(op):
        arrays = base_arrays(op, sample)
        for i, a in enumerate(arrays):
            if a is None:
                continue
            for shape in SHAPES:
                other = reg.array(np.zeros(shape, "float32")).astype(str(a.dtype))
                try_call(op, base_arrays(op, sample)[:i] + [other] + base_arrays(op, sample)[i + 1:], sample["attrs"], failures,
                         f"input {i} of shape {shape} {sample['attrs']}")
        for shape in SHAPES:  # all inputs of the shape
            same = [None if a is None else reg.array(np.zeros(shape, "float32")).astype(str(a.dtype)) for a in arrays]
            try_call(op, same, sample["attrs"], failures, f"all inputs of shape {shape} {sample['attrs']}")
    assert not failures, reg.report(failures)


def computes_for_long(op, arrays, i, attrs):
    """Whether a call on a huge view of one element reads all of it and allocates little, as sums do: nothing stops it."""
    if op["pointwise"] or op["view"] or not (op["strided"] or op["expands"]):
        return False  # the result, or a row-major copy of the view, is as large as the view and is refused
    if op["data_dependent"]:
        return True  # it reads first
    size = 1 << 12
    try:
        longer = reg.broadcast_to(reg.array(np.ones((1,) * arrays[i].ndim, "float32")).astype(str(arrays[i].dtype)),
                                  (size,) + (1,) * (arrays[i].ndim - 1))
        results = reg.call(op, arrays[:i] + [longer] + arrays[i + 1:], attrs)
    except MISTAKES:
        return False  # a view of that length does not fit the other inputs
    return not any(y.size >= size for y in results)


@OPERATORS
def test_huge_shapes(op):
    """Views of one element that claim to be huge: sizes that do not fit memory, or 64 bits."""
    if not samples(op):
        pytest.skip("has no samples, as elements decide shapes")
    failures: list[str] = []
    sample = samples(op)[0]
    arrays = base_arrays(op, sample)
    one = {i: reg.array(np.ones((1,) * a.ndim, "float32")).astype(str(a.dtype)) for i, a in enumerate(arrays) if a is not None and a.ndim > 0}
    for i, a in one.items():
        if computes_for_long(op, arrays, i, sample["attrs"]):
            continue
        for size in (1 << 33, 1 << 59):
            huge = reg.broadcast_to(a, (size,) + (1,) * (a.ndim - 1))
            try_call(op, arrays[:i] + [huge] + arrays[i + 1:], sample["attrs"], failures, f"input {i} of shape {huge.shape}")
    assert not failures, reg.report(failures)


NUMBERS = {
    "integer": [-1, 0, 1, 7, 99, -99, 1 << 31, -(1 << 31), 1 << 62, -(1 << 62), (1 << 63) - 1, -(1 << 63)],
    "real": [0.0, -1.0, 1e300, -1e300, float("inf"), -float("inf"), float("nan")],
    "boolean": [True, False],
    "scalar": [0, -1, 1 << 40, (1 << 63) - 1, -(1 << 63), 1e300, float("-inf"), float("nan"), True],
    "int_list": [(), (0,), (-1,), (1 << 31,), (1 << 40, 1 << 40), (1 << 62,), ((1 << 63) - 1,), (-(1 << 63), -(1 << 63)), (99, 99), (1,) * 9, (2, 2, 2),
                 tuple(range(16))],
    "real_list": [(), (0.0,), (float("nan"),), (1e300, -1.0)],
    "dtype": ["float64", "int8", "bool", "bfloat16", "no_such_dtype"],
    "choice": ["no such word", ""],
    "text": ["", "x" * 200, "a,b->c"],
}


def candidates(attr):
    kind = attr["kind"].removeprefix("maybe_")
    values = list(NUMBERS[kind])
    if kind == "choice":
        values += attr["choices"].split("|")
    return values + ([None] if attr["kind"].startswith("maybe_") else [])


@OPERATORS
def test_attributes_out_of_range(op):
    failures: list[str] = []
    for sample in samples(op)[:3]:
        given = attrs_of(op, sample)
        for attr in op["attrs"]:
            for value in candidates(attr):
                try_call(op, base_arrays(op, sample), {**given, attr["name"]: value}, failures, f"{attr['name']}={value!r:.60} in ({sample['attrs']})")
    assert not failures, reg.report(failures)


def attrs_of(op, sample):
    from test_operators_forward import parse_attrs
    return parse_attrs(sample["attrs"])


@OPERATORS
def test_axis_out_of_range(op):
    failures: list[str] = []
    for attr in op["attrs"]:
        if attr["name"] != "axis" or not samples(op):
            continue
        for sample in samples(op):
            for axis in (99, -99):
                value = (axis,) if "list" in attr["kind"] else axis
                try_call(op, base_arrays(op, sample), {**attrs_of(op, sample), "axis": value}, failures, f"axis={value}", (ValueError, IndexError))
    assert not failures, reg.report(failures)


@OPERATORS
def test_out_of_wrong_shape_or_dtype(op):
    """Also for several results, of which each may be given; where only the data tells the shape of a result, out is refused."""
    if not samples(op):
        pytest.skip("has no samples, as elements decide shapes")
    if op["counts"]:
        pytest.skip("has no argument out, as attributes decide how many outputs there are")
    function, sample = reg.function_of(op), samples(op)[0]
    keywords = attrs_of(op, sample)
    count = op["visible"]
    for k, result in enumerate(reg.call(op, base_arrays(op, sample), sample["attrs"])):
        if result is None:
            continue
        outs = [("shape", ValueError, np.zeros(result.shape + (2,), "float32"))]
        if reg.is_float(str(result.dtype)) and not op["data_dependent"]:
            outs.append(("dtype", TypeError, np.zeros(result.shape, "int32")))
        for what, error, values in outs:
            reg.count("errors")
            arrays = base_arrays(op, sample)
            fixed = len(op["inputs"]) - 1
            arrays = [*arrays[:fixed], arrays[fixed:]] if op["variadic"] else arrays
            out = reg.array(values)
            with pytest.raises(error) as caught:
                written = function(*arrays, **keywords, out=out if count == 1 else (None,) * k + (out,))
                for y in written if isinstance(written, list) else [written]:
                    y.wait_to_read()
            assert str(caught.value).startswith(op["name"] + ":"), what


# Inputs of the parts of gradients that may have any size: what is indexed, indices, what only tells a shape.
FREE = {("advanced_index", "x"), ("advanced_index", "indices"), ("advanced_put", "indices"), ("advanced_put_grad", "dy"),
        ("advanced_put_grad", "indices"), ("take_axis", "a"), ("take_axis", "indices"), ("topk_indices", "data"),
        ("dropout_mask", "like"), ("random_slopes", "data"), ("batch_norm_predict", "x"), ("with_gradient", "y"),
        ("stop_gradient", "data"), ("to_blocks", "x"), ("pack_convolution_weight", "weight")}
# A slice still fits where the array is longer.
FREE_IN_LENGTH = {("assign_basic", "x"), ("assign_basic_grad", "dy"), ("basic_index", "x"), ("basic_index_grad", "like"),
                  ("scatter_flat", "data")}
PARTS = [op for op in reg.OPERATORS if not op["names"] and not op["pointwise"] and not op["expands"]]


@pytest.mark.parametrize("op", PARTS, ids=lambda op: op["name"])
def test_parts_of_gradients_refuse_what_does_not_fit(op):
    """They index by shapes that their caller knows to agree; one that does not is an error, not memory of somebody else."""
    failures: list[str] = []
    for sample in samples(op):
        values = base_arrays(op, sample)
        for i, a in enumerate(values):
            name = op["inputs"][min(i, len(op["inputs"]) - 1)][0]
            if a is None or (op["name"], name) in FREE:
                continue
            shapes = [a.shape + (3,)]
            if (op["name"], name) not in FREE_IN_LENGTH:
                shapes.append(tuple(n + 1 for n in a.shape))
            for shape in shapes:
                other = reg.array(np.zeros(shape, "float32")).astype(str(a.dtype))
                try_call(op, values[:i] + [other] + values[i + 1:], sample["attrs"], failures, f"{name} of shape {shape}", (ValueError, IndexError))
    assert not failures, reg.report(failures)


def test_parts_of_gradients_refuse_dtypes_and_indices_that_do_not_fit():
    def call(name, *values, attrs=""):
        reg.count("errors")
        return reg._core.call_operator(name, [None if v is None else reg.array(v) for v in values], attrs)[0].wait_to_read()

    f = lambda *shape, dtype="float32": np.ones(shape, dtype)  # noqa: E731
    with pytest.raises(ValueError, match="^layer_norm_grad: mean and inv_std must be float32"):
        call("layer_norm_grad", f(4, 5), f(4, 5), f(5), f(4, 1, dtype="float64"), f(4, 1))
    with pytest.raises(ValueError, match="^layer_norm_grad: dy and x must agree in shape and dtype"):
        call("layer_norm_grad", f(4, 5, dtype="float64"), f(4, 5), f(5), f(4, 1), f(4, 1))
    with pytest.raises(TypeError, match="^batch_norm_grad: statistics of float32 data must be float32; got float64"):
        call("batch_norm_grad", f(4, 3, 2), f(4, 3, 2), f(3), f(3, dtype="float64"), f(3, dtype="float64"), attrs="fix_gamma=False")
    with pytest.raises(ValueError, match="^box_nms_grad: index must be int64"):
        call("box_nms_grad", f(1, 5, 6), f(1, 5, dtype="int32"))
    with pytest.raises(IndexError, match="^box_nms_grad: index 5 is out of range for 5 boxes"):
        call("box_nms_grad", f(1, 5, 6), np.full((1, 5), 5, "int64"))
    with pytest.raises(ValueError, match="^pooling_grad: y must have the shape"):
        call("pooling_grad", f(1, 1, 2, 2), f(1, 1, 4, 4), f(1, 1, 1, 1), attrs="kernel=(2, 2), stride=(2, 2)")
    for name, like, index, dy in (("take_grad", f(4, 3), [4, 0], f(2, 3)), ("gather_nd_grad", f(4, 3), [[0, 4]], f(2, 3)),
                                  ("embedding_grad", f(4, 3), [4, 0], f(2, 3)), ("pick_grad", f(2, 3), [0, 3], f(2))):
        arrays = {"dy": dy, "like": like, "indices": np.array(index), "index": np.array(index), "weight": like, "data": np.array(index)}
        given = [arrays[n] for n, _ in reg.BY_NAME[name]["inputs"]]
        with pytest.raises(IndexError, match="out of range"):
            call(name, *given, attrs="axis=0" if name == "take_grad" else "")


def test_an_unknown_operator_is_named():
    with pytest.raises(KeyError) as caught:
        reg._core.call_operator("exq", [])
    assert "Did you mean exp" in str(caught.value)
