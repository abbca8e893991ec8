# SPDX-License-Identifier: Apache-2.0
"""Writes tests/fixtures/mxnet/symbols: graphs as MXNet 1.9.1 saves them, with parameters, inputs and MXNet's results.

Run it with MXNet's own Python (mxnet==1.9.1, numpy==1.23.5): python make_symbol_fixtures.py FOLDER
Each case is one .npz: `json`, `style`, and arrays arg.NAME, aux.NAME, out.K; where gradients are compared grad.NAME (of
the sum of all outputs, in training mode, as outputs then are train.K).
"""
import json
import os
import sys

import mxnet as mx
import numpy as np
from mxnet import sym as S

rng = np.random.RandomState(7)


# ---- the six networks, narrow ----

class Net:
    def __init__(self, narrow):
        self.narrow, self.count = narrow, 0

    def _name(self, kind):
        self.count += 1
        return f"{kind}{self.count}"

    def width(self, n):
        return max(2, n // self.narrow)

    def conv(self, x, n, kernel, stride=1, pad=0, bias=True):
        pair = lambda v: tuple(v) if isinstance(v, tuple) else (v, v)  # noqa: E731
        return S.Convolution(x, num_filter=self.width(n), kernel=pair(kernel), stride=pair(stride), pad=pair(pad),
                             no_bias=not bias, name=self._name("conv"))

    def relu(self, x):
        return S.Activation(x, act_type="relu", name=self._name("relu"))

    def bn(self, x):
        return S.BatchNorm(x, fix_gamma=False, eps=2e-5, name=self._name("bn"))

    def cbr(self, x, n, kernel, stride=1, pad=0):
        return self.relu(self.bn(self.conv(x, n, kernel, stride, pad)))

    def pool(self, x, kind, kernel, stride=1, pad=0, **more):
        return S.Pooling(x, pool_type=kind, kernel=(kernel,) * 2, stride=(stride,) * 2, pad=(pad,) * 2,
                         name=self._name("pool"), **more)

    def everywhere(self, x):
        return S.Pooling(x, pool_type="avg", global_pool=True, kernel=(7, 7), name=self._name("pool"))

    def dense(self, x, n):
        return S.FullyConnected(x, num_hidden=self.width(n), name=self._name("fc"))

    def top(self, x):
        return S.SoftmaxOutput(self.dense(S.Flatten(x), 1000), name="softmax")


def alexnet():
    b = Net(19)
    x = S.Variable("data")
    x = b.pool(S.LRN(b.relu(b.conv(x, 96, 11, 4)), nsize=5), "max", 3, 2)
    x = b.pool(S.LRN(b.relu(b.conv(x, 256, 5, 1, 2)), nsize=5, alpha=0.001, knorm=1), "max", 3, 2)
    for n in (384, 384, 256):
        x = b.relu(b.conv(x, n, 3, 1, 1))
    x = S.Flatten(b.pool(x, "max", 3, 2))
    x = S.Dropout(b.relu(b.dense(x, 4096)), p=0.5)
    return b.top(b.relu(b.dense(x, 4096))), {"data": (2, 3, 115, 115)}


def vgg16():
    b = Net(32)
    x = S.Variable("data")
    for repeat, n in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(repeat):
            x = b.relu(b.conv(x, n, 3, 1, 1))
        x = b.pool(x, "max", 2, 2)
    x = b.relu(b.dense(S.Flatten(x), 4096))
    return b.top(x), {"data": (2, 3, 32, 32)}


def inception_bn():
    b = Net(16)

    def keep(x, n1, r3, n3, rd, nd, kind, proj):
        c = b.cbr(b.cbr(x, r3, 1), n3, 3, 1, 1)
        d = b.cbr(b.cbr(b.cbr(x, rd, 1), nd, 3, 1, 1), nd, 3, 1, 1)
        return S.Concat(b.cbr(x, n1, 1), c, d, b.cbr(b.pool(x, kind, 3, 1, 1), proj, 1))

    def shrink(x, r3, n3, rd, nd):
        d = b.cbr(b.cbr(b.cbr(x, rd, 1), nd, 3, 1, 1), nd, 3, 2, 1)
        return S.Concat(b.cbr(b.cbr(x, r3, 1), n3, 3, 2, 1), d, b.pool(x, "max", 3, 2, 1))

    x = b.pool(b.cbr(S.Variable("data"), 64, 7, 2, 3), "max", 3, 2, pooling_convention="full")
    x = keep(x, 64, 64, 64, 64, 96, "avg", 32)
    x = shrink(x, 128, 160, 64, 96)
    x = keep(x, 224, 64, 96, 96, 128, "max", 128)
    return b.top(b.everywhere(x)), {"data": (2, 3, 48, 48)}


def inception_v3():
    b = Net(16)
    x = b.cbr(S.Variable("data"), 32, 3, 2)
    a = S.concat(b.cbr(x, 64, 1), b.cbr(b.cbr(x, 48, 1), 64, 5, 1, 2), b.cbr(b.pool(x, "avg", 3, 1, 1), 32, 1), dim=1)
    c = S.concat(b.cbr(a, 192, 1), b.cbr(b.cbr(a, 128, (1, 7), 1, (0, 3)), 192, (7, 1), 1, (3, 0)),
                 b.pool(a, "avg", 3, 1, 1, count_include_pad=False), dim=1)
    return b.top(b.everywhere(c)), {"data": (2, 3, 35, 35)}


def resnet(units):
    def build():
        b = Net(32)
        x = b.pool(b.cbr(S.Variable("data"), 64, 7, 2, 3), "max", 3, 2, 1)
        for stage, (count, n) in enumerate(zip(units, (64, 128, 256, 512))):
            for i in range(count):
                stride = 2 if i == 0 and stage else 1
                y = b.bn(b.conv(b.cbr(b.cbr(x, n, 1), n, 3, stride, 1), 4 * n, 1, bias=False))
                skip = b.bn(b.conv(x, 4 * n, 1, stride, bias=False)) if i == 0 else x
                x = b.relu(y + skip)
        return b.top(b.everywhere(x)), {"data": (1, 3, 32, 32)}
    return build


# ---- sequences, detection ----

def fused_rnn(mode, **more):
    def build():
        more_in = {"state_cell": S.Variable("state_cell")} if mode == "lstm" else {}
        y = S.RNN(S.Variable("data"), S.Variable("parameters"), S.Variable("state"), mode=mode, state_size=4,
                  state_outputs=True, name="rnn", **more_in, **more)
        return y, {"data": (5, 2, 3)}
    return build


def unrolled_lstm():
    cell = mx.rnn.LSTMCell(num_hidden=4, prefix="lstm_")
    data = S.Embedding(S.Variable("data"), input_dim=10, output_dim=3, name="embed")
    outputs, _ = cell.unroll(3, inputs=data, layout="NTC", merge_outputs=True)
    y = S.FullyConnected(S.Reshape(outputs, shape=(-1, 4)), num_hidden=10, name="pred")
    return S.SoftmaxOutput(y, S.Reshape(S.Variable("softmax_label"), shape=(-1,)), name="softmax"), {
        "data": rng.randint(0, 10, (2, 3)), "softmax_label": rng.randint(0, 10, (2, 3))}


def gluon_lstm():
    net = mx.gluon.nn.HybridSequential(prefix="net_")
    net.add(mx.gluon.rnn.LSTM(4, num_layers=2, bidirectional=True, prefix="lstm_"), mx.gluon.nn.Dense(3, flatten=False, prefix="dense_"))
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((5, 2, 3)))
    net.export("/tmp/gluon_lstm")
    return S.load("/tmp/gluon_lstm-symbol.json"), {"data": (5, 2, 3)}


