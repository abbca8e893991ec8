# SPDX-License-Identifier: Apache-2.0
"""Layers against formulas written with NumPy."""

import math

import numpy as onp
import pytest

from twibil import autograd, gluon, init, np
from twibil.gluon import nn

RNG = onp.random.default_rng(7)


def array(*shape):
    return np.array(RNG.standard_normal(shape).astype("float32"))


def ready(layer, x):
    layer.initialize(init.Normal(0.5))
    return layer(x).asnumpy()


def close(a, b, tol=2e-5):
    onp.testing.assert_allclose(a, b, rtol=tol, atol=tol)


def test_dense():
    x = array(3, 2, 4)
    layer = nn.Dense(5, activation="tanh")
    y = ready(layer, x)
    w, b = layer.weight.data().asnumpy(), layer.bias.data().asnumpy()
    close(y, onp.tanh(x.asnumpy().reshape(3, 8) @ w.T + b))
    layer = nn.Dense(5, flatten=False, use_bias=False)
    y = ready(layer, x)
    close(y, x.asnumpy() @ layer.weight.data().asnumpy().T)
    assert layer.bias is None and list(layer.collect_params()) == ["weight"]
    with pytest.raises(ValueError, match="units must be a positive integer"):
        nn.Dense(0)
    with pytest.raises(ValueError, match="Did you mean 'relu'"):
        nn.Dense(3, activation="relo")


