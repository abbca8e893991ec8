# SPDX-License-Identifier: Apache-2.0
"""Where the boxes of a graph stand: layers from top to bottom (Sugiyama's method, in four steps).

1. Each node's layer is one below its lowest input; what has no input in its part stands right above its first reader.
2. An edge over several layers gets a waypoint in each; one over very many is cut, and shown as a note at both ends.
3. Within layers, nodes are sorted by where their neighbours stand, down and up a few times.
4. Sideways positions: each as near to its neighbours' mean as the order and the widths allow."""
from __future__ import annotations

from dataclasses import dataclass, field

GAP_X, GAP_Y, WAYPOINT = 26, 44, 6
_SWEEPS = 8


@dataclass
class Layout:
    """Middles of boxes, paths of edges [(from, to, [(x, y)])] and the edges that are too long to draw."""

    x: list
    y: list
    paths: list
    cut: list
    width: float
    height: float


@dataclass
class _Item:
    """A box, or a waypoint of an edge."""

    width: float
    layer: int
    up: list = field(default_factory=list)
    down: list = field(default_factory=list)
    far: list = field(default_factory=list)  # over edges that are cut
    x: float = 0.0


def place(sizes, edges, longest=18, later=()) -> Layout:
    """sizes: [(width, height)] of the boxes, in an order in which inputs come first; edges: [(from, to)]. later: boxes
    that stand below all others."""
    layer = _layers(len(sizes), edges, set(later))
    cut = [(a, b) for a, b in edges if layer[b] - layer[a] > longest]
    kept = [(a, b) for a, b in edges if layer[b] - layer[a] <= longest]
    items = [_Item(w, layer[i]) for i, (w, _) in enumerate(sizes)]
    chains = []
    for a, b in kept:
        chain = [a]
        for row in range(layer[a] + 1, layer[b]):
            items.append(_Item(WAYPOINT, row))
            chain.append(len(items) - 1)
        chain.append(b)
        for p, q in zip(chain, chain[1:]):
            items[p].down.append(q)
            items[q].up.append(p)
        chains.append(chain)
    for a, b in cut:
        items[a].far.append(b)
        items[b].far.append(a)
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for i, item in enumerate(items):
        rows[item.layer].append(i)
    _sort(rows, items)
    _spread(rows, items)
    return _result(sizes, rows, items, chains, cut)


def _layers(n: int, edges, later: set) -> list[int]:
    ups: list[list[int]] = [[] for _ in range(n)]
    downs: list[list[int]] = [[] for _ in range(n)]
    for a, b in edges:
        ups[b].append(a)
        downs[a].append(b)
    layer = [0] * n
    for i in range(n):
        if i not in later:
            layer[i] = max((layer[u] + 1 for u in ups[i]), default=0)
    floor = max((layer[i] for i in range(n) if i not in later), default=-1) + 1
    for i in sorted(later):
        layer[i] = max((layer[u] + 1 for u in ups[i] if u in later), default=floor)
    for i in reversed(range(n)):
        if downs[i] and all(i in later and u not in later for u in ups[i]):
            layer[i] = max(floor if i in later else 0, min(layer[d] for d in downs[i]) - 1)
    lowest = min(layer, default=0)
    return [row - lowest for row in layer]


def _sort(rows, items) -> None:
    """Fewer crossings: by the mean position of neighbours in the row before."""
    position = {i: float(k) for row in rows for k, i in enumerate(row)}
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            mean = {}
            for k, i in enumerate(row):
                near = items[i].up if down else items[i].down
                mean[i] = sum(position[j] for j in near) / len(near) if near else float(k)
            row.sort(key=mean.__getitem__)
            for k, i in enumerate(row):
                position[i] = float(k)


def _spread(rows, items) -> None:
    for row in rows:
        at = 0.0
        for i in row:
            items[i].x = at + items[i].width / 2
            at += items[i].width + GAP_X
    for sweep in range(2 * _SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            wish, weight = [], []
            for i in row:
                near = items[i].up if down else items[i].down
                if not near:
                    near = (items[i].down if down else items[i].up) or items[i].far
                wish.append(sum(items[j].x for j in near) / len(near) if near else items[i].x)
                chain = items[i].up and items[i].down
                if chain and items[i].far and sweep < _SWEEPS:  # parts that only cut edges join come to stand together
                    wish[-1] = (3 * wish[-1] + sum(items[j].x for j in items[i].far) / len(items[i].far)) / 4
                weight.append(8.0 if items[i].width == WAYPOINT else 1.0 if chain else 0.02)  # ends make room for chains
            for i, x in zip(row, _apart(wish, weight, [items[i].width for i in row])):
                items[i].x = x


def _apart(wish, weight, width) -> list[float]:
    """Positions nearest to `wish` (least squares) that keep the order and the gaps: neighbours that would overlap form
    a block, which stands at its mean."""
    offset, blocks = [0.0], []  # a block: sum of weighted wishes, weight, members
    for k in range(1, len(wish)):
        offset.append(offset[-1] + (width[k - 1] + width[k]) / 2 + GAP_X)
    for k, w in enumerate(weight):
        blocks.append([w * (wish[k] - offset[k]), w, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last)]
    x = []
    for total, w, members in blocks:
        x += [total / w + offset[len(x) + m] for m in range(members)]
    return x


def _result(sizes, rows, items, chains, cut) -> Layout:
    boxes = len(sizes)
    left = min((item.x - item.width / 2 for item in items), default=0)
    right = max((item.x + item.width / 2 for item in items), default=0)
    middle, top = [], 0.0
    heights = []
    for row in rows:
        height = max((sizes[i][1] for i in row if i < boxes), default=0)
        middle.append(top + height / 2)
        heights.append(height)
        top += height + GAP_Y
    x = [item.x - left for item in items]
    paths = []
    for chain in chains:
        a, b = chain[0], chain[-1]
        points = [(x[a], middle[items[a].layer] + sizes[a][1] / 2)]
        for i in chain[1:-1]:
            half = heights[items[i].layer] / 2
            points += [(x[i], middle[items[i].layer] - half), (x[i], middle[items[i].layer] + half)]
        points.append((x[b], middle[items[b].layer] - sizes[b][1] / 2))
        paths.append((a, b, points))
    return Layout(x[:boxes], [middle[items[i].layer] for i in range(boxes)], paths, cut, right - left,
                  max(0.0, top - GAP_Y))
