# SPDX-License-Identifier: Apache-2.0
"""`Explanation`: what compiling a graph did, with the figures that follow from it."""
from __future__ import annotations

import os
from dataclasses import dataclass, field

from .formula import print_formula


@dataclass
class Step:
    """One kernel of the executable."""

    number: int
    node: int  # in the graph after the passes
    info: dict
    algorithm: str
    operations: float  # 0: not counted
    read: int  # bytes
    written: int
    predicted: float
    measured: float | None = None
    backward: bool = False
    verdicts: tuple = ()  # of the algorithms it could take: (name, why not or "", seconds, whether they were measured)
    roof: float = 0.0  # arithmetic operations per second that the machine reaches

    seconds = property(lambda self: self.predicted if self.measured is None else self.measured)
    moved = property(lambda self: self.read + self.written)

    @property
    def rate(self) -> str:
        """What the kernel reached, or is predicted to: GFLOP/s of arithmetic, else GB/s of memory."""
        if not self.seconds:
            return ""
        if self.info["heavy"] and self.operations:
            share = f", {100 * self.operations / self.seconds / self.roof:.0f} %" if self.roof else ""
            return f"{self.operations / self.seconds / 1e9:.1f} GFLOP/s{share}"
        return f"{self.moved / self.seconds / 1e9:.1f} GB/s"


@dataclass
class Group:
    """A kernel that does the work of several operators."""

    node: int
    number: int
    parts: list = field(default_factory=list)  # nodes of the graph before
    fused: bool = True  # False: equal values that are computed once


class Graph:
    """A typed graph: nodes as dictionaries, with what pictures need to know of each."""

    def __init__(self, data: dict):
        self.nodes, self.outputs, self.arguments = data["nodes"], data["outputs"], data["arguments"]
        self.forward_nodes, self.forward_outputs = data["forward_nodes"], data["forward_outputs"]
        self.output_nodes = {e[0] for e in self.outputs if e is not None}
        self.readers: list[list[int]] = [[] for _ in self.nodes]
        for i, n in enumerate(self.nodes):
            for e in n["inputs"]:
                if e is not None and i not in self.readers[e[0]]:
                    self.readers[e[0]].append(i)

    def bytes_of(self, edge) -> int:
        """0 where only the shape of a value is looked at."""
        n = self.nodes[edge[0]]
        return 0 if n["kind"] == "shape" else n["outputs"][edge[1]][2]

    def is_input(self, i: int) -> bool:
        return self.nodes[i]["kind"] in ("argument", "constant", "shape")

    def base(self, edge):
        """The value whose memory a view or an updated value is."""
        while True:
            n = self.nodes[edge[0]]
            update = n["updates"][edge[1]] if edge[1] < len(n["updates"]) else -1
            if n["view"] and edge[1] == 0 and n["inputs"][0] is not None:
                edge = n["inputs"][0]
            elif update >= 0 and n["inputs"][update] is not None:
                edge = n["inputs"][update]
            else:
                return edge

    def label(self, i: int) -> str:
        """What a node is called in text: the operator, or an input's name."""
        n = self.nodes[i]
        if n["kind"] == "argument":
            return n["name"] or "argument"
        if n["kind"] == "constant":
            return f"{n['value'].item():.6g}" if n["value"] is not None else n["name"] or "constant"
        return n["op"]

    def result(self, k: int) -> str:
        """What output `k` is called: "result 0", "gradient of w"."""
        if k < self.forward_outputs:
            return f"result {k}"
        return f"gradient of {self.label(self.arguments[k - self.forward_outputs])}"

    def formula(self, i: int) -> str:
        """Of a pointwise node, in the names of its inputs."""
        n = self.nodes[i]
        if n["formula"] is None:
            return ""
        names = []
        for e in n["inputs"]:
            plain = e is not None and self.is_input(e[0]) and self.nodes[e[0]]["kind"] != "shape"
            names.append("?" if e is None else self.label(e[0]) if plain else f"%{e[0]}")
        return print_formula(n["formula"], names)

    def input_bytes(self) -> int:
        return sum(self.bytes_of((a, 0)) for a in self.arguments if a >= 0)

    def eager_bytes(self) -> tuple[int, int]:
        """Bytes of the same program run operator by operator: when every value is kept (as by a variable of its own),
        and at the worst moment when each is dropped after its last reader."""
        needed, stack = set(), [e[0] for e in self.outputs if e is not None]
        stack += [i for i, n in enumerate(self.nodes) if n["kind"] == "function" or any(u >= 0 for u in n["updates"])]
        while stack:
            i = stack.pop()
            if i not in needed:
                needed.add(i)
                stack += [e[0] for e in self.nodes[i]["inputs"] if e is not None]
        inputs = self.input_bytes()
        last: dict = {}
        for i, n in enumerate(self.nodes):
            for e in n["inputs"] if i in needed else ():
                if e is not None and self.nodes[e[0]]["kind"] != "shape":
                    last[tuple(self.base(e))] = i
        for e in self.outputs:
            if e is not None:
                last[tuple(self.base(e))] = len(self.nodes)
        kept, live, most, dying = inputs, inputs, inputs, {}
        for i, n in enumerate(self.nodes):
            if i in needed and not self.is_input(i):
                for k in range(len(n["outputs"])):
                    if tuple(self.base((i, k))) == (i, k):
                        size = self.bytes_of((i, k))
                        kept += size
                        live += size
                        dying.setdefault(last.get((i, k), i), []).append(size)
            most = max(most, live)
            live -= sum(dying.pop(i, ()))
        return kept, most


