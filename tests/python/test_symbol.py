# SPDX-License-Identifier: Apache-2.0
"""Symbols: names, composition, attributes, shapes and dtypes as MXNet 1.9.1 has them, and executors."""
import copy
import pickle

import numpy as np
import pytest
import twibil as mx
from twibil import sym

data, other = sym.Variable("data"), sym.Variable("other")


def two_layers():
    net = sym.FullyConnected(data, num_hidden=10, name="fc1")
    return sym.FullyConnected(sym.Activation(net, act_type="relu", name="act"), num_hidden=4, name="fc2")


# ---- names ----

@pytest.mark.parametrize("make, name", [
    (lambda d, o: d + o, "_plus0"), (lambda d, o: d + 1, "_plusscalar0"), (lambda d, o: 1 - d, "_rminusscalar0"), (lambda d, o: d * 2, "_mulscalar0"),
    (lambda d, o: d / o, "_div0"), (lambda d, o: d ** 2, "_powerscalar0"), (lambda d, o: d == o, "_equal0"), (lambda d, o: abs(d), "abs0"),
    (lambda d, o: sym.FullyConnected(d, num_hidden=2), "fullyconnected0"), (lambda d, o: sym.Concat(d, o), "concat0"),
    (lambda d, o: sym.elemwise_add(d, o), "elemwise_add0"), (lambda d, o: sym.contrib.MultiBoxPrior(d), "multiboxprior0"), (lambda d, o: sym.dot(d, o), "dot0"),
    (lambda d, o: d.reshape((0, -1)), "reshape0"), (lambda d, o: d.slice_axis(axis=0, begin=0, end=1), "slice_axis0"), (lambda d, o: d.astype("int32"), "cast0"),
    (lambda d, o: d.sum(axis=1), "sum0"), (lambda d, o: sym.relu(d, name="mine"), "mine"), (lambda d, o: d, "data"),
])
def test_names_of_nodes(make, name):
    with mx.name.NameManager():
        assert make(data, other).name == name


def test_names_of_outputs_and_parameters():
    assert sym.SliceChannel(data, num_outputs=3, name="s").list_outputs() == ["s_output0", "s_output1", "s_output2"]
    lstm = sym.RNN(data, state_size=2, num_layers=1, mode="lstm", state_outputs=True, name="r")
    assert lstm.list_outputs() == ["r_output", "r_state_output", "r_statecell_output"]
    assert lstm.list_arguments() == ["data", "r_parameters", "r_state", "r_state_cell"]
    norm = sym.BatchNorm(data, name="b")
    assert norm.list_arguments() == ["data", "b_gamma", "b_beta"] and norm.list_auxiliary_states() == ["b_moving_mean", "b_moving_var"]
    assert norm.get_internals().list_outputs() == ["data", "b_gamma", "b_beta", "b_moving_mean", "b_moving_var", "b_output"]
    assert sym.LeakyReLU(data, act_type="prelu", name="l").list_arguments() == ["data", "l_gamma"]
    assert sym.FullyConnected(data, num_hidden=1, no_bias=True, name="f").list_arguments() == ["data", "f_weight"]
    assert sym.contrib.MultiBoxTarget(data, other, sym.var("c"), name="t").list_outputs() == ["t_loc_target", "t_loc_mask", "t_cls_target"]
    assert sym.SoftmaxOutput(data, name="softmax").list_arguments() == ["data", "softmax_label"]


def test_prefix_and_numbers():
    with mx.name.Prefix("my_"):
        assert sym.FullyConnected(data, num_hidden=1, name="fc").list_arguments() == ["data", "my_fc_weight", "my_fc_bias"]
        assert sym.relu(data).name.startswith("my_relu") and sym.Variable("q").name == "q"
    with mx.name.NameManager():
        assert [sym.relu(data).name, sym.relu(data).name] == ["relu0", "relu1"]


# ---- composition ----

