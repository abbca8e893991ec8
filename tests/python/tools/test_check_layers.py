# SPDX-License-Identifier: Apache-2.0
"""tools/check_layers.py sees every kind of offence planted in a small tree, and accepts this checkout."""
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOOL = ROOT / "tools/check_layers.py"

CLEAN = {
    "src/base/error.h": "#pragma once\n",
    "src/ir/graph.h": '#include "base/error.h"\n#include <vector>\n',
    "src/ops/relu.cc": '#include "ir/graph.h"\nTW_OP(relu) = {.doc = "relu"};\n',
    "src/api/array.h": '#include "ir/graph.h"\n',
    "include/twibil/array.h": '#include "api/array.h"\n',
}


def check(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    run = subprocess.run([sys.executable, TOOL, root], capture_output=True, text=True)
    return run.returncode, run.stdout


def test_clean_tree_passes(tmp_path):
    assert check(tmp_path, CLEAN) == (0, "check_layers: 5 files, 1 operators, 0 offences\n")


@pytest.mark.parametrize("name, text, complaint", [
    ("src/base/up.h", '#include "ir/graph.h"\n', "src/base/up.h:1: base/ must not include ir/ ('ir/graph.h'); it may include nothing"),
    ("src/kernels/up.cc", '\n#include "ir/graph.h"\n', "src/kernels/up.cc:2: kernels/ must not include ir/"),
    ("src/ops/up.cc", '#include <api/array.h>\n', "src/ops/up.cc:1: ops/ must not include api/"),
    ("src/ir/gone.cc", '#include "base/gone.h"\n', "src/ir/gone.cc:1: includes 'base/gone.h', which does not exist"),
    ("src/ir/near.cc", '#include "graph.h"\n', "src/ir/near.cc:1: 'graph.h' must be written relative to src/"),
    ("src/passes/fold.cc", 'auto x = f(1,\n  "relu");\n', 'src/passes/fold.cc:2: names the operator "relu" outside src/ops'),
    ("python/bindings/call.cc", 'require_op("relu");\n', 'python/bindings/call.cc:1: names the operator "relu"'),
    ("src/runtime/run.cc", "// op_relu\napply(ops::op_relu, x);\n", "src/runtime/run.cc:2: names the operator op_relu"),
])
def test_planted_offence_is_seen(tmp_path, name, text, complaint):
    code, output = check(tmp_path, {**CLEAN, name: text})
    assert code == 1
    assert complaint in output
    assert output.endswith("1 offences\n")


def test_cycle_is_seen(tmp_path):
    code, output = check(tmp_path, {**CLEAN, "src/ir/a.h": '#include "ir/b.h"\n', "src/ir/b.h": '#include "ir/a.h"\n'})
    assert code == 1
    assert "include cycle ir/a.h -> ir/b.h -> ir/a.h" in output


def test_comments_and_marked_statements_may_name_operators(tmp_path):
    text = ('// about "relu"\n\n\n\n\n\n// layers: operator names (the test of the marker)\n'
            'call("x",\n  "relu");\ncall("relu6");\n')
    code, output = check(tmp_path, {**CLEAN, "src/passes/fold.cc": text})
    assert code == 0
    assert 'marked: src/passes/fold.cc:9: "relu"' in output
    code, output = check(tmp_path, {"src/passes/fold.cc": text + 'call("relu");\n'})
    assert code == 1
    assert 'src/passes/fold.cc:11: names the operator "relu"' in output


def test_words_of_python_are_no_lookups(tmp_path):
    assert check(tmp_path, {**CLEAN, "python/bindings/call.cc": 'keyword("relu");\n'})[0] == 0


def test_this_checkout_passes():
    run = subprocess.run([sys.executable, TOOL, ROOT], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout
