# SPDX-License-Identifier: Apache-2.0
"""Reading ONNX models: the interface, what is refused and how, hostile files. Models are written byte by byte here; what
operators compute is compared with others in test_onnx_models.py."""
import os
import subprocess
import sys

import numpy as np
import pytest

import onnx_bytes as ob
import twibil as mx
from twibil import autograd

rng = np.random.default_rng(7)


def array(*shape):
    return rng.standard_normal(shape).astype("float32")


def small_network(batch="N"):
    """conv - batch norm - relu - mean - reshape by arithmetic on shapes - dense - softmax"""
    weights = {"w": array(4, 3, 3, 3), "scale": array(4), "bias": array(4), "mean": array(4), "var": abs(array(4)) + 0.5,
               "fc": array(5, 4), "fb": array(5)}
    nodes = [
        ob.node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        ob.node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["b"], name="bn", epsilon=1e-4),
        ob.node("Relu", ["b"], ["r"]),
        ob.node("GlobalAveragePool", ["r"], ["p"]),
        ob.node("Shape", ["p"], ["s"]),
        ob.node("Gather", ["s", "zero"], ["n"], axis=0),
        ob.node("Unsqueeze", ["n", "axes"], ["n1"]),
        ob.node("Concat", ["n1", "minus"], ["to"], axis=0),
        ob.node("Reshape", ["p", "to"], ["f"]),
        ob.node("Gemm", ["f", "fc", "fb"], ["g"], transB=1),
        ob.node("Softmax", ["g"], ["y"], axis=-1),
    ]
    whole = {"zero": np.array(0), "axes": np.array([0]), "minus": np.array([-1])}
    g = ob.graph(nodes, [ob.value("x", [batch, 3, 8, 8])], [ob.value("y", [batch, 5])],
                 [ob.tensor(k, v) for k, v in {**weights, **whole}.items()])
    return ob.model(g, metadata=[("author", "a test")]), weights


