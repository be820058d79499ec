"""Tensors of no dims on the CPU among a GPU's operands, as in ``x.cuda() + torch.tensor(2.0)``.

A GPU cannot read the host's memory. An expression takes such a tensor's value as a run-time number,
read when it is launched; other kernels are given a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core.device import CPU, Device, backend
from antorcha.lang.kernels import Description, Launch, Pointwise
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout

NUMBERS = {"f": float, "c": complex, "i": int, "u": int, "b": int}
"""The type of a run-time number, by the dtype's kind."""


def compile_beside_host(
    device: Any, what: Description, outs: Sequence[Layout], ins: Sequence[Any]
) -> Launch | None:
    """A launch that reads its operands on the CPU by itself; None where there are none. All of them
    have one element, which may be repeated by strides of 0."""
    places = [k for k, each in enumerate(ins) if isinstance(each, Layout) and each.device is CPU]
    if not places:
        return None
    there = [each.device for each in (*outs, *ins) if _is_elsewhere(each)]
    here = there[0] if there else Device(device.name)
    seen = [_seen(what, each, here) if k in places else each for k, each in enumerate(ins)]
    launch: Launch = device.compile(what, outs, seen)

    def given(flat: Sequence[Any]) -> list[Any]:
        found: list[Any] = []
        at = 0
        for before, now in zip(ins, seen, strict=True):
            operand = flat[at : at + (2 if isinstance(before, Layout) else 1)]
            at += len(operand)
            found += operand if before is now else _value(device, before, now, *operand)
        return found

    def fresh(*flat: Any) -> Any:
        return launch.fresh(*given(flat))

    def into(*flat: Any) -> None:
        start = len(flat) - sum([2 if isinstance(each, Layout) else 1 for each in ins])
        launch.into(*flat[:start], *given(flat[start:]))

    return Launch(fresh, into)


def _is_elsewhere(operand: Any) -> bool:
    return isinstance(operand, Layout) and operand.device is not CPU


def _seen(what: Description, layout: Layout, device: Any) -> Any:
    """An operand on the CPU as the kernel has it: the type of a number, or a tensor there."""
    if isinstance(what, Pointwise) and layout.dtype.name != "uint64":  # (a number is an int64)
        return NUMBERS[layout.dtype.kind]
    return L.layout(tuple(layout.shape), layout.strides, layout.dtype, device)


def _value(device: Any, layout: Layout, seen: Any, storage: Any, offset: int) -> tuple[Any, ...]:
    """What a launch is given for an operand on the CPU."""
    one = L.layout((), (), layout.dtype, CPU)
    array = backend(CPU).to_host(one, storage, offset)
    if isinstance(seen, Layout):
        return device.from_host(array, L.layout((), (), layout.dtype, seen.device)), 0
    return (array.item(),)
