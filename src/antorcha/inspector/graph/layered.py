"""Places boxes in layers, so that every edge leads downwards: Sugiyama's method.

Layers by longest path from the bottom; crossings reduced by barycentres, sweeping up and down; x
by quadratic placement: each box wants to stand where its neighbours are, in its order and with its
distance (pool-adjacent-violators solves a layer exactly). An edge over several layers goes through
points that are ordered and placed as boxes are; edges from one exit share them.

K. Sugiyama, S. Tagawa, M. Toda, "Methods for Visual Understanding of Hierarchical System
Structures", 1981. All loops: no depth of graph needs a stack.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

GAP_X, GAP_Y = 18.0, 30.0  # between boxes of a layer, between layers
_SOURCES = 8  # boxes without edges into them in one layer; more go to the layers above
_EFFORT = 120_000  # boxes times sweeps


class Cycle(ValueError):
    """The edges lead in a circle."""


@dataclass
class GraphBox:
    """What is placed. `pinned`: "top" or "bottom" for ports of a frame."""

    width: float
    height: float
    pinned: str = ""
    x: float = 0.0  # of its middle
    y: float = 0.0  # of its upper edge


@dataclass
class Edge:
    """From box `tail` down to box `head`. `exit` names where it leaves: edges with the same one are
    drawn as one line that branches. `leave` and `arrive` are x offsets from the boxes' middles."""

    tail: int
    head: int
    exit: Hashable = None
    leave: float = 0.0
    arrive: float | None = None  # None: beside the others that arrive there


@dataclass
class EdgeLine:
    """A drawn piece of an edge, between two layers: from (x0, y0) straight to `bend0`, over to x1
    at `bend1`, straight to y1. `arrow`: does it end at a box?"""

    x0: float
    y0: float
    bend0: float
    x1: float
    bend1: float
    y1: float
    arrow: bool


@dataclass
class Placed:
    """A layout: the boxes have their places, the lines are ready to be drawn."""

    width: float
    height: float
    lines: list[EdgeLine] = field(default_factory=list)


def place(boxes: list[GraphBox], edges: list[Edge]) -> Placed:
    """Gives every box its place. Raises Cycle where edges lead in a circle."""
    if not boxes:
        return Placed(0.0, 0.0)
    layout = _LayeredBoxes(boxes, edges, layers_of(boxes, edges))
    layout.order()
    layout.set_x()
    height = layout.set_y()
    return Placed(layout.width(), height, layout.lines())


def layers_of(boxes: list[GraphBox], edges: list[Edge]) -> list[int]:
    """The layer of each box: as low as what it leads to allows."""
    below: list[set[int]] = [set() for _ in boxes]
    above: list[set[int]] = [set() for _ in boxes]
    for edge in edges:
        below[edge.tail].add(edge.head)
        above[edge.head].add(edge.tail)
    missing = [len(heads) for heads in below]
    ready = [k for k, count in enumerate(missing) if not count]
    layer = [0] * len(boxes)
    done = 0
    while ready:
        k = ready.pop()
        done += 1
        for tail in above[k]:
            layer[tail] = min(layer[tail], layer[k] - 1)
            missing[tail] -= 1
            if not missing[tail]:
                ready.append(tail)
    if done < len(boxes):
        raise Cycle("edges lead in a circle")
    inside = [layer[k] for k, box in enumerate(boxes) if not box.pinned] or [0]
    if any(box.pinned == "bottom" for box in boxes):
        lowest = max(inside) + 1
        layer = [lowest if box.pinned == "bottom" else layer[k] for k, box in enumerate(boxes)]
    _spread_sources(boxes, above, layer)
    highest = min([layer[k] for k, box in enumerate(boxes) if not box.pinned], default=0)
    for k, box in enumerate(boxes):
        if box.pinned == "top":
            layer[k] = highest - 1
    start = min(layer, default=0)
    return [each - start for each in layer]


def _spread_sources(boxes: list[GraphBox], above: list[set[int]], layer: list[int]) -> None:
    """Puts the many leaves of one operation into several layers."""
    sources = defaultdict(list)
    for k, box in enumerate(boxes):
        if not above[k] and not box.pinned:
            sources[layer[k]].append(k)
    for level, found in sources.items():
        for n, k in enumerate(found):
            layer[k] = level - n // _SOURCES


