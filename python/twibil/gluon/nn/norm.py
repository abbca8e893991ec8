# SPDX-License-Identifier: Apache-2.0
"""Layers that normalise: over the batch, over features, over groups or over one picture."""
from __future__ import annotations

import math

from ... import np, npx
from ...base import describe
from ..block import HybridBlock


class _Norm(HybridBlock):
    """gamma and beta of a normalisation, one a channel; sizes of 0 are taken from the input's `axis`."""

    def __init__(self, axis, center, scale, beta_initializer, gamma_initializer, in_channels, shown, **kwargs):
        super().__init__(**kwargs)
        self._axis, self._shown = axis, shown
        self.gamma = self._channel("gamma", in_channels, gamma_initializer, scale)
        self.beta = self._channel("beta", in_channels, beta_initializer, center)

    def _channel(self, name, channels, init, learnt):
        return self.params.get(name, grad_req="write" if learnt else "null", shape=(channels,), init=init,
                               allow_deferred_init=True, differentiable=learnt)

    def infer_shape(self, x, *_):
        for p in self._reg_params.values():
            if not -x.ndim <= self._axis < x.ndim:
                raise ValueError(f"{type(self).__name__}: axis {self._axis} is out of range for {describe(x)}")
            p.shape = (x.shape[self._axis],)

    def __repr__(self):
        channels = self.gamma.shape[0]
        shown = {**self._shown, "in_channels": channels if channels > 0 else None}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in shown.items())})"


class BatchNorm(_Norm):
    """(x - mean) / sqrt(var + epsilon) * gamma + beta for each channel of `axis`, where mean and (biased) variance are
    those of the batch in training and running averages else: running = momentum * running + (1 - momentum) * batch.

    center, scale: learn beta, gamma (gamma stays 1 without scale). use_global_stats: running averages always."""

    def __init__(self, axis=1, momentum=0.9, epsilon=1e-5, center=True, scale=True, use_global_stats=False,
                 beta_initializer="zeros", gamma_initializer="ones", running_mean_initializer="zeros",
                 running_variance_initializer="ones", in_channels=0, **kwargs):
        self._attrs = {"axis": axis, "eps": epsilon, "momentum": momentum, "fix_gamma": not scale,
                       "use_global_stats": use_global_stats}
        super().__init__(axis, center, scale, beta_initializer, gamma_initializer, in_channels, self._attrs, **kwargs)
        self.running_mean = self._channel("running_mean", in_channels, running_mean_initializer, False)
        self.running_var = self._channel("running_var", in_channels, running_variance_initializer, False)

    def forward(self, x):
        return npx.batch_norm(x, self.gamma.on(x), self.beta.on(x), self.running_mean.on(x), self.running_var.on(x),
                              **self._attrs)

    def cast(self, dtype):
        """Half types keep float32 parameters: statistics need the range."""
        super().cast("float32" if str(dtype) in ("float16", "bfloat16") or "float16" in str(dtype) else dtype)


class BatchNormReLU(BatchNorm):
    """`BatchNorm` followed by the rectifier."""

    def forward(self, x):
        return npx.relu(super().forward(x))


class SyncBatchNorm(BatchNorm):
    """`BatchNorm` whose statistics are those of all devices; with one device, which is all there is, the same.

    ValueError for num_devices above 1."""

    def __init__(self, in_channels=0, num_devices=None, momentum=0.9, epsilon=1e-5, center=True, scale=True, **kwargs):
        if num_devices not in (None, 1):
            raise NotImplementedError(f"SyncBatchNorm: statistics across devices do not exist; got "
                                      f"num_devices={num_devices}")
        super().__init__(1, momentum, epsilon, center, scale, in_channels=in_channels, **kwargs)


class LayerNorm(_Norm):
    """(x - mean) / sqrt(var + epsilon) * gamma + beta, with mean and variance over `axis`."""

    def __init__(self, axis=-1, epsilon=1e-5, center=True, scale=True, beta_initializer="zeros",
                 gamma_initializer="ones", in_channels=0, prefix=None, params=None):
        super().__init__(axis, center, scale, beta_initializer, gamma_initializer, in_channels,
                         {"eps": epsilon, "axis": axis, "center": center, "scale": scale}, prefix=prefix, params=params)
        self._epsilon = epsilon

    def forward(self, x):
        return npx.layer_norm(x, self.gamma.on(x), self.beta.on(x), axis=self._axis, eps=self._epsilon)


def _standardise(x, axes, epsilon):
    mean = x.mean(axis=axes, keepdims=True)
    centred = x - mean
    return centred / np.sqrt((centred * centred).mean(axis=axes, keepdims=True) + epsilon)


class GroupNorm(_Norm):
    """Normalises groups of channels (axis 1) of each example together; gamma and beta are one a channel.

    Files of MXNet 1 hold one gamma and beta a group; these load too. ValueError where channels do not divide."""

    def __init__(self, num_groups=1, epsilon=1e-5, center=True, scale=True, beta_initializer="zeros",
                 gamma_initializer="ones", in_channels=0, prefix=None, params=None):
        super().__init__(1, center, scale, beta_initializer, gamma_initializer, in_channels,
                         {"eps": epsilon, "num_groups": num_groups, "center": center, "scale": scale}, prefix=prefix,
                         params=params)
        self._num_groups, self._epsilon = num_groups, epsilon

    def forward(self, x):
        batch, channels = x.shape[:2]
        groups = self._num_groups
        if channels % groups:
            raise ValueError(f"GroupNorm: {channels} channels do not divide into {groups} groups")
        rest = math.prod(x.shape[2:])
        y = _standardise(x.reshape(batch, groups, channels // groups, rest), (2, 3), self._epsilon)
        gamma, beta = self.gamma.on(x), self.beta.on(x)
        split = (1, groups, -1, 1)
        return (y * gamma.reshape(split) + beta.reshape(split)).reshape(x.shape)


class InstanceNorm(_Norm):
    """Normalises each channel of each example over the remaining axes; `scale` is off by default."""

    def __init__(self, axis=1, epsilon=1e-5, center=True, scale=False, beta_initializer="zeros",
                 gamma_initializer="ones", in_channels=0, **kwargs):
        super().__init__(axis, center, scale, beta_initializer, gamma_initializer, in_channels,
                         {"eps": epsilon, "axis": axis, "center": center, "scale": scale}, **kwargs)
        self._epsilon = epsilon

    def forward(self, x):
        axis = self._axis % x.ndim
        y = _standardise(x, tuple(i for i in range(1, x.ndim) if i != axis), self._epsilon)
        place = tuple(-1 if i == axis else 1 for i in range(x.ndim))
        return y * self.gamma.on(x).reshape(place) + self.beta.on(x).reshape(place)
