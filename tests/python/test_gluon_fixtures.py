# SPDX-License-Identifier: Apache-2.0
"""Optimizers, losses, metrics, schedulers and saved networks against values that MXNet 1.9.1 computed.

Where this package follows another rule on purpose (docs/differences-from-mxnet.md), the case is named here."""

import mxnet_fixtures
import numpy as onp
import pytest

import twibil as mx
from twibil import autograd, gluon, lr_scheduler, metric, np, optimizer
from twibil.gluon import nn


def ids(cases):
    return [c.name for c in cases]


def follows_one_rule(case):
    """Clipping comes before decay, and decay is part of the gradient, for every optimizer here; MXNet's differ."""
    args = case.args
    both = args.get("wd") and args.get("clip_gradient")
    return not ((both and case.call != "sgd") or (args.get("wd") and case.call in ("adagrad", "adadelta")))


KNOWN = ("sgd", "nag", "adam", "adagrad", "rmsprop", "adadelta")
OPTIMIZERS = [c for c in mxnet_fixtures.load("optimizers") if c.call in KNOWN and follows_one_rule(c)]


@pytest.mark.parametrize("case", OPTIMIZERS, ids=ids(OPTIMIZERS))
def test_optimizer(case):
    args = dict(case.args)
    if case.call == "adadelta":
        args["learning_rate"] = 1.0  # MXNet 1 does not use the rate here
    updater = optimizer.get_updater(optimizer.create(case.call, **args))
    weight = np.array(case["weight"])
    for grad, expect in zip(case["grads"], case["weights"]):
        updater(0, np.array(grad), weight)
        onp.testing.assert_allclose(weight.asnumpy(), expect, rtol=2e-5, atol=2e-6)


LOSSES = mxnet_fixtures.load("losses")


@pytest.mark.parametrize("case", LOSSES, ids=ids(LOSSES))
def test_loss(case):
    function = getattr(gluon.loss, case.call)(**case.args)
    inputs = [np.array(case[role]) for role in ("pred", "label0", "label1", "sample_weight") if role in case]
    inputs[0].attach_grad()
    with autograd.record():
        value = function(*inputs)
    value.backward()
    shape = case["loss"].shape
    onp.testing.assert_allclose(value.asnumpy().reshape(shape), case["loss"], rtol=2e-5, atol=2e-6)
    onp.testing.assert_allclose(inputs[0].grad.asnumpy(), case["grad"], rtol=5e-5, atol=5e-6)


METRICS = [c for c in mxnet_fixtures.load("metrics") if hasattr(metric, c.call)]


@pytest.mark.parametrize("case", METRICS, ids=ids(METRICS))
def test_metric(case):
    m = getattr(metric, case.call)(**case.args)
    assert m.name == case.more["metric"]
    for i, (label, pred, expect) in enumerate(zip(case["labels"], case["preds"], case["values"])):
        m.update([np.array(label)], [np.array(pred)])
        if case.call != "RMSE" or i == 0:  # MXNet 1 averages the roots of batches
            assert m.get()[1] == pytest.approx(float(expect), rel=2e-5, abs=1e-6)


SCHEDULERS = mxnet_fixtures.load("lr_schedulers")


@pytest.mark.parametrize("case", SCHEDULERS, ids=ids(SCHEDULERS))
def test_scheduler(case):
    args = {k: list(v) if isinstance(v, tuple) else v for k, v in case.args.items()}
    scheduler = getattr(lr_scheduler, case.call)(**args)
    got = [scheduler(i) for i in range(len(case["rates"]))]
    onp.testing.assert_allclose(got, case["rates"], rtol=1e-9, atol=1e-12)


def test_network_saved_by_mxnet(tmp_path):
    (case,) = mxnet_fixtures.load("params_gluon")
    net = nn.Sequential()
    net.add(nn.Conv2D(3, 3), nn.BatchNorm(), nn.Dense(2))
    net.load_parameters(mxnet_fixtures.params_path("gluon"))
    onp.testing.assert_allclose(net(np.array(case["x"])).asnumpy(), case["y"], rtol=1e-5, atol=1e-6)
    assert list(net.collect_params()) == [r for r in case.arrays if r not in "xy"]
    path = str(tmp_path / "again.params")
    net.save_parameters(path)
    again = mx.nd.load(path)
    assert list(again) == list(mx.nd.load(mxnet_fixtures.params_path("gluon")))
    for name, value in again.items():
        onp.testing.assert_array_equal(value.asnumpy(), case[name])
