"""`MaskedTensor`: data and a mask that says which of it counts.

A subclass of Tensor by ``__torch_function__``: the tensor is the data itself, the mask an attribute
of it. Functions of single elements keep the mask, views are taken of both, reductions are those of
``torch.masked``; what else gives tensors is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.core import dtypes
from antorcha.core.lazy import lazy
from antorcha.errors import ArgumentError, MissingFeature, ValueRangeError, warn
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.subclass import DisableTorchFunctionSubclass

__all__ = ["MaskedTensor", "is_masked_tensor"]

masked = lazy("antorcha.masked")

UNARY = frozenset(
    ("abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh "
     "arctanh bitwise_not ceil clamp clip conj_physical cos cosh deg2rad digamma erf erfc erfinv "
     "exp exp2 expm1 fix floor frac lgamma log log10 log1p log2 logit i0 isnan nan_to_num neg "
     "negative positive pow rad2deg reciprocal round rsqrt sigmoid sign sgn signbit sin sinc sinh "
     "sqrt square tan tanh trunc invert").split()
)  # fmt: skip
BINARY = frozenset(
    ("add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift "
     "div divide floor_divide fmod logaddexp logaddexp2 mul multiply nextafter remainder sub "
     "subtract true_divide eq ne le ge greater greater_equal gt less_equal lt less maximum minimum "
     "fmax fmin not_equal radd rsub rmul rtruediv truediv floordiv mod and or xor lshift "
     "rshift").split()
)  # fmt: skip
"""Functions of single elements, by the names of functions, methods and operators."""
MOVING = frozenset(
    ("select transpose split t slice getitem expand view reshape cat unsqueeze squeeze unfold "
     "stack permute flatten clone contiguous detach chunk unbind").split()
)  # fmt: skip
"""Functions that are applied to the data and to the mask."""
REDUCING = frozenset("sum mean amin amax argmin argmax prod all norm var std".split())

_DTYPES = (dtypes.float16, dtypes.float32, dtypes.float64, dtypes.bool_, dtypes.int8, dtypes.int16,
           dtypes.int32, dtypes.int64)  # fmt: skip


def is_masked_tensor(obj: Any, /) -> bool:
    """Is the object a MaskedTensor?"""
    return isinstance(obj, MaskedTensor)


class MaskedTensor(Tensor):
    """A tensor of which only the elements count at which its mask is True.

    Args:
        data (Tensor): the elements; they are copied
        mask (Tensor): bools, of the same shape
        requires_grad (bool): is it a leaf that wants a gradient? That is a MaskedTensor, too.
    """

    _masked_mask: Tensor

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
        warn(
            "The PyTorch API of MaskedTensors is in prototype stage and will change in the near "
            "future."
        )
        _check(data, mask)
        if data.requires_grad:
            warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. "
                "To avoid this, you can use data.detach().clone()"
            )
        result = _with_mask(data.detach().clone(), mask.clone())
        return result.requires_grad_(requires_grad)  # type: ignore[return-value]

    @staticmethod
    def _from_values(data: Any, mask: Any) -> MaskedTensor:
        """``data`` with a mask, in the graph of ``data``."""
        _check(data, mask)
        return _with_mask(data.clone(), mask)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "").strip("_")
        if name in REDUCING:
            return _reduced(name, *args, **kwargs)
        data = _mapped(args, MaskedTensor.get_data), _mapped(kwargs, MaskedTensor.get_data)
        if name in UNARY or name in BINARY or (name[:1] == "i" and name[1:] in BINARY):
            return _of_elements(func, name, args, *data)
        if name in MOVING:
            masks = _mapped(args, MaskedTensor.get_mask), _mapped(kwargs, MaskedTensor.get_mask)
            return _wrapped(func(*data[0], **data[1]), func(*masks[0], **masks[1]))
        with DisableTorchFunctionSubclass():
            result = func(*args, **kwargs)
        if isinstance(result, Tensor) and not any([result is each for each in args]):
            raise MissingFeature(
                f"{name}: is not implemented for MaskedTensor; use get_data() and get_mask()"
            )
        return result

    def get_data(self) -> Tensor:
        """All elements, also those that do not count, as a plain tensor in the same graph."""
        with DisableTorchFunctionSubclass():
            return self.as_subclass(Tensor)  # type: ignore[no-any-return]

    def get_mask(self) -> Tensor:
        """The mask."""
        return self._masked_mask

    def to_tensor(self, value: Any) -> Tensor:
        """A plain tensor with ``value`` in the place of what does not count."""
        return self.get_data().masked_fill(~self.get_mask(), value)

    @property
    def grad(self) -> Tensor | None:
        """The gradient, with the mask."""
        with DisableTorchFunctionSubclass():  # (others' subclasses have Tensor's property ask)
            found = _GRAD.__get__(self)
        return None if found is None else _with_mask(found, self.get_mask())

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        with DisableTorchFunctionSubclass():
            _GRAD.__set__(self, value)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        data, mask = self.get_data().detach(), self.get_mask()
        if not data.dim():
            text = _shown(data.item()) if mask.item() else "--"
            return f"MaskedTensor({text}, {mask.item()})"
        lines = _lines(data.tolist(), mask.tolist()).split("\n")
        return "\n".join(["MaskedTensor(", *[f"  {line}" for line in lines], ")"])


_GRAD: Any = Tensor.grad


def _check(data: Any, mask: Any) -> None:
    for name, value in (("data", data), ("mask", mask)):
        if is_masked_tensor(value) or not isinstance(value, Tensor):
            raise ArgumentError(f"MaskedTensor: {name} must be a Tensor")
    if data.layout != mask.layout:
        raise ArgumentError("MaskedTensor: data and mask must have the same layout.")
    if mask.dtype is not dtypes.bool_:
        raise ArgumentError(f"MaskedTensor: mask must have dtype bool, not {mask.dtype}.")
    if data.dtype not in _DTYPES:
        raise ArgumentError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.shape != mask.shape:
        raise ValueRangeError(
            f"MaskedTensor: data.size() must equal mask.size(), but got {tuple(data.shape)} and "
            f"{tuple(mask.shape)}"
        )


def _with_mask(data: Tensor, mask: Tensor) -> MaskedTensor:
    result: MaskedTensor = data.as_subclass(MaskedTensor)
    result._masked_mask = mask
    return result


def _wrapped(data: Any, mask: Any) -> Any:
    if isinstance(data, (tuple, list)):
        return type(data)([_wrapped(a, b) for a, b in zip(data, mask, strict=True)])
    return _with_mask(data, mask)


def _mapped(value: Any, of: Callable[[MaskedTensor], Tensor]) -> Any:
    """Arguments with the data, or the mask, in the place of MaskedTensors."""
    if isinstance(value, MaskedTensor):
        return of(value)
    if type(value) in (tuple, list):
        return type(value)([_mapped(each, of) for each in value])
    if type(value) is dict:
        return {name: _mapped(each, of) for name, each in value.items()}
    return value


def _of_elements(func: Any, name: str, args: Any, data: Any, options: Any) -> Any:
    """A function of single elements: the mask stays. Those of two operands must be one."""
    owners = [each for each in args[:2] if is_masked_tensor(each)]
    mask = owners[0].get_mask()
    if len(owners) == 2 and not bool((mask == owners[1].get_mask()).all()):
        raise ValueRangeError(
            f"{name}: Input masks must match. Combine them first: masked_tensor(x.get_data(), "
            "x.get_mask() & y.get_mask())"
        )
    result = func(*data, **options)
    if result is data[0]:  # written in place
        return args[0]
    return _with_mask(result, mask.expand(result.shape))


def _reduced(name: str, input: Any, dim: Any = None, *args: Any, **options: Any) -> MaskedTensor:
    """A reduction: what has elements that count, counts."""
    data, mask = input.get_data(), input.get_mask()
    keepdim = args[0] if args else options.get("keepdim", False)
    if args:
        options = {**options, **dict(zip(("keepdim", "dtype"), args, strict=False))}
    counts = mask.any() if dim is None else mask.any(dim, keepdim)
    if name == "all":
        filled = data.masked_fill(~mask, True)
        return _with_mask(filled.all() if dim is None else filled.all(dim, keepdim), counts)
    if name == "norm":
        options["dim"], found = dim, masked.norm(data, 2.0, dim, mask=mask, **options)
        return _with_mask(found, counts)
    return _with_mask(getattr(masked, name)(data, dim, mask=mask, **options), counts)


def _shown(value: Any) -> str:
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _lines(values: list[Any], mask: list[Any]) -> str:
    """The elements, and -- for those that do not count, as nested lists."""
    if values and not isinstance(values[0], list):
        shown = [_shown(value) for value in values]
        width = max([len(text) if kept else 8 for text, kept in zip(shown, mask, strict=True)])
        parts = [
            text if kept else "--".rjust(width) for text, kept in zip(shown, mask, strict=True)
        ]
        return f"[{', '.join(parts)}]"
    inner = [_lines(value, kept) for value, kept in zip(values, mask, strict=True)]
    return "[\n" + ",\n".join(["\n".join([f"  {x}" for x in i.split("\n")]) for i in inner]) + "\n]"
