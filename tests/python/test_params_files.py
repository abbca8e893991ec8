# SPDX-License-Identifier: Apache-2.0
"""`.params` files that MXNet 1.9.1 wrote are read, and files of ours have the layout that it reads."""
import os
import subprocess
import sys
import time

import numpy as onp
import pytest

import twibil as mx
from mxnet_fixtures import load, params_path
from twibil.serialization import load_params, save_params

DTYPES = ["float32", "float64", "float16", "uint8", "int8", "int32", "int64"]


def sample(dtype, *shape):
    return (onp.arange(int(onp.prod(shape))) % 5).reshape(shape).astype(dtype)


def test_list_of_every_dtype():
    arrays = load_params(params_path("list"))
    assert [a.dtype.name for a in arrays] == DTYPES
    for array, dtype in zip(arrays, DTYPES):
        onp.testing.assert_array_equal(array.asnumpy(), sample(dtype, 2, 3))


def test_names_with_prefixes():
    arrays = load_params(params_path("names"))
    assert list(arrays) == ["arg:weight", "aux:mean"]
    onp.testing.assert_array_equal(arrays["arg:weight"].asnumpy(), sample("float32", 2, 3))


def test_numpy_shapes():
    arrays = load_params(params_path("numpy_shapes"))
    assert arrays["scalar"].shape == () and arrays["scalar"].item() == 3
    assert arrays["empty"].shape == (0, 3)
    assert arrays["flags"].asnumpy().tolist() == [True, False, True]


@pytest.mark.parametrize("version", [0, 1])
def test_layouts_before_1_0(version):
    arrays = load_params(params_path(f"version{version}"))
    onp.testing.assert_array_equal(arrays["arg:a"].asnumpy(), sample("float32", 2, 3))
    onp.testing.assert_array_equal(arrays["aux:b"].asnumpy(), sample("int32", 2, 3))


def test_empty_list():
    assert load_params(params_path("empty")) == []


def test_sparse_is_refused_with_a_way_out():
    with pytest.raises(ValueError, match="row_sparse arrays are not supported; in MXNet, save array.tostype"):
        load_params(params_path("sparse"))


def test_network_saved_by_mxnet_gives_its_outputs():
    case, = load("params_gluon")
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(3, 3, in_channels=2), mx.gluon.nn.BatchNorm(in_channels=3), mx.gluon.nn.Dense(2))
    net.load_parameters(params_path("gluon"))
    onp.testing.assert_allclose(net(mx.np.array(case["x"])).asnumpy(), case["y"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["list", "names", "numpy_shapes", "gluon"])
def test_what_we_write_differs_from_mxnet_in_the_checksum_only(tmp_path, name):
    path = tmp_path / name
    with mx.util.np_shape(name in ("numpy_shapes", "gluon")):  # the mode in which MXNet wrote the file
        save_params(path, load_params(params_path(name)))
    ours = path.read_bytes()
    with open(params_path(name), "rb") as f:
        assert ours[:8] + bytes(8) + ours[16:] == f.read()
    assert ours[8:16] != bytes(8)


def test_old_form_has_no_numpy_shapes(tmp_path):
    with mx.util.np_shape(False), pytest.raises(ValueError, match="call npx.set_np"):
        save_params(tmp_path / "a", {"scalar": mx.np.array(1.0)})
    assert not list(tmp_path.iterdir())


def test_damage_is_noticed(tmp_path):
    path = tmp_path / "a.params"
    save_params(path, {"w": mx.np.array(sample("float32", 4, 5))})
    data = bytearray(path.read_bytes())
    data[60] ^= 4
    path.write_bytes(data)
    with pytest.raises(ValueError, match="the checksum is wrong"):
        load_params(path)


def test_views_are_written_as_they_look(tmp_path):
    a = mx.np.arange(24).reshape(4, 6)
    save_params(tmp_path / "a", {"columns": a.T, "part": a[::2, 1::2]})
    back = load_params(tmp_path / "a")
    onp.testing.assert_array_equal(back["columns"].asnumpy(), a.asnumpy().T)
    onp.testing.assert_array_equal(back["part"].asnumpy(), a.asnumpy()[::2, 1::2])


WRITE_FOR_EVER = """
import sys, twibil as mx
from twibil.serialization import save_params
n = 0
while True:
    save_params(sys.argv[1], {"w": mx.np.full((300, 300), n), "b": mx.np.full((7,), n)})
    n += 1
    print(n, flush=True)
"""


def test_killed_writers_leave_a_whole_file(tmp_path):
    path = tmp_path / "a.params"
    for attempt in range(8):
        with subprocess.Popen([sys.executable, "-c", WRITE_FOR_EVER, str(path)], stdout=subprocess.PIPE) as writer:
            writer.stdout.readline()
            time.sleep(0.01 + 0.007 * attempt)
            writer.kill()
        arrays = load_params(path)  # its checksum is right, too
        values = {v for a in arrays.values() for v in onp.unique(a.asnumpy()).tolist()}
        assert len(values) == 1
    left = [name for name in os.listdir(tmp_path) if name != "a.params"]
    assert all(name.startswith("a.params.tmp-") for name in left)


TOO_LARGE = """
import resource, sys, twibil as mx
from twibil.serialization import save_params
resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))
try:
    save_params(sys.argv[1], {"w": mx.np.ones((100, 100))})
except OSError as error:
    sys.exit(0 if "File too large" in str(error) else str(error))
sys.exit("nothing was raised")
"""


def test_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.params"
    save_params(path, {"w": mx.np.array([1.0, 2.0])})
    before = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", TOO_LARGE, str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.params"]
