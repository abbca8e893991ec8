# SPDX-License-Identifier: Apache-2.0
"""Run by the Python of an environment that holds nothing but the installed package: it must work and come from there."""
import importlib.metadata
import sys
from pathlib import Path

import twibil as mx

assert Path(mx.__file__).is_relative_to(sys.prefix), f"imported {mx.__file__}, not the installed package"
assert mx.__version__ == importlib.metadata.version("twibil"), mx.__version__
for stub in ("_core.pyi", "np/__init__.pyi", "npx/__init__.pyi", "nd/__init__.pyi", "py.typed"):
    assert (Path(mx.__file__).parent / stub).exists(), f"{stub} is not installed: editors know no operator"
x = mx.np.array([1.0, 2.0])
x.attach_grad()
with mx.autograd.record():
    y = (x * x).sum()
y.backward()
assert y.item() == 5.0 and x.grad.tolist() == [2.0, 4.0]
print("the installed package adds, multiplies and differentiates")
