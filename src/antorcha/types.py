"""``torch.types``: names for annotations."""

from __future__ import annotations

import os
from builtins import bool as _bool  # noqa: F401  (programs import them)
from builtins import bytes as _bytes  # noqa: F401  (programs import them)
from builtins import complex as _complex  # noqa: F401  (programs import them)
from builtins import float as _float  # noqa: F401  (programs import them)
from builtins import int as _int  # noqa: F401  (programs import them)
from builtins import str as _str  # noqa: F401  (programs import them)
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

from antorcha.basics import layout as _layout  # noqa: F401
from antorcha.basics import qscheme as _qscheme  # noqa: F401
from antorcha.core.device import Device as _device
from antorcha.core.dtypes import dtype as _dtype  # noqa: F401
from antorcha.core.shapes import Size
from antorcha.errors import explain_missing
from antorcha.runtime.tensor import Tensor
from antorcha.sym import SymBool, SymFloat, SymInt
from antorcha.tensor.storages import UntypedStorage as Storage

__all__ = ["Device", "FileLike", "Number", "Storage"]

_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_symsize: TypeAlias = Size | Sequence[int | SymInt]
_dispatchkey: TypeAlias = str | Any

IntLikeType: TypeAlias = int | SymInt
FloatLikeType: TypeAlias = float | SymFloat
BoolLikeType: TypeAlias = bool | SymBool
PySymType: TypeAlias = SymInt | SymFloat | SymBool
py_sym_types = (SymInt, SymFloat, SymBool)

Number: TypeAlias = int | float | bool
_Number = (int, float, bool)
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
Device: TypeAlias = _device | str | int | None

explain_missing("torch.types", globals())
