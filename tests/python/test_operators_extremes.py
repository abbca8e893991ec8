# SPDX-License-Identifier: Apache-2.0
"""The ends of every dtype through every operator and its gradient: a result or a refusal, whatever the numbers are.

What the results are is said elsewhere; here no call may crash, hang or meet undefined behaviour, which the build of
`./dev asan` reports: sums that overflow, shifts by too much, floats that no integer holds, indices from anywhere.
"""
from __future__ import annotations

import numpy as np
import pytest
import registry as reg
from test_operators_errors import MISTAKES, limited_memory  # noqa: F401 - a fixture

DTYPES = ("bool", *reg.INTEGERS, *reg.FLOATS)


def ends(dtype):
    if dtype == "bool":
        return np.array([True, False])
    if not reg.is_float(dtype):
        info = np.iinfo(dtype)
        return np.array([info.min, info.max, 0, info.max - 1, 1, info.min + 1, info.max // 2 + 1], dtype)
    info = np.finfo("float32" if dtype == "bfloat16" else dtype)
    wanted = [np.nan, np.inf, -np.inf, info.max, -info.max, info.tiny, -0.0, -1.0, 2.0**31, -(2.0**63), 2.0**63, 300.0, 1e-3]
    with np.errstate(over="ignore"):
        return np.array(wanted).astype(info.dtype)


def filled(shape, dtype, turn):
    """All ends in turn, starting elsewhere; every third filling is one number throughout."""
    values, size = ends(dtype), int(np.prod(shape))
    at = np.full(size, turn // 3) if turn % 3 == 2 else np.arange(size) * (turn % 3 + 1) + turn
    return reg.array(values[at % len(values)].reshape(shape), dtype)


def arrays_of(op, sample, dtype, turn, only=None):
    """Every input full of ends, or only one of them."""
    usual = reg.sample_values(op, sample, dtype)
    arrays = []
    for i, (spec, values) in enumerate(zip(sample["inputs"], usual)):
        own = None if values is None else reg.dtype_of_input(op, sample, i, dtype)
        if values is None or (only is not None and i != only):
            arrays.append(reg.array(values, own))
        else:
            arrays.append(filled(spec[0], own, turn))
    return arrays


def attempt(driver, op, arrays, attrs, differentiate, failures, what):
    """Calls, differentiates if asked to, and waits; an exception must be one that a user's mistake explains."""
    if not reg.chosen():
        return
    reg.count(driver)
    variables = [a for a in arrays if a is not None and reg.is_float(str(a.dtype))] if differentiate else []
    before = reg._core.set_recording(bool(variables))
    try:
        for a in variables:
            a.attach_grad()
        outputs = [y for y in reg.call(op, arrays, attrs, training=differentiate) if y is not None]
        heads = [y for y in outputs if reg.is_float(str(y.dtype))]
        if variables and heads:
            try:
                reg._core.backward(heads)
            except ValueError as e:
                if "was not computed while recording" not in str(e):
                    raise
        for y in outputs + [v.grad for v in variables]:
            y.wait_to_read()
    except MISTAKES:
        pass
    except Exception as e:  # noqa: BLE001 - every failure is reported with its case
        failures.append(f"{what}: {type(e).__name__}: {e}")
    finally:
        reg._core.set_recording(before)
        try:
            reg._core.waitall()  # an error of queued work that nobody looked at would meet the next test
        except MISTAKES:
            pass


@pytest.mark.parametrize("op", reg.OPERATORS, ids=lambda op: op["name"])
def test_extreme_elements(op):
    failures: list[str] = []
    for sample in op["samples"]:
        inputs = [i for i, spec in enumerate(sample["inputs"]) if spec is not None]
        for dtype in DTYPES if inputs else ():
            for turn in range(6):
                attrs = sample["attrs"]
                what = f"{op['name']}({attrs}) {dtype} turn {turn}"
                attempt("extremes", op, arrays_of(op, sample, dtype, turn), attrs, False, failures, what)
                if len(inputs) > 1:
                    only = inputs[turn % len(inputs)]
                    attempt("extremes", op, arrays_of(op, sample, dtype, turn, only), attrs, False, failures, f"{what}, input {only} alone")
                if op["has_grad"] and reg.is_float(dtype):
                    attempt("extremes", op, arrays_of(op, sample, dtype, turn), attrs, True, failures, f"gradient of {what}")
    assert not failures, reg.report(failures)


def test_casts_between_all_dtypes():
    for source in DTYPES:
        x = filled((26,), source, 0)
        for target in DTYPES:
            reg.count("extremes")
            assert x.astype(target).shape == (26,)
