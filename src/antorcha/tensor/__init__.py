"""Tensor's methods, printing and indexing: everything that makes the bare tensor usable."""

from __future__ import annotations

import antorcha.ops.all  # registers every record
from antorcha.runtime.tensor import Parameter, Tensor
from antorcha.tensor import (
    devices,
    factories,
    indexing,
    interop,
    legacy,
    metadata,
    sparse_methods,
    storages,
    subclass,
    typed_storage,
)
from antorcha.tensor.attributes import bind_attributes
from antorcha.tensor.bind import bind_methods
from antorcha.tensor.convert import bind_conversions

bind_attributes()
bind_conversions()
bind_methods()
indexing.bind()
metadata.bind()
interop.bind()
storages.bind()
typed_storage.bind()
factories.bind()
legacy.bind()
devices.bind()
sparse_methods.bind()
subclass.bind()

__all__ = ["Parameter", "Tensor"]
