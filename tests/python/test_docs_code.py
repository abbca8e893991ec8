# SPDX-License-Identifier: Apache-2.0
"""The code in the documentation runs: Python as it stands there, C++ as a part of a program that is built and run."""
from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["docs/symbols.md", "docs/model-zoo.md", "docs/profiling.md"]


def blocks(page, language):
    text = (ROOT / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def squeezed(code):
    return re.sub(r"\s+", "", code)


@pytest.mark.parametrize("page", PAGES)
def test_python_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # pages may write files
    names: dict = {}
    found = blocks(page, "python")
    assert found
    for code in found:
        exec(compile(code, page, "exec"), names)


@pytest.mark.parametrize("page", PAGES)
def test_cpp_is_part_of_a_program(page):
    programs = squeezed("\n".join(p.read_text() for p in sorted((ROOT / "examples").rglob("*.cc"))))
    found = blocks(page, "cpp")
    assert found
    for code in found:
        assert squeezed(code) in programs, f"no program in examples/ holds:\n{code}"


def test_files_that_pages_link_to_exist():
    for page in [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]:
        prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for link in re.findall(r"\]\(([^)#:]+)\)", prose):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
