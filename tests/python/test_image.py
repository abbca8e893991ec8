# SPDX-License-Identifier: Apache-2.0
"""Pictures: files, crops, colours and transforms."""

import numpy as onp
import pytest

import twibil as mx
from twibil import image, np
from twibil.gluon.data import vision
from twibil.gluon.data.vision import transforms

RNG = onp.random.default_rng(9)


def picture(h=12, w=16, c=3):
    return np.array(RNG.integers(0, 256, (h, w, c)).astype("uint8"))


def test_crops():
    x = picture()
    a = x.asnumpy()
    onp.testing.assert_array_equal(image.fixed_crop(x, 2, 3, 5, 4).asnumpy(), a[3:7, 2:7])
    crop, (x0, y0, w, h) = image.random_crop(x, (6, 5))
    onp.testing.assert_array_equal(crop.asnumpy(), a[y0 : y0 + h, x0 : x0 + w])
    crop, box = image.center_crop(x, (6, 4))
    assert box == (5, 4, 6, 4) and crop.shape == (4, 6, 3)
    assert image.scale_down((640, 480), (720, 120)) == (640, 106)
    crop, box = image.random_size_crop(x, (8, 8), (0.2, 0.5), (0.75, 1.33))
    assert crop.shape == (8, 8, 3) and 0.1 < box[2] * box[3] / (12 * 16) < 0.7
    with pytest.raises(ValueError, match="must lie within width 16 and height 12"):
        image.fixed_crop(x, 10, 0, 8, 4)


def test_resize():
    x = picture()
    assert image.imresize(x, 8, 6).shape == (6, 8, 3)
    assert image.resize_short(x, 6).shape == (6, 8, 3)
    assert image.resize(x, 5).shape == (5, 5, 3)
    onp.testing.assert_array_equal(image.imresize(x, 16, 12).asnumpy(), x.asnumpy())
    with pytest.raises(ValueError, match="positive integer"):
        image.imresize(x, 0, 5)


def test_flips_and_border():
    x = picture()
    onp.testing.assert_array_equal(image.flip_left_right(x).asnumpy(), x.asnumpy()[:, ::-1])
    onp.testing.assert_array_equal(image.flip_top_bottom(x).asnumpy(), x.asnumpy()[::-1])
    assert image.random_flip_left_right(x, p=0.0) is x
    y = image.copyMakeBorder(x, 1, 2, 3, 4, values=7).asnumpy()
    assert y.shape == (15, 23, 3) and (y[0] == 7).all()
    onp.testing.assert_array_equal(y[1:13, 3:19], x.asnumpy())


def test_to_tensor_and_normalize():
    x = picture()
    t = transforms.ToTensor()(x)
    assert t.shape == (3, 12, 16) and str(t.dtype) == "float32"
    onp.testing.assert_allclose(t.asnumpy(), x.asnumpy().transpose(2, 0, 1) / 255.0, rtol=1e-6)
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    n = transforms.Normalize(mean, std)(t).asnumpy()
    expect = (t.asnumpy() - onp.reshape(mean, (3, 1, 1))) / onp.reshape(std, (3, 1, 1))
    onp.testing.assert_allclose(n, expect, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="to_tensor"):
        image.to_tensor(np.ones((3,)))


def test_colour_adjustments():
    x = picture()
    a = x.asnumpy().astype("float64")
    gray = a @ [0.299, 0.587, 0.114]

    def cut(v):
        return onp.clip(v, 0, 255)

    for got, expect in (
        (image.adjust_brightness(x, 1.5), a * 1.5),
        (image.adjust_contrast(x, 0.5), a * 0.5 + 0.5 * gray.mean()),
        (image.adjust_saturation(x, 0.3), a * 0.3 + 0.7 * gray[..., None]),
    ):
        assert str(got.dtype) == "uint8"
        assert abs(got.asnumpy().astype("float64") - cut(expect)).max() <= 1.01
    same = image.adjust_hue(x.astype("float32"), 1.0).asnumpy()
    assert abs(same - a).max() < 1.5
    turned = image.adjust_hue(x.astype("float32"), 0.3).asnumpy() @ [0.299, 0.587, 0.114]
    assert abs(turned - gray).max() < 1.5


