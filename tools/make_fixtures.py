#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks MXNet 1.9.1 for the values that Twibil is compared with, and writes them to tests/fixtures/mxnet/.

MXNet 1.9.1 needs an old Python; the files are committed so that nobody else does:

    python3.8 -m venv mxnet && mxnet/bin/pip install mxnet==1.9.1 numpy==1.23.5
    mxnet/bin/python tools/make_fixtures.py [SUBJECT...]

One SUBJECT.npz holds cases. Its member "index" is a JSON list with a dictionary for each case: `name`, `call`, `args` and
whatever else is a plain value; the arrays of case i are the members "i.ROLE". tests/python/mxnet_fixtures.py reads them.
"""
import json
import os
import sys
import warnings

import numpy as onp

warnings.simplefilter("ignore")
import mxnet as mx  # noqa: E402
from mxnet import autograd, gluon, np, npx  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "fixtures", "mxnet")


class Cases:
    """Collects cases and writes them as one .npz."""

    def __init__(self):
        self.index, self.arrays = [], {}

    def add(self, name, call, args, arrays, **more):
        number = len(self.index)
        self.index.append(dict(name=name, call=call, args=args, roles=list(arrays), **more))
        for role, value in arrays.items():
            self.arrays[f"{number}.{role}"] = onp.asarray(value)

    def write(self, subject):
        path = os.path.join(FOLDER, subject + ".npz")
        onp.savez_compressed(path, index=onp.array(json.dumps(self.index)), **self.arrays)
        print(f"{subject}: {len(self.index)} cases, {os.path.getsize(path)} bytes")


def normal(seed, *shape, scale=1.0):
    return (onp.random.RandomState(seed).standard_normal(shape) * scale).astype("float32")


def host(value):
    return value.asnumpy() if hasattr(value, "asnumpy") else onp.asarray(value)


# ---- optimizers: some steps with fixed gradients; the weight after each ----
def optimizers():
    settings = [
        ("sgd", {}), ("sgd", dict(momentum=0.9)), ("sgd", dict(momentum=0.9, wd=0.01)),
        ("sgd", dict(momentum=0.9, wd=0.01, clip_gradient=0.5, rescale_grad=0.25)), ("sgd", dict(wd=0.1)),
        ("nag", {}), ("nag", dict(momentum=0.9)), ("nag", dict(momentum=0.9, wd=0.01, clip_gradient=0.5)),
        ("adam", {}), ("adam", dict(learning_rate=0.1, beta1=0.8, beta2=0.99, epsilon=1e-4)),
        ("adam", dict(wd=0.1)), ("adam", dict(wd=0.1, clip_gradient=0.3, rescale_grad=0.5)),
        ("adagrad", {}), ("adagrad", dict(wd=0.05, eps=1e-3)), ("adagrad", dict(clip_gradient=0.3)),
        ("rmsprop", {}), ("rmsprop", dict(gamma1=0.8, wd=0.05)), ("rmsprop", dict(centered=True)),
        ("rmsprop", dict(centered=True, gamma1=0.8, gamma2=0.7, wd=0.01, clip_gradient=0.5)),
        ("rmsprop", dict(clip_weights=0.9)),
        ("adadelta", {}), ("adadelta", dict(rho=0.8, epsilon=1e-3, wd=0.05)), ("adadelta", dict(clip_gradient=0.3)),
        ("adamax", {}), ("nadam", {}), ("ftrl", {}), ("signum", dict(momentum=0.9, wd_lh=0.01)), ("ftml", {}),
        ("lamb", {}), ("lamb", dict(wd=0.1, bias_correction=False)),
    ]
    cases = Cases()
    for name, options in settings:
        options = dict(dict(learning_rate=0.05), **options)
        try:
            optimizer = mx.optimizer.create(name, **options)
            updater = mx.optimizer.get_updater(optimizer)
            weight = mx.nd.array(normal(1, 4, 3))
            gradients = normal(2, 6, 4, 3)
            weights = []
            for gradient in gradients:
                updater(0, mx.nd.array(gradient), weight)
                weights.append(weight.asnumpy())
        except Exception as error:  # an optimizer that this MXNet cannot run is no oracle
            print("left out:", name, options, str(error).splitlines()[0])
            continue
        cases.add(f"{name} {options}", name, options, dict(weight=normal(1, 4, 3), grads=gradients, weights=weights))
    cases.write("optimizers")


# ---- losses: value and gradient of the sum ----
def losses():
    pred, other = normal(1, 4, 5), normal(2, 4, 5)
    signs = onp.sign(normal(3, 4, 5)).astype("float32")
    zero_one = (signs > 0).astype("float32")
    classes = onp.array([0, 4, 2, 2], "float32")
    chances = onp.abs(normal(4, 4, 5)) + 0.1
    chances = (chances / chances.sum(1, keepdims=True)).astype("float32")
    weight = onp.array([[1.0], [0.5], [0.0], [2.0]], "float32")
    table = [
        ("L2Loss", [{}, dict(weight=2.0), dict(batch_axis=1)], pred, [other]),
        ("L1Loss", [{}, dict(weight=0.5)], pred, [other]),
        ("SoftmaxCrossEntropyLoss", [{}, dict(weight=3.0)], pred, [classes]),
        ("SoftmaxCrossEntropyLoss", [dict(sparse_label=False)], pred, [chances]),
        ("SoftmaxCrossEntropyLoss", [dict(from_logits=True)], onp.log(chances), [classes]),
        ("SigmoidBinaryCrossEntropyLoss", [{}], pred, [zero_one]),
        ("SigmoidBinaryCrossEntropyLoss", [dict(from_sigmoid=True)], chances, [zero_one]),
        ("KLDivLoss", [{}], onp.log(chances), [chances[::-1].copy()]),
        ("KLDivLoss", [dict(from_logits=False)], pred, [chances]),
        ("HuberLoss", [{}, dict(rho=0.3)], pred, [other]),
        ("HingeLoss", [{}, dict(margin=0.5)], pred, [signs]),
        ("SquaredHingeLoss", [{}, dict(margin=0.5)], pred, [signs]),
        ("LogisticLoss", [{}], pred, [signs]),
        ("LogisticLoss", [dict(label_format="binary")], pred, [zero_one]),
        ("TripletLoss", [{}, dict(margin=0.2)], pred, [other, normal(5, 4, 5)]),
        ("PoissonNLLLoss", [{}], pred, [onp.abs(other)]),
        ("PoissonNLLLoss", [dict(from_logits=False)], chances, [onp.abs(other)]),
        ("CosineEmbeddingLoss", [{}, dict(margin=0.3)], pred, [other, onp.array([1, -1, -1, 1], "float32")]),
    ]
    cases = Cases()
    npx.reset_np()  # most losses of 1.9.1 take the old arrays only
    for name, options_list, first, rest in table:
        for options in options_list:
            for weighted in (False, True):
                if weighted and name in ("TripletLoss",):
                    continue
                try:
                    x = mx.nd.array(first)
                    x.attach_grad()
                    inputs = [mx.nd.array(r) for r in rest + ([weight] if weighted else [])]
                    with autograd.record():
                        value = getattr(gluon.loss, name)(**options)(x, *inputs)
                    value.backward()
                    arrays = dict(pred=first, loss=host(value), grad=host(x.grad))
                except Exception as error:
                    print("left out:", name, options, weighted, str(error).splitlines()[0])
                    continue
                arrays.update({f"label{i}": r for i, r in enumerate(rest)})
                if weighted:
                    arrays["sample_weight"] = weight
                cases.add(f"{name} {options} weighted={weighted}", name, options, arrays, weighted=weighted)
    cases.write("losses")


# ---- metrics ----
def metrics():
    scores = onp.abs(normal(1, 3, 8, 4)) + 0.05
    scores = (scores / scores.sum(-1, keepdims=True)).astype("float32")
    labels = onp.random.RandomState(2).randint(0, 4, (3, 8)).astype("float32")
    two = onp.abs(normal(3, 3, 8, 2)) + 0.05
    two = (two / two.sum(-1, keepdims=True)).astype("float32")
    binary = onp.random.RandomState(4).randint(0, 2, (3, 8)).astype("float32")
    values, targets = normal(5, 3, 8, 1), normal(6, 3, 8, 1)
    table = [
        ("Accuracy", {}, labels, scores), ("TopKAccuracy", dict(top_k=2), labels, scores),
        ("TopKAccuracy", dict(top_k=3), labels, scores), ("F1", {}, binary, two), ("F1", dict(average="micro"), binary, two),
        ("MCC", {}, binary, two), ("MCC", dict(average="micro"), binary, two), ("MAE", {}, targets, values),
        ("MSE", {}, targets, values), ("RMSE", {}, targets, values), ("CrossEntropy", {}, labels, scores),
        ("NegativeLogLikelihood", {}, labels, scores), ("Perplexity", dict(ignore_label=None), labels, scores),
        ("Perplexity", dict(ignore_label=0), labels, scores), ("PearsonCorrelation", {}, targets, values),
        ("PCC", {}, labels, scores), ("Loss", {}, targets, values),
    ]
    cases = Cases()
    for name, options, label, pred in table:
        metric = getattr(mx.metric, name)(**options)
        history = []
        for l, p in zip(label, pred):
            metric.update([mx.nd.array(l)], [mx.nd.array(p)])
            history.append(metric.get()[1])
        metric_name = metric.get()[0]
        cases.add(f"{name} {options}", name, options, dict(labels=label, preds=pred, values=history), metric=metric_name)
    cases.write("metrics")


# ---- learning rates: the value at every update ----
def lr_schedulers():
    warm = dict(warmup_steps=5, warmup_begin_lr=0.01)
    table = [
        ("FactorScheduler", dict(step=4, factor=0.5, base_lr=0.4)),
        ("FactorScheduler", dict(step=3, factor=0.5, base_lr=0.4, stop_factor_lr=0.1)),
        ("FactorScheduler", dict(step=6, factor=0.7, base_lr=0.4, **warm)),
        ("MultiFactorScheduler", dict(step=[5, 12, 18], factor=0.3, base_lr=0.4)),
        ("MultiFactorScheduler", dict(step=[8, 12], factor=0.3, base_lr=0.4, **warm)),
        ("PolyScheduler", dict(max_update=20, base_lr=0.4, pwr=2)),
        ("PolyScheduler", dict(max_update=20, base_lr=0.4, pwr=1, final_lr=0.05, **warm)),
        ("CosineScheduler", dict(max_update=20, base_lr=0.4)),
        ("CosineScheduler", dict(max_update=20, base_lr=0.4, final_lr=0.05, **warm)),
        ("CosineScheduler", dict(max_update=20, base_lr=0.4, warmup_mode="constant", **warm)),
    ]
    cases = Cases()
    for name, options in table:
        scheduler = getattr(mx.lr_scheduler, name)(**options)
        cases.add(f"{name} {options}", name, options, dict(rates=[float(scheduler(i)) for i in range(30)]))
    cases.write("lr_schedulers")


# ---- operators: outputs, and gradients of a fixed weighted sum of the first output ----
def call_of(call):
    where, name = call.split(".")
    return getattr({"np": np, "npx": npx, "nd": mx.nd}[where], name)


def run(cases, call, args, inputs, name=None, differentiate=True, training=False, keep=()):
    """`inputs` by role, in order; those of integer type get no gradient. `keep`: inputs changed by the call."""
    legacy = call.startswith("nd.")
    make = (lambda v: mx.nd.array(v, dtype=v.dtype)) if legacy else (lambda v: np.array(v, dtype=v.dtype))
    values = {role: make(onp.asarray(v)) for role, v in inputs.items()}
    wanted = [r for r, v in inputs.items() if onp.asarray(v).dtype == onp.float32 and r not in keep] if differentiate else []
    for role in wanted:
        values[role].attach_grad()
    plain = {k: onp.dtype(v).name if isinstance(v, type) else v for k, v in args.items()}
    try:
        with autograd.record(train_mode=training):
            outputs = call_of(call)(*values.values(), **args)
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        arrays = {f"in.{r}": v for r, v in inputs.items()}
        arrays.update({f"out.{i}": host(o) for i, o in enumerate(outputs)})
        if wanted:
            head = normal(99, *outputs[0].shape)
            outputs[0].backward(make(head))
            arrays["head"] = head
            arrays.update({f"grad.{r}": host(values[r].grad) for r in wanted})
        arrays.update({f"after.{r}": host(values[r]) for r in keep})
    except Exception as error:
        print("left out:", call, args, str(error).splitlines()[0][:150])
        return
    cases.add(name or f"{call} {plain}", call, plain, arrays, training=training)


def pooling():
    cases = Cases()
    image = normal(1, 2, 3, 7, 6)
    for kind in ("max", "avg", "sum", "lp"):
        extra = dict(p_value=2) if kind == "lp" else {}
        for convention in ("valid", "full"):
            for kernel, stride, pad in [((2, 2), (2, 2), (0, 0)), ((3, 3), (2, 2), (1, 1)), ((3, 2), (2, 3), (1, 0)),
                                        ((3, 3), (1, 1), (0, 0)), ((2, 3), (3, 2), (0, 1))]:
                options = dict(kernel=kernel, stride=stride, pad=pad, pool_type=kind, pooling_convention=convention, **extra)
                run(cases, "npx.pooling", options, dict(data=image))
                if kind == "avg":
                    run(cases, "npx.pooling", dict(options, count_include_pad=False), dict(data=image))
        run(cases, "npx.pooling", dict(kernel=(2, 2), global_pool=True, pool_type=kind, **extra), dict(data=image))
    run(cases, "npx.pooling", dict(kernel=(3,), stride=(2,), pad=(1,), pool_type="max"), dict(data=normal(2, 2, 3, 9)))
    run(cases, "npx.pooling", dict(kernel=(3,), stride=(2,), pad=(1,), pool_type="avg", pooling_convention="full"),
        dict(data=normal(2, 2, 3, 8)))
    for kind in ("max", "avg"):
        run(cases, "npx.pooling", dict(kernel=(2, 3, 2), stride=(2, 2, 1), pad=(1, 1, 0), pool_type=kind),
            dict(data=normal(3, 1, 2, 4, 5, 4)))
    cases.write("pooling")


def convolution():
    cases = Cases()

    def conv(shape, filters, kernel, transposed=False, bias=True, groups=1, **options):
        weight = (shape[1], filters // groups, *kernel) if transposed else (filters, shape[1] // groups, *kernel)
        inputs = dict(data=normal(1, *shape), weight=normal(2, *weight, scale=0.3))
        if bias:
            inputs["bias"] = normal(3, filters)
        run(cases, "npx.deconvolution" if transposed else "npx.convolution",
            dict(kernel=kernel, num_filter=filters, num_group=groups, no_bias=not bias, **options), inputs)
    conv((2, 3, 9), 4, (3,), stride=(2,), pad=(1,))
    conv((2, 3, 9), 4, (3,), dilate=(2,), bias=False)
    conv((2, 3, 7, 6), 4, (3, 3))
    conv((2, 3, 7, 6), 4, (3, 3), pad=(1, 1))
    conv((2, 3, 7, 6), 4, (1, 1))
    conv((2, 3, 7, 6), 4, (3, 2), stride=(2, 1), pad=(0, 2), dilate=(2, 1), bias=False)
    conv((2, 4, 7, 6), 6, (3, 3), pad=(1, 1), groups=2)
    conv((2, 4, 7, 6), 4, (3, 3), stride=(2, 2), pad=(1, 1), groups=4)
    conv((1, 2, 4, 5, 4), 3, (2, 3, 2), stride=(1, 2, 1), pad=(1, 1, 0))
    conv((2, 3, 5), 4, (3,), transposed=True, stride=(2,), pad=(1,))
    conv((2, 3, 4, 5), 4, (3, 3), transposed=True)
    conv((2, 3, 4, 5), 4, (3, 3), transposed=True, stride=(2, 2), pad=(1, 1), adj=(1, 1))
    conv((2, 3, 4, 5), 4, (3, 2), transposed=True, stride=(2, 3), bias=False, dilate=(1, 2))
    conv((2, 4, 4, 5), 6, (3, 3), transposed=True, groups=2, pad=(1, 1))
    conv((1, 2, 3, 3, 3), 2, (2, 2, 2), transposed=True, stride=(2, 2, 2))
    cases.write("convolution")


def normalization():
    cases = Cases()
    for shape, axis in [((4, 3), 1), ((2, 3, 4, 5), 1), ((2, 4, 3), -1)]:
        c = shape[axis]
        for training in (True, False):
            for options in ({}, dict(fix_gamma=False), dict(fix_gamma=False, use_global_stats=True),
                            dict(fix_gamma=False, momentum=0.7, eps=1e-2)):
                inputs = dict(data=normal(1, *shape), gamma=normal(2, c) + 1, beta=normal(3, c),
                              running_mean=normal(4, c, scale=0.2), running_var=onp.abs(normal(5, c)) + 0.5)
                run(cases, "npx.batch_norm", dict(axis=axis, **options), inputs, training=training,
                    keep=("running_mean", "running_var"), name=f"npx.batch_norm {shape} axis={axis} {options} {training}")
    for axis in (-1, 1):
        run(cases, "npx.layer_norm", dict(axis=axis), dict(data=normal(1, 3, 4, 5), gamma=normal(2, (3, 4, 5)[axis]) + 1,
                                                           beta=normal(3, (3, 4, 5)[axis])))
    run(cases, "npx.layer_norm", dict(axis=-1, eps=0.1), dict(data=normal(1, 3, 5), gamma=normal(2, 5) + 1, beta=normal(3, 5)))
    run(cases, "nd.InstanceNorm", dict(eps=1e-3), dict(data=normal(1, 2, 3, 4, 4), gamma=normal(2, 3) + 1, beta=normal(3, 3)))
    run(cases, "nd.L2Normalization", dict(mode="instance"), dict(data=normal(1, 2, 3, 4)))
    run(cases, "nd.L2Normalization", dict(mode="channel"), dict(data=normal(1, 2, 3, 4)))
    run(cases, "nd.LRN", dict(nsize=3, alpha=0.1, beta=0.75, knorm=2), dict(data=normal(1, 2, 5, 3, 3)))
    cases.write("normalization")


def softmax():
    cases = Cases()
    data = normal(1, 3, 4, 5, scale=2)
    for call in ("npx.softmax", "npx.log_softmax"):
        for options in ({}, dict(axis=1), dict(axis=0), dict(temperature=0.5), dict(axis=-1, temperature=3.0)):
            run(cases, call, options, dict(data=data))
        run(cases, call, {}, dict(data=data + 1e4), name=call + " of large numbers")
    for call in ("npx.softmax", "nd.softmax"):
        run(cases, call, dict(axis=-1, use_length=True), dict(data=data[:, 0], length=onp.array([1, 5, 3], "int32")))
        run(cases, call, dict(axis=1, use_length=True),
            dict(data=data, length=onp.random.RandomState(3).randint(1, 5, (3, 5)).astype("int32")))
    run(cases, "nd.softmin", dict(axis=-1), dict(data=data))
    cases.write("softmax")


def activations():
    cases = Cases()
    data = onp.concatenate([normal(1, 3, 4, 2).ravel(), [0, -0.0, 20, -20, 100, -100, 1e-3, -1e-3]]).astype("float32")
    data = data.reshape(4, 4, 2)
    for kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign"):
        run(cases, "npx.activation", dict(act_type=kind), dict(data=data))
    for options in (dict(act_type="leaky", slope=0.1), dict(act_type="elu", slope=0.7), dict(act_type="selu"), dict(act_type="gelu")):
        run(cases, "npx.leaky_relu", options, dict(data=data))
    for gamma in (normal(2, 4), normal(2, 1)):
        run(cases, "npx.leaky_relu", dict(act_type="prelu"), dict(data=data, gamma=gamma), name=f"npx.leaky_relu prelu {gamma.shape}")
    for call, options in (("npx.relu", {}), ("npx.sigmoid", {}), ("npx.smooth_l1", dict(scalar=1.0)),
                          ("npx.smooth_l1", dict(scalar=2.0)), ("nd.hard_sigmoid", {}), ("nd.hard_sigmoid", dict(alpha=0.3, beta=0.4)),
                          ("npx.erf", {}), ("nd.softsign", {})):
        run(cases, call, options, dict(data=data if call != "npx.erf" else onp.clip(data, -5, 5)))
    run(cases, "npx.erfinv", {}, dict(data=onp.tanh(data * 0.5).clip(-0.99, 0.99)))
    positive = onp.abs(data).clip(0.05, 20)
    for call in ("npx.gamma", "npx.gammaln"):
        run(cases, call, {}, dict(data=positive))
    cases.write("activations")


def indexing():
    cases = Cases()
    data = normal(1, 4, 5)
    ties = onp.array([[3, 1, 3, 2, 1], [0, 0, 0, 0, 0], [5, 4, 3, 2, 1], [1, 2, 3, 4, 5]], "float32")
    for kind in ("indices", "value", "mask", "both"):
        for options in (dict(k=2), dict(k=3, is_ascend=True), dict(k=1, axis=0), dict(k=2, axis=None), dict(k=0)):
            run(cases, "npx.topk", dict(ret_typ=kind, **options), dict(data=data), differentiate=False)
        run(cases, "npx.topk", dict(ret_typ=kind, k=3), dict(data=ties), differentiate=False, name=f"npx.topk ties {kind}")
    run(cases, "npx.topk", dict(ret_typ="indices", k=2, dtype="int32"), dict(data=data), differentiate=False)
    run(cases, "npx.topk", dict(ret_typ="value", k=2), dict(data=data))
    index = onp.array([0, 4, 7, -2], "int32")
    for mode in ("clip", "wrap"):
        for keepdims in (False, True):
            run(cases, "npx.pick", dict(axis=-1, mode=mode, keepdims=keepdims), dict(data=data, index=index))
    run(cases, "npx.pick", dict(axis=0), dict(data=data, index=onp.array([0, 1, 2, 3, 1], "int32")))
    for options in ({}, dict(on_value=5.0, off_value=-1.0), dict(dtype="int32")):
        run(cases, "npx.one_hot", dict(depth=4, **options), dict(data=onp.array([[0, 3, -1], [4, 1, 2]], "int32")), differentiate=False)
    run(cases, "npx.gather_nd", {}, dict(data=normal(2, 3, 4, 2), indices=onp.array([[0, 2, 0, 1], [3, 1, 3, -1]], "int32")))
    run(cases, "npx.gather_nd", {}, dict(data=data, indices=onp.array([[1, 1, 3]], "int32")))
    run(cases, "nd.scatter_nd", dict(shape=(3, 4)), dict(data=normal(3, 3), indices=onp.array([[0, 2, 1], [3, 1, 0]], "int32")))
    for mode in ("clip", "wrap"):
        run(cases, "nd.take", dict(axis=0, mode=mode), dict(data=data, indices=onp.array([[0, -1], [3, 9]], "int32")))
        run(cases, "nd.take", dict(axis=1, mode=mode), dict(data=data, indices=onp.array([0, -1, 3, 9], "int32")))
    run(cases, "npx.embedding", dict(input_dim=6, output_dim=3), dict(data=onp.array([[0, 5, 2], [2, 2, 9]], "int32"), weight=normal(4, 6, 3)))
    lengths = onp.array([2, 4, 1], "float32")
    sequence = normal(5, 4, 3, 2)
    for call, options in (("npx.sequence_mask", dict(use_sequence_length=True, value=-1.0)), ("nd.SequenceMask", dict(use_sequence_length=True)),
                          ("nd.SequenceLast", dict(use_sequence_length=True)), ("nd.SequenceReverse", dict(use_sequence_length=True))):
        run(cases, call, options, dict(data=sequence, sequence_length=lengths))
    for options in (dict(axis=-1), dict(axis=0, is_ascend=False)):
        run(cases, "nd.sort", options, dict(data=data), differentiate=False)
        run(cases, "nd.argsort", options, dict(data=data), differentiate=False)
    run(cases, "npx.arange_like", dict(axis=1), dict(data=data), differentiate=False)
    run(cases, "npx.arange_like", dict(start=1.0, step=2.0, repeat=2), dict(data=normal(6, 2, 4)), differentiate=False)
    run(cases, "npx.batch_dot", {}, dict(a=normal(8, 2, 3, 4), b=normal(9, 2, 4, 5)))
    run(cases, "npx.batch_dot", dict(transpose_a=True, transpose_b=True), dict(a=normal(8, 2, 4, 3), b=normal(9, 2, 5, 4)))
    for options, weight in ((dict(num_hidden=3), normal(10, 3, 5)), (dict(num_hidden=3, flatten=False), normal(10, 3, 5))):
        run(cases, "npx.fully_connected", options, dict(x=normal(11, 2, 5), weight=weight, bias=normal(12, 3)))
    run(cases, "npx.fully_connected", dict(num_hidden=3, flatten=False), dict(x=normal(11, 2, 4, 5), weight=normal(10, 3, 5), bias=normal(12, 3)))
    run(cases, "npx.fully_connected", dict(num_hidden=3, no_bias=True), dict(x=normal(11, 2, 2, 5), weight=normal(10, 3, 10)))
    for shape in ((-2, -1), (-1, 2, -2), (-2, -2, -1), (-4,)):
        run(cases, "npx.reshape", dict(newshape=shape), dict(a=normal(13, 2, 3, 5)))
    for shape in ((0, -1), (-1, 0), (-2,), (0, -2), (-3, 0), (-4, 1, 2, -2), (0, -4, -1, 3, 0)):
        run(cases, "nd.reshape", dict(shape=shape), dict(data=normal(13, 2, 3, 5)))
    cases.write("indexing")


# ---- .params files, as MXNet writes them ----
DTYPES = ["float32", "float64", "float16", "uint8", "int8", "int32", "int64"]


def sample(dtype, *shape):
    count = int(onp.prod(shape))
    return (onp.arange(count) % 5).reshape(shape).astype(dtype)


def legacy_file(version):
    """The layouts of MXNet before 1.0, which today's no longer writes: 0 is 0.8's, 1 is 0.12's."""
    import struct
    body = b""
    for dtype, flag in (("float32", 0), ("int32", 4)):
        value = sample(dtype, 2, 3)
        if version == 0:
            body += struct.pack("<I2I", 2, 2, 3)
        else:
            body += struct.pack("<Ii2q", 0xF993FAC8, 2, 2, 3)
        body += struct.pack("<iii", 1, 0, flag) + value.tobytes()
    names = b"".join(struct.pack("<Q", len(n)) + n for n in (b"arg:a", b"aux:b"))
    return struct.pack("<QQQ", 0x112, 0, 2) + body + struct.pack("<Q", 2) + names