def test_compose_by_name_and_position():
    first = sym.FullyConnected(data, num_hidden=10, name="fc1")
    second = sym.FullyConnected(sym.Activation(sym.Variable("data2"), act_type="relu"), num_hidden=20, name="fc2")
    for made in (second(data2=first, name="composed"), second(first, name="composed")):
        assert made.list_arguments() == ["data", "fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"]
        assert made.list_outputs() == ["composed_output"] and made.name == "composed"
        assert made.infer_shape(data=(3, 5))[1] == [(3, 20)]
    assert second.list_arguments()[0] == "data2"  # itself it stays
    with pytest.raises(ValueError, match="no variable 'dat2'.*data2"):
        second(dat2=first)
    with pytest.raises(TypeError, match="by position or by name"):
        second(first, data2=first)
    with pytest.raises(TypeError, match="must be a symbol"):
        second(data2=3)


def test_groups_outputs_and_internals():
    net = two_layers()
    both = sym.Group([net, net.get_internals()["fc1_output"]])
    assert both.list_outputs() == ["fc2_output", "fc1_output"] and len(both) == 2 and both.name is None
    assert [s.name for s in both] == ["fc2", "fc1"] and both[1].name == "fc1" and both["fc1_output"].list_arguments()[0] == "data"
    assert both[0:1].list_outputs() == ["fc2_output"]
    assert net.get_children().list_outputs() == ["act_output", "fc2_weight", "fc2_bias"]
    assert data.get_children() is None
    with pytest.raises(IndexError):
        both[2]
    with pytest.raises(ValueError, match="no output named 'fc3_output'"):
        both["fc3_output"]
    with pytest.raises(TypeError):
        sym.Group([])


def test_methods_and_namespaces_come_from_the_registry():
    x = mx.np.array([[1.0, -2], [3, 4]])
    for made, want in ((data.sum(axis=1), x.sum(axis=1)), (data.relu(), mx.npx.relu(x)), (data.reshape(-1), x.reshape(-1)), (data.transpose(), x.T),
                       (sym.np.exp(data), mx.np.exp(x)), (sym.npx.softmax(data), mx.npx.softmax(x)), (sym.linalg.gemm2(data, data), mx.np.matmul(x, x)),
                       (sym._internal._plus_scalar(data, scalar=2), x + 2), (sym.np.where(data > 0, data, -data), mx.np.abs(x))):
        np.testing.assert_allclose(made.eval(data=x)[0].asnumpy(), want.asnumpy(), rtol=1e-6)
    assert sym.random.uniform(low=1, high=2, shape=(3,)).eval()[0].shape == (3,)
    assert sym.zeros((2, 3)).eval()[0].tolist() == [[0] * 3] * 2
    with pytest.raises(AttributeError, match="softmx.*softmax"):
        sym.softmx
    with pytest.raises(AttributeError):
        data.no_such_method
    def there(name):
        *space, short = name.split(".")
        return short in dir(getattr(sym, "np").random if space == ["np", "random"] else getattr(sym, space[0])) if space[0] != "nd" else (
            hasattr(sym, short) or hasattr(sym.contrib, short))
    missing = [n for op in mx._core.registry() for n in op["names"] if not n.startswith("ndarray.") and not there(n)]
    assert not missing


# ---- attributes ----

def test_attributes_of_scopes_nodes_and_parameters():
    with mx.AttrScope(__group__="4", __data__="great"):
        g = sym.Variable("g", attr={"__mood__": "x"})
        op = sym.FullyConnected(g, num_hidden=3, name="fc")
    assert [g.attr("__group__"), g.attr("__mood__"), op.attr("__data__"), op.attr("num_hidden"), op.attr("nothing")] == ["4", "x", "great", "3", None]
    assert op.list_attr() == {"__data__": "great", "__group__": "4", "num_hidden": "3"}
    assert op.attr_dict()["fc_weight"] == {"__data__": "great", "__group__": "4"}
    conv = sym.Convolution(data, name="conv", kernel=(1, 1), num_filter=1, attr={"__mood__": "so so"}, wd_mult="x")
    assert conv.attr("wd_mult") == "x" and conv.attr_dict()["conv_bias"]["__wd_mult__"] == "x"
    assert conv.attr("kernel") == "(1, 1)"
    v = sym.Variable("v", shape=(2, 3), lr_mult=3, init=mx.init.Zero())
    assert v.attr("__lr_mult__") == "3" and v.attr("lr_mult") == "3" and v.attr("__shape__") == "(2, 3)" and "zero" in v.attr("__init__").lower()
    v._set_attr(ctx_group="a")
    assert v.attr("ctx_group") == "a"
    with pytest.raises(ValueError, match="must be a string"):
        v._set_attr(mood=3)
    with pytest.raises(ValueError, match="__mood__"):
        sym.Variable("w", mood="x")
    with pytest.raises(ValueError):
        mx.AttrScope(mood=3)
    assert pickle.loads(pickle.dumps(conv)).attr_dict() == conv.attr_dict() == copy.deepcopy(conv).attr_dict()


