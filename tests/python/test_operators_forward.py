# SPDX-License-Identifier: Apache-2.0
"""Every operator of the registry x dtype x memory layout x shape, against float64.

The reference is NumPy's function of the same name, else references.py. Operators without one are compared with
themselves: other layouts with the contiguous one, other dtypes with float64.
"""
from __future__ import annotations

import ast
import re

import numpy as np
import pytest
import references
import registry as reg

# Shapes beyond the samples, for pointwise operators: empty, no dimension, one element, odd sizes, tile edges.
EXTRA_SHAPES = [(0,), (3, 0), (), (1,), (1, 1), (7,), (5, 3, 7), (513,), (2, 1025)]
BEYOND_L2 = (3, 131, 1031)  # 3.2 MB of float64 each

# Where NumPy says something else on purpose; docs/decisions.md.
NUMPY_DIFFERS = {"ldexp", "clip", "where", "copysign"}

# Errors of a result in units of the last place that a formula of several primitives may have.
ULPS = {"gamma": 32, "gammaln": 32, "digamma": 64, "erfinv": 16, "power": 16, "float_power": 16, "mish": 16}


def numpy_function(op):
    if op["name"] in NUMPY_DIFFERS or not op["pointwise"] and not op["expands"]:
        return None
    for name in op["names"]:
        space, _, short = name.partition(".")
        if space == "np" and hasattr(np, short):
            return getattr(np, short)
    return None


def parse_attrs(text):
    """"axis=(0, 2), keepdims=True" as keywords; words stay words."""
    def value(word):
        try:
            return ast.literal_eval(word)
        except (ValueError, SyntaxError):
            return word

    parts = [part.partition("=") for part in re.split(r",\s*(?=\w+=)", text) if part]
    return {name.strip(): value(word) for name, _, word in parts}


def reference_of(op):
    return references.REFERENCES.get(op["name"]) or numpy_function(op)


def wide(a, op):
    """The element as it is computed: floats in float64, integers exactly, unless the operator makes them floats."""
    if a is None:
        return None
    if np.issubdtype(a.dtype, np.floating) or op["rule"] == "floating":
        return a.astype(np.float64)
    return a


def expected_dtype(op, dtype):
    """Of a pointwise result."""
    if op["rule"] == "floating" and not reg.is_float(dtype):
        return "float32"
    if op["rule"] == "arithmetic" and dtype == "bool":
        return "int64"
    return dtype


# Take float32 statistics beside halves; test_operators_gradient.py has them.
FLOAT32_BESIDE_HALVES = {"batch_norm_grad", "layer_norm_grad"}


def dtypes_of(op):
    dtypes = [t for t in op["dtypes"] if not (op["name"] in FLOAT32_BESIDE_HALVES and t in ("float16", "bfloat16"))]
    if op["rule"] == "floating":
        dtypes = ["bool", "int8", "uint8", "int32", "int64"] + dtypes
    if op["rule"] == "arithmetic" and "bool" not in dtypes:
        dtypes.append("bool")
    return dtypes


def compute_reference(op, reference, values, attrs):
    with np.errstate(all="ignore"):
        try:
            return np.asarray(reference(*[wide(a, op) for a in values], **parse_attrs(attrs)))
        except (TypeError, ValueError):
            return None  # NumPy refuses, as integers to negative powers


def values_of(op, sample, dtype, shape):
    if shape is None:
        return reg.sample_values(op, sample, dtype)
    if shape is not BEYOND_L2:
        return reg.sample_values(op, sample, dtype, shapes=shapes_for(op, sample, shape))
    # The same row again and again, so that a slow reference computes it once.
    rows = reg.sample_values(op, sample, dtype, shapes=shapes_for(op, sample, shape[-1:]))
    return [None if r is None else np.ascontiguousarray(np.broadcast_to(r, shape)) for r in rows]


def expect(op, reference, values, attrs, shape):
    if shape is not BEYOND_L2:
        return compute_reference(op, reference, values, attrs)
    row = compute_reference(op, reference, [None if v is None else v[0, 0] for v in values], attrs)
    return None if row is None else np.broadcast_to(row, shape)


def check(op, sample, values, arrays, dtype, want, failures, where, ulps):
    reg.count("forward")
    try:
        got = reg.call(op, arrays, sample["attrs"])
    except Exception as e:  # noqa: BLE001 - every failure is reported with its case
        failures.append(f"{where}: {type(e).__name__}: {e}")
        return
    for k, y in enumerate(got):
        if y is None:
            continue
        result, expected = y.asnumpy(), want[k] if k < len(want) else None
        if expected is None:
            continue
        out_dtype = str(y.dtype)
        if result.dtype != bool and expected.dtype != bool and np.issubdtype(result.dtype, np.integer):
            with np.errstate(all="ignore"):
                expected = expected.astype(result.dtype)
        # What is stored in a half cannot be nearer than its numbers: those of the reference are rounded first.
        if reg.is_float(out_dtype):
            with np.errstate(all="ignore"):
                expected = reg.round_to(expected.astype(np.float64), out_dtype)
        if not reg.close(result, expected, out_dtype, ulps):
            failures.append(f"{where}: output {k}: {reg.worst(result, expected)}")


def shapes_for(op, sample, shape):
    """The sample's inputs all in one extra shape; None if an input is left out or fixed by something else."""
    return [shape if spec is not None else None for spec in sample["inputs"]]


def cases_of(op, dtype):
    for sample in op["samples"]:
        yield sample, None, reg.LAYOUT_NAMES
    if not op["pointwise"] or not op["samples"]:
        return
    sample = op["samples"][-1]
    for shape in EXTRA_SHAPES:
        yield sample, shape, reg.LAYOUT_NAMES if shape and 0 not in shape else ("contiguous",)
    if dtype in ("float32", "float64", "int32", "bool"):
        yield sample, BEYOND_L2, ("contiguous",)
    if dtype == "float32":
        yield sample, BEYOND_L2, ("transposed", "stepped")


