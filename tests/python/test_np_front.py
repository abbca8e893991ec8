# SPDX-License-Identifier: Apache-2.0
"""`mx.np` written in Python: composed functions and calling forms against NumPy, protocols, printing, suggestions."""

import json
import pathlib

import numpy as onp
import pytest

import twibil as mx
from twibil import autograd, np, npx

RNG = onp.random.default_rng(1)
A, B = RNG.standard_normal((3, 4)).astype("float32"), RNG.standard_normal((3, 4)).astype("float32")
V, W = RNG.standard_normal(5).astype("float32"), RNG.standard_normal(5).astype("float32")
CUBE = RNG.standard_normal((2, 3, 4)).astype("float32")

CASES = [
    ("append", (A, B), {}),
    ("append", (A, B), {"axis": 0}),
    ("average", (A,), {"axis": 1}),
    ("average", (A,), {"weights": B, "axis": 0}),
    ("average", (A,), {"weights": V[:4], "axis": 1}),
    ("column_stack", ([V, W],), {}),
    ("diff", (A,), {}),
    ("diff", (A,), {"n": 2, "axis": 0}),
    ("dstack", ([A, B],), {}),
    ("ediff1d", (V,), {}),
    ("fliplr", (A,), {}),
    ("flipud", (A,), {}),
    ("hstack", ([A, B],), {}),
    ("hstack", ([V, W],), {}),
    ("inner", (A, B), {}),
    ("median", (V,), {}),
    ("median", (A,), {"axis": 0}),
    ("median", (A,), {"axis": 1, "keepdims": True}),
    ("moveaxis", (CUBE, 0, -1), {}),
    ("moveaxis", (CUBE, (0, 1), (2, 0)), {}),
    ("outer", (V, W), {}),
    ("ptp", (A,), {"axis": 1}),
    ("roll", (V, 2), {}),
    ("roll", (A, -1), {"axis": 1}),
    ("roll", (A, 5), {}),
    ("rollaxis", (CUBE, 2), {}),
    ("rollaxis", (CUBE, 0, 3), {}),
    ("rot90", (A,), {}),
    ("rot90", (A, 2), {}),
    ("rot90", (A, 3), {}),
    ("trace", (A,), {}),
    ("trace", (A,), {"offset": 1}),
    ("vdot", (A, B), {}),
    ("vstack", ([V, W],), {}),
    ("count_nonzero", (A > 0,), {"axis": 0}),
    ("flatnonzero", (onp.where(A > 0, A, 0),), {}),
    ("ravel", (A,), {}),
    ("kron", (A, B[:2, :2]), {}),
    ("cross", (A[:, :3], B[:, :3]), {}),
    ("atleast_2d", (V,), {}),
    ("atleast_3d", (V,), {}),
    ("atleast_1d", (A[0, 0],), {}),
    ("tri", (3, 4, 1), {}),
    ("identity", (3,), {}),
    ("logspace", (0, 2, 5), {}),
    ("diagonal", (A,), {"offset": 1}),
    ("diagonal", (CUBE,), {"offset": -1, "axis1": 1, "axis2": 2}),
    ("diag", (V,), {}),
    ("diag", (V,), {"k": -2}),
    ("diag", (A,), {"k": 1}),
    ("nansum", (onp.where(A > 0, A, onp.nan).astype("float32"),), {"axis": 0}),
    ("searchsorted", (onp.sort(V), W), {}),
    ("bincount", (onp.array([1, 2, 1, 5]),), {"minlength": 8}),
    ("split", (A, 2), {"axis": 1}),
    ("split", (A, [1, 3]), {"axis": 1}),
    ("array_split", (V, 3), {}),
    ("hsplit", (A, 2), {}),
    ("vsplit", (A, [1]), {}),
    ("dsplit", (CUBE, 2), {}),
    ("meshgrid", (V, W[:3]), {}),
    ("meshgrid", (V, W[:3]), {"indexing": "ij"}),
    ("meshgrid", (V, W[:3]), {"sparse": True}),
    ("broadcast_arrays", (V[:4], A), {}),
    ("indices", ((2, 3),), {}),
    ("linalg.norm", (A,), {}),
    ("linalg.norm", (A,), {"axis": 1}),
    ("linalg.norm", (A, "fro"), {}),
    ("linalg.norm", (V, 1), {}),
    ("linalg.norm", (V, onp.inf), {}),
    ("linalg.norm", (A, 1), {}),
    ("linalg.norm", (A, onp.inf), {"keepdims": True}),
    ("linalg.norm", (V, 3), {}),
    ("linalg.norm", (A,), {"axis": (0, 1)}),
]


