# SPDX-License-Identifier: Apache-2.0
"""The engine as Python sees it: where errors surface and what they name, Ctrl-C, fork, and no thread at import."""
import contextlib
import inspect
import os
import subprocess
import sys
import textwrap

import pytest

import twibil as mx
from twibil import np


def run(code, **kwargs):
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120,
                          env=environment, **kwargs)


def failing_work():
    """Large enough to be queued: the bad index is met on another thread."""
    x = np.ones((1000, 600))
    bad = np.full((700,), 2000, dtype="int32")
    return x[bad], inspect.currentframe().f_lineno


def test_error_of_queued_work_names_operator_shapes_and_line():
    y, line = failing_work()
    for look in (y.asnumpy, y.wait_to_read, lambda: y[0, 0].item(), lambda: (y + 1).asnumpy()):
        with pytest.raises(IndexError) as error:
            look()
        message = str(error.value)
        assert "index 2000 is out of range for axis 0 with size 1000" in message
        assert "advanced_index" in message and "[1000, 600]" in message and "[700]" in message
        assert f"test_engine_front.py:{line}" in message


def test_a_wait_before_writing_raises_no_error_of_a_read():
    y, _ = failing_work()
    y.wait_to_write()  # what is about to be replaced may have failed
    with pytest.raises(IndexError, match="out of range"):
        y.wait_to_read()
    mx.np.ones(3).wait_to_write()


def test_a_line_in_a_file_without_a_proper_name_is_passed_over():
    scope = {"x": np.ones((1000, 600)), "bad": np.full((700,), 2000, dtype="int32")}
    exec(compile("y = x[bad]", "\ud800", "exec"), scope)
    with pytest.raises(IndexError, match="test_engine_front.py"):
        scope["y"].wait_to_read()


def test_waitall_raises_what_nobody_looked_at_once():
    failing_work()
    with pytest.raises(IndexError, match="out of range"):
        mx.waitall()
    mx.waitall()


def test_overwriting_a_failed_array_makes_it_good():
    for value in (3, np.ones((700, 600)) * 3):
        y, _ = failing_work()
        y[:] = value
        assert (y.asnumpy() == 3).all()
        with pytest.raises(IndexError):
            mx.waitall()


def test_a_failed_backward_does_not_poison_the_next_one():
    x = np.ones((1000, 600))
    x.attach_grad()
    good, bad = np.zeros((700,), dtype="int32"), np.full((700,), 2000, dtype="int32")
    for index in (bad, good, good):
        with mx.autograd.record():
            y = x[index].sum()
        y.backward()
        if index is bad:
            with pytest.raises(IndexError):
                x.grad.wait_to_read()
        else:
            assert float(x.grad[0, 0]) == 700 and float(x.grad[1, 0]) == 0
    with contextlib.suppress(IndexError):  # the first failure is told once more here, not in another test
        mx.waitall()


def test_import_starts_no_thread_and_small_work_neither():
    code = """
        import os
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        import numpy
        before = len(os.listdir("/proc/self/task"))
        import twibil as mx
        (mx.np.ones(10) + 1).asnumpy()
        print(len(os.listdir("/proc/self/task")) - before)
    """
    result = run(code)
    assert result.stdout.strip() == "0", result.stderr


@pytest.mark.skipif(os.environ.get("TWIBIL_ALLOCATOR") == "system", reason="the sanitizer's malloc does not survive a fork")
def test_a_forked_child_computes():
    code = """
        import os
        import twibil as mx
        x = mx.np.ones((1000, 1000))
        (x @ x).wait_to_read()      # the engine's threads run
        pending = x @ x
        child = os.fork()
        if child == 0:
            y = mx.np.ones((700, 700)) @ mx.np.ones((700, 700))
            os._exit(0 if float(y[3, 3]) == 700 and float(pending[0, 0]) == 1000 else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), float(pending[5, 5]))
    """
    result = run(code)
    assert result.stdout.split() == ["0", "1000.0"], result.stderr


def test_control_c_ends_a_wait_and_the_program_goes_on():
    code = """
        import os, signal, threading, time
        import twibil as mx
        signal.signal(signal.SIGINT, signal.default_int_handler)  # programs in the background of a shell ignore it
        x = mx.np.ones((1500, 1500))
        for _ in range(50): x = x @ x * 1e-3  # more would fill the queue, and wait here
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        begin = time.time()
        try:
            x.wait_to_read()
            print("not interrupted", time.time() - begin)
        except KeyboardInterrupt:
            print("interrupted", float(mx.np.ones(3).sum()))
        os._exit(0)
    """
    result = run(code)
    assert result.stdout.split() == ["interrupted", "3.0"], result.stdout + result.stderr


def test_naive_and_simulated_engines_give_the_same_numbers():
    code = """
        import twibil as mx, numpy
        mx.random.seed(3)
        x = mx.np.random.normal(size=(300, 400))
        x.attach_grad()
        with mx.autograd.record():
            y = (mx.np.tanh(x @ x.T) * 0.1).sum()
        y.backward()
        x[:] = x - 0.1 * x.grad
        print(hash(x.asnumpy().tobytes()), float(y))
    """
    os.environ["PYTHONHASHSEED"] = "0"
    outputs = set()
    for engine in ("threaded", "naive", "simulated:7"):
        os.environ["TWIBIL_ENGINE"] = engine
        try:
            result = run(code)
        finally:
            del os.environ["TWIBIL_ENGINE"]
        assert result.returncode == 0, result.stderr
        outputs.add(result.stdout)
    assert len(outputs) == 1, outputs
