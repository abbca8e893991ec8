# SPDX-License-Identifier: Apache-2.0
"""`mx.library.load`: operators that a user compiled against the headers are operators like any other."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as onp
import pytest
import registry as reg
import test_operators_forward
import test_operators_gradient

import twibil as mx
from twibil import _core

ROOT = Path(__file__).resolve().parents[2]
GENERATED = Path(_core.__file__).resolve().parents[2] / "include"  # twibil/ops.h
SOURCE = ROOT / "examples/operators/my_operators.cc"


def compiled(source, to):
    flags = ["-std=c++20", "-O1", "-fPIC", "-shared", "-fvisibility=hidden"]
    includes = [f"-I{ROOT}/src", f"-I{ROOT}/include", f"-I{GENERATED}"]
    subprocess.run(["c++", *flags, *includes, str(source), "-o", str(to)], check=True)
    return to


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if not (GENERATED / "twibil/ops.h").exists():
        pytest.skip("the build folder of this extension is gone")
    path = compiled(SOURCE, tmp_path_factory.mktemp("operators") / "libmy_operators.so")
    assert mx.library.load(path, verbose=False) == ["npx.my_mish", "nd.my_mish", "npx.my_rotate"]
    return path


def test_functions_stand_where_their_names_say(library):
    x = onp.linspace(-3, 3, 8, dtype="float32").reshape(2, 4)
    want = x * onp.tanh(onp.log1p(onp.exp(x)))
    onp.testing.assert_allclose(mx.npx.my_mish(mx.np.array(x)).asnumpy(), want, rtol=1e-5, atol=1e-6)
    onp.testing.assert_allclose(mx.nd.my_mish(mx.nd.array(x)).asnumpy(), want, rtol=1e-5, atol=1e-6)
    assert "rotary" in mx.npx.my_rotate.__doc__
    with pytest.raises(ValueError, match="my_rotate: the last axis of x must have an even size"):
        mx.npx.my_rotate(mx.np.ones((2, 3)), mx.np.ones((1,)))


def test_loading_again_changes_nothing(library):
    before = len(_core.registry())
    assert mx.library.load(str(library), verbose=False) == ["npx.my_mish", "nd.my_mish", "npx.my_rotate"]
    assert len(_core.registry()) == before


@pytest.mark.parametrize("name", ["my_mish", "my_rotate"])
def test_the_drivers_of_the_registry_pass(library, name):
    op = next(o for o in _core.registry() if o["name"] == name)
    assert op["has_grad"] and op["samples"]
    test_operators_gradient.test_first_order(op)
    test_operators_gradient.test_second_order(op)
    test_operators_gradient.test_layouts_give_the_same_gradient(op)
    if op["pointwise"]:
        test_operators_forward.test_forward(op)
        test_operators_forward.test_result_dtype(op)
        test_operators_forward.test_out_may_be_an_input(op)


def test_they_stand_in_symbols(library):
    x = mx.sym.Variable("x")
    angle = mx.np.array([0.5, 1.0])
    graph = mx.npx.my_rotate(mx.npx.my_mish(x), mx.sym.Constant(angle))
    f = mx.sym.compile(graph * 2)
    a = mx.np.array(onp.linspace(-1, 1, 8).reshape(2, 4))
    assert (f(x=a).asnumpy() == (mx.npx.my_rotate(mx.npx.my_mish(a), angle) * 2).asnumpy()).all()
    dx = mx.sym.compile(graph.grad([x]))(x=a)
    a.attach_grad()
    with mx.autograd.record():
        y = mx.npx.my_rotate(mx.npx.my_mish(a), angle)
    y.backward()
    onp.testing.assert_allclose(dx.asnumpy(), a.grad.asnumpy(), rtol=1e-6)


def test_names_that_are_taken_are_refused_and_nothing_is_added(library, tmp_path):
    text = SOURCE.read_text()
    twice = tmp_path / "twice.cc"  # its first operator is new, its second is there already
    twice.write_text(text.replace('"my_mish"', '"my_other"').replace("npx.my_mish", "npx.my_other").replace("nd.my_mish", "nd.my_other"))
    before = [o["name"] for o in _core.registry()]
    with pytest.raises(ValueError, match="there is already an operator my_rotate"):
        mx.library.load(compiled(twice, tmp_path / "libtwice.so"))
    assert [o["name"] for o in _core.registry()] == before
    assert not hasattr(mx.npx, "my_other")


def test_what_is_no_library_is_an_error(tmp_path):
    with pytest.raises(OSError, match="no file"):
        mx.library.load(tmp_path / "missing.so")
    bad = tmp_path / "bad.so"
    bad.write_bytes(b"not a library")
    with pytest.raises(OSError, match="bad.so"):
        mx.library.load(bad)
    empty = tmp_path / "empty.cc"
    empty.write_text("int nothing;")
    with pytest.raises(ValueError, match="declares no operator"):
        mx.library.load(compiled(empty, tmp_path / "libempty.so"))


def test_in_a_fresh_process_before_anything_else(library):
    code = ("import sys, twibil as mx; mx.library.load(sys.argv[1]); "
            "print(mx.npx.my_mish(mx.np.zeros((2,))).tolist())")
    out = subprocess.run([sys.executable, "-c", code, str(library)], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[0.0, 0.0]" and "my_mish" in out.stderr
