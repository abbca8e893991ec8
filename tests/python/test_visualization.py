# SPDX-License-Identifier: Apache-2.0
"""`mx.visualization` and `Block.summary`."""
import re
import xml.etree.ElementTree as ElementTree

import pytest

import twibil as mx
from twibil import nd, np
from twibil.gluon import nn

SHAPES = {"data": (1, 3, 8, 8), "conv1_weight": (8, 3, 3, 3), "conv1_bias": (8,), "bn1_gamma": (8,), "bn1_beta": (8,),
          "bn1_running_mean": (8,), "bn1_running_var": (8,), "fc1_weight": (10, 128), "fc1_bias": (10,),
          "fc2_weight": (10, 10)}


def network():
    data = mx.sym.Variable("data")
    x = nd.Convolution(data, kernel=(3, 3), num_filter=8, pad=(1, 1), name="conv1")
    x = nd.BatchNorm(x, name="bn1")
    x = nd.Activation(x[0], act_type="relu", name="relu1")
    x = nd.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool1")
    one = nd.FullyConnected(x, num_hidden=10, name="fc1")
    return nd.FullyConnected(one, num_hidden=10, name="fc2", no_bias=True) + one


def given(symbol):
    return {k: v for k, v in SHAPES.items() if k in symbol.list_inputs()}


def test_print_summary_has_mxnets_rows_and_total(capsys):
    """MXNet 1.9.1 prints these rows, shapes and numbers for this network, and 1630 parameters in all."""
    symbol = network()
    mx.viz.print_summary(symbol, shape=given(symbol))
    text = capsys.readouterr().out
    rows = re.findall(r"^(\w+)\(\w+\) +([\dx]+) +(\d+) +(\w*) *$", text, re.M)
    assert rows[:7] == [("data", "3x8x8", "0", ""), ("conv1", "8x8x8", "224", "data"), ("bn1", "8x8x8", "16", "conv1"),
                        ("relu1", "8x8x8", "0", "bn1"), ("pool1", "8x4x4", "0", "relu1"),
                        ("fc1", "10", "1290", "pool1"), ("fc2", "10", "100", "fc1")]
    assert rows[7][1:] == ("10", "0", "fc2")
    assert re.search(r"\n +fc1 *\n", text) and "Total params: 1630\n" in text
    lines = text.splitlines()
    assert {len(line) for line in lines if set(line) <= {"_", "="}} == {120}


def test_print_summary_without_shapes_and_with_other_columns(capsys):
    mx.visualization.print_summary(network(), line_length=80, positions=[30, 50, 60, 80])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].index("Output Shape") == 30 and max(map(len, lines)) == 80


@pytest.mark.parametrize("arguments, error, match", [
    ((3,), TypeError, "symbol must be a Symbol; got int"),
    (({"dat": (1, 3)},), ValueError, "no variable 'dat'.*'data'"),
    ((5,), TypeError, "must be a dict"),
])
def test_wrong_arguments_are_named(arguments, error, match):
    call = (lambda f: f(*arguments)) if arguments == (3,) else (lambda f: f(network(), shape=arguments[0]))
    for f in (mx.viz.print_summary, mx.viz.plot_network):
        with pytest.raises(error, match=match):
            call(f)


def test_positions_must_grow():
    with pytest.raises(ValueError, match="must grow"):
        mx.viz.print_summary(network(), positions=[.5, .4, .7, 1.])
    with pytest.raises(ValueError, match="4 numbers"):
        mx.viz.print_summary(network(), positions=[.5])


def test_plot_network_draws_svg(tmp_path):
    symbol = network()
    plot = mx.viz.plot_network(symbol, title='a "plot"', shape=given(symbol), save_format="svg")
    tree = ElementTree.fromstring(plot._repr_svg_())
    texts = [t.text for t in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert {"conv1", "kernel=(3, 3)", "1×8×4×4", "fc2"} <= set(texts) and "conv1_weight" not in texts
    titles = [t.text for t in tree.iter("{http://www.w3.org/2000/svg}title")]
    assert "float32 1×8×8×8" in titles
    path = plot.render(str(tmp_path / "net"), cleanup=True)
    assert path.endswith("net.svg") and ElementTree.parse(path)
    assert 'digraph "a \\"plot\\""' in plot.source and 'label="conv1\\nconvolution' in plot.source
    assert open(plot.save("net.gv", tmp_path), encoding="utf-8").read() == plot.source
    whole = mx.viz.plot_network(symbol, hide_weights=False, node_attrs={"shape": "oval"})
    assert "conv1_weight" in whole._repr_svg_() and '"shape"="oval"' in whole.source


def test_plot_network_without_graphviz_writes_svg(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.warns(UserWarning, match="pdf needs Graphviz"):
        path = mx.viz.plot_network(network()).render(str(tmp_path / "net"))
    assert path.endswith(".svg")


def test_summary_counts_work_and_bytes(capsys):
    """Totals of parameters are those of MXNet 1.9.1 for this network: 853, 845 and 8."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3), nn.BatchNorm(), nn.Dense(5))
    net.initialize()
    for hybridized in (False, True):
        net.hybridize(hybridized)
        net.summary(np.ones((2, 3, 8, 8)))
        text = capsys.readouterr().out
        assert "Total params: 853" in text and "Trainable params: 845" in text and "Non-trainable params: 8" in text
        work = 2 * 4 * 6 * 6 * 27 + 2 * 5 * 144
        assert f"Multiply-adds: {work}\n" in text
        row = next(line for line in text.splitlines() if "Conv2D-1" in line)
        assert "(2, 4, 6, 6)" in row and " 112 " in row and "7.78 k" in row and "1.12 KiB" in row
        kept = 2 * (2 * 4 * 6 * 6 * 4) + 2 * 5 * 4
        assert f"Activation bytes: {kept / 1024:.2f} KiB in layers' results, " in text
    assert not net._forward_hooks and not net[0]._forward_hooks


def test_summary_of_shared_and_strange_blocks(capsys):
    class Twice(nn.Block):
        def __init__(self):
            super().__init__()
            self.a = self.b = nn.Dense(4, in_units=4)

        def forward(self, x, more):
            if float(x.sum()) > 0:  # no graph can be made of this
                x = self.a(x)
            return {"y": self.b(x), "n": [more[0] + 1]}

    net = Twice()
    net.initialize()
    net.summary(np.ones((2, 4)), [np.ones(3)])
    text = capsys.readouterr().out
    assert text.count("Dense-") == 2 and "Shared params in forward computation graph: 20" in text
    assert "Unique parameters in model: 20" in text
    assert re.search(r"Twice-3 .*\{y: \(2, 4\), n: \[\(3,\)\]\}.*\?", text)


def test_summary_needs_inputs():
    with pytest.raises(TypeError, match="Dense.summary: the inputs of the network are needed"):
        nn.Dense(3).summary()
