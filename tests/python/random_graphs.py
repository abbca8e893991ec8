# SPDX-License-Identifier: Apache-2.0
"""Random graphs from the registry: each runs eagerly, call by call, then compiled with all passes, with none, and with
each single pass left out; values, gradients and what was written must be the same bits.

    python tests/python/random_graphs.py 10000 [first seed]     prints what fails, and how to get it again
"""
from __future__ import annotations

import sys
import time

import numpy as np
import registry
from registry import OPERATORS, array, sample_values, values_for

import twibil as mx
from twibil import _core, autograd

MOST_ELEMENTS = 600
# Where rows lie in memory another way, sums add up in another order; and a folded batch normalisation rounds elsewhere;
# what is computed in blocks of channels adds up in another order.
# Graphs with these may differ in their last bits.
LOOSE = {"sum", "mean", "prod", "norm", "var", "std", "cumsum", "softmax", "log_softmax", "batch_norm", "batch_norm_predict", "sum_to_like",
         "convolution", "pooling", "lrn"}
VARIABLE_SHAPES = ((), (4,), (3, 4), (3, 1), (1, 4), (2, 3, 4), (2, 1, 4), (1,), (4, 3), (2, 3, 4, 4))
DTYPES = ("float32",) * 6 + ("float64", "float16", "bfloat16", "int32", "int64", "bool")
POINTWISE = [op for op in OPERATORS if op["pointwise"]]
# Results that differ in their last bits where rows are cut in another way, or whose result is no function of the inputs.
OTHERS = [op for op in OPERATORS if not op["pointwise"] and not op["data_dependent"] and op["samples"]]
GROUPS = {
    "shape": [op for op in OTHERS if op["view"] or op["name"] in (
        "concatenate", "stack", "repeat", "tile", "flip", "broadcast_to", "reshape_like", "pad", "take", "where", "zeros_like", "ones_like",
        "full_like", "sum_to_like", "broadcast_like", "copy", "cast", "tril", "triu", "split")],
    "reduction": [op for op in OTHERS if op["name"] in ("sum", "mean", "max", "min", "prod", "norm", "var", "std", "argmax", "softmax",
                                                         "log_softmax", "layer_norm", "cumsum")],
    "arithmetic": [op for op in POINTWISE if op["name"] in (
        "add", "subtract", "multiply", "true_divide", "negative", "relu", "sigmoid", "tanh", "exp", "square", "maximum", "minimum",
        "sqrt", "where", "positive", "absolute", "power", "clamp")],
    "pointwise": POINTWISE,
    "any": OTHERS,
}
WEIGHTS = {"arithmetic": 0.45, "pointwise": 0.15, "shape": 0.15, "reduction": 0.1, "any": 0.15}


class Step:
    """One call: the values it reads (numbers in the list of values, None where absent), and where its results begin."""

    def __init__(self, op, attrs, inputs):
        self.op, self.attrs, self.inputs = op, attrs, inputs
        self.spelled = "power" if op["name"] == "power" else op["name"]