def ssd_parts():
    b = Net(16)
    x = b.cbr(S.Variable("data"), 64, 3, 2, 1)
    anchors, classes, boxes = [], [], []
    for i, (sizes, ratios) in enumerate((((0.2, 0.27), (1, 2, 0.5)), ((0.5, 0.6), (1, 2, 0.5)))):
        k = len(sizes) + len(ratios) - 1
        anchors.append(S.contrib.MultiBoxPrior(x, sizes=sizes, ratios=ratios, clip=bool(i), name=f"prior{i}"))
        c = S.Convolution(x, num_filter=k * 3, kernel=(3, 3), pad=(1, 1), name=f"class{i}")
        classes.append(S.Flatten(S.transpose(c, axes=(0, 2, 3, 1))))
        c = S.Convolution(x, num_filter=k * 4, kernel=(3, 3), pad=(1, 1), name=f"box{i}")
        boxes.append(S.Flatten(S.transpose(c, axes=(0, 2, 3, 1))))
        x = b.pool(b.cbr(x, 64, 3, 1, 1), "max", 2, 2)
    classes = S.transpose(S.Reshape(S.Concat(*classes), shape=(0, -1, 3)), axes=(0, 2, 1))
    return S.Concat(*anchors, dim=1), classes, S.Concat(*boxes)


