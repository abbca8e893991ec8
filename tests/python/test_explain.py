# SPDX-License-Identifier: Apache-2.0
"""`explain()`: the text, the page with its pictures, and the data behind both."""
import random
import xml.etree.ElementTree as ElementTree

import numpy as onp
import pytest

import twibil as mx
from twibil import _core, autograd, np, npx
from twibil.explain import explain
from twibil.explain.charts import rectangles
from twibil.explain.layout import place
from twibil.gluon import nn
from twibil.sym import Constant, Variable, compile

SVG = "{http://www.w3.org/2000/svg}"


def toy(**options):
    A, B = Variable("A"), Variable("B")
    f = compile(B * A + Constant(1), **options)
    f(A=np.ones(10, dtype="float64"), B=np.ones(10, dtype="float64") * 2)
    return f


def trained():
    """A small network with its gradients, called once."""
    x, w, b, v = (Variable(n) for n in ("x", "w", "b", "v"))
    h = npx.relu(npx.fully_connected(x, w, b, num_hidden=16))
    y = npx.log_softmax(npx.fully_connected(h, v, num_hidden=4, no_bias=True))
    f = compile(np.exp(-y) * np.exp(-y) / (1 + np.exp(-y)))
    arrays = {"x": np.ones((8, 12)), "w": np.ones((16, 12)), "b": np.ones(16), "v": np.ones((4, 16))}
    for a in arrays.values():
        a.attach_grad()
    with autograd.record():
        f(**arrays)
    return f


def traced(function, *arrays):
    """A compiled graph of a function on arrays, as jit makes it."""
    trace = _core.Trace()
    with trace:
        y = function(*(trace.input(f"x{i}", a) for i, a in enumerate(arrays)))
        compiled = trace.finish([y], (), ())
    compiled.call(*arrays)
    return compiled


def parse(page: str):
    assert page.startswith("<!DOCTYPE html>")
    return ElementTree.fromstring(page.split("\n", 1)[1])


def test_text_of_the_toy_program():
    e = toy().explain()
    text = str(e)
    for part in ("compiled function of", "A: float64 (10,)", "240 bytes planned", "remove_dead", "plan_memory",
                 "inputs 160 bytes, results 80 bytes", "planned / lower bound = 1.000", "320 bytes with every value kept",
                 "saved        80 bytes, 25 % of eager", "test_explain.py:"):
        assert part in text, part
    assert e.planned_bytes == 240 and e.eager_bytes == 320
    donated = toy(donate=["B"]).explain()
    assert donated.planned_bytes == 160 and "saved        160 bytes, 50 %" in str(donated)
    assert "over B" in str(donated)


def test_explaining_is_no_call():
    f = toy()
    before = f._compiled.compilations
    f.explain()
    f.explain()
    assert f._compiled.compilations == before


def test_shapes_can_be_given_before_a_call():
    A, B = Variable("A"), Variable("B")
    f = compile(A * B + 1)
    with pytest.raises(ValueError, match="call the function first, or give them"):
        f.explain()
    assert f._repr_html_() is None
    e = f.explain(shapes={"A": (4, 5), "B": np.ones(5, dtype="float64")}, gradients=["A"])
    assert "A: float32 (4, 5)" in str(e) and "B: float64 (5,)" in str(e) and "1 gradients" in str(e)
    with pytest.raises(ValueError, match="'C', which is no argument"):
        f.explain(shapes={"C": (2,)})
    with pytest.raises(ValueError, match="'C', which is no argument"):
        f.explain(shapes={"A": (2,), "B": (2,)}, gradients=["C"])
    with pytest.raises(TypeError, match="must be a dict"):
        f.explain(shapes=[(2,)])


def test_graphs_whose_shapes_depend_on_values_say_so():
    f = compile(_core.operators()["unique"](Variable("x"))[0] * 2)
    assert f(x=np.array([1.0, 2.0, 1.0])).shape == (2,)
    with pytest.raises(ValueError, match="depend on the values of arrays, so it has no plan"):
        f.explain(shapes={"x": (3,)})
    assert f._repr_html_() is None


