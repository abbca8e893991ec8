# SPDX-License-Identifier: Apache-2.0
"""The networks of gluon.model_zoo: parameters and outputs are those of MXNet 1.9.1 (tools/zoo_fixtures.py), or of PyTorch
for networks that it has (tools/torch_fixtures.py)."""
from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import mxnet_fixtures
import numpy as onp
import pytest
import zoo_formula

import twibil as mx
from twibil import _core
from twibil.gluon import model_zoo
from twibil.gluon.model_zoo import model_store, vision

EXPECTED = zoo_formula.read(os.path.join(mxnet_fixtures.FOLDER, "zoo.txt"))

TORCH = zoo_formula.read(os.path.join(mxnet_fixtures.FOLDER, "..", "torch", "zoo.txt"))


def filled(name, side):
    """The network for ten classes with the formula's weights."""
    net = vision.get_model(name, classes=10)
    net.initialize()
    net(mx.np.zeros((1, 3, side, side)))
    for i, (key, p) in enumerate(net._collect_params_with_prefix(in_files=True).items()):
        p.set_data(mx.np.array(zoo_formula.parameter(i, key, p.shape)))
    return net


def test_every_network_is_compared():
    assert sorted(EXPECTED) == sorted(zoo_formula.SIDES)
    assert sorted([*EXPECTED, *TORCH]) == sorted(vision._MODELS)


@pytest.mark.parametrize("name", EXPECTED)
def test_structure_and_outputs_are_mxnets(name):
    side, count, crc, expect = EXPECTED[name]
    net = filled(name, side)
    params = net._collect_params_with_prefix(in_files=True)
    assert len(params) == count
    assert zoo_formula.checksum((n, p.shape) for n, p in params.items()) == crc
    out = net(mx.np.array(zoo_formula.picture(side))).asnumpy()
    assert out.shape == (1, 10)
    assert abs(out[0] - expect).max() <= 1e-4 * abs(expect).max()


@pytest.mark.parametrize("name", TORCH)
def test_structure_and_outputs_are_pytorchs(name):
    side, count, _, expect = TORCH[name]
    net = filled(name, side)
    assert len(net.collect_params()) == count
    for _ in range(2):
        out = net(mx.np.array(zoo_formula.picture(side))).asnumpy()[0]
        assert abs(out - expect).max() <= 1e-4 * abs(expect).max()
        net.hybridize()


def test_weights_of_pytorch(tmp_path):
    ours = model_zoo.get_model("mobilenetv2_torch", classes=3)
    ours.initialize()
    x = mx.np.ones((1, 3, 64, 64))
    ours(x)
    names = {"gamma": "weight", "beta": "bias"}
    theirs = {}
    for i, (name, p) in enumerate(ours.collect_params().items()):
        kind = name.rpartition(".")[2]
        theirs[f"layer{i}.{names.get(kind, kind)}"] = mx.np.array(zoo_formula.parameter(i, name, p.shape))
        if kind == "running_var":
            theirs[f"layer{i}.num_batches_tracked"] = mx.np.array(1)
    net = model_zoo.get_model("mobilenetv2_torch", classes=3)
    model_zoo.load_torch_parameters(net, {"state_dict": theirs, "epoch": 3})
    for i, (name, p) in enumerate(net.collect_params().items()):
        onp.testing.assert_array_equal(p.data().asnumpy(), zoo_formula.parameter(i, name, p.shape))
    before = net(x).asnumpy()
    first, *_, last = theirs
    for wrong, words in [({**theirs, last: mx.np.zeros(4)}, "shape"), ({"x": 1, **theirs}, "317.*weights|weights"),
                         (dict(reversed(theirs.items())), "layers differ"), ("missing.pth", "missing.pth")]:
        with pytest.raises((ValueError, OSError), match=words):
            model_zoo.load_torch_parameters(net, wrong)
    onp.testing.assert_array_equal(net(x).asnumpy(), before)


@pytest.mark.parametrize("name", ["mobilenetv2_0.25", "squeezenet1.1", "resnet18_v2"])
def test_hybridized_networks_agree(name):
    side, _, _, expect = EXPECTED[name]
    net = filled(name, side)
    net.hybridize()
    out = net(mx.np.array(zoo_formula.picture(side))).asnumpy()[0]
    assert abs(out - expect).max() <= 1e-4 * abs(expect).max()


PROGRAM = Path(_core.__file__).resolve().parents[2] / "example_classify"