@pytest.mark.parametrize("op", [op for op in reg.OPERATORS if reg.is_pure(op)], ids=lambda op: op["name"])
def test_forward(op):
    failures: list[str] = []
    reference = reference_of(op)
    ulps = ULPS.get(op["name"], 8)
    for dtype in dtypes_of(op):
        for sample, shape, layouts in cases_of(op, dtype):
            base = values_of(op, sample, dtype, shape)
            own = None
            for layout in layouts:
                if not reg.chosen():
                    continue
                pairs = [reg.layout_of(layout, a, dtype) for a in base]
                values = [p[0] for p in pairs]
                where = f"{op['name']}({sample['attrs']}) {dtype} {[v.shape for v in values if v is not None]} {layout}"
                want = None
                if reference is not None:
                    expected = expect(op, reference, values, sample["attrs"], shape)
                    want = None if expected is None else [expected]
                if want is None:
                    if own is None or layout == "broadcast":
                        own = own_reference(op, sample, values, dtype)
                    want = own
                check(op, sample, values, [p[1] for p in pairs], dtype, want, failures, where, ulps if reference else 64)
    assert not failures, reg.report(failures)


def own_reference(op, sample, values, dtype):
    """The operator itself in float64 on contiguous arrays; in the dtype where float64 has no kernel or it is not a float."""
    if reg.is_float(dtype) and "float64" in op["dtypes"] and op["visible"] == 1 and not depends_on_dtype(op, sample):
        values = [v.astype(np.float64) if v is not None and np.issubdtype(v.dtype, np.floating) else v for v in values]
        arrays = [reg.array(v) for v in values]
    else:
        arrays = [reg.array(v, dtype) for v in values]
    try:
        return [y.asnumpy() for y in reg.call(op, arrays, sample["attrs"])]
    except Exception:  # noqa: BLE001
        return []  # reported by the case itself


def depends_on_dtype(op, sample):
    return "dtype" in sample["attrs"] or op["creates"]


POINTWISE = [op for op in reg.OPERATORS if op["pointwise"] and reg.is_pure(op)]


@pytest.mark.parametrize("op", POINTWISE, ids=lambda op: op["name"])
def test_result_dtype(op):
    for dtype in dtypes_of(op):
        reg.count("result dtype")
        values = reg.sample_values(op, op["samples"][0], dtype)
        result = reg.call(op, [reg.array(v, dtype) for v in values], op["samples"][0]["attrs"])[0]
        makes_bool = op["rule"] == "compare" or op["no_grad"] == "the result is true or false"
        assert str(result.dtype) == ("bool" if makes_bool else expected_dtype(op, dtype)), (op["name"], dtype)


BINARY = [op for op in POINTWISE if len(op["inputs"]) == 2 and op["names"] and op["rule"] in ("same", "arithmetic", "compare")]
PROMOTIONS = [("int32", "float32", "float32"), ("int64", "float16", "float16"), ("float32", "float64", "float64"), ("int8", "uint8", None),
              ("int32", "int64", "int64"), ("bool", "int32", "int32"), ("bool", "float32", "float32"), ("float16", "bfloat16", "float32")]


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op["name"])
def test_promotion(op):
    for a, b, result in PROMOTIONS:
        if result is None or result not in op["dtypes"]:
            continue
        reg.count("promotion")
        x = reg.array(np.array([1, 0, 1]).astype("float32" if a == "bfloat16" else a), a)
        y = reg.array(np.array([1, 1, 1]).astype("float32" if b == "bfloat16" else b), b)
        got = reg.call(op, [x, y])[0]
        want = "bool" if str(got.dtype) == "bool" else result
        assert str(got.dtype) == want, (op["name"], a, b, str(got.dtype))


SCALARS = [("float32", 2.0, "float32"), ("float16", 2.0, "float16"), ("int32", 2, "int32"), ("int32", 2.5, "float32"), ("uint8", 3, "uint8"),
           ("float64", 2, "float64"), ("bool", 2, "int64")]


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op["name"])
def test_python_scalars_are_weak(op):
    for dtype, scalar, result in SCALARS:
        if result not in op["dtypes"]:
            continue
        x = reg.array(np.array([1, 2, 3]).astype(dtype), dtype)
        for arrays in ([x, scalar], [scalar, x]):
            reg.count("scalars")
            got = reg.call(op, arrays)[0]
            assert str(got.dtype) in (result, "bool"), (op["name"], dtype, scalar, str(got.dtype))


@pytest.mark.parametrize("op", POINTWISE, ids=lambda op: op["name"])
def test_out_may_be_an_input(op):
    """f(x, out=x) gives what f(x) gives, in every layout."""
    dtype = "float32" if "float32" in op["dtypes"] else op["dtypes"][-1]
    function = reg.function_of(op)
    sample = op["samples"][0]
    keywords = parse_attrs(sample["attrs"])
    for layout in reg.LAYOUT_NAMES:
        if layout == "broadcast":
            continue  # not writable element by element
        values = reg.sample_values(op, sample, dtype)
        arrays = [reg.layout_of(layout, v, dtype)[1] for v in values]
        want = function(*arrays, **keywords)
        if str(want.dtype) != str(arrays[0].dtype) or want.shape != arrays[0].shape:
            continue
        reg.count("in place")
        expected = want.asnumpy()
        got = function(*arrays, **keywords, out=arrays[0])
        assert got is arrays[0]
        np.testing.assert_array_equal(got.asnumpy(), expected, err_msg=f"{op['name']} {layout}")
