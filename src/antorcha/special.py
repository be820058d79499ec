"""``torch.special``: the special functions of the records, under their public names.

The records are in ``ops.special``, ``ops.transcendental`` and their neighbours; many are functions
of ``torch`` itself, too.
"""

from __future__ import annotations

from typing import Any

from antorcha.errors import no_such_name
from antorcha.ops.kinds.record import NAMESPACES, REGISTRY

_PUBLIC: dict[str, Any] = {**NAMESPACES["special"], "logsumexp": REGISTRY["logsumexp"]}
globals().update(_PUBLIC)


def __getattr__(name: str) -> Any:
    raise no_such_name("torch.special", name, _PUBLIC)


def __dir__() -> list[str]:
    return sorted(_PUBLIC)
