"""Arrays: tensors that behave as the array API standard says, where PyTorch's do otherwise.

Three things differ: ``size`` is a number, operators promote by dtypes alone (an array without dims
has a say like any other), and mixed unsigned integers have a common dtype. An ``Array`` is a Tensor
all the same: modules, optimizers and ops take it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.array_api.types import beside_number, common_dtype
from antorcha.errors import ArgumentError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor, bare
from antorcha.tensor import indexing
from antorcha.tensor.create import tensor
from antorcha.tensor.subclass import as_subclass, disabled_torch_function

SCALARS = (bool, int, float, complex)


class Array(Tensor):
    """A tensor with the operators and attributes of the array API standard.

    See https://data-apis.org/array-api/latest/API_specification/array_object.html.

    >>> from antorcha import array_api as xp
    >>> (xp.asarray([1, 2, 3]) + 0.5).size
    3
    """

    __slots__ = ()
    __torch_function__ = classmethod(disabled_torch_function)

    @property
    def size(self) -> int:  # type: ignore[override]  # a method of Tensor
        """How many elements there are."""
        return self._layout.numel

    @property
    def T(self) -> Array:
        """The transpose of a matrix."""
        if self._layout.ndim != 2:
            raise ArgumentError(
                f"T: an array of 2 dims is wanted, not {self._layout.ndim}; use .mT"
            )
        return wrapped(plain(self).T)

    @property
    def mT(self) -> Array:
        """The transposes of a stack of matrices."""
        return wrapped(plain(self).mT)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
        """The array on another device."""
        if stream is not None:
            raise ArgumentError("to_device: streams are those of a GPU; leave stream= out")
        return wrapped(plain(self).to(device))

    def __getitem__(self, index: Any) -> Array:
        key, turned = _forward(index, self._layout.shape)
        if isinstance(key, Tensor) and _chooses_nothing(key._layout, self._layout.shape):
            shape = (0, *self._layout.shape[key._layout.ndim :])
            return wrapped(T.empty(shape, dtype=self._layout.dtype, device=self._layout.device))
        return wrapped((T.flip(plain(self), turned) if turned else plain(self))[key])

    def __setitem__(self, index: Any, value: Any) -> None:
        value = plain(value) if isinstance(value, Tensor) else value
        key, turned = _forward(index, self._layout.shape)
        if not turned:
            indexing.setitem(plain(self), key, value)
            return
        other = T.flip(plain(self), turned)
        other[key] = value
        T.copy_(plain(self), T.flip(other, turned))


def _forward(index: Any, shape: Sequence[int]) -> tuple[Any, tuple[int, ...]]:
    """The index with all its slices in forward order, and the dims that are to be flipped first."""
    items = index if isinstance(index, tuple) else (index,)
    items = tuple([plain(each) if isinstance(each, Tensor) else each for each in items])
    if not any([isinstance(each, slice) and (each.step or 1) < 0 for each in items]):
        return items if isinstance(index, tuple) else items[0], ()
    taken = [_dims_taken(each) for each in items]
    key: list[Any] = []
    turned: list[int] = []
    dim = 0
    for item, count in zip(items, taken, strict=True):
        if item is Ellipsis:
            count = len(shape) - sum(taken)
        if isinstance(item, slice) and (item.step or 1) < 0:
            places = range(*item.indices(shape[dim]))
            first = shape[dim] - 1 - places.start
            item = slice(first, first + len(places) * -places.step, -places.step)
            turned.append(dim)
        key.append(item)
        dim += count
    return tuple(key), tuple(turned)


def _chooses_nothing(mask: Any, shape: Sequence[int]) -> bool:
    """Is it a mask of no elements, of the array's sizes or 0? (PyTorch wants the array's.)"""
    if mask.dtype.kind != "b" or mask.numel or mask.ndim > len(shape):
        return False
    return all([n in (m, 0) for n, m in zip(mask.shape, shape, strict=False)])


def _dims_taken(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    mask = isinstance(item, Tensor) and item._layout.dtype.kind == "b"
    return item._layout.ndim if mask else 1


def plain(array: Tensor) -> Tensor:
    """The same elements as a Tensor, which machine code serves."""
    if type(array) is Tensor:
        return array
    if array._rg or array._base is not None:
        result: Tensor = as_subclass(array, Tensor)
        return result
    return bare(array._layout, array._storage, array._offset)


def wrapped(tensor: Tensor) -> Array:
    """The same elements as an Array."""
    return as_subclass(tensor, Array)  # type: ignore[no-any-return]


def like(result: Any, *given: Any) -> Any:
    """Results as Arrays, if one of the operands is one."""
    if not any([type(each) is Array for each in given]):
        return result
    if isinstance(result, Tensor):
        return wrapped(result)
    items = [wrapped(each) for each in result]
    return type(result)(*items) if hasattr(result, "_fields") else tuple(items)


def operands(name: str, *given: Any) -> list[Any]:
    """Arrays in their common dtype, as Tensors; Python numbers as they are."""
    found: list[Any] = []
    for each in given:
        if isinstance(each, Tensor):
            found.append(plain(each))
        elif type(each) in SCALARS:
            found.append(each)
        else:
            raise ArgumentError(
                f"{name}: an array or a number is wanted, not {type(each).__name__}"
            )
    tensors = [each for each in found if isinstance(each, Tensor)]
    if not tensors:
        raise ArgumentError(f"{name}: an array is wanted among the operands")
    dtype = tensors[0]._layout.dtype
    for each in tensors[1:]:
        if each._layout.dtype is not dtype:
            dtype = common_dtype(dtype, each._layout.dtype)
    return [
        T.to_dtype(each, dtype) if isinstance(each, Tensor) and each._layout.dtype is not dtype
        else each for each in found
    ]  # fmt: skip


def axes_of(axis: Any) -> Any:
    """``axis`` as ``dim``: None, a number, or a tuple of them."""
    return tuple(axis) if isinstance(axis, (list, tuple)) else axis


def _operator(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, (Tensor, *SCALARS)):
            return NotImplemented
        return function(self, other)

    method.__name__ = name
    return method


def _reflected(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, (Tensor, *SCALARS)):
            return NotImplemented
        if isinstance(other, Tensor):
            return function(other, self)
        return like(function(number(other, self), plain(self)), self)

    method.__name__ = name
    return method


def number(value: Any, beside: Tensor) -> Tensor:
    """A Python number as an array of no dims, in the dtype that it has beside an array."""
    dtype = beside_number(beside._layout.dtype, value)
    return tensor(value, dtype=dtype, device=beside._layout.device)


def _in_place(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, (Tensor, *SCALARS)):
            return NotImplemented
        result = function(self, other)
        if result._layout.dtype is not self._layout.dtype:
            raise ArgumentError(
                f"{name}: a result of {result._layout.dtype} does not go into an array of "
                f"{self._layout.dtype}"
            )
        if result._layout.shape != self._layout.shape:
            raise ArgumentError(
                f"{name}: a result of shape {tuple(result._layout.shape)} does not go into an "
                f"array of shape {tuple(self._layout.shape)}"
            )
        T.copy_(plain(self), plain(result))
        return self

    method.__name__ = name
    return method


def bind_operators(
    binary: dict[str, Callable[..., Any]], unary: dict[str, Callable[..., Any]],
    compare: Sequence[str],
) -> None:  # fmt: skip
    """Gives Array the operators, by the names of their methods."""
    for name, function in binary.items():
        setattr(Array, f"__{name}__", _operator(f"__{name}__", function))
        if name not in compare:
            setattr(Array, f"__r{name}__", _reflected(f"__r{name}__", function))
            setattr(Array, f"__i{name}__", _in_place(f"__i{name}__", function))
    for name, function in unary.items():
        setattr(Array, f"__{name}__", function)
    Array.__hash__ = Tensor.__hash__  # type: ignore[method-assign]
