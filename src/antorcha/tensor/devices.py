"""What programs ask a tensor of devices and kinds that are not here (``is_xpu``, ``is_quantized``),
and the methods of Tensor that are no ops of their own (``type_as``, ``apply_``)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from antorcha.core import dtypes
from antorcha.core.device import backend
from antorcha.core.lazy import lazy
from antorcha.errors import ArgumentError, GraphError, MissingFeature, ShapeError, warn
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.create import tensor
from antorcha.tensor.methods import set_methods

storages = lazy("antorcha.runtime.memory.storage")

_NO_DEVICES = ("is_xpu", "is_ipu", "is_hpu", "is_maia", "is_mtia", "is_vulkan", "is_xla",
               "is_mkldnn")  # fmt: skip
_QUANTIZED = ("int_repr", "q_per_channel_axis", "q_per_channel_scales", "q_per_channel_zero_points",
              "q_scale", "q_zero_point", "qscheme")  # fmt: skip
_NOT_BUILT = {"xpu": AssertionError, "ipu": RuntimeError, "mtia": AssertionError}


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The elements in the dtype, and on the device, of `other`: the tensor itself if it has them.

    >>> torch.tensor([1, 2]).type_as(torch.rand(1))
    tensor([1., 2.])
    """
    if not isinstance(other, Tensor):
        raise ArgumentError(
            "type_as(): argument '{name}' (position 1) must be Tensor, not {kind}",
            reason="tensor wanted", op="type_as", name="other", kind=type(other).__name__,
        )  # fmt: skip
    converted: Tensor = self.to(other)
    return converted


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Have both the same shape?"""
    return self._layout.shape == other._layout.shape


def is_nonzero(self: Tensor) -> bool:
    """Is the only element not zero?"""
    return bool(self)


def dim_order(self: Tensor, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dims from the one with the largest stride to the one with the smallest."""
    layout = self._layout
    return tuple(sorted(range(layout.ndim), key=lambda d: (-layout.strides[d], d)))


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replaces each element by what a Python function makes of it: slow, on the CPU only.

    >>> torch.tensor([1., 2.]).apply_(lambda x: x * 10)
    tensor([10., 20.])
    """
    return _replace(self, "apply_", callable)


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replaces each element by what a Python function makes of it and of `tensor`'s."""
    return _replace(self, "map_", callable, tensor)


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Replaces each element by what a Python function makes of it and of those of `x` and `y`."""
    return _replace(self, "map2_", callable, x, y)


def _replace(self: Tensor, name: str, function: Callable[..., Any], *others: Tensor) -> Tensor:
    for each in (self, *others):
        if each.requires_grad:
            raise GraphError(
                f"Can't call {name}() on Variable that requires grad. Use "
                f"var.detach().{name}() instead."
            )
    shape = self._layout.shape
    lists = [T.reshape(T.expand(each, shape), (-1,)).tolist() for each in (self, *others)]

    values = [function(*row) for row in zip(*lists, strict=True)]
    result = tensor(values, dtype=self._layout.dtype, device=self._layout.device)
    return T.copy_(self, T.reshape(result, shape))  # type: ignore[no-any-return]


def _all_true(self: Tensor) -> Any:
    """A bool tensor of no dims: are all elements true?"""
    return T.all(self)


def _any_true(self: Tensor) -> Any:
    """A bool tensor of no dims: is an element true?"""
    return T.any(self)


def record_stream(self: Tensor, stream: Any) -> None:
    """Tells that another stream uses the tensor: its memory goes to no other before that stream has
    done what it was given so far. Raises RuntimeError on the CPU."""
    storage = storages.base_of(self._storage)
    owner = storage.owner
    if storage.flags & storages.POOLED:
        gpu: Any = backend(self._layout.device)  # (only a GPU's memory is pooled)
        owner = gpu.gpu.memory.own(storage)
    if not hasattr(owner, "used_by") or self._layout.device.type == "cpu":
        where = self._layout.device
        raise ShapeError(f"record_stream: {where} has no streams; leave it out")
    owner.used_by(stream._stream)


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Any:
    """What ``load_state_dict`` puts in this tensor's place: `other` itself with ``assign``, else
    this tensor with the elements of `other`."""
    return (other if assign else T.copy_(self, other)).detach()


def resize(self: Tensor, *sizes: Any) -> Any:
    """``reshape`` by its oldest name: deprecated."""
    warn("non-inplace resize is deprecated")
    size = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    if math.prod(size) != self._layout.numel:
        raise ShapeError(
            f"resize: requested resize to {'x'.join(map(str, size))} ({math.prod(size)} elements "
            f"in total), but the given tensor has a size of {tuple(self._layout.shape)} "
            f"({self._layout.numel} elements). autograd's resize can only change the shape of a "
            "given tensor, while preserving the number of elements."
        )
    return T.reshape(self, tuple(size))


def resize_as(self: Tensor, tensor: Tensor) -> Any:
    """``reshape_as`` by its oldest name: deprecated."""
    return resize(self, tuple(tensor._layout.shape))


def reinforce(self: Tensor, reward: Any) -> None:
    """Removed from PyTorch: raises RuntimeError, and says what to write instead."""
    raise GraphError(
        "reinforce() was removed. Use torch.distributions instead: m = Categorical(probs); action "
        "= m.sample(); loss = -m.log_prob(action) * reward; loss.backward()"
    )


def dequantize(self: Tensor) -> Any:
    """The numbers as float32. (No tensor is quantized.)

    >>> torch.tensor([1, 2]).dequantize()
    tensor([1., 2.])
    """
    return T.to_dtype(self, dtypes.float32)


def chalf(self: Tensor, memory_format: Any = None) -> Any:
    """``self.to(torch.complex32)``: there are no complex numbers of halves, so it raises
    NotImplementedError."""
    return self.to(dtypes.complex32)


def _quantized_only(name: str) -> Callable[..., Any]:
    def ask(self: Tensor, *args: Any) -> Any:
        raise MissingFeature(
            f"Tensor.{name}: there are no quantized tensors; keep numbers in int8 or float16 "
            "yourself"
        )

    ask.__doc__ = "Only quantized tensors have it, of which there are none here."
    return ask


def _grad_dtype(self: Tensor) -> Any:
    """The dtype of the gradient that a leaf accumulates: its own."""
    if not self.is_leaf:
        raise GraphError("grad_dtype can only be accessed on leaf tensors.")
    return self._layout.dtype


def _set_grad_dtype(self: Tensor, value: Any) -> None:
    if not self.is_leaf:
        raise GraphError("grad_dtype can only be set on leaf tensors.")
    if value is not self._layout.dtype:
        raise MissingFeature(
            f"grad_dtype: gradients have the dtype of their tensor, {self._layout.dtype}, not "
            f"{value}"
        )


def _refuse(name: str, kind: type[Exception]) -> Callable[..., Any]:
    def convert(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        raise kind(f"Torch not compiled with {name.upper()} enabled: antorcha has no {name} device")

    convert.__doc__ = f"Needs an {name} device: raises {kind.__name__}, since there is none."
    return convert


def bind() -> None:
    """Sets the properties and methods of this file on Tensor."""
    for name in _NO_DEVICES:
        doc = "False: no tensor is of that kind or on such a device."
        setattr(Tensor, name, property(lambda self: False, doc=doc))
    for name in ("name", "_backward_hooks"):
        if not hasattr(Tensor, name):
            setattr(Tensor, name, property(lambda self: None, doc="None."))
    doc = "A None for each dim: no dim is named."
    volatile = property(lambda self: False, doc="False: use torch.no_grad() instead.")
    setattr(Tensor, "volatile", volatile)  # noqa: B010
    grad_dtype = property(_grad_dtype, _set_grad_dtype, doc=_grad_dtype.__doc__)
    setattr(Tensor, "grad_dtype", grad_dtype)  # noqa: B010
    names = property(lambda self: (None,) * self._layout.ndim, doc=doc)
    setattr(Tensor, "names", names)  # noqa: B010  (mypy knows the name as a method's)
    set_methods({
        "type_as": type_as, "is_same_size": is_same_size, "is_nonzero": is_nonzero,
        "dim_order": dim_order, "apply_": apply_, "map_": map_,
        "map2_": map2_, "_is_all_true": _all_true, "_is_any_true": _any_true,
        "record_stream": record_stream, "is_distributed": lambda self: False,
        "is_conj": lambda self: False, "is_neg": lambda self: False,
        "has_names": lambda self: False, "const_data_ptr": lambda self: self.data_ptr(),
        "module_load": module_load, "resize": resize, "resize_as": resize_as,
        "reinforce": reinforce, "dequantize": dequantize, "chalf": chalf,
        **{name: _refuse(name, kind) for name, kind in _NOT_BUILT.items()},
        **{name: _quantized_only(name) for name in _QUANTIZED},
    })  # fmt: skip
