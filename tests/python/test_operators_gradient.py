# SPDX-License-Identifier: Apache-2.0
"""Gradients of every operator of the registry by finite differences in float64, first and second order."""
from __future__ import annotations

import numpy as np
import pytest
import registry as reg

STEP = {"float64": 1e-6, "float32": 1e-2}
TOLERANCE = {"float64": 2e-6, "float32": 2e-2}
ELEMENTS = 24  # of an input that are moved one by one; more are drawn

DIFFERENTIABLE = [op for op in reg.OPERATORS if op["has_grad"]]


class Problem:
    """loss = sum over outputs of output * weights, as a function of the floating-point inputs of one sample."""

    def __init__(self, op, sample, dtype, training):
        self.op, self.attrs, self.training, self.dtype = op, sample["attrs"], training, dtype
        self.values = reg.sample_values(op, sample, dtype)
        aux = {name for name, kind in op["inputs"] if kind == "aux"}
        names = [name for name, _ in op["inputs"]]
        self.wrt = [i for i, v in enumerate(self.values)
                    if v is not None and np.issubdtype(v.dtype, np.floating) and sample["inputs"][i][1] not in ("index", "boolean")
                    and names[min(i, len(names) - 1)] not in aux]
        self.weights: list = []

    def arrays(self, values, layout="contiguous"):
        return [reg.array(v, self.dtype) if layout == "contiguous" else reg.layout_of(layout, v, self.dtype)[1] for v in values]

    def outputs(self, arrays):
        reg._core.seed(17)
        return reg.call(self.op, arrays, self.attrs, training=self.training)

    def weigh(self, outputs):
        """Heads of floating dtype, and the weights they get."""
        heads = [y for y in outputs if reg.is_float(str(y.dtype))]
        if not self.weights:
            rng = np.random.default_rng(5)
            self.weights = [rng.uniform(0.5, 1.5, y.shape).astype(self.dtype) for y in heads]
        return heads, [reg.array(w) for w in self.weights]

    def loss(self, values):
        heads, _ = self.weigh(self.outputs(self.arrays(values)))
        return sum(float(np.sum(y.asnumpy().astype(np.float64) * w)) for y, w in zip(heads, self.weights))

    def gradients(self, values, layout="contiguous", create_graph=False):
        """(the variables, their gradients); None for inputs that have none."""
        arrays = self.arrays(values, layout)
        variables = [arrays[i] for i in self.wrt]
        for v in variables:
            v.attach_grad()
        before = reg._core.set_recording(True)
        try:
            heads, weights = self.weigh(self.outputs(arrays))
            heads_weights = [(h, w) for h, w in zip(heads, weights) if depends(h)]
            if not heads_weights:
                return variables, None
            grads = []
            for v in variables:
                try:
                    grads.append(reg._core.grad([h for h, _ in heads_weights], v, [w for _, w in heads_weights], retain_graph=True,
                                                create_graph=create_graph, train_mode=self.training))
                except ValueError as e:
                    if "do not depend" not in str(e):
                        raise
                    grads.append(None)
            return variables, grads
        finally:
            reg._core.set_recording(before)


def depends(y):
    """Whether y was recorded: an operator may turn variables into something without a gradient."""
    try:
        reg._core.grad([y], y, retain_graph=True)
        return True
    except ValueError:
        return False


def moved(values, i, at, step):
    changed = [None if v is None else v.copy() for v in values]
    changed[i].ravel()[at] += step  # a copy is contiguous, ravel is a view of it
    return changed


def picks(size, seed):
    return range(size) if size <= ELEMENTS else np.random.default_rng(seed).choice(size, ELEMENTS, replace=False)


def difference(function, values, i, at, step):
    return (function(moved(values, i, at, step)) - function(moved(values, i, at, -step))) / (2 * step)


def compare(got, function, values, i, problem, what, failures, driver):
    step, tolerance = STEP[problem.dtype], TOLERANCE[problem.dtype]
    least = max(1.0, abs(function(values)) * 1e-3)  # differences lose digits where the value is large
    for at in picks(values[i].size, i):
        reg.count(driver)
        want = difference(function, values, i, at, step)
        have = float(got.ravel()[at])
        if not abs(have - want) <= tolerance * max(least, abs(want)):
            failures.append(f"{what} by input {i} at {at}: got {have:.9g}, finite difference {want:.9g}")


