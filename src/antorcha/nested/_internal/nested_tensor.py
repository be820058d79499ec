"""`NestedTensor`: a batch of tensors of different sizes, packed one after the other.

A subclass of Tensor by ``__torch_function__``: the tensor itself is the packed elements, the shapes
of the components are an attribute. Functions of single elements, and those that work along dims
which all components share at the end, run once over all elements; others run component by
component.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.core.shapes import Size
from antorcha.errors import MissingFeature, OutOfRange, ShapeError
from antorcha.nested._internal import dims
from antorcha.nested._internal.packing import NestedInt, Shape, join, pieces, ragged_dims
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor import layouts
from antorcha.tensor.create import tensor
from antorcha.tensor.subclass import DisableTorchFunctionSubclass

__all__ = ["NestedTensor"]


class NestedTensor(Tensor):
    """A batch of tensors that differ in sizes; made by ``torch.nested.nested_tensor`` and its kin.

    The first dim counts the components. With ``torch.jagged`` one of the others is ragged, and its
    size is a name (``j1``); with ``torch.strided`` any may differ.
    """

    _nested_shapes: tuple[Shape, ...]
    _nested_layout: Any
    _nested_size: NestedInt
    _nested_dim: int  # which dim of the batch is ragged
    _nested_lengths: Tensor | None

    # ---- what it is
    @property
    def shape(self) -> Size:
        sizes: Size = self.size()
        return sizes

    @property
    def is_nested(self) -> bool:
        return True

    @property
    def layout(self) -> Any:
        return self._nested_layout

    @property
    def ndim(self) -> int:
        return self.dim()

    def dim(self) -> int:
        return 1 + (len(self._nested_shapes[0]) if self._nested_shapes else 0)

    def __len__(self) -> int:
        return len(self._nested_shapes)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.unbind())

    def size(self, dim: int | None = None) -> Any:
        """All sizes, or that of a dim; a ragged one of the strided layout has none."""
        if dim is not None:
            dim = dims.wrapped(dim, self.dim())
            ragged = self._nested_layout is layouts.strided and dim - 1 in ragged_dims(
                self._nested_shapes
            )
            if dim and ragged:
                raise ShapeError(f"Given dimension {dim} is irregular and does not have a size.")
            return self._all_sizes()[dim]
        if self._nested_layout is layouts.strided:
            raise ShapeError(
                "a nested tensor of the strided layout has no sizes as a whole; ask for one: "
                "size(dim)"
            )
        return tuple.__new__(Size, self._all_sizes())

    def _all_sizes(self) -> list[int]:
        sizes = [len(self), *(self._nested_shapes[0] if self._nested_shapes else ())]
        if self._nested_layout is layouts.jagged:
            sizes[self._nested_dim] = self._nested_size
        return sizes

    def stride(self, dim: int | None = None) -> Any:
        raise ShapeError("a nested tensor has no strides; its components do: unbind()")

    def is_contiguous(self, *args: Any, **kwargs: Any) -> bool:
        return True

    def contiguous(self, *args: Any, **kwargs: Any) -> NestedTensor:
        return self

    # ---- what is in it
    def _packed(self) -> Tensor:
        """All elements, in the same graph, as a plain tensor of one dim."""
        with DisableTorchFunctionSubclass():
            return self.as_subclass(Tensor)  # type: ignore[no-any-return]

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The components: views of this tensor."""
        if dim:
            raise ShapeError("NestedTensor can only be unbound along dimension 0 ")
        return tuple(pieces(self._packed(), self._nested_shapes))

    def values(self) -> Tensor:
        """The components along the ragged dim, one after the other (strided: all elements)."""
        packed = self._packed()
        if self._nested_layout is layouts.strided:
            return packed
        if self._nested_dim == 1:
            return packed.view(-1, *self._nested_shapes[0][1:])
        return T.cat(self.unbind(), self._nested_dim - 1)  # type: ignore[no-any-return]

    def offsets(self) -> Tensor:
        """Where each component begins along the ragged dim, and the end."""
        steps = [shape[self._nested_dim - 1] for shape in self._nested_shapes]
        ends = [0]
        for step in steps:
            ends.append(ends[-1] + step)
        return tensor(ends, dtype=dtypes.int64, device=self.device)

    def lengths(self) -> Tensor | None:
        """The components' lengths, where they were given apart from the offsets."""
        return self._nested_lengths

    @property
    def _min_seqlen(self) -> int:
        return min([shape[self._nested_dim - 1] for shape in self._nested_shapes])

    @property
    def _max_seqlen(self) -> int:
        return max([shape[self._nested_dim - 1] for shape in self._nested_shapes])

    def _nested_tensor_size(self) -> Tensor:
        return tensor([list(s) for s in self._nested_shapes], dtype=dtypes.int64)

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """A plain tensor, filled up with ``padding``: (B, the greatest size of each dim)."""
        most = [max([s[d] for s in self._nested_shapes]) for d in range(self.dim() - 1)]
        if output_size is not None and self._nested_layout is layouts.strided:
            wanted = list(output_size)[1:]
            if len(wanted) != len(most) or any(a < b for a, b in zip(wanted, most, strict=True)):
                raise ShapeError(
                    f"to_padded_tensor: output_size {tuple(output_size)} has no room for "
                    f"components of up to {tuple(most)}"
                )
            most = wanted
        elif output_size is not None:  # (PyTorch takes only the ragged size of it)
            most[self._nested_dim - 1] = list(output_size)[self._nested_dim]
        padded = [_pad_to(each, most, padding) for each in self.unbind()]
        return T.stack(padded)  # type: ignore[no-any-return]

    @property
    def grad(self) -> Tensor | None:
        """The gradient, nested as this tensor is."""
        found = _GRAD.__get__(self)
        return None if found is None else like(found, self)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        _GRAD.__set__(self, value)

    def __getitem__(self, index: Any) -> Any:
        first, *rest = index if isinstance(index, tuple) else (index,)
        if isinstance(first, slice) and first == slice(None):
            found = [each[tuple(rest)] for each in self.unbind()]
            return pack(found, self)
        if type(first) is not int:
            raise MissingFeature(f"NestedTensor[{first!r}]: only a component's number, or [:, ...]")
        if not -len(self) <= first < len(self):
            raise OutOfRange(f"index {first} is out of bounds for {len(self)} components")
        component = self.unbind()[first]
        return component[tuple(rest)] if rest else component

    def tolist(self) -> Any:
        return [each.tolist() for each in self.unbind()]

    def numpy(self, *, force: bool = False) -> Any:
        raise ShapeError("a nested tensor is no array; its components are: unbind()")

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        if self._nested_layout is layouts.strided:
            leaf = self.requires_grad and self.is_leaf
            parts = self.detach().unbind() if leaf else self.unbind()
            if leaf:
                parts = tuple([part.requires_grad_() for part in parts])
            lines = [f"  {part!r}".replace("\n", "\n  ") for part in parts]
            wanted = ", requires_grad=True" if leaf else ""
            return "nested_tensor([\n" + ",\n".join(lines) + f"\n]{wanted})"
        sizes = ", ".join(map(repr, self._all_sizes()))
        graph = f"grad_fn={self.grad_fn!r}, " if self.grad_fn is not None else ""
        if self.requires_grad and not graph:
            graph = "requires_grad=True, "
        return f"NestedTensor(size=({sizes}), offsets={self.offsets()!r}, {graph}contiguous=True)"

    # ---- functions
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "").strip("_")
        first = next(dims.nested_in((args, kwargs), NestedTensor))
        if name in dims.ITSELF:
            with DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        if name == "unbind":
            return first.unbind(*args[1:], **kwargs)
        if name in ("cat", "concat") and dims.along_batch(args, kwargs):
            return _joined(args[0] if args else kwargs["tensors"])
        if name in dims.PACKED:
            return like(func(*_packed_of(args), **_packed_of(kwargs)), first)
        found = dims.whole(name, func, first, args, kwargs, NestedTensor)
        if found is not NotImplemented:
            return found
        return dims.each(name, func, first, args, kwargs, pack, NestedTensor)


