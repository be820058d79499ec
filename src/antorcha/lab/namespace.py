"""What a program's names hold: the rows of the live inspector, and one tensor opened.

Rows are cheap: the facts that a tensor knows without computing, and a few of its values. They are
gathered in a thread while the program runs, so nothing here may record in autograd, write, copy a
tensor, or raise.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import antorcha
from antorcha.autograd import no_grad
from antorcha.runtime.tensor import Tensor

MANY = 200  # rows at most
FEW = 6  # values shown in a row


def rows(namespace: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for every tensor in `namespace`, inside lists, dicts and modules too.

    >>> rows({"x": antorcha.arange(3)})[0]["values"]
    '0, 1, 2'
    """
    return [_row(path, tensor) for path, tensor in itertools.islice(_tensors(namespace), MANY)]


def find(namespace: dict[str, Any], path: str) -> Any:
    """The tensor that a row's path names; None if it is not there (any more)."""
    for name, tensor in _tensors(namespace):
        if name == path:
            return tensor
    return None


def graph_names(namespace: dict[str, Any]) -> list[str]:
    """Paths of tensors that have a graph, the most likely to be looked at first: a loss, then the
    last one made."""
    paths = [path for path, tensor in _tensors(namespace) if _attribute(tensor, "grad_fn")]
    paths.reverse()
    return sorted(paths, key=lambda path: "loss" not in path)


def _tensors(namespace: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in list(namespace.items()):
        if not name.startswith("__"):
            yield from _inside(name, value)


def _inside(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, antorcha.nn.Module):
        try:
            named = [*value.named_parameters(), *value.named_buffers()]
        except Exception:
            return  # half built, or a class of the learner's that is not right yet
        for path, tensor in named:
            yield f"{name}.{path}", tensor
    elif type(value) in (list, tuple):
        for index, each in enumerate(value[:MANY]):
            if isinstance(each, Tensor):
                yield f"{name}[{index}]", each
    elif type(value) is dict:
        for key, each in list(value.items())[:MANY]:
            if isinstance(each, Tensor) and isinstance(key, (str, int)):
                yield f"{name}[{key!r}]", each


def _row(path: str, tensor: Any) -> dict[str, Any]:
    try:
        return {
            "name": path,
            "shape": list(tensor.shape),
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "device": str(tensor.device),
            "grad": bool(tensor.requires_grad),
            "values": _values(tensor),
        }
    except Exception as error:  # a subclass of the learner's may do anything
        return {"name": path, "shape": [], "dtype": "?", "device": "?", "grad": False,
                "values": f"{type(error).__name__}: {error}"}  # fmt: skip


def _values(tensor: Any) -> str:
    """A few values, as text; reading them makes views only."""
    if tensor.device.type == "meta" or tensor.numel() == 0:
        return ""
    if tensor.device.type != "cpu" and tensor.numel() > FEW:
        return ""  # reading would wait for the device
    with no_grad():
        line = tensor.detach()
        while line.dim() > 1:
            line = line[0]
        some = line[:FEW].tolist() if line.dim() else [line.item()]
    more = ", …" if tensor.numel() > len(some) else ""
    return ", ".join(_number(value) for value in some) + more


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (float, complex)) else str(value)


def _attribute(tensor: Any, name: str) -> Any:
    try:
        return getattr(tensor, name)
    except Exception:
        return None