@pytest.mark.parametrize("make", [toy, trained], ids=["toy", "trained"])
def test_page_is_well_formed_and_shows_every_node(make, tmp_path):
    f = make()
    path = tmp_path / "page.html"
    e = f.explain(html=path)
    page = path.read_text(encoding="utf-8")
    tree = parse(page)
    assert page.count("http") == page.count("http://www.w3.org/2000/svg")  # nothing from the network
    assert "<script" not in page
    keys = {g.get("id") for g in tree.iter(SVG + "g")} - {None}
    for prefix, graph in (("b", e.before), ("n", e.after)):
        for i, n in enumerate(graph.nodes):
            unused = n["kind"] in ("shape", "constant") and not graph.readers[i]
            assert unused or f"{prefix}{i}" in keys, (prefix, i, n["op"])
    assert len({g.get("id") for g in tree.iter(SVG + "g")}) > e.num_kernels
    for step in e.steps:
        assert f"%{step.node} {step.info['op']}" in page


def test_large_graphs_show_every_kernel_and_long_edges_as_notes():
    x, w = Variable("x"), [Variable(f"w{i}") for i in range(30)]
    y = x
    for v in w:
        y = npx.relu(npx.fully_connected(y, v, num_hidden=8, no_bias=True))
    f = compile(y + x)
    arrays = [np.ones((4, 8))] + [np.ones((8, 8))] * 30
    e = f.explain(shapes=dict(zip(["x"] + [v.name for v in w], arrays)), gradients=True)
    tree = parse(e.html())
    keys = {g.get("id") for g in tree.iter(SVG + "g")}
    assert all(f"n{s.node}" in keys for s in e.steps)
    texts = "".join(t.text or "" for t in tree.iter(SVG + "text"))
    assert "w29 8×8" in texts and "gradient of w29" in texts and "↓ to" in texts and "↑ from" in texts
    targets = {a.get("href")[1:] for a in tree.iter(SVG + "a")} | {a.get("href")[1:] for a in tree.iter("a")}
    assert targets <= keys


def test_buffers_do_not_overlap():
    e = trained().explain()
    buffers = rectangles(e)
    assert len(buffers) > 3
    for i, (begin, end, offset, size, _) in enumerate(buffers):
        assert begin < end and offset + size <= e.data["arena_bytes"]
        for b, n, o, s, _ in buffers[:i]:
            together = begin < n and b < end
            assert not together or offset + size <= o or o + s <= offset


def test_hostile_names_are_escaped():
    name = "</title><script>alert('\x07&\"')</script>"
    f = compile(Variable(name) * 2)
    f(np.ones(3))
    e = f.explain()
    page = e.html()
    tree = parse(page)
    assert not [t for t in tree.iter() if t.tag.endswith("script")]
    assert "\x07" not in page and "\x07" not in str(e) and "alert(" in page
    assert "&lt;script&gt;" in page


def test_measuring_times_every_kernel_and_changes_nothing():
    state = np.zeros(4)

    def update(x):
        y = x * 2
        state[:] = x
        return y

    compiled = traced(update, np.ones(4))
    onp.testing.assert_array_equal(state.asnumpy(), 1)
    e = explain(compiled, measure=True, seconds=0.01)
    assert all(s.measured >= 0 for s in e.steps) and "measured" in str(e)
    explain(compiled, measure=[np.full(4, 9.0)], seconds=0.0)
    onp.testing.assert_array_equal(state.asnumpy(), 1)
    with pytest.raises(ValueError, match=r"input x0 must be .*\[4\] to measure"):
        explain(compiled, measure=[np.ones(5)])
    with pytest.raises(TypeError, match="got 3"):
        explain(compiled, measure=[np.ones(4)] * 3)


def test_measuring_a_graph_with_gradients():
    e = trained().explain(measure=True)
    assert len([s for s in e.steps if s.backward]) > 3 and all(s.measured is not None for s in e.steps)
    assert "gradient of w" in str(e)


def test_signatures_that_do_not_fit_are_refused():
    compiled = toy()._compiled
    for bad in (3, ([], False), ([((10,), "float64")], False, []), ([((-1,), "float64")] * 2, False, [])):
        with pytest.raises((TypeError, ValueError)):
            compiled.describe(bad)