_GRAD: Any = Tensor.grad


def _joined(tensors: Sequence[Any]) -> NestedTensor:
    """Batches one after the other."""
    if any(each._nested_layout is layouts.jagged for each in tensors):
        raise ShapeError("cat(): not supported for NestedTensor on dim=0")
    return from_tensors([part for each in tensors for part in each.unbind()], layouts.strided)


def _packed_of(value: Any) -> Any:
    return dims.mapped(value, NestedTensor, NestedTensor._packed)


def _pad_to(tensor: Tensor, sizes: Sequence[int], padding: float) -> Tensor:
    amounts: list[int] = []
    for have, want in zip(reversed(tensor.shape), reversed(sizes), strict=True):
        amounts += [0, want - have]
    return T.constant_pad_nd(tensor, amounts, padding)  # type: ignore[no-any-return]


def wrap(
    packed: Tensor, shapes: Sequence[Shape], layout: Any, size: NestedInt | None = None,
    ragged: int = 1, lengths: Tensor | None = None,
) -> NestedTensor:  # fmt: skip
    """A nested tensor over elements that are packed already."""
    result: NestedTensor = packed.as_subclass(NestedTensor)
    result._nested_shapes = tuple([tuple(s) for s in shapes])
    result._nested_layout, result._nested_dim = layout, ragged
    result._nested_size, result._nested_lengths = size or NestedInt(), lengths
    return result


