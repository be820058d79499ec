"""Results do not depend on how memory is used: asked for ahead or not, past the caches or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest

import antorcha as torch
from antorcha.devices.cpu import memory, pointwise
from antorcha.runtime.call import plan

SIZES = [1, 15, 16, 17, 63, 64, 65, 127, 128, 1000, 8192, 600_001]  # the last: lines are asked for
WAYS = list(product((False, True), (0, 1 << 60)))
Of = Callable[[torch.Tensor], torch.Tensor]


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """No kernel made here is kept, and none made before is used."""
    yield
    plan.flush()


def each_way(monkeypatch: pytest.MonkeyPatch, made: Callable[[], torch.Tensor]) -> None:
    """The same result however memory is used; and it was used in that way."""
    found = []
    for asks, streams_from in WAYS:
        monkeypatch.setattr(pointwise, "asks_ahead", lambda asks=asks: asks)
        monkeypatch.setattr(pointwise, "streams_from", lambda least=streams_from: least)
        monkeypatch.setattr(pointwise, "_kernels", kernels := {})
        plan.flush()
        found.append(made().numpy().copy())
        assert kernels
        assert {stream for *_, stream in kernels} == {streams_from == 0}
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


FUNCTIONS: dict[str, Of] = {
    "neg": torch.neg,
    "exp": torch.exp,
    "sigmoid": torch.sigmoid,
    "erf": torch.erf,
    "float64": lambda x: x.to(torch.float64),
    "float16": lambda x: x.to(torch.float16),
    "plus itself": lambda x: x + x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("n", SIZES)
def test_results_of_any_size(name: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.linspace(-3, 3, n + 1)
    each_way(monkeypatch, lambda: FUNCTIONS[name](x[1:]))


@pytest.mark.parametrize("columns", [7, 64, 100, 128])
def test_rows_that_begin_anywhere(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a result that is dense begin at a multiple of 64 bytes, or not."""
    x = torch.arange(33.0 * 200).reshape(33, 200)
    row, column = torch.arange(float(columns)), torch.arange(33.0).reshape(33, 1)
    each_way(monkeypatch, lambda: x[:, 3 : 3 + columns] + row)
    each_way(monkeypatch, lambda: x[:, :columns] * column)
    each_way(monkeypatch, lambda: x[:, :33] + x[:, 40:73].T)


@pytest.mark.parametrize("n", SIZES)
def test_results_that_take_the_place_of_an_operand(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    each_way(monkeypatch, lambda: torch.arange(float(n)).neg_())
    each_way(monkeypatch, lambda: torch.arange(float(n)).add_(torch.ones(n)))


def test_results_that_are_written_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Into a tensor that begins at any element, and what is beside it stays."""
    x = torch.linspace(-3, 3, 1000)

    def written() -> torch.Tensor:
        out = torch.full((1100,), 7.0)
        torch.sigmoid(x, out=out[33:1033])
        return out

    each_way(monkeypatch, written)
    assert written()[:33].eq(7).all()
    assert written()[1033:].eq(7).all()


def test_what_this_machine_says() -> None:
    cache = memory.last_cache()
    assert cache == 0 or cache >= 1 << 20
    assert memory.streams_from() > cache


@pytest.mark.parametrize(
    ("name", "cache", "asks", "least"),
    [
        ("znver4", 32 << 20, False, 40 << 20),
        ("znver4", 0, False, 40 << 20),
        ("sapphirerapids", 105 << 20, True, 840 << 20),
        ("skylake-avx512", 0, True, 256 << 20),
    ],
)
def test_rules(
    name: str, cache: int, asks: bool, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Llvm:
        def get_host_cpu_name(self) -> str:
            return name

    class X86:
        arch = "x86_64"

    monkeypatch.setattr(memory, "binding", Llvm)
    monkeypatch.setattr(memory, "target", X86)
    monkeypatch.setattr(memory, "last_cache", lambda: cache)
    monkeypatch.setattr(memory, "asks_ahead", memory.asks_ahead.__wrapped__)
    assert memory.asks_ahead() is asks
    assert memory.streams_from.__wrapped__() == least
