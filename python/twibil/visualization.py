# SPDX-License-Identifier: Apache-2.0
"""`print_summary` and `plot_network`: a symbol as a table and as a picture, in MXNet's way; also called `mx.viz`."""
from __future__ import annotations

import math
import os
import shutil
import subprocess
import tempfile
import warnings
import webbrowser

from .base import did_you_mean
from .sym import Symbol

__all__ = ["print_summary", "plot_network", "NetworkPlot"]

_WEIGHTS = ("_weight", "_bias", "_beta", "_gamma", "_moving_var", "_moving_mean", "_running_var", "_running_mean")


class _Network:
    """The nodes of a symbol with their outputs' shapes, as far as those follow from `shape`."""

    def __init__(self, symbol, shape, dtype, who: str):
        if not isinstance(symbol, Symbol):
            raise TypeError(f"{who}: symbol must be a Symbol; got {type(symbol).__name__}")
        self.nodes, self.heads = symbol._nodes()
        self.given = {} if shape is None else shape
        for what, value in (("shape", shape), ("dtype", dtype)):
            if value is not None and not isinstance(value, dict):
                raise TypeError(f"{who}: {what} must be a dict by name; got {type(value).__name__}")
        names = symbol.list_inputs()
        for name in (*self.given, *(dtype or {})):
            if name not in names:
                raise ValueError(f"{who}: the symbol has no variable {name!r}.{did_you_mean(str(name), names)}")
        self.auxiliary = set(symbol.list_auxiliary_states())
        self.variables, self.outputs = {}, {}
        if shape is not None or dtype is not None:
            given = {n: (self.given.get(n), (dtype or {}).get(n)) for n in {**self.given, **(dtype or {})}}
            inner = symbol.get_internals()
            self.variables, found = inner._infer(given, False, dtype is not None and shape is None)
            places = [(i, k) for i, n in enumerate(self.nodes) for k in range(n["outputs"])]
            self.outputs = dict(zip(places, found))

    def is_data(self, i: int) -> bool:
        """Whether variable `i` is data and no parameter: named in `shape`, or else the first one. Names that end like
        weights are no data in any case."""
        name = self.nodes[i]["name"]
        if self.given:
            return name in self.given and not name.endswith(_WEIGHTS)
        return i == next(k for k, n in enumerate(self.nodes) if n["kind"] == "variable")

    def parameters(self, i: int, counted: set) -> int:
        """Elements of the parameters that node `i` reads and that no node before it did. Labels, whose names end so by
        MXNet's custom, and auxiliary states are none."""
        total = 0
        for e in self.nodes[i]["inputs"]:
            if e is None or e[0] in counted:
                continue
            n = self.nodes[e[0]]
            name = n["name"]
            if n["kind"] == "captured" or (n["kind"] == "variable" and not self.is_data(e[0])
                                           and name not in self.auxiliary and not name.endswith("label")):
                counted.add(e[0])
                sig = self.variables.get(name)
                shape = sig[0] if sig else n.get("shape")
                total += math.prod(shape) if shape is not None and all(d >= 0 for d in shape) else 0
        return total

    def shape_text(self, i: int, between: str, first: int) -> str:
        """Sizes of output 0 of node `i` from axis `first` on."""
        sig = self.outputs.get((i, 0))
        return between.join(map(str, sig[0][first:])) if sig else ""


def print_summary(symbol, shape=None, line_length=120, positions=(.44, .64, .74, 1.)):
    """Prints a row for each layer: name and operator, shape of its output without the batch axis, number of parameters,
    and the layers before it; then the number of all parameters.

    shape: dict of the inputs' shapes by name; without it shapes and numbers of parameters stay unknown, where the symbol
    does not hold them. positions: where the columns end, as parts of `line_length` or as numbers of characters.
    Raises TypeError for what is no symbol, ValueError for names and shapes that do not fit."""
    net = _Network(symbol, shape, None, "print_summary")
    if len(positions) != 4:
        raise ValueError(f"print_summary: positions must be 4 numbers; got {len(positions)}")
    columns = [int(line_length * p) for p in positions] if positions[-1] <= 1 else [int(p) for p in positions]
    if columns != sorted(columns) or columns[0] < 4:
        raise ValueError(f"print_summary: positions must grow; got {tuple(positions)} in lines of {line_length}")

    def write(*cells):
        line = ""
        for cell, end in zip(cells, columns):
            line = (line + str(cell))[:end].ljust(end)
        print(line)

    print("_" * line_length)
    write("Layer (type)", "Output Shape", "Param #", "Previous Layer")
    print("=" * line_length)
    counted: set = set()
    total, rows = 0, []
    for i, n in enumerate(net.nodes):
        if n["kind"] == "variable" and net.is_data(i):
            rows.append(((f"{n['name']}(null)", net.shape_text(i, "x", 1), 0, ""), []))
        elif n["kind"] in ("call", "function", "backward"):
            count = net.parameters(i, counted)
            total += count
            before = [net.nodes[e[0]]["name"] for e in n["inputs"] if e is not None
                      and (net.nodes[e[0]]["kind"] not in ("variable", "constant", "captured") or
                           net.nodes[e[0]]["kind"] == "variable" and net.is_data(e[0]))]
            before = list(dict.fromkeys(before))
            rows.append(((f"{n['name']}({n['op']})", net.shape_text(i, "x", 1), count, before[0] if before else ""),
                         before[1:]))
    for k, (cells, more) in enumerate(rows):
        write(*cells)
        for name in more:
            write("", "", "", name)
        print(("=" if k + 1 == len(rows) else "_") * line_length)
    print(f"Total params: {total}")
    print("_" * line_length)


