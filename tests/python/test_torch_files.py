# SPDX-License-Identifier: Apache-2.0
"""Files of torch.save in both formats: read without PyTorch, as data. tools/torch_fixtures.py wrote them."""
from __future__ import annotations

import os
import pickle
import pickletools
import struct

import mxnet_fixtures
import numpy as onp
import pytest

import twibil as mx
from twibil import serialization

FOLDER = os.path.join(mxnet_fixtures.FOLDER, "..", "torch")
FORMATS = ["new", "old"]


def fixture(name):
    return os.path.join(FOLDER, name + ".pth")


@pytest.mark.parametrize("form", FORMATS)
def test_everything_that_was_saved(form):
    d = serialization.load_torch(fixture(form))
    assert list(d) == ["model", "optimizer", "epoch", "best", "name", "done", "flags", "views", "types", "parameter", "size"]
    assert (d["epoch"], d["best"], d["name"], d["done"]) == (7, 0.25, "Ünit", None)
    assert d["flags"] == (True, False, -1, 300, -70000, 2**40) and d["flags"][0] is True
    assert list(d["model"]) == ["0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var",
                                "1.num_batches_tracked"]
    assert d["model"]["0.weight"].asnumpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert d["model"]["1.num_batches_tracked"].shape == () and d["model"]["1.num_batches_tracked"].dtype == "int64"
    assert d["optimizer"]["param_groups"][0]["momentum"] == 0.9 and d["size"] == (4, 6)
    x = onp.arange(24, dtype="float32").reshape(4, 6)
    for got, expect in zip(d["views"], [x, x.T, x[1:3, ::2], x[3], onp.zeros((0, 3)), onp.float32(3.5)]):
        onp.testing.assert_array_equal(got.asnumpy(), expect)
    dtypes = ["float64", "float16", "bfloat16", "uint8", "int8", "int32", "int64", "bool"]
    for got, dtype in zip(d["types"], dtypes):
        assert dtype in str(got.dtype)
        onp.testing.assert_array_equal(got.astype("float32").asnumpy(), x[0] != 0 if dtype == "bool" else x[0])
    onp.testing.assert_array_equal(d["parameter"].asnumpy(), x[0])


@pytest.mark.parametrize("form", FORMATS)
def test_load_tells_formats_apart(form):
    for load in (mx.nd.load, mx.npx.load, serialization.load):
        assert load(fixture(form))["epoch"] == 7


def test_load_still_reads_the_other_formats(tmp_path):
    mx.nd.save(str(tmp_path / "a"), {"w": mx.np.ones(2)})
    mx.npx.savez(str(tmp_path / "b.npz"), w=mx.np.ones(2))
    for name in ("a", "b.npz"):
        assert mx.nd.load(str(tmp_path / name))["w"].asnumpy().tolist() == [1, 1]


def as_old_file(program: bytes, keys=b"\x80\x02]."):
    """A file in the old format whose object is made by `program`."""
    return serialization._OLD_TORCH + b"\x80\x02M\xe9\x03." + b"\x80\x02}." + program + keys


def refusal(tmp_path, content):
    path = tmp_path / "hostile.pth"
    path.write_bytes(content)
    with pytest.raises(ValueError) as info:
        serialization.load_torch(path)
    return str(info.value)


class Runs:
    def __reduce__(self):
        return os.system, ("echo hello > hacked",)


@pytest.mark.parametrize("protocol", [2, 4])
def test_nothing_is_run(tmp_path, monkeypatch, protocol):
    monkeypatch.chdir(tmp_path)
    message = refusal(tmp_path, as_old_file(pickle.dumps({"a": Runs()}, protocol)))
    assert "system" in message and "Nothing of it was run" in message and "at offset" in message
    assert not os.path.exists("hacked")


@pytest.mark.parametrize("program, words", [
    (b"\x80\x02cbuiltins\neval\nX\x01\x00\x00\x001\x85R.", "builtins.eval"),
    (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)R.", "a tensor is not made of"),
    (b"\x80\x02ccollections\nOrderedDict\nK\x01R.", "a call is malformed"),
    (b"\x80\x02ctorch\nShortStorage\n.", "ShortStorage are not supported"),
    (b"\x80\x02h\x05.", "no remembered object 5"),
    (b"\x80\x02.", "in the middle"),
    (b"\x80\x02)u.", "lacks its mark"),
    (b"\x80\x02](K\x01K\x02u.", "no dictionary"),
    (b"\x80\x02}(K\x01u.", "no dictionary"),
    (b"\x80\x02K\x01K\x02a.", "no list"),
    (b"\x80\x02a.", "lacks its operand"),
    (b"\x80\x02X\xff\xff\xff\x7fab", "are left"),
    (b"\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\xffab", "remaining bytes"),
    (b"\x80\x02\x8a\x09" + b"\x01" * 9 + b".", "64 bits"),
    (b"\x80\x09N.", "protocol 9"),
    (b"\x80\x02P1\n.", "instruction 0x50"),
    (b"\x80\x02]q\x00h\x00\x85q\x01h\x00h\x01a\x85.", None),
    (b"\x80\x02" + b"]" * 100 + b"a" * 99 + b".", "nested too deeply"),
    (b"\x80\x02}]K\x01s.", "keys of dictionaries"),
    (b"\x80\x02" + b")" * (2**20 + 1) + b".", "more than 1048576 objects"),
])
def test_hostile_pickles(tmp_path, program, words):
    if words is None:  # a list in itself, through a tuple
        (tmp_path / "x").write_bytes(as_old_file(program))
        with pytest.raises(ValueError, match="nested too deeply|middle"):
            serialization.load_torch(tmp_path / "x")
    else:
        assert words in refusal(tmp_path, as_old_file(program))


