"""Moving a module to a device and casting it: each form applies one function to every tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from antorcha.core.device import as_device
from antorcha.core.dtypes import dtype as DType
from antorcha.errors import ArgumentError
from antorcha.ops.kinds.params import to_dtype
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor


class MovingMixin:
    """The part of Module that moves and casts its parameters and buffers."""

    if TYPE_CHECKING:

        def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any: ...

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Moves parameters and buffers to a device and/or casts them, in place; gives the module.

        ``to(device)``, ``to(dtype)``, ``to(device, dtype)``, ``to(tensor)``,
        ``to(memory_format=...)``. Only floating point and complex tensors are cast.

        >>> torch.nn.Linear(1, 1).to(torch.float64).weight.dtype
        torch.float64
        """
        dtype, device, memory_format = parse_to(args, kwargs)
        if dtype is not None and dtype.kind not in "fc":
            raise ArgumentError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )

        def convert(t: Any) -> Any:
            to_dtype = dtype if t._layout.dtype.kind in "fc" else None
            if memory_format is not None and t.dim() in (4, 5):
                return t.to(device, to_dtype, memory_format=memory_format)
            return t.to(device, to_dtype) if device is not None or to_dtype is not None else t

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Any:
        """Moves to a device without copying the elements, which are left uninitialised."""
        return self._apply(lambda t: T.empty_like(t, device=device), recurse=recurse)

    def type(self, dst_type: Any) -> Any:
        """Casts all parameters and buffers to ``dst_type``."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Any:
        """Casts floating point parameters and buffers to float32."""
        return self._cast("float")

    def double(self) -> Any:
        """Casts floating point parameters and buffers to float64."""
        return self._cast("double")

    def half(self) -> Any:
        """Casts floating point parameters and buffers to float16."""
        return self._cast("half")

    def bfloat16(self) -> Any:
        """Casts floating point parameters and buffers to bfloat16."""
        return self._cast("bfloat16")

    def _cast(self, name: str) -> Any:
        return self._apply(lambda t: getattr(t, name)() if t._layout.dtype.kind == "f" else t)

    def cpu(self) -> Any:
        """Moves to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Any:
        """Moves to a CUDA device."""
        return self._apply(lambda t: t.cuda(device))

    def share_memory(self) -> Any:
        """Moves parameters and buffers to memory that processes share (Tensor.share_memory_)."""
        return self._apply(lambda t: t.share_memory_())


def parse_to(args: Any, kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The dtype, device and memory format that the arguments of ``to`` ask for."""
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    tensor, memory_format = kwargs.pop("tensor", None), kwargs.pop("memory_format", None)
    kwargs.pop("non_blocking", None)
    if kwargs:
        raise ArgumentError(f"to() got an unexpected keyword argument {next(iter(kwargs))!r}")
    for arg in args:
        if isinstance(arg, Tensor):
            tensor = arg
        elif isinstance(arg, DType) or arg in (float, int, complex):
            dtype = to_dtype("to", "dtype", arg)
        elif arg is not None and not isinstance(arg, bool):
            device = arg
    if tensor is not None:
        dtype, device = tensor._layout.dtype, tensor._layout.device
    return dtype, None if device is None else as_device(device), memory_format
