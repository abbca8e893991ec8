# SPDX-License-Identifier: Apache-2.0
"""Losses against formulas in float64."""

import numpy as onp
import pytest

from twibil import np
from twibil.gluon import loss

RNG = onp.random.default_rng(3)
PRED, LABEL = RNG.standard_normal((4, 3)), RNG.standard_normal((4, 3))
SIGN, BIT = onp.where(LABEL > 0, 1.0, -1.0), (LABEL > 0).astype("float64")
LOG = PRED - onp.log(onp.exp(PRED).sum(-1, keepdims=True))
PROB = onp.exp(LABEL) / onp.exp(LABEL).sum(-1, keepdims=True)


def arr(v):
    return np.array(onp.asarray(v, dtype="float32"))


def soft(v):
    return onp.log1p(onp.exp(v))


CASES = {
    "L2": (loss.L2Loss(), (PRED, LABEL), ((PRED - LABEL) ** 2 / 2).mean(1)),
    "L2 weight": (loss.L2Loss(weight=3.0), (PRED, LABEL), (1.5 * (PRED - LABEL) ** 2).mean(1)),
    "L1": (loss.L1Loss(), (PRED, LABEL), onp.abs(PRED - LABEL).mean(1)),
    "SigmoidBCE": (loss.SigmoidBCELoss(), (PRED, BIT), (soft(PRED) - PRED * BIT).mean(1)),
    "SigmoidBCE prob": (
        loss.SigmoidBCELoss(from_sigmoid=True),
        (PROB, BIT),
        -(onp.log(PROB) * BIT + onp.log(1 - PROB) * (1 - BIT)).mean(1),
    ),
    "SoftmaxCE": (loss.SoftmaxCELoss(), (PRED, [0, 2, 1, 1]), -LOG[range(4), [0, 2, 1, 1]]),
    "SoftmaxCE dense": (loss.SoftmaxCELoss(sparse_label=False), (PRED, PROB), -(LOG * PROB).sum(1)),
    "SoftmaxCE logits": (loss.SoftmaxCELoss(from_logits=True), (LOG, [0, 2, 1, 1]), -LOG[range(4), [0, 2, 1, 1]]),
    "KLDiv": (loss.KLDivLoss(from_logits=False), (PRED, PROB), (PROB * (onp.log(PROB) - LOG)).sum(1)),
    "Huber": (
        loss.HuberLoss(rho=0.5),
        (PRED, LABEL),
        onp.where(abs(PRED - LABEL) > 0.5, abs(PRED - LABEL) - 0.25, (PRED - LABEL) ** 2).mean(1),
    ),
    "Hinge": (loss.HingeLoss(), (PRED, SIGN), onp.maximum(0, 1 - PRED * SIGN).mean(1)),
    "SquaredHinge": (loss.SquaredHingeLoss(), (PRED, SIGN), (onp.maximum(0, 1 - PRED * SIGN) ** 2).mean(1)),
    "Logistic": (loss.LogisticLoss(), (PRED, SIGN), soft(-PRED * SIGN).mean(1)),
    "Logistic binary": (loss.LogisticLoss(label_format="binary"), (PRED, BIT), soft(-PRED * SIGN).mean(1)),
    "Triplet": (
        loss.TripletLoss(),
        (PRED, LABEL, PROB),
        onp.maximum(0, ((LABEL - PRED) ** 2 - (PROB - PRED) ** 2).sum(1) + 1),
    ),
    "PoissonNLL": (loss.PoissonNLLLoss(), (PRED, PROB), (onp.exp(PRED) - PROB * PRED).mean()),
}


@pytest.mark.parametrize("name", CASES)
def test_value(name):
    function, inputs, expect = CASES[name]
    onp.testing.assert_allclose(function(*map(arr, inputs)).asnumpy(), expect, rtol=2e-5, atol=2e-6)


def test_sample_weight_and_label_shape():
    w = onp.array([[1.0], [0.0], [2.0], [0.5]])
    got = loss.L2Loss()(arr(PRED), arr(LABEL.reshape(12)), arr(w)).asnumpy()
    onp.testing.assert_allclose(got, (w * (PRED - LABEL) ** 2 / 2).mean(1), rtol=2e-5)
    with pytest.raises(ValueError, match="as many elements"):
        loss.L2Loss()(arr(PRED), arr(LABEL[:3]))
    with pytest.raises(TypeError, match="weight must be a number"):
        loss.L1Loss(weight="heavy")


def test_class_axis_and_batch_axis():
    x = RNG.standard_normal((2, 3, 5))
    label = RNG.integers(0, 3, (2, 5))
    log = x - onp.log(onp.exp(x).sum(1, keepdims=True))
    expect = -onp.take_along_axis(log, label[:, None], 1)[:, 0].mean(1)
    got = loss.SoftmaxCELoss(axis=1)(arr(x), arr(label)).asnumpy()
    onp.testing.assert_allclose(got, expect, rtol=2e-5)
    assert loss.L1Loss(batch_axis=1)(arr(PRED), arr(LABEL)).shape == (3,)


def test_pos_weight():
    p = onp.array([2.0, 1.0, 0.5])
    got = loss.SigmoidBCELoss()(arr(PRED), arr(BIT), None, arr(p)).asnumpy()
    expect = (p * BIT * soft(-PRED) + (1 - BIT) * soft(PRED)).mean(1)
    onp.testing.assert_allclose(got, expect, rtol=2e-5)


def test_cosine_and_sdml():
    cosine = (PRED * LABEL).sum(1) / onp.linalg.norm(PRED, axis=1) / onp.linalg.norm(LABEL, axis=1)
    sign = onp.array([1, -1, 1, -1.0])
    got = loss.CosineEmbeddingLoss(margin=0.1)(arr(PRED), arr(LABEL), arr(sign)).asnumpy()
    onp.testing.assert_allclose(
        got[:, 0], onp.where(sign == 1, 1 - cosine, onp.maximum(0, cosine - 0.1)), rtol=1e-4, atol=1e-6
    )
    d = ((PRED[:, None] - LABEL[None]) ** 2).sum(2)
    log = -d - onp.log(onp.exp(-d).sum(1, keepdims=True))
    label = onp.where(onp.eye(4) == 1, 0.7, 0.1)
    got = loss.SDMLLoss()(arr(PRED), arr(LABEL)).asnumpy()
    onp.testing.assert_allclose(got, (label * (onp.log(label) - log)).sum(1), rtol=1e-4)


def test_repr():
    assert repr(loss.L2Loss()) == "L2Loss(batch_axis=0, w=1.0)"