def reference(x, p):
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    y = np.einsum("nchwij,ocij->nohw", windows, p["w"])
    per = lambda v: v.reshape(1, -1, 1, 1)  # noqa: E731
    y = (y - per(p["mean"])) / np.sqrt(per(p["var"]) + 1e-4) * per(p["scale"]) + per(p["bias"])
    y = np.maximum(y, 0).mean(axis=(2, 3)) @ p["fc"].T + p["fb"]
    e = np.exp(y - y.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_load_runs_for_any_batch_and_from_a_file(tmp_path):
    data, p = small_network()
    (tmp_path / "net.onnx").write_bytes(data)
    for net in (mx.onnx.load(data), mx.onnx.load(tmp_path / "net.onnx"), mx.onnx.import_to_gluon(str(tmp_path / "net.onnx"))):
        for n in (1, 3):
            x = array(n, 3, 8, 8)
            np.testing.assert_allclose(net(mx.np.array(x)).asnumpy(), reference(x, p), rtol=2e-5, atol=1e-6)
        np.testing.assert_allclose(net(x=mx.np.array(x)).asnumpy(), reference(x, p), rtol=2e-5, atol=1e-6)
    assert net.input_names == ["x"] and net.output_names == ["y"]
    with pytest.raises(TypeError, match="got .y."):
        net(y=mx.np.array(x))
    with pytest.raises(TypeError, match=r"takes 1 inputs \(x\); got 2"):
        net(mx.np.array(x), mx.np.array(x))


def test_import_model_gives_mxnets_triple():
    data, p = small_network()
    symbol, args, aux = mx.onnx.import_model(data)
    assert symbol.list_auxiliary_states() == ["mean", "var"] and sorted(aux) == ["mean", "var"]
    assert sorted(args) == ["bias", "fb", "fc", "scale", "w"]
    assert set(symbol.list_arguments()) == {"x", *args}
    x = array(2, 3, 8, 8)
    out = symbol.bind(mx.cpu(), {"x": mx.nd.array(x), **args}, aux_states=aux).forward(is_train=False)[0]
    np.testing.assert_allclose(out.asnumpy(), reference(x, p), rtol=2e-5, atol=1e-6)
    assert mx.contrib.onnx.import_model is mx.onnx.import_model
    _, shapes, _ = symbol.infer_shape(x=(2, 3, 8, 8))
    assert shapes == [(2, 5)]


def test_metadata():
    data, _ = small_network()
    about = mx.onnx.get_model_metadata(data)
    assert about["input_tensor_data"] == [("x", (0, 3, 8, 8))] and about["output_tensor_data"] == [("y", (0, 5))]
    assert about["opsets"] == {"": 13} and about["producer"] == "a test" and about["metadata"] == {"author": "a test"}
    assert about["inputs"] == [("x", "float32", ("N", 3, 8, 8))]


def test_an_imported_network_trains():
    data, p = small_network()
    net = mx.onnx.load(data)
    for q in net.collect_params().values():
        q.grad_req = "write" if q.name not in ("mean", "var") else "null"
    x = mx.np.array(array(4, 3, 8, 8))
    with autograd.record():
        loss = mx.np.log(net(x)[:, 0]).sum()
    loss.backward()
    w = net.collect_params()["fc"]
    g, eps = w.grad().asnumpy(), 1e-2
    with autograd.train_mode():
        value = lambda: float(mx.np.log(net(x)[:, 0]).sum())  # noqa: E731
        base = w.data().asnumpy()
        for at in ((0, 1), (3, 2)):
            moved = base.copy()
            moved[at] += eps
            w.set_data(mx.np.array(moved))
            up = value()
            moved[at] -= 2 * eps
            w.set_data(mx.np.array(moved))
            assert abs((up - value()) / (2 * eps) - g[at]) < 2e-2 * max(1, abs(g[at]))
            w.set_data(mx.np.array(base))


def test_inside_a_hybridized_block_sizes_stay_known():
    data, p = small_network()

    class Twice(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.net = mx.onnx.load(data)

        def forward(self, x):
            return self.net(x * 2) + 1

    block = Twice()
    block.hybridize()
    x = array(2, 3, 8, 8)
    for _ in range(2):
        np.testing.assert_allclose(block(mx.np.array(x)).asnumpy(), reference(2 * x, p) + 1, rtol=2e-5, atol=1e-6)


def branch(name, op):
    return ob.graph([ob.node(op, ["x", "w"], [name])], [], [ob.value(name)])


def test_branches_take_the_side_that_the_data_say():
    g = ob.graph([ob.node("ReduceSum", ["x"], ["s"], keepdims=0), ob.node("Greater", ["s", "zero"], ["positive"]),
                  ob.node("If", ["positive"], ["y"], then_branch=branch("a", "Add"), else_branch=branch("b", "Mul"))],
                 [ob.value("x", ["N"])], [ob.value("y", ["N"])],
                 [ob.tensor("w", array(1) * 0 + 3), ob.tensor("zero", np.float32(0))])
    net = mx.onnx.load(ob.model(g))
    for x in (np.array([1, 2], "float32"), np.array([-1, -2, -3], "float32"), np.array([4], "float32")):
        np.testing.assert_array_equal(net(mx.np.array(x)).asnumpy(), x + 3 if x.sum() > 0 else x * 3)


def test_loops_and_functions():
    body = ob.graph([ob.node("Identity", ["go"], ["go1"]), ob.node("Mul", ["s", "x"], ["s1"]),
                     ob.node("Add", ["s1", "x"], ["step"])],
                    [ob.value("i", [], "int64"), ob.value("go", [], "bool"), ob.value("s")],
                    [ob.value("go1", [], "bool"), ob.value("s1"), ob.value("step")])
    double = ob.function("Twice", "test", ["a"], ["b"], [ob.node("Add", ["a", "a"], ["b"])])
    g = ob.graph([ob.node("Loop", ["three", "", "x"], ["last", "steps"], body=body),
                  ob.node("Twice", ["last"], ["y"], domain="test")],
                 [ob.value("x", ["N"])], [ob.value("y"), ob.value("steps")], [ob.tensor("three", np.array(3))])
    net = mx.onnx.load(ob.model(g, functions=[double], more_opsets=[("test", 1)]))
    x = np.array([1.5, 2], "float32")
    y, steps = net(mx.np.array(x))
    np.testing.assert_allclose(y.asnumpy(), 2 * x**4, rtol=1e-6)
    np.testing.assert_allclose(steps.asnumpy(), [x**2 + x, x**3 + x, x**4 + x], rtol=1e-6)


def test_graphs_inside_functions_read_the_attributes_of_the_call():
    """Also where the node that reads them stands in a branch; outside of functions there is nothing to read."""
    alpha = ob.block(5, ob.block(1, "alpha") + ob.block(21, "slope") + ob.number(20, 1))
    branches = [ob.graph([ob.node("LeakyRelu", ["x"], [n]) + alpha], [], [ob.value(n)]) for n in ("p", "q")]
    leaky = ob.function("Leaky", "test", ["x", "c"], ["y"],
                        [ob.node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])])
    g = ob.graph([ob.node("Leaky", ["x", "c"], ["y"], domain="test", slope=0.25)], [ob.value("x", [2])],
                 [ob.value("y")], [ob.tensor("c", np.array(True))])
    net = mx.onnx.load(ob.model(g, functions=[leaky], more_opsets=[("test", 1)]))
    np.testing.assert_array_equal(net(mx.np.array([-1.0, 2.0])).asnumpy(), [-0.25, 2])
    g = ob.graph([ob.node("LeakyRelu", ["x"], ["y"]) + alpha], [ob.value("x", [2])], [ob.value("y")])
    with pytest.raises(ValueError, match="'alpha' stands for attribute 'slope'.*in no function"):
        mx.onnx.load(ob.model(g))


