"""Making arrays, by the array API standard.

See https://data-apis.org/array-api/latest/API_specification/creation_functions.html.
"""

from __future__ import annotations

from typing import Any

from antorcha.array_api.arrays import Array, like, plain, wrapped
from antorcha.core.device import as_device
from antorcha.core.dtypes import get_default_dtype, int64
from antorcha.errors import ArgumentError, ValueRangeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor import dlpack, interop


def _shape(shape: Any) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
    """An array of numbers, nested lists of them, an array, or what has a buffer or DLPack.

    ``copy``: True always copies, False never, None where it must be.

    >>> xp.asarray([[1, 2], [3, 4]]).size
    4
    """
    if not isinstance(obj, Tensor):
        return wrapped(_of_data(obj, dtype, device, copy))
    other = dtype is not None and dtype is not obj._layout.dtype
    away = device is not None and as_device(device) is not obj._layout.device
    if copy is False and (other or away):
        raise ValueRangeError("asarray: another dtype or device needs a copy, and copy=False")
    result = plain(obj)
    result = T.to_dtype(result, dtype) if other else result
    result = result.to(as_device(device)) if away else result
    return wrapped(T.clone(result) if copy and not (other or away) else result)


def _of_data(obj: Any, dtype: Any, device: Any, copy: bool | None) -> Tensor:
    if isinstance(obj, (list, tuple)):
        obj = _without_arrays(obj)
    if isinstance(obj, (bool, int, float, complex, list, tuple)) and copy is False:
        raise ValueRangeError("asarray: Python's numbers are copied, and copy=False")
    result: Tensor = interop.asarray(obj, dtype=dtype, device=device, copy=copy)
    return result


def _without_arrays(value: Any) -> Any:
    """Nested lists with numbers in the place of arrays of no dims."""
    if isinstance(value, (list, tuple)):
        return [_without_arrays(each) for each in value]
    return value.tolist() if isinstance(value, Tensor) else value


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """An array over the memory of any that has ``__dlpack__``.

    >>> xp.from_dlpack(xp.ones(3)).size
    3
    """
    return wrapped(dlpack.from_dlpack(x, device=device, copy=copy))


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Any:
    """Numbers from ``start`` on, by ``step``, before ``stop``.

    >>> xp.arange(3)
    Array([0, 1, 2])
    """
    first, last = (0, start) if stop is None else (start, stop)
    if dtype is None:
        whole = all([isinstance(each, int) for each in (first, last, step)])
        dtype = int64 if whole else get_default_dtype()
    if (last - first) * step <= 0:
        last = first
    return wrapped(T.arange(first, last, step, dtype=dtype, device=device))


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None,
    endpoint: bool = True,
) -> Any:  # fmt: skip
    """``num`` numbers at equal distances, from ``start`` to ``stop``.

    >>> xp.linspace(0, 1, 5, endpoint=False)
    Array([0.0000, 0.2000, 0.4000, 0.6000, 0.8000])
    """
    if endpoint:
        return wrapped(T.linspace(start, stop, num, dtype=dtype, device=device))
    return wrapped(T.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num])


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Any:
    """A matrix of zeros with ones on the ``k``-th diagonal.

    >>> xp.eye(2, 3, k=1)
    Array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    columns = n_rows if n_cols is None else n_cols
    result = T.zeros((n_rows, columns), dtype=dtype, device=device)
    if -n_rows < k < columns:
        T.fill_(T.diagonal(result, k), 1)
    return wrapped(result)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of one number."""
    return wrapped(T.full(_shape(shape), fill_value, dtype=dtype, device=device))


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of whatever is in memory."""
    return wrapped(T.empty(_shape(shape), dtype=dtype, device=device))


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of zeros."""
    return wrapped(T.zeros(_shape(shape), dtype=dtype, device=device))


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of ones."""
    return wrapped(T.ones(_shape(shape), dtype=dtype, device=device))


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of one number, of the shape and dtype of another."""
    return like(T.full_like(plain(x), fill_value, dtype=dtype, device=device), x)


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of whatever is in memory, of the shape and dtype of another."""
    return like(T.empty_like(plain(x), dtype=dtype, device=device), x)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of zeros, of the shape and dtype of another."""
    return like(T.zeros_like(plain(x), dtype=dtype, device=device), x)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """An array of ones, of the shape and dtype of another."""
    return like(T.ones_like(plain(x), dtype=dtype, device=device), x)


def meshgrid(*arrays: Any, indexing: str = "xy") -> Any:
    """Coordinates of a grid, an array for each of the vectors.

    >>> xp.meshgrid(xp.arange(2), xp.arange(3))[0].shape
    torch.Size([3, 2])
    """
    if len({each._layout.dtype for each in arrays}) > 1:
        raise ArgumentError("meshgrid: the arrays have several dtypes; cast them to one")
    if len(arrays) < 2:
        return like(tuple([T.clone(plain(each)) for each in arrays]), *arrays)
    return like(tuple(T.meshgrid([plain(each) for each in arrays], indexing=indexing)), *arrays)


def tril(x: Any, /, *, k: int = 0) -> Any:
    """The lower triangles of a stack of matrices; zeros elsewhere."""
    return like(T.tril(plain(x), k), x)


def triu(x: Any, /, *, k: int = 0) -> Any:
    """The upper triangles of a stack of matrices; zeros elsewhere."""
    return like(T.triu(plain(x), k), x)


__all__ = [
    "Array", "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like",
    "linspace", "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip
