"""One pass of a model, watched: what each layer was given and made."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from antorcha.autograd import no_grad
from antorcha.core.lazy import Array
from antorcha.inspector.reading import Elements
from antorcha.inspector.summary.layers import tensors_in, untouched, with_forwards
from antorcha.lab.views import inputs
from antorcha.nn.module import Module
from antorcha.random import get_rng_state, set_rng_state
from antorcha.runtime.tensor import Tensor

LAYERS = 64  # calls of layers that are told of
LARGEST = 1 << 20  # elements of what a layer makes, of which pictures are drawn


@dataclass(frozen=True)
class LayerPass:
    """A call of a layer: its name in the model, itself, the shapes that it was given, and what it
    made (None: no tensor, or too large a one)."""

    name: str
    module: Module
    given: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]
    made: Array | None


@dataclass(frozen=True)
class ModelPass:
    """A pass: what went in, the layers in their order, and what came out."""

    given: Array | None
    layers: list[LayerPass]
    out: Array | None


class NoInput(Exception):
    """No tensor of the program fits the model; the message is the last error, "" for none."""


def run_on(module: Module, name: str, names: dict[str, Any], index: int) -> ModelPass:
    """Run the model on an example of that tensor. Raises NoInput where it takes no form of it."""
    problem = ""
    for args in inputs.arguments(module, name, names, index):
        try:
            return run(module, args)
        except Exception as error:  # another form may fit
            problem = problem or f"{type(error).__name__}: {error}"
    raise NoInput(problem)


def run(module: Module, args: list[Any]) -> ModelPass:
    """Run the model once; nothing of the program's is changed."""
    passes: list[LayerPass] = []
    with alone(module), _watched(module, passes):
        made = module(*args)
    return ModelPass(values_of(args), passes, values_of(made))


@contextlib.contextmanager
def alone(module: Module) -> Iterator[None]:
    """In evaluation mode, outside of any graph; what the model prints is not for the terminal, and
    what it may change (modes, buffers, random numbers) is put back."""
    state = get_rng_state()
    aside = io.StringIO()
    try:
        with (
            contextlib.redirect_stdout(aside),
            contextlib.redirect_stderr(aside),
            untouched(module),
            no_grad(),
        ):
            yield
    finally:
        set_rng_state(state)


@contextlib.contextmanager
def _watched(model: Module, passes: list[LayerPass]) -> Iterator[None]:
    """Note the calls of the innermost modules."""
    calls = [0]

    def watch(name: str, module: Module) -> Any:
        return _noting(name, module, module.forward, passes, calls)

    with with_forwards(model, watch):
        yield


def _noting(
    name: str, module: Module, forward: Any, passes: list[LayerPass], calls: list[int]
) -> Any:
    def noted(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        begun = calls[0]
        made = forward(*args, **kwargs)
        if calls[0] == begun and len(passes) < LAYERS:  # it called no other module
            given = tuple([tuple(each._layout.shape) for each in tensors_in([args, kwargs])])
            first = next(iter(tensors_in(made)), None)
            shape = tuple(first._layout.shape) if first is not None else ()
            passes.append(LayerPass(name, module, given, shape, values_of(made)))
        return made

    return noted


def values_of(made: Any) -> Array | None:
    """A copy of the first tensor's values, where it can be read and is not too large."""
    first = next(iter(tensors_in(made)), None)
    if first is None or not isinstance(first, Tensor):
        return None
    elements = Elements(first)
    if elements.why_not or not 0 < elements.layout.numel <= LARGEST:
        return None
    values: Array = elements.thinned([1] * elements.layout.ndim).copy()
    return values if values.dtype.kind in "fiub" else None
