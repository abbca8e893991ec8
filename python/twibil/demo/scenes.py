# SPDX-License-Identifier: Apache-2.0
"""The demo's pictures: garments on photographs. Training and held-out pictures share neither."""
from __future__ import annotations

import importlib.util
from pathlib import Path

import twibil as mx
from twibil import _core
from twibil.gluon.data.vision import FashionMNIST

_TRAINING = ("skimage/data/astronaut.png", "skimage/data/coffee.png", "sklearn/datasets/images/china.jpg",
             "skimage/data/motorcycle_left.png", "skimage/data/rocket.jpg", "skimage/data/brick.png",
             "skimage/data/grass.png", "skimage/data/gravel.png", "skimage/data/coins.png",
             "skimage/data/hubble_deep_field.jpg")
_HELD_OUT = ("sklearn/datasets/images/flower.jpg", "skimage/data/chelsea.png")
_HELD_OUT_SEED = 1_000_003  # other random numbers, too


def _photograph(name: str):
    package, inside = name.split("/", 1)
    found = importlib.util.find_spec(package)  # finds the folder without running the package
    path = Path(found.origin).parent / inside if found is not None and found.origin else None
    if path is None or not path.is_file():
        raise FileNotFoundError(f"the photograph {name} is missing; run: pip install scikit-image scikit-learn")
    return mx.image.imread(str(path))


def make_scenes(settings, training: bool, side=None):
    """The endless list of pictures: `render(first, count)` gives uint8 pictures and their boxes. `side`: the same
    scenes in another resolution, for looking at them."""
    images, labels = (str(path) for path in FashionMNIST.paths(train=training))
    photographs = [_photograph(name) for name in (_TRAINING if training else _HELD_OUT)]
    return _core.FashionScenes(images, labels, photographs, side=side or settings.side, classes=settings.classes,
                               max_garments=settings.max_garments, min_size=settings.min_size,
                               max_size=settings.max_size, seed=settings.seed + (0 if training else _HELD_OUT_SEED))


def to_input(pictures):
    """uint8 (n, height, width, 3) as the network takes it: float32 (n, 3, height, width), around 0."""
    return pictures.astype("float32").transpose(0, 3, 1, 2) / 127.5 - 1
