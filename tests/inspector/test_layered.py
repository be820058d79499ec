"""The layout: every edge leads down, boxes do not overlap, few edges cross."""

from __future__ import annotations

import random

import pytest

from antorcha.inspector.graph.layered import Cycle, Edge, GraphBox, _LayeredBoxes, layers_of, place


def boxes_of(count: int, seed: int = 0) -> list[GraphBox]:
    dice = random.Random(seed)
    return [GraphBox(dice.uniform(20, 120), dice.uniform(10, 60)) for _ in range(count)]


def edges_of(count: int, seed: int = 0) -> list[Edge]:
    dice = random.Random(seed)
    pairs = {(dice.randrange(k), k) for k in range(1, count) for _ in range(2)}
    return [Edge(a, b) for a, b in sorted(pairs)]


@pytest.mark.parametrize("count", [1, 2, 10, 60])
def test_boxes_are_apart_and_edges_lead_down(count: int) -> None:
    boxes, edges = boxes_of(count), edges_of(count)
    placed = place(boxes, edges)
    for k, a in enumerate(boxes):
        assert a.x - a.width / 2 >= -1e-6
        assert a.x + a.width / 2 <= placed.width + 1e-6
        assert 0 <= a.y <= a.y + a.height <= placed.height + 1e-6
        for b in boxes[:k]:
            beside = abs(a.x - b.x) >= (a.width + b.width) / 2
            assert beside or a.y >= b.y + b.height or b.y >= a.y + a.height
    for edge in edges:
        assert boxes[edge.tail].y + boxes[edge.tail].height < boxes[edge.head].y


def test_every_edge_is_drawn_to_its_box() -> None:
    boxes, edges = boxes_of(30), edges_of(30)
    lines = place(boxes, edges).lines
    arrivals = sorted((line.x1, line.y1) for line in lines if line.arrow)
    assert len(arrivals) == len(set(arrivals)) == len(edges)
    tops = {box.y for box in boxes}
    assert all(y in tops for _, y in arrivals)


def test_a_planar_graph_has_no_crossing() -> None:
    tree = [Edge((k - 1) // 2, k) for k in range(1, 63)]
    random.Random(1).shuffle(tree)
    boxes = boxes_of(63)
    layout = _LayeredBoxes(boxes, tree, layers_of(boxes, tree))
    layout.order()
    assert layout.crossings() == 0


def test_crossings_are_counted() -> None:
    boxes = boxes_of(4)
    edges = [Edge(0, 3), Edge(1, 2)]
    layout = _LayeredBoxes(boxes, edges, [0, 0, 1, 1])
    layout.layers = [[0, 1], [2, 3]]
    assert layout.crossings() == 1
    layout.layers = [[0, 1], [3, 2]]
    assert layout.crossings() == 0


def test_sweeping_takes_crossings_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def crossings() -> int:
        total = 0
        for seed in range(5):
            boxes, edges = boxes_of(25), edges_of(25, seed)
            layout = _LayeredBoxes(boxes, edges, layers_of(boxes, edges))
            layout.order()
            total += layout.crossings()
        return total

    swept = crossings()
    monkeypatch.setattr(_LayeredBoxes, "_sweep", lambda self, down: None)
    assert swept < 0.8 * crossings()


def test_an_exit_beside_the_middle() -> None:
    boxes = [GraphBox(200, 20), GraphBox(20, 20), GraphBox(200, 20)]
    place(boxes, [Edge(0, 1, leave=60), Edge(1, 2, arrive=-50)])
    assert boxes[1].x == pytest.approx(boxes[0].x + 60)
    assert boxes[1].x == pytest.approx(boxes[2].x - 50)


def test_a_chain_is_straight() -> None:
    boxes = boxes_of(8)
    place(boxes, [Edge(k, k + 1) for k in range(7)])
    assert max(box.x for box in boxes) - min(box.x for box in boxes) < 1e-6


def test_boxes_stand_as_low_as_they_can() -> None:
    boxes = boxes_of(4)
    edges = [Edge(0, 1), Edge(1, 2), Edge(3, 2)]
    assert layers_of(boxes, edges) == [0, 1, 2, 1]


def test_ports_are_at_the_borders() -> None:
    boxes = [
        GraphBox(1, 0, "top"),
        GraphBox(30, 20),
        GraphBox(30, 20),
        GraphBox(1, 0, "bottom"),
        GraphBox(1, 0, "top"),
    ]
    edges = [Edge(0, 1), Edge(1, 2), Edge(1, 3), Edge(4, 2)]
    layer = layers_of(boxes, edges)
    assert layer[0] == layer[4] == 0
    assert layer[3] == max(layer)


def test_many_leaves_of_one_box_are_in_several_layers() -> None:
    boxes = boxes_of(31)
    layer = layers_of(boxes, [Edge(k, 30) for k in range(30)])
    assert max(layer.count(each) for each in layer) == 8


def test_a_long_chain_needs_no_stack() -> None:
    boxes = boxes_of(5000)
    place(boxes, [Edge(k, k + 1) for k in range(4999)])
    assert boxes[0].y < boxes[-1].y


def test_a_circle_is_refused() -> None:
    with pytest.raises(Cycle):
        place(boxes_of(3), [Edge(0, 1), Edge(1, 2), Edge(2, 0)])


def test_nothing_to_place() -> None:
    assert place([], []).lines == []
