"""``torch.nn.functional``: the functions behind the layers.

Most are op records, exposed under this name by ``ops`` (see ``record.NAMESPACES``) or shared with
``torch``. What stands here in Python is what differs: the ``inplace`` argument of the activations,
the implicit dim of softmax, and functions made of others.
See https://docs.pytorch.org/docs/stable/nn.functional.html.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from typing import Any

from antorcha.errors import MissingFeature, ShapeError, ValueRangeError, did_you_mean
from antorcha.ops.record import NAMESPACES, REGISTRY, T
from antorcha.runtime.call import path

_SHARED = (
    "adaptive_avg_pool1d adaptive_max_pool1d avg_pool1d bilinear binary_cross_entropy_with_logits "
    "celu_ channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d "
    "cosine_embedding_loss cosine_similarity ctc_loss embedding_bag group_norm hardshrink "
    "hinge_embedding_loss layer_norm linear logsigmoid margin_ranking_loss one_hot "
    "pairwise_distance pdist pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu_ rms_norm "
    "scaled_dot_product_attention selu_ sigmoid tanh threshold_ triplet_margin_loss rrelu_ "
    "elu_ leaky_relu_ hardtanh_ embedding batch_norm instance_norm dropout alpha_dropout "
    "feature_alpha_dropout"
).split()
_INPLACE = (
    "relu", "relu6", "hardtanh", "elu", "selu", "celu", "leaky_relu", "silu", "mish", "hardswish",
    "hardsigmoid", "threshold", "rrelu",
)  # fmt: skip


def _record(name: str) -> Any:
    """The op of that name, from either place; None if there is none."""
    found = NAMESPACES["nn.functional"].get(name, REGISTRY.get(name))
    if found is None and name.endswith("_") and name[:-1] in REGISTRY:
        found = REGISTRY[name[:-1]].inplace
    return found


def _with_inplace(op: Any) -> Callable[..., Any]:
    """The op with PyTorch's last argument ``inplace``."""
    if "inplace" in op.signature.names:
        return op  # type: ignore[no-any-return]
    write = op.inplace
    quick = path.unary(op)
    count = op.signature.positional

    def function(input: Any, *args: Any, inplace: bool = False, **kwargs: Any) -> Any:
        if len(args) == count:  # inplace by position, the last
            inplace, args = args[-1], args[:-1]
        if inplace:
            return write(input, *args, **kwargs)
        return op(input, *args, **kwargs) if args or kwargs else quick(input)

    def bare(input: Any, inplace: bool = False) -> Any:
        return write(input) if inplace else quick(input)

    made = bare if count == 1 else function
    made.__name__ = made.__qualname__ = op.name
    made.__doc__ = op.__doc__ + "\n\nWith ``inplace=True`` the result is written over the input."
    parameters = [
        p.replace(annotation=inspect.Parameter.empty)
        for p in inspect.signature(op.fn).parameters.values()
    ]
    last = inspect.Parameter("inplace", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False)
    made.__signature__ = inspect.Signature([*parameters, last])  # type: ignore[attr-defined]
    return made


def _fill_module() -> None:
    names = globals()
    names.update(NAMESPACES["nn.functional"])
    for name in (*_SHARED, *_INPLACE):
        found = _record(name)
        if found is not None:
            names[name] = found
    for name in _INPLACE:
        if name in names:
            names[name] = _with_inplace(names[name])


