"""The drawing of the memory: the cells of any view of views, and where strides lead."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import antorcha as torch

SVG = "{http://www.w3.org/2000/svg}"
VIEWS = ("transpose", "slice", "select", "expand", "unfold", "diagonal", "unsqueeze", "strided")


def drawing(t: Any) -> ET.Element:
    root = ET.fromstring(torch.inspect(t, name="t").html())
    (memory,) = [s for s in root.iter() if s.get("class") == "ant-memory"]
    return memory


def texts(memory: ET.Element, kind: str) -> list[ET.Element]:
    return [e for e in memory.iter(f"{SVG}text") if kind in (e.get("class") or "").split()]


@st.composite
def views(draw: Any) -> Any:
    """A view of a view of ... one small storage."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    t = torch.arange(float(np.prod(sizes))).view(*sizes)
    for _ in range(draw(st.integers(1, 4))):
        t = viewed(t, draw(st.sampled_from(VIEWS)), draw)
    return t


def viewed(t: Any, how: str, draw: Any) -> Any:
    if how == "unsqueeze" or not t.ndim:
        return t.unsqueeze(0) if t.ndim < 4 else t
    dim = draw(st.integers(0, t.ndim - 1))
    size = t.shape[dim]
    if how == "transpose":
        return t.transpose(dim, draw(st.integers(0, t.ndim - 1)))
    if how == "slice":
        keep = slice(draw(st.integers(0, size)), None, draw(st.integers(1, 3)))
        return t[(slice(None),) * dim + (keep,)]
    if how == "select":
        return t.select(dim, draw(st.integers(0, size - 1))) if size else t
    if how == "expand":
        return t.unsqueeze(0).expand(draw(st.integers(1, 3)), *t.shape) if t.ndim < 4 else t
    if how == "unfold":
        return t.unfold(dim, draw(st.integers(1, size)), 1) if size and t.ndim < 4 else t
    if how == "diagonal":
        return t.diagonal(0, 0, 1) if t.ndim > 1 else t
    cells = t.untyped_storage().nbytes() // 4  # as_strided: rows that may lie on each other
    first, step = draw(st.integers(0, cells - 1)), draw(st.integers(0, 3))
    rows = 1 + (cells - 1 - first) // step if step else 3
    return t.as_strided((min(rows, 3), 1), (step, 5), first)


@settings(max_examples=60, deadline=None)
@given(views())
def test_the_cells_drawn_are_those_addressed(t: Any) -> None:
    readers: dict[int, int] = {}
    orders: dict[int, int] = {}
    for order, index in enumerate(np.ndindex(*t.shape)):
        cell = t.storage_offset() + sum(i * s for i, s in zip(index, t.stride(), strict=True))
        readers[cell] = readers.get(cell, 0) + 1
        orders.setdefault(cell, order)
        assert t[index].item() == cell  # (the storage counts its cells)

    shown = torch.inspect(t, name="t").facts.memory.shown()
    assert {c.position: c.order for c in shown if c.order is not None} == orders
    assert {c.position: c.readers for c in shown if c.readers} == readers

    titles = [title.text or "" for title in drawing(t).iter(f"{SVG}title")]
    read = {int(re.findall(r"\d+", text)[0]) for text in titles if "element [" in text}
    assert read == set(readers)


STRIDES = [
    ((4, 1), (1, 1), ["dim 0: +1"]),  # a dim of one index leads nowhere
    ((2, 2), (1, 1), ["dims 0, 1: +1"]),
    ((2, 2, 2), (10, 10, 11), ["dims 0, 1: +10", "dim 2: +11"]),
    ((3, 4), (1, 0), ["dim 1: +0", "dim 0: +1"]),
    ((2, 2, 2, 2), (9, 10, 11, 20), ["dim 0: +9", "dim 1: +10", "dim 2: +11", "dim 3: +20"]),
    ((2, 3), (0, 0), ["dims 0, 1: +0"]),
    ((1, 1), (1, 1), []),
]


@pytest.mark.parametrize(("shape", "strides", "labels"), STRIDES)
def test_every_stride_that_leads_somewhere_has_its_arrow(
    shape: tuple[int, ...], strides: tuple[int, ...], labels: list[str]
) -> None:
    memory = drawing(torch.arange(60.0).as_strided(shape, strides, 0))
    said = texts(memory, "dim")
    assert [e.text for e in said] == labels
    tips = [e for e in memory.iter(f"{SVG}path") if e.get("class") == "tip"]
    assert len(tips) == len(labels)


@pytest.mark.parametrize(("shape", "strides"), [s[:2] for s in STRIDES])
@pytest.mark.parametrize("first", [0, 8, 18])
def test_no_label_of_a_stride_lies_on_another(
    shape: tuple[int, ...], strides: tuple[int, ...], first: int
) -> None:
    boxes = []
    for label in texts(drawing(torch.arange(80.0).as_strided(shape, strides, first)), "dim"):
        x, y, wide = (
            float(label.get("x", "")),
            float(label.get("y", "")),
            5.8 * len(label.text or ""),
        )
        style = label.get("style", "")
        left = x if "start" in style else x - wide if "end" in style else x - wide / 2
        assert left >= -0.1
        assert left + wide <= 320.1
        boxes.append((left, y, left + wide))
    for k, (left, y, right) in enumerate(boxes):
        for left2, y2, right2 in boxes[:k]:
            assert abs(y - y2) >= 10 or right <= left2 or right2 <= left
