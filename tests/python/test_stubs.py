# SPDX-License-Identifier: Apache-2.0
"""The type stubs that the build writes: they parse, hold every public name of the registry, and say what the functions
say of themselves."""
import ast
import inspect
import pathlib
import subprocess
import sys

import pytest
import registry as reg

import twibil as mx
from twibil import _core

PACKAGE = pathlib.Path(mx.__file__).parent
SPACES = {"np": "np/__init__.pyi", "npx": "npx/__init__.pyi", "nd": "nd/__init__.pyi", "ndarray": "_core.pyi"}


MODULES = {"np": mx.np, "npx": mx.npx, "nd": mx.nd, "ndarray": _core.ndarray}
# As they are before other tests register operators.
PUBLIC = {space: {n for n in vars(module) if not n.startswith("_")} for space, module in MODULES.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the build writes, written now: sanitizer builds have no stubs, and none can be older than the sources."""
    root = tmp_path_factory.mktemp("stubs")
    tool = pathlib.Path(__file__).parents[2] / "tools/make_stubs.py"
    subprocess.run([sys.executable, tool, _core.__file__, PACKAGE, root], check=True)
    return root


@pytest.fixture(scope="module")
def stubs(folder):
    """{namespace: {name: definition, or the import that brings it}}; no name stands twice, where readers differ."""
    found = {}
    for space, file in SPACES.items():
        body = ast.parse((folder / file).read_text(), file).body
        if space == "ndarray":
            body = next(n for n in body if isinstance(n, ast.ClassDef) and n.name == "ndarray").body
        found[space] = {}
        for node in body:
            if is_spread_form(node):
                assert node.name in found[space], (file, node.name)  # the other form stands before it
                continue
            names = [node.name] if isinstance(node, ast.FunctionDef) else []
            names += [node.targets[0].id] if isinstance(node, ast.Assign) else []
            names += [a.asname for a in node.names if a.asname] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name not in found[space], (file, name)
                found[space][name] = node
    return found


def is_spread_form(node):
    """x.reshape(2, 3): the second overload of a method that takes its list number by number."""
    return isinstance(node, ast.FunctionDef) and bool(node.decorator_list) and node.args.vararg is not None


def described(node):
    """(name, kind, default) of each parameter, as inspect would say."""
    a = node.args
    plain = [*a.posonlyargs, *a.args]
    defaults = [None] * (len(plain) - len(a.defaults)) + a.defaults
    rows = [(p.arg, "POSITIONAL_OR_KEYWORD", d) for p, d in zip(plain, defaults)]
    rows += [(p.arg, "KEYWORD_ONLY", d) for p, d in zip(a.kwonlyargs, a.kw_defaults)]
    return [(name, kind, inspect.Parameter.empty if d is None else value(d)) for name, kind, d in rows]


def value(node):
    return float(node.args[0].value) if isinstance(node, ast.Call) else ast.literal_eval(node)


@pytest.mark.parametrize("space", SPACES)
def test_every_function_of_the_registry_is_there_with_its_signature(stubs, space):
    names = sorted({n.split(".", 1)[1] for op in reg.OPERATORS for n in op["names"] if n.split(".", 1)[0] == space})
    names = [n for n in names if "." not in n]
    assert len(names) > (20 if space == "ndarray" else 60)
    wrong, replaced = [], []
    for name in names:
        function, node = _core.functions(space)[name], stubs[space].get(name)
        used = getattr(MODULES[space], name)
        if repr(used) != repr(function):  # a function in Python of the same name
            replaced.append(name)
            if not isinstance(node, ast.ImportFrom) and getattr(used, "__module__", "") != MODULES[space].__name__:
                wrong.append((name, node, used))
            continue
        want = [(p.name, p.kind.name, p.default) for p in inspect.signature(function).parameters.values()]
        have = described(node) if isinstance(node, ast.FunctionDef) else None
        if have and space == "ndarray":  # the array itself
            have[0], want[0] = have[0][1:], want[0][1:]
        if have != want:
            wrong.append((name, have, want))
        elif inspect.cleandoc(function.__doc__) != ast.get_docstring(node):
            wrong.append((name, ast.get_docstring(node), function.__doc__))
    assert not wrong, wrong[:3]
    assert len(replaced) < len(names) / 3, replaced


@pytest.mark.parametrize("space", ["np", "npx", "nd"])
def test_every_name_of_a_namespace_is_there(stubs, space):
    public = PUBLIC[space] - {"annotations", "legacy", "calls", "composed", "distributions",
                                                                          "dtypes", "ordering", "products", "shapes"}
    assert public <= set(stubs[space]), public - set(stubs[space])
    assert {"np": "float32", "npx": "set_np", "nd": "broadcast_lesser"}[space] in stubs[space]


def test_methods_and_properties_of_arrays(stubs):
    members = {n for n in dir(_core.ndarray) if not n.startswith("_")}
    assert members <= set(stubs["ndarray"]), members - set(stubs["ndarray"])


def test_the_package_says_that_it_has_types():
    assert (PACKAGE / "py.typed").exists()


def test_lists_may_be_given_number_by_number(folder):
    body = ast.parse((folder / "_core.pyi").read_text()).body
    methods = next(n for n in body if isinstance(n, ast.ClassDef) and n.name == "ndarray").body
    spread = {n.name for n in methods if is_spread_form(n)}
    assert {"reshape", "transpose"} <= spread
    assert mx.np.ones((2, 3)).reshape(3, 2).transpose(1, 0).shape == (2, 3)
