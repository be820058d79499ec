"""The functions of ``torch.*`` that are no ops: threads, defaults, questions about tensors."""

from __future__ import annotations

import importlib
import math
from typing import Any

from antorcha.core import dtypes, switches
from antorcha.core.device import Device, as_device, set_default
from antorcha.core.dtypes import dtype as DType
from antorcha.core.formats import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    legacy_contiguous_format,
    memory_format,
    preserve_format,
)
from antorcha.core.lazy import lazy
from antorcha.core.shapes import Size
from antorcha.core.shapes import broadcast_shapes as common_shape
from antorcha.errors import AcceleratorError, ArgumentError, OutOfMemoryError, ShapeError
from antorcha.runtime.call import plan
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.create import tensor
from antorcha.tensor.layouts import (
    _mkldnn,
    jagged,
    layout,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from antorcha.tensor.storages import UntypedStorage
from antorcha.tensor.typed_storage import TypedStorage

backends = lazy("antorcha.backends")
runtime_pool = lazy("antorcha.runtime.pool")
runtime_alloc = lazy("antorcha.runtime.memory.alloc")

__all__ = [
    "AcceleratorError",
    "OutOfMemoryError",
    "_mkldnn",
    "are_deterministic_algorithms_enabled",
    "broadcast_shapes",
    "channels_last",
    "channels_last_3d",
    "compiled_with_cxx11_abi",
    "contiguous_format",
    "cudnn_is_acceptable",
    "e",
    "empty_cache",
    "get_default_device",
    "get_deterministic_debug_mode",
    "get_device_module",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_num_threads",
    "has_lapack",
    "has_mkl",
    "has_openmp",
    "has_spectral",
    "inf",
    "is_complex",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_floating_point",
    "is_nonzero",
    "is_storage",
    "is_tensor",
    "is_vulkan_available",
    "is_warn_always_enabled",
    "jagged",
    "layout",
    "legacy_contiguous_format",
    "memory_format",
    "memory_stats",
    "nan",
    "newaxis",
    "numel",
    "per_channel_affine",
    "per_channel_affine_float_qparams",
    "per_channel_symmetric",
    "per_tensor_affine",
    "per_tensor_symmetric",
    "pi",
    "preserve_format",
    "qscheme",
    "result_type",
    "scalar_tensor",
    "set_default_device",
    "set_default_tensor_type",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_num_threads",
    "set_warn_always",
    "sparse_bsc",
    "sparse_bsr",
    "sparse_coo",
    "sparse_csc",
    "sparse_csr",
    "strided",
    "typename",
    "use_deterministic_algorithms",
]  # fmt: skip
inf, nan, pi, e = math.inf, math.nan, math.pi, math.e
newaxis = None
has_lapack = has_spectral = True  # torch.linalg and torch.fft are here
has_mkl = has_openmp = False


class qscheme:
    """How numbers are mapped to integers; there are no quantized tensors."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


per_tensor_affine, per_tensor_symmetric, per_channel_affine, per_channel_symmetric = [
    qscheme(f"per_{of}_{kind}") for of in ("tensor", "channel") for kind in ("affine", "symmetric")
]
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")


Tensor.layout = property(lambda self: strided, doc="How the elements are kept.")  # type: ignore[assignment,method-assign]


def is_tensor(obj: Any) -> bool:
    """Is the object a Tensor?"""
    return isinstance(obj, Tensor)


def is_storage(obj: Any) -> bool:
    """Is the object a storage?"""
    return isinstance(obj, (TypedStorage, UntypedStorage))


def is_floating_point(input: Tensor) -> bool:
    """Is the dtype a floating one?"""
    return _of("is_floating_point", input).dtype.kind == "f"


def is_complex(input: Tensor) -> bool:
    """Is the dtype complex?"""
    return _of("is_complex", input).dtype.kind == "c"


def is_nonzero(input: Tensor) -> bool:
    """Is the only element not zero?"""
    return bool(input)


def numel(input: Tensor) -> int:
    """The number of elements."""
    return _of("numel", input).numel


def _of(op: str, input: Tensor) -> Layout:
    if not isinstance(input, Tensor):
        raise ArgumentError(
            "{op}(): argument '{name}' (position 1) must be Tensor, not {kind}",
            reason="tensor wanted", op=op, name="input", kind=type(input).__name__,
        )  # fmt: skip
    return input._layout


def typename(obj: Any) -> str:
    """The type's name, for tensors as ``torch.FloatTensor``."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    kind = obj if isinstance(obj, type) else type(obj)
    return f"{kind.__module__}.{kind.__qualname__}"


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes broadcast to; an int is a shape of one dim.

    See https://docs.pytorch.org/docs/stable/generated/torch.broadcast_shapes.html.

    >>> torch.broadcast_shapes((2,), (3, 1), (1, 1, 1))
    torch.Size([1, 3, 2])
    """
    sizes = [Size((each,) if isinstance(each, int) else each) for each in shapes]
    for each in sizes:
        if min(each, default=0) < 0:
            raise ShapeError(
                f"broadcast_shapes: Trying to create tensor with negative dimension: {tuple(each)}"
            )
    return Size(common_shape(*sizes, op="broadcast_shapes"))


def set_num_threads(num: int) -> None:
    """How many threads a kernel may use.

    >>> torch.set_num_threads(2)
    >>> torch.get_num_threads()
    2
    """
    before = runtime_pool.get_num_threads()
    runtime_pool.set_num_threads(num)
    if runtime_pool.get_num_threads() != before:
        plan.flush()  # a plan says into how many parts work is cut


def get_num_threads() -> int:
    """How many threads a kernel may use."""
    return int(runtime_pool.get_num_threads())


def set_num_interop_threads(num: int) -> None:
    """Accepted for PyTorch's sake: antorcha has one pool for everything."""


def get_num_interop_threads() -> int:
    """1: antorcha has one pool for everything."""
    return 1


def set_default_device(device: Any) -> None:
    """New tensors are made on this device when none is said (None: the CPU)."""
    set_default(device)


def get_default_device() -> Device:
    """The device on which new tensors are made."""
    return as_device(None)


def set_default_tensor_type(t: Any) -> None:
    """The older way to set the default dtype: ``'torch.DoubleTensor'``."""
    names = {"FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16"}
    found = names.get(str(getattr(t, "__name__", t)).rpartition(".")[2])
    if found is None:
        raise ArgumentError(f"set_default_tensor_type: invalid type object {t!r}")
    dtypes.set_default_dtype(dtypes.by_name(found))


def result_type(tensor1: Any, tensor2: Any) -> DType:
    """The dtype that an operation on these two (tensors or numbers) would have."""
    sized: list[DType] = []
    zero: list[DType] = []
    numbers: list[Any] = []
    for value in (tensor1, tensor2):
        if isinstance(value, Tensor):
            (sized if value._layout.ndim else zero).append(value._layout.dtype)
        else:
            numbers.append(type(value))
    return dtypes.result_type(sized, zero, numbers)


_reduced_precision = "high"
_deterministic = False
_warn_only = False
_warn_always = False


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accepted: every CPU kernel of antorcha gives the same result each time."""
    global _deterministic, _warn_only
    _deterministic, _warn_only = bool(mode), bool(mode and warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """What ``use_deterministic_algorithms`` last said."""
    return _deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Did ``use_deterministic_algorithms`` last say ``warn_only=True``?"""
    return _warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Another form of ``use_deterministic_algorithms``: ``"default"`` (0), ``"warn"`` (1) or
    ``"error"`` (2)."""
    if not isinstance(debug_mode, (int, str)):
        raise ArgumentError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    modes = {"default": 0, "warn": 1, "error": 2}
    mode = modes.get(debug_mode, debug_mode) if isinstance(debug_mode, str) else debug_mode
    if mode not in modes.values():
        raise ShapeError(
            "invalid value of debug_mode, expected one of `default`, `warn`, `error` (0, 1, 2), "
            f"but got {debug_mode}"
        )
    use_deterministic_algorithms(mode != 0, warn_only=mode == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2, as `set_deterministic_debug_mode` takes it.

    >>> torch.get_deterministic_debug_mode()
    0
    """
    return 1 if _warn_only else 2 * _deterministic


def set_warn_always(b: bool, /) -> None:
    """Notes whether warnings that PyTorch gives once should be given always."""
    global _warn_always
    _warn_always = bool(b)


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` was told."""
    return _warn_always


def is_vulkan_available() -> bool:
    """False: there is no Vulkan device."""
    return False


def get_device_module(device: Any = None) -> Any:
    """The module of a device's kind: ``torch.cpu`` for the CPU, the default.

    See https://docs.pytorch.org/docs/stable/generated/torch.get_device_module.html.

    >>> torch.get_device_module("cpu") is torch.cpu
    True
    """
    place = Device(device) if device is not None else as_device(None)
    try:
        return importlib.import_module(f"antorcha.{place.type}")
    except ModuleNotFoundError:
        raise ShapeError(
            f"Device '{place.type}' does not have a corresponding module registered as "
            f"'torch.{place.type}'."
        ) from None


def scalar_tensor(
    s: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """A number as a tensor of no dims, of the default dtype unless one is said.

    >>> torch.scalar_tensor(3)
    tensor(3.)
    """
    chosen = dtypes.get_default_dtype() if dtype is None else dtype
    return tensor(s, dtype=chosen, device=device, requires_grad=requires_grad)


def set_float32_matmul_precision(precision: str) -> None:
    """How exactly products of float32 are computed: ``"highest"`` in float32, ``"high"`` and
    ``"medium"`` in TensorFloat32 on a GPU that has it. It is another form of
    ``torch.backends.cuda.matmul.allow_tf32``; the CPU computes in float32 whatever is asked for.
    """
    if precision not in ("highest", "high", "medium"):
        raise ArgumentError(f"set_float32_matmul_precision: {precision!r} is no precision")
    global _reduced_precision
    if precision != "highest":
        _reduced_precision = precision
    switches.matmul.allow_tf32 = precision != "highest"


def get_float32_matmul_precision() -> str:
    """What ``set_float32_matmul_precision`` last said.

    >>> torch.get_float32_matmul_precision()
    'highest'
    """
    return _reduced_precision if switches.matmul.allow_tf32 else "highest"


def compiled_with_cxx11_abi() -> bool:
    """True, as of every PyTorch of today: there is no C++ here."""
    return True


def cudnn_is_acceptable(input: Tensor) -> bool:
    """Could cuDNN compute on the tensor (``torch.backends.cudnn.is_acceptable``)?"""
    return bool(backends.cudnn.is_acceptable(input))


def set_flush_denormal(mode: bool) -> bool:
    """False: antorcha never flushes denormal numbers to zero."""
    return False


def empty_cache() -> None:
    """Gives the memory that is kept for reuse back to the system."""
    runtime_alloc.empty_cache()


def memory_stats() -> dict[str, int]:
    """Bytes that live tensors hold, that are kept for reuse, and the most that ever lived."""
    found = runtime_alloc.stats()
    return {name: getattr(found, name) for name in found.__annotations__}


def _assert(condition: Any, message: str) -> Any:
    """An assertion that a trace can record."""
    if hasattr(type(condition), "__torch_function__") and not isinstance(condition, Tensor):
        return type(condition).__torch_function__(_assert, (), (condition, message), {})
    assert condition, message
    return None