# ---------------------------------------------------------------------------------------- softmax
def _dim_of(name: str, ndim: int) -> int:
    """PyTorch's implicit dim, which it warns about."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=4,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """``exp(x_i) / sum_j exp(x_j)`` along ``dim``: positive, with sum 1.

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html.

    >>> torch.nn.functional.softmax(torch.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    return T.softmax(input, _dim_of("softmax", input.dim()) if dim is None else dim, dtype)


def log_softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """``log(exp(x_i) / sum_j exp(x_j))`` along ``dim``, computed without overflow.

    >>> torch.nn.functional.log_softmax(torch.zeros(2), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return T.log_softmax(input, _dim_of("log_softmax", input.dim()) if dim is None else dim, dtype)


def softmin(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """``softmax(-x)``.

    >>> torch.nn.functional.softmin(torch.zeros(2), dim=0)
    tensor([0.5000, 0.5000])
    """
    return T.softmax(-input, _dim_of("softmin", input.dim()) if dim is None else dim, dtype)


def gumbel_softmax(
    logits: Any, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """A sample of the Gumbel-softmax distribution: softmax of the logits plus Gumbel noise.

    With ``hard`` the result is one-hot, its gradient that of the soft sample.
    Jang et al., "Categorical reparameterization with Gumbel-softmax" (2016).

    >>> torch.nn.functional.gumbel_softmax(torch.zeros(2, 3), hard=True).sum()
    tensor(2.)
    """
    noise = -T.empty_like(logits, memory_format="contiguous").exponential_().log()
    soft = T.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = T.max(soft, dim, keepdim=True)[1]
    one_hot = T.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft


# ---------------------------------------------------------------------------------- embedding, pad
def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """Ones at the places that the integers name, zeros elsewhere, along a new last dim.

    Args:
        tensor (LongTensor): class numbers
        num_classes (int): how many there are; -1: one more than the largest. Default: -1

    >>> torch.nn.functional.one_hot(torch.tensor([0, 2]), num_classes=3)
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if tensor._layout.dtype.name != "int64":
        raise ShapeError(
            f"one_hot is only applicable to index tensor of type LongTensor, not {tensor.dtype}: "
            "cast with .long()"
        )
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise ShapeError("one_hot: Can not infer total number of classes from empty tensor.")
        return T.zeros((*tensor.shape, num_classes), dtype=tensor.dtype)
    low, high = tensor.min().item(), tensor.max().item()
    if low < 0:
        raise ShapeError(f"one_hot: Class values must be non-negative, found {low}.")
    if num_classes == -1:
        num_classes = high + 1
    elif num_classes < 1 or high >= num_classes:
        raise ShapeError(
            f"one_hot: Class values must be smaller than num_classes: {high} >= {num_classes}."
        )
    classes = T.arange(num_classes, device=tensor.device)
    return T.eq(tensor.unsqueeze(-1), classes).long()


def pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    """Adds elements on the sides of the last dims; negative numbers take some away.

    Args:
        input (Tensor): what to pad
        pad (sequence of int): (before, after) for each dim, the last dim first
        mode (str): ``'constant'``, ``'reflect'``, ``'replicate'`` or ``'circular'``
        value (float, optional): the constant. Default: 0

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.pad.html.

    >>> torch.nn.functional.pad(torch.ones(2), (1, 2))
    tensor([0., 1., 1., 0., 0.])
    >>> torch.nn.functional.pad(torch.tensor([[1., 2., 3.]]), (2, 0), mode='reflect')
    tensor([[3., 2., 1., 2., 3.]])
    """
    pairs = [int(p) for p in pad]
    if len(pairs) % 2:
        raise ShapeError(f"pad: Padding length must be divisible by 2, but got {len(pairs)}")
    dims = len(pairs) // 2
    if dims > input.dim():
        raise ShapeError(
            "pad: Padding length should be less than or equal to two times the input dimension "
            f"but got padding length {len(pairs)} and input of dimension {input.dim()}"
        )
    if mode == "constant":
        return _pad_constant(input, pairs, 0.0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise MissingFeature(f"pad: Unrecognised padding mode {mode}")
    if value is not None and value != 0:
        raise ValueRangeError(f'pad: Padding mode "{mode}" doesn\'t take in value argument')
    if not dims + 1 <= input.dim() <= dims + 2:
        raise MissingFeature(
            "pad: Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now: "
            f"{len(pairs)} numbers pad the last {dims} dims of a tensor of {dims + 1} or "
            f"{dims + 2} dims, not {input.dim()}"
        )
    for k in range(dims):
        before, after = pairs[2 * k], pairs[2 * k + 1]
        if before or after:
            dim = input.dim() - 1 - k
            input = T.index_select(input, dim, _pad_index(input, dim, before, after, mode))
    return input


def _pad_constant(input: Any, pairs: list[int], value: float) -> Any:
    shape = list(input.shape)
    into: list[Any] = [slice(None)] * len(shape)  # where the input goes in the result
    source = input
    for k in range(len(pairs) // 2):
        before, after = pairs[2 * k], pairs[2 * k + 1]
        dim = len(shape) - 1 - k
        n = shape[dim]
        if n + before + after < 0:
            raise ShapeError(
                f"pad: the input size {n} plus padding {before} and {after} resulted in a negative "
                "output size, which is invalid. Check dimension "
                f"{dim} of your input."
            )
        cut = max(-before, 0), n - max(-after, 0)
        if cut != (0, n):
            source = source.narrow(dim, cut[0], max(cut[1] - cut[0], 0))
        into[dim] = slice(max(before, 0), max(before, 0) + max(cut[1] - cut[0], 0))
        shape[dim] = n + before + after
    result = T.full(tuple(shape), value, dtype=input.dtype, device=input.device)
    result[tuple(into)] = source
    return result


def _pad_index(input: Any, dim: int, before: int, after: int, mode: str) -> Any:
    """Which element stands at each place of the padded dim."""
    n = input.shape[dim]
    if mode == "reflect" and not (before < n and after < n):
        raise ShapeError(
            "pad: Padding size should be less than the corresponding input dimension, but got: "
            f"padding ({before}, {after}) at dimension {dim} of input {list(input.shape)}"
        )
    if mode == "circular" and not (before <= n and after <= n):
        raise ShapeError("pad: Padding value causes wrapping around more than once.")
    places = []
    for k in range(-before, n + after):
        if mode == "circular":
            k %= n
        elif mode == "replicate":
            k = min(max(k, 0), n - 1)
        else:
            k = abs(k) if k < n else 2 * (n - 1) - k
        places.append(k)
    return _long(places, input)


def _long(values: list[int], like: Any) -> Any:
    from antorcha.dtypes import int64
    from antorcha.tensor.create import tensor

    return tensor(values, dtype=int64, device=like.device)


# ---------------------------------------------------------------------------------------- resizing
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    """Resamples the dims after the second to another size, or by a factor.

    Args:
        input (Tensor): ``(N, C, ...)`` with 1 to 3 spatial dims
        size (int or tuple, optional): the output's spatial sizes
        scale_factor (float or tuple, optional): multiplies the input's; give one of the two
        mode (str): ``'nearest'`` or ``'nearest-exact'`` (the others raise NotImplementedError)

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html.

    >>> torch.nn.functional.interpolate(torch.tensor([[[1., 2.]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueRangeError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear "
            "| bicubic | trilinear"
        )
    dims = input.dim() - 2
    if (size is None) == (scale_factor is None):
        what = "either size or scale_factor should be defined" if size is None else (
            "only one of size or scale_factor should be defined"
        )
        raise ValueRangeError(f"interpolate: {what}")
    sizes, scales = _sizes(input, size, scale_factor, dims, recompute_scale_factor)
    if mode not in ("nearest", "nearest-exact"):
        raise MissingFeature(f"interpolate: mode {mode!r} is not supported yet; 'nearest' is")
    if not 1 <= dims <= 3:
        raise MissingFeature(
            "Input Error: Only 3D, 4D and 5D input Tensors supported "
            f"(got {input.dim()}D) for the modes: nearest"
        )
    for k in range(dims):
        n, wanted = input.shape[k + 2], sizes[k]
        if wanted != n:
            scale = 1 / scales[k] if scales[k] else n / wanted
            half = 0.5 if mode == "nearest-exact" else 0.0
            places = [min(math.floor((i + half) * scale), n - 1) for i in range(wanted)]
            input = T.index_select(input, k + 2, _long(places, input))
    return input


def _sizes(
    input: Any, size: Any, scale_factor: Any, dims: int, recompute: bool | None
) -> tuple[list[int], list[Any]]:
    """The output's spatial sizes, and the scales that were given."""
    given = size if size is not None else scale_factor
    values = list(given) if isinstance(given, (tuple, list)) else [given] * dims
    if len(values) != dims:
        what = "output_size" if size is not None else "scale_factor"
        raise ValueRangeError(
            f"Input and {what} must have the same number of spatial dimensions, but got input with "
            f"spatial dimensions of {list(input.shape[2:])} and {what} of {given}."
        )
    if size is not None:
        return [int(v) for v in values], [None] * dims
    sizes = [math.floor(float(n) * f) for n, f in zip(input.shape[2:], values, strict=True)]
    return sizes, [None] * dims if recompute else [float(v) for v in values]


def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None,
) -> Any:  # fmt: skip
    """The old name of :func:`interpolate`."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    """``(*, C*r^2, H, W)`` to ``(*, C, H*r, W*r)``.

    >>> torch.nn.functional.pixel_shuffle(torch.zeros(1, 9, 4, 4), 3).shape
    torch.Size([1, 1, 12, 12])
    """
    *lead, c, h, w = input.shape
    r = upscale_factor
    if r <= 0 or c % (r * r):
        raise ShapeError(
            f"pixel_shuffle: {c} channels are not divisible by the square of upscale_factor {r}"
        )
    n = len(lead)
    parts = input.reshape(*lead, c // (r * r), r, r, h, w)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return parts.permute(order).reshape(*lead, c // (r * r), h * r, w * r)


def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """``(*, C, H*r, W*r)`` to ``(*, C*r^2, H, W)``: undoes :func:`pixel_shuffle`.

    >>> torch.nn.functional.pixel_unshuffle(torch.zeros(1, 1, 12, 12), 3).shape
    torch.Size([1, 9, 4, 4])
    """
    *lead, c, h, w = input.shape
    r = downscale_factor
    if r <= 0 or h % r or w % r:
        raise ShapeError(
            f"pixel_unshuffle: {h} x {w} is not divisible by downscale_factor {r}"
        )
    n = len(lead)
    parts = input.reshape(*lead, c, h // r, r, w // r, r)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return parts.permute(order).reshape(*lead, c * r * r, h // r, w // r)


def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Any:
    """Divides by a power of the mean square of the neighbouring channels.

    >>> torch.nn.functional.local_response_norm(torch.zeros(1, 5, 3), 2).shape
    torch.Size([1, 5, 3])
    """
    dim = input.dim()
    if dim < 3:
        raise ValueRangeError(
            f"Expected 3D or higher dimensionality input (got {dim} dimensions)"
        )
    channels = input.shape[1]
    square = input.mul(input)
    wide = pad(square.transpose(1, -1), (size // 2, (size - 1) // 2)).transpose(1, -1)
    total = wide.narrow(1, 0, channels)
    for shift in range(1, size):
        total = total + wide.narrow(1, shift, channels)
    return input / (total / size).mul(alpha).add(k).pow(beta)


_OURS = {n: globals()[n] for n in ("softmax", "log_softmax", "softmin")}
_fill_module()
globals().update(_OURS)  # the records have no implicit dim


def __getattr__(name: str) -> Any:
    found = _record(name)  # ops registered since
    if found is not None and not name.startswith("_"):
        return found
    raise AttributeError(
        f"module 'torch.nn.functional' has no attribute {name!r}.{did_you_mean(name, globals())}"
    )