def params():
    folder = os.path.join(FOLDER, "params")
    os.makedirs(folder, exist_ok=True)
    at = lambda name: os.path.join(folder, name + ".params")
    npx.reset_np()
    mx.nd.save(at("list"), [mx.nd.array(sample(d, 2, 3), dtype=d) for d in DTYPES])
    mx.nd.save(at("names"), {"arg:weight": mx.nd.array(sample("float32", 2, 3)), "aux:mean": mx.nd.array(sample("float32", 4))})
    mx.nd.save(at("sparse"), {"w": mx.nd.array(sample("float32", 2, 3)).tostype("row_sparse")})
    mx.nd.save(at("empty"), [])
    for version in (0, 1):
        with open(at(f"version{version}"), "wb") as f:
            f.write(legacy_file(version))
        mx.nd.load(at(f"version{version}"))  # it must be right to be an example
    npx.set_np()
    npx.save(at("numpy_shapes"), {"scalar": np.array(3.0), "empty": np.zeros((0, 3)), "flags": np.array([True, False, True], dtype="bool"),
                                  "matrix": np.array(sample("float32", 2, 3))})
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(3, 3, in_channels=2), gluon.nn.BatchNorm(in_channels=3), gluon.nn.Dense(2))
    net.initialize(mx.init.Normal(0.3))
    mx.random.seed(1)
    x = np.array(normal(1, 2, 2, 6, 6))
    with autograd.record():
        net(x)
    net.save_parameters(at("gluon"))
    cases = Cases()
    cases.add("gluon", "Conv2D(3, 3), BatchNorm, Dense(2)", {}, dict(x=host(x), y=host(net(x)),
              **{k: host(v.data()) for k, v in net._collect_params_with_prefix().items()}))
    cases.write("params_gluon")
    print("params:", {n: os.path.getsize(os.path.join(folder, n)) for n in sorted(os.listdir(folder))})


SUBJECTS = [optimizers, losses, metrics, lr_schedulers, pooling, convolution, normalization, softmax, activations, indexing, params]


def main():
    os.makedirs(FOLDER, exist_ok=True)
    wanted = sys.argv[1:]
    for subject in SUBJECTS:
        if not wanted or subject.__name__ in wanted:
            npx.set_np()
            subject()


if __name__ == "__main__":
    main()
