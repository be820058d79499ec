"""Comparisons, tests, logic and bits, element by element. An entry or a record per op."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from antorcha.core import dtypes
from antorcha.lang import expr as E
from antorcha.ops.kinds.functions import function
from antorcha.ops.kinds.pointwise import UnsupportedDtype, pointwise
from antorcha.ops.kinds.samples import integer, integers, of_shapes, spread, tensor_or_number
from antorcha.ops.kinds.types import Tensor

Function = Callable[..., Any]

# Name and other name, what is asked, the function; which of [1, 2, 3] compare so with 2.
COMPARISONS: tuple[tuple[str, str, Function, str], ...] = (
    ("eq", "the elements are equal", operator.eq, "[False,  True, False]"),
    ("ne not_equal", "the elements differ", operator.ne, "[ True, False,  True]"),
    ("lt less", "``input`` is less than ``other``", operator.lt, "[ True, False, False]"),
    ("le less_equal", "``input`` is less than or equal to ``other``", operator.le,
     "[ True,  True, False]"),
    ("gt greater", "``input`` is greater than ``other``", operator.gt, "[False, False,  True]"),
    ("ge greater_equal", "``input`` is greater than or equal to ``other``", operator.ge,
     "[False,  True,  True]"),
)  # fmt: skip
for _names, _asked, _element, _gives in COMPARISONS:
    _name, *_aliases = _names.split()
    function(_name, f"Whether {_asked}.", "torch.tensor([1, 2, 3]), 2", f"tensor({_gives})",
             element=_element, takes=("Tensor", "Operand"), types="compare", inplace=True,
             aliases=_aliases, samples=tensor_or_number(0))  # fmt: skip

# Name, what is asked, what the answers are for 1, -inf and nan.
TESTS = (
    ("isnan", "each element is nan", "[False, False,  True]"),
    ("isinf", "each element is inf or -inf", "[False,  True, False]"),
    ("isfinite", "each element is neither infinite nor nan", "[ True, False, False]"),
    ("signbit", "the sign is negative, that of -0.0 included", "[False,  True, False]"),
)
for _name, _asked, _gives in TESTS:
    function(_name, f"Whether {_asked}.", 'torch.tensor([1., -float("inf"), float("nan")])',
             f"tensor({_gives})", types="predicate", samples=spread())  # fmt: skip


@pointwise("predicate", samples=spread())
def isposinf(input: Tensor):
    """Whether each element is inf.

    >>> torch.isposinf(torch.tensor([1., -float("inf"), float("nan")]))
    tensor([False, False, False])
    """
    if input.dtype.kind != "f":
        if input.dtype.kind == "c":
            raise UnsupportedDtype("isposinf: does not support complex inputs")
        return E.const(False, dtypes.bool_)
    return input == math.inf


@pointwise("predicate", samples=spread())
def isneginf(input: Tensor):
    """Whether each element is -inf.

    >>> torch.isneginf(torch.tensor([1., -float("inf"), float("nan")]))
    tensor([False,  True, False])
    """
    if input.dtype.kind != "f":
        if input.dtype.kind == "c":
            raise UnsupportedDtype("isneginf: does not support complex inputs")
        return E.const(False, dtypes.bool_)
    return input == -math.inf


@pointwise("predicate", samples=spread())
def isreal(input: Tensor):
    """Whether each element is real: its imaginary part is 0.

    >>> torch.isreal(torch.tensor([1., -float("inf"), float("nan")]))
    tensor([True, True, True])
    """
    if input.dtype.kind != "c":
        return E.const(True, dtypes.bool_)
    return E.imag(input) == 0


# Name, what is asked, the function, what the answers are for (0, 0), (1, 0) and (2, 3).
LOGIC: tuple[tuple[str, str, Function, str], ...] = (
    ("logical_and", "both elements are nonzero", lambda a, b: (a != 0) & (b != 0),
     "[False, False,  True]"),
    ("logical_or", "either element is nonzero", lambda a, b: (a != 0) | (b != 0),
     "[False,  True,  True]"),
    ("logical_xor", "just one of the elements is nonzero", lambda a, b: (a != 0) ^ (b != 0),
     "[False,  True, False]"),
)  # fmt: skip
for _name, _asked, _element, _gives in LOGIC:
    function(_name, f"Whether {_asked}.", "torch.tensor([0, 1, 2]), torch.tensor([0, 0, 3])",
             f"tensor({_gives})", element=_element, takes=("Tensor", "Tensor"), types="predicate",
             inplace=True, samples=of_shapes((3, 4), (4,)))  # fmt: skip
function("logical_not", "Whether each element is zero.", "torch.tensor([0, 1, 2])",
         "tensor([ True, False, False])", element=lambda input: input == 0, types="predicate",
         inplace=True, samples=spread())  # fmt: skip

# Name, meaning, the function, what it gives for (-1, 1), (6, 2) and (3, 3).
BITS: tuple[tuple[str, str, Function, str], ...] = (
    ("bitwise_and", "Bitwise and of integers; logical and of bools.", operator.and_, "[1, 2, 3]"),
    ("bitwise_or", "Bitwise or of integers; logical or of bools.", operator.or_, "[-1,  6,  3]"),
    ("bitwise_xor", "Bitwise exclusive or of integers; logical of bools.", operator.xor,
     "[-2,  4,  0]"),
    ("bitwise_left_shift",
     "``input * 2**other`` of integers; 0 where the distance is out of range.",
     operator.lshift, "[-2, 24, 24]"),
    ("bitwise_right_shift", "``input / 2**other`` of integers, rounded down (the sign stays).",
     operator.rshift, "[-1,  1,  0]"),
)  # fmt: skip


def _refuses_floats(make: Any) -> Any:
    yield (make(3), make(3)), {}, RuntimeError, "not implemented"


for _name, _meaning, _element, _gives in BITS:
    function(_name, _meaning, "torch.tensor([-1, 6, 3]), torch.tensor([1, 2, 3])",
             f"tensor({_gives})", element=_element, takes=("Operand", "Operand"), types="bits",
             inplace=True, samples=integers).errors(_refuses_floats)  # fmt: skip
function("bitwise_not", "Every bit of integers turned; logical not of bools.",
         "torch.tensor([-1, 6, 3])", "tensor([ 0, -7, -4])", element=operator.invert, types="bits",
         inplace=True, samples=integer)  # fmt: skip
