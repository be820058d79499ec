"""FlopCounterMode: the figures are PyTorch's, forwards and backwards, by module and op."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import antorcha
from antorcha.core import modes
from antorcha.utils.flop_counter import FlopCounterMode, register_flop_formula


def counted(lib: Any, make: Any, *shape: int) -> dict[str, dict[str, int]]:
    counter = importlib.import_module(f"{lib.__name__}.utils.flop_counter").FlopCounterMode(
        display=False
    )
    net = make(lib.nn)
    x = lib.randn(*shape, requires_grad=True)
    with counter:
        net(x).sum().backward()
    return {
        where: {str(op): count for op, count in ops.items()}
        for where, ops in counter.get_flop_counts().items()
    }


NETS: list[tuple[Any, tuple[int, ...]]] = [
    (lambda nn: nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(),
                              nn.Conv2d(4, 6, 3, groups=2, stride=2), nn.Flatten(),
                              nn.Linear(54, 5)), (3, 2, 8, 8)),
    (lambda nn: nn.Sequential(nn.ConvTranspose2d(2, 4, 3, stride=2)), (3, 2, 8, 8)),
    (lambda nn: nn.Sequential(nn.ConvTranspose1d(4, 6, 3, groups=2), nn.Conv1d(6, 2, 1)),
     (3, 4, 8)),
    (lambda nn: nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 8, bias=False),
                              nn.Tanh()), nn.Linear(8, 2)), (5, 7, 4)),
    (lambda nn: nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8)), (5, 4)),
    (lambda nn: lambda x: x @ x.mT, (2, 3, 5, 4)),
    (lambda nn: lambda x: x @ x[0, 0].mT, (2, 3, 5, 4)),
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize(("make", "shape"), NETS)
def test_counts_are_pytorchs(make: Any, shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    assert counted(antorcha, make, *shape) == counted(torch, make, *shape)


@pytest.mark.oracle
def test_totals_of_a_transformer_layer_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    totals = []
    for lib in (antorcha, torch):  # (which of the projections are addmm, and which mm, differs)
        found = counted(
            lib, lambda nn: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, 5, 8
        )
        totals.append({where: sum(ops.values()) for where, ops in found.items()})
    assert totals[0] == totals[1]


def test_the_table() -> None:
    net = antorcha.nn.Sequential(antorcha.nn.Linear(40, 50), antorcha.nn.Linear(50, 10))
    with FlopCounterMode(display=False) as counter:
        net(antorcha.ones(4, 40))
    assert counter.get_total_flops() == 20000
    assert counter.get_table() == (
        "Module             FLOP    % Total\n"
        "--------------  -------  ---------\n"
        "Sequential      20.000K    100.00%\n"
        " - aten.addmm   20.000K    100.00%\n"
        " Sequential.0   16.000K     80.00%\n"
        "  - aten.addmm  16.000K     80.00%\n"
        " Sequential.1    4.000K     20.00%\n"
        "  - aten.addmm   4.000K     20.00%"
    )
    assert counter.get_table(1).count("\n") == 3
    with counter:
        antorcha.ones(2, 3) @ antorcha.ones(3, 4)
        net(antorcha.ones(4, 40))
    assert counter.get_table(1).splitlines()[2].startswith("Global")
    assert modes.busy == 0


def test_nothing_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with FlopCounterMode():
        antorcha.ones(2) + 1
    assert capsys.readouterr().out.splitlines()[2].split() == ["Global", "0", "0%"]


def test_formulas() -> None:
    def of_exp(shape: Any, *, out_shape: Any) -> int:
        assert shape == out_shape
        return 10 * len(shape)

    with FlopCounterMode(display=False, custom_mapping={antorcha.exp: of_exp}) as counter:
        antorcha.ones(2, 2).exp()
    assert counter.get_total_flops() == 20

    @register_flop_formula(antorcha.erfinv)
    def formula(shape: Any, **_: Any) -> int:
        return 7

    with FlopCounterMode(display=False) as counter:
        antorcha.zeros(2).erfinv()
    assert counter.get_total_flops() == 7
    with pytest.raises(RuntimeError, match="duplicate"):
        register_flop_formula(antorcha.erfinv)(formula)
    with pytest.warns(UserWarning, match="not needed"):
        FlopCounterMode(antorcha.nn.Linear(1, 1))


def test_attention_counts_the_same_with_and_without_a_graph() -> None:
    found = []
    for wanted in (False, True):
        q = antorcha.randn(2, 3, 20, 8, requires_grad=wanted)
        with FlopCounterMode(display=False) as counter:
            antorcha.nn.functional.scaled_dot_product_attention(q, q, q)
        found.append(counter.get_total_flops())
    assert found == [2 * 2 * 2 * 3 * 20 * 20 * 8] * 2
