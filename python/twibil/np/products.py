# SPDX-License-Identifier: Apache-2.0
"""Products of arrays over chosen axes, by way of stacked matrix products, so that they have gradients of any order."""
from __future__ import annotations

import math

from .. import _core
from ..registry import functions as _functions

__all__ = ["dot", "tensordot", "einsum"]

_np = _functions("np")


def _array(x):
    return x if isinstance(x, _core.ndarray) else _core.array(x)


def dot(a, b, out=None):
    """NumPy's dot: numbers multiply; vectors give the sum of products, matrices the matrix product; in general the sum
    over the last axis of `a` and the second to last (or only) axis of `b`. ValueError where these differ."""
    a, b = _array(a), _array(b)
    if a.ndim == 0 or b.ndim == 0:
        value = a * b
    elif a.ndim <= 2 and b.ndim <= 2:
        value = _np["matmul"](a, b)
    else:
        value = tensordot(a, b, axes=((a.ndim - 1,), (max(b.ndim - 2, 0),)))
    if out is None:
        return value
    out[...] = value
    return out


def _axes(axes, a, b):
    """The summed axes of both arrays, not negative."""
    if isinstance(axes, int):
        if axes < 0 or axes > min(a.ndim, b.ndim):
            raise ValueError(f"tensordot: {axes} axes cannot be summed over arrays of {a.ndim} and {b.ndim} axes")
        return list(range(a.ndim - axes, a.ndim)), list(range(axes))
    pairs = [[v] if isinstance(v, int) else list(v) for v in axes]
    if len(pairs) != 2 or len(pairs[0]) != len(pairs[1]):
        raise ValueError(f"tensordot: as many axes of one array as of the other are needed; got {axes}")
    for which, x in zip(pairs, (a, b)):
        for v in which:
            if not -x.ndim <= v < x.ndim:
                raise IndexError(f"tensordot: axis {v} is out of range for shape {list(x.shape)}")
    return [v % a.ndim for v in pairs[0]], [v % b.ndim for v in pairs[1]]


def tensordot(a, b, axes=2):
    """The sum of products over pairs of axes: a number n stands for the last n of `a` and the first n of `b`, else
    (axes of a, axes of b). The result has the remaining axes of `a`, then those of `b`."""
    a, b = _array(a), _array(b)
    left, right = _axes(axes, a, b)
    if [a.shape[i] for i in left] != [b.shape[i] for i in right]:
        raise ValueError(f"tensordot: summed axes must have equal sizes; got {[a.shape[i] for i in left]} of shape "
                         f"{list(a.shape)} and {[b.shape[i] for i in right]} of shape {list(b.shape)}")
    free_a = [i for i in range(a.ndim) if i not in left]
    free_b = [i for i in range(b.ndim) if i not in right]
    depth = math.prod(a.shape[i] for i in left)
    x = a.transpose((*free_a, *left)).reshape((math.prod(a.shape[i] for i in free_a), depth))
    y = b.transpose((*right, *free_b)).reshape((depth, math.prod(b.shape[i] for i in free_b)))
    return _np["matmul"](x, y).reshape((*(a.shape[i] for i in free_a), *(b.shape[i] for i in free_b)))


def einsum(subscripts, *operands, **kwargs):
    """Sums of products by letters: `einsum('bij,bjk->bik', a, b)`. Letters that the result lacks are summed over;
    without '->' it has the letters that occur once, in alphabetic order. '...' stands for leading axes that broadcast.

    ValueError where letters, axes and sizes do not fit."""
    operands = [_array(x) for x in operands]
    terms, result = _parse(subscripts, operands)
    sizes: dict = {}
    for term, x in zip(terms, operands):
        for letter, n in zip(term, x.shape):
            if sizes.setdefault(letter, n) not in (n, 1) and n != 1:
                raise ValueError(f"einsum: {letter!r} has sizes {sizes[letter]} and {n} in {subscripts!r}")
            sizes[letter] = max(sizes[letter], n) if 0 not in (sizes[letter], n) else 0
    unknown = set(result) - set(sizes)
    if unknown or len(set(result)) != len(result):
        raise ValueError(f"einsum: the result {result!r} of {subscripts!r} has letters that are new or repeated")
    term, x = _single(terms[0], operands[0])
    for number in range(1, len(operands)):
        later = set(result).union(*map(set, terms[number + 1:]))
        term, x = _pair(term, x, *_single(terms[number], operands[number]), later)
    summed = tuple(i for i, letter in enumerate(term) if letter not in result)
    x = x.sum(axis=summed) if summed else x
    term = "".join(letter for letter in term if letter in result)
    x = x.transpose(tuple(term.index(letter) for letter in result)) if term != result else x
    return x


