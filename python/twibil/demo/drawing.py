# SPDX-License-Identifier: Apache-2.0
"""The demo's two pictures: what was found on held-out pictures, and how the losses fell."""
from __future__ import annotations

import numpy as onp

import twibil as mx
from twibil import _core

from .network import detect
from .scenes import make_scenes, to_input

TILE = 320  # sides of a picture in the grid; the network sees the same scene in its own resolution
GAP = 8


SCORE = 0.4  # what is less certain is not drawn


def draw_detections(path, net, settings, rows=3, columns=4, first=0, score=SCORE) -> None:
    """A grid of held-out pictures with the boxes, names and scores of what the network found."""
    sharp = make_scenes(settings, training=False, side=TILE)
    seen = make_scenes(settings, training=False)
    count = rows * columns
    tiles = sharp.render(first, count)[0].asnumpy()
    found = detect(net, to_input(seen.render(first, count)[0]))
    grid = onp.full((rows * (TILE + GAP) + GAP, columns * (TILE + GAP) + GAP, 3), 24, onp.uint8)
    for i, (tile, boxes) in enumerate(zip(tiles, found)):
        for label, chance, *box in boxes[boxes[:, 1] >= score].tolist()[::-1]:
            box = tuple(v * TILE for v in box)
            _core.draw_box(tile, box, f"{sharp.class_names[int(label)]} {chance:.2f}", int(label), 3.0, 2)
        top, left = (GAP + k * (TILE + GAP) for k in divmod(i, columns))
        grid[top:top + TILE, left:left + TILE] = tile
    mx.image.imwrite(str(path), mx.np.array(grid))


def _smooth(values, width=25):
    """The mean of the last `width` values at every step."""
    total = onp.cumsum(onp.concatenate([[0.0], values]))
    end = onp.arange(1, len(values) + 1)
    begin = onp.maximum(end - width, 0)
    return (total[end] - total[begin]) / (end - begin)


def draw_training(path, settings, progress, map50: float) -> None:
    """Both losses over the pictures seen."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(8, 4.5), dpi=120, layout="constrained")
    pictures = (onp.arange(progress["step"]) + 1) * settings.batch
    for name, color in (("class", "tab:blue"), ("box", "tab:orange")):
        values = onp.array(progress[f"{name}_losses"])
        axes.plot(pictures, values, color=color, alpha=0.2, linewidth=0.8)
        axes.plot(pictures, _smooth(values), color=color, label=f"{name} loss (mean of 25 steps)")
    axes.set(xlabel="training pictures", ylabel="loss per garment's anchor", yscale="log", xlim=(0, None),
             title=f"TinySSD on garments: mAP@0.5 {map50:.3f} on held-out pictures after {progress['seconds']:.0f} s")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    figure.savefig(path)
    pyplot.close(figure)