def ssd():
    anchors, classes, boxes = ssd_parts()
    return S.contrib.MultiBoxDetection(S.softmax(classes, axis=1), boxes, anchors, nms_threshold=0.45,
                                       variances=(0.1, 0.1, 0.2, 0.2), nms_topk=20, name="detection"), {"data": (1, 3, 16, 16)}


def ssd_training():
    anchors, classes, boxes = ssd_parts()
    target, mask, chosen = S.contrib.MultiBoxTarget(anchors, S.Variable("label"), classes, overlap_threshold=0.5,
                                                    negative_mining_ratio=3, name="target")
    p = S.SoftmaxOutput(classes, chosen, ignore_label=-1, use_ignore=True, multi_output=True, normalization="valid",
                        name="class_prob")
    loss = S.MakeLoss(S.smooth_l1(mask * (boxes - target), scalar=1.0), grad_scale=1, normalization="valid", name="box_loss")
    return S.Group([p, loss, S.BlockGrad(chosen, name="chosen")]), {
        "data": (2, 3, 16, 16), "label": np.array([[[0, .1, .1, .5, .6]], [[1, .3, .4, .9, .9]]])}


# ---- operators: one graph each ----

x4, x3, x2 = (2, 4, 6, 6), (2, 3, 4), (3, 4)
D, E = S.Variable("data"), S.Variable("other")
UNARY = {
    "reshape_codes": (x4, lambda d: S.Reshape(d, shape=(0, -4, 2, -1, -3))), "reshape_rest": (x4, lambda d: S.reshape(d, shape=(-2, 1))),
    "reshape_reverse": (x3, lambda d: S.reshape(d, shape=(-1, 0), reverse=True)),
    "slice_none": (x3, lambda d: S.slice(d, begin=(None, 1), end=(None, 3))), "slice_step": (x3, lambda d: S.slice(d, begin=(0, 2, None), end=(2, 0, None), step=(1, -1, 2))),
    "slice_axis": (x3, lambda d: S.slice_axis(d, axis=2, begin=-3, end=None)), "split": (x4, lambda d: S.Group(list(S.SliceChannel(d, num_outputs=2, name="cut")))),
    "split_squeeze": (x3, lambda d: S.SliceChannel(d, num_outputs=3, axis=1, squeeze_axis=True)[1]), "split_v2": (x4, lambda d: S.Group(list(S.split_v2(d, (1, 3), axis=1)))),
    "swap": (x3, lambda d: S.SwapAxis(d, dim1=0, dim2=2)), "transpose": (x3, lambda d: S.transpose(d)), "transpose_axes": (x3, lambda d: S.transpose(d, axes=(1, 0, 2))),
    "expand": (x2, lambda d: S.squeeze(S.expand_dims(d, axis=1))), "tile": (x2, lambda d: S.tile(S.repeat(d, repeats=2, axis=1), reps=(2, 1))),
    "flip": (x3, lambda d: S.reverse(d, axis=1)), "flatten": (x4, lambda d: S.Flatten(d)), "broadcast_axis": ((2, 1, 3), lambda d: S.broadcast_axis(d, axis=1, size=4)),
    "broadcast_to": ((1, 3), lambda d: S.broadcast_to(d, shape=(4, 3))), "pad": (x4, lambda d: S.Pad(d, mode="constant", pad_width=(0, 0, 0, 0, 1, 2, 2, 1), constant_value=3)),
    "pad_edge": (x4, lambda d: S.Pad(d, mode="edge", pad_width=(0, 0, 0, 0, 1, 2, 2, 1))), "depth": (x4, lambda d: S.space_to_depth(S.depth_to_space(d, block_size=2), block_size=3)),
    "up": (x4, lambda d: S.UpSampling(d, scale=2, sample_type="nearest")), "crop": (x4, lambda d: S.Crop(d, h_w=(3, 2), center_crop=True)),
    "sums": (x3, lambda d: S.Group([S.sum(d, axis=1), S.mean(d, axis=(0, 2), keepdims=True), S.max(d, axis=0, exclude=True), S.norm(d, axis=1), S.prod(d, axis=2), S.min(d, axis=1)])),
    "args": (x3, lambda d: S.Group([S.argmax(d, axis=1), S.argmin(d, axis=2, keepdims=True), S.argmax_channel(S.Flatten(d)), S.topk(d, k=2), S.topk(d, k=2, ret_typ="value", axis=1), S.sort(d, axis=1)])),
    "topk_both": (x3, lambda d: S.Group(list(S.topk(d, k=2, axis=1, ret_typ="both", name="best")))),
    "clip": (x3, lambda d: S.clip(d, -0.5, 0.25)), "scalars": (x3, lambda d: S.Group([d + 1, 2 - d, d * 3, d / 4, 1 / (d + 3), (d + 3) ** 2, 2 ** d, -d, S.maximum(d, 0.1), S.minimum(0.1, d), (d + 3) % 2])),
    "compare": (x3, lambda d: S.Group([d > 0, d <= 0.5, d == 0, d != 0, 0.5 < d])), "lrn": (x4, lambda d: S.LRN(d, nsize=3, alpha=0.1, beta=0.5, knorm=1)),
    "norms": (x4, lambda d: S.Group([S.L2Normalization(d), S.L2Normalization(d, mode="channel"), S.L2Normalization(d, mode="spatial")])),
    "instance_norm": (x4, lambda d: S.InstanceNorm(d, name="norm", eps=0.01)), "layer_norm": (x3, lambda d: S.LayerNorm(d, name="norm", axis=-1)),
    "batch_norm": (x4, lambda d: S.BatchNorm(d, name="norm", momentum=0.7)), "batch_norm_global": (x4, lambda d: S.BatchNorm(d, name="norm", use_global_stats=True, fix_gamma=False, axis=1)),
    "activations": (x3, lambda d: S.Group([S.Activation(d, act_type=a) for a in ("relu", "sigmoid", "tanh", "softrelu", "softsign")])),
    "leaky": (x4, lambda d: S.Group([S.LeakyReLU(d, act_type="leaky", slope=0.1), S.LeakyReLU(d, act_type="elu"), S.LeakyReLU(d, act_type="prelu", name="p"), S.LeakyReLU(d, act_type="selu"), S.LeakyReLU(d, act_type="gelu")])),
    "softmaxes": (x3, lambda d: S.Group([S.softmax(d, axis=1), S.log_softmax(d, temperature=2.0), S.SoftmaxActivation(d), S.SoftmaxActivation(d, mode="channel"), S.softmin(d)])),
    "pooling": (x4, lambda d: S.Group([S.Pooling(d, kernel=(3, 3), stride=(2, 2), pool_type=t, pooling_convention=c) for t in ("max", "avg", "sum") for c in ("valid", "full")])),
    "conv": (x4, lambda d: S.Convolution(d, num_filter=4, kernel=(3, 3), num_group=2, dilate=(2, 2), pad=(2, 1), name="c", no_bias=True, cudnn_tune="off", workspace=256, layout="NCHW")),
    "conv1d": (x3, lambda d: S.Convolution(d, num_filter=4, kernel=(2,), name="c")), "deconv": (x4, lambda d: S.Deconvolution(d, num_filter=2, kernel=(4, 4), stride=(2, 2), pad=(1, 1), name="c")),
    "deconv_bias": (x4, lambda d: S.Deconvolution(d, num_filter=2, kernel=(3, 3), stride=(2, 2), pad=(1, 1), adj=(1, 1), dilate=(1, 1), no_bias=False, name="c")),
    "dense": (x3, lambda d: S.FullyConnected(d, num_hidden=3, flatten=False, name="f")), "dense_bare": (x3, lambda d: S.FullyConnected(d, num_hidden=3, no_bias=True, name="f")),
    "math": (x3, lambda d: S.Group([S.exp(d), S.log(S.abs(d) + 1), S.sqrt(S.square(d)), S.rsqrt(S.square(d) + 1), S.sign(d), S.floor(d), S.ceil(d), S.round(d), S.rint(d), S.trunc(d), S.sin(d), S.cos(d), S.arctan(d), S.erf(d), S.gamma(d + 5), S.gammaln(d + 5), S.cbrt(d), S.reciprocal(d + 5), S.expm1(d), S.log1p(d + 5), S.hard_sigmoid(d), S.smooth_l1(d, scalar=2.0)])),
    "cast": (x3, lambda d: S.Cast(S.Cast(d * 10, dtype="int32"), dtype="float32") + S.zeros_like(d) + S.ones_like(d)),
    "created": (x2, lambda d: S.Group([d + S.ones((3, 4)), S.broadcast_add(d, S.arange(0, 4)), d * S.zeros((3, 4)), S.full((3, 4), 2.5) + d])),
    "passing": (x2, lambda d: S.Group([S.identity(d), S.BlockGrad(d), S.MakeLoss(d * d, grad_scale=0.5, name="loss"), S.make_loss(d * 2)])),
    "dropout": (x2, lambda d: S.Dropout(d, p=0.3, mode="training")),
    "multibox": (x4, lambda d: S.contrib.MultiBoxPrior(d, sizes=(0.5, 0.25), ratios=(1, 2), steps=(0.2, 0.3), offsets=(0.4, 0.6))),
    "one_hot": (("index", (3, 2), 5), lambda d: S.one_hot(d, depth=5, on_value=2, off_value=-1)),
    "embedding": (("index", (3, 2), 5), lambda d: S.Embedding(d, input_dim=5, output_dim=3, name="e")),
    "marks": (x2, lambda d: S.FullyConnected(d, num_hidden=2, name="f", attr={"__mood__": "good"}, lr_mult=2)),
}
BINARY = {
    "arithmetic": (x3, x3, lambda d, e: S.Group([d + e, d - e, d * e, d / (e + 5), (d + 3) ** e, S.maximum(d, e), S.minimum(d, e), S.hypot(d, e)])),
    "broadcast": (x3, (1, 3, 1), lambda d, e: S.Group([S.broadcast_add(d, e), S.broadcast_sub(d, e), S.broadcast_mul(d, e), S.broadcast_div(d, e + 5), S.broadcast_maximum(d, e), S.broadcast_minimum(d, e), S.broadcast_greater(d, e), S.broadcast_lesser_equal(d, e), S.broadcast_equal(d, e)])),
    "elementwise": (x3, x3, lambda d, e: S.Group([S.elemwise_add(d, e), S.elemwise_sub(d, e), S.elemwise_mul(d, e), S.elemwise_div(d, e + 5), S.add_n(d, e, d), S.where(d > e, d, e), d > e, d == e])),
    "dot": ((3, 4), (5, 4), lambda d, e: S.dot(d, e, transpose_b=True)), "dot_deep": ((2, 3, 4), (4, 2), lambda d, e: S.dot(d, e)), "dot_turned": ((4, 3), (4, 5), lambda d, e: S.dot(d, e, transpose_a=True)),
    "batch_dot": ((2, 3, 4), (2, 5, 4), lambda d, e: S.batch_dot(d, e, transpose_b=True)), "gemm2": ((2, 3, 4), (2, 4, 5), lambda d, e: S.linalg.gemm2(d, e, alpha=0.5)),
    "concat": (x3, (2, 2, 4), lambda d, e: S.Concat(d, e, dim=1)), "concat_default": (x3, (2, 2, 4), lambda d, e: S.concat(d, e)), "stack": (x3, x3, lambda d, e: S.stack(d, e, axis=1)),
    "slice_like": (x3, (1, 2, 9), lambda d, e: S.slice_like(d, e, axes=(0, 1))), "reshape_like": (x3, (6, 4), lambda d, e: S.reshape_like(d, e)),
    "attention": ((3, 2, 12), (4, 3, 3), lambda d, e: S.Group([S.contrib.interleaved_matmul_selfatt_qk(d, heads=2), S.contrib.interleaved_matmul_selfatt_valatt(d, e, heads=2)])),
    "cross_attention": ((3, 2, 4), (5, 2, 8), lambda d, e: S.contrib.interleaved_matmul_encdec_qk(d, e, heads=2)),
    "cross_attention_values": ((5, 2, 8), (4, 3, 5), lambda d, e: S.contrib.interleaved_matmul_encdec_valatt(d, e, heads=2)),
    "cross_entropy": ((3, 4), ("index", (3,), 4), lambda d, e: S.softmax_cross_entropy(d, e) + S.amp_cast(d, dtype="float32").sum()),
    "broadcast_like": ((1, 3), (4, 3), lambda d, e: S.broadcast_like(d, e)), "take": ((5, 3), ("index", (2, 2), 5), lambda d, e: S.Group([S.take(d, e), S.take(d, e + 3), S.take(d, e, axis=1, mode="wrap")])),
    "pick": (x2, ("index", (3,), 4), lambda d, e: S.pick(d, e)), "gather": ((4, 3), ("index", (1, 5), 4), lambda d, e: S.gather_nd(d, e)),
    "sequence": ((4, 2, 3), ("index1", (2,), 4), lambda d, e: S.Group([S.SequenceMask(d, e, use_sequence_length=True, value=-1), S.SequenceLast(d, e, use_sequence_length=True), S.SequenceReverse(d, e, use_sequence_length=True), S.SequenceLast(d)])),
    "upsample_two": ((1, 2, 2, 2), (1, 3, 4, 4), lambda d, e: S.UpSampling(d, e, scale=4, sample_type="nearest", num_args=2)),
    "box_iou": ((2, 4), (3, 4), lambda d, e: S.contrib.box_iou(d, e)),
    "regression": (x2, x2, lambda d, e: S.Group([S.LinearRegressionOutput(d, e, grad_scale=2), S.LogisticRegressionOutput(d, e), S.MAERegressionOutput(d, e)])),
    "svm": ((3, 4), ("index", (3,), 4), lambda d, e: S.SVMOutput(d, e, margin=0.5)), "svm_linear": ((3, 4), ("index", (3,), 4), lambda d, e: S.SVMOutput(d, e, use_linear=True, regularization_coefficient=0.3)),
    "softmax_output": ((3, 4), ("index", (3,), 4), lambda d, e: S.SoftmaxOutput(d, e, grad_scale=0.5, smooth_alpha=0.1)),
    "softmax_out_grad": ((3, 4), ("index", (3,), 4), lambda d, e: S.SoftmaxOutput(d, e, out_grad=True) * 3),
    "softmax_batch": ((3, 4), ("index", (3,), 4), lambda d, e: S.SoftmaxOutput(d, e, normalization="batch")),
    "softmax_multi": ((2, 3, 4), ("index", (2, 4), 3), lambda d, e: S.SoftmaxOutput(d, e, multi_output=True, use_ignore=True, ignore_label=1, normalization="valid")),
    "softmax_multi_plain": ((2, 3, 4), ("index", (2, 4), 3), lambda d, e: S.SoftmaxOutput(d, e, multi_output=True)),
    "softmax_preserve": ((2, 3, 4), ("index", (2, 3), 4), lambda d, e: S.SoftmaxOutput(d, e, preserve_shape=True)),
    "softmax_ignore": ((3, 4), ("index", (3,), 4), lambda d, e: S.SoftmaxOutput(d, e, use_ignore=True, ignore_label=2, normalization="valid")),
}
GRADIENT = {"alexnet", "resnet50", "rnn_lstm", "rnn_gru", "unrolled_lstm", "ssd_training", "regression", "svm", "svm_linear", "passing", "batch_norm",
            "batch_norm_global", "lrn", "norms", "instance_norm", "reshape_codes", "sums", "clip", "concat", "sequence", "deconv", "leaky", "pad", "up", "split",
            "softmax_output", "softmax_out_grad", "softmax_batch", "softmax_multi", "softmax_multi_plain", "softmax_preserve", "softmax_ignore", "slice_step", "arithmetic"}
