# SPDX-License-Identifier: Apache-2.0
"""Learning rates as functions of the number of updates, with an optional warm-up."""
from __future__ import annotations

import math


class LRScheduler:
    """Base: `scheduler(num_update)` gives the rate. For the first `warmup_steps` updates the rate rises linearly from
    `warmup_begin_lr` to `base_lr` ('linear'), or stays at `warmup_begin_lr` ('constant')."""

    def __init__(self, base_lr=0.01, warmup_steps=0, warmup_begin_lr=0.0, warmup_mode="linear"):
        if not isinstance(warmup_steps, int) or warmup_steps < 0:
            raise ValueError(f"{type(self).__name__}: warmup_steps must be an integer from 0; got {warmup_steps!r}")
        if warmup_begin_lr > base_lr:
            raise ValueError(f"{type(self).__name__}: warmup_begin_lr {warmup_begin_lr} is above base_lr {base_lr}")
        if warmup_mode not in ("linear", "constant"):
            raise ValueError(f"{type(self).__name__}: warmup_mode must be 'linear' or 'constant'; got {warmup_mode!r}")
        self.base_lr = base_lr
        self.warmup_steps = warmup_steps
        self.warmup_begin_lr = warmup_begin_lr
        self.warmup_final_lr = base_lr
        self.warmup_mode = warmup_mode

    def get_warmup_lr(self, num_update: int) -> float:
        """The rate at an update of the warm-up."""
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        rise = (self.warmup_final_lr - self.warmup_begin_lr) * num_update / self.warmup_steps
        return self.warmup_begin_lr + rise

    def __call__(self, num_update: int) -> float:
        raise NotImplementedError(f"{type(self).__name__}.__call__ must be written")


class FactorScheduler(LRScheduler):
    """Multiplies the rate by `factor` after every `step` updates, but not below `stop_factor_lr`."""

    def __init__(self, step, factor=1, stop_factor_lr=1e-8, base_lr=0.01, warmup_steps=0, warmup_begin_lr=0,
                 warmup_mode="linear"):
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if step < 1:
            raise ValueError(f"FactorScheduler: step must be at least 1; got {step}")
        if factor > 1.0:
            raise ValueError(f"FactorScheduler: factor must not exceed 1; got {factor}")
        self.step, self.factor, self.stop_factor_lr = step, factor, stop_factor_lr
        self.count = 0

    def __call__(self, num_update):
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while num_update > self.count + self.step:
            self.count += self.step
            self.base_lr = max(self.base_lr * self.factor, self.stop_factor_lr)
        return self.base_lr


class MultiFactorScheduler(LRScheduler):
    """Multiplies the rate by `factor` after each of the updates listed in `step` (rising integers)."""

    def __init__(self, step, factor=1, base_lr=0.01, warmup_steps=0, warmup_begin_lr=0, warmup_mode="linear"):
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not step or step[0] < 1 or any(b <= a for a, b in zip(step, step[1:])):
            raise ValueError(f"MultiFactorScheduler: step must be a list of rising integers from 1; got {step!r}")
        if factor > 1.0:
            raise ValueError(f"MultiFactorScheduler: factor must not exceed 1; got {factor}")
        self.step, self.factor = list(step), factor
        self.cur_step_ind = 0

    def __call__(self, num_update):
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while self.cur_step_ind < len(self.step) and num_update > self.step[self.cur_step_ind]:
            self.cur_step_ind += 1
            self.base_lr *= self.factor
        return self.base_lr


class _Decay(LRScheduler):
    """Goes from base_lr to final_lr within `max_update` updates along the curve of a subclass."""

    def __init__(self, max_update, base_lr=0.01, final_lr=0, warmup_steps=0, warmup_begin_lr=0, warmup_mode="linear"):
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not isinstance(max_update, int) or max_update < 1:
            raise ValueError(f"{type(self).__name__}: max_update must be an integer from 1; got {max_update!r}")
        if max_update <= warmup_steps:
            raise ValueError(f"{type(self).__name__}: max_update {max_update} must exceed warmup_steps {warmup_steps}")
        self.base_lr_orig = base_lr
        self.max_update, self.final_lr = max_update, final_lr
        self.max_steps = max_update - warmup_steps

    def _curve(self, done: float) -> float:
        raise NotImplementedError

    def __call__(self, num_update):
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        if num_update <= self.max_update:
            done = (num_update - self.warmup_steps) / self.max_steps
            self.base_lr = self.final_lr + (self.base_lr_orig - self.final_lr) * self._curve(done)
        return self.base_lr


class PolyScheduler(_Decay):
    """Decays as (1 - progress) ** pwr."""

    def __init__(self, max_update, base_lr=0.01, pwr=2, final_lr=0, warmup_steps=0, warmup_begin_lr=0,
                 warmup_mode="linear"):
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self.power = pwr

    def _curve(self, done):
        return (1 - done) ** self.power


class CosineScheduler(_Decay):
    """Decays as half a cosine wave."""

    def _curve(self, done):
        return (1 + math.cos(math.pi * done)) / 2
