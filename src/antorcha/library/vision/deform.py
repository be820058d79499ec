"""``torch.ops.torchvision.deform_conv2d`` and its gradients.

Dai et al., "Deformable convolutional networks" (2017), and with a mask Zhu et al. (2018). The
windows' values are taken by a kernel, at places that move by ``offset``; the rest is a product of
matrices.
"""

from __future__ import annotations

from typing import Any

from antorcha.core.lazy import Array, np
from antorcha.errors import ShapeError, operand
from antorcha.library.custom import register_autograd
from antorcha.library.vision import deform_kernels
from antorcha.library.vision.kernels import TYPES
from antorcha.library.vision.regions import elements, once
from antorcha.library.vision.schemas import OPERATORS
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.interop import from_numpy


class _Windows:
    """The operands of a call, checked."""

    def __init__(
        self, input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor,
        stride_h: int, stride_w: int, pad_h: int, pad_w: int, dilation_h: int, dilation_w: int,
        groups: int, offset_groups: int, use_mask: bool,
    ) -> None:  # fmt: skip
        given = {"input": input, "weight": weight, "offset": offset, "bias": bias}
        if use_mask:
            given["mask"] = mask
        self.x, self.weight, self.offset, self.bias, *rest = elements("deform_conv2d", given)
        self.mask: Array | None = rest[0] if rest else None
        self.groups = groups
        if input.dim() != 4 or weight.dim() != 4 or offset.dim() != 4:
            raise ShapeError(
                f"deform_conv2d: input {operand(input.shape)}, weight {operand(weight.shape)} and "
                f"offset {operand(offset.shape)} must have 4 dims"
            )
        n, c, h, w = self.x.shape
        out, per_group, kh, kw = self.weight.shape
        oh = (h + 2 * pad_h - dilation_h * (kh - 1) - 1) // stride_h + 1
        ow = (w + 2 * pad_w - dilation_w * (kw - 1) - 1) // stride_w + 1
        if per_group * groups != c or out % groups or c % offset_groups:
            raise ShapeError(
                f"deform_conv2d: weight {operand(weight.shape)} in {groups} groups, and "
                f"{offset_groups} offset groups, do not fit an input of {c} channels"
            )
        taps = offset_groups * kh * kw
        self._check("offset", offset, (n, 2 * taps, oh, ow))
        if use_mask:
            self._check("mask", mask, (n, taps, oh, ow))
        self.sizes = np.array(
            [n, c, h, w, kh, kw, oh, ow, offset_groups, stride_h, stride_w, pad_h, pad_w,
             dilation_h, dilation_w], np.int64,
        )  # fmt: skip
        self.rows, self.places = per_group * kh * kw, n * oh * ow
        self.result = (out, n, oh, ow)

    def _check(self, name: str, given: Tensor, expected: tuple[int, ...]) -> None:
        if tuple(given.shape) != expected:
            raise ShapeError(
                f"deform_conv2d: {name} {operand(given.shape)} must be {operand(expected)}: as "
                "many channels as the windows have places, and the size of the result"
            )

    def columns(self) -> Tensor:
        """The windows' values, (groups, rows, places)."""
        result = np.empty((self.groups, self.rows, self.places), self.x.dtype)
        if result.size:
            self._run(result, None, None, None, False)
        return from_numpy(result)

    def gradients(self, columns: Array) -> tuple[Array, Array, Array | None]:
        """Of the input, the offset and the mask, from that of the columns."""
        sums = np.zeros_like(self.x), np.zeros_like(self.offset)
        masks = None if self.mask is None else np.zeros_like(self.mask)
        if columns.size:
            self._run(columns, *sums, masks, True)
        return *sums, masks

    def _run(self, columns: Array, *sums: Any) -> None:
        *places, backward = sums
        deform_kernels.windows(
            self.x, columns, self.offset, self.mask, *places, self.sizes,
            T=TYPES[self.x.dtype.name], BACKWARD=backward,
        )  # fmt: skip


def deform_conv2d(input: Tensor, weight: Tensor, *rest: Any) -> Tensor:
    """The convolution of windows whose places ``offset`` moves and ``mask`` weights."""
    call = _Windows(input, weight, *rest)
    matrix = weight.detach().reshape(call.groups, -1, call.rows)
    product = (matrix @ call.columns()).reshape(call.result)
    result: Tensor = product.transpose(0, 1).contiguous()
    return result.add_(from_numpy(call.bias).reshape(1, -1, 1, 1))


def _backward(grad: Tensor, input: Tensor, weight: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    call = _Windows(input, weight, *rest)
    matrix = weight.detach().reshape(call.groups, -1, call.rows)
    flat = grad.detach().transpose(0, 1).reshape(call.groups, -1, call.places)
    of_weight = (flat @ call.columns().transpose(1, 2)).reshape(weight.shape)
    columns = (matrix.transpose(1, 2) @ flat).contiguous().numpy()
    of_input, of_offset, masks = call.gradients(columns)
    of_mask = rest[1].new_zeros(rest[1].shape) if masks is None else from_numpy(masks)
    of_bias = grad.detach().sum((0, 2, 3))
    return from_numpy(of_input), of_weight, from_numpy(of_offset), of_mask, of_bias


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs[:5])
    ctx.options = inputs[5:]


def _derive(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    found = OPERATORS["_deform_conv2d_backward"](grad, *ctx.saved_tensors, *ctx.options)
    return *found, *[None] * len(ctx.options)


OPERATORS["deform_conv2d"].kernels["cpu"] = deform_conv2d
OPERATORS["_deform_conv2d_backward"].kernels["cpu"] = _backward
register_autograd(OPERATORS["deform_conv2d"], _derive, setup_context=_setup)
register_autograd(OPERATORS["_deform_conv2d_backward"], once("deform_conv2d"), setup_context=None)
