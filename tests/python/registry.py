# SPDX-License-Identifier: Apache-2.0
"""What the drivers share that walk the registry: data for samples, memory layouts, calls, and the count of cases.

A new operator is tested without a test being written: its declaration says which inputs, dtypes and samples it has.
"""
from __future__ import annotations

import collections
import os
import zlib

import numpy as np
from twibil import _core

OPERATORS = _core.registry()
BY_NAME = {op["name"]: op for op in OPERATORS}

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int32", "int64")
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}

counts: collections.Counter = collections.Counter()

EVERY = int(os.environ.get("TEST_EVERY", "1"))  # for slow builds: a case out of so many is tried
_drawn = 0


def count(driver: str, cases: int = 1) -> None:
    counts[driver] += cases


def chosen() -> bool:
    """Whether the next case is among those that are tried."""
    global _drawn
    _drawn += 1
    return _drawn % EVERY == 0


def summary(counts: collections.Counter) -> str:
    parts = ", ".join(f"{name} {n:,}" for name, n in sorted(counts.items()))
    return f"cases generated from the registry: {sum(counts.values()):,} ({parts})"


def seed_of(*parts) -> int:
    """The same on every run, another for every place."""
    return zlib.crc32(repr(parts).encode())


# ---- data ----


def is_float(dtype: str) -> bool:
    return dtype in FLOATS


def _reals(rng, shape, smooth):
    """Away from zero, whole numbers and each other if smooth; else zeros and ties are among them."""
    n = int(np.prod(shape))
    if smooth:
        grid = np.arange(-2 * max(n, 8), 2 * max(n, 8)) + 0.5  # distinct, evenly spread over -2 to 2
        values = rng.permutation(grid)[:n] / max(n, 8)
        return (values + rng.uniform(-0.1, 0.1, n) / max(n, 8)).reshape(shape)
    values = rng.uniform(-2, 2, n)
    kind = rng.integers(0, 6, n)
    values = np.where(kind == 0, 0.0, np.where(kind == 1, np.sign(values), np.where(kind == 2, np.round(values * 2) / 2, values)))
    return values.reshape(shape)


def _integers(rng, shape, domain, bound, dtype):
    low, high = {"positive": (1, 5), "unit": (0, 2), "above_one": (2, 5), "index": (0, max(bound, 1)), "boolean": (0, 2)}.get(domain, (-4, 5))
    if dtype == "uint8" and low < 0:
        low, high = 0, 9
    return rng.integers(low, high, shape)


def values_for(rng, shape, domain, bound, dtype, smooth):
    """A NumPy array (float32 stands for bfloat16, rounded to what that holds)."""
    shape = tuple(shape)
    if domain == "boolean" or dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool if dtype not in FLOATS and dtype not in INTEGERS else np.dtype(dtype if dtype != "bfloat16" else "float32"))
    if not is_float(dtype):
        return _integers(rng, shape, domain, bound, dtype).astype(dtype)
    if domain == "positive":
        values = rng.uniform(0.1, 3, shape)
    elif domain == "unit":
        values = rng.uniform(-0.9, 0.9, shape)
    elif domain == "above_one":
        values = rng.uniform(1.1, 4, shape)
    elif domain in ("index", "integer"):
        values = _integers(rng, shape, domain, bound, dtype).astype(float)
    elif domain == "boxes":
        corner = rng.uniform(0, 0.6, shape[:-1] + (2,))
        values = np.concatenate([corner, corner + rng.uniform(0.05, 0.4, shape[:-1] + (2,))], axis=-1)
        if shape[-1] > 4:  # class and score stand before the corners
            first = [rng.integers(0, 2, shape[:-1] + (shape[-1] - 5,)).astype(float), rng.uniform(0.1, 1, shape[:-1] + (1,))]
            values = np.concatenate([*first, values], axis=-1)
        values = values[..., : shape[-1]]
    else:
        values = _reals(rng, shape, smooth)
    return round_to(values, dtype)


def round_to(values, dtype):
    """To the numbers that the dtype holds; bfloat16 as float32."""
    if dtype != "bfloat16":
        return np.asarray(values).astype(dtype)
    bits = np.array(values, np.float32, order="C", ndmin=1).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32).reshape(np.shape(values))