RNG_FREE = {"alexnet": False}


def numpy_cases():
    """Graphs made with NumPy's front end (shapes are NumPy's too)."""
    N, X = S.np, S.npx
    d, e = S.Variable("data").as_np_ndarray(), S.Variable("other").as_np_ndarray()
    yield "np_arithmetic", S.Group([s.as_nd_ndarray() for s in (d + e, d * 2, 1 - d, d / e, d ** 2, N.maximum(d, e))]), {"data": x3, "other": (np.abs(rng.randn(3, 1)) + 1)}
    yield "np_reductions", S.Group([s.as_nd_ndarray() for s in (N.sum(d, axis=1), N.mean(d), N.max(d, axis=0), N.std(d), N.var(d, axis=1), N.argmax(d, axis=1))]), {"data": x2}
    yield "np_shapes", S.Group([s.as_nd_ndarray() for s in (N.reshape(d, (4, -1)), N.transpose(d), N.expand_dims(d, 0), N.concatenate([d, d], axis=0), N.stack([d, d]), N.squeeze(N.expand_dims(d, 0)), N.where(d > 0, d, -d))]), {"data": x2}
    yield "npx_layers", S.Group([s.as_nd_ndarray() for s in (X.relu(d), X.softmax(d), X.fully_connected(d, S.Variable("w").as_np_ndarray(), S.Variable("b").as_np_ndarray(), num_hidden=3), X.reshape(d, (-2, -6, 2, -1)), X.sigmoid(d), N.tanh(d), N.exp(d))]), {"data": x2}


