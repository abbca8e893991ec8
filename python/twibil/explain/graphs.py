# SPDX-License-Identifier: Apache-2.0
"""Pictures of the graph before and after the passes."""
from __future__ import annotations

from .drawing import Box, draw
from .text import bytes_text, group_text, shorten, time_text, value_text

LARGE = 60  # nodes: in larger graphs inputs with few readers, and results, stand inside other boxes


def kind_of(n: dict) -> str:
    """The class that colours a node."""
    if n["kind"] != "call":
        return n["kind"]
    if n["view"]:
        return "view"
    return "heavy" if n["heavy"] else "pointwise" if n["pointwise"] else "call"


def _short(output) -> str:
    shape = "×".join(map(str, output[0])) or "one"
    return f"{output[1]} {shape}"


def _title(graph, i: int, extra=()) -> str:
    n = graph.nodes[i]
    lines = [f"%{i} {graph.label(i)}" + (f" “{n['name']}”" if n["name"] and n["kind"] != "argument" else "")]
    lines += [n["attrs"]] if n["attrs"] else []
    lines += [value_text(o) + f", {bytes_text(o[2])}" for o in n["outputs"][:4]]
    lines += [f"from {n['site']}"] if n["site"] else []
    return "\n".join(lines + [x for x in extra if x])


def _inside(graph, i: int) -> bool:
    """Whether input i is drawn inside its readers: parameters of a large graph."""
    few = len(graph.readers[i]) <= 3 or graph.nodes[i]["value"] is not None
    return len(graph.nodes) > LARGE and graph.is_input(i) and few and i not in graph.output_nodes


def picture(graph, prefix: str, marks: dict, lines_of, title_of, absent=(), label="graph") -> str:
    """marks: {node: number of its group}; lines_of(i): lines below the first; title_of(i): lines for the pointer.
    Nodes that nobody needs stay away when they are inputs; `absent` ones are drawn as removed."""
    drawn = [i for i in range(len(graph.nodes)) if not _inside(graph, i)
             and not (graph.nodes[i]["kind"] in ("shape", "constant") and not graph.readers[i] and i not in graph.output_nodes)]
    number = {node: k for k, node in enumerate(drawn)}
    boxes = []
    read = {tuple(e) for inputs in [n["inputs"] for n in graph.nodes] + [graph.outputs] for e in inputs if e is not None}
    for i in drawn:
        n = graph.nodes[i]
        lines = [f"%{i} {shorten(graph.label(i), 34)}"]
        if n["kind"] != "constant" or n["value"] is None:
            lines += [_short(o) for k, o in enumerate(n["outputs"]) if k == 0 or (i, k) in read]
        for e in n["inputs"]:
            if e is not None and _inside(graph, e[0]) and graph.nodes[e[0]]["kind"] != "shape":
                size = "×".join(map(str, graph.nodes[e[0]]["outputs"][0][0]))
                lines.append(f"{shorten(graph.label(e[0]), 30)} {size}".rstrip())
        lines += lines_of(i)
        if len(graph.nodes) > LARGE:
            lines += [f"→ {graph.result(k)}" for k, e in enumerate(graph.outputs) if e is not None and e[0] == i]
        kind = kind_of(n) + (" absent" if i in absent else "")
        boxes.append(Box(lines, kind, _title(graph, i, title_of(i)), f"{prefix}{i}", marks.get(i),
                         i >= graph.forward_nodes and not graph.is_input(i)))
    edges: dict = {}
    for i in drawn:
        for e in graph.nodes[i]["inputs"]:
            if e is not None and e[0] in number:
                edges.setdefault((number[e[0]], number[i]), _short(graph.nodes[e[0]]["outputs"][e[1]]))
    for k, e in enumerate(graph.outputs):
        if e is None or len(graph.nodes) > LARGE:
            continue
        name = graph.result(k)
        boxes.append(Box([name], "result", name, f"{prefix}r{k}", later=boxes[number[e[0]]].later))
        edges[(number[e[0]], len(boxes) - 1)] = _short(graph.nodes[e[0]]["outputs"][e[1]])
    return draw(boxes, edges, label)


def before_picture(e) -> str:
    """The graph as it was lowered. Operators that become one kernel have a frame of the same colour."""
    marks, kernel = {}, {}
    for g in e.groups:
        for p in g.parts:
            marks[p] = g.number
    for i, n in enumerate(e.after.nodes):
        for p in n["parts"]:
            kernel.setdefault(p, i)
    removed = set(e.removed())

    def title_of(i):
        return ["removed by the passes" if i in removed else f"becomes %{kernel[i]} of the graph after"]

    return picture(e.before, "b", marks, lambda i: [], title_of, removed, "the graph before the passes")


def after_picture(e) -> str:
    """The graph that runs, with the time of each kernel and where its result stands."""
    group_of = {g.node: g for g in e.groups}

    def lines_of(i):
        lines = []
        if i in group_of and group_of[i].fused:
            ops = [e.before.nodes[p]["op"] for p in group_of[i].parts]
            lines.append(shorten("= " + " + ".join(ops), 44))
        step = e.step_of.get(i)
        if step:
            lines.append(f"{time_text(step.seconds)} · {e.place(i)}" if e.place(i) else time_text(step.seconds))
        return lines

    def title_of(i):
        step, lines = e.step_of.get(i), []
        if i in group_of:
            lines.append(group_text(e, group_of[i]))
        elif e.after.formula(i):
            lines.append(e.after.formula(i))
        if step:
            lines += [f"kernel {step.number}: {step.algorithm}".rstrip(": "),
                      f"{time_text(step.seconds)}, {step.rate}, moves {bytes_text(step.moved)}"]
        return lines + ([f"place: {e.place(i)}"] if e.place(i) else [])

    return picture(e.after, "n", {g.node: g.number for g in e.groups}, lines_of, title_of, (),
                   "the graph after the passes")
