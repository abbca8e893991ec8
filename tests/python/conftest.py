# SPDX-License-Identifier: Apache-2.0
"""Leaves out the tests of the front end where the compiled module is not built."""
import pathlib
import sys

import pytest

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


def pytest_terminal_summary(terminalreporter):
    """How many cases the drivers made that walk the registry."""
    if "registry" in sys.modules and hasattr(sys.modules["registry"], "summary"):
        terminalreporter.write_line(sys.modules["registry"].summary())