def dtype_of_input(op, sample, i, dtype):
    """The dtype under test goes to all inputs but indices and conditions that stand beside others."""
    if op["pointwise"] and sample["inputs"][i][1] != "boolean":
        return dtype
    domains = [s[1] if s else None for s in sample["inputs"]]
    if domains[i] == "index" and any(d not in ("index", None) for d in domains):
        return "int32" if op["names"] else "int64"  # what operators hand to the parts of their gradients
    if domains[i] == "boolean" and any(d not in ("boolean", None) for d in domains):
        return "bool"
    return dtype


def sample_values(op, sample, dtype, smooth=None, shapes=None):
    smooth = sample["smooth"] if smooth is None else smooth
    arrays = []
    for i, spec in enumerate(sample["inputs"]):
        if spec is None:
            arrays.append(None)
            continue
        rng = np.random.default_rng(seed_of(op["name"], sample["attrs"], i, spec))
        shape = spec[0] if shapes is None else shapes[i]
        arrays.append(values_for(rng, shape, spec[1], spec[2], dtype_of_input(op, sample, i, dtype), smooth))
    return arrays


def array(values, dtype=None):
    """A twibil array; `dtype` says bfloat16 where NumPy cannot."""
    if values is None:
        return None
    result = _core.array(np.array(values, order="C"), dtype=values.dtype)
    return result.astype("bfloat16") if dtype == "bfloat16" and values.dtype == np.float32 else result


# ---- layouts: each makes an array with the same elements, but other strides ----


def _contiguous(a, dtype):
    return array(a, dtype)


def _transposed(a, dtype):
    return array(a.T, dtype).T


def _stepped(a, dtype):
    wide = np.zeros(a.shape[:-1] + (2 * a.shape[-1],), a.dtype)
    wide[..., ::2] = a
    return array(wide, dtype)[..., ::2]


def _reversed(a, dtype):
    return array(a[..., ::-1], dtype)[..., ::-1]


def _offset(a, dtype):
    return array(np.concatenate([np.ones_like(a), a]), dtype)[a.shape[0]:]


LAYOUTS = {"contiguous": _contiguous, "transposed": _transposed, "stepped": _stepped, "reversed": _reversed, "offset": _offset}
broadcast_to = _core.functions("np").get("broadcast_to")


def layout_of(name, a, dtype):
    """(values, array): the layout "broadcast" repeats the first row, so that its values differ."""
    if a is None:
        return None, None
    if a.ndim == 0:
        return a, array(a, dtype)
    if name == "broadcast":
        row = a[:1]
        return np.broadcast_to(row, a.shape), broadcast_to(array(row, dtype), a.shape)
    return a, LAYOUTS[name](a, dtype)


LAYOUT_NAMES = tuple(LAYOUTS) + (("broadcast",) if broadcast_to else ())


# ---- calls ----


def call(op, arrays, attrs="", training=False):
    return _core.call_operator(op["name"], list(arrays), attrs, training=training)


def function_of(op):
    """The operator as a Python function: by its first public name that is no method, else by its own."""
    for name in op["names"]:
        space, _, short = name.rpartition(".")
        if space != "ndarray":
            return _core.functions(space)[short]
    return _core.operators()[op["name"]]


def is_pure(op) -> bool:
    """The same inputs give the same result, which is not written into them."""
    return not op["updates"] and not op["random"]


def close(got, want, dtype, scale=8.0):
    """Within `scale` units of the last place of the dtype, relative and, near zero, absolute."""
    if got.shape != want.shape:
        return False
    if got.dtype == bool or not np.issubdtype(got.dtype, np.floating):
        return np.array_equal(got, want)
    tolerance = scale * EPSILON.get(dtype, 2.0**-23)
    with np.errstate(all="ignore"):
        want = want.astype(np.float64)
        return bool(np.allclose(got.astype(np.float64), want, rtol=tolerance, atol=tolerance, equal_nan=True))


def worst(got, want):
    if got.shape != want.shape:
        return f"shape {got.shape} instead of {want.shape}"
    with np.errstate(all="ignore"):
        error = np.abs(got.astype(np.float64) - want.astype(np.float64)) / np.maximum(1, np.abs(want.astype(np.float64)))
    error = np.where(np.isnan(error) & ~(np.isnan(got) & np.isnan(want)), np.inf, error)
    at = int(np.nanargmax(error)) if error.size else 0
    return f"at {at}: got {got.ravel()[at] if got.size else None}, want {want.ravel()[at] if want.size else None}"


def report(failures) -> str:
    shown = "\n  ".join(failures[:6])
    return f"{len(failures)} cases fail:\n  {shown}"
