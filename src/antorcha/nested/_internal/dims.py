"""Which functions of nested tensors run over all elements at once, and how the others are taken
component by component."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from antorcha.core.lazy import lazy
from antorcha.errors import MissingFeature, ShapeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor import layouts
from antorcha.tensor.subclass import DisableTorchFunctionSubclass

nested = lazy("antorcha.nested._internal.nested_tensor")

ITSELF = frozenset(
    ("requires_grad backward register_hook retain_grad retains_grad grad_fn is_leaf device dtype "
     "get set numel nelement element_size data_ptr is_floating_point is_complex output_nr version "
     "storage_offset untyped_storage type item is_cuda is_cpu is_meta is_sparse names name "
     "requires_grad_ is_pinned is_inference is_conj is_neg format").split()
)  # fmt: skip
"""What is asked of the packed elements themselves."""
PACKED = frozenset(
    ("clone detach to cpu cuda double float half bfloat16 int long bool type_as pin_memory "
     "zeros_like ones_like empty_like full_like rand_like randn_like requires_grad data alias "
     "abs absolute neg negative positive relu leaky_relu gelu silu elu selu celu mish sigmoid tanh "
     "logsigmoid softplus hardtanh hardswish hardsigmoid relu6 threshold exp exp2 expm1 log log2 "
     "log10 log1p sqrt rsqrt square sin cos tan asin acos atan sinh cosh erf erfc floor ceil round "
     "trunc frac sign sgn reciprocal isnan isinf isfinite logical_not bitwise_not nan_to_num clamp "
     "clip dropout alpha_dropout").split()
)  # fmt: skip
"""Functions of single elements."""
PAIRS = frozenset(
    ("add sub subtract mul multiply div divide true_divide floor_divide remainder fmod pow atan2 "
     "maximum minimum fmax fmin eq ne lt le gt ge not_equal greater less greater_equal less_equal "
     "logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor where masked_fill lerp "
     "addcmul addcdiv radd rsub rmul rtruediv rdiv truediv floordiv mod and or xor iadd isub imul "
     "itruediv add_ sub_ mul_ div_").split()
)  # fmt: skip
"""Functions of elements of several tensors, which broadcast."""
TRAILING = frozenset("linear layer_norm rms_norm embedding".split())
"""Functions along the last dims."""
OF_ALL = frozenset("sum mean amax amin max min prod all any norm var std".split())
"""Reductions that fold all elements where they are given no dim."""
SHIFTED = {
    "softmax": ("dim",), "log_softmax": ("dim",), "softmin": ("dim",), "sum": ("dim",),
    "mean": ("dim",), "amax": ("dim",), "amin": ("dim",), "prod": ("dim",), "all": ("dim",),
    "any": ("dim",), "argmax": ("dim",), "argmin": ("dim",), "var": ("dim",), "std": ("dim",),
    "max": ("dim",), "min": ("dim",), "logsumexp": ("dim",), "cumsum": ("dim",), "flip": ("dims",),
    "sort": ("dim",), "argsort": ("dim",), "topk": (None, "dim"), "norm": (None, "dim"),
    "transpose": ("dim0", "dim1"), "swapaxes": ("axis0", "axis1"), "unsqueeze": ("dim",),
    "squeeze": ("dim",), "chunk": (None, "dim"), "split": (None, "dim"), "select": ("dim",),
    "narrow": ("dim",), "normalize": (None, "dim"), "glu": ("dim",), "flatten": ("start", "end"),
    "unflatten": ("dim",), "cat": ("dim",), "concat": ("dim",), "index_select": ("dim",),
}  # fmt: skip
"""Where functions have dims among their arguments after the first: by place, and by keyword."""
ALONE = frozenset(
    ("matmul mm bmm rmatmul scaled_dot_product_attention view reshape multi_head_attention_forward "
     "expand view_as reshape_as expand_as tril triu").split()
)  # fmt: skip
"""Functions that are taken component by component as they are, or with sizes of the batch."""


def along_batch(args: Any, kwargs: Any) -> bool:
    """Does ``cat`` join along the batch's dim?"""
    return bool((args[1] if len(args) > 1 else kwargs.get("dim", 0)) == 0)


def wrapped(dim: int, ndim: int) -> int:
    """A dim counted from the first."""
    if not -ndim <= dim < ndim:
        raise ShapeError(f"dim {dim} is out of range for a nested tensor of {ndim} dims")
    return dim % ndim


def nested_in(value: Any, kind: type) -> Iterator[Any]:
    """The nested tensors among arguments."""
    if isinstance(value, kind):
        yield value
    elif type(value) in (tuple, list):
        for each in value:
            yield from nested_in(each, kind)
    elif type(value) is dict:
        yield from nested_in(list(value.values()), kind)


def mapped(value: Any, kind: type, of: Callable[[Any], Any]) -> Any:
    """Arguments with something else in the place of nested tensors."""
    if isinstance(value, kind):
        return of(value)
    if type(value) in (tuple, list):
        return type(value)([mapped(each, kind, of) for each in value])
    if type(value) is dict:
        return {name: mapped(each, kind, of) for name, each in value.items()}
    return value


def _alike(tensors: list[Any]) -> None:
    """Refuses nested tensors whose components have other sizes."""
    for each in tensors[1:]:
        if each._nested_shapes != tensors[0]._nested_shapes:
            raise ShapeError(
                "nested tensors do not fit: components of "
                f"{tensors[0]._nested_shapes} and {each._nested_shapes}"
            )


