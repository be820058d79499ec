"""Memory formats: names for the order of a tensor's strides."""

from __future__ import annotations

from typing import Any


class memory_format(str):
    """The order of a tensor's strides, e.g. ``torch.channels_last``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.{self._public()}"

    __str__ = __repr__

    def _public(self) -> str:
        plain = str.__str__(self)
        return plain if plain.startswith("channels") else f"{plain}_format"

    def __reduce__(self) -> Any:
        return memory_format, (str.__str__(self),)


contiguous_format = memory_format("contiguous")
legacy_contiguous_format = contiguous_format
preserve_format = memory_format("preserve")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
