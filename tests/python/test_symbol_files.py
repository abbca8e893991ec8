# SPDX-License-Identifier: Apache-2.0
"""Graph files of MXNet: those that MXNet 1.9.1 wrote (tools/make_symbol_fixtures.py) load, run and give its numbers;
what is written is read back, and says what MXNet reads; damaged ones are errors."""
import copy
import json
import pickle
import random

import numpy as np
import pytest
import symbol_fixtures
import twibil as mx
from symbol_fixtures import Fixture
from twibil import autograd, sym

# Batch norm over a handful of numbers enlarges rounding.
TOLERANCE = {"resnet50": 2e-3}
# MXNet's gradient of selu is not that of its selu, and out_grad multiplies by the output (docs/differences-from-mxnet.md).
WRONG_IN_MXNET = {"op_leaky", "op_softmax_out_grad"}


def bound(fixture, symbol, grad_req="null"):
    arrays = {k: mx.np.array(v, dtype="float32") for k, v in fixture.group("arg").items()}
    states = {k: mx.np.array(v, dtype="float32") for k, v in fixture.group("aux").items()}
    gradients = None
    if grad_req != "null":
        gradients = {k: mx.np.zeros(arrays[k].shape) for k in fixture.group("grad")}
    return symbol.bind(mx.cpu(), arrays, gradients, grad_req, states)


def assert_same(got, want, what, tolerance=1e-5):
    assert len(got) == len(want), what
    for k, (a, b) in enumerate(zip(got, want)):
        a, b = a.asnumpy().astype("float64"), b.astype("float64")
        assert a.size == b.size, f"{what} {k}: shape {a.shape}, MXNet has {b.shape}"
        scale = max(1.0, float(np.abs(b).max(initial=0)))
        np.testing.assert_allclose(a.reshape(b.shape) / scale, b / scale, atol=tolerance, rtol=0, err_msg=f"{what} {k}")


@pytest.mark.parametrize("name", symbol_fixtures.NAMES)
def test_mxnets_graphs_give_mxnets_numbers(name):
    fixture = Fixture(name)
    symbol = sym.load_json(fixture.json)
    assert set(symbol.list_arguments()) == set(fixture.group("arg"))
    assert set(symbol.list_auxiliary_states()) == set(fixture.group("aux"))
    want = list(fixture.group("out").values())
    assert_same(bound(fixture, symbol).forward(), want, "output")
    again = sym.load_json(symbol.tojson())
    assert again.list_outputs() == symbol.list_outputs() and again.list_inputs() == symbol.list_inputs()
    assert_same(bound(fixture, again).forward(), want, "output after saving")


@pytest.mark.parametrize("name", [n for n in symbol_fixtures.NAMES if Fixture(n).group("grad") and n not in WRONG_IN_MXNET])
def test_gradients_are_mxnets(name):
    fixture = Fixture(name)
    tolerance = TOLERANCE.get(name, 1e-5)
    executor = bound(fixture, sym.load_json(fixture.json), "write")
    outputs = executor.forward(is_train=True)
    assert_same(outputs, list(fixture.group("train").values()), "output in training", tolerance)
    executor.backward()
    want = fixture.group("grad")
    assert_same([executor.grad_dict[k] for k in want], list(want.values()), f"gradient of {list(want)}", tolerance)
    after = fixture.group("after")
    assert_same([executor.aux_dict[k] for k in after], list(after.values()), f"state {list(after)}", tolerance)


@pytest.mark.parametrize("name", [n for n in symbol_fixtures.NAMES if Fixture(n).style != "0.8"])
def test_saved_graphs_say_what_mxnet_said(name):
    """Node for node: the inputs, and every attribute that MXNet's file has."""
    theirs = json.loads(Fixture(name).json)
    ours = json.loads(sym.load_json(Fixture(name).json).tojson())
    by_name = {n["name"]: n for n in ours["nodes"]}
    assert len(by_name) == len(theirs["nodes"]) and len(ours["heads"]) == len(theirs["heads"])
    for node in theirs["nodes"]:
        mine = by_name[node["name"]]
        assert [ours["nodes"][e[0]]["name"] for e in mine["inputs"]] == [theirs["nodes"][e[0]]["name"] for e in node["inputs"]]
        for key, value in (node.get("attrs") or node.get("attr") or {}).items():
            if key.startswith("__"):
                assert mine["attrs"][key] == value or key in ("__shape__", "__dtype__"), (node["name"], key)
        assert (mine["op"] == "null") == (node["op"] == "null")


# ---- what our own graphs hold besides ----

