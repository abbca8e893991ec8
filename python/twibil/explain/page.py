# SPDX-License-Identifier: Apache-2.0
"""The HTML page of an explanation: one file, no scripts, nothing from the network."""
from __future__ import annotations

from .charts import buffer_chart, memory_chart, time_bar
from .drawing import clean
from .graphs import after_picture, before_picture
from .style import STYLE
from .text import (bytes_text, choice_lines, count_text, group_text, kernel_head, kernel_rows, memory_lines, pass_summaries,
                   passes_rows, signature_lines, time_text)

_LEGEND = (("heavy", "matrix products, convolutions"), ("pointwise", "pointwise formulas"), ("call", "other kernels"),
           ("view", "views: no kernel"), ("function", "functions on arrays"), ("argument", "inputs"),
           ("absent", "removed by a pass"))


def make_page(e) -> str:
    """All parts in a document of their own."""
    return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
            '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
            f"<title>{clean(e.title)} explained</title><style>body{{margin:0}}</style></head><body>"
            + _parts(e, [_head, _tiles, _memory, _passes, _graphs, _times, _buffers, _kernels]) + "</body></html>\n")


def make_parts(e) -> str:
    """The main parts, for notebooks."""
    return _parts(e, [_head, _tiles, _memory, _graphs, _buffers, _times])


def _parts(e, makers) -> str:
    return f'<div class="twibil-explain"><style>{STYLE}</style>' + "\n".join(make(e) for make in makers) + "</div>"


def _head(e) -> str:
    lines = "".join(f"<div>{clean(line)}</div>" for line in signature_lines(e))
    return f'<h1>{clean(e.title)}</h1><div class="signature">{lines}</div>'


def _tiles(e) -> str:
    saved = e.eager_bytes - e.planned_bytes
    percent = 100 * saved / max(e.eager_bytes, 1)
    operators = sum(not e.before.is_input(i) and not n["view"] for i, n in enumerate(e.before.nodes))
    operations = sum(s.operations for s in e.steps)
    tiles = [(str(e.num_kernels), f"kernels, from {operators} operators"),
             (bytes_text(e.planned_bytes), f"planned; lower bound {bytes_text(e.lower_bound_bytes)}"),
             (bytes_text(saved) if saved >= 0 else "-" + bytes_text(-saved),
              f"saved against eager ({percent:.0f} % of {bytes_text(e.eager_bytes)})"),
             (time_text(e.seconds), "a run, measured" if e.is_measured else "a run, predicted"),
             (count_text(operations), "arithmetic operations"),
             (f"{e.compile_seconds * 1e3:.2f} ms", "to compile")]
    return '<div class="tiles">' + "".join(
        f'<div class="tile"><b>{clean(value)}</b><span>{clean(what)}</span></div>' for value, what in tiles) + "</div>"


def _memory(e) -> str:
    lines = "".join(f"<div>{clean(line)}</div>" for line in memory_lines(e))
    return (f'<h2>Bytes</h2><div class="scroll">{memory_chart(e)}</div><details><summary>in figures</summary>'
            f'<div class="signature">{lines}</div></details>'
            '<p class="hint">The left part of each bar is inputs and results; those of a plan include weights that were '
            'laid out for its kernels.</p>')


