"""The meta device: shapes, strides and dtypes only. Nothing is computed, nothing is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.errors import MissingFeature
from antorcha.lang.kernels import Description, Launch, MatMul, is_dynamic
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.memory.storage import Storage, null_storage


class MetaBackend:
    """Answers every launch with storages that have a size and no memory."""

    name = "meta"
    host_memory = False

    def compile(self, what: Description, outs: Sequence[Layout], ins: Sequence[Any]) -> Launch:
        if is_dynamic(what):
            raise MissingFeature(
                "this op's result shape depends on the data, which a meta tensor does not have"
            )

        def fresh(*flat: Any) -> Storage:
            return null_storage(outs[0].nbytes)

        def into(*flat: Any) -> None:
            return None

        return Launch(fresh, into)

    def multiplies(self, what: MatMul, dtype: dtypes.dtype) -> bool:
        return True

    def attends(self, dtype: dtypes.dtype, features: int, gradient: bool) -> bool:
        return False

    def allocate(self, nbytes: int) -> Storage:
        return null_storage(nbytes)

    def from_host(self, array: Any, out: Layout) -> Storage:
        return null_storage(out.nbytes)

    def to_host(self, layout: Layout, storage: Storage, offset: int) -> Any:
        raise MissingFeature(
            "Cannot copy out of meta tensor; no data! Make it on another device, e.g. device='cpu'"
        )


backend = MetaBackend()