def ours(x):
    if isinstance(x, (onp.ndarray, onp.generic)):
        return np.array(x)
    return type(x)(ours(v) for v in x) if isinstance(x, (list, tuple)) and x and isinstance(x[0], onp.ndarray) else x


def find(space, name):
    for part in name.split("."):
        space = getattr(space, part)
    return space


@pytest.mark.parametrize("name,args,kwargs", CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)])
def test_as_numpy(name, args, kwargs):
    expect = find(onp, name)(*args, **kwargs)
    got = find(np, name)(*[ours(a) for a in args], **{k: ours(v) for k, v in kwargs.items()})
    if isinstance(expect, (list, tuple)):
        assert len(got) == len(expect)
    else:
        got, expect = [got], [expect]
    for g, e in zip(got, expect):
        assert g.shape == onp.shape(e)
        onp.testing.assert_allclose(g.asnumpy(), e, rtol=2e-5, atol=1e-6)


def test_gradients_flow_through_composed_functions():
    x = np.array(A)
    x.attach_grad()
    with autograd.record():
        y = np.linalg.norm(x) + np.split(x, 2, axis=1)[1].sum() + np.roll(x, 1, axis=0)[0].sum()
    y.backward()
    expect = A / onp.linalg.norm(A)
    expect[:, 2:] += 1
    expect[2] += 1
    onp.testing.assert_allclose(x.grad.asnumpy(), expect, rtol=1e-5)


def test_numbers_of_constructors_may_be_arrays_of_one_element():
    xs = np.array([-1.0, 0.5, 2.0])
    onp.testing.assert_allclose(np.arange(np.min(xs), np.max(xs), 0.5).asnumpy(), [-1, -0.5, 0, 0.5, 1, 1.5])
    assert np.arange(np.array([3], dtype="int32")).tolist() == np.arange(onp.float32(3)).tolist() == [0, 1, 2]
    assert np.full((2,), np.max(xs)).tolist() == [2, 2] and np.full((2,), onp.float32(0.5)).tolist() == [0.5, 0.5]
    assert np.full((2,), np.array(True)).dtype == np.full((2,), onp.True_).dtype == "bool"
    for wrong in (xs, onp.ones(2), "1", object()):
        with pytest.raises(TypeError, match="^arange: argument start must be "):
            np.arange(wrong)


def test_printoptions_are_those_of_numpy():
    before = np.get_printoptions()["precision"]
    np.set_printoptions(2)  # as the book's chapter on anchor boxes
    assert repr(np.array([1 / 3])) == "array([0.33])" and np.get_printoptions()["precision"] == 2
    np.set_printoptions(precision=before)
    with np.printoptions(1):
        assert str(np.array([1 / 3])) == "[0.3]"
    assert np.get_printoptions()["precision"] == before


def test_errors():
    x = np.array(A)
    with pytest.raises(ValueError, match="does not divide into 3 equal sections; array_split"):
        np.split(x, 3, axis=1)
    with pytest.raises(ValueError, match="axis 2 is out of range"):
        np.split(x, 2, axis=2)
    with pytest.raises(ValueError, match="indexing must be"):
        np.meshgrid(x[0], x[0], indexing="yx")
    with pytest.raises(NotImplementedError, match="singular values"):
        np.linalg.norm(x, 2)
    with pytest.raises(ValueError, match="do not fit axis"):
        np.average(x, weights=np.ones(3), axis=1)
    for module, name in (
        (np, "concatenat"),
        (npx, "softmaxx"),
        (np.random, "norml"),
        (np.linalg, "nrom"),
        (mx.nd, "relo"),
    ):
        with pytest.raises(AttributeError, match="Did you mean"):
            getattr(module, name)


