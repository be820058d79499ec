"""The kinds of parameters that op records name in their annotations; see ``params.KINDS``.

To a type checker each is ``Any``: a record's function is run on layouts, expressions or tensors.
"""

from __future__ import annotations

from typing import Any

Tensor = Any  # a tensor
OptTensor = Any  # a tensor or None
Tensors = Any  # a tuple or list of tensors
Operand = Any  # a tensor or a Python number, given at run time
Power = Any  # a tensor, or a Python number that is part of the plan
Number = Any  # a Python number given at run time
StaticNumber = Any  # a Python number that is part of the plan
Int = Float = Bool = Str = Any  # values that are part of the plan
Ints = Floats = Shape = Any  # tuples of them; a Shape may be written as loose arguments
Dim = Dims = Any  # one dim; one, several or all (None)
Dtype = DeviceArg = Any
