# SPDX-License-Identifier: Apache-2.0
"""The command `twibil`: the same answers as Python's, and clear errors with their exit status for everything else."""
from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as onp
import pytest

import twibil as mx
from twibil import _core

COMMAND = Path(_core.__file__).resolve().parents[2] / "twibil"
pytestmark = pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built (TWIBIL_CLI)")


def run(*words, status=0, cwd=None):
    done = subprocess.run([str(COMMAND), *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=120)
    assert done.returncode == status, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout if status == 0 else done.stderr


def write_picture(path, side=40):
    rng = onp.random.default_rng(3)
    picture = rng.integers(0, 256, (side, side + 10, 3)).astype("uint8")
    mx.image.imwrite(str(path), mx.np.array(picture))
    return picture


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """(stem, function from (1, 3, 16, 16) to probabilities)."""
    folder = tmp_path_factory.mktemp("model")
    x = mx.sym.Variable("data")
    y = mx.sym.Convolution(x, kernel=(3, 3), num_filter=4, pad=(1, 1), name="conv1")
    y = mx.sym.Activation(y, act_type="relu", name="relu1")
    y = mx.sym.FullyConnected(mx.sym.Pooling(y, global_pool=True, pool_type="avg", kernel=(1, 1)), num_hidden=7, name="fc1")
    arguments, _, _ = y.infer_shape(data=(1, 3, 16, 16))
    rng = onp.random.default_rng(1)
    values = {n: mx.nd.array(rng.normal(size=s)) for n, s in zip(y.list_arguments(), arguments) if n != "data"}
    stem = folder / "small"
    y.save(f"{stem}-symbol.json")
    mx.nd.save(f"{stem}-0003.params", {f"arg:{n}": v for n, v in values.items()})
    (folder / "small-predict.json").write_text(json.dumps(
        {"size": [16, 16], "divide": 255, "mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.4],
         "classes": [f"thing {i}" for i in range(7)], "scores": "logits"}))
    compiled = mx.sym.compile(y)

    def predict(data):
        return mx.npx.softmax(compiled(data=data, **values)).asnumpy()[0]

    return stem, predict


def test_help_and_mistakes_in_the_command_line():
    assert "predict MODEL PICTURE" in run("help")
    assert "predict MODEL PICTURE" in run(status=2)
    assert "no command dance" in run("dance", status=2)
    assert "needs a model" in run("predict", "model", status=2)
    assert "--out" in run("predict", "m", "p", "--oat", "x", status=2)
    assert "needs a value" in run("predict", "m", "p", "--out", status=2)
    assert "0 to 1" not in run("predict", "m", "p", "--out", "x", status=1)
    assert re.match(r"twibil \d+\.\d+", run("--version"))


def test_doctor_tells_what_the_machine_is():
    text = run("doctor")
    for word in ("instruction sets", "(in use)", "threads", "TWIBIL_NUM_THREADS", "operators"):
        assert word in text


def test_a_classifier_says_what_python_says(classifier, tmp_path):
    stem, predict = classifier
    write_picture(tmp_path / "a.png")
    small = mx.image.imresize(mx.image.imread(str(tmp_path / "a.png")), 16, 16).asnumpy().astype("float32")
    small = (small / onp.float32(255) - onp.array([0.4, 0.5, 0.6], "float32")) / onp.array([0.2, 0.3, 0.4], "float32")
    p = predict(mx.np.array(small.transpose(2, 0, 1)[None]))
    lines = run("predict", stem, tmp_path / "a.png").splitlines()
    assert lines[0] == str(tmp_path / "a.png") and len(lines) == 6
    best = onp.argsort(-p)[:5]
    for line, i in zip(lines[1:], best):
        score, name = line.split(maxsplit=1)
        assert name == f"thing {i}" and abs(float(score) - p[i]) < 2e-4
    for other in (f"{stem}-symbol.json", f"{stem}-0003.params"):
        assert run("predict", other, tmp_path / "a.png").splitlines() == lines


def test_one_bad_picture_does_not_stop_the_others(classifier, tmp_path):
    write_picture(tmp_path / "good.png")
    (tmp_path / "bad.png").write_bytes((tmp_path / "good.png").read_bytes()[:200])
    done = subprocess.run([str(COMMAND), "predict", str(classifier[0]), str(tmp_path / "bad.png"), str(tmp_path / "missing.jpg"),
                           str(tmp_path / "good.png")], capture_output=True, text=True)
    assert done.returncode == 1
    assert "bad.png" in done.stderr and "missing.jpg" in done.stderr and "thing" in done.stdout


def test_summary_and_explain(classifier, tmp_path):
    stem, _ = classifier
    text = run("summary", stem)
    assert "conv1" in text and "[1, 4, 16, 16]" in text and "147 parameters" in text
    assert "[2, 4, 8, 8]" in run("summary", stem, "--shape", "2x3x8x8")
    assert "kernels; planned" in run("explain", stem)
    run("explain", stem, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<svg" in page and "conv1" in page and "http" not in page
    assert "sizes such as" in run("explain", stem, "--shape", "axb", status=2)
    assert run("explain", stem, "--shape", "1x3", status=1)


def hostile(text):
    """Damaged versions of a file's text."""
    rng = onp.random.default_rng(5)
    yield from ("", "{", "[]", "nonsense", '{"nodes": 3}', "\x00" * 50, "[" * 100000)
    for cut in rng.integers(1, len(text), 10):
        yield text[:cut]
    for at in rng.integers(1, len(text), 25):
        yield text[:at] + chr(rng.integers(32, 126)) + text[at + 1:]


def test_damaged_graphs_and_settings_end_with_an_error_never_a_crash(classifier, tmp_path):
    stem, _ = classifier
    write_picture(tmp_path / "a.png")
    for which in ("-symbol.json", "-predict.json"):
        for name in ("-symbol.json", "-predict.json", "-0003.params"):
            (tmp_path / f"m{name}").write_bytes(Path(f"{stem}{name}").read_bytes())
        original = Path(f"{stem}{which}").read_text()
        for text in hostile(original):
            (tmp_path / f"m{which}").write_text(text)
            done = subprocess.run([str(COMMAND), "predict", str(tmp_path / "m"), str(tmp_path / "a.png"), "--out", str(tmp_path)],
                                  capture_output=True, text=True, timeout=60)
            assert done.returncode in (0, 1), f"{which}: status {done.returncode} for {text[:200]!r}"
            if done.returncode:
                assert done.stderr.startswith("twibil: ")


def test_what_is_missing_is_named(classifier, tmp_path):
    assert "nowhere-symbol.json" in run("summary", tmp_path / "nowhere", status=1)
    (tmp_path / "m-symbol.json").write_text(Path(f"{classifier[0]}-symbol.json").read_text())
    assert "conv1_weight" in run("summary", tmp_path / "m", status=1)
    (tmp_path / "m-predict.json").write_text('{"sice": [1, 2]}')
    mx.nd.save(str(tmp_path / "m-0000.params"), mx.nd.load(f"{classifier[0]}-0003.params"))
    write_picture(tmp_path / "a.png")
    message = run("predict", tmp_path / "m", tmp_path / "a.png", status=1)
    assert "m-predict.json: byte" in message and "sice" in message


def test_a_detector_draws_the_boxes_that_it_prints(tmp_path):
    """Rows of class, score, box as the only result: a network that finds two fixed boxes."""
    rows = onp.array([[[1, 0.9, 0.1, 0.2, 0.5, 0.6], [0, 0.6, 0.4, 0.4, 0.9, 1.0], [-1, 0, 0, 0, 0, 0], [0, 0.1, 0, 0, 1, 1]]], "float32")
    x = mx.sym.Variable("data")
    y = mx.sym.broadcast_add(mx.sym.Variable("rows_weight"), mx.sym.sum(x) * 0)
    y.save(str(tmp_path / "d-symbol.json"))
    mx.nd.save(str(tmp_path / "d-0000.params"), {"arg:rows_weight": mx.nd.array(rows)})
    (tmp_path / "d-predict.json").write_text('{"size": [8, 8], "classes": ["bag", "shoe"], "detector": {"threshold": 0.5}}')
    before = write_picture(tmp_path / "p.png", side=100)
    text = run("predict", tmp_path / "d", tmp_path / "p.png", "--out", tmp_path / "out")
    assert "2 boxes" in text and "0.9000  shoe  left 11.0, top 20.0, right 55.0, bottom 60.0" in text and "bag" in text
    drawn = mx.image.imread(str(tmp_path / "out/p-boxes.png")).asnumpy()
    assert drawn.shape == before.shape and (drawn != before).any(axis=2).sum() > 500
    assert "3 boxes" in run("predict", tmp_path / "d", tmp_path / "p.png", "--out", tmp_path, "--threshold", "0.05")


def test_the_demos_detector_gives_the_boxes_of_python(tmp_path):
    from twibil.demo.network import TinySSD, detect
    from twibil.demo.scenes import to_input

    mx.random.seed(4)
    net = TinySSD(2)
    net.initialize(mx.init.Xavier(magnitude=20))  # scores that differ
    picture = onp.random.default_rng(3).integers(0, 256, (64, 64, 3)).astype("uint8")
    mx.image.imwrite(str(tmp_path / "p.png"), mx.np.array(picture))
    want = detect(net, to_input(mx.np.array(picture[None])), threshold=0.2)[0]
    net.hybridize()
    net(to_input(mx.np.array(picture[None])))
    net.export(str(tmp_path / "detector"))
    (tmp_path / "detector-predict.json").write_text(json.dumps(
        {"size": [64, 64], "divide": 127.5, "mean": [1, 1, 1], "classes": ["bag", "shoe"],
         "detector": {"threshold": 0.2, "overlap": 0.45}}))
    text = run("predict", tmp_path / "detector", tmp_path / "p.png", "--out", tmp_path)
    found = re.findall(r"(\S+)  (\S+)  left (\S+), top (\S+), right (\S+), bottom (\S+)", text)
    assert len(found) == len(want) > 0
    got = onp.array([[["bag", "shoe"].index(f[1]), *(float(v) for v in (f[0], *f[2:]))] for f in found])
    want = want[onp.argsort(-want[:, 1], kind="stable")]
    want[:, 2:] *= 64
    onp.testing.assert_allclose(got, want, atol=0.06)
    onp.testing.assert_allclose(got[:, 1], want[:, 1], atol=1e-4)


def test_bench(tmp_path):
    chart = tmp_path / "chart.svg"
    out = run("bench", "--networks", "mobilenet0.25,squeezenet1.1", "--batches", "1,2", "--rounds", 1, "--seconds", 0.01,
              "--threads", 1, "--chart", chart)
    rows = [line.split() for line in out.splitlines() if line.startswith(("mobilenet", "squeezenet"))]
    assert [r[:2] for r in rows] == [["mobilenet0.25", "1"], ["mobilenet0.25", "2"], ["squeezenet1.1", "1"],
                                     ["squeezenet1.1", "2"]]
    for _, _, fast, direct, gain in rows:
        assert float(fast) > 0 and float(gain) == pytest.approx(float(fast) / float(direct), abs=0.02)
    assert "1 thread," in out
    texts = [e.text for e in ElementTree.parse(chart).iter() if e.tag.endswith("text")]
    assert "mobilenet0.25" in texts and "squeezenet1.1" in texts and texts.count("2") == 2


@pytest.mark.parametrize("words, message", [
    (["--networks", "resnet"], "there is no network resnet; known are alexnet"),
    (["--batches", "1,0"], "from 1"), (["--batches", "1,,2"], "from 1"), (["--batches", "1.5"], "whole numbers"),
    (["--threads", "0"], "--threads must be"), (["--rounds", "many"], "--rounds must be"), (["alexnet"], "--networks"),
])
def test_bench_refuses(words, message):
    assert message in run("bench", *words, status=2)


def test_onnx_models_are_read_too(tmp_path):
    import onnx_bytes as ob
    rng = onp.random.default_rng(5)
    w, fc = rng.normal(size=(4, 3, 3, 3)).astype("float32"), rng.normal(size=(7, 4)).astype("float32")
    nodes = [ob.node("Conv", ["data", "w"], ["c"], pads=[1, 1, 1, 1]), ob.node("Relu", ["c"], ["r"]),
             ob.node("GlobalAveragePool", ["r"], ["p"]), ob.node("Flatten", ["p"], ["f"]),
             ob.node("Gemm", ["f", "fc"], ["y"], transB=1)]
    g = ob.graph(nodes, [ob.value("data", ["N", 3, 16, 20])], [ob.value("y", ["N", 7])],
                 [ob.tensor("w", w), ob.tensor("fc", fc)])
    (tmp_path / "net.onnx").write_bytes(ob.model(g))
    text = run("summary", tmp_path / "net.onnx")
    assert "[1, 3, 16, 20]" in text and "[1, 7]" in text and "136 parameters" in text
    assert "kernels" in run("explain", tmp_path / "net.onnx") or "convolution" in run("explain", tmp_path / "net.onnx")
    write_picture(tmp_path / "a.png")
    out = run("predict", tmp_path / "net.onnx", tmp_path / "a.png")
    assert len(re.findall(r"class \d", out)) == 5
    (tmp_path / "net.onnx").write_bytes(ob.model(g)[:-100])
    assert "net.onnx" in run("predict", tmp_path / "net.onnx", tmp_path / "a.png", status=1)
