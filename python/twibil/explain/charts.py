# SPDX-License-Identifier: Apache-2.0
"""Bars of bytes and times, and the arena over the steps, as SVG."""
from __future__ import annotations

from bisect import bisect_left, bisect_right

from .drawing import clean
from .graphs import kind_of
from .text import bytes_text, shorten, time_text


def _bar(width: float, kind: str, y: float, height: float, x: float = 0.0) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" rx="2"/>'


def memory_chart(e) -> str:
    """Eager against planned against the lower bound. A plan's inputs may be larger: weights laid out for its kernels."""
    results = e.data["output_bytes"]
    given, planned = e.before.input_bytes() + results, e.data["argument_bytes"] + results
    rows = [("eager, every value kept", e.eager_bytes, "plain", given), ("eager, dropped when read", e.eager_peak_bytes, "plain", given),
            ("planned", e.planned_bytes, "good", planned), ("lower bound", e.lower_bound_bytes, "bound", planned)]
    most = max(max(r[1] for r in rows), 1)
    full, left = 430, 180
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" aria-label="bytes" width="760" '
           f'height="{len(rows) * 28 + 4}" viewBox="0 0 760 {len(rows) * 28 + 4}">']
    for k, (name, size, kind, fixed) in enumerate(rows):
        y = 4 + 28 * k
        w, inner = full * size / most, full * min(fixed, size) / most
        out.append(f'<g><title>{clean(name)}: {size} bytes, of them inputs and results {fixed}</title>'
                   f'<text x="{left - 8}" y="{y + 14}" class="end">{clean(name)}</text>'
                   + _bar(w, f"bar {kind}", y, 20, left) + _bar(inner, "bar fixed", y, 20, left)
                   + f'<text x="{left + w + 8:.1f}" y="{y + 14}">{bytes_text(size)}</text></g>')
    return "".join(out) + "</svg>"


def time_bar(step, most: float) -> str:
    """A kernel's time: filled as measured (else as predicted), a tick where the prediction was."""
    full = 180
    tick = ""
    if step.measured is not None:
        x = full * min(step.predicted / most, 1)
        tick = f'<path class="tick" d="M{x:.1f},1v12"/>'
    return (f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" aria-label="time" width="{full + 2}" '
            f'height="14" viewBox="0 0 {full + 2} 14"><title>{time_text(step.seconds)}, predicted '
            f'{time_text(step.predicted)}</title>' + _bar(full * step.seconds / most, f"bar {kind_of(step.info)}", 2, 10)
            + tick + "</svg>")


def rectangles(e):
    """[(first step, step behind the last, offset, bytes, node)] of the arena's buffers."""
    steps = e.data["steps"]
    result = []
    for size, offset, first, last, node, _ in e.data["buffers"]:
        begin = bisect_left(steps, first)
        result.append((begin, max(bisect_right(steps, last), begin + 1), offset, size, node))
    return result


def buffer_chart(e) -> str:
    """Rectangles: which bytes of the arena hold what, from which kernel to which. A line: how many bytes live."""
    buffers, arena = rectangles(e), e.data["arena_bytes"]
    if not buffers or not arena:
        return ""
    steps = max(len(e.steps), 1)
    left, bottom, height = 74, 26, 300
    width = min(max(760, 7 * steps), 1240)
    sx, sy = width / steps, height / arena
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" aria-label="buffers over time" '
           f'width="{left + width + 12:.0f}" height="{height + bottom + 12}" '
           f'viewBox="0 0 {left + width + 12:.1f} {height + bottom + 12}">']
    for part in range(5):
        y = 6 + height - height * part / 4
        out.append(f'<path class="grid" d="M{left},{y:.1f}h{width:.1f}"/><text class="end" x="{left - 6}" '
                   f'y="{y + 4:.1f}">{bytes_text(arena * part / 4)}</text>')
    for begin, end, offset, size, node in buffers:
        x, w = left + begin * sx, (end - begin) * sx
        h = size * sy
        y = 6 + height - offset * sy - h
        label = f"%{node} {e.after.label(node)}"
        out.append(f'<a href="#n{node}"><g class="buffer {kind_of(e.after.nodes[node])}"><title>{clean(label)}: '
                   f'{bytes_text(size)} at {offset}, kernels {begin} to {end - 1}</title><rect x="{x:.1f}" y="{y:.1f}" '
                   f'width="{max(w, 0.7):.1f}" height="{max(h, 0.7):.1f}"/>')
        room = int((w - 6) / 6.2)
        if h >= 13 and room >= 9:
            out.append(f'<text x="{x + 4:.1f}" y="{y + h / 2 + 4:.1f}">{clean(shorten(label, room))}</text>')
        out.append("</g></a>")
    live, points = [0] * (steps + 1), []
    for begin, end, _, size, _ in buffers:
        for k in range(begin, min(end, steps)):
            live[k] += size
    for k in range(steps):
        y = 6 + height - min(live[k] * sy, height)
        points.append(f"{left + k * sx:.1f},{y:.1f} {left + (k + 1) * sx:.1f},{y:.1f}")
    out.append(f'<polyline class="live" points="{" ".join(points)}"/>')
    every = max(1, -(-steps // 12))
    for k in range(0, steps, every):
        out.append(f'<text class="mid" x="{left + (k + 0.5) * sx:.1f}" y="{height + 22}">{k}</text>')
    return "".join(out) + "</svg>"
