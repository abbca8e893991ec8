# SPDX-License-Identifier: Apache-2.0
"""x.wait_to_read has a descriptor of its own; it behaves like any method of a built-in type."""
import gc
import sys

import pytest

from twibil import _core, np


def test_it_waits_and_returns_none():
    x = np.ones((3,))
    assert x.wait_to_read() is None
    assert hasattr(x, "wait_to_read") and callable(x.wait_to_read)
    assert type(x).wait_to_read(x) is None
    assert getattr(x, "wait_to_read")(*(), **{}) is None


def test_names_and_text():
    x = np.ones((3,))
    for method in (x.wait_to_read, type(x).wait_to_read):
        assert method.__name__ == "wait_to_read" and method.__qualname__ == "ndarray.wait_to_read"
        assert "computed" in method.__doc__ and "wait_to_read" in repr(method)
    assert x.wait_to_read.__self__ is x
    assert "wait_to_read" in dir(x)


def test_equal_for_the_same_array_only():
    x, y = np.ones((3,)), np.ones((3,))
    assert x.wait_to_read == x.wait_to_read and hash(x.wait_to_read) == hash(x.wait_to_read)
    assert x.wait_to_read != y.wait_to_read and x.wait_to_read != 3
    with pytest.raises(TypeError):
        x.wait_to_read < x.wait_to_read


@pytest.mark.parametrize("call", [lambda x: x.wait_to_read(1), lambda x: x.wait_to_read(timeout=1),
                                  lambda x: (x.wait_to_read,)[0](1), lambda x: (x.wait_to_read,)[0](timeout=1),
                                  lambda x: type(x).wait_to_read(), lambda x: type(x).wait_to_read(3),
                                  lambda x: type(x).wait_to_read(x, 1), lambda x: type(x).wait_to_read(self=x)])
def test_arguments_are_refused(call):
    with pytest.raises(TypeError, match="wait_to_read"):
        call(np.ones((3,)))


def test_a_bound_method_holds_its_array_and_lets_go_of_it():
    x = np.ones((3,))
    before = sys.getrefcount(x)
    methods = [x.wait_to_read for _ in range(100)]  # one of them is the spare one
    assert sys.getrefcount(x) == before + 100
    for method in methods:
        method()
    del methods, method
    assert sys.getrefcount(x) == before
    live = _core.memory_stats()["current_bytes"]
    wait = np.ones((1000,)).wait_to_read  # the only handle
    wait()
    assert (wait.__self__ == 1).all()
    del wait
    assert _core.memory_stats()["current_bytes"] == live


def test_subclasses_bind_a_method_that_the_collector_sees():
    class Mine(np.ndarray):
        pass

    x = Mine(np.ones((3,)))
    assert x.wait_to_read() is None and x.wait_to_read.__self__ is x
    with pytest.raises(TypeError, match="wait_to_read"):
        x.wait_to_read(1)
    x.__dict__["cycle"] = x.wait_to_read
    gone = []
    x.__dict__["last"] = type("Last", (), {"__del__": lambda self: gone.append(1)})()
    del x
    gc.collect()
    assert gone
