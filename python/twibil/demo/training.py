# SPDX-License-Identifier: Apache-2.0
"""The training loop: steps, progress bar, checkpoints. Stopped by a signal it saves and returns; called again it goes on,
and ends with the bits of a run that nobody stopped."""
from __future__ import annotations

import os
import signal
import sys
import time

from tqdm import tqdm

import twibil as mx
from twibil import autograd, gluon, init, lr_scheduler

from . import checkpoint
from .network import TinySSD, losses
from .scenes import make_scenes, to_input


class Interrupted(Exception):
    """The run was asked to stop; its checkpoint is complete."""


class StopRequest:
    """Within the scope, Ctrl-C and SIGTERM only set `asked`, so that a step is never left half done."""

    def __init__(self):
        self.asked = False

    def _ask(self, *_):
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __enter__(self):
        self._old = {s: signal.signal(s, self._ask) for s in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_):
        for number, handler in self._old.items():
            signal.signal(number, handler)


def build(settings, scenes):
    """A fresh network with known shapes, and its trainer."""
    mx.random.seed(settings.seed)
    net = TinySSD(len(settings.classes))
    net.initialize(init.Xavier())
    net(to_input(scenes.render(0, 1)[0]))  # finds the shapes
    schedule = lr_scheduler.CosineScheduler(max_update=settings.steps, base_lr=settings.learning_rate,
                                            final_lr=settings.learning_rate / 100, warmup_steps=settings.warmup_steps)
    trainer = gluon.Trainer(net.collect_params(), "adam",
                            {"learning_rate": settings.learning_rate, "lr_scheduler": schedule})
    return net, trainer


def train_step(net, trainer, scenes, settings, step: int):
    """Pictures step * batch and following; returns the two losses as arrays, not waited for."""
    pictures, labels = scenes.render(step * settings.batch, settings.batch)
    with autograd.record():
        class_loss, box_loss = losses(*net(to_input(pictures)), labels)
        loss = class_loss + settings.box_weight * box_loss
    loss.backward()
    trainer.step(1)
    return class_loss, box_loss


def _new_progress(settings) -> dict:
    return {"settings": settings.as_dict(), "step": 0, "seconds": 0.0, "class_losses": [], "box_losses": []}


def train(settings, path, every=100, stop_after=None):
    """Trains to the end, from the checkpoint at `path` when there is one. Returns the network and the progress.

    every: steps between checkpoints. stop_after: stop at this step as if asked to. Raises Interrupted when stopped.
    """
    scenes = make_scenes(settings, training=True)
    net, trainer = build(settings, scenes)
    progress = _new_progress(settings)
    if os.path.exists(path):
        progress = checkpoint.load(path, net, trainer)
        if progress["settings"] != settings.as_dict():
            raise ValueError(f"{path}: a checkpoint of other settings, {progress['settings']}; use --fresh to begin anew")
    with StopRequest() as stop, _bar(settings, progress["step"]) as bar:
        while progress["step"] < settings.steps:
            begin = time.perf_counter()
            class_loss, box_loss = train_step(net, trainer, scenes, settings, progress["step"])
            progress["class_losses"].append(class_loss.item())
            progress["box_losses"].append(box_loss.item())
            progress["seconds"] += time.perf_counter() - begin
            progress["step"] += 1
            _show(bar, settings, progress)
            stopped = stop.asked or progress["step"] == stop_after
            if stopped or progress["step"] % every == 0 or progress["step"] == settings.steps:
                checkpoint.save(path, net, trainer, progress)
            if stopped and progress["step"] < settings.steps:
                raise Interrupted(f"stopped after step {progress['step']} of {settings.steps}; run again to go on")
    return net, progress


def _bar(settings, step: int):
    return tqdm(total=settings.steps * settings.batch, initial=step * settings.batch, unit="pictures", desc="training",
                disable=not sys.stderr.isatty(), dynamic_ncols=True, smoothing=0.05)


def _show(bar, settings, progress: dict) -> None:
    bar.update(settings.batch)
    recent = slice(-50, None)
    mean = lambda values: sum(values[recent]) / len(values[recent])
    bar.set_postfix_str(f"class loss {mean(progress['class_losses']):.2f}, box loss {mean(progress['box_losses']):.2f}",
                        refresh=False)
