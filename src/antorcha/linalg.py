"""``torch.linalg``: the linear algebra of the records, under their public names.

The records are in ``ops.products``, ``ops.linalg`` and ``ops.decompositions``; those made with
``namespace="linalg"`` are called ``linalg_<name>`` in the registry.
"""

from __future__ import annotations

from typing import Any

from antorcha.errors import LinAlgError, did_you_mean
from antorcha.ops.record import REGISTRY

_PREFIX = "linalg_"
_PUBLIC = {
    name.removeprefix(_PREFIX): op
    for name, op in REGISTRY.items()
    if op.namespace == "linalg" and op.name.startswith(_PREFIX)
}
globals().update(_PUBLIC)
__all__ = sorted([*_PUBLIC, "LinAlgError"])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"module 'torch.linalg' has no attribute {name!r}.{did_you_mean(name, _PUBLIC)}"
    )


def __dir__() -> list[str]:
    return list(__all__)