def chain_of_functions(length, calls):
    """Each calls the next one so many times."""
    functions = []
    for i in range(length):
        names = ["x"] + [f"t{k}" for k in range(1, calls)] + ["y"]
        op, domain = ("Neg", "") if i == length - 1 else (f"f{i + 1}", "test")
        nodes = [ob.node(op, [a], [b], domain=domain) for a, b in zip(names, names[1:])]
        functions.append(ob.function(f"f{i}", "test", ["x"], ["y"], nodes))
    g = ob.graph([ob.node("f0", ["x"], ["y"], domain="test")], [ob.value("x", [2])], [ob.value("y")])
    return ob.model(g, functions=functions, more_opsets=[("test", 1)])


def test_functions_that_call_each_other_too_often_are_refused():
    with pytest.raises(ValueError, match="more than 262144 nodes"):
        mx.onnx.load(chain_of_functions(7, 16))
    with pytest.raises(ValueError, match="more than 32 deep"):
        mx.onnx.load(chain_of_functions(100_000, 1))


def test_the_largest_number_of_boxes_is_no_limit():
    """PyTorch's exporter writes it where all boxes are wanted."""
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 1.01, 1], [5, 5, 6, 6]]], "float32")
    scores = np.array([[[0.9, 0.8, 0.7]]], "float32")
    for most, rows in ((np.iinfo("int64").max, [[0, 0, 0], [0, 0, 2]]), (1, [[0, 0, 0]]), (0, [])):
        g = ob.graph([ob.node("NonMaxSuppression", ["b", "s", "most", "limit"], ["y"])],
                     [ob.value("b", [1, 3, 4]), ob.value("s", [1, 1, 3])], [ob.value("y", dtype="int64")],
                     [ob.tensor("most", np.array([most])), ob.tensor("limit", np.array([0.5], "float32"))])
        y = mx.onnx.load(ob.model(g))(mx.np.array(boxes), mx.np.array(scores))
        np.testing.assert_array_equal(y.asnumpy(), np.array(rows).reshape(-1, 3))


def test_ranges_of_large_whole_numbers_are_exact():
    for start, limit, delta in ((2**53 + 1, 2**53 + 4, 1), (2**62, 2**62 - 5, -2), (-(2**63), 2**63 - 1, 2**62), (3, 3, -1),
                                (1, 5, -1)):
        g = ob.graph([ob.node("Range", ["a", "b", "c"], ["y"])], [], [ob.value("y", dtype="int64")],
                     [ob.tensor(n, np.array(v)) for n, v in zip("abc", (start, limit, delta))])
        assert mx.onnx.load(ob.model(g))().asnumpy().tolist() == list(range(start, limit, delta))


def test_all_missing_operators_are_named_at_once():
    g = ob.graph([ob.node("Nonesuch", ["x"], ["a"], name="first"), ob.node("Nonesuch", ["a"], ["b"]),
                  ob.node("Other", ["b"], ["c"], domain="com.example"), ob.node("Relu", ["c"], ["y"])],
                 [ob.value("x", [1])], [ob.value("y")])
    with pytest.raises(NotImplementedError) as e:
        mx.onnx.load(ob.model(g))
    message = str(e.value)
    assert "Nonesuch of opset 13 at 'first' (Nonesuch), 'b' (Nonesuch)" in message
    assert "com.example.Other of opset 1 at 'c'" in message and "Relu" not in message


ONE = [ob.value("x", [2])], [ob.value("y")]