# ---- shapes and dtypes ----

def test_shapes_follow_from_data():
    net = two_layers()
    want = ([(5, 7), (10, 7), (10,), (4, 10), (4,)], [(5, 4)], [])
    assert net.infer_shape(data=(5, 7)) == want and net.infer_shape((5, 7)) == want
    with pytest.warns(UserWarning, match="fc1_weight"):
        assert net.infer_shape() == (None, None, None)
    with mx.np_shape(False):
        assert net.infer_shape_partial() == ([()] * 5, [()], [])
        assert net.infer_shape_partial(data=(0, 7)) == ([(0, 7), (10, 7), (10,), (4, 10), (4,)], [(0, 4)], [])
    with pytest.raises(ValueError, match="no variable 'dta'"):
        net.infer_shape(dta=(5, 7))
    with pytest.raises(ValueError):
        net.infer_shape(data=(5, 7), fc1_weight=(10, 8))


def test_unknown_sizes_and_zero_sizes_are_two_things():
    with mx.np_shape(False):
        net = sym.FullyConnected(sym.Variable("x", shape=(0, 3)), num_hidden=2, name="fc")  # 0: not known, as in MXNet 1
        assert net.infer_shape_partial()[0] == [(0, 3), (2, 3), (2,)]
        assert net.infer_shape(x=(5, 3))[1] == [(5, 2)]
    with mx.np_shape(True):
        net = sym.FullyConnected(sym.Variable("x"), num_hidden=2, name="fc")
        assert net.infer_shape(x=(0, 3))[1] == [(0, 2)]  # a batch of none
        assert net.infer_shape_partial(x=(-1, 3))[1] == [(-1, 2)]
        assert net.infer_shape_partial()[0] == [None] * 3
    x = mx.np.zeros((0, 3))
    assert net.eval(x=x, fc_weight=mx.np.zeros((2, 3)), fc_bias=mx.np.zeros(2))[0].shape == (0, 2)


@pytest.mark.parametrize("make, shapes", [
    (lambda d: sym.Convolution(d, kernel=(3, 3), num_filter=8, num_group=2, name="n"), {"n_weight": (8, 2, 3, 3), "n_bias": (8,)}),
    (lambda d: sym.Deconvolution(d, kernel=(2, 2), num_filter=6, num_group=2, no_bias=False, name="n"), {"n_weight": (4, 3, 2, 2), "n_bias": (6,)}),
    (lambda d: sym.BatchNorm(d, name="n"), {"n_gamma": (4,), "n_moving_var": (4,)}), (lambda d: sym.BatchNorm(d, axis=-1, name="n"), {"n_beta": (6,)}),
    (lambda d: sym.LayerNorm(d, name="n"), {"n_gamma": (6,)}), (lambda d: sym.InstanceNorm(d, name="n"), {"n_beta": (4,)}),
    (lambda d: sym.GroupNorm(d, num_groups=2, name="n"), {"n_gamma": (4,)}), (lambda d: sym.LeakyReLU(d, act_type="prelu", name="n"), {"n_gamma": (4,)}),
    (lambda d: sym.FullyConnected(d, num_hidden=3, flatten=False, name="n"), {"n_weight": (3, 6)}), (lambda d: sym.Embedding(d, input_dim=9, output_dim=2, name="n"), {"n_weight": (9, 2)}),
    (lambda d: sym.SoftmaxOutput(d, name="n", multi_output=True), {"n_label": (2, 5, 6)}), (lambda d: sym.SoftmaxOutput(d, name="n"), {"n_label": (2,)}),
    (lambda d: sym.LinearRegressionOutput(d, name="n"), {"n_label": (2, 4, 5, 6)}), (lambda d: d + sym.Variable("n"), {"n": (2, 4, 5, 6)}),
])
def test_parameters_get_shapes(make, shapes):
    made = make(data)
    arguments, _, states = made.infer_shape(data=(2, 4, 5, 6))
    found = dict(zip(made.list_arguments() + made.list_auxiliary_states(), arguments + states))
    assert shapes.items() <= found.items()


