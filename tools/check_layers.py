#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the two laws: an include points only to an allowed lower folder, and no file outside src/ops names an operator.

  check_layers.py [ROOT]

Prints one line an offence and exits with 1 if there is any. Also refuses includes of files that do not exist, and cycles.
A statement that must write an operator's name, as a string or as its constant op_<name>, says why, on its line or the line above:
`// layers: operator names (REASON)`. Among the first five lines of a file the comment covers the whole file. Every use of it
is printed. Folders below ir cannot look operators up, so their words are free. In the front ends (src/api, python/bindings),
whose own words are strings too, only names that are looked up count.
"""
import re
import sys
from pathlib import Path

# folder -> the folders that it may include, besides itself
ALLOWED = {
    "base": set(),
    "memory": {"base"},
    "kernels": {"base"},
    "engine": {"base", "memory"},
    "ir": {"base", "memory"},
    "passes": {"base", "ir"},
    "runtime": {"base", "memory", "kernels", "engine", "ir", "passes"},
    "ops": {"base", "memory", "kernels", "ir"},
    "api": {"base", "memory", "kernels", "engine", "ir", "passes", "runtime", "ops", "twibil"},
    "twibil": {"base", "memory", "engine", "ir", "passes", "runtime", "ops", "api"},  # include/twibil, the public headers
}
EXTERNAL = {"hwy"}  # quoted by its own convention
TEXTUAL_SUFFIXES = {".h", ".cc", ".inc"}
MARKER = re.compile(r"// layers: operator names \(.+\)")
LOOKUP = re.compile(r"\b(?:require|find|lookup|call)\w*\(\s*$")  # what stands before a name that is looked up
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<((?:%s)/[^>]+)>)' % "|".join(ALLOWED), re.M)
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
SYMBOL = re.compile(r"\bop_(\w+)")  # the constant that TW_OP defines
DECLARATION = re.compile(r"\bTW_OP(?:_\w+)?\(\s*\"?(\w+)")


def sources(root):
    """Every source file of the library as (folder, path relative to the include root, path)."""
    for base, folders in ((root / "src", [f for f in ALLOWED if f != "twibil"]), (root / "include", ["twibil"])):
        for folder in folders:
            for path in sorted((base / folder).rglob("*")):
                if path.suffix in TEXTUAL_SUFFIXES:
                    yield folder, path.relative_to(base).as_posix(), path


def check_includes(root, problems):
    files = {name: (folder, path) for folder, name, path in sources(root)}
    graph = {}
    for name, (folder, path) in files.items():
        text = path.read_text()
        graph[name] = []
        for match in INCLUDE.finditer(text):
            target = match[1] or match[2]
            where = f"{path.relative_to(root)}:{text.count(chr(10), 0, match.start()) + 1}"
            to = target.split("/")[0]
            if to not in ALLOWED:
                if match[1] and to not in EXTERNAL:
                    problems.append(f"{where}: '{target}' must be written relative to src/")
                continue
            if target not in files:
                problems.append(f"{where}: includes '{target}', which does not exist")
                continue
            graph[name].append(target)
            if to != folder and to not in ALLOWED[folder]:
                allowed = ", ".join(sorted(ALLOWED[folder])) or "nothing"
                problems.append(f"{where}: {folder}/ must not include {to}/ ('{target}'); it may include {allowed}")
    return graph


def check_cycles(graph, problems):
    state = {}  # absent: not seen; 1: on the current path; 2: done

    def visit(name, path):
        state[name] = 1
        for target in graph.get(name, []):
            if state.get(target) == 1 and target != name:
                ring = path[path.index(target):] if target in path else [target]
                problems.append(f"{name}: include cycle {' -> '.join(ring + [target])}")
            elif target not in state:
                visit(target, path + [target])
        state[name] = 2

    for name in sorted(graph):
        if name not in state:
            visit(name, [name])


def operator_names(root):
    names = set()
    for path in sorted((root / "src/ops").rglob("*")):
        if path.suffix in TEXTUAL_SUFFIXES:
            names.update(DECLARATION.findall(path.read_text()))
    return names


def marked_lines(lines):
    """Numbers of the lines under a marker: to the end of the statement, or all where it stands at the top."""
    numbers = set()
    for number, line in enumerate(lines, 1):
        if MARKER.search(line):
            end = number
            while end < len(lines) and ";" not in lines[end - 1].split("//")[0]:
                end += 1
            numbers.update(range(number, (len(lines) if number <= 5 else end) + 1))
    return numbers


def check_names(root, names, problems, marked):
    knows_operators = {"ir"} | {folder for folder in ALLOWED if "ir" in ALLOWED[folder]} - {"ops"}
    paths = [path for folder, _, path in sources(root) if folder in knows_operators]

    def report(path, text, match, what):
        number = text.count("\n", 0, match.start()) + 1
        where = f"{path.relative_to(root)}:{number}"
        if number in marked_lines(text.splitlines()):
            marked.append(f"{where}: {what}")
        else:
            problems.append(f"{where}: names the operator {what} outside src/ops")

    bindings = [path for path in sorted((root / "python/bindings").rglob("*")) if path.suffix in TEXTUAL_SUFFIXES]
    for path in paths + bindings:
        text = path.read_text()
        front_end = path in bindings or path.is_relative_to(root / "src/api")
        for match in COMMENT_OR_STRING.finditer(text):
            literal = match[0]
            if not literal.startswith('"') or literal[1:-1] not in names:
                continue
            if front_end and not LOOKUP.search(text, max(0, match.start() - 40), match.start()):
                continue
            report(path, text, match, literal)
        code = COMMENT_OR_STRING.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
        for match in SYMBOL.finditer(code):
            if match[1] in names:
                report(path, text, match, match[0])


def main(root):
    problems, marked = [], []
    graph = check_includes(root, problems)
    check_cycles(graph, problems)
    names = operator_names(root)
    check_names(root, names, problems, marked)
    for line in marked:
        print("marked:", line)
    for line in problems:
        print(line)
    print(f"check_layers: {len(graph)} files, {len(names)} operators, {len(problems)} offences")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()))