# ---- running ----

def values_for(shape):
    if isinstance(shape, np.ndarray):
        return shape.astype("float32")
    if shape and shape[0] in ("index", "index1"):
        low = 1 if shape[0] == "index1" else 0
        return rng.randint(low, shape[2] + low, shape[1]).astype("float32")
    return (rng.standard_normal(shape) * 0.7).astype("float32")


def parameter(name, shape):
    if name.endswith(("gamma", "moving_var")):
        return rng.uniform(0.5, 1.5, shape).astype("float32")
    if name.endswith("label"):
        return rng.randint(0, 3, shape).astype("float32")
    fan = int(np.prod(shape[1:])) if len(shape) > 1 else 4
    return (rng.standard_normal(shape) / np.sqrt(max(fan, 1))).astype("float32")


def run(symbol, inputs, gradients):
    given = {k: values_for(v) for k, v in inputs.items() if k in symbol.list_arguments()}
    shapes, _, aux_shapes = symbol.infer_shape(**{k: v.shape for k, v in given.items()})
    arrays = {}
    arguments = {}
    for name, shape in zip(symbol.list_arguments(), shapes):
        arguments[name] = given[name] if name in given else parameter(name, shape)
        arrays["arg." + name] = arguments[name]
    auxiliary = {}
    for name, shape in zip(symbol.list_auxiliary_states(), aux_shapes):
        auxiliary[name] = parameter(name, shape)
        arrays["aux." + name] = auxiliary[name]
    nd = lambda d: {k: mx.nd.array(v) for k, v in d.items()}  # noqa: E731
    wanted = [k for k in arguments if k not in inputs or k == "data" and not isinstance(inputs[k], np.ndarray)] if gradients else []
    executor = symbol.bind(mx.cpu(), nd(arguments), {k: mx.nd.zeros(arguments[k].shape) for k in wanted}, "write", nd(auxiliary))
    for k, y in enumerate(executor.forward(is_train=False)):
        arrays[f"out.{k}"] = y.asnumpy()
    if gradients:
        outputs = executor.forward(is_train=True)
        for k, y in enumerate(outputs):
            arrays[f"train.{k}"] = y.asnumpy()
        executor.backward([mx.nd.ones(y.shape) for y in outputs])
        for name in wanted:
            arrays["grad." + name] = executor.grad_dict[name].asnumpy()
        for name in auxiliary:
            arrays["after." + name] = executor.aux_dict[name].asnumpy()
    return arrays


