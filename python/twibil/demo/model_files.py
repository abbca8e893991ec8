# SPDX-License-Identifier: Apache-2.0
"""What the demo leaves besides pictures: the page that explains the compiled detector, and the detector as files."""
from __future__ import annotations

import json

import twibil as mx

from .drawing import SCORE
from .network import OVERLAP
from .scenes import make_scenes, to_input


def explain_detector(path, net, settings) -> None:
    """Writes the page for one held-out picture, with measured times."""
    picture = make_scenes(settings, training=False).render(0, 1)[0]
    net.explain(to_input(picture), html=path, measure=[to_input(picture)])


def export_detector(folder, net, settings) -> None:
    """Writes what `twibil predict FOLDER/tiny_ssd FOLDER/scene.png` needs: the graph with its parameters, what it wants of
    pictures, and a held-out picture."""
    scenes = make_scenes(settings, training=False)
    picture = scenes.render(0, 1)[0]
    net(to_input(picture))  # an exported graph is that of the last call
    net.export(str(folder / "tiny_ssd"))
    wants = {"size": [settings.side, settings.side], "divide": 127.5, "mean": [1, 1, 1], "classes": scenes.class_names,
             "detector": {"threshold": SCORE, "overlap": OVERLAP}}
    (folder / "tiny_ssd-predict.json").write_text(json.dumps(wants, indent=2) + "\n", encoding="utf-8")
    mx.image.imwrite(str(folder / "scene.png"), picture[0])
