"""What PyTorch's own error samples refuse, antorcha refuses, with the same class of exception."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import antorcha
from tests.ops import samples

pytestmark = pytest.mark.oracle

KEPT: dict[str, str] = {
    "gather 7": "out= reaches into the index once it is resized; ours computes before it writes",
}
"""Samples that antorcha answers otherwise (entry and number of the sample), and why."""


def forms(entry: Any) -> Iterator[tuple[str, Callable[..., Any], Callable[..., Any]]]:
    """An operator's function, method and in-place form in PyTorch, each with antorcha's."""
    try:
        ours = samples.on_antorcha(entry.op)
    except (LookupError, AttributeError):
        ours = samples.named(entry.name)
    if ours is not None:
        yield "", entry.op, ours
    for kind, theirs in (("method ", entry.method_variant), ("in place ", entry.inplace_variant)):
        mine = getattr(antorcha.Tensor, getattr(theirs, "__name__", ""), None)
        if theirs is not None and mine is not None:
            yield kind, theirs, mine


def converted(value: Any, known: dict[int, Any]) -> Any:
    """The same arguments for antorcha; what was one tensor, or shared memory, still does."""
    import torch

    if id(value) in known:
        return known[id(value)]
    if isinstance(value, torch.Tensor) and value.device.type != "cpu":
        dtype = samples.converted(value.dtype)
        return antorcha.empty(tuple(value.shape), dtype=dtype, device=value.device.type)
    if isinstance(value, torch.Tensor):
        raw = value.detach().resolve_conj().untyped_storage()
        at = raw.data_ptr()
        if at not in known:
            known[at] = antorcha.tensor(torch.empty(0, dtype=torch.uint8).set_(raw).clone().numpy())
        dtype = getattr(antorcha, str(value.dtype).removeprefix("torch."))
        whole = known[at][: raw.nbytes() // dtype.itemsize * dtype.itemsize].view(dtype)
        made = whole.as_strided(tuple(value.shape), value.stride(), value.storage_offset())
        known[id(value)] = made
        return made
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        return type(value)([converted(each, known) for each in value])
    if isinstance(value, dict):
        return {name: converted(each, known) for name, each in value.items()}
    return samples.converted(value)


def verdict(
    call: Callable[[Any], Any], ours: Callable[[Any], Any], arguments: Any, mine: Any, also: Any
) -> str | None:
    """How antorcha's answer to arguments (`mine`) differs that PyTorch refuses; None where PyTorch
    takes them. A subclass of the builtin that PyTorch raises is right, and so is `also`."""
    import torch

    try:
        call(arguments)
    except Exception as error:
        refused = error
    else:
        return None
    named = (torch.linalg.LinAlgError, NotImplementedError, IndexError, TypeError, ValueError)
    wanted = next((kind for kind in named if isinstance(refused, kind)), type(refused))
    if wanted is torch.linalg.LinAlgError:
        wanted = antorcha.linalg.LinAlgError
    words = f"{type(refused).__name__}: {str(refused).splitlines()[0][:150]}"
    try:
        ours(mine)
    except Exception as error:
        if isinstance(error, (wanted, also)):
            return ""
        return f"{words} | ours: {type(error).__name__}: {error}"
    return f"{words} | accepted"


def report(title: str, found: str | None, failures: list[str]) -> int:
    """Notes what differs; gives 1 for a sample that could be compared."""
    if found and title not in KEPT:
        failures.append(f"{title}: {found}")
    return found is not None


def test_what_operators_refuse() -> None:
    import torch

    failures: list[str] = []
    compared = 0
    for entry in samples.operators():
        if entry.error_inputs_func is None:
            continue
        for kind, theirs, ours in forms(entry):
            listed = list(entry.error_inputs("cpu"))
            given_as = [
                (s.sample_input.input, s.sample_input.args, s.sample_input.kwargs) for s in listed
            ]
            mine = [converted([[i, *a], k], {}) for i, a, k in given_as]  # before any call writes
            for k, sample in enumerate(listed):
                given = sample.sample_input
                if kind and not (
                    isinstance(given.input, torch.Tensor) and "out" not in given.kwargs
                ):
                    continue  # a method's own argument is a tensor, and it has no out=
                arguments = ([given.input, *given.args], given.kwargs)
                found = verdict(
                    lambda a, f=theirs: f(*a[0], **a[1]), lambda a, f=ours: f(*a[0], **a[1]),
                    arguments, mine[k], sample.error_type,
                )  # fmt: skip
                compared += report(f"{kind}{samples.title(entry)} {k}", found, failures)
    assert not failures, "\n".join(failures)
    assert compared > 600


def test_what_modules_refuse() -> None:
    failures: list[str] = []
    compared = 0
    entries = samples.modules()
    from torch.testing._internal.common_modules import ModuleErrorEnum

    for entry in entries:
        ours = samples.named(entry.name if entry.name.startswith("nn.") else f"nn.{entry.name}")
        if ours is None or entry.module_error_inputs_func is None:
            continue
        for k, sample in enumerate(_module_samples(entry)):
            given = sample.module_error_input
            forward = sample.error_on == ModuleErrorEnum.FORWARD_ERROR
            arguments = [(each.args, each.kwargs) if each else ((), {})
                         for each in (given.constructor_input, given.forward_input)]  # fmt: skip

            def call(a: Any, cls: Any = entry.module_cls, forward: bool = forward) -> None:
                made = cls(*a[0][0], **a[0][1])
                if forward:
                    made(*a[1][0], **a[1][1])

            found = verdict(
                call, lambda a, cls=ours, call=call: call(a, cls), arguments,
                converted(arguments, {}), sample.error_type,
            )  # fmt: skip
            compared += report(f"{entry.name} {k}", found, failures)
    assert not failures, "\n".join(failures)
    assert compared > 40


def _module_samples(entry: Any) -> Iterator[Any]:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for training in (True, False):
            yield from entry.module_error_inputs_func(
                entry, device="cpu", dtype=torch.float32, requires_grad=False, training=training
            )