def storage(dtype=b"FloatStorage", elements=4, view=b"N"):
    return (b"(X\x07\x00\x00\x00storagectorch\n" + dtype + b"\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
            + b"\x8a\x08" + struct.pack("<q", elements) + view + b"tQ")


def tensor(shape, strides, offset=0, made_of=None):
    def sizes(values):
        return b"(" + b"".join(b"\x8a\x08" + struct.pack("<q", v) for v in values) + b"t"
    return (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + (made_of or storage()) + b"\x8a\x08"
            + struct.pack("<q", offset) + sizes(shape) + sizes(strides) + b"\x89ccollections\nOrderedDict\n)RtR.")


DATA = b"\x80\x02]X\x01\x00\x00\x000a." + struct.pack("<q4f", 4, 1, 2, 3, 4)


def test_tensors_by_hand(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(as_old_file(tensor([2, 2], [1, 2]), DATA))
    assert serialization.load_torch(path).asnumpy().tolist() == [[1, 3], [2, 4]]
    path.write_bytes(as_old_file(tensor([3, 2], [0, 1], 2), DATA))
    assert serialization.load_torch(path).asnumpy().tolist() == [[3, 4]] * 3
    path.write_bytes(as_old_file(tensor([2**31, 0], [1, 2**62], 100), DATA))
    assert serialization.load_torch(path).shape == (2**31, 0)


@pytest.mark.parametrize("program, keys, words", [
    (tensor([5], [1]), DATA, "reaches beyond its storage"),
    (tensor([2, 2], [2, 2]), DATA, "reaches beyond its storage"),
    (tensor([1], [1], 4), DATA, "reaches beyond its storage"),
    (tensor([2**62, 2**62], [0, 0]), DATA, "reaches beyond"),
    (tensor([2**62, 0, 2**62], [1, 1, 1]), DATA, "reaches beyond"),
    (tensor([1] * 33, [1] * 33), DATA, "at most 32"),
    (tensor([2**40], [0]), DATA, "more than 16 times"),
    (tensor([2**33, 2**33], [2**33, 2**33]), DATA, "reaches beyond"),
    (tensor([-1], [1]), DATA, "not negative"),
    (tensor([1], [-1]), DATA, "not negative"),
    (tensor([1], [1], -1), DATA, "offset"),
    (tensor([1, 1], [1]), DATA, "number of strides"),
    (tensor([1], [1], made_of=storage(elements=2**62)), DATA, "does not fit into the file"),
    (tensor([1], [1], made_of=storage(elements=-1)), DATA, "does not fit into the file"),
    (tensor([1], [1], made_of=storage(elements=3)), DATA, "another number of elements"),
    (tensor([1], [1], made_of=storage(view=b"K\x01")), DATA, "views of others"),
    (tensor([1], [1]), b"\x80\x02].", "storages are missing"),
    (tensor([1], [1]), DATA[:-1], "are left"),
    (tensor([1], [1]), b"\x80\x02]X\x01\x00\x00\x001a.", "list of storages"),
])
def test_hostile_tensors(tmp_path, program, keys, words):
    message = refusal(tmp_path, as_old_file(program, keys))
    assert words in message and "hostile.pth" in message


def test_too_many_axes(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(as_old_file(tensor([1] * 20, [1] * 20), DATA))
    with pytest.raises(ValueError, match="dimensions|axes|rank"):
        serialization.load_torch(path)


def test_damaged_archives(tmp_path):
    with open(fixture("new"), "rb") as file:
        good = file.read()
    place = good.index(struct.pack("<6f", *range(6)))
    damaged = bytearray(good)
    damaged[place + 5] ^= 1
    assert "checksum of" in refusal(tmp_path, bytes(damaged))
    assert "no directory" in refusal(tmp_path, good[:-30])
    assert "neither of the formats" in refusal(tmp_path, b"hello")
    import zipfile
    with zipfile.ZipFile(tmp_path / "z", "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("a/data.pkl", b"\x80\x02N." * 100)
    assert "compressed" in refusal(tmp_path, (tmp_path / "z").read_bytes())
    with zipfile.ZipFile(tmp_path / "z", "w") as z:
        z.writestr("a/other", b"x")
    assert "no member data.pkl" in refusal(tmp_path, (tmp_path / "z").read_bytes())
    with pytest.raises(OSError):
        serialization.load_torch(tmp_path / "missing")


def test_every_instruction_of_the_fixtures_is_one_that_python_knows():
    """The hand-made programs above are real pickles: pickletools can name their parts."""
    assert [op.name for op, _, _ in pickletools.genops(tensor([1], [1]))][-1] == "STOP"
