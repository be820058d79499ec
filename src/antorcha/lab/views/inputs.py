"""What a model takes: the tensors of a program that may be its input, judged by its first layer."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from antorcha.inspector.reading import Elements, steps_for
from antorcha.nn.conv import _ConvNd
from antorcha.nn.linear import Linear
from antorcha.nn.module import Module
from antorcha.nn.multihead import MultiheadAttention
from antorcha.nn.norm import LayerNorm, _BatchNorm
from antorcha.nn.rnn import RNNBase
from antorcha.nn.sparse import Embedding
from antorcha.ops.kinds.record import T
from antorcha.random import Generator
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor

MODULES = 12  # models of a program that are looked at
WHOLE = 100_000  # elements of a tensor that is given to a model whole


def models(names: dict[str, Any]) -> dict[str, Module]:
    """The modules with parameters that the program's names hold, those that hold others first."""
    found = {
        name: value
        for name, value in list(names.items())
        if isinstance(value, Module) and not name.startswith("__")
    }
    inner: set[int] = set()
    for module in found.values():
        inner.update([id(each) for each in module.modules() if each is not module])
    chosen = [(name, each) for name, each in found.items() if any(True for _ in each.parameters())]
    chosen.sort(key=lambda pair: id(pair[1]) in inner)
    return dict(chosen[:MODULES])


def fitting(module: Module, names: dict[str, Any]) -> list[str]:
    """The names of tensors that the module's first layer would take, the likeliest first."""
    takes = _taker(module)
    found = []
    for name, value in list(names.items()):
        if isinstance(value, Tensor) and not name.startswith("__") and not value.requires_grad:
            layout = value._layout
            if layout.numel and layout.device.type != "meta" and takes(layout):
                found.append((name, _unused(module, value), layout.ndim < 2, -layout.numel))
    found.sort(key=lambda each: each[1:])
    return [each[0] for each in found if each[1] >= 0]


def _unused(module: Module, tensor: Tensor) -> int:
    """How many words of an embedding's come after all that stand in a text: of several tensors of
    whole numbers the likeliest uses the most. -1 where it has words that the embedding has not."""
    layer = next((each for each in module.modules() if isinstance(each, Embedding)), None)
    elements = Elements(tensor)
    if layer is None or elements.layout.dtype.kind not in "iu" or elements.why_not:
        return 0
    some = elements.thinned(steps_for(elements.layout.shape, WHOLE))
    return max(int(layer.num_embeddings) - 1 - int(some.max()), -1) if some.min() >= 0 else -1


def arguments(module: Module, name: str, names: dict[str, Any], index: int) -> Iterator[list[Any]]:
    """What may be given to the module, of that tensor the example `index`: to be tried in turn."""
    tensor = names[name]
    needed = _needed(module)
    if needed and all(isinstance(names.get(each), Tensor) for each in needed):
        every = [names[each] for each in needed]
        if all(each._layout.ndim and index < each._layout.shape[0] for each in every):
            yield [each[index : index + 1] for each in every]
        yield every
    times = max(len(needed), 1)
    layout = tensor._layout
    if layout.ndim >= 2 and index < layout.shape[0]:
        yield [tensor[index : index + 1]] * times
    if layout.numel <= WHOLE:
        yield [tensor] * times
        yield [tensor[None]] * times


def made_up(module: Module) -> Iterator[list[Any]]:
    """Random numbers that the module's first layer would take, where it says what that is."""
    for each in module.modules():
        for kind, shape in _SHAPES:
            if isinstance(each, kind):
                generator = Generator().manual_seed(0)
                yield [T.randn(*shape(each), generator=generator)] * max(len(_needed(module)), 1)
                return
        if isinstance(each, Embedding):
            words = T.arange(min(int(each.num_embeddings), 8))
            yield [words[None]]
            yield [words]
            return