def test_numbers_arrays_and_gradients_survive():
    x, y = sym.Variable("x", shape=(2, -1), dtype="float64", init="zeros", lr_mult=2), sym.Variable("y")
    kept = mx.np.array([[1.0, 2, 3]])
    z = sym.Group([(x * y + sym.Constant(3)) * sym.Constant(kept), x > 1, 2 - x])
    both = sym.Group([z, z[0].grad([x, y])])
    again = sym.load_json(both.tojson())
    assert again.tojson() == both.tojson()
    given = {"x": mx.np.array([[1.0, 2, 3], [4, 5, 6]], dtype="float64"), "y": mx.np.array([[2.0], [3]], dtype="float64")}
    for a, b in zip(both.eval(**given), again.eval(**given)):
        assert a.dtype == b.dtype and a.tolist() == b.tolist()
    found = again.attr_dict()["x"]
    assert found["__lr_mult__"] == "2" and found["__init__"] and found["__shape__"] == "(2, -1)"


def test_captured_arrays_survive():
    weight = mx.np.array([[1.0, 2], [3, 4]])
    f = mx.jit(lambda x: mx.np.matmul(x, weight) + 1)
    x = mx.np.array([[1.0, 1]])
    want = f(x)
    trace = mx._core.Trace()
    with trace:
        out = mx.np.matmul(trace.input("x", x), weight) + 1
    symbol = trace.finish([out], (), ()).symbol()
    again = sym.load_json(symbol.tojson())
    assert sym.compile(again)(x=x).tolist() == want.tolist()
    assert again.tojson() == symbol.tojson()


def test_files_copies_and_pickles(tmp_path):
    net = sym.FullyConnected(sym.Variable("data"), num_hidden=3, name="fc")
    net.save(tmp_path / "net-symbol.json")
    for other in (sym.load(str(tmp_path / "net-symbol.json")), copy.copy(net), copy.deepcopy(net), pickle.loads(pickle.dumps(net)),
                  sym.fromjson(net.tojson())):
        assert other.tojson() == net.tojson()


def test_long_chains():
    x = sym.Variable("x")
    for _ in range(10000):
        x = x + 1
    again = sym.load_json(x.tojson())
    assert len(again.get_internals().list_outputs()) == 10001
    assert float(again.eval(x=mx.np.zeros((1,)))[0][0]) == 10000


# ---- old files ----

def test_names_and_attributes_of_old_files():
    text = json.dumps({"nodes": [
        {"op": "null", "param": {}, "name": "data", "inputs": [], "backward_source_id": -1, "attr": {"lr_mult": "2"}},
        {"op": "null", "param": {}, "name": "bn_gamma", "inputs": [], "backward_source_id": -1},
        {"op": "null", "param": {}, "name": "bn_beta", "inputs": [], "backward_source_id": -1},
        {"op": "BatchNorm", "param": {"eps": "0.001", "fix_gamma": "False"}, "name": "bn", "inputs": [[0, 0], [1, 0], [2, 0]],
         "backward_source_id": -1, "attr": {"gamma_lr_mult": "0.5", "mood": "good"}},
        {"op": "argmax", "param": {"axis": "-1"}, "name": "most", "inputs": [[3, 0]], "backward_source_id": -1}],
        "arg_nodes": [0, 1, 2], "heads": [[4, 0]]})
    symbol = sym.load_json(text)
    assert symbol.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    attrs = symbol.attr_dict()
    assert attrs["data"]["__lr_mult__"] == "2" and attrs["bn_gamma"]["__lr_mult__"] == "0.5" and attrs["bn"]["mood"] == "good"
    assert symbol.infer_shape(data=(3, 2))[1] == [()]  # -1 once meant all elements


# ---- damaged files ----

