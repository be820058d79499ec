"""What a program's names hold: the rows of the live inspector, and one tensor opened.

Rows are cheap: the facts that a tensor knows without computing, and a few of its values. They are
gathered in a thread while the program runs, so nothing here may record in autograd, write, copy a
tensor, or raise.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import antorcha
from antorcha.autograd import no_grad
from antorcha.lab.child_names import MANY
from antorcha.runtime.tensor import Tensor

DEEP = 4  # containers within each other that are entered
LOOKS = 5000  # things looked at in containers: a list of a million numbers is no place to dwell
NAMES = 20_000  # names of the program that are looked at
FEW = 6  # values shown in a row


def rows(namespace: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for every tensor in `namespace`, inside lists, dicts and modules too.

    >>> rows({"x": antorcha.arange(3)})[0]["values"]
    '0, 1, 2'
    """
    return [row(path, tensor) for path, tensor in itertools.islice(tensors(namespace), MANY)]


def find(namespace: dict[str, Any], path: str) -> Any:
    """The tensor that a row's path names; None if it is not there (any more)."""
    for name, tensor in tensors(namespace):
        if name == path:
            return tensor
    return None


def graph_names(namespace: dict[str, Any]) -> list[str]:
    """Paths of tensors that have a graph, the most likely to be looked at first: a loss, then the
    last one made."""
    paths = [path for path, tensor in tensors(namespace) if _attribute(tensor, "grad_fn")]
    paths.reverse()
    return sorted(paths, key=lambda path: "loss" not in path)


def tensors(namespace: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every tensor and its path, in the order of the names; each container is entered once."""
    search = _Search()
    names: list[tuple[Any, Any]] = list(namespace.items())  # of what type, globals() decides
    for name, value in itertools.islice(names, NAMES):
        if isinstance(name, str) and not name.startswith("__"):
            yield from search.inside(name, value, DEEP)


class _Search:
    """Walks through what may hold tensors. It reads by the builtin types' own methods: a learner's
    subclass may do anything in its own, and is not to be called while a program runs."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._left = LOOKS

    def inside(self, path: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
        if isinstance(value, Tensor):
            yield path, value
            return
        if depth == 0 or id(value) in self._seen:
            return
        if isinstance(value, antorcha.nn.Module):
            self._seen.add(id(value))
            yield from _of_module(path, value)
            return
        pairs = _held(path, value)
        if pairs is not None:
            self._seen.add(id(value))
            for inner, each in pairs:
                self._left -= 1
                if self._left < 0:
                    return
                yield from self.inside(inner, each, depth - 1)


def _of_module(path: str, module: Any) -> list[tuple[str, Any]]:
    try:
        every = itertools.chain(module.named_parameters(), module.named_buffers())
        named = list(itertools.islice(every, MANY + 1))  # (more are not shown)
    except Exception:
        return []  # half built, or a class of the learner's that is not right yet
    return [(f"{path}.{name}", tensor) for name, tensor in named]


def _held(path: str, value: Any) -> list[tuple[str, Any]] | None:
    """What a container holds, with paths; None for what is no container."""
    if isinstance(value, tuple) and isinstance(getattr(type(value), "_fields", None), tuple):
        names = type(value)._fields  # type: ignore[attr-defined]  # a named tuple
        return [(f"{path}.{name}", each) for name, each in zip(names, tuple.__iter__(value))]
    if isinstance(value, (list, tuple, deque)):
        items = list(itertools.islice(_plain(value).__iter__(value), MANY))
        return [(f"{path}[{index}]", each) for index, each in enumerate(items)]
    if isinstance(value, dict):
        items = list(itertools.islice(dict.items(value), MANY))
        return [(f"{path}[{key!r}]", each) for key, each in items if _is_plain(key)]
    if type(value) is SimpleNamespace or type(value).__module__ == "__main__":
        own = getattr(value, "__dict__", None)
        if type(own) is dict and not isinstance(value, type):
            return [(f"{path}.{name}", each) for name, each in list(own.items())[:MANY]]
    return None


def _plain(value: Any) -> Any:
    return next(kind for kind in (list, tuple, deque) if isinstance(value, kind))


def _is_plain(key: Any) -> bool:
    return type(key) in (str, int, float, bool) or (
        type(key) is tuple and all(type(each) in (str, int) for each in key)
    )


def row(path: str, tensor: Any) -> dict[str, Any]:
    """The facts of a tensor, under that name."""
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
