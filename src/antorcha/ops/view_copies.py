"""What a view op takes as a copy (``permute_copy``), and copies with other elements in the place of
a view (``slice_scatter``). Both are made of the view's record."""

from __future__ import annotations

from typing import Any as _Any

from antorcha.core.shapes import may_overlap
from antorcha.errors import ShapeError
from antorcha.ops import complexes, slices, splits, views
from antorcha.ops.kinds.concatenation import Copy, Pieces, plan_pieces
from antorcha.ops.kinds.kernel import plan_view
from antorcha.ops.kinds.params import parameters
from antorcha.ops.kinds.record import Composite, Op, T, composite
from antorcha.ops.kinds.types import Any, Dim, Int, OptInt, Shape, Tensor
from antorcha.runtime.memory import layout as L
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor as TensorType

# ----------------------------------------------------------------------------- views as copies
COPIED = {
    "alias": slices.alias, "as_strided": slices.as_strided, "detach": slices.alias,
    "diagonal": slices.diagonal, "expand": views.expand, "permute": views.permute,
    "select": slices.select, "slice": slices.slice, "split": splits.split_parts,
    "split_with_sizes": splits.split_with_sizes, "squeeze": views.squeeze, "t": views.t,
    "transpose": views.transpose, "unbind": splits.unbind, "unfold": slices.unfold,
    "unsqueeze": views.unsqueeze, "view_as_complex": complexes.view_as_complex,
    "view_as_real": complexes.view_as_real,
}  # fmt: skip
"""The views that PyTorch has a copying form of, and their records."""


def copying(name: str, view: Op) -> Op:
    """The form of a view that copies, ``<name>_copy``. Where the view is planned from a layout
    alone, a kernel reads the elements; else the view is cloned."""

    def elements(input: Layout, *args: _Any) -> Pieces:
        shape, strides, delta = view.apply_fn([input, *args])
        out = L.contiguous(tuple(shape), input.dtype, input.device)
        return Pieces(out, lambda out: [Copy(0, out.shape, tuple(strides), delta, out.strides, 0)])

    def clones(input: TensorType, *args: _Any) -> _Any:
        parts = view(input, *args)
        if isinstance(parts, tuple):
            return tuple([T.clone(part, memory_format="contiguous") for part in parts])
        return T.clone(parts, memory_format="contiguous")

    reads = view.planner is plan_view
    fn: _Any = elements if reads else clones
    fn.__doc__ = f"The elements that ``{name}`` takes, as a copy."
    fn.parameters = parameters(view.fn)
    options: dict[str, _Any] = {"name": f"{name}_copy", "method": False, "page": False}
    op: Op
    if reads:
        op = Op(fn, plan_pieces, node=f"{view.node_name}_copy", **options)
        op.derivative(view.rule.fn)  # type: ignore[union-attr]
        op.batches(lambda batch, run, *args: clones(*args))
    else:
        op = Composite(fn, **options)
    op.sample_functions += view.sample_functions
    return op


for _name, _view in COPIED.items():
    _copy = copying(_name, _view)
    if _name == "detach":
        _copy.has_no_derivative()
        _copy.batches(lambda batch, run, input: T.clone(input.detach()))


def in_dtype(op: Op, args: tuple[_Any, ...], kwargs: dict[str, _Any]) -> _Any:
    """``view_copy`` takes a dtype, too."""
    seen = views.in_dtype(op, args, kwargs)
    return seen if seen is NotImplemented else T.clone(seen, memory_format="contiguous")


@composite(method=False, page=False, other_form=in_dtype)
def view_copy(input: Tensor, size: Shape):
    """The elements with another shape, or as numbers of another dtype, as a copy.

    >>> torch.view_copy(torch.zeros(2, 3), (3, 2)).shape
    torch.Size([3, 2])
    """
    result = T.reshape(input, size)
    shared = result._storage is input._storage
    return T.clone(result, memory_format="contiguous") if shared else result


@view_copy.samples
def _(make):
    yield make(3, 4), (2, 6)
    yield make(3, 4).t(), (-1,)


