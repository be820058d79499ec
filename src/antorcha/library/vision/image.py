"""``torch.ops.image``: files as bytes. What decodes and encodes them is C++ and absent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha._ops import OpOverloadPacket, ops
from antorcha.core.lazy import np
from antorcha.errors import MissingFeature
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.interop import from_numpy


def read_file(filename: str) -> Tensor:
    """The bytes of a file, uint8."""
    return from_numpy(np.fromfile(filename, np.uint8))


def write_file(filename: str, data: Tensor) -> None:
    """Writes the bytes of a 1-d uint8 tensor to a file."""
    data.numpy().tofile(filename)


def _absent(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise MissingFeature(
            f"torch.ops.image.{name}: antorcha does not decode or encode images; use "
            "PIL.Image.open(file) and torchvision.transforms.functional.pil_to_tensor, or "
            "to_pil_image(tensor).save(file)"
        )

    return refuse


def _add(name: str, fn: Callable[..., Any]) -> None:
    ops.image._add(name, OpOverloadPacket(f"image::{name}", {}, fn))


for _name in (
    "decode_png", "decode_jpeg", "decode_image", "decode_gif", "decode_webp", "encode_png",
    "encode_jpeg", "decode_jpegs_cuda", "encode_jpegs_cuda",
):  # fmt: skip
    _add(_name, _absent(_name))
_add("read_file", read_file)
_add("write_file", write_file)
