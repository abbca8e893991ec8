# SPDX-License-Identifier: Apache-2.0
"""Leaves out the tests of the front end where the compiled module is not built."""
import collections
import pathlib
import sys

import pytest

total_cases: collections.Counter = collections.Counter()  # of all processes

try:
    import twibil  # noqa: F401
    collect_ignore: list = []
except ImportError as error:
    if error.name not in ("twibil", "twibil._core"):  # a mistake in the package must not leave its tests out
        raise
    here = pathlib.Path(__file__).parent
    collect_ignore = [p.name for p in here.glob("test_*.py") if "import twibil" in p.read_text()
                      or "from twibil" in p.read_text()]
else:
    import hybridized  # now, as benchmarks/, which some tests put on the path, has a file of this name too


def pytest_generate_tests(metafunc):
    """Tests of gluon's blocks run twice: eagerly, and hybridized (see hybridized.py)."""
    if collect_ignore:
        return
    if metafunc.module.__name__.rpartition(".")[2] in hybridized.MODULES:
        metafunc.parametrize("mode_of_blocks", ["eager", "hybridized"], indirect=True)


@pytest.fixture(autouse=True)
def mode_of_blocks(request, monkeypatch):
    """'hybridized': hybrid blocks of this test run as graphs."""
    mode = getattr(request, "param", "eager")
    if mode == "hybridized":
        import hybridized
        hybridized.install(monkeypatch)
    return mode


def pytest_report_header():
    return f"without the compiled module, left out: {', '.join(collect_ignore)}" if collect_ignore else None


def counts_of_cases():
    return getattr(sys.modules.get("registry"), "counts", collections.Counter())


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):  # one of several processes (pytest -n)
        session.config.workeroutput["cases"] = dict(counts_of_cases())


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    total_cases.update(getattr(node, "workeroutput", {}).get("cases", {}))


def pytest_terminal_summary(terminalreporter):
    """How many cases the drivers made that walk the registry."""
    total_cases.update(counts_of_cases())
    if total_cases:
        import registry
        terminalreporter.write_line(registry.summary(total_cases))