class RandomGraph:
    """variables: arrays as (NumPy values, dtype); steps; outputs: numbers of values."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.seed = seed
        self.variables, self.steps, self.outputs = [], [], []
        self.training = bool(self.rng.random() < 0.4)
        self.gradient = bool(self.rng.random() < 0.5)
        self.dtypes = [DTYPES[self.rng.integers(len(DTYPES))] for _ in range(self.rng.integers(1, 3))]
        self._build(int(self.rng.integers(5, 51)))

    # ---- making one ----

    def _build(self, nodes):
        self._values = []  # eager results; as numbers: ("v", i) of a variable, ("s", step, output)
        self._names = []
        mx.random.seed(self.seed)
        for _ in range(self.rng.integers(1, 4)):
            shape = self._shape()
            self._variable(values_for(self.rng, shape, "real", 0, self._dtype(), False), None)
        tries = 0
        while len(self.steps) < nodes and tries < 4 * nodes:
            tries += 1
            self._step()
        read = {n for s in self.steps for n in s.inputs if n is not None}
        last = [n for n in self._names if n[0] == "s" and n not in read]
        more = [n for n in self._names if n[0] == "s" and n in read and self.rng.random() < 0.1]
        self.outputs = last + more or self._names[:1]
        if self.rng.random() < 0.1:  # an argument is a result too
            self.outputs.append(("v", 0))
        del self._values, self._names
        self._choose_captured()

    def _dtype(self):
        return self.dtypes[self.rng.integers(len(self.dtypes))]

    def _shape(self):
        shape = VARIABLE_SHAPES[self.rng.integers(len(VARIABLE_SHAPES))]
        if shape and self.rng.random() < 0.03:
            shape = (0,) + shape[1:]
        return shape

    def _variable(self, values, dtype):
        a = array(values, dtype)
        self.variables.append((np.array(values, order="C"), str(a.dtype)))
        self._values.append(a)
        self._names.append(("v", len(self.variables) - 1))
        return len(self._values) - 1

    def _step(self):
        group = list(WEIGHTS)[self.rng.choice(len(WEIGHTS), p=list(WEIGHTS.values()))]
        ops = GROUPS[group]
        op = ops[self.rng.integers(len(ops))]
        if not op["samples"]:
            return
        sample = op["samples"][self.rng.integers(len(op["samples"]))]
        dtype = self._dtype()
        if dtype not in op["dtypes"]:
            return
        fresh = sample_values(op, sample, dtype)
        picked, made = [], []
        # Indices and labels are made for the sample's shapes; some operators look at them in the gradient only.
        indexed = any(spec is not None and spec[1] == "index" for spec in sample["inputs"])
        updated = {u[1] for u in op["updates"]}
        for i, spec in enumerate(sample["inputs"]):
            if spec is None:
                picked.append(None)
                continue
            choice = None
            if i not in updated and spec[1] in ("real", "unit", "positive", "above_one", "integer"):
                choice = self._reuse(op, spec, picked, indexed)
            if choice is None:
                if op["pointwise"] and spec[1] == "real" and self.rng.random() < 0.3 and dtype != "bfloat16":
                    fresh[i] = np.array(values_for(self.rng, (), "real", 0, dtype, False))
                choice = ("new", fresh[i], dtype if registry.is_float(dtype) else None)
                made.append(len(picked))
            picked.append(choice)
        arrays = [None if p is None else array(p[1], p[2]) if isinstance(p, tuple) else self._values[p] for p in picked]
        if op["updates"]:
            arrays = [a.copy() if i in updated and a is not None else a for i, a in enumerate(arrays)]
        try:
            with autograd.predict_mode():
                out = _core.call_operator(op["name"], arrays, sample["attrs"], training=self.training)
            for o in out:
                o.wait_to_read()
        except (ValueError, TypeError, IndexError, RuntimeError, OverflowError, NotImplementedError):
            return
        if any(o.size > MOST_ELEMENTS for o in out):
            return
        if op["updates"] and self.gradient:
            return
        for i in made:
            picked[i] = self._variable(picked[i][1], picked[i][2])
        self.steps.append(Step(op, sample["attrs"], [None if p is None else self._names[p] for p in picked]))
        for k, o in enumerate(out):
            self._values.append(o)
            self._names.append(("s", len(self.steps) - 1, k))

    def _reuse(self, op, spec, picked, exact):
        """A value that is there, of a shape that may fit."""
        if self.rng.random() < 0.15:
            return None
        others = [self._values[p] for p in picked if p is not None and not isinstance(p, tuple)]
        fits = []
        for i, v in enumerate(self._values):
            if op["pointwise"]:
                try:
                    np.broadcast_shapes(v.shape, *[o.shape for o in others])
                except ValueError:
                    continue
            elif v.ndim != len(spec[0]):
                continue
            elif v.shape != tuple(spec[0]) and (exact or self.rng.random() < 0.7):
                continue
            fits.append(i)
        if not fits:
            return None
        late = fits[len(fits) // 2:] if self.rng.random() < 0.6 else fits
        return late[self.rng.integers(len(late))]

    # ---- running one ----

    def _choose_captured(self):
        """Variables that the traced function finds outside, as a layer its parameters: what follows from them alone is
        computed once."""
        updated = {n for s in self.steps for u in s.op["updates"] if (n := s.inputs[u[1]]) is not None}
        self.captured = {}
        if not self.training and not self.gradient:
            for i, (v, d) in enumerate(self.variables):
                if self.rng.random() < 0.4 and ("v", i) not in updated:
                    self.captured[i] = array(v, d if d == "bfloat16" else None)

    def arrays(self):
        made = [self.captured[i] if i in self.captured else array(v, d if d == "bfloat16" else None)
                for i, (v, d) in enumerate(self.variables)]
        if self.gradient:
            for i, (a, (_, d)) in enumerate(zip(made, self.variables)):
                if registry.is_float(d) and i % 4 != 3:
                    a.attach_grad()
        return made

    def body(self, variables):
        """The program on arrays: eager or traced."""
        results = []

        def value(n):
            return None if n is None else variables[n[1]] if n[0] == "v" else results[n[1]][n[2]]

        for s in self.steps:
            results.append(_core.call_operator(s.op["name"], [value(n) for n in s.inputs], s.attrs, training=self.training))
        return [value(n) for n in self.outputs]

    def run(self, function):
        """Results, gradients and variables after one run, as (dtype, shape, bytes)."""
        variables = self.arrays()
        mx.random.seed(self.seed)
        if not self.gradient:
            with autograd.train_mode() if self.training else autograd.predict_mode():
                out = function(variables)
            return [bits(o) for o in out] + [bits(v) for v in variables]
        with autograd.record(self.training):
            out = function(variables)
            watched = [v for v in variables if v.grad is not None]
            loss = sum((v.astype("float64").sum() * 0 for v in watched), mx.np.zeros((), dtype="float64"))
            for i, o in enumerate(o for o in out if registry.is_float(str(o.dtype))):
                loss = loss + (o.astype("float64") * (i % 3 + 0.5)).sum()
        got = [bits(o) for o in out]
        if watched:
            loss.backward()
        return got + [bits(v.grad) for v in watched]

    def compiled(self, without=()):
        trace = _core.Trace()
        with autograd.pause(self.training):
            with trace:
                inputs = [self.captured[i] if i in self.captured else trace.input(f"x{i}", a) for i, a in enumerate(self.arrays())]
                out = self.body(inputs)
            return trace.finish(out, tuple(without), ())

    def check(self, passes) -> str | None:
        """None, or what is wrong."""
        want = self.run(self.body)
        for without in ((), ("everything",), *((p,) for p in passes)):
            graph = self.compiled(without)
            got = self.run(lambda v, g=graph: g.call(*(a for i, a in enumerate(v) if i not in self.captured)))
            if got != want and not (self.loose() and close(got, want)):
                at = next((i for i, (g, w) in enumerate(zip(got, want)) if g != w), None)
                return f"seed {self.seed} without {without}: value {at} of {len(want)}: {describe(got, want, at)}"
        return None

    def loose(self):
        return any(s.op["name"] in LOOSE for s in self.steps)

    def __str__(self):
        lines = [f"x{i} = {d} {list(v.shape)}" for i, (v, d) in enumerate(self.variables)]
        for i, s in enumerate(self.steps):
            reads = ", ".join("-" if n is None else f"x{n[1]}" if n[0] == "v" else f"%{n[1]}.{n[2]}" for n in s.inputs)
            lines.append(f"%{i} = {s.op['name']}({reads}) {s.attrs}")
        mode = ("training" if self.training else "predicting") + (", gradients" if self.gradient else "")
        return "\n".join(lines) + f"\nreturn {self.outputs}   ({mode})"


def bits(a):
    """dtype, shape and elements as integers; every NaN is the same, and so are zeros of both signs only where equal."""
    dtype = str(a.dtype)
    values = a.astype("float32").asnumpy() if dtype == "bfloat16" else a.asnumpy()
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.nan, values).astype(values.dtype)
    return dtype, tuple(a.shape), values.tobytes()


def values_of(packed):
    dtype, shape, data = packed
    return np.frombuffer(data, "float32" if dtype == "bfloat16" else dtype).reshape(shape)


def close(got, want):
    """The same but for last bits."""
    for g, w in zip(got, want):
        if g == w:
            continue
        if g[:2] != w[:2] or not registry.is_float(g[0]):
            return False
        a, b = values_of(g).astype("float64"), values_of(w).astype("float64")
        scale = max(1.0, float(np.max(np.abs(np.where(np.isfinite(b), b, 0)), initial=0)))
        if not np.allclose(a, b, rtol=1000 * registry.EPSILON[g[0]], atol=100 * scale * registry.EPSILON[g[0]], equal_nan=True):
            return False
    return len(got) == len(want)


def describe(got, want, at):
    if at is None or isinstance(got[at], str) or isinstance(want[at], str):
        return f"{got} and {want}"[:300]
    if got[at][:2] != want[at][:2]:
        return f"{got[at][:2]} instead of {want[at][:2]}"
    kind = "float32" if want[at][0] == "bfloat16" else want[at][0]
    a, b = (np.frombuffer(x[at][2], kind) for x in (got, want))
    i = int(np.argmax([p.tobytes() != q.tobytes() for p, q in zip(a, b)]))
    return f"element {i} of {want[at][:2]}: {a[i]!r} instead of {b[i]!r}"


def optional_passes():
    return tuple(dict.fromkeys([name for name, _, needed in _core.passes() if not needed] + ["plan_memory"]))


def main(count: int, first: int) -> int:
    begin, failures, nodes = time.time(), 0, 0
    for seed in range(first, first + count):
        try:
            graph = RandomGraph(seed)
            nodes += len(graph.steps)
            wrong = graph.check(optional_passes())
        except Exception as error:  # noqa: BLE001
            wrong = f"seed {seed}: {type(error).__name__}: {error}"
        if wrong:
            failures += 1
            print(wrong, flush=True)
    print(f"{count} graphs, {nodes} calls, {failures} failures, {time.time() - begin:.0f} s")
    return failures


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0) > 0)
