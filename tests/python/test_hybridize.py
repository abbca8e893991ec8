# SPDX-License-Identifier: Apache-2.0
"""Hybridized blocks: what they compute, draw, update and notice, against eager ones. test_gluon_*.py run hybridized too."""
import copy
import threading
import warnings

import numpy as onp
import pytest

import twibil as mx
from twibil import autograd, gluon, nd, np, npx
from twibil.gluon import nn


def rand(*shape, seed=0):
    return np.array(onp.random.RandomState(seed).randn(*shape).astype("float32"))


def same(a, b, **tolerance):
    if tolerance:
        return onp.testing.assert_allclose(a.asnumpy(), b.asnumpy(), **tolerance)
    onp.testing.assert_array_equal(a.asnumpy(), b.asnumpy())


def convnet(seed=0):
    mx.random.seed(seed)
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.Dropout(0.5), nn.Flatten(),
            nn.Dense(8, activation="tanh"), nn.Dropout(0.3), nn.Dense(3))
    net.initialize(mx.init.Xavier())
    return net


def dense(units=3, in_units=4, **kwargs):
    net = nn.Dense(units, in_units=in_units, **kwargs)
    net.initialize()
    return net


@pytest.mark.parametrize("req", ["write", "add"])
def test_training_gives_the_same_bits(req):
    x, y = rand(5, 2, 6, 6), np.array([0, 1, 2, 1, 0])
    runs, predicted = [], []
    for active in (False, True):
        net, loss = convnet(), gluon.loss.SoftmaxCrossEntropyLoss()
        net.hybridize(active, static_alloc=True, static_shape=True)
        loss.hybridize(active)
        net.setattr("grad_req", req)
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
        mx.random.seed(7)
        seen = []
        for _ in range(4):
            with autograd.record():
                error = loss(net(x), y)
            error.backward()
            trainer.step(5)
            seen.append(error.asnumpy())
            if req == "add":
                net.zero_grad()
        predicted.append(net(x).asnumpy())
        seen += [p.data().asnumpy() for p in net.collect_params().values()]
        runs.append(seen)
    for a, b in zip(*runs):
        onp.testing.assert_array_equal(a, b)
    onp.testing.assert_allclose(*predicted, rtol=1e-5, atol=1e-5)  # there batch normalisation is inside the convolution
    assert len(net._graph.programs) == 2  # training and prediction


def test_one_trace_for_each_signature():
    traced = []

    class Net(nn.HybridBlock):
        def forward(self, x, k=1):
            traced.append(x.shape)
            return x * k

    net = Net()
    net.hybridize()
    for batch in (2, 3, 2, 3):
        same(net(rand(batch, 4)), rand(batch, 4))
    same(net(rand(2, 4), 2), rand(2, 4) * 2)
    same(net(rand(2, 4), k=2), rand(2, 4) * 2)
    assert len(traced) == 4
    net.hybridize(False)
    net(rand(2, 4))
    assert len(traced) == 5


