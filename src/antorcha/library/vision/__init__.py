"""The compiled operators of torchvision's wheel: ``torch.ops.torchvision`` and ``torch.ops.image``.

The wheel's Python part asks ``torch.ops.load_library`` for its C++ part. antorcha cannot load that,
and serves its operators in Python and the kernel language instead. What decodes and encodes images
raises NotImplementedError by name.
"""

from __future__ import annotations

from antorcha.library.vision import deform, image, regions, schemas

__all__ = ["deform", "image", "regions", "schemas"]