class _Piece(NamedTuple):
    """Of an edge, what lies between two layers."""

    upper: int
    lower: int
    edge: Edge


class _LayeredBoxes:
    """Boxes and the points of long edges (numbered after the boxes), in their layers."""

    def __init__(self, boxes: list[GraphBox], edges: list[Edge], layer: list[int]) -> None:
        self.boxes, self.edges = boxes, edges
        self.layer = list(layer)
        self.layers: list[list[int]] = [[] for _ in range(max(layer) + 1)]
        self.pieces: list[_Piece] = []
        self.upper: dict[int, list[_Piece]] = defaultdict(list)  # the pieces that come from above
        self.lower: dict[int, list[_Piece]] = defaultdict(list)
        self.widths = [box.width for box in boxes]
        trunks: dict[tuple[int, Hashable, int], int] = {}
        for edge in edges:
            at = edge.tail
            for level in range(layer[edge.tail] + 1, layer[edge.head]):
                key = (edge.tail, edge.exit, level)
                point = trunks.get(key)
                if point is None:
                    point = trunks[key] = len(self.layer)
                    self.layer.append(level)
                    self.widths.append(4.0)
                    self._join(at, point, edge)  # (the next edge of this exit finds it there)
                at = point
            self._join(at, edge.head, edge)
        self.x = [0.0] * len(self.layer)

    def _join(self, upper: int, lower: int, edge: Edge) -> None:
        piece = _Piece(upper, lower, edge)
        self.pieces.append(piece)
        self.lower[upper].append(piece)
        self.upper[lower].append(piece)

    # ------------------------------------------------------------------------------- crossings
    def order(self) -> None:
        """Orders each layer so that few edges cross."""
        for k in self._depth_first():
            self.layers[self.layer[k]].append(k)
        best, fewest = [list(row) for row in self.layers], self.crossings()
        sweeps = max(2, min(16, _EFFORT // len(self.layer)))
        for sweep in range(sweeps):
            if not fewest:
                break
            self._sweep(down=sweep % 2 == 0)
            count = self.crossings()
            if count < fewest:
                best, fewest = [list(row) for row in self.layers], count
        self.layers = best

    def _depth_first(self) -> list[int]:
        """All of them, upwards from the bottom: what leads to one thing begins side by side."""
        seen: set[int] = set()
        found: list[int] = []
        ends = [k for k in range(len(self.layer)) if not self.lower[k]]
        waiting = list(reversed(ends))
        while waiting:
            k = waiting.pop()
            if k in seen:
                continue
            seen.add(k)
            found.append(k)
            waiting.extend([p.upper for p in reversed(self.upper[k]) if p.upper not in seen])
        return found

    def _sweep(self, down: bool) -> None:
        place = self._places()
        pieces = self.upper if down else self.lower
        rows = self.layers if down else list(reversed(self.layers))
        for row in rows:
            wish = {}
            for k in row:
                around = [place[p.upper if down else p.lower] for p in pieces[k]]
                wish[k] = sum(around) / len(around) if around else place[k]
            row.sort(key=wish.__getitem__)
            for n, k in enumerate(row):
                place[k] = float(n)

    def _places(self) -> dict[int, float]:
        return {k: float(n) for row in self.layers for n, k in enumerate(row)}

    def crossings(self) -> int:
        """How many pairs of edges cross."""
        place = self._places()
        total = 0
        for row in self.layers[:-1]:
            ends: list[float] = []
            for k in row:
                heads = sorted([place[piece.lower] for piece in self.lower[k]])
                total += sum([len(ends) - bisect_right(ends, head) for head in heads])
                for head in heads:
                    insort(ends, head)
        return total

    # -------------------------------------------------------------------------------------- x
    def set_x(self) -> None:
        """Moves each box to where its neighbours are, as far as its place in the row allows."""
        for row in self.layers:
            at = 0.0
            for k in row:
                self.x[k] = at + self.widths[k] / 2
                at += self.widths[k] + GAP_X
        rounds = max(4, min(24, _EFFORT // len(self.layer)))
        for turn in range(rounds):
            down = turn % 2 == 0
            both = turn >= rounds - 4
            for row in self.layers if down else reversed(self.layers):
                self._settle(row, down or both, not down or both)
        left = min([self.x[k] - self.widths[k] / 2 for k in range(len(self.x))])
        self.x = [x - left for x in self.x]

    def _settle(self, row: list[int], up: bool, down: bool) -> None:
        """One layer: the least squares of distances to the wished places, in order."""
        blocks: list[list[float]] = []  # [weight, weighted sum of wishes, how many]
        offsets, offset = [], 0.0
        for n, k in enumerate(row):
            if n:
                offset += (self.widths[row[n - 1]] + self.widths[k]) / 2 + GAP_X
            offsets.append(offset)
            weight, wish = self._wish(k, up, down)
            blocks.append([weight, weight * (wish - offset), 1])
            while len(blocks) > 1 and blocks[-2][1] * blocks[-1][0] > blocks[-1][1] * blocks[-2][0]:
                last = blocks.pop()
                blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
        n = 0
        for weight, total, count in blocks:
            for _ in range(int(count)):
                self.x[row[n]] = total / weight + offsets[n]
                n += 1

    def _wish(self, k: int, up: bool, down: bool) -> tuple[float, float]:
        """Where a box wants to be, and how much."""
        weight = total = 0.0
        is_point = k >= len(self.boxes)
        for piece in (self.upper[k] if up else []) + (self.lower[k] if down else []):
            other = piece.lower if piece.upper == k else piece.upper
            pull = (3.0 if is_point else 1.0) * (3.0 if other >= len(self.boxes) else 1.0)
            shift = self._shift(piece.edge, other) - self._shift(piece.edge, k)
            weight += pull
            total += pull * (self.x[other] + shift)
        if not weight:
            return 0.01, self.x[k]
        return weight, total / weight

    def _shift(self, edge: Edge, k: int) -> float:
        """Where on a box an edge ends, from its middle."""
        if k >= len(self.boxes):
            return 0.0
        return edge.leave if k == edge.tail else edge.arrive or 0.0

    def width(self) -> float:
        return max([self.x[k] + self.widths[k] / 2 for k in range(len(self.x))])

    # -------------------------------------------------------------------------------------- y
    def set_y(self) -> float:
        """Stacks the layers; gives the height."""
        self.tops: list[float] = []
        self.heights: list[float] = []
        at = 0.0
        for row in self.layers:
            tall = max([self.boxes[k].height for k in row if k < len(self.boxes)], default=0.0)
            self.tops.append(at)
            self.heights.append(tall)
            for k in row:
                if k < len(self.boxes):
                    box = self.boxes[k]
                    box.x = self.x[k]
                    sinks = not self.upper[k] and not box.pinned  # leaves stand near their use
                    box.y = at + (tall - box.height) * (1.0 if sinks else 0.5)
            at += tall + GAP_Y
        return at - GAP_Y

    def lines(self) -> list[EdgeLine]:
        """The pieces of all edges."""
        arrivals = self._arrivals()
        result = []
        for number, (upper, lower, edge) in enumerate(self.pieces):
            level = self.layer[upper]
            bottom, top = self.tops[level] + self.heights[level], self.tops[level + 1]
            if upper < len(self.boxes):
                box = self.boxes[upper]
                x0, y0 = box.x + edge.leave, box.y + box.height
            else:
                x0, y0 = self.x[upper], self.tops[level]
            if lower < len(self.boxes):
                x1, y1 = self.boxes[lower].x + arrivals[number], self.boxes[lower].y
                result.append(EdgeLine(x0, y0, bottom, x1, top, y1, not self.boxes[lower].pinned))
            else:
                result.append(EdgeLine(x0, y0, bottom, self.x[lower], top, top, False))
        return result

    def _arrivals(self) -> dict[int, float]:
        """Where pieces arrive on their box: those without a place side by side, in order."""
        found = {}
        free: dict[int, list[int]] = defaultdict(list)
        for number, piece in enumerate(self.pieces):
            if piece.lower < len(self.boxes):
                if piece.edge.arrive is None:
                    free[piece.lower].append(number)
                else:
                    found[number] = piece.edge.arrive
        for k, numbers in free.items():
            numbers.sort(key=lambda number: self.x[self.pieces[number].upper])
            step = min(22.0, 0.7 * self.boxes[k].width / len(numbers))
            for n, number in enumerate(numbers):
                found[number] = (n - (len(numbers) - 1) / 2) * step
        return found
