"""From a list of samples to one batch: ``default_collate``, and ``default_convert`` for one sample.

Samples are trees: mappings, named tuples and sequences of tensors, arrays, numbers and strings. A
batch is the same tree with a stacked tensor at each leaf. What a leaf is, and how its kind is
stacked, is told by `default_collate_fn_map`, which users may extend in place.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from antorcha.core import dtypes
from antorcha.errors import ArgumentError, ShapeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.create import as_tensor, tensor

__all__ = [
    "collate", "default_collate", "default_collate_err_msg_format", "default_collate_fn_map",
    "default_convert", "np_str_obj_array_pattern",
]  # fmt: skip

Kinds = dict[Any, Callable[..., Any]]
"""A type, or a tuple of types, -> the function that collates a batch of them."""

np_str_obj_array_pattern = re.compile("[SaUO]")  # in the dtypes of arrays that no tensor can hold
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def default_collate(batch: Any) -> Any:
    """Stacks a list of samples into one batch, leaf by leaf.

    Tensors, arrays and numbers become a tensor with a new first dimension (Python floats become
    float64); strings and bytes stay a list; mappings, named tuples and sequences of them keep
    their form (a tuple becomes a list).

    >>> torch.utils.data.default_collate([(0, "a"), (1, "b")])
    [tensor([0, 1]), ('a', 'b')]
    >>> torch.utils.data.default_collate([{"x": 0.5}, {"x": 1.5}])
    {'x': tensor([0.5000, 1.5000], dtype=torch.float64)}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data: Any) -> Any:
    """Makes tensors of the arrays in a sample, and leaves all else as it is.

    >>> import numpy
    >>> torch.utils.data.default_convert({"x": numpy.array([0, 1]), "name": "a"})
    {'x': tensor([0, 1]), 'name': 'a'}
    """
    kind = type(data)
    if isinstance(data, Tensor):
        return data
    if kind.__module__ == "numpy" and kind.__name__ not in ("str_", "string_"):
        is_text = kind.__name__ == "ndarray" and _is_text(data)
        return data if is_text else as_tensor(data)
    if isinstance(data, Mapping):
        return _mapping_like(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple):
        parts = [default_convert(part) for part in data]
        return kind(*parts) if hasattr(data, "_fields") else parts
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _sequence_like(data, [default_convert(part) for part in data])
    return data


def collate(batch: Any, *, collate_fn_map: Kinds | None = None) -> Any:
    """Stacks a list of samples, with a table of what to do for each kind of leaf.

    Args:
        batch: samples of one form; the first decides which.
        collate_fn_map: element type (or tuple of types) -> function of the batch, and of this map
            under its own name. The exact type is looked up first, then the first entry that the
            element is an instance of.
    """
    first = batch[0]
    found = _leaf_function(first, collate_fn_map or {})
    if found is not None:
        return found(batch, collate_fn_map=collate_fn_map)

    def inner(samples: Any) -> Any:
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        content = {key: inner([sample[key] for sample in batch]) for key in first}
        return _mapping_like(first, content)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(inner(column) for column in zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise ShapeError(
                "each element in list of batch should be of equal size", reason="samples"
            )
        parts = [inner(column) for column in zip(*batch)]
        return parts if isinstance(first, tuple) else _sequence_like(first, parts)
    raise ArgumentError(default_collate_err_msg_format.format(type(first)))


def pinned(data: Any) -> Any:
    """A batch with its tensors in pinned memory, which a GPU copies from by itself; what has a
    method ``pin_memory`` says how."""
    if isinstance(data, (str, bytes)):
        return data
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, Mapping):
        return _mapping_like(data, {key: pinned(value) for key, value in data.items()})
    if isinstance(data, tuple):
        parts = [pinned(part) for part in data]
        return type(data)(*parts) if hasattr(data, "_fields") else type(data)(parts)
    if isinstance(data, Sequence):
        return _sequence_like(data, [pinned(part) for part in data])
    return data


def _leaf_function(first: Any, kinds: Kinds) -> Callable[..., Any] | None:
    found = kinds.get(type(first))
    if found is None:
        found = next((fn for kind, fn in kinds.items() if isinstance(first, kind)), None)
    return found


def _mapping_like(model: Any, content: dict[Any, Any]) -> Any:
    """The content in a mapping of the model's type and extra properties; else the dict."""
    try:
        if isinstance(model, MutableMapping):
            clone = copy.copy(model)
            clone.update(content)
            return clone
        return type(model)(content)
    except TypeError:  # it has no copy, no update, or no constructor from a dict
        return content


def _sequence_like(model: Any, content: list[Any]) -> Any:
    """The content in a sequence of the model's type and extra properties; else the list."""
    try:
        if isinstance(model, MutableSequence):
            clone = copy.copy(model)
            for i, part in enumerate(content):
                clone[i] = part
            return clone
        return type(model)(content)
    except TypeError:  # it has no copy or no constructor from a list (range), or is typed (array)
        return content


def _is_text(array: Any) -> bool:
    """Does an array hold strings or objects? No tensor does."""
    return np_str_obj_array_pattern.search(array.dtype.str) is not None


# ---- the leaves ----------------------------------------------------------------------------------


def collate_tensor_fn(batch: Any, *, collate_fn_map: Kinds | None = None) -> Any:
    """Stacks tensors of one shape."""
    return T.stack(batch, 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Kinds | None = None) -> Any:
    """Stacks arrays of one shape."""
    if _is_text(batch[0]):
        raise ArgumentError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: Kinds | None = None) -> Any:
    """A tensor of NumPy's scalars, in their dtype."""
    if all(type(number) is type(batch[0]) for number in batch):
        return as_tensor(np.array(batch))
    return as_tensor(batch, dtype=_common_dtype(batch))


def _common_dtype(numbers: Any) -> dtypes.dtype:
    plain = {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.get_default_dtype()}
    found = [plain.get(type(number)) or dtypes.from_numpy(number.dtype) for number in numbers]
    common = found[0]
    for each in found:
        common = dtypes.promote_types(common, each)
    return common


def collate_float_fn(batch: Any, *, collate_fn_map: Kinds | None = None) -> Any:
    """A float64 tensor of Python floats."""
    return tensor(batch, dtype=dtypes.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Kinds | None = None) -> Any:
    """A tensor of Python integers."""
    return tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: Kinds | None = None) -> Any:
    """The strings as they are."""
    return batch


default_collate_fn_map: Kinds = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}
"""What ``default_collate`` does with each kind of leaf; may be extended in place."""
