# SPDX-License-Identifier: Apache-2.0
"""Pointwise formulas as people write them."""
from __future__ import annotations

_INFIX = {"add": ("+", 1), "sub": ("-", 1), "mul": ("*", 2), "div": ("/", 2), "eq": ("==", 0), "ne": ("!=", 0),
          "lt": ("<", 0), "le": ("<=", 0), "gt": (">", 0), "ge": (">=", 0), "floor_div": ("//", 2), "mod": ("%", 2),
          "bit_and": ("&", 0), "bit_or": ("|", 0), "bit_xor": ("^", 0), "logical_and": ("and", 0),
          "logical_or": ("or", 0)}
_TIGHT = 9


def _number(value) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def print_formula(steps, names, most=160) -> str:
    """The result of `steps` ([(primitive, temporary, operands)]) over inputs called `names`. Temporaries that are read
    several times, and anything longer than `most` characters, get a name of their own: "t1 = exp(x); t1 / (t1 + 1)"."""
    readers = _count_readers(steps)
    held: dict[int, tuple[str, int]] = {}  # of each temporary: its text, and how tightly that binds
    said: list[str] = []

    def text(operand, tightness=0):
        kind, what = operand
        if kind == "number":
            return _number(what)
        if kind == "input":
            return names[what] if what < len(names) else f"x{what}"
        inside, binds = held[what]
        return f"({inside})" if binds < tightness else inside

    for i, (primitive, target, operands) in enumerate(steps):
        if primitive in _INFIX:
            sign, binds = _INFIX[primitive]
            now = f"{text(operands[0], binds)} {sign} {text(operands[1], binds + 1)}"
        elif primitive == "neg":
            now, binds = "-" + text(operands[0], 3), 3
        elif primitive == "identity" and len(operands) == 1:
            now, binds = text(operands[0], _TIGHT), _TIGHT
        elif primitive == "select":
            now, binds = f"{text(operands[1], 1)} if {text(operands[0], 1)} else {text(operands[2], 1)}", -1
        else:
            now, binds = f"{primitive}({', '.join(text(o) for o in operands)})", _TIGHT
        if i + 1 < len(steps) and (readers[i] > 1 and binds < _TIGHT or readers[i] > 1 and len(now) > 12
                                   or len(now) > most):
            said.append(f"t{len(said) + 1} = {now}")
            now, binds = f"t{len(said)}", _TIGHT
        held[target] = (now, binds)
    return "; ".join(said + [held[steps[-1][1]][0]]) if steps else ""


def _count_readers(steps) -> list[int]:
    """How often the result of each step is read before its temporary is written again."""
    readers, writer = [0] * len(steps), {}
    for i, (_, target, operands) in enumerate(steps):
        for kind, what in operands:
            if kind == "temp" and what in writer:
                readers[writer[what]] += 1
        writer[target] = i
    return readers
