# SPDX-License-Identifier: Apache-2.0
"""`python -m twibil.demo`: trains, saves, loads back, evaluates, draws, explains; writes all of it to a folder."""
from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path

import twibil as mx

from . import training
from .drawing import draw_detections, draw_training
from .evaluate import mean_average_precision
from .model_files import explain_detector, export_detector
from .network import TinySSD, detect
from .scenes import make_scenes, to_input
from .settings import Settings


def evaluate(net, settings, batch=20):
    """mAP@0.5 on the held-out pictures, and each class's part."""
    scenes = make_scenes(settings, training=False)
    detections, truths = [], []
    for first in range(0, settings.held_out, batch):
        pictures, labels = scenes.render(first, min(batch, settings.held_out - first))
        detections += detect(net, to_input(pictures))
        truths += list(labels.asnumpy())
    mean, each = mean_average_precision(detections, truths, len(settings.classes))
    return mean, dict(zip(scenes.class_names, each))


def arguments(argv):
    """The command line, with defaults from Settings."""
    parser = argparse.ArgumentParser(prog="python -m twibil.demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for everything that is written")
    parser.add_argument("--fresh", action="store_true", help="begin anew although there is a checkpoint")
    for name in ("steps", "batch", "side", "held_out", "seed"):
        default = getattr(Settings, name)
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=default, help=f"default {default}")
    return parser.parse_args(argv)


def main(argv=None) -> int:
    """Returns the exit status."""
    args = arguments(argv)
    settings = dataclasses.replace(Settings(), steps=args.steps, batch=args.batch, side=args.side,
                                   held_out=args.held_out, seed=args.seed, warmup_steps=max(1, args.steps // 20))
    args.out.mkdir(parents=True, exist_ok=True)
    state, model = args.out / "checkpoint.params", args.out / "tiny_ssd.params"
    if args.fresh:
        state.unlink(missing_ok=True)
    try:
        net, progress = training.train(settings, str(state))
    except training.Interrupted as stopped:
        print(f"demo: {stopped}", file=sys.stderr)
        return 130
    net.save_parameters(str(model))
    net = TinySSD(len(settings.classes))  # from here on what was saved, not what was trained
    net.load_parameters(str(model))
    net.hybridize()
    map50, each = evaluate(net, settings)
    draw_detections(args.out / "detections.png", net, settings)
    draw_training(args.out / "training.png", settings, progress, map50)
    figures = {"map50": round(map50, 4), "map50_by_class": {k: round(v, 4) for k, v in each.items()},
               "examples_per_second": round(settings.steps * settings.batch / progress["seconds"], 2),
               "peak_bytes": mx.context.memory_stats()["peak_bytes"], "train_seconds": round(progress["seconds"], 1)}
    (args.out / "figures.json").write_text(json.dumps(figures, indent=2) + "\n")
    explain_detector(args.out / "explain.html", net, settings)
    export_detector(args.out, net, settings)
    print(f"demo: mAP@0.5 {map50:.3f} on {settings.held_out} held-out pictures, {figures['examples_per_second']} "
          f"examples/s, peak {figures['peak_bytes'] / 2**20:.0f} MiB, trained in {progress['seconds']:.0f} s; see "
          f"{args.out}/detections.png\n"
          f"demo: what the compiler made of the detector: {args.out}/explain.html\n"
          f"demo: the detector as files: {args.out}/tiny_ssd-symbol.json, {args.out}/tiny_ssd-0000.params; a picture to try: "
          f"{args.out}/scene.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
