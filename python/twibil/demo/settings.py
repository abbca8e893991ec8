# SPDX-License-Identifier: Apache-2.0
"""Every number of the demo, in one place. A checkpoint remembers them, and goes on only with the same ones."""
from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is trained, on what, and how long. The defaults take about 6 minutes on 2 cores."""

    side: int = 128  # pictures are square
    classes: tuple = (0, 1, 7, 8)  # Fashion-MNIST's labels: t-shirt, trouser, sneaker, bag
    max_garments: int = 3
    min_size: float = 0.3  # longer side of a garment, in parts of the picture's
    max_size: float = 0.7
    batch: int = 8  # small: with so few pictures, steps are what counts
    steps: int = 1200
    learning_rate: float = 0.0015
    warmup_steps: int = 60
    box_weight: float = 1.0
    seed: int = 1
    held_out: int = 300  # pictures for the mean average precision

    def as_dict(self) -> dict:
        """For JSON."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in dataclasses.asdict(self).items()}
