"""The kinds of parameters that op records name in their annotations; see ``params.KINDS``.

A record's function is run on layouts, expressions or tensors: what those kinds are that may be
tensors depends on the kind of record, and stands in ``in_records.pyi``. Here, for functions that
records call, they are ``Any`` to a type checker. A parameter of any kind may be None where None is
its default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias
from typing import Any as Any  # records import it with the others

if TYPE_CHECKING:
    from antorcha.core.device import Device
    from antorcha.core.dtypes import dtype as DType

Tensor: TypeAlias = Any  # a tensor
OptTensor: TypeAlias = Any  # a tensor or None
Tensors: TypeAlias = Any  # a tuple or list of tensors
Operand: TypeAlias = Any  # a tensor or a Python number, given at run time
Power: TypeAlias = Any  # a tensor, or a Python number that is part of the plan
Number: TypeAlias = Any  # a Python number given at run time
StaticNumber: TypeAlias = Any  # a Python number that is part of the plan
EndNumber: TypeAlias = Any  # the same, or any tensor of no dims: the end of a range
Int: TypeAlias = int  # values that are part of the plan
OptInt: TypeAlias = int | None  # an int or None
Float: TypeAlias = float
OptFloat: TypeAlias = float  # a number; None is the default
Bool: TypeAlias = bool
Str: TypeAlias = str
Ints: TypeAlias = tuple[int, ...]  # tuples of them; a Shape may be written as loose arguments
Floats: TypeAlias = tuple[float, ...]
Shape: TypeAlias = tuple[int, ...]
Dim: TypeAlias = int  # one dim; one, several or all (None)
Dims: TypeAlias = int | tuple[int, ...] | None
Dtype: TypeAlias = "DType"
DeviceArg: TypeAlias = "Device"
