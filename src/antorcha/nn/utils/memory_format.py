"""``torch.nn.utils.memory_format``: convolutions' weights laid out in another memory format."""

from __future__ import annotations

from typing import Any

from antorcha.nn.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Any, kinds: Any, memory_format: Any) -> Any:
    for each in module.modules():
        if isinstance(each, kinds):
            weight = each.weight
            weight.data = weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Lays the weights of all Conv2d and ConvTranspose2d out as ``memory_format`` says."""
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Lays the weights of all Conv3d and ConvTranspose3d out as ``memory_format`` says."""
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)