def problems(op):
    dtype = "float64" if "float64" in op["dtypes"] or op["expands"] else "float32" if "float32" in op["dtypes"] else None
    if dtype is None:
        return
    for sample in op["samples"]:
        if not sample["smooth"]:
            continue
        for training in (False, True) if op["trains"] or op["random"] else (False,):
            problem = Problem(op, sample, dtype, training)
            if problem.wrt and reg.chosen():
                yield problem


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op["name"])
def test_first_order(op):
    failures: list[str] = []
    tried = compared = 0
    for p in problems(op):
        tried += 1
        _, grads = p.gradients(p.values)
        if grads is None:
            continue
        for i, g in zip(p.wrt, grads):
            compared += g is not None
            if g is None:
                if any(abs(difference(p.loss, p.values, i, at, STEP[p.dtype])) > 1e-4 for at in picks(p.values[i].size, i)):
                    failures.append(f"{op['name']}({p.attrs}) by input {i}: no gradient, but the result changes")
                continue
            assert g.shape == p.values[i].shape and str(g.dtype) == p.dtype
            compare(g.asnumpy(), p.loss, p.values, i, p, f"{op['name']}({p.attrs}) training={p.training}", failures, "first order")
    assert not failures, reg.report(failures)
    assert compared or not tried, f"{op['name']} says that it has a gradient, and none came from its samples"


def mixed_gradient(problem, mix):
    """The sum of the gradients times `mix`, as a function of the inputs."""
    def mixed(values):
        _, grads = problem.gradients(values)
        return sum(float(np.sum(g.asnumpy().astype(np.float64) * m)) for g, m in zip(grads, mix) if g is not None)

    return mixed


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op["name"])
def test_second_order(op):
    """The gradient of sum(gradient * weights), against finite differences of the gradient."""
    failures: list[str] = []
    for p in problems(op):
        _, first = p.gradients(p.values)
        if first is None:
            continue
        rng = np.random.default_rng(11)
        mix = [None if g is None else rng.uniform(0.5, 1.5, g.shape).astype(p.dtype) for g in first]

        before = reg._core.set_recording(True)
        try:
            variables, grads = p.gradients(p.values, create_graph=True)
            heads = [(g, reg.array(m)) for g, m in zip(grads, mix) if g is not None and depends(g)]
            for i, v in zip(p.wrt, variables):
                what = f"second order of {op['name']}({p.attrs}) training={p.training}"
                try:
                    second = reg._core.grad([h for h, _ in heads], v, [m for _, m in heads], retain_graph=True,
                                            train_mode=p.training).asnumpy() if heads else None
                except ValueError as e:
                    if "do not depend" not in str(e):
                        raise
                    second = None
                if second is None:
                    second = np.zeros(p.values[i].shape)
                reg._core.set_recording(False)
                compare(second, mixed_gradient(p, mix), p.values, i, p, what, failures, "second order")
                reg._core.set_recording(True)
        finally:
            reg._core.set_recording(before)
    assert not failures, reg.report(failures)


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op["name"])
def test_layouts_give_the_same_gradient(op):
    failures: list[str] = []
    for p in problems(op):
        _, want = p.gradients(p.values)
        if want is None:
            continue
        for layout in reg.LAYOUT_NAMES:
            if layout in ("contiguous", "broadcast"):
                continue
            _, got = p.gradients(p.values, layout)
            for i, a, b in zip(p.wrt, want, got):
                reg.count("gradient layouts")
                if (a is None) != (b is None) or (a is not None and not np.allclose(a.asnumpy(), b.asnumpy(), rtol=1e-9, atol=1e-9, equal_nan=True)):
                    failures.append(f"{op['name']}({p.attrs}) {layout} by input {i}")
    assert not failures, reg.report(failures)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["layer_norm", "batch_norm"])
def test_halves_get_the_gradient_of_float32(name, dtype):
    """Where statistics are kept in float32 beside halves: within the rounding of the half's inputs and results."""
    op = reg.BY_NAME[name]
    p = Problem(op, op["samples"][0], "float32", training=True)
    p.values = [v if v is None else reg.round_to(v, dtype).astype("float32") for v in p.values]
    _, want = p.gradients(p.values)
    variables = [reg.array(v, "float32").astype(dtype) if i in p.wrt else reg.array(v) for i, v in enumerate(p.values)]
    for i in p.wrt:
        variables[i].attach_grad()
    before = reg._core.set_recording(True)
    try:
        y = reg._core.call_operator(name, variables, p.attrs, training=True)[0]
        head = (y.astype("float32") * reg.array(p.weights[0])).sum()
    finally:
        reg._core.set_recording(before)
    reg._core.backward([head])
    for i, g in zip(p.wrt, want):
        reg.count("first order", g.size)
        got = variables[i].grad
        assert str(got.dtype) == dtype
        np.testing.assert_allclose(got.asnumpy().astype("float32"), g.asnumpy(), rtol=8 * reg.EPSILON[dtype],
                                   atol=8 * reg.EPSILON[dtype] * max(1, float(abs(g.asnumpy()).max())))
