# SPDX-License-Identifier: Apache-2.0
"""Metrics against NumPy; names, lists, dicts, local and global values, errors."""

import math

import numpy as onp
import pytest

from twibil import gluon, metric, np

RNG = onp.random.default_rng(5)


def arr(v, dtype="float32"):
    return np.array(onp.asarray(v, dtype=dtype))


def test_accuracy():
    m = metric.create("acc")
    m.update(arr([0, 1, 1]), arr([[0.9, 0.1], [0.3, 0.7], [0.8, 0.2]]))
    m.update([arr([1])], [arr([1])])
    assert m.get() == ("accuracy", 0.75)
    assert gluon.metric.Accuracy is metric.Accuracy
    with pytest.raises(ValueError, match="got 2 and 3"):
        m.update(arr([0, 1]), arr([0, 1, 1]))
    with pytest.raises(ValueError, match="as many labels as predictions"):
        m.update([arr([0])], [])


def test_top_k():
    m = metric.TopKAccuracy(top_k=2)
    m.update(arr([2, 0]), arr([[0.1, 0.5, 0.4], [0.1, 0.5, 0.4]]))
    assert m.get() == ("top_k_accuracy_2", 0.5)
    with pytest.raises(ValueError, match="above 1"):
        metric.TopKAccuracy(1)


def test_f1_and_mcc():
    label, pred = onp.array([1, 0, 1, 1, 0]), onp.array([1, 1, 0, 1, 0])
    scores = onp.stack([1 - pred, pred], 1)
    m, c = metric.F1(), metric.MCC()
    m.update(arr(label), arr(scores)), c.update(arr(label), arr(scores))
    tp, fp, fn, tn = 2, 1, 1, 1
    assert m.get()[1] == pytest.approx(2 * tp / (2 * tp + fp + fn))
    assert c.get()[1] == pytest.approx((tp * tn - fp * fn) / math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))
    micro = metric.F1(average="micro")
    for part in (slice(0, 2), slice(2, 5)):
        micro.update(arr(label[part]), arr(scores[part]))
    assert micro.get()[1] == pytest.approx(m.get()[1])
    column = metric.F1()
    column.update(arr(label[:, None]), arr(pred[:, None]))
    assert column.get()[1] == m.get()[1]
    with pytest.raises(ValueError, match="labels must be 0 or 1"):
        m.update(arr([0, 1, 2]), arr(scores[:3]))


def test_errors_of_numbers_do_not_depend_on_batches():
    label, pred = RNG.standard_normal((7, 2)), RNG.standard_normal((7, 2))
    d = label - pred
    for kind, expect in ((metric.MAE, abs(d).mean()), (metric.MSE, (d**2).mean()), (metric.RMSE, (d**2).mean() ** 0.5)):
        m = kind()
        m.update(arr(label[:3]), arr(pred[:3])), m.update(arr(label[3:]), arr(pred[3:]))
        assert m.get()[1] == pytest.approx(expect, rel=1e-6)
    with pytest.raises(ValueError, match=r"\[7, 2\] and \[3, 2\]"):
        metric.MAE().update(arr(label), arr(pred[:3]))


def test_likelihoods():
    p = onp.array([[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]])
    label = [1, 0, 1]
    nll = -onp.log([0.8, 0.6, 0.5]).mean()
    for name in ("ce", "nll_loss"):
        m = metric.create(name)
        m.update(arr(label), arr(p))
        assert m.get()[1] == pytest.approx(nll, rel=1e-5)
    m = metric.Perplexity(ignore_label=1)
    m.update([arr(label)], [arr(p)])
    assert m.get()[1] == pytest.approx(1 / 0.6, rel=1e-5)
    with pytest.raises(IndexError, match="labels must be from 0 to 1"):
        metric.CrossEntropy().update(arr([0, 2, 1]), arr(p))


def test_pearson():
    x = RNG.standard_normal(50)
    y = x + 0.3 * RNG.standard_normal(50)
    macro, micro = metric.PearsonCorrelation(), metric.PearsonCorrelation(average="micro")
    for part in (slice(0, 20), slice(20, 50)):
        macro.update(arr(x[part]), arr(y[part])), micro.update(arr(x[part]), arr(y[part]))
    assert micro.get()[1] == pytest.approx(onp.corrcoef(x, y)[0, 1], rel=1e-5)
    parts = [onp.corrcoef(x[p], y[p])[0, 1] for p in (slice(0, 20), slice(20, 50))]
    assert macro.get()[1] == pytest.approx(onp.mean(parts), rel=1e-5)


def test_loss_distance_cosine():
    m = metric.Loss()
    m.update(None, arr([1, 2, 3])), m.update(None, [arr([6])])
    assert m.get() == ("loss", 3.0)
    a, b = RNG.standard_normal((4, 3)), RNG.standard_normal((4, 3))
    d, c = metric.MeanPairwiseDistance(), metric.MeanCosineSimilarity()
    d.update(arr(a), arr(b)), c.update(arr(a), arr(b))
    assert d.get()[1] == pytest.approx(onp.linalg.norm(a - b, axis=1).mean(), rel=1e-5)
    cosine = (a * b).sum(1) / onp.linalg.norm(a, axis=1) / onp.linalg.norm(b, axis=1)
    assert c.get()[1] == pytest.approx(cosine.mean(), rel=1e-5)


def test_composite_and_custom():
    def gap(label, pred):
        return abs(label - pred).max()

    m = metric.create(["mae", gap])
    m.update(arr([1, 2]), arr([1, 4]))
    assert m.get() == (["mae", "gap"], [1.0, 2.0])
    assert dict(m.get_name_value())["gap"] == 2.0
    with pytest.raises(IndexError, match="2 metrics"):
        m.get_metric(4)
    pairs = metric.np(lambda label, pred: (3.0, 2), name="pair")
    pairs.update(arr([0]), arr([0]))
    assert pairs.get() == ("pair", 1.5)


def test_local_and_global():
    m = metric.MAE()
    assert math.isnan(m.get()[1])
    m.update(arr([1]), arr([2]))
    m.reset_local()
    m.update(arr([1]), arr([4]))
    assert m.get()[1] == 3 and m.get_global()[1] == 2
    m.reset()
    assert math.isnan(m.get_global()[1])


def test_update_dict_and_names():
    m = metric.MSE(output_names=["out"], label_names=["y"])
    m.update_dict({"y": arr([1]), "z": arr([5])}, {"out": arr([3]), "other": arr([9])})
    assert m.get()[1] == 4
    with pytest.raises(ValueError, match="Did you mean 'accuracy'"):
        metric.create("acuracy")
    assert str(m) == "EvalMetric: {'mse': 4.0}"
