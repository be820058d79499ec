"""``torch.linalg``: the linear algebra of the records, under their public names.

The records are in ``ops.solve``, ``ops.factor``, ``ops.spectra`` and their neighbours; one made
with ``namespace="linalg"`` is called ``linalg_<name>`` in the registry.
"""

from __future__ import annotations

from typing import Any

from antorcha.errors import no_such_name
from antorcha.ops.kinds.lapack import LinAlgError
from antorcha.ops.kinds.record import NAMESPACES, REGISTRY

_PUBLIC: dict[str, Any] = {
    **NAMESPACES["linalg"],
    "LinAlgError": LinAlgError,
    "matmul": REGISTRY["matmul"],
    "diagonal": REGISTRY["diagonal"],
}
globals().update(_PUBLIC)


def __getattr__(name: str) -> Any:
    raise no_such_name("torch.linalg", name, _PUBLIC)


def __dir__() -> list[str]:
    return sorted(_PUBLIC)