@pytest.mark.parametrize("data, kind, words", [
    (b"", ValueError, "there is no graph"),
    (b"hello, this is no model", ValueError, "no ONNX model"),
    (ob.model(ob.graph([ob.node("Relu", ["x"], ["y"])], *ONE))[:-40], ValueError, "longer than what contains it|no graph"),
    (ob.model(ob.graph([ob.node("Relu", ["q"], ["y"])], *ONE)), ValueError, "nothing is called 'q'"),
    (ob.model(ob.graph([ob.node("Relu", ["x"], ["y"]), ob.node("Relu", ["x"], ["y"])], *ONE)), ValueError,
     "two values are called 'y'"),
    (ob.model(ob.graph([ob.node("Relu", [], ["y"])], *ONE)), ValueError, r"input 0 \(data\) is missing"),
    (ob.model(ob.graph([ob.node("Relu", ["x"], ["y"], odd=3)], *ONE)), NotImplementedError, "attribute 'odd' = 3"),
    (ob.model(ob.graph([ob.node("Relu", ["x"], ["y", "z"])], *ONE)), NotImplementedError, "output 1 is not supported"),
    (ob.model(ob.graph([ob.node("Elu", ["x"], ["y"], alpha="one")], *ONE)), ValueError, "'alpha' must be a number"),
    (ob.model(ob.graph([ob.node("Concat", ["x"], ["y"])], *ONE), opset=99), NotImplementedError, "has opset 99"),
    (ob.model(ob.graph([ob.node("Relu", ["x"], ["y"])], *ONE), opset=6), NotImplementedError, "has opset 6; 7 is the first"),
    (ob.model(ob.graph([ob.node("Relu", ["x"], ["y"])], [ob.value("x", [1], 8)], ONE[1])), NotImplementedError, "STRING"),
    (ob.model(ob.graph([ob.node("Relu", ["t"], ["y"])], ONE[0], ONE[1],
                       [ob.tensor("t", np.zeros(2, "float32"), dims=[1 << 40])])), ValueError, "needs 4398046511104 bytes"),
    (ob.model(ob.graph([ob.node("Relu", ["t"], ["y"])], ONE[0], ONE[1],
                       [ob.tensor("t", np.zeros(2, "float32"), dims=[1 << 62, 1 << 62])])), ValueError, "64 bits"),
    (ob.model(ob.graph([ob.node("Relu", ["t"], ["y"])], ONE[0], ONE[1],
                       [ob.tensor("t", np.zeros(2, "float32"), dims=[-2])])), ValueError, "negative size"),
    (ob.model(ob.graph([ob.node("Relu", ["t"], ["y"])], ONE[0], ONE[1],
                       [ob.tensor("t", np.zeros(2, "int64"), raw=False, dims=[3])])), ValueError, "needs 24 bytes; there are 16"),
    (ob.model(ob.graph([ob.node("ConstantOfShape", ["t"], ["y"])], ONE[0], ONE[1],
                       [ob.tensor("t", np.array([1 << 20, 1 << 20]))])), ValueError, "has more than"),
    (ob.model(ob.graph([ob.node("Expand", ["x", "t"], ["y"])], ONE[0], ONE[1],
                       [ob.tensor("t", np.array([3]))])), None, "do not broadcast"),
])
def test_bad_models_are_errors_that_say_why(data, kind, words):
    if kind is None:  # it is a model; what it asks for shows when it runs
        net = mx.onnx.load(data)
        with pytest.raises(ValueError, match=words):
            net(mx.np.zeros(2))
        return
    with pytest.raises(kind, match=words) as e:
        mx.onnx.load(data)
    assert "onnx: '<bytes>'" in str(e.value) or "constants" in str(e.value)


def test_errors_name_the_place_in_the_file():
    g = ob.graph([ob.node("Relu", ["x"], ["a"]), ob.node("Elu", ["a"], ["y"], name="here", alpha="one")], *ONE)
    data = ob.model(g)
    offset = data.index(b"here")
    with pytest.raises(ValueError) as e:
        mx.onnx.load(data)
    place = int(str(e.value).split("offset ")[1].split(",")[0])
    assert "node 'here' (Elu)" in str(e.value) and offset - 12 <= place <= offset
    bad = ob.model(ob.graph([ob.node("Relu", ["x"], ["y"])], *ONE,
                            [ob.tensor("fine", np.zeros(1, "float32")), ob.tensor("t", np.zeros(2, "float32"), dims=[5])]))
    with pytest.raises(ValueError, match=r"in graph\.initializer\[1\]: .*needs 20 bytes; there are 8"):
        mx.onnx.load(bad)


def external(location, offset=None, length=None, dims=(4,)):
    entries = [("location", location)] + [(k, str(v)) for k, v in (("offset", offset), ("length", length)) if v is not None]
    data = b"".join(ob.block(13, ob.block(1, k) + ob.block(2, v)) for k, v in entries) + ob.number(14, 1)
    t = ob.tensor("w", np.zeros(0, "float32"), dims=dims, data=data)
    return ob.model(ob.graph([ob.node("Add", ["x", "w"], ["y"])], [ob.value("x", [4])], [ob.value("y")], [t]))