def _parse(subscripts: str, operands: list):
    """The letters of each operand and of the result, with '...' replaced by capital letters of its own."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise ValueError(f"einsum: {subscripts!r} has {len(terms)} terms for {len(operands)} arrays")
    spare = [chr(c) for c in range(ord("z"), ord("a") - 1, -1) if chr(c) not in text]
    spare += [chr(c) for c in range(ord("Z"), ord("A") - 1, -1) if chr(c) not in text]
    most = max((x.ndim - len(t) + 3 for t, x in zip(terms, operands) if "..." in t), default=0)
    dots = "".join(spare[:max(most, 0)])
    full = []
    for term, x in zip(terms, operands):
        if "..." in term:
            n = x.ndim - len(term) + 3
            term = term.replace("...", dots[len(dots) - n:] if n > 0 else "")
        if len(term) != x.ndim or not all(c.isalpha() for c in term):
            raise ValueError(f"einsum: the term {term!r} of {subscripts!r} does not fit shape {list(x.shape)}")
        full.append(term)
    if arrow:
        return full, right.replace("...", dots)
    joined = "".join(full)
    return full, dots + "".join(sorted(c for c in set(joined) if joined.count(c) == 1 and c not in dots))


def _single(term: str, x):
    """Diagonals taken for letters that a term repeats."""
    while len(set(term)) < len(term):
        letter = next(c for c in term if term.count(c) > 1)
        i = term.index(letter)
        j = term.index(letter, i + 1)
        n = x.shape[i]
        order = (i, j, *[k for k in range(x.ndim) if k not in (i, j)])
        places = _np["arange"](n, dtype="int64")
        x = x.transpose(order)[places, places]
        term = letter + "".join(term[k] for k in order[2:])
    return term, x


def _pair(term_a: str, a, term_b: str, b, later: set):
    """Two arrays as one: letters of both that come later are a batch, other common ones are summed in a
    matrix product."""
    batch = [c for c in term_a if c in term_b and c in later]
    summed = [c for c in term_a if c in term_b and c not in later]
    if any(a.shape[term_a.index(c)] != b.shape[term_b.index(c)] for c in batch + summed):  # sizes of 1 broadcast
        order = term_a + "".join(c for c in term_b if c not in term_a)
        lift = b.transpose(tuple(term_b.index(c) for c in order if c in term_b))
        lift = lift.reshape(tuple(b.shape[term_b.index(c)] if c in term_b else 1 for c in order))
        return order, a.reshape((*a.shape, *[1] * (len(order) - len(term_a)))) * lift
    free_a = [c for c in term_a if c not in term_b]
    free_b = [c for c in term_b if c not in term_a]
    size_a, size_b = ({c: n for c, n in zip(t, x.shape)} for t, x in ((term_a, a), (term_b, b)))
    shape = [math.prod(size_a[c] for c in group) for group in (batch, free_a, summed)]
    x = a.transpose(tuple(term_a.index(c) for c in batch + free_a + summed)).reshape(tuple(shape))
    y = b.transpose(tuple(term_b.index(c) for c in batch + summed + free_b))
    y = y.reshape((shape[0], shape[2], math.prod(size_b[c] for c in free_b)))
    z = _np["matmul"](x, y).reshape((*[size_a[c] for c in batch + free_a], *[size_b[c] for c in free_b]))
    return "".join(batch + free_a + free_b), z
