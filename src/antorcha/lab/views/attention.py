"""Attention as a learner looks at it: who looks at whom, token by token, head by head.

What is drawn is a square of shares: of each row (who looks) the elements sum up to 1. Tensors of
the program may be such squares; of a model they are found while it runs once, where it computes a
softmax or an attention.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from antorcha.core.lazy import Array, np
from antorcha.inspector.forms import escaped
from antorcha.inspector.reading import Elements
from antorcha.lab import namespace
from antorcha.lab.views import sheets
from antorcha.lab.words import LabWords
from antorcha.nn.module import Module
from antorcha.nn.multihead import MultiheadAttention
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.subclass import TorchFunctionMode

LARGEST = 64  # tokens
OFFERED = 20  # tensors that are offered
HEADS = 32  # that can be chosen
_SHARES = 1 << 16  # elements of a tensor that is looked at
_MARKS = {"softmax", "scaled_dot_product_attention", "attend", "attention"}  # in a forward's code


def squares(names: dict[str, Any]) -> list[str]:
    """The paths of the program's tensors that are squares of shares."""
    found: list[str] = []
    for path, tensor in namespace.tensors(names):
        is_named = not path.startswith("_")
        if len(found) < OFFERED and is_named and _may_be(tensor) and shares(tensor) is not None:
            found.append(path)
    return found


def _may_be(tensor: Any) -> bool:
    layout = getattr(tensor, "_layout", None)
    if layout is None or layout.dtype.kind != "f" or layout.numel > _SHARES:
        return False
    shape = tuple(layout.shape)
    return 2 <= len(shape) <= 4 and shape[-1] == shape[-2] and 2 <= shape[-1] <= LARGEST


def shares(tensor: Tensor) -> Array | None:
    """The heads (heads, tokens, tokens) of the first example; None where it is no such square."""
    if not _may_be(tensor):
        return None
    elements = Elements(tensor)
    if elements.why_not:
        return None
    values: Array = elements.thinned([1] * elements.layout.ndim).astype(np.float64)
    while values.ndim > 3:
        values = values[0]
    values = values.reshape(-1, *values.shape[-2:])[:HEADS]
    is_square = (values >= 0).all() and np.abs(values.sum(-1) - 1).max() < 1e-3
    return values if is_square else None


def attends(module: Module) -> bool:
    """Does some part of the module attend, as far as its code says?"""
    for each in module.modules():
        if isinstance(each, MultiheadAttention):
            return True
        forward: Any = type(each).forward
        is_own = type(each).__module__ == "__main__" and hasattr(forward, "__code__")
        if is_own and not _MARKS.isdisjoint(_called(forward)):
            return True
    return False


def _called(function: Any) -> Iterator[str]:
    """The names in a function's code, and in that of the program's functions that it calls."""
    for name in function.__code__.co_names:
        yield name
        inner = getattr(function.__globals__.get(name), "__code__", None)
        if inner is not None:
            yield from inner.co_names


class AttentionWatch(TorchFunctionMode):
    """Keeps the squares of shares that are computed inside: of softmax, and of attention."""

    def __init__(self) -> None:
        self.found: list[Array] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        made = func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if len(self.found) < OFFERED:
            if name == "softmax" and isinstance(made, Tensor):
                self._keep(made)
            elif name == "scaled_dot_product_attention":
                self._keep(_looked(*args, **kwargs))
        return made

    def _keep(self, tensor: Tensor) -> None:
        found = shares(tensor)
        if found is not None:
            self.found.append(found)


def _looked(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """The shares of an attention, by the values that say which token they are of."""
    size = key._layout.shape[-2]
    ones = T.eye(size, dtype=key._layout.dtype).expand(*key._layout.shape[:-2], size, size)
    return T.scaled_dot_product_attention(
        query, key, ones, attn_mask, 0.0, is_causal, scale=scale, enable_gqa=enable_gqa
    )


def draw(heads: Array, head: int, tokens: list[str], words: LabWords) -> str:
    """One head as HTML: the tokens, and the square. A script shows whom the token under the pointer
    looks at; each token says it, too."""
    head = min(max(head, 0), len(heads) - 1)
    square = heads[head]
    count = len(square)
    names = tokens if len(tokens) == count else [str(k) for k in range(count)]
    rows = json.dumps([[round(float(each), 3) for each in row] for row in square])
    told = [_told(names, k, row, words) for k, row in enumerate(square)]
    buttons = "".join([
        f'<button type="button" class="lab-token" data-token="{k}" data-told="{escaped(say)}" '
        f'title="{escaped(say)}">{escaped(name.strip() or repr(name))}</button>'
        for k, (name, say) in enumerate(zip(names, told))
    ])  # fmt: skip
    label = words("attention_square")
    picture, _ = sheets.draw(square[None], label, width=340.0, cell=26.0)
    return (
        f'<div class="lab-attention" data-shares="{escaped(rows)}">'
        f'<div class="lab-tokens">{buttons}</div>'
        f'<p class="lab-told" aria-live="polite">{escaped(words("attention_hover"))}</p>'
        f'<div class="lab-square">{picture}<i class="lab-square-row"></i></div>'
        f'<p class="lab-caption">{escaped(words("attention_rows"))}</p></div>'
    )


def _told(names: list[str], token: int, row: Array, words: LabWords) -> str:
    """Whom one token looks at, the most first."""
    order = [int(k) for k in np.argsort(-row, kind="stable")[:3] if row[k] >= 0.005]
    most = [f"{names[k].strip()} {words.number(f'{100 * row[k]:.0f}')} %" for k in order]
    return words("attention_looks", names[token].strip(), ", ".join(most))