def test_default_dtypes():
    assert str(np.array([1, 2]).dtype) == "float32" and str(np.arange(3).dtype) == "float32"
    assert str(np.array(onp.array([1, 2])).dtype) == "int64" and str(np.zeros(2).dtype) == "float32"
    assert (
        str(np.array([1, 2], dtype=np.int32).dtype) == "int32" and str(np.ones(2, dtype="float64").dtype) == "float64"
    )


def test_print():
    assert repr(np.array([1.0, 2.0])) == "array([1., 2.])"
    assert repr(np.array([1, 2], dtype="int32")) == "array([1, 2], dtype=int32)"
    assert repr(np.zeros((0, 3))) == "array([], shape=(0, 3))"
    assert str(np.array([[1.5]])) == "[[1.5]]" and repr(np.array(2.0)) == "array(2.)"
    assert f"{np.array(1.5):.2f}" == "1.50"


def test_numpy_functions_on_our_arrays():
    x, y = np.array(A), np.array(B)
    assert isinstance(onp.add(x, y), np.ndarray) and isinstance(onp.concatenate([x, y]), np.ndarray)
    assert isinstance(A + y, np.ndarray)
    onp.testing.assert_allclose((A * y).asnumpy(), A * B, rtol=1e-6)
    onp.testing.assert_allclose(onp.asarray(x), A)
    assert onp.isclose(onp.percentile(x, 50), onp.percentile(A, 50))
    x.attach_grad()
    with autograd.record(), pytest.raises(ValueError, match="no counterpart with a gradient"):
        onp.percentile(x, 50)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "float16"])
def test_numpy_arrays_whose_elements_lie_at_odd_addresses(dtype):
    numbers = onp.arange(6).astype(dtype)
    shifted = onp.frombuffer(b"\0" + numbers.tobytes(), dtype, offset=1)
    records = onp.zeros(6, [("flag", "i1"), ("number", dtype)])
    records["number"] = numbers
    assert not shifted.flags.aligned and not records["number"].flags.aligned
    for a in (shifted, shifted.reshape(2, 3).T, records["number"], records["number"][::-2]):
        assert np.array(a, dtype=a.dtype).tolist() == a.tolist()
        assert (np.zeros(a.shape, dtype=dtype) + a).tolist() == a.tolist()


def test_random_front():
    mx.random.seed(3)
    state = mx.random.get_state()
    first = np.random.normal(2.0, 0.5, size=(1000,)).asnumpy()
    assert abs(first.mean() - 2) < 0.1 and abs(first.std() - 0.5) < 0.05
    mx.random.set_state(json.loads(json.dumps(state)))
    onp.testing.assert_array_equal(np.random.normal(2.0, 0.5, size=(1000,)).asnumpy(), first)
    assert np.random.rand(2, 3).shape == (2, 3) and np.random.randn(4).shape == (4,)
    r = np.random.randint(5, size=(200,)).asnumpy()
    assert set(r) == {0, 1, 2, 3, 4} and str(np.random.randint(0, 3, size=2).dtype) == "int64"
    p = np.random.permutation(10)
    assert sorted(p.tolist()) == list(range(10))
    x = np.arange(10)
    np.random.shuffle(x)
    assert sorted(x.tolist()) == list(range(10))
    c = np.random.choice(3, size=(100,), p=np.array([0.0, 0.5, 0.5])).asnumpy()
    assert set(c) == {1, 2}
    assert np.random.choice(np.array([7.0, 8.0]), size=3).shape == (3,)
    b = npx.random.bernoulli(prob=0.3, size=(2000,)).asnumpy()
    assert abs(b.mean() - 0.3) < 0.05 and set(b) == {0, 1}
    assert npx.random.normal_n(np.zeros(3), 1.0, batch_shape=(2,)).shape == (2, 3)
    assert np.random.normal(np.array([0.0, 100.0]), 1.0, size=(3, 2)).shape == (3, 2)
    with pytest.raises(ValueError, match="high must be above low"):
        np.random.randint(3, 3)
    with pytest.raises(TypeError, match="an integer is needed"):
        mx.random.seed("abc")