def to_08(text):
    """A graph as MXNet 0.8 wrote it: operators' attributes in "param", no auxiliary states, edges of two numbers."""
    graph = json.loads(text)
    dropped = {e[0] for n in graph["nodes"] if n["op"] == "BatchNorm" for e in n["inputs"][3:]}
    number, nodes = {}, []
    for i, n in enumerate(graph["nodes"]):
        if i in dropped:
            continue
        inputs = n["inputs"][:3] if n["op"] == "BatchNorm" else n["inputs"]
        attrs = n.get("attrs", {})
        hidden = {k.strip("_"): v for k, v in attrs.items() if k.startswith("__")}
        number[i] = len(nodes)
        node = {"op": n["op"], "param": {k: v for k, v in attrs.items() if not k.startswith("__")}, "name": n["name"],
                "inputs": [[number[e[0]], e[1]] for e in inputs], "backward_source_id": -1}
        nodes.append({**node, "attr": hidden} if hidden else node)
    heads = [[number[h[0]], h[1]] for h in graph["heads"]]
    return json.dumps({"nodes": nodes, "arg_nodes": [i for i, n in enumerate(nodes) if n["op"] == "null"], "heads": heads}, indent=2)


def to_09(text):
    """As MXNet 0.9 to 0.12 did: all attributes in "attr"."""
    graph = json.loads(text)
    for n in graph["nodes"]:
        if "attrs" in n:
            n["attr"] = n.pop("attrs")
    graph["attrs"] = {"mxnet_version": ["int", 905]}
    return json.dumps(graph, indent=2)