def whole(name: str, func: Any, first: Any, args: Any, kwargs: Any, kind: type) -> Any:
    """The result over all elements at once, where there is such; else NotImplemented."""
    given = list(nested_in((args, kwargs), kind))
    if name in PAIRS:
        others = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
        if all(isinstance(a, kind) or a.dim() == 0 for a in others):
            _alike(given)
            with DisableTorchFunctionSubclass():
                packed = mapped([args, kwargs], kind, nested.NestedTensor._packed)
                found = func(*packed[0], **packed[1])
            return nested.like(found, first)
        return NotImplemented
    if name in OF_ALL and len(args) == 1 and "dim" not in kwargs and len(given) == 1:
        return func(first._packed(), **kwargs)
    uniform = first._nested_layout is layouts.jagged and first._nested_dim == 1
    last = name in ("softmax", "log_softmax") and _last_dim(first, args, kwargs)
    if uniform and len(given) == 1 and (last or name in TRAILING):
        if last:
            args, kwargs = (args[0], -1, *args[2:]), {k: v for k, v in kwargs.items() if k != "dim"}
        args, kwargs = mapped([args, kwargs], kind, nested.NestedTensor.values)
        values = func(*args, **kwargs)
        rest = tuple(values.shape[1:])
        shapes = [(shape[0], *rest) for shape in first._nested_shapes]
        return nested.wrap(
            values.reshape(-1), shapes, layouts.jagged, first._nested_size, 1,
            first._nested_lengths,
        )  # fmt: skip
    return NotImplemented


def _last_dim(first: Any, args: Any, kwargs: Any) -> bool:
    dim = args[1] if len(args) > 1 else kwargs.get("dim")
    return first.dim() > 2 and dim in (-1, first.dim() - 1)


def each(
    name: str, func: Any, first: Any, args: Any, kwargs: Any, pack: Callable[..., Any], kind: type
) -> Any:
    """The results component by component, packed."""
    given = list(nested_in((args, kwargs), kind))
    count = len(first)
    if any(len(other) != count for other in given):
        raise ShapeError(f"{name}: nested tensors of {[len(g) for g in given]} components")
    if name in SHIFTED:
        args, kwargs = _shifted(name, first.dim(), args, kwargs)
    elif name in ("view", "reshape", "expand", "view_as", "reshape_as", "expand_as"):
        args = _sizes_of_component(name, args)
    elif name not in PAIRS and name not in TRAILING and name not in ALONE:
        raise MissingFeature(
            f"{name}: is not implemented for nested tensors; use unbind(), or to_padded_tensor()"
        )
    if name == "bmm":  # a component of a batch is a matrix
        func = T.matmul
    parts = {id(g): g.unbind() for g in given}
    broadcast = name in PAIRS or name in ("matmul", "rmatmul")

    def at(k: int, value: Any) -> Any:
        if isinstance(value, kind):
            return parts[id(value)][k]
        if broadcast and isinstance(value, Tensor) and value.dim() == first.dim():
            return value[k if value.shape[0] > 1 else 0]
        if type(value) in (tuple, list) and not isinstance(value, Tensor):
            return type(value)([at(k, x) for x in value])
        return value

    found = [
        func(*[at(k, a) for a in args], **{n: at(k, v) for n, v in kwargs.items()})
        for k in range(count)
    ]
    if isinstance(found[0], tuple):
        columns = [pack(list(column), first) for column in zip(*found, strict=True)]
        make = type(found[0])
        return make(columns) if hasattr(make, "_fields") or make is not tuple else tuple(columns)
    if isinstance(found[0], list):
        return [pack(list(column), first) for column in zip(*found, strict=True)]
    return pack(found, first)


def _shifted(name: str, ndim: int, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Dims of the batch as dims of a component."""

    def one(dim: Any) -> Any:
        if dim is None or type(dim) is not int:
            return [one(d) for d in dim] if isinstance(dim, (tuple, list)) else dim
        limit = ndim + 1 if name == "unsqueeze" else ndim
        found = wrapped(dim, limit)
        if not found:
            raise ShapeError(
                f"{name}(): along the batch's dim, 0, is not supported for nested tensors"
            )
        return found - 1

    names, args = SHIFTED[name], list(args)
    for k, word in enumerate(names, 1):
        if word is None:
            continue
        if k < len(args):
            args[k] = one(args[k])
        if word in kwargs:
            kwargs = {**kwargs, word: one(kwargs[word])}
    if name in ("chunk", "split", "cat", "concat") and not _says_dim(name, args, kwargs):
        raise ShapeError(f"{name}(): along the batch's dim, 0, is not supported for nested tensors")
    return args, kwargs


def _says_dim(name: str, args: Any, kwargs: Any) -> bool:
    return "dim" in kwargs or len(args) > (1 if name in ("cat", "concat") else 2)


def _sizes_of_component(name: str, args: Any) -> Any:
    """``view`` and its kin: the sizes without the batch's."""
    first, *sizes = args
    if name.endswith("_as"):
        return args
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = list(sizes[0])
    if not sizes or (int(sizes[0]) not in (-1, len(first))):
        raise ShapeError(
            f"{name}(): the first size must be the number of components, {len(first)}, not "
            f"{sizes[0] if sizes else 'missing'}"
        )
    return (first, *[int(n) for n in sizes[1:]])
