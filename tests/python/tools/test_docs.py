# SPDX-License-Identifier: Apache-2.0
"""The documents name files that exist, every folder of src/ explains itself on one screen, and every file says its licence."""
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)  # a lambda of C++ looks like a link
PATH = re.compile(r"`((?:src|include|python|tests|docs|tools|examples|benchmarks|cmake)/[\w./-]+\.\w+)(?::\d+)?`")
BESIDE = re.compile(r"`(\w+\.(?:h|cc))`")


def targets(page):
    """(as written, where it should be) of every link and every path in code marks."""
    text = CODE.sub("", page.read_text())
    for target in LINK.findall(text):
        if "://" not in target:
            yield target, page.parent / target
    for target in PATH.findall(text):
        yield target, ROOT / target
    for target in BESIDE.findall(text):  # in a folder's README: a file of that folder
        yield target, next(page.parent.rglob(target), page.parent / target)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_named_by_a_page_exist(page):
    missing = sorted({name for name, path in targets(page) if not path.exists()})
    assert not missing


def test_the_check_sees_a_missing_file(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("[here](page.md) [gone](gone.md) `src/base/gone.h` `src/base/error.h` `lost.h`")
    assert [name for name, path in targets(page) if not path.exists()] == ["gone.md", "src/base/gone.h", "lost.h"]


def test_every_folder_explains_itself_on_one_screen():
    for folder in sorted(path for path in (ROOT / "src").iterdir() if path.is_dir()):
        readme = folder / "README.md"
        assert readme.exists(), f"{folder.name} has no README.md"
        assert len(readme.read_text().splitlines()) <= 50, f"{readme} is longer than a screen"


def test_every_source_says_its_licence():
    wanted = "SPDX-License-Identifier: Apache-2.0"
    silent = [path.relative_to(ROOT).as_posix()
              for folder in ("src", "include", "python", "tests", "tools", "examples", "benchmarks")
              for path in sorted((ROOT / folder).rglob("*"))
              if path.suffix in {".h", ".cc", ".inc", ".py"} and wanted not in "".join(path.read_text().splitlines()[:2])]
    assert not silent