@pytest.mark.skipif(not PROGRAM.exists(), reason="examples are not built (TWIBIL_EXAMPLES)")
@pytest.mark.parametrize("name", ["mobilenet0.25", "mobilenetv2_0.25", "squeezenet1.1", "efficientnet_lite0"])
def test_cpp_gives_the_same_from_the_same_file(tmp_path, name):
    side = 224
    net = filled(name, side)
    net.save_parameters(str(tmp_path / "net.params"))
    rng = onp.random.default_rng(2)
    picture = mx.np.array(rng.integers(0, 256, (side, side, 3)).astype("uint8"))
    mx.image.imwrite(str(tmp_path / "p.png"), picture)
    x = (picture.asnumpy() / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    scores = net(mx.np.array(x.transpose(2, 0, 1)[None].astype("float32"))).asnumpy()[0]
    done = subprocess.run([str(PROGRAM), name, str(tmp_path / "net.params"), str(tmp_path / "p.png"), "10", str(side)],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    best = onp.argsort(-scores, kind="stable")[:5]
    for line, i in zip(done.stdout.splitlines(), best, strict=True):
        score, _, number = line.split()
        assert abs(float(score) - scores[i]) <= 2e-4 * abs(scores).max()
        assert scores[int(number)] == pytest.approx(scores[i], abs=1e-5)


def test_exported_networks_hold_operators_of_mxnet(tmp_path):
    net = filled("mobilenetv2_0.25", 64)
    net.hybridize()
    x = mx.np.array(zoo_formula.picture(64))
    y = net(x).asnumpy()
    net.export(str(tmp_path / "net"))
    nodes = json.loads((tmp_path / "net-symbol.json").read_text())["nodes"]
    assert {n["op"] for n in nodes} == {"null", "Convolution", "BatchNorm", "clip", "broadcast_add", "Pooling", "Flatten"}
    again = mx.gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params"))
    onp.testing.assert_allclose(again(x).asnumpy(), y, rtol=1e-5, atol=1e-5)


def test_networks_train():
    net = model_zoo.get_model("resnet18_v1", classes=3, thumbnail=True)
    net.initialize(mx.init.Xavier())
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.05})
    x, y, loss = mx.np.random.normal(size=(6, 3, 16, 16)), mx.np.array([0, 1, 2, 0, 1, 2]), mx.gluon.loss.SoftmaxCELoss()
    errors = []
    for _ in range(6):
        with mx.autograd.record():
            error = loss(net(x), y).mean()
        error.backward()
        trainer.step(1)
        errors.append(error.item())
    assert errors[-1] < errors[0]


def test_names_are_mxnets():
    assert type(vision.mobilenet_v2_0_5(classes=2)) is vision.MobileNetV2
    assert type(vision.get_model("mobilenet_v2_0_75", classes=2)) is vision.MobileNetV2
    assert type(mx.gluon.model_zoo.vision.inception_v3()) is vision.Inception3
    assert model_zoo.get_model("ResNet50_v2").features[0]._attrs["fix_gamma"]
    assert vision.resnet18_v1.__name__ == "resnet18_v1" and "pretrained" in vision.resnet18_v1.__doc__


@pytest.mark.parametrize("wrong, near", [("resnet18", "resnet18_v"), ("mobilenet2_1.0", "mobilenetv2_1.0"),
                                         ("inception3", "inceptionv3"), ("vgg", "vgg1")])
def test_unknown_names(wrong, near):
    with pytest.raises(ValueError, match="Did you mean") as info:
        vision.get_model(wrong)
    assert near in str(info.value).split("Known are")[0] and "vgg19_bn" in str(info.value)


@pytest.mark.parametrize("call, error, words", [
    (lambda: vision.get_vgg(12), ValueError, "11, 13, 16, 19"),
    (lambda: vision.get_resnet(3, 50), ValueError, "version must be 1 or 2"),
    (lambda: vision.get_resnet(1, 51), ValueError, "num_layers"),
    (lambda: vision.SqueezeNet("2.0"), ValueError, "'1.0' or '1.1'"),
    (lambda: vision.VGG([1, 2], [3]), ValueError, "one entry a stage"),
    (lambda: vision.vgg11(clases=3), TypeError, "Did you mean 'classes'"),
    (lambda: vision.alexnet(classes=0), ValueError, "positive"),
])
def test_wrong_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_pretrained_needs_a_file(tmp_path):
    with pytest.raises(OSError, match="MXNet's server.*is gone.*load_parameters"):
        vision.mobilenet0_25(pretrained=True, root=tmp_path, ctx=mx.cpu())
    net = vision.mobilenet0_25(classes=2)
    net.initialize()
    x = mx.np.ones((1, 3, 32, 32))
    expect = net(x).asnumpy()
    net.save_parameters(str(tmp_path / "mobilenet0.25.params"))
    again = vision.mobilenet0_25(pretrained=True, root=str(tmp_path), classes=2)
    onp.testing.assert_array_equal(again(x).asnumpy(), expect)


def test_files_that_mxnet_downloaded(tmp_path):
    content = b"weights"
    digits = hashlib.sha1(content).hexdigest()[:8]
    (tmp_path / "vgg11_bn-00000000.params").write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        model_store.get_model_file("vgg11_bn", tmp_path)
    good = tmp_path / f"vgg11_bn-{digits}.params"
    good.write_bytes(content)
    assert model_store.get_model_file("vgg11_bn", tmp_path) == str(good)
    with pytest.raises(OSError):
        model_store.get_model_file("vgg11", tmp_path)  # another network, though the name begins alike
    model_store.purge(tmp_path)
    assert not list(tmp_path.iterdir())
