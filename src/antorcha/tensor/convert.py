"""Tensors to Python and NumPy: item, tolist, numpy, repr, truth, numbers, iteration, copies."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from antorcha.core import float8, modes
from antorcha.core.device import CPU, Device, as_device, backend
from antorcha.core.dtypes import BEYOND_NUMPY, FLOAT8, by_name
from antorcha.core.dtypes import dtype as DType
from antorcha.core.hooks import hooks
from antorcha.core.lazy import Array, lazy, np
from antorcha.errors import ArgumentError, DtypeError, GraphError
from antorcha.ops.kinds.params import to_bool, to_device, to_dtype
from antorcha.ops.kinds.record import T
from antorcha.runtime.call import tape
from antorcha.runtime.call.node import edge_of
from antorcha.runtime.memory import layout as L
from antorcha.runtime.tensor import Parameter, Tensor, bare
from antorcha.tensor import printing
from antorcha.tensor.methods import set_methods
from antorcha.tensor.storages import UntypedStorage
from antorcha.tensor.subclass import asking

inspection = lazy("antorcha.inspector.tensor.inspection", before_forks=False)
tensor_create = lazy("antorcha.tensor.create")


def to_array(tensor: Tensor) -> Array:
    """The elements as an array; shares memory where the device's memory is the host's."""
    if modes.busy:
        tape.spoil("contents are looked at")
    if modes.batched:
        hooks.check_contents(tensor)
    layout = tensor._layout
    return backend(layout.device).to_host(layout, tensor._storage, tensor._offset)


def item(self: Tensor) -> Any:
    """The only element as a Python number.

    Raises RuntimeError when there are more (or none).

    >>> torch.tensor([2.5]).item()
    2.5
    """
    if modes.busy and modes.profiled:
        return hooks.observe_call(_Watched("aten::item"), (self,), {}, _item, self)
    return _item(self)


class _Watched(NamedTuple):
    """What is written into a profile, though it is no op."""

    name: str


def _item(self: Tensor) -> Any:
    layout = self._layout
    if layout.numel != 1:
        raise GraphError(
            "a Tensor with {count} elements cannot be converted to Scalar: item() is for one "
            "element, this tensor has shape {0.shape}; tolist() gives them all",
            reason="item", op="item", operands=(layout,), count=layout.numel,
        )  # fmt: skip
    value = to_array(self).reshape(())[()]
    return float(value) if layout.dtype.name in BEYOND_NUMPY else value.item()


def tolist(self: Tensor) -> Any:
    """The elements as nested lists of Python numbers (a number for a 0-dim tensor)."""
    if modes.busy and modes.profiled:
        return hooks.observe_call(_Watched("tolist"), (self,), {}, _tolist, self)
    return _tolist(self)


def _tolist(self: Tensor) -> Any:
    array = to_array(self)
    if self._layout.dtype.name in BEYOND_NUMPY:
        array = array.astype(np.float32)
    return array.tolist()


def numpy(self: Tensor, *, force: bool = False) -> Array:
    """The tensor as a NumPy array that shares its memory.

    Raises RuntimeError for a tensor that requires gradients and TypeError for one that is not on
    the CPU; ``force=True`` detaches, and copies to the CPU, as needed.
    """
    if force:
        self = self.detach().cpu()
    elif self.requires_grad and modes.grad_enabled():
        raise GraphError(
            "Can't call numpy() on Tensor that requires grad. Use {fix} instead.",
            reason="numpy", op="numpy", fix="tensor.detach().numpy()",
        )  # fmt: skip
    layout = self._layout
    if not backend(layout.device).host_memory:
        raise ArgumentError(
            f"can't convert {layout.device} device type tensor to numpy. Use Tensor.cpu() to copy "
            "the tensor to host memory first."
        )
    if layout.dtype.name in BEYOND_NUMPY:
        name = "BFloat16" if layout.dtype.name == "bfloat16" else float8.scalar_type(layout.dtype)
        raise ArgumentError(
            "Got unsupported ScalarType {kind}: cast first, e.g. {fix}", reason="no array",
            op="numpy", operands=(layout,), kind=name, dtype=layout.dtype.name, fix="x.float()",
        )  # fmt: skip
    return to_array(self)


def _bool(self: Tensor) -> bool:
    layout = self._layout
    if layout.numel == 0:
        raise GraphError("Boolean value of Tensor with no values is ambiguous")
    if layout.numel > 1:
        raise GraphError(
            "Boolean value of Tensor with more than one value is ambiguous: use .any() or .all()",
            reason="truth", operands=(layout,), count=layout.numel,
        )  # fmt: skip
    return bool(item(self))


def _int(self: Tensor) -> int:
    return int(item(self))


def _float(self: Tensor) -> float:
    value = item(self)
    if isinstance(value, complex):
        if value.imag:
            raise DtypeError(f"value cannot be converted to type float without overflow: {value}")
        value = value.real
    return float(value)


def _index(self: Tensor) -> int:
    if self._layout.dtype.kind not in "iub" or self._layout.numel != 1:
        raise ArgumentError("only integer tensors of a single element can be converted to an index")
    return operator.index(int(item(self)))


def _len(self: Tensor) -> int:
    if self._layout.ndim == 0:
        raise ArgumentError("len() of a 0-d tensor", reason="no length")
    return int(self._layout.shape[0])


def _iter(self: Tensor) -> Iterator[Tensor]:
    if self._layout.ndim == 0:
        raise ArgumentError("iteration over a 0-d tensor", reason="no length")
    return iter(T.unbind(self))


def _reversed(self: Tensor) -> Tensor:
    return self if self._layout.ndim == 0 else T.flip(self, (0,))


def _contains(self: Tensor, element: Any) -> bool:
    if isinstance(element, (Tensor, bool, int, float, complex)):
        return bool(item(T.any(T.eq(self, element))))
    raise GraphError(
        f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
    )


def _repr(self: Tensor, *, tensor_contents: Any = None) -> str:
    if self._base is not None:
        edge_of(self)
    layout = self._layout
    device = layout.device
    meta = device.type == "meta"
    kind = type(self)
    plain = kind is Tensor or kind is Parameter
    text = printing.tensor_repr(
        _Shaped(layout.shape) if meta else to_array(self),
        dtype=layout.dtype,
        device="" if device is as_device(None) else str(device),
        grad_fn="" if self._fn is None else self._fn.op.node_name,
        requires_grad=self._rg,
        name="tensor" if plain else kind.__name__,
        is_meta=meta,
    )
    if not plain and isinstance(self, Parameter):
        text = f"Parameter({text})"
    return printing.parameter_repr(text) if issubclass(kind, Parameter) else text


def _repr_html(self: Tensor) -> str:
    """What a notebook shows: the short form of ``antorcha.inspect``, which a higher floor makes."""
    html: str = inspection.brief_html(self)
    return html


class _Shaped:
    """A shape and nothing to read: a meta tensor."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def read_edges(self, edgeitems: int | None) -> Array:
        raise GraphError("a meta tensor has no data")


