"""What a tensor says of itself: shape, dtype, device, strides, its place in the graph."""

from __future__ import annotations

from typing import Any

from antorcha.core import modes
from antorcha.core.dtypes import BEYOND_NUMPY
from antorcha.core.lazy import lazy
from antorcha.core.shapes import Size, is_channels_last, normalize_dim
from antorcha.errors import ArgumentError, DeviceError, DtypeError, GraphError, warn
from antorcha.ops.kinds.record import T
from antorcha.runtime.call.node import CONSTANT, Node, edge_of, named
from antorcha.runtime.tensor import Tensor, bare
from antorcha.tensor.methods import set_methods
from antorcha.tensor.subclass import asking_property

runtime_storage = lazy("antorcha.runtime.memory.storage")


def _shape(self: Tensor) -> Size:
    """The size of each dim, a ``torch.Size``."""
    return self._layout.shape


def _size(self: Tensor, dim: int | None = None) -> Any:
    """The shape, or the size of one dim."""
    shape = self._layout.shape
    return shape if dim is None else shape[normalize_dim(dim, len(shape), op="size")]


def _stride(self: Tensor, dim: int | None = None) -> Any:
    """How many elements to step in memory for the next one along each dim (or one dim)."""
    strides = self._layout.strides
    return strides if dim is None else strides[normalize_dim(dim, len(strides), op="stride")]


def _dim(self: Tensor) -> int:
    """The number of dims."""
    return self._layout.ndim


def _numel(self: Tensor) -> int:
    """The number of elements."""
    return self._layout.numel


def _is_contiguous(self: Tensor, memory_format: Any = "contiguous") -> bool:
    """Do the elements lie in order in memory (in that memory format)?"""
    name = getattr(memory_format, "name", memory_format)
    if name.startswith("channels_last"):
        return bool(is_channels_last(self._layout.shape, self._layout.strides))
    return self._layout.contiguous


def _current(self: Tensor) -> None:
    """Makes a stale view's history afresh before anybody reads it."""
    if self._base is not None:
        edge_of(self)


def _requires_grad(self: Tensor) -> bool:
    """Are operations on this tensor recorded?"""
    base = self._base
    return self._rg or (
        base is not None
        and base._rg
        and self._seen != self._storage.version
        and self._seen != CONSTANT
    )


def _set_requires_grad(self: Tensor, value: bool) -> None:
    if value not in (True, False):
        raise ArgumentError(f"requires_grad must be a bool, not {value!r}")
    if value and self._storage.version < 0 and not modes.state.word & modes.INFERENCE:
        raise GraphError(
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
        )
    _current(self)
    if self._fn is not None:
        if not value:
            raise GraphError(
                "you can only change requires_grad flags of leaf variables. If you want to use a "
                "computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach().",
                reason="computed flag", operands=(self._layout,), fix="var.detach()",
            )  # fmt: skip
        return
    if value and self._layout.dtype.kind not in "fc":
        raise DtypeError(
            "only Tensors of floating point and complex dtype can require gradients, not "
            "{0.dtype}: make it with dtype=torch.float32, or cast with {fix}.",
            reason="int grad", operands=(self._layout,), fix=".float()",
        )  # fmt: skip
    self._rg = bool(value)


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Sets ``requires_grad`` in place and gives the tensor."""
    _set_requires_grad(self, requires_grad)
    return self


def _version(self: Tensor) -> int:
    """How many writes there have been to the tensor's memory."""
    if self._storage.version < 0:
        raise GraphError("Inference tensors do not track version counter.")
    return self._storage.version


def _is_view(self: Tensor) -> bool:
    """Is it a view of another tensor, ``_base``?"""
    return self._base is not None


def _grad_fn(self: Tensor) -> Node | None:
    """The node that made this tensor; None for a leaf."""
    _current(self)
    return None if self._fn is None else named(self._fn)


def _is_leaf(self: Tensor) -> bool:
    """Was it made by the user rather than by a recorded operation?"""
    _current(self)
    return self._fn is None


def _grad(self: Tensor) -> Tensor | None:
    """The gradient that backward has accumulated here; None when there is none."""
    if self._grad is None and self._fn is not None and not self.retains_grad:
        warn(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad"
            " attribute won't be populated during autograd.backward(). If you indeed want the .grad"
            " field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf "
            "Tensor.",
        )
    return self._grad


def _set_grad(self: Tensor, value: Tensor | None) -> None:
    if value is not None:
        if not isinstance(value, Tensor):
            raise ArgumentError(
                f"assigned grad expected to be a Tensor or None but got {type(value).__name__}"
            )
        if value is self:
            raise GraphError("can't assign Variable as its own grad")
        if value._layout.shape != self._layout.shape:
            raise GraphError(
                f"assigned grad has data of a different size: {tuple(value._layout.shape)} for a "
                f"tensor of {tuple(self._layout.shape)}"
            )
        if value._layout.dtype is not self._layout.dtype:
            raise GraphError(
                f"assigned grad has data of a different type: {value._layout.dtype} for a tensor "
                f"of {self._layout.dtype}"
            )
        if value._layout.device is not self._layout.device:
            raise DeviceError(
                f"assigned grad has data located on a different device: {value._layout.device} for "
                f"a tensor on {self._layout.device}"
            )
    self._grad = value


def detach(self: Tensor) -> Tensor:
    """The same elements (shared) outside of any graph.

    A write to it is noticed by graphs that have saved the elements.
    """
    return bare(self._layout, self._storage, self._offset)