def _needed(module: Module) -> list[str]:
    """The names of what ``forward`` must be given."""
    try:
        given = inspect.signature(module.forward).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [each.name for each in given if each.kind in kinds and each.default is each.empty]


def _taker(module: Module) -> Callable[[Layout], bool]:
    """Whether a tensor that lies like that may be the module's input."""
    for each in module.modules():
        for kind, rule in _RULES:
            if isinstance(each, kind):
                return partial(_takes, each, rule)
    return lambda layout: layout.dtype.kind == "f"


def _takes(layer: Any, rule: Callable[[Any, Layout], bool], layout: Layout) -> bool:
    return bool(layout.ndim) and rule(layer, layout)


def _linear(layer: Any, layout: Layout) -> bool:
    size = layer.in_features
    is_flat = layout.ndim > 1 and math.prod(layout.shape[1:]) == size
    return layout.dtype.kind == "f" and bool(layout.shape[-1] == size or is_flat)


def _convolution(layer: Any, layout: Layout) -> bool:
    dims, channels = len(layer.kernel_size), layer.in_channels
    if layout.dtype.kind != "f" or layout.ndim not in (dims + 1, dims + 2):
        return False
    is_plain = layout.ndim == dims + 1 and channels == 1  # (the model adds the channel itself)
    return bool(is_plain or layout.shape[-dims - 1] == channels)


def _last(name: str) -> Callable[[Any, Layout], bool]:
    def rule(layer: Any, layout: Layout) -> bool:
        return layout.dtype.kind == "f" and layout.shape[-1] == getattr(layer, name)

    return rule


def _norm(layer: Any, layout: Layout) -> bool:
    shape = tuple(layer.normalized_shape)
    return layout.dtype.kind == "f" and tuple(layout.shape[-len(shape) :]) == shape


_RULES: list[tuple[type, Callable[[Any, Layout], bool]]] = [
    (Linear, _linear),
    (_ConvNd, _convolution),
    (Embedding, lambda layer, layout: layout.dtype.kind in "iu"),
    (RNNBase, _last("input_size")),
    (MultiheadAttention, _last("embed_dim")),
    (LayerNorm, _norm),
    (_BatchNorm, lambda layer, layout: layout.ndim > 1 and layout.shape[1] == layer.num_features),
]
"""Of layers that know what they take: whether a tensor that lies like that is it."""


_SHAPES: list[tuple[type, Callable[[Any], tuple[int, ...]]]] = [
    (Linear, lambda layer: (1, layer.in_features)),
    (_ConvNd, lambda layer: (1, layer.in_channels, *(28,) * len(layer.kernel_size))),
    (RNNBase, lambda layer: (1, 5, layer.input_size)),
    (MultiheadAttention, lambda layer: (1, 5, layer.embed_dim)),
    (LayerNorm, lambda layer: (1, *layer.normalized_shape)),
    (_BatchNorm, lambda layer: (1, layer.num_features, 8)),
]


def texts(names: dict[str, Any], count: int) -> list[str]:
    """So many words that a list of the program holds, such as names of classes; [] if none."""
    for name, value in list(names.items()):
        is_list = isinstance(value, (list, tuple)) and not name.startswith("__")
        if is_list and len(value) == count and all(isinstance(each, str) for each in value):
            return [str(each) for each in value]
    return []


def tokens(names: dict[str, Any], count: int) -> list[str]:
    """So many tokens of the program: of a list, or a text's words or characters; [] if none."""
    if found := texts(names, count):
        return found
    for name, value in list(names.items()):
        if isinstance(value, str) and not name.startswith("__"):
            for parts in (value.split(), list(value)):
                if len(parts) == count:
                    return parts
    return []


def answers(names: dict[str, Any], count: int) -> Any:
    """The tensor of whole numbers that may say what each of so many examples is; None if none."""
    for value in list(names.values()):
        is_whole = isinstance(value, Tensor) and value._layout.dtype.kind in "iu"
        if is_whole and tuple(value._layout.shape) == (count,):
            return value
    return None
