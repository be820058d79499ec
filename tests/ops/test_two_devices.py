"""Operands on two devices: every record refuses them before it reads memory that it cannot reach,
but for numbers on the CPU, which go with any device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import antorcha as torch
from antorcha.devices.gpu import launcher
from antorcha.devices.sim.memory import TAG
from antorcha.runtime.memory.layout import Layout
from tests.ops.records import all_samples, map_tensors, records, tensors_in

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
F = torch.nn.functional
NOT_READ = ("broadcast_tensors", "expand_as", "reshape_as", "view_as", "atleast_1d", "meshgrid",
            "lu_unpack")  # fmt: skip
COPIED = ("copy", "as_strided_scatter", "diagonal_scatter", "select_scatter", "slice_scatter")
"""Ops that read an operand's shape alone, or each by itself; those that copy from any device."""


def not_refused(here: str, there: str) -> list[str]:
    """The records that take an operand on another device than the others."""
    wrong, calls = [], 0
    for op in records():
        if op.name in (*NOT_READ, *COPIED):
            continue
        for args, kwargs in list(all_samples(op, torch.float32))[:2]:
            tensors = tensors_in((args, kwargs))
            if len(tensors) < 2 or kwargs.get("device") is not None:
                continue
            for k, moved in enumerate(tensors[:5]):
                if there == "cpu" and not moved.ndim:
                    continue
                numbers = iter(range(len(tensors)))

                def place(t: Any, numbers: Any = numbers, k: int = k) -> Any:
                    return t.to(there if next(numbers) == k else here)

                given = map_tensors((args, kwargs), place)
                calls += 1
                try:
                    op(*given[0], **given[1])
                except RuntimeError as error:
                    if "device" not in str(error):
                        wrong.append(f"{op.name}, operand {k}: {error}")
                else:
                    wrong.append(f"{op.name}, operand {k}: no error")
    assert calls > 500
    return wrong


@pytest.mark.parametrize(("here", "there"), [("cpu", "sim"), ("sim", "cpu")])
def test_operands_on_two_devices_are_refused(here: str, there: str) -> None:
    wrong = not_refused(here, there)
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def _kernels_read_no_host_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    words_of = launcher.words_of

    def checked(operands: Any, flat: Any) -> Any:
        at = 0
        for each in operands:
            if isinstance(each, Layout):
                assert not each.numel or flat[at].ptr >= TAG, f"{each} is in the host's memory"
            at += 2 if isinstance(each, Layout) else 1
        return words_of(operands, flat)

    monkeypatch.setattr(launcher, "words_of", checked)


@pytest.mark.usefixtures("_kernels_read_no_host_memory")
def test_numbers_on_the_cpu_go_with_any_device() -> None:
    number = torch.tensor(2.0, requires_grad=True)
    place = torch.tensor(1)
    calls: dict[str, Callable[[Any], Any]] = {
        "add": lambda x: x + number, "pow": lambda x: number**x, "first": lambda x: number / x,
        "half": lambda x: x.half() * number, "int": lambda x: x + torch.tensor(7),
        "bool": lambda x: x * torch.tensor(True), "complex": lambda x: x * torch.tensor(2 + 1j),
        "unsigned": lambda x: x.long().to(torch.uint64) + torch.tensor(2**63, dtype=torch.uint64),
        "in place": lambda x: x.clone().mul_(number.detach()),
        "where": lambda x: torch.where(x > 1, x, number), "clamp": lambda x: x.clamp(max=number),
        "masked": lambda x: x.masked_fill(x > 2, number),
        "loss": lambda x: F.mse_loss(x, number.expand(2, 3)[0, 0]),
        "first of a loss": lambda x: F.l1_loss(number, x),
        "bias": lambda x: torch.addmm(number, x, x.t()), "stack": lambda x: x[place],
        "index_fill": lambda x: x.index_fill(0, x.new_zeros(1).long(), number),
        "put": lambda x: x.clone().index_put_((place,), number.detach()),
        "loss of a class": lambda x: F.cross_entropy(x[0], place),
        "several": lambda x: torch.lerp(x, number, torch.tensor(0.25)),
    }  # fmt: skip
    wrong = []
    for name, call in calls.items():
        found = []
        for device in ("cpu", "sim"):
            number.grad = None
            x = torch.arange(1.0, 7.0).view(2, 3).to(device).requires_grad_()
            result = call(x)
            assert result.device.type == device, name
            if result.requires_grad:
                (result.abs() if result.is_complex() else result).float().sum().backward()
            found.append([result.detach(), number.grad, x.grad])
        for ours, theirs in zip(*found, strict=True):
            if (ours is None) is not (theirs is None):
                wrong.append(f"{name}: {ours} is not {theirs}")
            elif ours is not None:
                close = torch.allclose(ours.to(torch.complex128), theirs.cpu().to(torch.complex128))
                if not close or ours.dtype is not theirs.dtype:
                    wrong.append(f"{name}: {ours} is not {theirs}")
        if found[1][1] is not None and found[1][1].device.type != "cpu":
            wrong.append(f"{name}: the gradient of the number is on {found[1][1].device}")
    assert not wrong, "\n".join(wrong)


def test_what_else_is_on_another_device_is_refused() -> None:
    x = torch.arange(6.0).view(2, 3).to("sim")
    p = torch.nn.Parameter(x.clone())
    calls: dict[str, Callable[[], Any]] = {
        "invalid gradient at index 0 - expected device sim but got cpu":
            lambda: (p * 2).backward(torch.ones(2, 3)),
        "expected device sim": lambda: torch.autograd.grad(p * 2, p, torch.ones(2, 3)),
        "assigned grad has data located on a different device":
            lambda: setattr(p, "grad", torch.ones(2, 3)),
        "devices must match": lambda: x.clone().set_(torch.ones(3)),
        "must match": lambda: torch.ones(3).set_(x.untyped_storage()),
        "indices should be either on cpu or on the same device as the indexed tensor":
            lambda: torch.ones(3)[torch.tensor([0]).to("sim")],
        "indices should be": lambda: torch.ones(3).__setitem__(torch.tensor([0]).to("sim"), 1.0),
        "Expected out tensor": lambda: torch.add(x, 1, out=torch.ones(2, 3)),
        "same device": lambda: torch.tensor(1.0).add_(x[0, 0]),
    }  # fmt: skip
    for text, call in calls.items():
        with pytest.raises(RuntimeError, match=text):
            call()
    assert torch.equal(x[torch.tensor([1])].cpu(), x.cpu()[1:])