def test_files(tmp_path):
    x, path = np.array(A), str(tmp_path / "x")
    npx.save(path, [x, x + 1])
    loaded = npx.load(path)
    onp.testing.assert_array_equal(loaded[1].asnumpy(), A + 1)
    npx.save(path, {"a": x})
    onp.testing.assert_array_equal(mx.nd.load(path)["a"].asnumpy(), A)
    npx.savez(path + ".npz", a=x)
    onp.testing.assert_array_equal(npx.load(path + ".npz")["a"].asnumpy(), A)
    with pytest.raises(TypeError, match="'a' must be an array"):
        npx.save(path, {"a": 3})
    with pytest.raises(OSError):
        npx.load(str(tmp_path / "absent"))


def test_devices():
    assert mx.cpu() == mx.cpu(0) and str(mx.cpu()) == "cpu(0)" and mx.gpu(1) != mx.cpu(1)
    assert mx.current_context() == mx.cpu() and mx.num_gpus() == 0 and npx.num_gpus() == 0
    with mx.Context("cpu", 1):
        assert mx.current_context() == mx.cpu(1)
    assert np.ones(2).ctx == mx.cpu() and mx.Device("gpu(3)").device_id == 3
    with pytest.raises(ValueError, match="the kind must be one of"):
        mx.Context("tpu")
    with pytest.raises(Exception, match="(?i)gpu"):
        np.array([1.0], ctx=mx.gpu())


def test_switches():
    assert mx.util.is_np_array()
    npx.reset_np()
    assert not npx.is_np_array() and not npx.is_np_shape()
    assert mx.util.use_np(npx.is_np_array)()
    with mx.util.np_shape(True):
        assert npx.is_np_shape()
    npx.set_np()
    assert npx.is_np_array()
    with pytest.raises(ValueError, match="need NumPy shapes"):
        npx.set_np(shape=False)


def test_npx_reshape_codes():
    x = np.ones((2, 3, 8))
    for codes, shape in (
        ((-2, -2, 2, -1), (2, 3, 2, 4)),
        ((-5, -4), (6, 8)),
        ((-4,), (2, 3, 8)),
        ((-6, 1, 2, -2, -6, 2, -1), (1, 2, 3, 2, 4)),
        ((-2, -1), (2, 24)),
        (-1, (48,)),
    ):
        assert npx.reshape(x, codes).shape == shape
    assert npx.reshape(np.ones((1, 4)), (-3, -2)).shape == (4,)
    assert npx.reshape(x, (-1, -2), reverse=True).shape == (6, 8)
    with pytest.raises(ValueError, match="need more axes"):
        npx.reshape(x, (-5, -5))
    with pytest.raises(ValueError, match="size 1; got 2"):
        npx.reshape(x, (-3, -1))


def test_many_arrays():
    xs = [np.full((2, 3), i) for i in range(300)]
    xs[-1].attach_grad()
    with autograd.record():
        y = np.stack(xs).sum() + (np.concatenate(xs, axis=1) * 2).sum()
    y.backward()
    assert np.stack(xs).shape == (300, 2, 3) and xs[-1].grad.tolist() == [[3, 3, 3]] * 2


def test_legacy_operators():
    nd, x = mx.nd, np.array(CUBE)
    assert nd.Flatten(x).shape == (2, 12) and nd.sum(x, axis=1, exclude=True).shape == (3,)
    assert nd.reshape(x, shape=(0, -1)).shape == (2, 12) and nd.Reshape(x, shape=(-3, -2)).shape == (6, 4)
    assert nd.reshape(x, shape=(0, 0, -4, 2, -1)).shape == (2, 3, 2, 2) and nd.reshape(
        x, shape=(-1, 0), reverse=True
    ).shape == (6, 4)
    assert [p.shape for p in nd.SliceChannel(x, num_outputs=3, axis=1, squeeze_axis=True)] == [(2, 4)] * 3
    assert nd.broadcast_greater(x, 0 * x).asnumpy().tolist() == (CUBE > 0).astype("float32").tolist()
    onp.testing.assert_allclose(nd.add_n(x, x, x).asnumpy(), 3 * CUBE, rtol=1e-6)
    onp.testing.assert_allclose(nd.softmin(x).asnumpy().sum(-1), 1, rtol=1e-5)
    onp.testing.assert_allclose(nd.L2Normalization(x).asnumpy().reshape(2, -1).__pow__(2).sum(1), 1, rtol=1e-4)
    onp.testing.assert_allclose(
        nd.linalg_gemm2(x, x, transpose_b=True).asnumpy(), CUBE @ CUBE.swapaxes(1, 2), rtol=1e-4, atol=1e-5
    )
    assert nd.boolean_mask(x, np.array([0, 1])).shape == (1, 3, 4) and nd.broadcast_axis(
        x[:, :1], axis=1, size=5
    ).shape == (2, 5, 4)
    assert str(nd.argmax(x, axis=1).dtype) == "float32" and nd.size_array(x).tolist() == [24]
    mean, var = nd.moments(x, axes=(0, 2))
    onp.testing.assert_allclose(var.asnumpy(), CUBE.var((0, 2)), rtol=1e-4)
    with pytest.raises(ValueError, match="more axes than shape"):
        nd.reshape(np.ones((2,)), shape=(0, 0))