def like(packed: Tensor, other: NestedTensor) -> NestedTensor:
    """The same with other elements."""
    return wrap(
        packed, other._nested_shapes, other._nested_layout, other._nested_size, other._nested_dim,
        other._nested_lengths,
    )  # fmt: skip


def pack(tensors: Sequence[Tensor], other: NestedTensor) -> NestedTensor | Tensor:
    """Results of components as a nested tensor of the same kind; a plain one where a jagged
    batch has no ragged dim any more."""
    shapes = [tuple(each.shape) for each in tensors]
    before = [s[other._nested_dim - 1] for s in other._nested_shapes]
    jagged = other._nested_layout is layouts.jagged
    ragged = other._nested_dim
    if jagged:
        wanted = [d for d in range(len(shapes[0])) if [s[d] for s in shapes] == before]
        if not wanted:
            if ragged_dims(shapes):
                raise ShapeError("a jagged nested tensor has one ragged dim, and keeps its sizes")
            return T.stack(list(tensors))  # type: ignore[no-any-return]
        ragged = wanted[0] + 1 if ragged - 1 not in wanted else ragged
        if set(ragged_dims(shapes)) - {ragged - 1}:
            raise ShapeError(
                f"a jagged nested tensor has one ragged dim; components of {shapes} have more"
            )
    return wrap(join(tensors), shapes, other._nested_layout, other._nested_size, ragged)


def from_tensors(tensors: Sequence[Tensor], layout: Any) -> NestedTensor:
    """Components copied to a nested tensor, in their graph."""
    shapes = [tuple(each.shape) for each in tensors]
    if layout is layouts.jagged:
        ragged = ragged_dims(shapes)
        if len(ragged) > 1 or not shapes or not shapes[0]:
            raise ShapeError(
                "Cannot represent given tensor list as a nested tensor with the jagged layout. "
                "Note that the jagged layout only allows for a single ragged dimension. For "
                "example: (B, *, D_0, D_1, ..., D_N), with ragged * dim. The components are "
                f"{shapes}"
            )
        return wrap(join(tensors), shapes, layout, ragged=ragged[0] + 1 if ragged else 1)
    packed = join(tensors) if tensors else T.empty([0])
    return wrap(packed, shapes, layout)
