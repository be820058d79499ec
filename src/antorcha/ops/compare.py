"""Comparisons, tests, logic, bits and selection, element by element. One record per op."""

from __future__ import annotations

import math

from antorcha import dtypes
from antorcha.lang import expr as E
from antorcha.ops.elementwise import spread
from antorcha.ops.pointwise import UnsupportedDtype, pointwise
from antorcha.ops.types import Operand, Tensor


@pointwise("compare", inplace=True)
def eq(input: Tensor, other: Operand):
    """Whether the elements are equal.

    >>> torch.eq(torch.tensor([1, 2, 3]), 2)
    tensor([False,  True, False])
    """
    return input == other


@eq.samples
def _(make):
    yield make(3, 4), make(4)
    yield make(3, 4), 0


@pointwise("compare", inplace=True, aliases=("not_equal",))
def ne(input: Tensor, other: Operand):
    """Whether the elements differ.

    >>> torch.ne(torch.tensor([1, 2, 3]), 2)
    tensor([ True, False,  True])
    """
    return input != other


@ne.samples
def _(make):
    yield make(3, 4), make(4)
    yield make(3, 4), 0


@pointwise("compare", inplace=True, aliases=("less",))
def lt(input: Tensor, other: Operand):
    """Whether ``input`` is less than ``other``.

    >>> torch.lt(torch.tensor([1, 2, 3]), 2)
    tensor([ True, False, False])
    """
    return input < other


@lt.samples
def _(make):
    yield make(3, 4), make(4)
    yield make(3, 4), 0


@pointwise("compare", inplace=True, aliases=("less_equal",))
def le(input: Tensor, other: Operand):
    """Whether ``input`` is less than or equal to ``other``.

    >>> torch.le(torch.tensor([1, 2, 3]), 2)
    tensor([ True,  True, False])
    """
    return input <= other


@le.samples
def _(make):
    yield make(3, 4), make(4)
    yield make(3, 4), 0


@pointwise("compare", inplace=True, aliases=("greater",))
def gt(input: Tensor, other: Operand):
    """Whether ``input`` is greater than ``other``.

    >>> torch.gt(torch.tensor([1, 2, 3]), 2)
    tensor([False, False,  True])
    """
    return input > other


@gt.samples
def _(make):
    yield make(3, 4), make(4)
    yield make(3, 4), 0


@pointwise("compare", inplace=True, aliases=("greater_equal",))
def ge(input: Tensor, other: Operand):
    """Whether ``input`` is greater than or equal to ``other``.

    >>> torch.ge(torch.tensor([1, 2, 3]), 2)
    tensor([False,  True,  True])
    """
    return input >= other


@ge.samples
def _(make):
    yield make(3, 4), make(4)
    yield make(3, 4), 0


@pointwise("predicate")
def isnan(input: Tensor):
    """Whether each element is nan.

    >>> torch.isnan(torch.tensor([1., -float("inf"), float("nan")]))
    tensor([False, False,  True])
    """
    return E.isnan(input)


isnan.samples(spread())


@pointwise("predicate")
def isinf(input: Tensor):
    """Whether each element is inf or -inf.

    >>> torch.isinf(torch.tensor([1., -float("inf"), float("nan")]))
    tensor([False,  True, False])
    """
    return E.isinf(input)


isinf.samples(spread())


@pointwise("predicate")
def isfinite(input: Tensor):
    """Whether each element is neither infinite nor nan.

    >>> torch.isfinite(torch.tensor([1., -float("inf"), float("nan")]))
    tensor([ True, False, False])
    """
    return E.isfinite(input)


isfinite.samples(spread())


@pointwise("predicate")
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


isposinf.samples(spread())


@pointwise("predicate")
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


isneginf.samples(spread())


@pointwise("predicate")
def signbit(input: Tensor):
    """Whether the sign is negative, that of -0.0 included.

    >>> torch.signbit(torch.tensor([1., -float("inf"), float("nan")]))
    tensor([False,  True, False])
    """
    return E.signbit(input)


signbit.samples(spread())


@pointwise("predicate")
def isreal(input: Tensor):
    """Whether each element is real: its imaginary part is 0.

    >>> torch.isreal(torch.tensor([1., -float("inf"), float("nan")]))
    tensor([True, True, True])
    """
    if input.dtype.kind != "c":
        return E.const(True, dtypes.bool_)
    return E.imag(input) == 0


isreal.samples(spread())


@pointwise("predicate", inplace=True)
def logical_and(input: Tensor, other: Tensor):
    """Whether both elements are nonzero.

    >>> torch.logical_and(torch.tensor([0, 1, 2]), torch.tensor([0, 0, 3]))
    tensor([False, False,  True])
    """
    return (input != 0) & (other != 0)


