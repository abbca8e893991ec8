# SPDX-License-Identifier: Apache-2.0
"""Data sets, samplers, batches, the loader with and without threads, MNIST files."""

import gzip
import os
import struct
import subprocess
import sys
import threading
import time

import numpy as onp
import pytest

import twibil as mx
from twibil import gluon, np
from twibil.gluon import data
from twibil.gluon.data import batchify, vision


class Squares(data.Dataset):
    def __init__(self, n, bad=None):
        self.n, self.bad = n, bad

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i == self.bad:
            raise ValueError("broken picture")
        return onp.float32(i * i), onp.int32(i)


def test_views_of_datasets():
    d = data.SimpleDataset(list(range(10)))
    assert list(d.filter(lambda v: v % 2)) == [1, 3, 5, 7, 9]
    assert [list(d.shard(3, i)) for i in range(3)] == [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert len(d.take(4)) == 4 and len(d.take(None)) == 10 and len(d.take(99)) == 10
    assert list(d.sample(data.SequentialSampler(3, 2))) == [2, 3, 4]
    assert list(d.transform(lambda v: v + 1)) == list(range(1, 11))
    calls = []
    eager = d.transform(lambda v: calls.append(v) or v, lazy=False)
    assert len(calls) == 10 and list(eager) == list(range(10))
    pairs = Squares(4).transform_first(lambda x: x + 1)
    assert pairs[2] == (5, 2)
    with pytest.raises(ValueError, match="index must be from 0 to 2"):
        d.shard(3, 3)
    with pytest.raises(TypeError, match="a function is needed"):
        d.transform(3)


def test_array_dataset():
    d = data.ArrayDataset(np.arange(6).reshape(3, 2), [10, 11, 12])
    x, y = d[1]
    assert x.tolist() == [2, 3] and y == 11 and len(d) == 3
    assert data.ArrayDataset([5, 6])[1] == 6
    with pytest.raises(ValueError, match="number 1 has 2"):
        data.ArrayDataset([1, 2, 3], [1, 2])


def test_samplers():
    batches = list(data.BatchSampler(data.SequentialSampler(7), 3, "keep"))
    assert batches == [[0, 1, 2], [3, 4, 5], [6]]
    assert len(list(data.BatchSampler(data.SequentialSampler(7), 3, "discard"))) == 2
    roll = data.BatchSampler(data.SequentialSampler(7), 3, "rollover")
    assert list(roll)[-1] == [3, 4, 5] and len(roll) == 2 and list(roll)[0] == [6, 0, 1]
    assert list(data.IntervalSampler(6, 3)) == [0, 3, 1, 4, 2, 5]
    assert sorted(data.RandomSampler(9)) == list(range(9))
    assert list(data.FilterSampler(lambda v: v > 2, [1, 5, 0, 7])) == [1, 3]
    with pytest.raises(ValueError, match="last_batch must be"):
        data.BatchSampler(data.SequentialSampler(7), 3, "drop")


@pytest.mark.parametrize("workers", [0, 3])
def test_loader_keeps_order(workers):
    loader = data.DataLoader(Squares(10), batch_size=4, num_workers=workers)
    batches = list(loader)
    assert len(loader) == 3 and [b[0].shape[0] for b in batches] == [4, 4, 2]
    assert onp.concatenate([b[1].asnumpy() for b in batches]).tolist() == list(range(10))
    assert str(batches[0][0].dtype) == "float32" and str(batches[0][1].dtype) == "int32"
    assert len(list(loader)) == 3


def test_array_batches_equal_stacked_samples():
    x, y = np.array(onp.random.default_rng(0).standard_normal((9, 2, 2)).astype("float32")), onp.arange(9)
    fast = list(data.DataLoader(data.ArrayDataset(x, y), 4))
    slow = list(data.DataLoader(data.ArrayDataset(x, y), 4, batchify_fn=lambda s: batchify.default_batchify(s)))
    for (a, b), (c, d) in zip(fast, slow):
        onp.testing.assert_array_equal(a.asnumpy(), c.asnumpy())
        onp.testing.assert_array_equal(b.asnumpy(), d.asnumpy())
        assert a.dtype == c.dtype and b.dtype == d.dtype


def test_shuffle_follows_the_seed_not_the_workers():
    class Noisy(Squares):
        def __getitem__(self, i):
            from twibil.host_random import generator

            return onp.float64(i + generator().uniform())

    runs = []
    for workers in (0, 1, 4):
        mx.random.seed(11)
        runs.append(
            onp.concatenate([b.asnumpy() for b in data.DataLoader(Noisy(40), 8, shuffle=True, num_workers=workers)])
        )
    onp.testing.assert_array_equal(runs[0], runs[1])
    onp.testing.assert_array_equal(runs[0], runs[2])
    assert runs[0].astype(int).tolist() != list(range(40)) and sorted(runs[0].astype(int)) == list(range(40))
    mx.random.seed(12)
    other = onp.concatenate([b.asnumpy() for b in data.DataLoader(Noisy(40), 8, shuffle=True)])
    assert (other != runs[0]).any()


@pytest.mark.parametrize("workers", [0, 2])
def test_error_names_the_sample(workers):
    loader = data.DataLoader(Squares(10, bad=5), batch_size=2, num_workers=workers)
    seen = []
    with pytest.raises(ValueError, match=r"broken picture \(in sample 5 of Squares\)"):
        for batch in loader:
            seen.append(batch[1].asnumpy().tolist())
    assert seen == [[0, 1], [2, 3]]


def workers_alive():
    return sum(t.name == "data-worker" for t in threading.enumerate())


def test_break_ends_the_threads():
    before = workers_alive()
    for _ in data.DataLoader(Squares(1000), batch_size=1, num_workers=3):
        break
    for _ in range(100):
        if workers_alive() <= before:
            return
        time.sleep(0.02)
    raise AssertionError("threads stay after break")


def test_stuck_sample_is_named():
    gate = threading.Event()

    class Stuck(Squares):
        def __getitem__(self, i):
            if i == 3:
                gate.wait(20)
            return super().__getitem__(i)

    with pytest.raises(TimeoutError, match=r"batch 1 \(samples \[2, 3\]\) was not ready after 0.3 s"):
        list(data.DataLoader(Stuck(8), batch_size=2, num_workers=2, timeout=0.3))
    gate.set()


def test_loader_arguments():
    d = Squares(4)
    with pytest.raises(ValueError, match="batch_size is needed"):
        data.DataLoader(d)
    with pytest.raises(ValueError, match="shuffle excludes a sampler"):
        data.DataLoader(d, 2, shuffle=True, sampler=data.SequentialSampler(4))
    with pytest.raises(ValueError, match="batch_sampler excludes"):
        data.DataLoader(d, 2, batch_sampler=data.BatchSampler(data.SequentialSampler(4), 2))
    with pytest.raises(TypeError, match="a data set with a length"):
        data.DataLoader(3, 2)


def test_batchify():
    a, b = onp.ones((2,), "float32"), onp.ones((4,), "float32")
    padded, lengths = batchify.Pad(val=-1, ret_length=True)([a, b])
    assert padded.asnumpy().tolist() == [[1, 1, -1, -1], [1, 1, 1, 1]] and lengths.asnumpy().tolist() == [2, 4]
    with pytest.raises(ValueError, match=r"sample 1 has \[4\]. batchify.Pad"):
        batchify.Stack()([a, b])
    first, second = batchify.Group(batchify.Stack(), batchify.Pad())([(a, a), (a, b)])
    assert first.shape == (2, 2) and second.shape == (2, 4)
    assert [x.shape for x in batchify.Append()([a, b])] == [(1, 2), (1, 4)]
    assert batchify.AsList()(["x", "y"]) == ["x", "y"]


def write_idx(path, array, compress=True):
    head = struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    content = head + array.astype("uint8").tobytes()
    path.write_bytes(gzip.compress(content) if compress else content)


def test_mnist_from_files(tmp_path):
    images = onp.arange(3 * 784).reshape(3, 28, 28) % 256
    write_idx(tmp_path / "train-images-idx3-ubyte.gz", images)
    write_idx(tmp_path / "train-labels-idx1-ubyte", onp.array([7, 1, 2]), compress=False)
    d = vision.MNIST(root=str(tmp_path))
    x, y = d[1]
    assert x.shape == (28, 28, 1) and str(x.dtype) == "uint8" and y == 1 and len(d) == 3
    onp.testing.assert_array_equal(x.asnumpy()[..., 0], images[1])
    write_idx(tmp_path / "train-images-idx3-ubyte.gz", images[:2])
    with pytest.raises(ValueError, match=r"shapes \[2, 28, 28\] and \[3\]"):
        vision.MNIST(root=str(tmp_path))
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(b"\x1f\x8bgarbage")
    with pytest.raises(ValueError, match="damaged gzip data"):
        vision.MNIST(root=str(tmp_path))
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(b"PNG!")
    with pytest.raises(ValueError, match="not an IDX file"):
        vision.MNIST(root=str(tmp_path))
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(struct.pack(">BBBB4I", 0, 0, 8, 4, *[2**31] * 4))
    with pytest.raises(ValueError, match="bytes; the file has 20"):
        vision.MNIST(root=str(tmp_path))


@pytest.mark.skipif(not os.path.isdir("/usr/share/datasets/fashion-mnist"), reason="dataset-fashion-mnist is absent")
def test_fashion_mnist_of_the_system():
    d = vision.FashionMNIST(train=False).transform_first(vision.transforms.ToTensor())
    x, y = next(iter(data.DataLoader(d, 256, num_workers=2)))
    assert len(d) == 10000 and x.shape == (256, 1, 28, 28) and 0.2 < float(x.mean()) < 0.4
    assert sorted(set(y.tolist())) == list(range(10)) and str(y.dtype) == "int32"


def test_split_and_load():
    x = np.arange(7)
    parts = gluon.utils.split_and_load(x, [mx.cpu(), mx.cpu()], even_split=False)
    assert [p.shape[0] for p in parts] == [3, 4] and parts[1].tolist() == [3, 4, 5, 6]
    assert gluon.utils.split_and_load(onp.ones((4, 2)), [mx.cpu()])[0].shape == (4, 2)
    with pytest.raises(ValueError, match="does not divide into 2"):
        gluon.utils.split_data(x, 2)
    with pytest.raises(ValueError, match="at least one piece is needed; got 0. Is the list of devices empty?"):
        gluon.utils.split_and_load(x, [])  # d2l's list of all GPUs where there is none
    with pytest.raises(ValueError, match="does not give 9 pieces"):
        gluon.utils.split_data(x, 9)


def test_clip_global_norm():
    arrays = [np.array([3.0]), np.array([4.0])]
    assert gluon.utils.clip_global_norm(arrays, 1.0) == pytest.approx(5)
    onp.testing.assert_allclose([float(a) for a in arrays], [0.6, 0.8], rtol=1e-5)
    with pytest.warns(UserWarning, match="left as they are"):
        gluon.utils.clip_global_norm([np.array([float("inf")])], 1.0)


def test_download_checks(tmp_path):
    source = tmp_path / "source.txt"
    source.write_bytes(b"hello")
    sha1 = "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"
    target = tmp_path / "copies"
    target.mkdir()
    name = gluon.utils.download(source.as_uri(), path=str(target), sha1_hash=sha1)
    assert open(name, "rb").read() == b"hello" and gluon.utils.check_sha1(name, sha1)
    with pytest.raises(OSError, match="SHA-1 is not"):
        gluon.utils.download(source.as_uri(), path=str(target / "bad"), sha1_hash="00" * 20, retries=0)
    assert [p.name for p in target.iterdir()] == ["source.txt"]


_FORK = """
import os
from twibil import host_random, random
if {seeded}:
    random.seed(3)
host_random.generator()
read, write = os.pipe()
child = os.fork()
if child == 0:
    os.write(write, str(host_random.draw_seed()).encode())
    os._exit(0)
os.waitpid(child, 0)
print(int(os.read(read, 100)) == host_random.draw_seed())
"""


@pytest.mark.parametrize("seeded", [False, True])
def test_forked_processes_draw_the_same_only_when_seeded(seeded):
    run = subprocess.run([sys.executable, "-c", _FORK.format(seeded=seeded)], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == str(seeded)
