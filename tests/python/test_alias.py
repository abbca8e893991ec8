# SPDX-License-Identifier: Apache-2.0
"""`install_as_mxnet`, in processes of their own."""

import subprocess
import sys

import pytest


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)


def test_mxnet_means_this_package():
    result = run("""
import twibil as mx
mx.install_as_mxnet(), mx.install_as_mxnet()
import mxnet, mxnet.gluon.data.vision.transforms as t
from mxnet import autograd, context, gluon, image, init, np, npx
from mxnet.gluon import nn, rnn
from mxnet.gluon.data.vision import transforms
from mxnet.gluon.data.dataloader import DataLoader
from mxnet.numpy.random import multinomial
import mxnet.numpy, mxnet.numpy_extension as extension, mxnet.numpy.linalg as linalg
import importlib
assert mxnet.numpy is np and extension is npx and linalg is np.linalg and multinomial is np.random.multinomial
assert mx.numpy is np and np.__name__ == 'twibil.np' and np.__spec__.name == 'twibil.np'
assert mxnet is mx and np is mx.np and t is transforms and DataLoader is mx.gluon.data.DataLoader
assert importlib.import_module('mxnet.lr_scheduler') is mx.lr_scheduler
assert mx.gluon.__spec__.name == 'twibil.gluon' and mx.gluon.__name__ == 'twibil.gluon'
try:
    import mxnet.gluon.absent
except ModuleNotFoundError as e:
    assert 'mxnet.gluon.absent' in str(e), e
else:
    raise SystemExit('no error')
print('fine')
""")
    assert result.stdout.strip() == "fine", result.stderr


def test_another_mxnet_is_not_replaced():
    result = run(
        "import sys, types; sys.modules['mxnet'] = types.ModuleType('mxnet'); import twibil; twibil.install_as_mxnet()"
    )
    assert "another 'mxnet' is imported already" in result.stderr


@pytest.mark.parametrize("statement", ["import twibil", "import twibil.gluon.nn", "from twibil.optimizer import SGD"])
def test_import_starts_no_thread(statement):
    count = "len(__import__('os').listdir('/proc/self/task'))"  # NumPy's own library may start some
    result = run(f"import numpy; before = {count}; {statement}; print({count} - before)")
    assert result.stdout.strip() == "0", result.stdout + result.stderr