@pytest.mark.parametrize("shape, weight, attributes, algorithm", [
    ((2, 16, 28, 28), (16, 16, 3, 3), {"pad": (1, 1)}, "Winograd"),
    ((2, 16, 28, 28), (16, 16, 1, 1), {}, "direct, 1x1"),
    ((2, 16, 28, 28), (16, 16, 5, 5), {}, "direct"),
    ((2, 16, 28, 28), (16, 1, 3, 3), {"num_group": 16}, "depthwise"),
])
def test_convolutions_tell_their_algorithm(shape, weight, attributes, algorithm):
    call = lambda x, w: npx.convolution(x, w, kernel=weight[2:], num_filter=16, no_bias=True, **attributes)
    e = explain(traced(call, np.ones(shape), np.ones(weight)))
    step = next(s for s in e.steps if s.info["heavy"])
    assert step.algorithm.startswith(algorithm)
    out = step.info["outputs"][0][0]
    assert step.operations == 2 * onp.prod(out) * onp.prod(weight[1:])


def test_products_tell_their_algorithm():
    cases = [((200, 200), (200, 200), "register tiles"), ((2, 200), (200, 200), "register tiles, B once"),
             ((200, 512), (512, 1), "sums along the rows of A, once")]
    for left, right, algorithm in cases:
        e = explain(traced(np.dot, np.ones(left), np.ones(right)))
        assert [s.algorithm for s in e.steps if s.info["heavy"]] == [algorithm]


@pytest.mark.parametrize("function", [
    lambda x: (x + 1) * (x - 2) - (x - (x - 3)), lambda x: -x / (2 - x / 3) - 1, np.tanh, npx.sigmoid, npx.relu,
    lambda x: np.where(x > 0, x, -x) * 2, lambda x: np.maximum(x, 0.5) ** 2, np.square, lambda x: np.exp(x) - np.exp(-x),
], ids=range(9))
def test_formulas_say_what_is_computed(function):
    """Each kernel's formula, read as Python, gives the kernel's result."""
    x = onp.linspace(-1.5, 1.5, 7)
    e = explain(traced(function, np.array(x, dtype="float64")))
    names = {"exp": onp.exp, "tanh": onp.tanh, "max": onp.maximum, "min": onp.minimum, "power": onp.power,
             "sigmoid": lambda v: 1 / (1 + onp.exp(-v)), "abs": onp.abs, "sqrt": onp.sqrt,
             "fma": lambda a, b, c: a * b + c, "from_mask": lambda m: m * 1.0}
    values = {i: x if n["kind"] == "argument" else n["value"].item() for i, n in enumerate(e.after.nodes)
              if n["kind"] == "argument" or n["kind"] == "constant"}
    for s in e.steps:
        text = e.after.formula(s.node)
        assert text, s.info["op"]
        known = {"x0": x, **names, **{f"v{i}": v for i, v in values.items()}}
        *before, last = text.replace("%", "v").split("; ")
        run = lambda part: onp.array([eval(part, {k: v[i] if isinstance(v, onp.ndarray) else v for k, v in known.items()})
                                      for i in range(len(x))])
        for part in before:
            name, formula = part.split(" = ", 1)
            known[name] = run(formula)
        values[s.node] = run(last)
    expect = function(np.array(x, dtype="float64")).asnumpy()
    onp.testing.assert_allclose(values[e.after.outputs[0][0]], expect, rtol=1e-6)


def test_layout_keeps_boxes_apart_and_edges_downwards():
    rng = random.Random(5)
    for nodes in (1, 2, 15, 80, 150):
        sizes = [(rng.uniform(20, 200), rng.uniform(15, 90)) for _ in range(nodes)]
        edges = sorted({(rng.randrange(max(0, b - 12), b), b) for b in range(1, nodes) for _ in range(2)})
        layout = place(sizes, edges, 10, [i for i in range(nodes) if i > 0.7 * nodes])
        boxes = [(x - w / 2, y - h / 2, x + w / 2, y + h / 2) for (w, h), x, y in zip(sizes, layout.x, layout.y)]
        for i, (l, t, r, b) in enumerate(boxes):
            assert l > -1e-6 and r < layout.width + 1e-6 and t > -1e-6 and b < layout.height + 1e-6
            assert all(r <= p[0] or p[2] <= l or b <= p[1] or p[3] <= t for p in boxes[:i])
        assert len(layout.paths) + len(layout.cut) == len(edges)
        for a, b, points in layout.paths:
            assert layout.y[a] < layout.y[b]
            assert all(p[1] <= q[1] for p, q in zip(points, points[1:]))