def test_external_tensors_stay_in_the_models_folder(tmp_path):
    folder = tmp_path / "model"
    (folder / "data").mkdir(parents=True)
    w = array(4)
    (folder / "data" / "w.bin").write_bytes(b"\0" * 8 + w.tobytes())
    (tmp_path / "secret").write_bytes(bytes(64))
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "fine").symlink_to(folder / "data" / "w.bin")

    def load(*args, **kwargs):
        (folder / "m.onnx").write_bytes(external(*args, **kwargs))
        return mx.onnx.load(folder / "m.onnx")

    for name in ("data/w.bin", "fine", "data/../data/w.bin"):
        net = load(name, 8, 16)
        np.testing.assert_array_equal(net(mx.np.zeros(4)).asnumpy(), w)
    for location, words in (("../secret", "outside of the model's folder"), ("link", "outside"),
                            (str(tmp_path / "secret"), "must be relative"), ("data/../../secret", "outside"),
                            ("", "no location"), ("a\0b", "null character"), (".", "outside|regular file")):
        with pytest.raises((ValueError, OSError), match=words):
            load(location, 0, 16)
    with pytest.raises(OSError, match="cannot open"):
        load("absent")
    with pytest.raises(ValueError, match="has 24 bytes; 16 are needed from offset 12"):
        load("data/w.bin", 12)
    with pytest.raises(ValueError, match="needs 16 bytes; there are 8"):
        load("data/w.bin", 8, 8)
    with pytest.raises(ValueError, match="offset must be a number"):
        load("data/w.bin", "-1")
    with pytest.raises(ValueError, match="from memory"):
        mx.onnx.load(external("data/w.bin", 8, 16))


def test_graphs_within_graphs_have_an_end():
    g = ob.graph([ob.node("Relu", ["x"], ["y"])], [], [ob.value("y")])
    for _ in range(200):
        g = ob.graph([ob.node("If", ["c"], ["y"], then_branch=g, else_branch=g[:0])], [], [ob.value("y")])
    with pytest.raises(ValueError, match="inside of each other"):
        mx.onnx.load(ob.model(ob.graph([ob.node("If", ["c"], ["y"], then_branch=g, else_branch=g)], *ONE)))


def test_damaged_models_are_errors_and_nothing_else():
    """Every mutation gives a network or an error of Python's usual kinds; a crash or a hang ends the test run."""
    data, _ = small_network()
    loop = ob.model(ob.graph([ob.node("If", ["c"], ["y"], then_branch=branch("a", "Add"), else_branch=branch("b", "Mul"))],
                             [ob.value("x", [2])], [ob.value("y")],
                             [ob.tensor("w", array(2)), ob.tensor("c", np.array(True))]))
    fuzz = np.random.default_rng(1)
    kinds = {"read": 0}
    for base in (data, loop):
        for i in range(600):
            b = bytearray(base)
            for _ in range(int(fuzz.integers(1, 5)) if b else 0):
                at = int(fuzz.integers(0, len(b)))
                choice = fuzz.integers(0, 4)
                if choice == 0:
                    b[at] = int(fuzz.integers(0, 256))
                elif choice == 1:
                    del b[at:at + int(fuzz.integers(1, 40))]
                elif choice == 2:
                    b[at:at] = bytes(fuzz.integers(0, 256, int(fuzz.integers(1, 20))).tolist())
                else:
                    b = b[:at + 1]
                if not b:
                    break
            try:
                mx.onnx.load(bytes(b))
                kinds["read"] += 1
            except (ValueError, TypeError, NotImplementedError, IndexError, KeyError, OSError, MemoryError, OverflowError) as e:
                kinds[type(e).__name__] = kinds.get(type(e).__name__, 0) + 1
    assert kinds["read"] > 20 and kinds["ValueError"] > 100, kinds


def test_weights_are_read_once(tmp_path):
    """Loading takes the memory of the weights and little more, also where the file is large."""
    w = np.zeros((32 << 20) // 4, "float32")
    g = ob.graph([ob.node("Add", ["x", f"w{i}"], [f"y{i}"]) for i in range(4)], [ob.value("x", [1])],
                 [ob.value(f"y{i}") for i in range(4)], [ob.tensor(f"w{i}", w) for i in range(4)])
    (tmp_path / "big.onnx").write_bytes(ob.model(g))
    program = ("import resource, sys, twibil as mx\n"
               "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10\n"
               "before = peak()\n"
               f"net = mx.onnx.load({str(tmp_path / 'big.onnx')!r})\n"
               "print(peak() - before)\n")
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env, check=True)
    assert int(out.stdout) < 128 * 1.2, out.stdout
