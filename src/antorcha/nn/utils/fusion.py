"""``torch.nn.utils.fusion``: batch norm in evaluation, made part of the layer before it."""

from __future__ import annotations

import copy
from typing import Any

from antorcha.nn.parameter import Parameter
from antorcha.ops.kinds.record import T

__all__ = [
    "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights",
]  # fmt: skip


def _fused(weight: Any, bias: Any, mean: Any, var: Any, eps: float, scale: Any, shift: Any,
           shape: list[int]) -> tuple[Any, Any]:  # fmt: skip
    """The parameters of ``(layer(x) - mean) / sqrt(var + eps) * scale + shift``."""
    bias_dtype = weight.dtype if bias is None else bias.dtype
    bias = T.zeros_like(mean) if bias is None else bias
    scale = T.ones_like(mean) if scale is None else scale
    shift = T.zeros_like(mean) if shift is None else shift
    factor = T.rsqrt(var + eps) * scale
    result = weight * factor.reshape(shape).to(weight.dtype)
    moved = ((bias - mean) * factor + shift).to(bias_dtype)
    return (
        Parameter(result.detach(), weight.requires_grad),  # type: ignore[call-arg]
        Parameter(moved.detach(), bias.requires_grad),  # type: ignore[call-arg]
    )


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any,
    transpose: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """A convolution's weight and bias with the batch norm behind it in them."""
    shape = [1, -1] if transpose else [-1, 1]
    shape += [1] * (conv_w.dim() - 2)
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Any, Any]:
    """A linear layer's weight and bias with the batch norm behind it in them."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _check(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that computes ``bn(conv(x))``; both in evaluation mode.

    >>> conv, bn = torch.nn.Conv2d(1, 2, 3).eval(), torch.nn.BatchNorm2d(2).eval()
    >>> torch.nn.utils.fuse_conv_bn_eval(conv, bn)
    Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))
    """
    _check(conv, bn)
    result = copy.deepcopy(conv)
    result.weight, result.bias = fuse_conv_bn_weights(
        result.weight, result.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
        transpose,
    )  # fmt: skip
    return result


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear layer that computes ``bn(linear(x))``; both in evaluation mode."""
    _check(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    result = copy.deepcopy(linear)
    result.weight, result.bias = fuse_linear_bn_weights(
        result.weight, result.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return result
