# SPDX-License-Identifier: Apache-2.0
"""The demo: its measure, its pictures, and that a stopped and resumed training ends with the same bits."""
import os
import signal
import subprocess
import sys
import time

import numpy as onp
import pytest

from twibil.demo.evaluate import average_precision, box_iou, mean_average_precision
from twibil.demo.settings import Settings

TINY = dict(side=64, batch=2, steps=5, warmup_steps=1, held_out=4)


def test_iou():
    boxes = [[0, 0, 2, 2], [1, 1, 3, 3], [5, 5, 6, 6]]
    onp.testing.assert_allclose(box_iou(boxes[:1], boxes), [[1, 1 / 7, 0]])


def test_average_precision_by_hand():
    # Right, wrong, right, of three: precision 1 up to recall 1/3, 2/3 up to recall 2/3, nothing after.
    value = average_precision(onp.array([0.9, 0.8, 0.7]), onp.array([True, False, True]), 3)
    assert value == pytest.approx(1 / 3 + 2 / 9)
    assert onp.isnan(average_precision(onp.array([]), onp.array([], bool), 0))
    assert average_precision(onp.array([]), onp.array([], bool), 2) == 0


def test_mean_average_precision():
    truth = [onp.array([[0, 0, 0, 1, 1], [1, 2, 2, 3, 3], [-1] * 5], float)]
    perfect = [onp.array([[0, 0.9, 0, 0, 1, 1], [1, 0.8, 2, 2, 3, 3]])]
    assert mean_average_precision(perfect, truth, 2) == (1.0, [1.0, 1.0])
    twice = [onp.array([[0, 0.9, 0, 0, 1, 1], [0, 0.95, 0, 0, 1, 1.1], [1, 0.8, 2, 2, 3, 3]])]
    mean, each = mean_average_precision(twice, truth, 2)  # the second sight of one box is wrong, but comes too late
    assert each == [1.0, 1.0] and mean == 1.0
    swapped = [onp.array([[1, 0.9, 0, 0, 1, 1], [0, 0.8, 2, 2, 3, 3]])]
    assert mean_average_precision(swapped, truth, 2)[0] == 0
    with pytest.raises(ValueError, match="as many detections as truths"):
        mean_average_precision(perfect, truth * 2, 2)


def make_scenes(**more):
    try:
        from twibil.demo.scenes import make_scenes as make
        return make(Settings(**{**TINY, **more}), training=False)
    except (FileNotFoundError, OSError) as error:
        pytest.skip(str(error))


def test_scenes():
    scenes = make_scenes()
    assert scenes.class_names == ["t-shirt", "trouser", "sneaker", "bag"]
    pictures, labels = scenes.render(3, 4)
    assert pictures.shape == (4, 64, 64, 3) and labels.shape == (4, 3, 5)
    again, _ = scenes.render(4, 1)
    onp.testing.assert_array_equal(again.asnumpy()[0], pictures.asnumpy()[1])
    rows = labels.asnumpy().reshape(-1, 5)
    boxes = rows[rows[:, 0] >= 0][:, 1:]
    assert len(boxes) and (boxes >= 0).all() and (boxes <= 1 + 1e-6).all() and (boxes[:, 2:] > boxes[:, :2]).all()


def states_of(path):
    from twibil.serialization import load_params
    arrays = load_params(path)
    return {name: a.asnumpy().tobytes() for name, a in arrays.items() if name.startswith(("net.", "trainer.state", "random"))}


def test_resumed_run_ends_with_the_same_bits(tmp_path):
    make_scenes()
    from twibil.demo import training
    settings = Settings(**TINY)
    _, whole = training.train(settings, str(tmp_path / "whole"), every=100)
    for stop in (2, 4):
        with pytest.raises(training.Interrupted, match=f"stopped after step {stop} of 5"):
            training.train(settings, str(tmp_path / "parts"), every=100, stop_after=stop)
    _, parts = training.train(settings, str(tmp_path / "parts"), every=100)
    assert parts["class_losses"] == whole["class_losses"] and len(parts["class_losses"]) == 5
    assert states_of(tmp_path / "whole") == states_of(tmp_path / "parts")


def test_checkpoint_of_other_settings_is_refused(tmp_path):
    make_scenes()
    from twibil.demo import training
    with pytest.raises(training.Interrupted):
        training.train(Settings(**TINY), str(tmp_path / "a"), stop_after=1)
    with pytest.raises(ValueError, match="a checkpoint of other settings"):
        training.train(Settings(**{**TINY, "steps": 6}), str(tmp_path / "a"))


def run_demo(folder, *more):
    return [sys.executable, "-m", "twibil.demo", "--out", str(folder), "--steps", "30", "--batch", "2", "--side", "64",
            "--held-out", "4", *more]


def check_files(folder):
    """The exported detector gives what the saved one gives, for any number of pictures."""
    import json
    import twibil as mx
    from twibil.demo.network import TinySSD, detect
    from twibil.demo.scenes import to_input
    from twibil.gluon import SymbolBlock
    stem = str(folder / "tiny_ssd")
    wants = json.loads((folder / "tiny_ssd-predict.json").read_text(encoding="utf-8"))
    assert wants["size"] == [64, 64] and wants["classes"][0] == "t-shirt" and wants["detector"]["threshold"] == 0.4
    pictures, _ = make_scenes().render(0, 3)
    onp.testing.assert_array_equal(mx.image.imread(str(folder / "scene.png")).asnumpy(), pictures[0].asnumpy())
    onp.testing.assert_allclose((pictures.asnumpy() / wants["divide"] - 1).transpose(0, 3, 1, 2),
                                to_input(pictures).asnumpy(), atol=1e-6)
    net = TinySSD(len(wants["classes"]))
    net.load_parameters(stem + ".params")
    loaded = SymbolBlock.imports(stem + "-symbol.json", ["data"], stem + "-0000.params")
    for ours, theirs in zip(detect(net, to_input(pictures)), detect(loaded, to_input(pictures))):
        onp.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_program_stops_at_a_signal_and_goes_on(tmp_path):
    make_scenes()
    heeds = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # the background of a shell ignores it
    with subprocess.Popen(run_demo(tmp_path), stderr=subprocess.PIPE, text=True, preexec_fn=heeds) as process:
        time.sleep(4)
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=60)[1]
    if process.returncode == 130:
        assert "run again to go on" in error
        assert os.path.exists(tmp_path / "checkpoint.params")
    done = subprocess.run(run_demo(tmp_path), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "mAP@0.5" in done.stdout
    assert "training:" not in done.stderr  # no bar where nobody looks
    assert {"detections.png", "training.png", "figures.json", "tiny_ssd.params"} <= set(os.listdir(tmp_path))
    assert f"{tmp_path}/explain.html" in done.stdout
    page = (tmp_path / "explain.html").read_text(encoding="utf-8")
    check_files(tmp_path)
    assert "stages.0.0.0.weight" in page and "network.py:" in page and "measured" in page


def test_detector_is_the_same_as_a_graph_for_any_batch():
    import twibil as mx
    from twibil.demo.network import TinySSD
    net = TinySSD(3)
    net.initialize()
    x = mx.np.random.uniform(size=(4, 3, 64, 64))
    eager = net(x)
    net.hybridize()
    for a, b in zip(eager, net(x)):
        onp.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-4, atol=1e-6)  # scales are folded into weights
    assert eager[1].shape == (4, eager[0].shape[1], 4) and eager[2].shape == (4, 4 * eager[0].shape[1])