def test_dtypes_follow_from_data():
    net = two_layers()
    assert net.infer_type(data="float64")[0] == [np.float64] * 5 and net.infer_type()[1] == [np.float32]
    assert sym.Cast(net, dtype="float16").infer_type(data=np.float64)[1] == [np.float16]
    executor = net.simple_bind(mx.cpu(), data=(2, 3), type_dict={"data": "float64"})
    assert str(executor.arg_dict["fc1_weight"].dtype) == "float64" and str(executor.forward()[0].dtype) == "float64"


# ---- executors ----

def executor_of(grad_req="write"):
    x, y = mx.np.array([[1.0, 2], [3, 4]]), mx.np.array([[5.0, 6], [7, 8]])
    return (data * other).bind(mx.cpu(), [x, y], [mx.np.zeros((2, 2)), mx.np.zeros((2, 2))], grad_req), x, y


def test_forward_and_backward():
    executor, x, y = executor_of()
    out = executor.forward(is_train=True)
    assert out[0].tolist() == (x * y).tolist() and executor.outputs[0] is out[0]
    executor.backward(mx.np.array([[1.0, 2], [1, 1]]))
    assert executor.grad_dict["data"].tolist() == [[5, 12], [7, 8]] and executor.grad_arrays[1].tolist() == [[1, 4], [3, 4]]
    executor.backward()
    assert executor.grad_dict["data"].tolist() == y.tolist()
    executor.forward(data=mx.np.ones((2, 2)))
    assert executor.output_dict["_mul0_output" if "_mul0_output" in executor.output_dict else list(executor.output_dict)[0]].tolist() == y.tolist()
    assert executor.arg_dict["data"] is x and x.tolist() == [[1, 1], [1, 1]]
    with pytest.raises(RuntimeError, match="forward"):
        executor.backward()
    with pytest.raises(TypeError, match="no argument 'dat'.*data"):
        executor.forward(dat=x)
    with pytest.raises(ValueError, match="must have shape"):
        executor.forward(data=mx.np.ones((3, 2)))


def test_output_layers_and_the_gradient_that_arrives():
    """SoftmaxOutput hands back the loss's gradient whatever arrives, unless out_grad says otherwise."""
    x, label = mx.np.array([[1.0, 2, 3]]), mx.np.array([1.0])
    want = mx.npx.softmax(x).asnumpy() - [[0, 1, 0]]
    for more, factor in (({}, 1), ({"out_grad": True}, 3)):
        net = sym.SoftmaxOutput(data, other, **more) * 3
        executor = net.bind(mx.cpu(), [x, label], {"data": mx.np.zeros((1, 3))})
        executor.forward(is_train=True)
        executor.backward()
        np.testing.assert_allclose(executor.grad_dict["data"].asnumpy(), factor * want, rtol=1e-5)


def test_gradient_requests():
    executor, x, y = executor_of("add")
    for _ in range(3):
        executor.forward(is_train=True)
        executor.backward()
    assert executor.grad_dict["data"].tolist() == (3 * y).tolist()
    for request in ({"data": "write"}, ["write", "null"]):
        executor, x, y = executor_of(request)
        executor.forward(is_train=True)
        executor.backward()
        assert executor.grad_dict["data"].tolist() == y.tolist() and executor.grad_dict["other"].tolist() == [[0, 0], [0, 0]]
    with pytest.raises(ValueError, match="'write', 'add' or 'null'"):
        executor_of("rite")
    with pytest.raises(ValueError, match="lacks other"):
        (data * other).bind(mx.cpu(), {"data": mx.np.ones(1)})
    with pytest.raises(ValueError, match="must hold 2 arrays"):
        (data * other).bind(mx.cpu(), [mx.np.ones(1)])