class Explanation:
    """What a compilation did. `str()` is the text; `html()` and `save(path)` make the page; notebooks show its main
    parts. `steps`, `groups`, `before`, `after`, `data` hold the same as data."""

    def __init__(self, data: dict, title: str, machine, measured=None):
        self.data, self.title, self.machine = data, title, machine
        self.before, self.after = Graph(data["before"]), Graph(data["after"])
        self.steps = [self._step(k, node, measured) for k, node in enumerate(data["steps"])]
        self.step_of = {s.node: s for s in self.steps}
        self.groups = self._groups()
        self.eager_bytes, self.eager_peak_bytes = self.before.eager_bytes()

    planned_bytes = property(lambda self: self.data["planned_bytes"])
    lower_bound_bytes = property(lambda self: self.data["lower_bound_bytes"])
    num_kernels = property(lambda self: len(self.steps))
    is_measured = property(lambda self: any(s.measured is not None for s in self.steps))
    seconds = property(lambda self: sum(s.seconds for s in self.steps))
    compile_seconds = property(lambda self: self.data["lower_seconds"] + sum(p[1] for p in self.data["passes"]))

    def _step(self, number: int, node: int, measured) -> Step:
        n = self.after.nodes[node]
        read = sum(self.after.bytes_of(e) for e in {tuple(e) for e in n["inputs"] if e is not None})
        written = sum(o[2] for o in n["outputs"])
        predicted = self.machine.predict(n["operations"], read + written, n["heavy"])
        algorithm, verdicts = self.data["algorithms"][number], tuple(self.data["verdicts"][number])
        for name, _, seconds, _ in verdicts:
            predicted = seconds if name == algorithm else predicted
        if n["formula"] is not None:
            count = len(n["formula"])
            algorithm = "one loop" if count == 1 else f"tiles, {count} instructions"
        elif n["kind"] == "function":
            algorithm = "a function on arrays"
        return Step(number, node, n, algorithm, n["operations"], read, written, predicted,
                    None if measured is None else measured[number], number >= self.data["forward_steps"], verdicts,
                    self.machine.flops if n["heavy"] else 0.0)

    def _groups(self) -> list[Group]:
        """Nodes of the later graph that stand for several operators of the earlier one."""
        groups = []
        for i, n in enumerate(self.after.nodes):
            parts = [p for p in n["parts"] if not self.before.is_input(p)]
            if len(parts) > 1:
                same = all(self.before.nodes[p]["op"] == n["op"] for p in parts)
                groups.append(Group(i, len(groups), sorted(parts), not same))
        return groups

    def removed(self) -> list[int]:
        """Nodes of the earlier graph that the later one does without."""
        kept = {p for n in self.after.nodes for p in n["parts"]}
        return [i for i in range(len(self.before.nodes)) if i not in kept]

    def place(self, i: int, output: int = 0) -> str:
        """Where an output stands: "arena at 128", "result 0", "over B"."""
        places = self.after.nodes[i]["places"]
        if output >= len(places):
            return ""
        kind, index, offset = places[output]
        if kind == "arena":
            return f"arena at {offset}"
        if kind == "output":
            return self.after.result(index)
        if kind == "argument":
            return f"over {self.after.label(self.after.arguments[index])}"
        return "" if kind == "none" else kind

    def __str__(self):
        from .text import print_text
        return print_text(self)

    __repr__ = __str__

    def html(self) -> str:
        """The whole page: one file that needs no other."""
        from .page import make_page
        return make_page(self)

    def _repr_html_(self):
        from .page import make_parts
        return make_parts(self)

    def save(self, path) -> None:
        """Writes the page."""
        temporary = f"{os.fspath(path)}.part"
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(self.html())
        os.replace(temporary, path)
