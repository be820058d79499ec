"""``nn.functional.pad``: elements added on the sides of dims, constant or copied from within."""

from __future__ import annotations

from antorcha.errors import MissingFeature, ShapeError, ValueRangeError
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.types import Ints, OptFloat, Str, Tensor
from antorcha.runtime.tensor import Tensor as TensorType


@composite(namespace="nn.functional", function=False, method=False, out=False)
def pad(input: Tensor, pad: Ints, mode: Str = "constant", value: OptFloat = None):
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
    if len(pad) % 2:
        raise ShapeError(f"pad: Padding length must be divisible by 2, but got {len(pad)}")
    dims = len(pad) // 2
    if dims > input.dim():
        raise ShapeError(
            "pad: Padding length should be less than or equal to two times the input dimension "
            f"but got padding length {len(pad)} and input of dimension {input.dim()}"
        )
    if mode == "constant":
        return T.constant_pad_nd(input, pad, 0.0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise MissingFeature(f"pad: Unrecognised padding mode {mode}")
    if value is not None and value != 0:
        raise ValueRangeError(f'pad: Padding mode "{mode}" doesn\'t take in value argument')
    if not dims + 1 <= input.dim() <= dims + 2:
        raise MissingFeature(
            "pad: Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now: "
            f"{len(pad)} numbers pad the last {dims} dims of a tensor of {dims + 1} or "
            f"{dims + 2} dims, not {input.dim()}"
        )
    if mode == "circular":
        return _wrapped(input, pad)
    return T.mirrored_pad(input, pad, mode)


@pad.samples
def _(make):
    yield make(3, 4), (1, 2)
    yield make(3, 4), (0, -1, 2, 0), "constant", 1.5
    for mode in ("reflect", "replicate", "circular"):
        yield make(2, 3, 4), (1, 2), mode
        yield make(2, 3, 4), (1, 2, 2, 0), mode
    yield (make(3, 4), (1,)), {}, RuntimeError, "divisible by 2"
    yield (make(3, 4), (5, 0), "reflect"), {}, RuntimeError, "Padding size should be less"
    yield (make(3, 4), (1, 1), "mirror"), {}, NotImplementedError, "Unrecognised padding mode"


@composite(function=False, method=False, out=False)
def mirrored_pad(input: Tensor, pad: Ints, mode: Str):
    """``pad`` by "reflect" or "replicate": a name of its own, as autocast has PyTorch's."""
    for k in range(len(pad) // 2):
        before, after = pad[2 * k : 2 * k + 2]
        if before or after:
            input = _padded(input, input._layout.ndim - 1 - k, before, after, mode)
    return input


def _padded(input: TensorType, dim: int, before: int, after: int, mode: str) -> TensorType:
    """One dim with what stands on its sides."""
    _check_sides(input, dim, before, after, mode)
    if min(before, after) < 0 or not input._layout.contiguous or not input._layout.numel:
        source = _source(input, dim, before, after, mode)
        return T.index_select(input, dim, source)  # type: ignore[no-any-return]
    n = input._layout.shape[dim]
    if mode == "reflect":
        starts = 1, n - 1 - after
    elif mode == "replicate":
        starts = 0, n - 1
    else:
        starts = n - before, 0
    parts = [_side(input, dim, *side, mode) for side in zip(starts, (before, after), strict=True)]
    return T.cat([parts[0], input, parts[1]], dim)  # type: ignore[no-any-return]


def _side(input: TensorType, dim: int, start: int, count: int, mode: str) -> TensorType:
    """What stands on one side."""
    if mode != "replicate":
        found = T.narrow(input, dim, start, count)
        return T.flip(found, dim) if mode == "reflect" else found  # type: ignore[no-any-return]
    shape = list(input._layout.shape)
    shape[dim] = count
    return T.expand(T.narrow(input, dim, start, 1), tuple(shape))  # type: ignore[no-any-return]


def _wrapped(input: TensorType, pad: tuple[int, ...]) -> TensorType:
    """The circular padding: what negative numbers take away is not repeated."""
    for k in range(len(pad) // 2):
        before, after = pad[2 * k : 2 * k + 2]
        dim = input._layout.ndim - 1 - k
        kept = input._layout.shape[dim] + min(before, 0) + min(after, 0)
        if before < 0 or after < 0:
            input = T.narrow(input, dim, max(-before, 0), kept)
        before, after = max(before, 0), max(after, 0)
        if before or after:
            input = _padded(input, dim, before, after, "circular")
    return input


@mirrored_pad.samples
def _(make):
    yield make(2, 3, 4), (1, 2), "reflect"
    yield make(2, 3, 4), (1, 2, 2, 0), "replicate"


def _check_sides(input: TensorType, dim: int, before: int, after: int, mode: str) -> None:
    n = input._layout.shape[dim]
    if mode == "reflect" and not (before < n and after < n):
        raise ShapeError(
            "pad: Padding size should be less than the corresponding input dimension, but got: "
            f"padding ({before}, {after}) at dimension {dim} of input {list(input.shape)}"
        )
    if mode == "circular" and not (before <= n and after <= n):
        raise ShapeError("pad: Padding value causes wrapping around more than once.")


def _source(input: TensorType, dim: int, before: int, after: int, mode: str) -> TensorType:
    """Which element stands at each place of the padded dim."""
    n = input._layout.shape[dim]
    k = T.arange(-before, n + after, device=input.device)
    if mode == "circular":
        return T.remainder(k, n)  # type: ignore[no-any-return]
    if mode == "replicate":
        return T.clamp(k, 0, n - 1)  # type: ignore[no-any-return]
    return (n - 1) - T.abs((n - 1) - T.abs(k))  # type: ignore[no-any-return]