def detach_(self: Tensor) -> Tensor:
    """Takes the tensor out of its graph: it becomes a leaf that requires no gradient."""
    if self._base is not None:
        raise GraphError("Can't detach views in-place. Use detach() instead.")
    self._fn, self._nr, self._rg = None, 0, False
    return self


def _data(self: Tensor) -> Tensor:
    """The elements outside of any graph; writing to them is not recorded, nor noticed."""
    return bare(self._layout, runtime_storage.alias(self._storage), self._offset)


def _set_data(self: Tensor, value: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise ArgumentError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    self._layout, self._storage, self._offset = value._layout, value._storage, value._offset


def _mT(self: Tensor) -> Tensor:
    """A view with the last two dims exchanged."""
    return T.transpose(self, -2, -1)  # type: ignore[no-any-return]


def _T(self: Tensor) -> Tensor:
    """A view with the dims in reverse order (meant for matrices)."""
    ndim = self._layout.ndim
    dims = _REVERSED[ndim] if ndim < len(_REVERSED) else tuple(reversed(range(ndim)))
    return Tensor.permute(self, dims)


_REVERSED = tuple([tuple(reversed(range(ndim))) for ndim in range(8)])


def _cuda_array_interface(self: Tensor) -> dict[str, Any]:
    """What CuPy, Numba and others read: the memory of a tensor on an NVIDIA GPU.

    See https://nvidia.github.io/numba-cuda/user/cuda_array_interface.html.
    """
    layout = self._layout
    if layout.device.type != "cuda":
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on non-CUDA tensor type: this one is on "
            f"{layout.device}"
        )
    if self.requires_grad:
        raise GraphError(
            "Can't get __cuda_array_interface__ on Variable that requires grad. If gradients "
            "aren't required, use var.detach() to get Variable that doesn't require grad."
        )
    if layout.dtype.name in BEYOND_NUMPY:
        raise ArgumentError(f"__cuda_array_interface__: NumPy's types have no {layout.dtype}")
    size = layout.itemsize
    address = self._storage.ptr + self._offset * size if layout.numel else 0
    return {
        "typestr": layout.dtype.np.str, "shape": tuple(layout.shape),
        "strides": None if layout.contiguous else tuple([s * size for s in layout.strides]),
        "data": (address, False), "version": 2,
    }  # fmt: skip


def _write(part: Tensor, value: Any) -> None:
    """``x.real = value``."""
    if isinstance(value, Tensor):
        T.copy_(part, value)
    else:
        T.fill_(part, value)


def bind_attributes() -> None:
    """Sets the properties and plain methods of this file on Tensor."""
    read_only = {
        "shape": _shape, "dtype": lambda self: self._layout.dtype,
        "device": lambda self: self._layout.device, "ndim": _dim, "is_leaf": _is_leaf,
        "itemsize": lambda self: self._layout.itemsize,
        "nbytes": lambda self: self._layout.numel * self._layout.itemsize,
        "output_nr": lambda self: self._nr, "_version": _version,
        "is_cpu": lambda self: self._layout.device.type == "cpu",
        "is_cuda": lambda self: self._layout.device.type == "cuda",
        "is_mps": lambda self: self._layout.device.type == "mps",
        "is_meta": lambda self: self._layout.device.type == "meta",
        "is_sparse": lambda self: False, "is_quantized": lambda self: False,
        "is_nested": lambda self: False, "__cuda_array_interface__": _cuda_array_interface,
    }  # fmt: skip
    for name, get in read_only.items():
        setattr(Tensor, name, property(get, doc=get.__doc__))
    settable: dict[str, tuple[Any, Any]] = {
        "requires_grad": (_requires_grad, _set_requires_grad), "grad": (_grad, _set_grad),
        "grad_fn": (_grad_fn, None), "data": (_data, _set_data),
    }  # fmt: skip
    for name, (get, put) in settable.items():
        setattr(Tensor, name, property(get, put, doc=get.__doc__))
    of_ops: dict[str, tuple[Any, ...]] = {
        "mT": (_mT,), "T": (_T,),
        "mH": (lambda self: T.conj(_mT(self)),), "H": (lambda self: T.conj(_T(self)),),
        "real": (lambda self: T.real(self), lambda self, value: _write(T.real(self), value)),
        "imag": (lambda self: T.imag(self), lambda self, value: _write(T.imag(self), value)),
    }  # fmt: skip
    for name, functions in of_ops.items():
        setattr(Tensor, name, asking_property(name, *functions))
    # No __getattr__: with one, every read of a tensor's own fields would leave the interpreter's
    # fast path, which doubled the price of a + b. Python itself adds "Did you mean" to the message.
    set_methods({
        "size": _size, "stride": _stride, "dim": _dim, "ndimension": _dim, "numel": _numel,
        "nelement": _numel, "is_contiguous": _is_contiguous, "requires_grad_": requires_grad_,
        "detach": detach, "detach_": detach_, "_is_view": _is_view,
        "element_size": lambda self: self._layout.itemsize,
        "storage_offset": lambda self: self._offset,
        "data_ptr": lambda self: self._storage.ptr + self._offset * self._layout.itemsize,
        "is_floating_point": lambda self: self._layout.dtype.kind == "f",
        "is_complex": lambda self: self._layout.dtype.kind == "c",
        "is_signed": lambda self: self._layout.dtype.is_signed,
        "get_device": lambda self: -1 if self._layout.device.index is None
        else self._layout.device.index,
        "is_set_to": lambda self, other: self._storage is other._storage
        and self._offset == other._offset and self._layout is other._layout,
    })  # fmt: skip