def _format(self: Tensor, spec: str) -> str:
    if self._layout.ndim == 0 and self._layout.device.type != "meta" and type(self) is Tensor:
        return format(item(self), spec)
    return format(_repr(self), spec) if not spec else object.__format__(self, spec)


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor with another dtype and/or on another device; itself if it is so already.

    ``to(dtype)``, ``to(device)``, ``to(device, dtype)``, ``to(other)``; keywords ``dtype``,
    ``device``, ``non_blocking``, ``copy``, ``memory_format``.
    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html.
    """
    dtype, device = kwargs.pop("dtype", None), kwargs.pop("device", None)
    force = to_bool("to", "copy", kwargs.pop("copy", False))
    memory_format = kwargs.pop("memory_format", None)
    non_blocking = kwargs.pop("non_blocking", False)
    other = kwargs.pop("other", None)
    if kwargs:
        raise ArgumentError(f"to() got an unexpected keyword argument {next(iter(kwargs))!r}")
    flags = []
    for arg in args:
        if isinstance(arg, DType) or (isinstance(arg, type) and arg in (float, int, bool)):
            dtype = arg
        elif isinstance(arg, Tensor):
            other = arg
        elif isinstance(arg, bool) or (arg is None and (dtype or device)):
            flags.append(arg)
        elif isinstance(arg, (Device, str, int)) or arg is None:
            device = arg
        else:
            raise ArgumentError(
                "to() received an invalid combination of arguments: it takes a dtype, a device, "
                f"both, or a tensor, not {type(arg).__name__}"
            )
    force = force or (len(flags) > 1 and bool(flags[1]))
    layout = self._layout
    if other is not None:
        dtype, device = other._layout.dtype, other._layout.device
    want = layout.dtype if dtype is None else to_dtype("to", "dtype", dtype)
    where = layout.device if device is None else to_device("to", "device", device)
    result = self
    if where is not layout.device:
        if want is not layout.dtype and hasattr(backend(where), "check_dtype"):
            result = T.to_dtype(result, want)  # (a dtype that the device may lack)
        result = _to_device(result, where, non_blocking or bool(flags and flags[0]))
    if want is not result._layout.dtype:
        result = T.to_dtype(result, want)
    if memory_format is not None and memory_format != "preserve":
        result = T.contiguous(result, memory_format)
    if result is self and force:
        result = T.clone(self)
    return result


def _to_device(self: Tensor, device: Device, early: bool) -> Tensor:
    found: Tensor = T.to_device(self, device, True) if early else T.to_device(self, device)
    return found


def move(self: Tensor, device: Device) -> Tensor:
    """A copy on another device, outside of any graph."""
    layout = self._layout
    source, target = backend(layout.device), backend(device)
    result = L.contiguous(layout.shape, layout.dtype, device)
    if device.type == "meta":
        return bare(result, target.allocate(result.nbytes))
    if hasattr(target, "receive"):
        given = layout, self._storage, self._offset
        return bare(result, target.receive(source, *given, result, True))
    array = source.to_host(layout, self._storage, self._offset)
    return bare(result, target.from_host(array, result))


def _copied(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A tensor of a copy of the storage, which tensors that share it share in the copy, too."""
    layout = self._layout
    storage = UntypedStorage._of(self._storage, layout.device).__deepcopy__(memo)
    result = bare(layout, storage._storage, self._offset)
    return result if type(self) is Tensor else result.as_subclass(type(self))


