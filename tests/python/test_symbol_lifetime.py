# SPDX-License-Identifier: Apache-2.0
"""Symbols come and go without taking their class with them."""
import sys

import twibil as mx


def test_dropping_symbols_leaves_their_class_alone():
    before = sys.getrefcount(mx.sym.Symbol)
    for _ in range(100):
        mx.sym.Variable("x")
    assert abs(sys.getrefcount(mx.sym.Symbol) - before) < 10
