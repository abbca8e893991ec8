# SPDX-License-Identifier: Apache-2.0
"""Leaves out the tests of the front end where the compiled module is not built."""
import pathlib

try:
    import twibil  # noqa: F401
    collect_ignore: list = []
except ImportError:
    here = pathlib.Path(__file__).parent
    collect_ignore = [p.name for p in here.glob("test_*.py") if "import twibil" in p.read_text()
                      or "from twibil" in p.read_text()]


def pytest_report_header():
    return f"without the compiled module, left out: {', '.join(collect_ignore)}" if collect_ignore else None
