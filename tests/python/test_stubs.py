# SPDX-License-Identifier: Apache-2.0
"""The type stubs that the build writes: they parse, hold every public name of the registry, and say what the functions
say of themselves."""
import ast
import inspect
import pathlib

import pytest
import registry as reg

import twibil as mx
from twibil import _core

PACKAGE = pathlib.Path(mx.__file__).parent
SPACES = {"np": "np/__init__.pyi", "npx": "npx/__init__.pyi", "nd": "nd/__init__.pyi", "ndarray": "_core.pyi"}


@pytest.fixture(scope="module")
def stubs():
    """{namespace: {name: definition}}; the first definition of a name is the registry's."""
    found = {}
    for space, file in SPACES.items():
        body = ast.parse((PACKAGE / file).read_text(), file).body
        if space == "ndarray":
            body = next(n for n in body if isinstance(n, ast.ClassDef) and n.name == "ndarray").body
        found[space] = {}
        for node in body:
            if isinstance(node, ast.FunctionDef):
                found[space].setdefault(node.name, node)
    return found


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
    wrong = []
    for name in names:
        function = _core.functions(space)[name]
        want = [(p.name, p.kind.name, p.default) for p in inspect.signature(function).parameters.values()]
        node = stubs[space].get(name)
        have = None if node is None else described(node)
        if have and space == "ndarray":  # the array itself
            have[0], want[0] = have[0][1:], want[0][1:]
        if have != want:
            wrong.append((name, have, want))
        elif inspect.cleandoc(function.__doc__) != ast.get_docstring(node):
            wrong.append((name, ast.get_docstring(node), function.__doc__))
    assert not wrong, wrong[:3]


def test_methods_and_properties_of_arrays(stubs):
    members = {n for n in dir(_core.ndarray) if not n.startswith("_")}
    assert members <= set(stubs["ndarray"]), members - set(stubs["ndarray"])


@pytest.mark.parametrize("space", ["np", "npx"])
def test_names_written_in_python_are_taken_over(space):
    """Star imports of the module stand in the stub, and public names that it imports are exported."""
    stub = ast.parse((PACKAGE / SPACES[space]).read_text())
    source = ast.parse((PACKAGE / space / "__init__.py").read_text())

    def stars(tree):
        return [n.module for n in tree.body if isinstance(n, ast.ImportFrom) and n.names[0].name == "*"]

    assert stars(stub) == stars(source) and stars(stub)
    exported = {a.asname for n in stub.body if isinstance(n, ast.ImportFrom) for a in n.names}
    assert {"random"} <= exported


def test_the_package_says_that_it_has_types():
    assert (PACKAGE / "py.typed").exists()