@composite()
def narrow_copy(input: Tensor, dim: Int, start: Any, length: Int):
    """The elements that ``narrow`` takes, as a copy.

    >>> torch.narrow_copy(torch.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    layout = input._layout
    if dim >= layout.ndim:  # (PyTorch refuses it otherwise than a dim that is too low)
        raise ShapeError(
            f"narrow_copy: Expected dim < {layout.ndim}, got {dim} for shape {tuple(layout.shape)}"
        )
    return T.clone(T.narrow(input, dim, start, length), memory_format="contiguous")


@narrow_copy.samples
def _(make):
    yield make(3, 4), 1, 1, 2
    yield (make(3, 4), 2, 0, 1), {}, RuntimeError, "Expected dim < 2"


# ---------------------------------------------------------------- other elements in a view's place
def scattering(view: Op) -> Composite:
    """The op that copies a tensor with the elements of another where ``view`` looks."""

    def fn(input: TensorType, src: TensorType, *args: _Any) -> _Any:
        if type(src) is not type(input):  # under vmap: if one is an example, both must be
            input = T.where(T.any(T.isnan(src)), input, input)
        result = _clone_as_it_lies(input)
        part = view(result, *args)
        if part._layout.shape != src._layout.shape:
            raise ShapeError(
                f"{op.name}: expected src to have a size equal to the slice of self. src size = "
                f"{list(src._layout.shape)}, slice size = {list(part._layout.shape)}"
            )
        T.copy_(part, src)
        return result

    first, *rest = parameters(view.fn)
    fn.__doc__ = f"A copy of ``input`` with the elements of ``src`` where ``{view.name}`` looks."
    fn.parameters = [first, ("src", "Tensor", *first[2:]), *rest]  # type: ignore[attr-defined]
    op = Composite(fn, name=f"{view.name}_scatter", out=view is slices.slice)
    op.upgradable = False  # machine code would not record the write
    return op


def _clone_as_it_lies(input: TensorType) -> _Any:
    """A clone with the strides and the offset of ``input``, so that strides mean in it what they
    mean in ``input``."""
    layout = input._layout
    if may_overlap(layout.shape, layout.strides):
        return T.clone(input)
    if layout.contiguous and not input._offset:
        return T.clone(input, memory_format="contiguous")
    count = input._storage.nbytes // layout.itemsize
    whole = T.clone(T.as_strided(input, (count,), (1,), 0))
    return T.as_strided(whole, tuple(layout.shape), layout.strides, input._offset)


as_strided_scatter, diagonal_scatter, select_scatter, slice_scatter = [
    scattering(each) for each in (slices.as_strided, slices.diagonal, slices.select, slices.slice)
]


@composite(out=False)
def slice_inverse(
    input: Tensor, src: Tensor, dim: Dim = 0, start: OptInt = None, end: OptInt = None,
    step: Int = 1,
):  # fmt: skip
    """The tensor ``src`` of which ``input`` is a slice: a view of the storage of ``input``."""
    layout = src._layout
    return T.as_strided(input, tuple(layout.shape), layout.strides, src._offset)


@as_strided_scatter.samples
def _(make):
    yield make(3, 4), make(2, 2), (2, 2), (4, 1), 1
    yield (make(3, 4), make(2), (2, 2), (4, 1)), {}, RuntimeError, "size equal to the slice"


@diagonal_scatter.samples
def _(make):
    yield make(3, 4), make(3)
    yield make(2, 3, 4), make(3, 2), 1, 0, 2


@select_scatter.samples
def _(make):
    yield make(3, 4), make(4), 0, 1
    yield (make(3, 4), make(3), 0, 1), {}, RuntimeError, "size equal to the slice"


@slice_scatter.samples
def _(make):
    yield make(5, 4), make(2, 4), 0, 1, 4, 2
    yield make(5, 4), make(5, 2), 1, None, 2


# ------------------------------------------------------------------------------ unsafe splits
def unsafe(name: str, split: Op) -> Composite:
    """The form of a split, ``unsafe_<name>``, whose parts are not tied to the whole: a write to one
    of them is not written into the history of the others."""

    def fn(input: TensorType, *args: _Any) -> _Any:
        parts = split(input, *args)
        for part in parts:
            part._base = None
        return parts

    fn.__doc__ = f"``{name}`` whose parts may be written to if nothing reads the whole again."
    fn.parameters = parameters(split.fn)  # type: ignore[attr-defined]
    op = Composite(fn, name=f"unsafe_{name}", out=name != "chunk", page=False)
    op.upgradable = False  # machine code would make views of the whole
    op.sample_functions += split.sample_functions
    return op


unsafe("chunk", splits.chunk)
unsafe("split", splits.split_parts)
unsafe("split_with_sizes", splits.split_with_sizes)
