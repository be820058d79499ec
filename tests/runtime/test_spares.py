"""What is kept of ended nodes for the next: nobody sees it, and what somebody holds is let be."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import antorcha as torch
from antorcha.runtime.call import native
from antorcha.runtime.call.native import freelist
from antorcha.runtime.call.native.slots import word

p = torch.ones(3, requires_grad=True)
b = torch.ones(3)
_ = p + b, p + b


@pytest.fixture(autouse=True)
def natively() -> None:
    if not native.ACTIVE:
        pytest.skip("the native path does not run here: " + native.why_not())
    while (p + b).grad_fn.seq < freelist.SMALLEST:  # (smaller ints are not kept)
        pass


def kept() -> tuple[int, int]:
    """How many tuples of two and ints are kept."""
    pairs = word(freelist.tuples.addr + 2 * freelist.Spares.size).value
    return pairs, word(freelist.ints.addr).value


def use_up() -> list[Any]:
    """More nodes than there can be parts for."""
    return [p + b for _ in range(2 * freelist.MOST)]


def test_parts_are_kept_and_used() -> None:
    made = use_up()
    assert kept() == (0, 0)
    del made
    assert kept() == (freelist.MOST, freelist.MOST)
    y = p + b
    assert kept() == (freelist.MOST - 1, freelist.MOST - 1)
    assert y.grad_fn.next_functions[1] == (None, 0)


def test_what_somebody_holds_is_not_used_again() -> None:
    held = []
    for _ in range(300):
        node = (p + b).grad_fn
        held.append((node.edges, node.seq, node.edges[0], int(str(node.seq))))
    use_up()
    for edges, seq, leaf, number in held:
        assert edges == (leaf, None) or (edges[0] is leaf and edges[1] is None)
        assert leaf is p
        assert seq == number
    assert len({number for *_, number in held}) == 300


def test_no_tuple_of_nothing_is_seen() -> None:
    del_me = use_up()
    del del_me
    for found in gc.get_objects():
        if type(found) is tuple and 0 < len(found) <= freelist.LONGEST:
            assert len([item is None for item in found]) == len(found)  # null would crash
    gc.collect()
    assert torch.equal(p + b, torch.full((3,), 2.0))


def test_edges_let_go_at_once() -> None:
    leaf = torch.ones(3, requires_grad=True)
    seen = weakref.ref(leaf)
    y = leaf + b
    del leaf
    assert seen() is not None
    del y
    assert seen() is None


def test_an_edge_whose_end_makes_nodes() -> None:
    made: list[Any] = []

    def ended(_: Any) -> None:
        made.extend(use_up())

    leaf = torch.ones(3, requires_grad=True)
    watcher = weakref.ref(leaf, ended)
    y = leaf + b
    del leaf, y
    assert watcher() is None
    assert len(made) == 2 * freelist.MOST
    assert all(each.grad_fn.edges[0] is p for each in made)


def test_numbers_grow_whoever_makes_the_node() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    numbers, x = [], p
    for _ in range(200):
        x = Twice.apply(x + b)
        with native.off():
            x = x + b
        numbers.append(x.grad_fn.seq)
        x[0:1].mul_(1.0)
        numbers.append(x.grad_fn.seq)
    assert numbers == sorted(set(numbers))
    x.sum().backward()
    assert p.grad is not None
    p.grad = None


def test_small_ints_stay_what_they_are() -> None:
    for _ in range(50):
        use_up()
    assert list(range(-5, 2000)) == [int(str(k)) for k in range(-5, 2000)]