def test_legacy_namespace():
    x = mx.nd.array([[1, -2]])
    assert mx.nd.relu(x).tolist() == [[1, 0]] and isinstance(x, mx.nd.NDArray)
    assert mx.nd.concat(x, x, dim=0).shape == (2, 2) and mx.nd.stack(x, x).shape == (2, 1, 2)
    assert mx.nd.zeros((2, 3)).shape == (2, 3) and mx.nd.full((2,), 3).tolist() == [3, 3]


MOMENTS = {
    "lognormal": ((0.0, 0.5), 1.1331, 0.364),
    "laplace": ((1.0, 2.0), 1.0, 8.0),
    "logistic": ((1.0, 1.0), 1.0, 3.29),
    "gumbel": ((0.0, 1.0), 0.5772, 1.645),
    "rayleigh": ((1.0,), 1.2533, 0.4292),
    "weibull": ((2.0,), 0.8862, 0.2146),
    "pareto": ((5.0,), 0.25, 0.1042),
    "power": ((3.0,), 0.75, 0.0375),
    "chisquare": ((4.0,), 4.0, 8.0),
    "beta": ((2.0, 3.0), 0.4, 0.04),
    "f": ((5.0, 12.0), 1.2, 1.08),
    "exponential": ((2.0,), 2.0, 4.0),
    "gamma": ((3.0, 2.0), 6.0, 12.0),
    "uniform": ((1.0, 3.0), 2.0, 1 / 3),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_distribution_has_its_mean_and_variance(name):
    mx.random.seed(6)
    args, mean, variance = MOMENTS[name]
    x = getattr(np.random, name)(*args, size=(40000,)).asnumpy().astype("float64")
    assert abs(x.mean() - mean) < 5 * (variance / len(x)) ** 0.5 and abs(x.var() / variance - 1) < 0.25


def test_ascontiguousarray_is_in_row_major_order():
    x = np.array(A)
    assert np.ascontiguousarray(x) is x
    turned = np.ascontiguousarray(x.T)
    assert turned.strides == (12, 4) and turned.tolist() == A.T.tolist()
    assert np.ascontiguousarray(x[:, ::2]).strides == (8, 4)
    assert np.ascontiguousarray(x[:1].T).tolist() == A[:1].T.tolist()


def test_median_fills_out():
    out = np.zeros((4,))
    assert np.median(np.array(A), axis=0, out=out) is out
    onp.testing.assert_allclose(out.asnumpy(), onp.median(A, axis=0), rtol=1e-6)


@pytest.mark.parametrize("repeated", [
    lambda x: np.tile(x, (1, 1)), lambda x: np.tile(x, (2, 1, 1)), lambda x: np.tile(x, (4, 1)),
    lambda x: np.repeat(x, 1), lambda x: np.repeat(x, 3, axis=0)])
@pytest.mark.parametrize("recording", [False, True])
def test_repeated_arrays_are_written_without_their_source(repeated, recording):
    x = np.ones((1, 3))
    x.attach_grad()
    with autograd.record() if recording else autograd.pause():
        y = repeated(x)
        y[...] = 5
    assert x.tolist() == [[1, 1, 1]] and set(y.reshape(-1).tolist()) == {5}


def test_diagonals_do_not_mix_with_infinities():
    x = onp.array([[1, onp.inf], [onp.nan, 2]], "float32")
    assert np.trace(np.array(x)).item() == 3 and np.einsum("ii", np.array(x)).item() == 3
    assert np.einsum("ii->i", np.array(x)).tolist() == [1, 2]
    assert np.diag(np.array([onp.inf, 1.0])).tolist() == [[onp.inf, 0], [0, 1]]


def test_one_index_picks_along_any_axis():
    x = np.arange(60).reshape(3, 4, 5)
    for axis in range(3):
        assert npx.pick(x, np.array([1]), axis=axis).tolist() == onp.take(x.asnumpy(), 1, axis).tolist()


def test_numpy_integers_are_integers():
    two = onp.int64(2)
    assert np.roll(np.arange(5), two).tolist() == [3, 4, 0, 1, 2] and np.pad(np.ones(1), two).shape == (5,)
    assert np.random.uniform(size=two).shape == np.random.choice(two, size=two).shape == (2,)
    assert sorted(np.random.permutation(two).tolist()) == [0, 1] and npx.random.normal_n(batch_shape=two).shape == (2,)
    assert np.tensordot(np.ones((2, 2)), np.ones((2, 2)), axes=two).item() == 4
    assert mx.gluon.nn.Dense(two, in_units=two).weight.shape == (2, 2)
    assert mx.nd.sum(np.ones((2, 3)), axis=two - 1).shape == (2,)


@pytest.mark.parametrize("reshape, code", [(npx.reshape, -6), (mx.nd.reshape, -4)])
def test_a_split_of_an_axis_needs_two_sizes(reshape, code):
    x = np.ones((6,))
    assert reshape(x, (code, 2, -1)).shape == (2, 3)
    for codes in ((code,), (code, 2), (code, 0, 6), (code, -1, -1)):
        with pytest.raises(ValueError, match="must follow"):
            reshape(x, codes)


def test_the_version_is_the_projects():
    """It stands in CMakeLists.txt alone; the wheel and the compiled module read it there."""
    project = pathlib.Path(__file__).parents[2]
    assert f"project(twibil VERSION {mx.__version__} " in (project / "CMakeLists.txt").read_text(encoding="utf-8")
    assert mx.__version__ == mx._core.__version__


def test_python_integers_outside_the_range_of_the_dtype():
    u, i = np.array([100], dtype="uint8"), np.array([7], dtype="int32")
    assert (u < 300).item() and (u >= -1).item() and not (u == 356).item() and (300 > u).item()
    assert (i < 2**40).item() and not (i == 2**32 + 7).item()
    for call in (lambda: u + 300, lambda: 300 - u, lambda: np.maximum(u, 300), lambda: np.clip(u, -5, 300), lambda: i + 2**40):
        with pytest.raises(OverflowError, match="must fit the dtype"):
            call()
    assert (u + 100).item() == 200 and (u + 1.5).dtype == "float32"
    def part(): u[0] = 300
    def whole(): u[:] = -1
    def picked(): u[np.array([0], dtype="int32")] = 256
    for write in (part, whole, picked):
        with pytest.raises(OverflowError, match="must fit the dtype"):
            write()
    assert u.tolist() == [100]
    for make in (lambda: np.full((2,), 300, dtype="int8"), lambda: np.full_like(u, -1)):
        with pytest.raises(OverflowError, match="must fit the dtype"):
            make()


def test_many_empty_groups_take_no_time():
    x = np.zeros((2**59, 0))
    assert x.argsort(axis=1).shape == np.sort(x, axis=1).shape == (2**59, 0)


def test_nd_pad_counts_as_mxnet_does():
    x = mx.np.ones((1, 1, 2, 2))
    y = mx.nd.pad(x, mode="constant", pad_width=(0, 0, 0, 0, 0, 1, 0, 2), constant_value=5)
    assert y.shape == (1, 1, 3, 4) and y.asnumpy()[0, 0, 2].tolist() == [5, 5, 5, 5]
    assert mx.nd.Pad(x, mode="edge", pad_width=(0, 0, 0, 0, 1, 1, 0, 0)).asnumpy().min() == 1
    assert mx.nd.pad(x, pad_width=((0, 0), (0, 0), (1, 1), (0, 0))).shape == (1, 1, 4, 2)