def test_states_are_updated_in_training_alone():
    net = sym.BatchNorm(data, name="b", momentum=0.5, fix_gamma=False)
    executor = net.simple_bind(mx.cpu(), data=(4, 2))
    executor.aux_dict["b_moving_var"][...] = 1
    executor.arg_dict["data"][...] = mx.np.array([[0.0, 1], [2, 3], [4, 5], [6, 7]])
    executor.forward()
    assert executor.aux_dict["b_moving_mean"].tolist() == [0, 0]
    executor.forward(is_train=True)
    assert executor.aux_arrays[0].tolist() == [1.5, 2.0]


def test_parameters_copies_and_reshape():
    net = two_layers()
    executor = net.simple_bind(mx.cpu(), data=(2, 3))
    executor.copy_params_from({"fc1_weight": mx.np.ones((10, 3))})
    assert executor.arg_dict["fc1_weight"].tolist() == [[1] * 3] * 10
    with pytest.raises(ValueError, match="no argument 'fc9_weight'"):
        executor.copy_params_from({"fc9_weight": mx.np.ones((10, 3))})
    executor.copy_params_from({"fc9_weight": mx.np.ones((10, 3))}, allow_extra_params=True)
    smaller = executor.reshape(data=(1, 3))
    assert smaller.forward()[0].shape == (1, 4) and smaller.arg_dict["fc1_weight"] is executor.arg_dict["fc1_weight"]
    with pytest.raises(ValueError, match="allow_up_sizing"):
        executor.reshape(data=(4, 3))
    assert executor.reshape(allow_up_sizing=True, data=(4, 3)).forward()[0].shape == (4, 4)
    with pytest.raises(ValueError, match="partial_shaping"):
        executor.reshape(data=(2, 2))
    shared = net.simple_bind(mx.cpu(), data=(2, 3), shared_exec=executor)
    assert shared.arg_dict["fc1_weight"] is executor.arg_dict["fc1_weight"]
    with pytest.raises(ValueError, match="fc1_weight"):
        net.simple_bind(mx.cpu())


def test_monitor_sees_every_node():
    net = two_layers()
    executor = net.simple_bind(mx.cpu(), data=(2, 3))
    seen = {}
    executor.set_monitor_callback(lambda name, array: seen.__setitem__(name, array.shape))
    out = executor.forward()
    assert seen == {"fc1_output": (2, 10), "act_output": (2, 10), "fc2_output": (2, 4)} and out[0].shape == (2, 4)
    executor.set_monitor_callback(lambda name, array: seen.__setitem__(name, array.shape), monitor_all=True)
    executor.forward(is_train=True)
    assert seen["data"] == (2, 3)
    executor.backward()


def test_debug_text():
    text = two_layers().debug_str()
    assert "Variable:data" in text and "Op:fully_connected, Name=fc1" in text


def test_a_symbol_trains():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 2)).astype("float32")
    label = (x[:, 0] * x[:, 1] > 0).astype("float32")
    net = sym.FullyConnected(sym.Activation(sym.FullyConnected(data, num_hidden=16, name="a"), act_type="tanh"), num_hidden=2, name="b")
    executor = sym.SoftmaxOutput(net, name="softmax", normalization="batch").simple_bind(mx.cpu(), data=(200, 2))
    for name, array in executor.arg_dict.items():
        if name.endswith("weight"):
            array[...] = mx.np.array(rng.standard_normal(array.shape).astype("float32"))
    for _ in range(300):
        executor.forward(is_train=True, data=x, softmax_label=label)
        executor.backward()
        for name, gradient in executor.grad_dict.items():
            if name not in ("data", "softmax_label"):
                executor.arg_dict[name] -= 1.0 * gradient
    assert float((executor.forward()[0].asnumpy().argmax(1) == label).mean()) > 0.95