def naive_conv2d(x, w, b, stride, pad, dilate, groups):
    n, c, h, wd = x.shape
    x = onp.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    o, cg, kh, kw = w.shape
    oh = (h + 2 * pad - dilate * (kh - 1) - 1) // stride + 1
    ow = (wd + 2 * pad - dilate * (kw - 1) - 1) // stride + 1
    y = onp.zeros((n, o, oh, ow))
    for f in range(o):
        part = x[:, (f // (o // groups)) * cg : (f // (o // groups) + 1) * cg]
        for i in range(oh):
            for j in range(ow):
                piece = part[
                    :,
                    :,
                    i * stride : i * stride + dilate * (kh - 1) + 1 : dilate,
                    j * stride : j * stride + dilate * (kw - 1) + 1 : dilate,
                ]
                y[:, f, i, j] = (piece * w[f]).sum((1, 2, 3)) + b[f]
    return y


@pytest.mark.parametrize("stride,pad,dilate,groups", [(1, 0, 1, 1), (2, 1, 1, 2), (1, 2, 2, 1)])
def test_conv2d(stride, pad, dilate, groups):
    x = array(2, 4, 7, 6)
    layer = nn.Conv2D(6, 3, strides=stride, padding=pad, dilation=dilate, groups=groups, bias_initializer="ones")
    y = ready(layer, x)
    assert layer.weight.shape == (6, 4 // groups, 3, 3)
    close(y, naive_conv2d(x.asnumpy(), layer.weight.data().asnumpy(), onp.ones(6), stride, pad, dilate, groups), 1e-4)


def test_conv1d_and_3d_shapes():
    assert ready(nn.Conv1D(4, 3, padding=1), array(2, 3, 8)).shape == (2, 4, 8)
    assert ready(nn.Conv3D(4, 3, strides=2), array(1, 2, 7, 7, 7)).shape == (1, 4, 3, 3, 3)


def test_conv_errors():
    with pytest.raises(ValueError, match="kernel_size must be an integer or 2 of them"):
        nn.Conv2D(4, (3, 3, 3))
    with pytest.raises(ValueError, match="multiples of groups"):
        nn.Conv2D(4, 3, groups=3)
    with pytest.raises(ValueError, match="layout must be 'NCHW' or 'NHWC'"):
        nn.Conv2D(4, 3, layout="CHWN")
    layer = nn.Conv2D(4, 3, groups=2)
    layer.initialize()
    with pytest.raises(ValueError, match="3 input channels do not divide"):
        layer(array(1, 3, 5, 5))


def test_conv2d_transpose_is_the_gradient_of_conv():
    x = array(2, 3, 5, 5)
    layer = nn.Conv2DTranspose(4, 4, strides=2, padding=1, use_bias=False)
    y = ready(layer, x)
    assert y.shape == (2, 4, 10, 10) and layer.weight.shape == (3, 4, 4, 4)
    conv = nn.Conv2D(3, 4, strides=2, padding=1, use_bias=False, in_channels=4)
    conv.initialize()
    conv.weight.set_data(layer.weight.data())
    big = np.zeros((2, 4, 10, 10))
    big.attach_grad()
    with autograd.record():
        out = conv(big)
    out.backward(x)
    close(y, big.grad.asnumpy(), 1e-4)


def test_pooling():
    x = array(2, 3, 6, 6)
    a = x.asnumpy().reshape(2, 3, 3, 2, 3, 2)
    close(nn.MaxPool2D(2)(x).asnumpy(), a.max((3, 5)))
    close(nn.AvgPool2D(2)(x).asnumpy(), a.mean((3, 5)))
    close(nn.GlobalAvgPool2D()(x).asnumpy(), x.asnumpy().mean((2, 3), keepdims=True))
    close(nn.GlobalMaxPool2D()(x).asnumpy(), x.asnumpy().max((2, 3), keepdims=True))
    assert nn.MaxPool2D(3, strides=2)(x).shape == (2, 3, 2, 2)
    assert nn.MaxPool2D(3, strides=2, ceil_mode=True)(x).shape == (2, 3, 3, 3)
    one = np.ones((1, 1, 2, 2))
    close(nn.AvgPool2D(2, strides=1, padding=1)(one).asnumpy()[0, 0, 0, 0], 0.25)
    close(nn.AvgPool2D(2, strides=1, padding=1, count_include_pad=False)(one).asnumpy()[0, 0, 0, 0], 1)
    assert nn.MaxPool1D(2)(array(1, 2, 8)).shape == (1, 2, 4)
    assert nn.AvgPool3D(2)(array(1, 2, 4, 4, 4)).shape == (1, 2, 2, 2, 2)


def test_batch_norm_trains_and_predicts():
    x = array(8, 3, 4, 4)
    layer = nn.BatchNorm(momentum=0.9)
    layer.initialize()
    a = x.asnumpy().astype("float64")
    mean, var = a.mean((0, 2, 3)), a.var((0, 2, 3))
    with autograd.record():
        y = layer(x)
    y.backward()
    close(y.asnumpy(), (a - mean.reshape(3, 1, 1)) / onp.sqrt(var.reshape(3, 1, 1) + 1e-5), 1e-4)
    close(layer.running_mean.data().asnumpy(), 0.1 * mean, 1e-4)
    close(layer.running_var.data().asnumpy(), 0.9 + 0.1 * var, 1e-4)
    shown = layer(x).asnumpy()
    close(shown, (a - 0.1 * mean.reshape(3, 1, 1)) / onp.sqrt(0.9 + 0.1 * var.reshape(3, 1, 1) + 1e-5), 1e-4)
    assert layer.running_mean.grad_req == "null"
    layer.cast("float16")
    assert str(layer.gamma.data().dtype) == "float32"


def test_layer_group_instance_norm():
    x = array(2, 4, 3, 3)
    a = x.asnumpy().astype("float64")
    close(ready(nn.LayerNorm(), x), (a - a.mean(-1, keepdims=True)) / onp.sqrt(a.var(-1, keepdims=True) + 1e-5), 1e-3)
    g = a.reshape(2, 2, 18)
    expect = ((g - g.mean(-1, keepdims=True)) / onp.sqrt(g.var(-1, keepdims=True) + 1e-5)).reshape(a.shape)
    close(ready(nn.GroupNorm(2), x), expect, 1e-4)
    expect = (a - a.mean((2, 3), keepdims=True)) / onp.sqrt(a.var((2, 3), keepdims=True) + 1e-5)
    close(ready(nn.InstanceNorm(), x), expect, 1e-4)
    with pytest.raises(ValueError, match="4 channels do not divide into 3 groups"):
        ready(nn.GroupNorm(3), x)


def test_dropout():
    x = np.ones((1000,))
    layer = nn.Dropout(0.25)
    assert layer(x) is x
    with autograd.record():
        y = layer(x).asnumpy()
    assert set(onp.unique(y.round(4))) <= {0.0, onp.float32(1.3333)} and 0.65 < (y > 0).mean() < 0.85
    with pytest.raises(ValueError, match="rate must be from 0 to 1"):
        nn.Dropout(1.5)


def test_embedding():
    layer = nn.Embedding(5, 3)
    y = ready(layer, np.array([[0, 4], [2, 2]], dtype="int32"))
    close(y, layer.weight.data().asnumpy()[[[0, 4], [2, 2]]])
    with pytest.raises(NotImplementedError, match="dense"):
        nn.Embedding(5, 3, sparse_grad=True)


def erf(v):
    return onp.vectorize(math.erf)(v)


@pytest.mark.parametrize(
    "layer,expect",
    [
        (nn.Activation("sigmoid"), lambda v: 1 / (1 + onp.exp(-v))),
        (nn.Activation("softrelu"), lambda v: onp.log1p(onp.exp(v))),
        (nn.LeakyReLU(0.1), lambda v: onp.where(v > 0, v, 0.1 * v)),
        (nn.ELU(0.5), lambda v: onp.where(v > 0, v, 0.5 * onp.expm1(v))),
        (nn.SELU(), lambda v: 1.0507009873554805 * onp.where(v > 0, v, 1.6732632423543772 * onp.expm1(v))),
        (nn.GELU(), lambda v: v * 0.5 * (1 + erf(v / math.sqrt(2)))),
        (nn.Swish(2.0), lambda v: v / (1 + onp.exp(-2 * v))),
        (nn.SiLU(), lambda v: v / (1 + onp.exp(-v))),
        (nn.PReLU(), lambda v: onp.where(v > 0, v, 0.25 * v)),
    ],
    ids=lambda v: repr(v) if isinstance(v, nn.Block) else "",
)
def test_activations(layer, expect):
    x = array(3, 4)
    layer.initialize()
    close(layer(x).asnumpy(), expect(x.asnumpy().astype("float64")), 1e-4)


def test_rearranging_layers():
    assert nn.Flatten()(array(2, 3, 4)).shape == (2, 12)
    x = array(1, 8, 2, 3)
    y = nn.PixelShuffle2D((2, 2))(x).asnumpy()
    assert y.shape == (1, 2, 4, 6) and y[0, 1, 3, 1] == x.asnumpy()[0, 4 + 2 + 1, 1, 0]
    with pytest.raises(ValueError, match="do not divide by the factors"):
        nn.PixelShuffle2D(3)(x)


def test_positional_encoding_like_custom_layer():
    class Centred(nn.Block):
        def forward(self, x):
            return x - x.mean()

    assert abs(float(Centred()(array(4, 4)).mean())) < 1e-6
    assert isinstance(Centred(), gluon.Block)