def deepcopy_of(
    self: Tensor, memo: dict[int, Any], copy_values: Callable[[Any, dict[int, Any]], Tensor]
) -> Tensor:
    """What `copy.deepcopy` makes of a tensor: its values, its attributes and its gradient."""
    if self._fn is not None:
        raise GraphError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment: use {fix}.",
            reason="deep copy", fix="x.detach().clone()",
        )  # fmt: skip
    if id(self) in memo:
        return memo[id(self)]  # type: ignore[no-any-return]
    result = copy_values(self, memo)
    result._rg = self._rg
    memo[id(self)] = result
    if self.__dict__:
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
    if self._grad is not None:
        result._grad = copy.deepcopy(self._grad, memo)
    return result


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    return deepcopy_of(self, memo, _copied)


def rebuild(
    cls: type, array: Array, dtype: DType, strides: Any, rg: bool, rest: Any,
    device: Device | None = None,
) -> Tensor:  # fmt: skip
    """Unpickles a tensor."""
    result = tensor_create.from_array(array, dtype, CPU)
    if strides is not None:
        shaped = bare(L.layout(tuple(array.shape), strides, dtype, CPU), result._storage)
        storage = backend(CPU).allocate(shaped._layout.nbytes)
        shaped._storage = storage
        T.copy_(shaped, result)
        storage.version = 0
        result = shaped
    if device is not None:
        result = T.to_device(result, device)
    if cls is not Tensor:
        result = result.as_subclass(cls)
    result._rg = rg
    result.__dict__.update(rest)
    found: Tensor = result
    return found


