# SPDX-License-Identifier: Apache-2.0
"""Several Python threads at once: queued work, gradients, loaders, waits that let other threads run.

The results are checked everywhere; `./dev tsan` runs these under ThreadSanitizer to look for races.
"""
import threading
import time

import numpy as onp
import pytest

import twibil as mx
from twibil import autograd, gluon, np, npx

THREADS = 4
QUEUED = 300_000  # elements: more than what runs on the calling thread


def at_once(body):
    """body(t) on each of a few threads; the first exception reaches the caller."""
    errors = []

    def run(t):
        try:
            body(t)
        except BaseException as e:  # noqa: BLE001 - handed on
            errors.append(e)

    threads = [threading.Thread(target=run, args=(t,)) for t in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


def test_shared_arrays_are_read_while_they_are_computed():
    shared = np.ones(QUEUED) * 2

    def body(t):
        for i in range(20):
            y = shared * t + shared[:1]
            if i % 3 == 0:
                assert y[-1].item() == 2 * t + 2
        npx.waitall()

    at_once(body)


def test_gradients_of_queued_and_inline_work():
    data = np.ones(QUEUED)

    def body(t):
        for n in (8, QUEUED):
            for _ in range(6):
                x = np.full((n,), t, dtype="float32")
                x.attach_grad()
                with autograd.record():
                    y = x * data[:n]
                    y += 1
                    loss = (y * y).sum()
                loss.backward()
                assert x.grad[n - 1].item() == 2 * (t + 1)

    at_once(body)


def test_two_backward_passes_meet_in_one_parameter():
    w, v = np.ones(3), np.ones(3)
    w.attach_grad("add"), v.attach_grad("add")
    inside, done = threading.Event(), threading.Event()

    class Pause(autograd.Function):
        def forward(self, x):
            return x * 1

        def backward(self, dy):
            inside.set()
            assert done.wait(60)
            return dy

    def body(t):
        if t == 0:
            with autograd.record():
                y = (Pause()(w * 2) * v).sum()
            y.backward()
        elif t == 1:
            assert inside.wait(60)
            try:
                with autograd.record():
                    y = (((v * 3).exp() * w * w).sum() + v.sum()) * 0
                y.backward()
            finally:
                done.set()

    at_once(body)
    assert w.grad.tolist() == [2, 2, 2] and v.grad.tolist() == [2, 2, 2]


def test_modes_belong_to_a_thread():
    barrier = threading.Barrier(THREADS)

    def body(t):
        with autograd.record() if t % 2 else autograd.pause():
            barrier.wait(60)
            assert autograd.is_recording() == bool(t % 2)
            barrier.wait(60)

    at_once(body)


def test_writes_to_own_arrays():
    def body(t):
        x = np.zeros(QUEUED)
        for i in range(10):
            x += t
            x[:10] = -i
        assert x.sum().item() == 10 * t * (QUEUED - 10) - 90

    at_once(body)


def test_errors_reach_the_thread_that_looks():
    table = np.ones((4, QUEUED))

    def body(t):
        for _ in range(3):
            bad = npx.embedding(np.array([1, 7 + t], dtype="int64"), table, input_dim=4, output_dim=QUEUED)
            with pytest.raises(IndexError, match="embedding"):
                (bad * 2).wait_to_read()
        with pytest.raises(IndexError):
            bad.asnumpy()

    at_once(body)


def test_predictions_of_one_network():
    net = gluon.nn.Sequential()
    net.add(gluon.nn.Conv2D(8, 3, padding=1), gluon.nn.BatchNorm(), gluon.nn.Activation("relu"), gluon.nn.Dense(10))
    net.initialize()
    x = np.random.normal(size=(32, 3, 16, 16))
    want = net(x).asnumpy()

    def body(t):
        for _ in range(3):
            onp.testing.assert_array_equal(net(x).asnumpy(), want)

    at_once(body)


def test_training_from_loaders_with_workers():
    pictures = onp.random.RandomState(0).rand(512, 784).astype("float32")
    data = gluon.data.ArrayDataset(pictures, (pictures.sum(1) > 392).astype("int32"))
    loader = gluon.data.DataLoader(data.transform_first(lambda x: np.array(x) * 2 - 1), batch_size=64, shuffle=True, num_workers=3)
    net = gluon.nn.Sequential()
    net.add(gluon.nn.Dense(128, activation="relu"), gluon.nn.Dropout(0.2), gluon.nn.Dense(2))
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(3):
        for x, label in loader:
            with autograd.record():
                loss = loss_of(net(x), label)
            loss.backward()
            trainer.step(64)
    assert loss.mean().item() < 5


def test_arrays_die_on_other_threads():
    arrays = [np.ones(1000) * i for i in range(200)] + [np.ones(QUEUED) * i for i in range(20)]
    lock = threading.Lock()

    def body(t):
        while True:
            with lock:
                if not arrays:
                    return
                x = arrays.pop()
            assert x[0].item() * x.size == x.sum().item()

    at_once(body)


@mx.operator.register("twice_slowly")
class TwiceSlowly(mx.operator.CustomOpProp):
    """Gives the interpreter's lock away while a graph is compiled, and while it runs."""

    def infer_shape(self, shapes):
        time.sleep(0.001)
        return shapes, [shapes[0]], []

    def create_operator(self, ctx, shapes, dtypes):
        class Twice(mx.operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                time.sleep(0.001)
                self.assign(out_data[0], req[0], in_data[0] * 2)
        return Twice()


def test_threads_compile_one_graph_while_its_callback_lets_others_run():
    f = mx.sym.compile(mx.sym.Custom(mx.sym.Variable("x"), op_type="twice_slowly") + 1)

    def body(t):
        for n in range(1, 8):
            assert (f(np.ones((n, 3))).asnumpy() == 3).all()

    at_once(body)


def test_threads_share_what_depends_on_parameters_alone():
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(8, 3), gluon.nn.BatchNorm(), gluon.nn.Dense(4))
    net.initialize()
    net.hybridize()
    x = np.ones((5, 3, 16, 16))
    wanted = net(x).asnumpy()

    def body(t):
        for n in range(1, 6):
            onp.testing.assert_allclose(net(x[:n]).asnumpy(), wanted[:n], rtol=1e-5, atol=1e-6)

    at_once(body)
