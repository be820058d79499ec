"""What each layer of a model is given and makes, found by one forward pass.

The pass runs on a copy of the model without elements (``meta`` tensors: nothing is computed) where
all of its operations allow that, else on the model itself, in evaluation mode and outside of any
graph; what such a pass may change (modes, buffers, the generator's state) is put back.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from antorcha.autograd import no_grad
from antorcha.core.device import Device
from antorcha.errors import ArgumentError, DtypeError, OutOfRange
from antorcha.inspector.forms import shape_text
from antorcha.ops.kinds.record import T
from antorcha.random import get_rng_state, set_rng_state
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor

MOST = 10_000  # tensors looked for in what a layer gives
_FAILED = "summary: it failed in"


class LayerCall(NamedTuple):
    """One call of a layer: its tensors' layouts, and the bytes of what it has newly made."""

    given: list[Layout]
    made: list[Layout]
    fresh: int


class ForwardPass(NamedTuple):
    """A forward pass: the calls of each module (by its id), and where it ran."""

    calls: dict[int, list[LayerCall]]
    given: list[Layout]
    on_meta: bool


def run(model: Any, inputs: Sequence[Any]) -> ForwardPass:
    """Runs the model once on the inputs; a tuple of ints stands for a tensor of that shape."""
    state = get_rng_state()
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(3 * limit)  # watching takes calls, too: as deep as it runs it is watched
    try:
        with suppress(Exception):  # an op that needs values, a model that cannot be copied
            return _on_meta(model, inputs)
        return _for_real(model, inputs)
    finally:
        sys.setrecursionlimit(limit)
        set_rng_state(state)


def is_shape(value: Any) -> bool:
    """Is it a shape rather than an input?"""
    return isinstance(value, tuple) and all(type(size) is int for size in value)


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors in nested tuples, lists and dictionaries."""
    found: list[Tensor] = []
    waiting, seen = [value], 0
    while waiting and seen < MOST:
        each = waiting.pop()
        seen += 1
        if isinstance(each, Tensor):
            found.append(each)
        elif isinstance(each, (tuple, list)):
            waiting.extend(reversed(each))
        elif isinstance(each, dict):
            waiting.extend(reversed(list(each.values())))
    return found


# --------------------------------------------------------------------------------- without elements
def _on_meta(model: Any, inputs: Sequence[Any]) -> ForwardPass:
    known: dict[int, Any] = {}
    for tensor in [*model.parameters(), *model.buffers()]:
        known[id(tensor)] = _without_elements(tensor)
    twin = copy.deepcopy(model, known)
    twins = dict(zip(map(id, twin.modules()), map(id, model.modules()), strict=True))
    for module in twin.modules():
        module.__dict__["training"] = False
    meta = Device("meta")
    args = [
        T.empty(each, device=meta) if is_shape(each) else _moved(each, known) for each in inputs
    ]
    calls: dict[int, list[LayerCall]] = {}
    with _watched(twin, calls), no_grad():
        twin(*args)
    return ForwardPass({twins[key]: result for key, result in calls.items()}, _layouts(args), True)


def _without_elements(tensor: Tensor) -> Tensor:
    """A tensor (parameter, buffer) that lies like this one, on ``meta``."""
    layout = tensor._layout
    result = T.empty_strided(
        tuple(layout.shape), layout.strides, dtype=layout.dtype, device=Device("meta")
    )
    if type(tensor) is Tensor:
        result._rg = tensor._rg
        return result  # type: ignore[no-any-return]
    return type(tensor)(result, tensor._rg)  # type: ignore[call-arg]


def _moved(value: Any, known: dict[int, Any]) -> Any:
    """The input with its tensors on ``meta``; what else there is in it stays the same."""
    for tensor in tensors_in(value):
        known.setdefault(id(tensor), _without_elements(tensor))
    return copy.deepcopy(value, dict(known)) if not isinstance(value, Tensor) else known[id(value)]


# ------------------------------------------------------------------------------------ on the model
def _for_real(model: Any, inputs: Sequence[Any]) -> ForwardPass:
    first = next(iter(model.parameters()), None)
    device = Device("cpu") if first is None else first.device
    args = [T.zeros(each, device=device) if is_shape(each) else each for each in inputs]
    calls: dict[int, list[LayerCall]] = {}
    try:
        with untouched(model), _watched(model, calls), no_grad():
            model(*args)
    except (DtypeError, OutOfRange, ArgumentError) as error:
        if any(map(is_shape, inputs)):
            error.add_note(
                "summary: a shape stands for a tensor of floats. Where the model takes integers, "
                "give a tensor: torch.zeros(2, 5, dtype=torch.long)"
            )
        raise
    return ForwardPass(calls, _layouts(args), False)


@contextmanager
def untouched(model: Any) -> Iterator[None]:
    """Evaluation mode inside; after it flags and buffers are as before."""
    flags = [(module, module.training) for module in model.modules()]
    buffers = [(b, b._storage.version, T.clone(b.detach())) for b in model.buffers()]
    for module, _ in flags:
        module.__dict__["training"] = False
    try:
        yield
    finally:
        for module, flag in flags:
            module.__dict__["training"] = flag
        for buffer, version, kept in buffers:
            if buffer._storage.version != version:
                T.copy_(buffer.detach(), kept)


# --------------------------------------------------------------------------------------- watching
@contextmanager
def with_forwards(model: Any, watch: Callable[[str, Any], Callable[..., Any]]) -> Iterator[None]:
    """Inside, each module's calls go to what ``watch(name, module)`` gives, as a ``forward`` of the
    instance's own. (Not by a hook: the first hook of a process makes every later call of a module
    look for hooks.)"""
    before = []
    for name, module in model.named_modules():
        before.append((module, module.__dict__.get("forward")))
        module.__dict__["forward"] = watch(name, module)
    try:
        yield
    finally:
        for module, own in before:
            if own is None:
                del module.__dict__["forward"]
            else:
                module.__dict__["forward"] = own


@contextmanager
def _watched(model: Any, calls: dict[int, list[LayerCall]]) -> Iterator[None]:
    """Notes the calls of every module inside."""

    def watch(name: str, module: Any) -> Any:
        where = f"{name or 'the model'}: {type(module).__name__}"
        return _noting(module.forward, calls.setdefault(id(module), []), where)

    with with_forwards(model, watch):
        yield


def _noting(forward: Any, calls: list[LayerCall], where: str) -> Any:
    def noted(*args: Any, **kwargs: Any) -> Any:
        given = tensors_in([args, kwargs])
        layouts = [tensor._layout for tensor in given]
        try:
            result = forward(*args, **kwargs)
        except Exception as error:
            if not any([note.startswith(_FAILED) for note in getattr(error, "__notes__", ())]):
                shapes = ", ".join([shape_text(layout.shape) for layout in layouts])
                error.add_note(f"{_FAILED} {where}, which was given {shapes or 'no tensor'}")
            raise
        storages = {id(tensor._storage) for tensor in given}
        fresh = 0
        for tensor in tensors_in(result):
            if id(tensor._storage) not in storages:
                storages.add(id(tensor._storage))
                fresh += tensor._layout.numel * tensor._layout.itemsize
        calls.append(LayerCall(layouts, _layouts(result), fresh))
        return result

    return noted


def _layouts(value: Any) -> list[Layout]:
    return [tensor._layout for tensor in tensors_in(value)]