def test_compiled_functions_show_themselves():
    f = toy()
    assert repr(f).startswith("<CompiledFunction (B, A) -> ") and repr(f).endswith("compiled for 1 signature>")
    shown = f._repr_html_()
    assert "Buffers over time" in shown and "<svg" in shown
    ElementTree.fromstring(shown)


def test_blocks_and_jit_functions_explain_themselves(tmp_path):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3), nn.BatchNorm(), nn.Dense(5))
    net.initialize()
    x = np.ones((2, 3, 8, 8))
    with pytest.raises(RuntimeError, match="HybridSequential: it has no graph yet"):
        net.explain()
    assert net._repr_html_() is None
    text = str(net.explain(x, html=tmp_path / "net.html"))  # neither initialized wholly nor hybridized
    assert "0.weight: float32 (4, 3, 3, 3)" in text and "prediction" in text
    parse((tmp_path / "net.html").read_text(encoding="utf-8"))
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3), nn.BatchNorm(), nn.Dense(5))
    net.initialize()
    net.hybridize()
    net(x)  # runs eagerly, as shapes of parameters are not known before
    assert "data: float32 (2, 3, 8, 8)" in str(net.explain(measure=True))
    with autograd.record():
        net(x)
    e = net.explain(measure=True)
    assert "training, 6 gradients" in str(e) and "gradient of 2.weight" in str(e) and e.is_measured
    shown = net._repr_html_()
    assert shown.startswith("<pre>HybridSequential(") and "<svg" in shown and "-&gt;" in shown

    f = mx.jit(lambda a, b: a * b + 1)
    with pytest.raises(RuntimeError, match="was not called yet"):
        f.explain()
    assert f._repr_html_() is None
    assert "float32 (7,)" in str(f.lower(np.ones(7), np.ones(7)).explain())
    f(np.ones(4), np.ones(4))
    assert "a: float32 (4,)" in str(f.explain()) and "traced for 2 kinds" in repr(f)


def test_reading_another_array_while_explaining_keeps_running_statistics():
    net = nn.BatchNorm(in_channels=2)
    net.initialize()
    net.hybridize()
    with autograd.record():
        net(np.arange(12).reshape(3, 2, 2))
    before = net.running_mean.data().asnumpy()
    net.explain(measure=True)
    onp.testing.assert_array_equal(net.running_mean.data().asnumpy(), before)


def test_strange_graphs_have_pages():
    x = Variable("x")
    same, constant = compile([x, x, x + 0]), compile(Constant(np.ones(3)) * 2)
    same(np.ones((0, 3)))
    constant()

    @mx.jit
    def draws(a):
        return {"s": npx.dropout(a, p=0.5), "t": a.sum()}

    with autograd.record():
        draws(np.ones((4, 4)))
    for f in (same, constant, draws):
        e = f.explain(measure=True)
        parse(e.html())
        assert e.title in str(e)
    nothing = mx.jit(lambda a: 3)
    nothing(np.ones(3))
    with pytest.raises(ValueError, match="returns no array, so it has no graph"):
        nothing.explain()


def test_predictions_are_the_slower_of_arithmetic_and_memory():
    from twibil.explain.machine import Machine, machine
    m = Machine(flops=100e9, pointwise=10e9, bandwidth=((1 << 16, 100e9), (1 << 20, 50e9)), start=1e-7)
    assert m.predict(0, 1000, False) == pytest.approx(1e-8 + 1e-7)
    assert m.predict(1e9, 1000, True) == pytest.approx(0.01 + 1e-7)
    assert m.predict(1e9, 1000, False) == pytest.approx(0.1 + 1e-7)
    assert m.bandwidth_for(1 << 18) == pytest.approx(75e9) and m.bandwidth_for(1 << 30) == 50e9
    here = machine()
    assert here is machine() and here.flops > 1e8 and here.start < 1e-3 and len(here.bandwidth) == 6