def _table(rows, head, right=()) -> str:
    side = [' class="right"' if i in right else "" for i in range(len(head))]
    cells = lambda row, tag: "".join(f"<{tag}{s}>{c}</{tag}>" for s, c in zip(side, row))
    return (f'<table><thead><tr>{cells(head, "th")}</tr></thead><tbody>'
            + "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows) + "</tbody></table>")


def _passes(e) -> str:
    rows = [[clean(c) for c in row] for row in passes_rows(e, pass_summaries())]
    return f'<h2>Passes</h2><div class="scroll">{_table(rows, ["pass", "ms", "nodes", "what it does"], (1,))}</div>'


def _graphs(e) -> str:
    legend = "".join(f'<span class="key {kind}">{text}</span>' for kind, text in _LEGEND)
    large = len(e.before.nodes) > 40
    panels = (("before", f"Before the passes: {len(e.before.nodes)} nodes", before_picture(e)),
              ("after", f"After the passes: {len(e.after.nodes)} nodes, {e.num_kernels} kernels", after_picture(e)))
    out = [f'<h2>Graph</h2><div class="legend">{legend}</div>']
    groups = "".join(f'<li class="mark mark{g.number % 8}"><a href="#n{g.node}">%{g.node}</a> = '
                     f"{clean(group_text(e, g))}</li>" for g in e.groups)
    if groups:
        summary = f"{len(e.groups)} kernels do the work of several operators; frames of the same colour belong together"
        opened = "" if len(e.groups) > 8 else ' open="open"'
        out.append(f'<details{opened}><summary>{summary}</summary>'
                   f'<ul class="groups">{groups}</ul></details>')
    out.append('<div class="pair large">' if large else '<div class="pair">')
    for key, title, svg in panels:
        opened = "" if large and key == "before" else ' open="open"'
        out.append(f'<details{opened} class="panel"><summary>{title}</summary><div class="scroll tall">{svg}</div></details>')
    return "".join(out) + "</div>"


def _by_operator(e) -> str:
    sums: dict = {}
    for s in e.steps:
        count, seconds = sums.get(s.info["op"], (0, 0.0))
        sums[s.info["op"]] = (count + 1, seconds + s.seconds)
    total = max(e.seconds, 1e-12)
    rows = [[clean(op), str(count), time_text(seconds), f"{100 * seconds / total:.1f} %"]
            for op, (count, seconds) in sorted(sums.items(), key=lambda x: -x[1][1])]
    return _table(rows, ["operator", "kernels", "time", "share"], (1, 2, 3))


def _times(e) -> str:
    most = max((max(s.seconds, s.predicted if e.is_measured else 0) for s in e.steps), default=1) or 1
    total = max(e.seconds, 1e-12)
    rows = [[str(s.number), f'<a href="#n{s.node}">%{s.node} {clean(s.info["op"])}</a>', time_bar(s, most),
             time_text(s.seconds), f"{100 * s.seconds / total:.1f} %", s.rate] for s in e.steps]
    how = ("measured, the least of several runs; the tick is the prediction" if e.is_measured
           else "predicted from this machine's rates; explain(measure=True) measures")
    return (f'<h2>Time of each kernel</h2><p class="hint">{how}. Together {time_text(e.seconds)}.</p>'
            f'<div class="times"><div class="scroll tall">'
            f'{_table(rows, ["#", "kernel", "time", "", "share", "rate"], (0, 3, 4, 5))}</div>'
            f'<div class="scroll tall">{_by_operator(e)}</div></div>')


def _buffers(e) -> str:
    chart = buffer_chart(e)
    if not chart:
        return ('<h2>Buffers over time</h2><p class="hint">No intermediate value needs memory of its own: all stand in '
                "inputs and results.</p>")
    return (f'<h2>Buffers over time</h2><p class="hint">The arena of {bytes_text(e.data["arena_bytes"])}: across, the '
            "kernels in their order; upwards, the bytes of the arena. The line is how many bytes live; its top is the "
            f'lower bound, {bytes_text(e.data["arena_lower_bound_bytes"])}.</p><div class="scroll">{chart}</div>')


def _kernels(e) -> str:
    head = kernel_head(e)
    right = [i for i, h in enumerate(head) if h in ("#", "operations", "moves", "memory", "predicted", "measured", "rate",
                                                    "time")]
    rows = [[clean(c) for c in row] for row in kernel_rows(e)]
    return (f'<h2>Kernels</h2><p class="hint">memory: the share of the planned bytes that the result takes.</p>'
            f'<div class="scroll tall">{_table(rows, head, right)}</div>{_choices(e)}')


def _choices(e) -> str:
    lines = "".join(f"<li>{clean(line)}</li>" for line in choice_lines(e))
    return f'<details><summary>why these algorithms</summary><ul class="groups">{lines}</ul></details>' if lines else ""