def plot_network(symbol, title="plot", save_format="pdf", shape=None, dtype=None, node_attrs=None, hide_weights=True):
    """A picture of a symbol, as a `NetworkPlot`: notebooks show it, `render()` writes it, `view()` opens it.

    shape, dtype: dicts by name of the inputs; then pointers show what flows along them. hide_weights: leave out
    parameters, told by MXNet's endings of names. save_format: used where the program `dot` of Graphviz is installed; the
    picture is SVG otherwise. node_attrs: attributes of Graphviz for the text in its language, `source`.
    Raises TypeError for what is no symbol, ValueError for names and shapes that do not fit."""
    net = _Network(symbol, shape, dtype, "plot_network")
    if node_attrs is not None and not isinstance(node_attrs, dict):
        raise TypeError(f"plot_network: node_attrs must be a dict; got {type(node_attrs).__name__}")
    return NetworkPlot(net, str(title), str(save_format), dict(node_attrs or {}), bool(hide_weights))


class NetworkPlot:
    """The picture that `plot_network` makes."""

    def __init__(self, net, title: str, save_format: str, node_attrs: dict, hide_weights: bool):
        self._net, self.title, self.format, self._node_attrs = net, title, save_format, node_attrs
        self._shown = [i for i, n in enumerate(net.nodes) if not (
            hide_weights and n["kind"] in ("variable", "captured") and n["name"].endswith(_WEIGHTS))]

    def _lines(self, i: int) -> list:
        n = self._net.nodes[i]
        if n["kind"] == "variable":
            return [n["name"]]
        if n["kind"] == "constant":
            value = n.get("value")
            return [f"{value.item():.6g}" if value is not None and value.size == 1 else "constant"]
        attributes = [f"{k}={v}" for k, v in n["attrs"].items()]
        return [n["name"] or n["op"]] + ([n["op"]] if n["op"] != n["name"] else []) + attributes[:6]

    def _edges(self) -> dict:
        place = {node: k for k, node in enumerate(self._shown)}
        edges: dict = {}
        for i in self._shown:
            for e in self._net.nodes[i]["inputs"]:
                if e is not None and e[0] in place:
                    sig = self._net.outputs.get(tuple(e))
                    edges[(place[e[0]], place[i])] = "" if sig is None else f"{sig[1]} {'×'.join(map(str, sig[0]))}"
        return edges

    def _repr_svg_(self) -> str:
        from .explain.drawing import Box, draw
        from .explain.style import STYLE
        boxes = []
        for i in self._shown:
            n = self._net.nodes[i]
            kind = {"variable": "argument", "constant": "constant", "captured": "argument",
                    "function": "function"}.get(n["kind"], "call")
            lines = self._lines(i)
            if self._net.outputs.get((i, 0)):
                lines = lines + [self._net.shape_text(i, "×", 0)]
            boxes.append(Box(lines, kind, "\n".join(lines), f"v{i}"))
        svg = draw(boxes, self._edges(), self.title)
        head, rest = svg.split(">", 1)
        back = '<rect x="-8" y="-8" width="100%" height="100%" fill="var(--back)"/>'
        return f'{head}><style>{STYLE}</style><g class="twibil-explain">{back}{rest[:-len("</svg>")]}</g></svg>'

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"image/svg+xml": self._repr_svg_(), "text/plain": repr(self)}

    def __repr__(self):
        return f"<NetworkPlot {self.title!r} of {len(self._shown)} nodes>"

    @property
    def source(self) -> str:
        """The graph in Graphviz's language."""
        quoted = lambda text: '"' + str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        attrs = {"shape": "box", "style": "filled", "fillcolor": "#d5e3f3", **self._node_attrs}
        lines = [f"digraph {quoted(self.title)} {{",
                 "  node [" + " ".join(f"{quoted(k)}={quoted(v)}" for k, v in attrs.items()) + "]"]
        for k, i in enumerate(self._shown):
            lines.append(f"  n{k} [label={quoted(chr(10).join(self._lines(i)))}]")
        for (a, b), text in self._edges().items():
            lines.append(f"  n{a} -> n{b}" + (f" [label={quoted(text)}]" if text else ""))
        return "\n".join(lines + ["}"]) + "\n"

    def save(self, filename=None, directory=None) -> str:
        """Writes `source`, in Graphviz's language; returns the path."""
        path = os.path.join(directory or "", filename or f"{self.title}.gv")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.source)
        return path

    def render(self, filename=None, directory=None, view=False, cleanup=False, format=None) -> str:
        """Writes the picture to `filename` (default: the title) with its format's ending and returns the path. Formats
        other than SVG need the program `dot` of Graphviz; without it SVG is written, with a warning."""
        kind = (format or self.format or "svg").lower()
        base = os.path.join(directory or "", filename or self.title)
        dot = shutil.which("dot")
        if kind != "svg" and dot is None:
            warnings.warn(f"plot_network: {kind} needs Graphviz's program dot, which is not installed; writing SVG",
                          stacklevel=2)
            kind = "svg"
        path = f"{base}.{kind}"
        if kind == "svg":
            with open(path, "w", encoding="utf-8") as file:
                file.write(self._repr_svg_())
        else:
            subprocess.run([dot, f"-T{kind}", "-o", path], input=self.source.encode(), check=True)
        if view:
            webbrowser.open("file://" + os.path.abspath(path))
        return path

    def view(self, filename=None, directory=None, cleanup=False) -> str:
        """Writes the picture, to a temporary folder if none is given, and opens it."""
        return self.render(filename, directory or tempfile.mkdtemp(prefix="twibil-"), view=True)