def _reduce_ex(self: Tensor, protocol: Any) -> Any:
    layout = self._layout
    array = to_array(self)
    strides = None if layout.contiguous else tuple(T.clone(self.detach())._layout.strides)
    whole = np.ascontiguousarray(array).reshape(layout.shape)
    state = (type(self), whole, layout.dtype, strides, self.requires_grad, dict(self.__dict__))
    return rebuild, state if layout.device is CPU else (*state, layout.device)


_CASTS = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16",
    "long": "int64", "int": "int32", "short": "int16", "char": "int8", "byte": "uint8",
    "bool": "bool", "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip


def _caster(name: str) -> Any:
    wanted = by_name(name)

    def cast(self: Tensor, memory_format: Any = None) -> Tensor:
        if memory_format is None or memory_format == "preserve":
            return self if self._layout.dtype is wanted else T.to_dtype(self, wanted)
        return to(self, wanted, memory_format=memory_format)

    cast.__doc__ = f"The tensor as {wanted}; itself if it is so already."
    return cast


def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor on the CPU; itself if it is there already."""
    if memory_format is not None:
        return to(self, CPU, memory_format=memory_format)
    return self if self._layout.device is CPU else _to_device(self, CPU, False)


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, **_: Any) -> Tensor:
    """The tensor on a CUDA device (the current one if none is named)."""
    where = as_device("cuda" if device is None else device)
    return self if self._layout.device is where else _to_device(self, where, non_blocking)


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False, **_: Any) -> Any:
    """The type's name, as ``'torch.FloatTensor'``; with a dtype, the tensor converted to it."""
    if dtype is None:
        return type_name(self)
    if isinstance(dtype, str):
        found = [d for d, n in _TYPE_NAMES.items() if f"torch.{n}" == dtype]
        if not found:
            raise ArgumentError(f"type: invalid type: {dtype!r}")
        dtype = by_name(found[0])
    elif type(dtype).__name__ == "tensortype":  # torch.FloatTensor
        dtype = dtype.dtype
    return to(self, dtype)


_TYPE_NAMES = {
    "float32": "FloatTensor", "float64": "DoubleTensor", "float16": "HalfTensor",
    "bfloat16": "BFloat16Tensor", "int64": "LongTensor", "int32": "IntTensor",
    "int16": "ShortTensor", "int8": "CharTensor", "uint8": "ByteTensor", "bool": "BoolTensor",
    "complex64": "ComplexFloatTensor", "complex128": "ComplexDoubleTensor",
}  # fmt: skip


def type_name(self: Tensor) -> str:
    """As PyTorch names types: ``torch.FloatTensor``."""
    own = self._layout.dtype
    name = (
        f"{float8.scalar_type(own)}Tensor"
        if own.name in FLOAT8
        else _TYPE_NAMES.get(own.name, own.name)
    )
    where = self._layout.device.type
    return f"torch.{name}" if where == "cpu" else f"torch.{where}.{name}"


def bind_conversions() -> None:
    """Sets this file's methods on Tensor."""
    set_methods({
        "tolist": tolist, "numpy": numpy,
        "__complex__": lambda self: complex(item(self)), "__len__": _len,
        "__iter__": _iter, "__reversed__": _reversed, "__contains__": _contains,
        "__repr__": _repr, "_repr_html_": _repr_html, "__format__": _format,
        "to": to, "cpu": cpu, "cuda": cuda, "type": type_, "__deepcopy__": _deepcopy,
        "__reduce_ex__": _reduce_ex,
    })  # fmt: skip
    elements = {
        "item": item, "__bool__": _bool, "__int__": _int, "__float__": _float, "__index__": _index,
    }  # fmt: skip
    set_methods({name: asking(method, name) for name, method in elements.items()})
    Tensor.__array_priority__ = 1000  # type: ignore[attr-defined]
    set_methods({name: _caster(dtype) for name, dtype in _CASTS.items()})
