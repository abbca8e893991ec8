# SPDX-License-Identifier: Apache-2.0
"""CIFAR-10 and CIFAR-100 from files in their binary format: plain, in their own folder, and in the archive."""
import io
import os
import tarfile

import numpy as onp
import pytest

import twibil as mx
from twibil.gluon.data import DataLoader
from twibil.gluon.data.vision import CIFAR10, CIFAR100, transforms

RNG = onp.random.default_rng(0)


def records(n, labels):
    return RNG.integers(0, 10, (n, labels + 3072)).astype("uint8")


@pytest.fixture
def ten():
    """{file: its records}; three pictures a file."""
    return {name: records(3, 1) for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]}


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in files.items():
        (folder / name).write_bytes(rows.tobytes())


def pack(path, files, inner):
    with tarfile.open(path, "w:gz") as tar:
        for name, rows in files.items():
            member = tarfile.TarInfo(f"{inner}/{name}")
            member.size = rows.nbytes
            tar.addfile(member, io.BytesIO(rows.tobytes()))


@pytest.mark.parametrize("form", ["plain", "own folder", "archive"])
def test_pictures_and_labels(tmp_path, ten, form):
    if form == "archive":
        pack(tmp_path / "cifar-10-binary.tar.gz", {"../../outside.bin": ten["test_batch.bin"], **ten}, "cifar-10-batches-bin")
    else:
        write(tmp_path if form == "plain" else tmp_path / "cifar-10-batches-bin", ten)
    train, test = CIFAR10(root=str(tmp_path)), CIFAR10(root=str(tmp_path), train=False)
    assert len(train) == 15 and len(test) == 3 and not (tmp_path.parent / "outside.bin").exists()
    picture, label = train[4]
    row = ten["data_batch_2.bin"][1]
    assert picture.shape == (32, 32, 3) and picture.dtype == "uint8" and label == row[0] and label.dtype == "int32"
    onp.testing.assert_array_equal(picture.asnumpy(), row[1:].reshape(3, 32, 32).transpose(1, 2, 0))
    x, y = next(iter(DataLoader(train.transform_first(transforms.ToTensor()), batch_size=15, num_workers=2)))
    assert x.shape == (15, 3, 32, 32) and y.tolist() == [int(r[0]) for i in range(1, 6) for r in ten[f"data_batch_{i}.bin"]]


def test_both_kinds_of_label(tmp_path):
    files = {"train.bin": records(4, 2), "test.bin": records(2, 2)}
    write(tmp_path, files)
    assert CIFAR100(root=tmp_path)._label.tolist() == files["train.bin"][:, 0].tolist()
    fine = CIFAR100(root=tmp_path, fine_label=True, train=False, transform=lambda x, y: (x.shape, int(y)))
    assert [fine[i] for i in range(2)] == [((32, 32, 3), int(v)) for v in files["test.bin"][:, 1]]


def test_what_is_damaged_or_absent_is_an_error(tmp_path, ten, monkeypatch):
    monkeypatch.setenv("MXNET_GLUON_REPO", (tmp_path / "nowhere").as_uri())
    with pytest.raises(OSError, match="cifar10: cifar-10-binary.tar.gz is not in .*, and the download failed"):
        CIFAR10(root=str(tmp_path))
    write(tmp_path, {**ten, "test_batch.bin": ten["test_batch.bin"].ravel()[:-1]})
    with pytest.raises(ValueError, match="must hold records of 3073 bytes; it has 9218"):
        CIFAR10(root=str(tmp_path), train=False)
    os.remove(tmp_path / "test_batch.bin")
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(b"\x1f\x8bgarbage")
    with pytest.raises(ValueError, match="cifar-10-binary.tar.gz is damaged"):
        CIFAR10(root=str(tmp_path), train=False)
    del ten["test_batch.bin"]
    pack(tmp_path / "cifar-10-binary.tar.gz", ten, "x")
    with pytest.raises(ValueError, match="lacks test_batch.bin"):
        CIFAR10(root=str(tmp_path), train=False)
    assert mx.gluon.data.vision.CIFAR10 is CIFAR10