@logical_and.samples
def _(make):
    yield make(3, 4), make(4)


@pointwise("predicate", inplace=True)
def logical_or(input: Tensor, other: Tensor):
    """Whether either element is nonzero.

    >>> torch.logical_or(torch.tensor([0, 1, 2]), torch.tensor([0, 0, 3]))
    tensor([False,  True,  True])
    """
    return (input != 0) | (other != 0)


@logical_or.samples
def _(make):
    yield make(3, 4), make(4)


@pointwise("predicate", inplace=True)
def logical_xor(input: Tensor, other: Tensor):
    """Whether just one of the elements is nonzero.

    >>> torch.logical_xor(torch.tensor([0, 1, 2]), torch.tensor([0, 0, 3]))
    tensor([False,  True, False])
    """
    return (input != 0) ^ (other != 0)


@logical_xor.samples
def _(make):
    yield make(3, 4), make(4)


@pointwise("predicate", inplace=True)
def logical_not(input: Tensor):
    """Whether each element is zero.

    >>> torch.logical_not(torch.tensor([0, 1, 2]))
    tensor([ True, False, False])
    """
    return input == 0


logical_not.samples(spread())


@pointwise("bits", inplace=True)
def bitwise_and(input: Operand, other: Operand):
    """Bitwise and of integers; logical and of bools.

    >>> torch.bitwise_and(torch.tensor([-1, 6, 3]), torch.tensor([1, 2, 3]))
    tensor([1, 2, 3])
    """
    return input & other


@bitwise_and.samples
def _(make):
    yield make.ints((3, 4), 8), make.ints((4,), 4)
    yield make.ints((3, 4), 8), 2


@bitwise_and.errors
def _(make):
    yield (make(3), make(3)), {}, RuntimeError, "not implemented"


@pointwise("bits", inplace=True)
def bitwise_or(input: Operand, other: Operand):
    """Bitwise or of integers; logical or of bools.

    >>> torch.bitwise_or(torch.tensor([-1, 6, 3]), torch.tensor([1, 2, 3]))
    tensor([-1,  6,  3])
    """
    return input | other


@bitwise_or.samples
def _(make):
    yield make.ints((3, 4), 8), make.ints((4,), 4)
    yield make.ints((3, 4), 8), 2


@bitwise_or.errors
def _(make):
    yield (make(3), make(3)), {}, RuntimeError, "not implemented"


@pointwise("bits", inplace=True)
def bitwise_xor(input: Operand, other: Operand):
    """Bitwise exclusive or of integers; logical of bools.

    >>> torch.bitwise_xor(torch.tensor([-1, 6, 3]), torch.tensor([1, 2, 3]))
    tensor([-2,  4,  0])
    """
    return input ^ other


@bitwise_xor.samples
def _(make):
    yield make.ints((3, 4), 8), make.ints((4,), 4)
    yield make.ints((3, 4), 8), 2


@bitwise_xor.errors
def _(make):
    yield (make(3), make(3)), {}, RuntimeError, "not implemented"


@pointwise("bits", inplace=True)
def bitwise_left_shift(input: Operand, other: Operand):
    """``input * 2**other`` of integers; 0 where the distance is out of range.

    >>> torch.bitwise_left_shift(torch.tensor([-1, 6, 3]), torch.tensor([1, 2, 3]))
    tensor([-2, 24, 24])
    """
    return input << other


@bitwise_left_shift.samples
def _(make):
    yield make.ints((3, 4), 8), make.ints((4,), 4)
    yield make.ints((3, 4), 8), 2


@bitwise_left_shift.errors
def _(make):
    yield (make(3), make(3)), {}, RuntimeError, "not implemented"


@pointwise("bits", inplace=True)
def bitwise_right_shift(input: Operand, other: Operand):
    """``input / 2**other`` of integers, rounded down (the sign stays).

    >>> torch.bitwise_right_shift(torch.tensor([-1, 6, 3]), torch.tensor([1, 2, 3]))
    tensor([-1,  1,  0])
    """
    return input >> other


@bitwise_right_shift.samples
def _(make):
    yield make.ints((3, 4), 8), make.ints((4,), 4)
    yield make.ints((3, 4), 8), 2


@bitwise_right_shift.errors
def _(make):
    yield (make(3), make(3)), {}, RuntimeError, "not implemented"


@pointwise("bits", inplace=True)
def bitwise_not(input: Tensor):
    """Every bit of integers turned; logical not of bools.

    >>> torch.bitwise_not(torch.tensor([-1, 6, 3]))
    tensor([ 0, -7, -4])
    """
    return ~input


@bitwise_not.samples
def _(make):
    yield (make.ints((3, 4), 8),)