def test_several_outputs_and_retained_graphs():
    class Net(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(4, in_units=4)

        def forward(self, x):
            y = self.fc(x)
            return {"y": y, "index": y.argmax(axis=1), "parts": [y.sum(), (y > 0)]}

    x = rand(3, 4)
    grads = []
    for active in (False, True):
        mx.random.seed(1)
        net = Net()
        net.initialize()
        net.hybridize(active)
        w = net.fc.weight.data()
        with autograd.record():
            out = net(x)
            loss = (out["y"] ** 2).sum() + out["parts"][0]
        assert str(out["parts"][1].dtype) == "bool" and out["index"].shape == (3,)
        loss.backward(retain_graph=True)
        first = w.grad.copy()
        loss.backward()
        same(first, w.grad)
        with pytest.raises(Exception):
            loss.backward()
        with autograd.record():
            g = autograd.grad((net(x)["y"] ** 3).sum(), w, create_graph=True)
            (g * g).sum().backward()
        grads.append([first.asnumpy(), w.grad.asnumpy()])
    for a, b in zip(*grads):
        onp.testing.assert_allclose(a, b, rtol=1e-4)


def test_parameters_that_get_other_arrays():
    net, x = dense(), rand(2, 4)
    net.hybridize()
    net(x)

    def check():
        same(net(x), npx.fully_connected(x, net.weight.data(), net.bias.data(), num_hidden=3))
    net.weight.set_data(rand(3, 4, seed=1))
    check()
    net.initialize(force_reinit=True)
    check()
    net.weight.grad_req = "null"
    check()
    net.reset_ctx(mx.cpu())
    check()
    net.share_parameters(dense().collect_params())
    check()
    net.cast("float64")
    x = x.astype("float64")
    check()
    assert str(net(x).dtype) == "float64"
    other = dense()
    other.cast("float64")
    net.weight = other.weight
    check()


def test_load_parameters(tmp_path):
    a, b, x = dense(), dense(), rand(2, 4)
    b.hybridize()
    b(x)
    a.save_parameters(str(tmp_path / "a.params"))
    b.load_parameters(str(tmp_path / "a.params"))
    same(a(x), b(x))


def test_structure_may_change():
    net, x = nn.HybridSequential(), rand(2, 4)
    net.add(dense(4), nn.Activation("relu"))
    net.hybridize()
    net(x)
    net.add(dense(2))
    assert net(x).shape == (2, 2)
    inner = nn.HybridSequential()
    inner.add(net)
    inner.hybridize()
    inner(x)
    net.add(nn.Activation("relu"))  # a child of the hybridized parent
    assert (inner(x).asnumpy() >= 0).all()
    assert copy.deepcopy(inner)(x).shape == (2, 2)


def test_hooks_see_arrays():
    net, x, seen = nn.HybridSequential(), rand(2, 4), []
    net.add(dense(4), dense(4))
    net.hybridize()
    net(x)
    outer = net.register_forward_hook(lambda block, args, out: seen.append(("outer", out.asnumpy())))
    net(x)
    inner = net[0].register_forward_hook(lambda block, args, out: seen.append(("inner", out.asnumpy())))
    net(x)
    before = net[1].register_forward_pre_hook(lambda block, args: seen.append(("pre", args[0].asnumpy())))
    net(x)
    for handle in (outer, inner, before):
        handle.detach()
    net(x)
    assert [name for name, _ in seen] == ["outer", "inner", "outer", "inner", "pre", "outer"]


def test_shapes_that_depend_on_values_run_eagerly_with_a_notice():
    class Positive(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.fc = dense(4)

        def forward(self, x):
            y = self.fc(x)
            return y[y > 0]

    net, x = Positive(), rand(3, 4)
    wanted = net(x)
    net.hybridize()
    with pytest.warns(UserWarning, match="Positive runs eagerly, as the shape of a result depends on values"):
        same(net(x), wanted)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(net(x), wanted)
        same(net(x * 2), net.fc(x * 2)[net.fc(x * 2) > 0])
    assert net.fc._graph.programs


def test_errors_name_line_and_block():
    class Bad(nn.HybridBlock):
        def forward(self, x):
            return np.matmul(x, x)  # 2 x 3

    class Curious(nn.HybridBlock):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    net = nn.HybridSequential()
    net.add(Bad())
    net.hybridize()
    with pytest.raises(ValueError, match="matmul") as info:
        net(rand(2, 3))
    assert "np.matmul(x, x)" in str(info.traceback[-1].statement) and any("Bad" in n for n in info.value.__notes__)
    net = Curious()
    net.hybridize()
    with pytest.raises(RuntimeError, match="npx.cond"):
        net(rand(2, 3))
    assert not mx._core.is_tracing()

    class Late(nn.HybridBlock):
        def forward(self, x, i):
            return x[i]
    net = Late()
    net.hybridize()
    with pytest.raises(IndexError, match=r"test_hybridize\.py:\d+"):
        net(rand(2, 3), np.array([5], dtype="int64")).asnumpy()


needs_operators = pytest.mark.skipif(not hasattr(mx.sym, "FullyConnected"), reason="mx.sym has no operators")


@needs_operators
def test_deferred_shapes_come_from_symbols():
    class Old(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.weight = self.params.get("weight", shape=(5, 0), allow_deferred_init=True)
            self.bias = self.params.get("bias", shape=(5,))

        def hybrid_forward(self, F, x, weight, bias):
            return F.FullyConnected(x, weight, bias, num_hidden=5)

    for active in (False, True):
        net = Old()
        net.initialize()
        net.hybridize(active)
        x = rand(2, 7)
        same(net(x), npx.fully_connected(x, net.weight.data(), net.bias.data(), num_hidden=5))
        assert net.weight.shape == (5, 7)


@needs_operators
def test_blocks_on_symbols():
    class Old(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(4, activation="relu")
            self.scale = self.params.get("scale", shape=(1,), init="ones")

        def hybrid_forward(self, F, x, scale):
            assert F is (mx.sym if isinstance(x, mx.sym.Symbol) else nd)
            return F.broadcast_mul(self.fc(x), scale)

    net = Old()
    out = net(mx.sym.var("data"))
    assert sorted(out.list_arguments()) == ["data", "fc.bias", "fc.weight", "scale"]
    net.initialize()
    x = rand(2, 3)
    wanted = net(x)
    f = mx.sym.compile(net(mx.sym.var("data")))
    same(f(**{"data": x, **{n: p.data() for n, p in net.collect_params().items()}}), wanted)
    net = convnet()
    assert len(net(mx.sym.var("data")).list_auxiliary_states()) == 2
    block = nn.HybridLambda(lambda F, v: F.relu(v))
    assert isinstance(block(mx.sym.var("x")), mx.sym.Symbol)


def test_threads_call_one_block():
    net = convnet()
    x = {n: rand(n, 2, 6, 6) for n in (1, 2, 3)}
    net(x[1])
    net.hybridize()
    wanted = {n: net(v).asnumpy() for n, v in x.items()}
    wrong = []

    def work(n):
        for _ in range(20):
            if not onp.array_equal(net(x[n]).asnumpy(), wanted[n]):
                wrong.append(n)
    threads = [threading.Thread(target=work, args=(1 + i % 3,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_op_hooks():
    net, seen = nn.HybridSequential(), []
    net.add(dense(4, activation="relu"))
    net.hybridize()
    x = rand(2, 4)
    wanted = net(x)
    net.register_op_hook(lambda name, op, array: seen.append((name, op, array.shape)))
    same(net(x), wanted)
    assert len(seen) >= 2 and seen[-1][2] == (2, 4) and all(name.endswith("_output") for name, _, _ in seen)


def test_options():
    net, x = dense(), rand(2, 4)
    with pytest.raises(TypeError, match="static_alloc"):
        net.hybridize(static_aloc=True)
    net.optimize_for(x, backend="MKLDNN", some_option=1)
    assert net._active and net._graph.programs
    with pytest.raises(TypeError, match="a function is needed"):
        net.register_op_hook(3)
    with pytest.raises(RuntimeError, match="Call hybridize"):
        dense().export("x")


def test_writes_inside_a_block():
    class Counter(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.count = gluon.Constant("count", np.zeros((1,)))

        def forward(self, x):
            count = self.count.data()
            count += 1
            x[0] = 0
            return x * count

    runs = []
    for active in (False, True):
        net = Counter()
        net.initialize()
        net.hybridize(active)
        x = rand(3)
        runs.append([net(x).asnumpy().tolist() for _ in range(3)] + [net.count.data().item(), x.asnumpy().tolist()])
    assert runs[0] == runs[1] and runs[0][3] == 3


def test_pause_and_detach_inside():
    class Net(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.a, self.b = dense(4), dense(4)

        def forward(self, x):
            with autograd.pause():
                fixed = self.a(x)
            return self.b(x) * fixed + self.a(x).detach()

    grads = []
    for active in (False, True):
        mx.random.seed(0)
        net = Net()
        net.initialize(force_reinit=True)
        net.hybridize(active)
        with autograd.record():
            loss = net(rand(2, 4)).sum()
        loss.backward()
        grads.append([p.grad().asnumpy() for p in net.collect_params().values()])
    for a, b in zip(*grads):
        onp.testing.assert_allclose(a, b, rtol=1e-6)
    assert not grads[1][0].any() and grads[1][2].any()


def test_shared_and_recursive_blocks():
    class Twice(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.fc = dense(4)

        def forward(self, x, depth=2):
            return self(self.fc(x), depth - 1) if depth else x

    net, x = Twice(), rand(2, 4)
    wanted = net(x)
    net.hybridize()
    same(net(x), wanted)
    grads = []
    for active in (True, False):
        net.hybridize(active)
        with autograd.record():
            y = net(x).sum()
        y.backward()
        grads.append(net.fc.weight.grad().copy())
    same(*grads, rtol=1e-6)


def test_the_books_chapter_on_hybridizing(tmp_path, capsys):
    """Dive into Deep Learning, 'Compilers and Interpreters'."""
    def get_net():
        net = nn.HybridSequential()
        net.add(nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"), nn.Dense(2))
        net.initialize()
        return net

    x = np.random.normal(size=(1, 512))
    net = get_net()
    wanted = net(x)
    net.hybridize()
    same(net(x), wanted, rtol=1e-5)
    net.export(str(tmp_path / "my_mlp"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["my_mlp-0000.params", "my_mlp-symbol.json"]
    assert '"nodes"' in (tmp_path / "my_mlp-symbol.json").read_text()

    class HybridNet(nn.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.hidden = nn.Dense(4)
            self.output = nn.Dense(2)

        def hybrid_forward(self, F, x):
            print("module F: ", F.__name__)
            x = F.npx.relu(self.hidden(x))
            print("result  : ", x)
            return self.output(x)

    net = HybridNet()
    net.initialize()
    x = np.random.normal(size=(1, 3))
    wanted = net(x)
    net.hybridize()
    net(x)
    shown = capsys.readouterr().out
    same(net(x), wanted, rtol=1e-5)
    assert "module F:  twibil.nd" in shown and "traced array float32 [1, 4]" in shown
    assert capsys.readouterr().out == ""  # Python's print belongs to the trace


def test_a_loss_that_is_kept_keeps_no_graph():
    net, x = nn.HybridSequential(), rand(512, 64)
    net.add(*[nn.Dense(512, activation="tanh") for _ in range(6)])
    net.initialize()
    net.hybridize()
    net(x)

    def step():
        with autograd.record():
            loss = net(x).sum()
        loss.backward()
        mx.waitall()
        return loss
    step()
    before = mx._core.memory_stats()["current_bytes"]
    loss = step()
    assert mx._core.memory_stats()["current_bytes"] - before < 1 << 20
    with pytest.raises((RuntimeError, ValueError)):
        loss.backward()
