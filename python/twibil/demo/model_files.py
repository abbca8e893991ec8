# SPDX-License-Identifier: Apache-2.0
"""What the demo leaves besides pictures: the page that explains the compiled detector."""
from __future__ import annotations

from .scenes import make_scenes, to_input


def explain_detector(path, net, settings) -> None:
    """Writes the page for one held-out picture, with measured times."""
    picture = make_scenes(settings, training=False).render(0, 1)[0]
    net.explain(to_input(picture), html=path, measure=[to_input(picture)])
