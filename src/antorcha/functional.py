"""``torch.functional``: where PyTorch defines some of the functions of ``torch``; programs import
them from here, and annotations name its ``Tensor``."""

from __future__ import annotations

import importlib
from typing import Any

from antorcha.errors import no_such_name

_NAMES = [
    "Tensor", "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes",
    "broadcast_tensors", "cartesian_prod", "cdist", "chain_matmul", "einsum", "istft", "lu",
    "meshgrid", "norm", "pca_lowrank", "split", "stft", "svd_lowrank", "tensordot", "unique",
    "unique_consecutive", "unravel_index",
]  # fmt: skip
__all__ = [*_NAMES]


def __getattr__(name: str) -> Any:
    if name == "F":
        return importlib.import_module("antorcha.nn.functional")
    if name not in _NAMES:
        raise no_such_name("torch.functional", name, _NAMES)
    return getattr(importlib.import_module("antorcha"), name)


def __dir__() -> list[str]:
    return [*_NAMES, "F"]