def to_20(text):
    graph = json.loads(text)
    graph["attrs"] = {"mxnet_version": ["int", 20000], "is_np_shape": ["int", 1]}
    return json.dumps(graph, indent=2)


def main(folder):
    def write(name, symbol, inputs, text=None, style="1.9"):
        arrays = run(symbol, inputs, name in GRADIENT)
        np.savez_compressed(os.path.join(folder, name + ".npz"), json=np.array(text or symbol.tojson()), style=np.array(style), **arrays)
        return arrays
    networks = {"alexnet": alexnet, "vgg16": vgg16, "inception_bn": inception_bn, "inception_v3": inception_v3,
                "resnet50": resnet((3, 4, 6, 3)), "resnet152": resnet((3, 8, 36, 3)), "rnn_lstm": fused_rnn("lstm", num_layers=2, bidirectional=True),
                "rnn_gru": fused_rnn("gru", num_layers=1), "rnn_tanh": fused_rnn("rnn_tanh", num_layers=2), "rnn_relu": fused_rnn("rnn_relu", num_layers=1, bidirectional=True),
                "unrolled_lstm": unrolled_lstm, "gluon_lstm": gluon_lstm, "ssd": ssd, "ssd_training": ssd_training}
    for name, build in networks.items():
        if name == "alexnet":
            random_free = GRADIENT.discard("alexnet")  # dropout is random in training
        write(name, *build())
    for name, (shape, build) in UNARY.items():
        write("op_" + name, build(D), {"data": shape}) if name not in GRADIENT else (GRADIENT.add("op_" + name), write("op_" + name, build(D), {"data": shape}))
    for name, (a, b, build) in BINARY.items():
        if name in GRADIENT:
            GRADIENT.add("op_" + name)
        write("op_" + name, build(D, E), {"data": a, "other": b})
    for style, convert in (("0.8", to_08), ("0.9", to_09)):
        symbol, inputs = inception_bn()
        text = convert(symbol.tojson())
        old = S.load_json(text)  # MXNet reads it too
        assert old.list_auxiliary_states() == symbol.list_auxiliary_states()
        write(f"style_{style}", old, inputs, text, style)
    mx.npx.set_np()
    for name, symbol, inputs in numpy_cases():
        arrays = {}
        given = {k: values_for(v) for k, v in inputs.items()}
        shapes, _, _ = symbol.infer_shape(**{k: v.shape for k, v in given.items()})
        for n, s in zip(symbol.list_arguments(), shapes):
            given.setdefault(n, parameter(n, s))
            arrays["arg." + n] = given[n]
        executor = symbol.bind(mx.cpu(), {k: mx.nd.array(v) for k, v in given.items()})
        for k, y in enumerate(executor.forward(is_train=False)):
            arrays[f"out.{k}"] = y.asnumpy()
        np.savez_compressed(os.path.join(folder, name + ".npz"), json=np.array(to_20(symbol.tojson())), style=np.array("2.0"), **arrays)


if __name__ == "__main__":
    main(sys.argv[1])
