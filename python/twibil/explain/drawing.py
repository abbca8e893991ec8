# SPDX-License-Identifier: Apache-2.0
"""A graph as SVG. Colours are classes, which the page's style gives for light and dark."""
from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from .layout import place

CHARACTER, LINE, PAD = 6.7, 15, 9  # of the 11 px monospaced face


@dataclass
class Box:
    """A node of a picture. kind: a class of the style. mark: a number that gives the frame its colour."""

    lines: list
    kind: str = "call"
    title: str = ""
    key: str = ""  # of the element, to link to
    mark: int | None = None
    later: bool = False  # belongs below all that is not
    notes: list = field(default_factory=list)  # (text, key of the box it leads to), from edges that are cut

    def size(self):
        """Width and height in pixels."""
        texts = [str(t) for t in self.lines] + [t for t, _ in self.notes]
        return max(map(len, texts), default=1) * CHARACTER + 2 * PAD, len(texts) * LINE + 10


def clean(text) -> str:
    """Text for SVG and HTML: escaped, without control characters, which XML forbids."""
    return escape("".join(c if c.isprintable() else "�" for c in str(text)))


def _path(points) -> str:
    d = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if abs(x0 - x1) < 0.5:
            d += f"L{x1:.1f},{y1:.1f}"
        else:
            bend = (y1 - y0) / 2
            d += f"C{x0:.1f},{y0 + bend:.1f} {x1:.1f},{y1 - bend:.1f} {x1:.1f},{y1:.1f}"
    return d


def draw(boxes, edges, label="graph") -> str:
    """boxes: [Box] in an order in which inputs come first; edges: {(from, to): text for the pointer}. Edges over many
    layers become notes in the boxes at both ends."""
    longest = 12 if len(boxes) > 30 else 1000
    later = [i for i, b in enumerate(boxes) if b.later]
    layout = place([b.size() for b in boxes], list(edges), longest, later)
    cut = set(layout.cut)
    if cut:
        for a, b in layout.cut:
            boxes[a].notes.append((f"↓ to {boxes[b].lines[0]}", boxes[b].key))
            boxes[b].notes.append((f"↑ from {boxes[a].lines[0]}", boxes[a].key))
        for box in boxes:
            if len(box.notes) > 6:
                box.notes[5:] = [(f"and {len(box.notes) - 5} more", box.notes[5][1])]
        layout = place([b.size() for b in boxes], [e for e in edges if e not in cut], longest, later)
    width, height = layout.width + 16, layout.height + 16
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" class="graph" role="img" aria-label="{clean(label)}" '
           f'width="{width:.0f}" height="{height:.0f}" viewBox="-8 -8 {width:.1f} {height:.1f}">']
    for a, b, points in layout.paths:
        (x1, y1), (x0, y0) = points[-1], points[-2]
        out.append(f'<g class="edge"><title>{clean(edges.get((a, b), ""))}</title><path d="{_path(points)}"/>'
                   f'<path class="tip" d="M{x1:.1f},{y1:.1f}l-3.5,-6.5h7z"/></g>')
    for i, box in enumerate(boxes):
        out.append(_draw_box(box, layout.x[i], layout.y[i]))
    return "\n".join(out + ["</svg>"])


def _draw_box(box: Box, x: float, y: float) -> str:
    w, h = box.size()
    left, top = x - w / 2, y - h / 2
    classes = f"node {box.kind}" + (f" mark mark{box.mark % 8}" if box.mark is not None else "")
    key = f' id="{clean(box.key)}"' if box.key else ""
    radius = h / 2 if box.kind in ("argument", "constant", "shape") and len(box.lines) < 3 else 5
    out = [f'<g class="{classes}"{key}><title>{clean(box.title)}</title>'
           f'<rect x="{left:.1f}" y="{top:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{min(radius, 14):.1f}"/>']
    at = top + 5 + LINE * 0.75
    for k, line in enumerate(box.lines):
        out.append(f'<text class="{"first" if k == 0 else "more"}" x="{x:.1f}" y="{at:.1f}">{clean(line)}</text>')
        at += LINE
    for text, key in box.notes:
        out.append(f'<a href="#{clean(key)}"><text class="note" x="{x:.1f}" y="{at:.1f}">{clean(text)}</text></a>')
        at += LINE
    return "".join(out) + "</g>"
