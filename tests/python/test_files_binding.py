# SPDX-License-Identifier: Apache-2.0
"""Writing, drawing and the demo's scenes as Python sees them: what is not reached through another module's tests."""
import os

import numpy as onp
import pytest

import twibil as mx
from twibil import _core


def test_write_file_replaces_or_leaves(tmp_path):
    path = tmp_path / "a"
    _core.write_file(path, b"one")
    _core.write_file(str(path), onp.arange(3, dtype="uint8"))
    assert path.read_bytes() == b"\0\1\2"
    assert os.listdir(tmp_path) == ["a"]
    with pytest.raises(OSError, match="No such file or directory"):
        _core.write_file(tmp_path / "no" / "a", b"")
    with pytest.raises(TypeError):
        _core.write_file(path, 3)
    assert path.read_bytes() == b"\0\1\2"


def test_save_params_checks_names(tmp_path):
    a = mx.np.ones((2,))
    with pytest.raises(ValueError, match="a name for every array or none at all; got 1 names and 2 arrays"):
        _core.save_params(tmp_path / "a", ["x"], [a, a])
    with pytest.raises(ValueError, match="names must differ; got 'x' twice"):
        _core.save_params(tmp_path / "a", ["x", "x"], [a, a])
    with pytest.raises(TypeError):
        _core.save_params(tmp_path / "a", ["x"], ["no array"])
    assert not os.listdir(tmp_path)


def test_draw_box_in_place():
    picture = onp.zeros((40, 60, 3), onp.uint8)
    _core.draw_box(picture, (10, 15, 50, 35), "bag", 1)
    assert picture[35, 30].any() and not picture[25, 30].any()
    assert picture[5:14, 10:28].any()  # the label
    with pytest.raises(TypeError, match="writable uint8 buffer"):
        _core.draw_box(picture[:, :, 0].copy(), (0, 0, 1, 1), "", 0)
    with pytest.raises(ValueError, match="not C-contiguous"):
        _core.draw_box(picture[:, ::2], (0, 0, 1, 1), "", 0)


def test_imresize_and_imdecode_check_their_numbers():
    picture = mx.np.zeros((4, 6, 3), dtype="uint8")
    assert _core.imresize(picture, 3, 2, 3).shape == (2, 3, 3)
    for width, height, method in ((0, 2, 1), (3, -1, 1), (3, 2, 7), (10**6, 2, 1)):
        with pytest.raises(ValueError):
            _core.imresize(picture, width, height, method)
    with pytest.raises(TypeError, match="must be uint8 of shape"):
        _core.imresize(mx.np.zeros((4, 6, 3)), 3, 2)
    with pytest.raises(ValueError, match="flag must be 1"):
        _core.imdecode(b"", 5)
    with pytest.raises(ValueError, match="must be a JPEG or PNG picture; it is empty"):
        _core.imdecode(b"", 1)
    assert _core.imdecode(_core.encode_image(picture, ".png"), -1).shape == (4, 6, 3)
    with pytest.raises(ValueError, match=".png or .jpg"):
        _core.encode_image(picture, ".gif")


def write_idx(path, array):
    path.write_bytes(bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape) + array.tobytes())


def test_scenes_check_their_arguments(tmp_path):
    garments = onp.zeros((2, 28, 28), onp.uint8)
    garments[:, 6:20, 9:22] = 200
    write_idx(tmp_path / "images", garments)
    write_idx(tmp_path / "labels", onp.array([3, 5], onp.uint8))
    photograph = mx.np.zeros((30, 40, 3), dtype="uint8")
    make = lambda **more: _core.FashionScenes(tmp_path / "images", tmp_path / "labels", [photograph], **more)
    scenes = make(side=48, classes=(3, 5), max_garments=2)
    assert scenes.class_names == ["dress", "sandal"]
    pictures, labels = scenes.render(0, 3)
    assert pictures.shape == (3, 48, 48, 3) and labels.shape == (3, 2, 5)
    assert scenes.render(0, 0)[0].shape == (0, 48, 48, 3)
    with pytest.raises(ValueError, match="no garment has label 1"):
        make(classes=(1,))
    with pytest.raises(ValueError, match="must not be negative"):
        scenes.render(-1, 1)
    with pytest.raises(OSError, match="cannot open"):
        _core.FashionScenes(tmp_path / "none", tmp_path / "labels", [photograph])
    with pytest.raises(ValueError, match="at least one photograph"):
        _core.FashionScenes(tmp_path / "images", tmp_path / "labels", [])