GOOD = {"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "null", "name": "w", "inputs": []},
                  {"op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "2", "no_bias": "True"}, "inputs": [[0, 0, 0], [1, 0, 0]]}],
        "arg_nodes": [0, 1], "heads": [[2, 0, 0]]}


@pytest.mark.parametrize("change, message, error", [
    (lambda g: g["nodes"][2]["inputs"].__setitem__(0, [2, 0, 0]), r"node 2 \(fc\).*node 2, which does not stand before", ValueError),
    (lambda g: g["nodes"][2]["inputs"].__setitem__(0, [7, 0, 0]), "names node 7", ValueError),
    (lambda g: g["nodes"][2]["inputs"].__setitem__(0, [-1, 0, 0]), "names node -1", ValueError),
    (lambda g: g["nodes"][2]["inputs"].__setitem__(0, [0, 5, 0]), r"output 5 of node 0 \(x\), which has 1", ValueError),
    (lambda g: g["nodes"][2]["inputs"].__setitem__(0, "no"), "two or three integers", ValueError),
    (lambda g: g["nodes"][2].__setitem__("op", "FulyConnected"), "no operator FulyConnected.*FullyConnected", KeyError),
    (lambda g: g["nodes"][2]["attrs"].__setitem__("num_hidden", "many"), r"fc.*num_hidden must be an integer", ValueError),
    (lambda g: g["nodes"][2]["attrs"].__setitem__("num_hiden", "2"), "no attribute num_hiden.*num_hidden", ValueError),
    (lambda g: g["nodes"][2]["attrs"].__setitem__("num_hidden", 2), "must be a text", ValueError),
    (lambda g: g["nodes"][2]["inputs"].append([0, 0, 0]) or g["nodes"][2]["inputs"].append([0, 0, 0]), "at most 3 inputs", ValueError),
    (lambda g: g["nodes"][2]["inputs"].clear(), "takes 3 inputs; got 0", ValueError),
    (lambda g: g["nodes"][1].__setitem__("name", "x"), "two variables are called x", ValueError),
    (lambda g: g["nodes"][1].__setitem__("inputs", [[0, 0, 0]]), "variable must have no inputs", ValueError),
    (lambda g: g["nodes"][0].__setitem__("attrs", {"__shape__": "(-3,)"}), "negative size", ValueError),
    (lambda g: g["nodes"][0].__setitem__("attrs", {"__dtype__": "77"}), "no dtype with the number 77", ValueError),
    (lambda g: g["nodes"][0].__setitem__("attrs", {"__constant__": "AAAA"}), "0x112", ValueError),
    (lambda g: g["nodes"][0].pop("name"), "\"name\" must be a text", ValueError),
    (lambda g: g.__setitem__("heads", []), "at least one head", ValueError),
    (lambda g: g.pop("heads"), "\"heads\" must be a list", ValueError),
    (lambda g: g.__setitem__("nodes", {}), "\"nodes\" must be a list", ValueError),
    (lambda g: g.__setitem__("attrs", {"mxnet_version": "new"}), "type and a number", ValueError),
])
def test_damage_is_named(change, message, error):
    graph = copy.deepcopy(GOOD)
    sym.load_json(json.dumps(graph))
    change(graph)
    with pytest.raises(error, match=message):
        sym.load_json(json.dumps(graph))


@pytest.mark.parametrize("text, message", [
    ("", "byte 0: expected a value.*truncated"), ("[" * 100000, "nested more than 64"), ("{\"a\": 1", "expected '}'.*truncated"),
    ("{\"a\": 1, \"a\": 2}", "stands here twice"), ("{\"a\": 01}", "expected a value"), ("[1] x", "something follows"),
    ("[\"\\ud800\"]", "surrogate"), ("[\"\n\"]", "control character"), ("[9223372036854775808]", "no 64-bit integer"), ("[1.]", "no number"),
    ("[nan]", "expected a value"), ("3", "must be an object"),
])
def test_json_that_is_none(text, message):
    with pytest.raises(ValueError, match=message):
        sym.load_json(text)


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "bad-symbol.json"
    path.write_bytes(b'{"nodes": ["\xff\xfe"]}')
    with pytest.raises(ValueError, match=r"bad-symbol.json: byte \d+: a string is not UTF-8"):
        sym.load(path)
    with pytest.raises(OSError, match="missing.json"):
        sym.load(tmp_path / "missing.json")


def test_mutated_files_are_errors_or_graphs():
    """Random damage to every file: a graph or an error that says where, never anything else; graphs can be looked at."""
    rng = random.Random(3)
    errors = graphs = 0
    for name in symbol_fixtures.NAMES:
        good = Fixture(name).json.encode()
        if len(good) > 60000:
            continue
        for _ in range(40):
            bad = bytearray(good)
            for _ in range(rng.choice((1, 1, 2, 5))):
                at = rng.randrange(len(bad))
                kind = rng.random()
                if kind < 0.4:
                    bad[at] = rng.choice(b'0123456789-,.[]{}"\\nullTrue\x00\xff e')
                elif kind < 0.7:
                    del bad[at:at + rng.randrange(1, 9)]
                else:
                    start = rng.randrange(len(bad))
                    bad[at:at] = bad[start:start + rng.randrange(1, 40)]
            try:
                symbol = sym.load_json(bytes(bad))
            except (ValueError, KeyError, TypeError, OverflowError, MemoryError) as error:
                errors += 1
                assert str(error)
                continue
            graphs += 1
            sym.load_json(symbol.tojson())
            try:
                symbol.infer_shape_partial(data=(2, 3, 4))
            except (ValueError, TypeError, IndexError, KeyError, OverflowError, MemoryError, RuntimeError):
                pass
    assert errors > 1000 and graphs > 100, (errors, graphs)


def test_recording_is_left_as_it_was():
    executor = (sym.Variable("x") * 2).simple_bind(x=(2,))
    executor.forward(is_train=True)
    assert not autograd.is_recording() and not autograd.is_training()
