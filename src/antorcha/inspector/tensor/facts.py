"""Everything that is known of one tensor, gathered once, bounded in time and in memory.

`gather` reads a tensor's fields and some of its elements. It runs no op: nothing is recorded, no
version or mode changes, a stale view's history stays as it is. What it gives holds words and
numbers, never the tensor, so it keeps nothing alive and says what was true at that time.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from antorcha.core.shapes import is_channels_last, is_dense
from antorcha.errors import ArgumentError, GraphError
from antorcha.inspector.reading import FREED, Elements, Gone
from antorcha.inspector.tensor import values
from antorcha.inspector.tensor.grids import HeatMap, heat_map
from antorcha.inspector.tensor.images import Image, as_image
from antorcha.inspector.tensor.memory import MemoryPicture, picture, repeats
from antorcha.inspector.tensor.sharing import Sharing, find
from antorcha.inspector.tensor.values import Statistics, describe
from antorcha.runtime.call.node import CONSTANT, check_view
from antorcha.runtime.tensor import Tensor

_BRIEF = 1 << 14  # elements that the short form looks at


@dataclass(frozen=True)
class StorageFacts:
    """The memory: ``needed`` bytes are what the tensor reaches into, ``owner`` the class of whose
    memory it is ("" when it is the storage's own), ``version`` None for inference tensors."""

    nbytes: int
    needed: int
    address: int
    owner: str
    readonly: bool
    version: int | None


@dataclass(frozen=True)
class GradFacts:
    """A gradient in short."""

    shape: tuple[int, ...]
    dtype: str
    statistics: Statistics | None
    why_not: str


@dataclass(frozen=True)
class AutogradFacts:
    """The place in the graph. ``grad_fn`` is the node's name, "" for a leaf; ``problem`` says why a
    view's history cannot be told."""

    requires_grad: bool
    is_leaf: bool
    grad_fn: str
    output_nr: int
    retains_grad: bool
    is_view: bool
    is_inference: bool
    grad: GradFacts | None
    problem: str = ""


@dataclass(frozen=True)
class TensorFacts:
    """What `antorcha.inspect` knows of a tensor.

    ``layout`` is "contiguous", "channels_last", "channels_last_3d", "permuted" (every cell once, in
    another order), "strided" (with gaps) or "overlapping". ``why_no_values`` is "", "meta", "freed"
    or "elsewhere"; then ``statistics`` and ``heat`` are None.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    axes: tuple[str, ...] | None
    dtype: str
    device: str
    strides: tuple[int, ...]
    offset: int
    numel: int
    itemsize: int
    nbytes: int
    layout: str
    is_contiguous: bool
    storage: StorageFacts
    autograd: AutogradFacts
    sharing: Sharing
    why_no_values: str
    statistics: Statistics | None
    heat: HeatMap | None
    memory: MemoryPicture | None
    image: Image | None

    def as_dict(self) -> dict[str, Any]:
        """All of it as values that JSON has: numbers that are not finite are words ("nan")."""
        found: dict[str, Any] = jsonable(self)
        return found


def gather(
    tensor: Tensor,
    *,
    name: str | None = None,
    axes: str | Sequence[str] | None = None,
    names: Mapping[str, Any] | None = None,
    search: bool = True,
    brief: bool = False,
) -> TensorFacts:
    """The facts of a tensor.

    Args:
        tensor: any tensor; nothing about it changes.
        name: what to call it; else a name that `names` has for it.
        axes: a name for each dim: a sequence, words, or letters ("NCHW").
        names: where the names of tensors are looked up (a namespace).
        search: ask the collector for tensors that share the memory and have no name: a walk over
            all objects of the program, some milliseconds for each hundred thousand.
        brief: only what the short form shows: fewer elements, no memory, nobody who shares.
    """
    check(tensor)
    sharing = Sharing(name or "") if brief else find(tensor, names, name, search)
    elements = Elements(tensor)
    layout = elements.layout
    told = parse_axes(axes, layout.ndim)
    statistics = heat = image = None
    try:
        statistics = _statistics(elements, brief)
        if statistics is not None:
            image = as_image(elements, statistics, told)
            heat = heat_map(elements, *((160, 1) if brief else (400,) if image else ()))
    except Gone:
        elements.why_not, statistics, image = FREED, None, None
    return TensorFacts(
        name=sharing.name, kind=type(tensor).__name__, shape=tuple(layout.shape), axes=told,
        dtype=layout.dtype.name, device=str(layout.device), strides=layout.strides,
        offset=elements.offset, numel=layout.numel, itemsize=layout.itemsize,
        nbytes=layout.numel * layout.itemsize,
        layout=_layout_word(elements), is_contiguous=layout.contiguous,
        storage=_storage_facts(elements), autograd=_autograd_facts(tensor, brief),
        sharing=sharing, why_no_values=elements.why_not, statistics=statistics, heat=heat,
        memory=None if brief else picture(elements), image=image,
    )  # fmt: skip


def check(tensor: Any) -> None:
    """Refuses what is no tensor, and tensors without their fields."""
    if not issubclass(type(tensor), Tensor):
        raise ArgumentError(
            f"inspect: a tensor is needed, not {type(tensor).__name__}; torch.as_tensor(...) makes "
            "one of a list, a number or a NumPy array. Or a launch: one of the list that "
            "torch.sim.recording() gives, such as launches[0]"
        )
    try:
        for field in ("_layout", "_storage", "_offset", "_fn", "_rg", "_base"):
            getattr(tensor, field)
    except AttributeError:
        raise ArgumentError(
            "inspect: this tensor was made by object.__new__ and has no elements; make it with "
            "torch.Tensor(...) or as_subclass"
        ) from None


def parse_axes(axes: str | Sequence[str] | None, ndim: int) -> tuple[str, ...] | None:
    """The names of the dims.

    >>> parse_axes("NCHW", 4), parse_axes("rows columns", 2)
    (('N', 'C', 'H', 'W'), ('rows', 'columns'))
    """
    if axes is None:
        return None
    if isinstance(axes, str):
        words = axes.replace(",", " ").split()
        if len(words) == 1 and len(words[0]) == ndim:
            words = list(words[0])
    elif isinstance(axes, (list, tuple)) and all(isinstance(each, str) for each in axes):
        words = list(axes)
    else:
        raise ArgumentError(
            f"inspect: axes must be names, such as 'NCHW' or ('rows', 'columns'), not {axes!r}"
        )
    if len(words) != ndim:
        raise ArgumentError(
            f"inspect: axes={axes!r} names {len(words)} dims, the tensor has {ndim}: give one name "
            "for each"
        )
    return tuple(words)


def _statistics(elements: Elements, brief: bool) -> Statistics | None:
    if elements.why_not:
        return None
    return describe(elements, _BRIEF if brief else values.EXACT)


def _layout_word(elements: Elements) -> str:
    layout = elements.layout
    if layout.contiguous:
        return "contiguous"
    if is_channels_last(layout.shape, layout.strides):
        return "channels_last" if layout.ndim == 4 else "channels_last_3d"
    if repeats(layout.shape, layout.strides):
        return "overlapping"
    return "permuted" if is_dense(layout.shape, layout.strides) else "strided"


def _storage_facts(elements: Elements) -> StorageFacts:
    storage = elements.storage
    owner = storage.owner
    if type(owner) is memoryview:
        owner = owner.obj
    kind = type(owner)
    module = kind.__module__.partition(".")[0]
    word = kind.__name__ if module in ("builtins", "antorcha") else f"{module}.{kind.__name__}"
    return StorageFacts(
        storage.nbytes, elements.needed_bytes, storage.ptr, "" if owner is None else word,
        bool(storage.flags & 2), storage.version if storage.version >= 0 else None,
    )  # fmt: skip


def _autograd_facts(tensor: Tensor, brief: bool) -> AutogradFacts:
    requires_grad, grad_fn, problem = _history(tensor)
    extra = tensor._extra
    grad = tensor._grad
    return AutogradFacts(
        requires_grad, not grad_fn, grad_fn, tensor._nr,
        bool(extra is not None and extra.retains is not None), tensor._base is not None,
        tensor._storage.version < 0, None if grad is None else _grad_facts(grad, brief), problem,
    )  # fmt: skip


def _grad_facts(grad: Tensor, brief: bool) -> GradFacts:
    elements = Elements(grad)
    layout, statistics = elements.layout, None
    try:
        statistics = _statistics(elements, brief)
    except Gone:
        elements.why_not = FREED
    return GradFacts(tuple(layout.shape), layout.dtype.name, statistics, elements.why_not)


def _history(tensor: Tensor) -> tuple[bool, str, str]:
    """requires_grad, grad_fn's name and what is wrong with it: what the properties would say, but a
    stale view's history is not made afresh (see autograd.inplace.regenerate)."""
    base, fn, version = tensor._base, tensor._fn, tensor._storage.version
    name = "" if fn is None else str(fn.op.node_name)
    if base is None or not (tensor._rg or base._rg):
        return tensor._rg, name, ""
    if version < 0 or tensor._seen in (version, ~version, CONSTANT):
        return tensor._rg, name, ""
    try:
        check_view(tensor, "its base or another view of its base has been modified inplace")
    except GraphError as error:
        return True, name, str(error)
    return (True, "AsStridedBackward0", "") if base._rg else (tensor._rg, name, "")


def jsonable(value: Any) -> Any:
    """A fact as JSON has it."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, (list, tuple)):
        return [jsonable(each) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in fields(value)}
    return value
