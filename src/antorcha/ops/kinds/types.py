"""The kinds of parameters that op records name in their annotations; see ``params.KINDS``.

To a type checker each is ``Any``: a record's function is run on layouts, expressions or tensors.
"""

from __future__ import annotations

from typing import Any as Any  # records import it with the others
from typing import TypeAlias

Tensor: TypeAlias = Any  # a tensor
OptTensor: TypeAlias = Any  # a tensor or None
Tensors: TypeAlias = Any  # a tuple or list of tensors
Operand: TypeAlias = Any  # a tensor or a Python number, given at run time
Power: TypeAlias = Any  # a tensor, or a Python number that is part of the plan
Number: TypeAlias = Any  # a Python number given at run time
StaticNumber: TypeAlias = Any  # a Python number that is part of the plan
EndNumber: TypeAlias = Any  # the same, or any tensor of no dims: the end of a range
Int: TypeAlias = Any  # values that are part of the plan
OptInt: TypeAlias = Any  # an int or None
Float: TypeAlias = Any
OptFloat: TypeAlias = Any  # a number; None is the default
Bool: TypeAlias = Any
Str: TypeAlias = Any
Ints: TypeAlias = Any  # tuples of them; a Shape may be written as loose arguments
Floats: TypeAlias = Any
Shape: TypeAlias = Any
Dim: TypeAlias = Any  # one dim; one, several or all (None)
Dims: TypeAlias = Any
Dtype: TypeAlias = Any
DeviceArg: TypeAlias = Any