def test_transforms_run_and_follow_the_seed():
    chain = transforms.Compose(
        [
            transforms.RandomResizedCrop(8),
            transforms.RandomFlipLeftRight(),
            transforms.RandomColorJitter(0.4, 0.4, 0.4, 0.1),
            transforms.ToTensor(),
        ]
    )
    x, runs = picture(), []
    for _ in range(2):
        mx.random.seed(5)
        runs.append(chain(x).asnumpy())
    assert runs[0].shape == (3, 8, 8)
    onp.testing.assert_array_equal(runs[0], runs[1])
    assert (chain(x).asnumpy() != runs[0]).any()
    assert transforms.Resize((6, 4))(x).shape == (4, 6, 3)
    assert transforms.CenterCrop(5)(x).shape == (5, 5, 3)
    assert transforms.RandomCrop(10, pad=2)(x).shape == (10, 10, 3)
    assert transforms.CropResize(1, 2, 5, 6, size=(3, 3))(x).shape == (3, 3, 3)
    for t in (
        transforms.RandomFlipTopBottom(),
        transforms.RandomBrightness(0.1),
        transforms.RandomContrast(0.1),
        transforms.RandomSaturation(0.1),
        transforms.RandomHue(0.1),
    ):
        assert t(x).shape == x.shape
    assert transforms.RandomGray(1.0)(x.astype("float32")).shape == x.shape
    assert str(transforms.Cast("float16")(x).dtype) == "float16"


def test_augmenters():
    chain = image.CreateAugmenter(
        (3, 8, 8),
        rand_crop=True,
        rand_mirror=True,
        brightness=0.1,
        contrast=0.1,
        hue=0.1,
        saturation=0.1,
        pca_noise=0.1,
        rand_gray=0.1,
        mean=True,
        std=True,
    )
    y = picture()
    for step in chain:
        y = step(y)
    assert y.shape == (8, 8, 3) and str(y.dtype) == "float32"


def test_files(tmp_path):
    x = picture()
    png = str(tmp_path / "p.png")
    image.imwrite(png, x)
    onp.testing.assert_array_equal(image.imread(png).asnumpy(), x.asnumpy())
    onp.testing.assert_array_equal(image.imread(png, to_rgb=False).asnumpy(), x.asnumpy()[..., ::-1])
    assert image.imread(png, flag=0).shape == (12, 16, 1)
    smooth = np.array(onp.broadcast_to(onp.linspace(0, 255, 16).astype("uint8")[None, :, None], (12, 16, 3)).copy())
    image.imwrite(str(tmp_path / "p.jpg"), smooth)
    assert abs(image.imread(str(tmp_path / "p.jpg")).asnumpy().astype(int) - smooth.asnumpy()).mean() < 4
    (tmp_path / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    with pytest.raises(ValueError, match="bad.png"):
        image.imread(str(tmp_path / "bad.png"))
    with pytest.raises(OSError):
        image.imread(str(tmp_path / "absent.png"))
    with pytest.raises(ValueError, match="must end in"):
        image.imwrite(str(tmp_path / "p.gif"), x)


def test_image_folder(tmp_path):
    for folder, count in (("cat", 2), ("dog", 1)):
        (tmp_path / folder).mkdir()
        for i in range(count):
            image.imwrite(str(tmp_path / folder / f"{i}.png"), picture())
    (tmp_path / "dog" / "notes.txt").write_text("x")
    with pytest.warns(UserWarning, match="notes.txt is left out"):
        d = vision.ImageFolderDataset(str(tmp_path))
    assert d.synsets == ["cat", "dog"] and [label for _, label in d.items] == [0, 0, 1]
    x, label = d[2]
    assert x.shape == (12, 16, 3) and label == 1
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has no pictures"):
        vision.ImageFolderDataset(str(tmp_path / "empty"))
