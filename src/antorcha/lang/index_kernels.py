"""Descriptions of kernels that read, write and look up by index; see ``lang.kernels``."""

from __future__ import annotations

from collections.abc import Callable

from antorcha.core.structs import struct


@struct
class Gather:
    """Elements of a tensor x at the positions that index tensors say.

    Inputs are x, then an integer tensor for each of ``dims``; these broadcast to one shape. With
    ``at``, the index's dims stand from there on in the output, in the place of the indexed ones:
    out[a.., i.., b..] = x[.., index_k[i..] at dims[k], ..], where a and b are x's other dims.
    Without, one dim is indexed, and the index says for every element of the output (whose shape
    it has) where it is along that dim: out[i..] = x[i.. but index[i..] at dims[0]]. Where ``dims``
    is (), x is seen as one dim of its elements in row-major order, at ``at`` 0.

    An index counts from the end of its dim where it is negative and ``negative`` allows it. For
    one that is no position ``refuse(index, k)`` makes the exception; k counts the index tensors.
    """

    dims: tuple[int, ...]
    at: int | None
    refuse: Callable[[int, int], BaseException]
    negative: bool = False


@struct
class Scatter:
    """A copy of x in which a source is written to, or folded into, what a Gather would read.

    Inputs are x, the source, which is input number ``source``, and the index tensors. The source
    has the shape of the Gather's output; without ``at`` it may be larger, or a number; without
    ``dims`` it may have any with as many elements.
    ``fold`` says what becomes of an element that is written to: "set" (the last source element in
    row-major order), "add", "multiply", "max", "min" or "mean" of its old value, unless ``own``
    is False, and of the source elements that arrive there. Sums of bools are "or". Nothing is
    written for the index ``skipped``. Every index is checked before anything is written.
    """

    fold: str
    dims: tuple[int, ...]
    at: int | None
    refuse: Callable[[int, int], BaseException]
    negative: bool = False
    source: int = 1
    own: bool = True
    skipped: int | None = None


@struct
class Search:
    """Places of values in sorted lines: before how many elements of a line each does not belong.

    Inputs are the lines (along the last dim; or one, of one dim), the values, line by line, and,
    where the lines are not in order, int64 positions that put them in order. The place of v is that
    of the first element e with e >= v, with ``right`` e > v, by bisection. ``refuse()`` makes the
    exception for a position that is none.
    """

    right: bool
    refuse: Callable[[], BaseException]


@struct
class Select:
    """What a mask (the last input; any dtype) chooses, where it is not zero, in row-major order.

    With ``positions`` the mask is the only input, and row d of the output has the positions along
    its dim d; else the first input's elements are given, in one dim. Both inputs broadcast.
    """

    name: str  # what errors call it
    positions: bool
    dynamic = True


@struct
class Replace:
    """A copy of x in which the elements that a mask chooses are those of a source, in order.

    Inputs are x, the mask (bool) and the source; x and the mask broadcast to the output. Where the
    source has too few, ``refuse(wanted, given)`` makes the exception, and nothing is written.
    """

    name: str  # what errors call it
    refuse: Callable[[int, int], BaseException]


@struct
class Distinct:
    """The distinct elements (or slices along ``dim``), for each where it went, and their counts.

    Outputs are the values, in order, or with ``consecutive`` one for each run of equals; for each
    element of the input the number of its value (int64); for each value how many (int64). Of the
    last two, one that is not wanted may be given without elements.
    """

    name: str  # what errors call it
    dim: int | None
    consecutive: bool
    inverse: bool
    counts: bool
    dynamic = True


@struct
class Bins:
    """How often each integer 0, 1, .. occurs, or the sum of the weights that stand beside it.

    Inputs are the integers, in one dim, and the weights, if there are any. The output has ``least``
    elements, or as many as it takes. ``refuse()`` makes the exception for a negative integer.
    """

    name: str  # what errors call it
    least: int
    refuse: Callable[[], BaseException]
    dynamic = True


@struct
class Bags:
    """Rows of a table x folded by bags: by the "sum", "mean" or "max" of those that each names.

    Inputs are x, the index tensor, of one dim; unless all bags have ``size`` indices, an int64
    tensor of where each bag begins, in order; and, if ``weighted``, a number for each index, by
    which its row is multiplied. Of a maximum there is a second output (int64): for each element the
    number of the index that it is from, the first of equals; -1 where a bag is empty, whose values
    are zeros. Nothing is taken for the index ``skipped``. For one that is no position
    ``refuse(index, 0)`` makes the exception. A device that has kernels for this says so by
    ``folds_bags = True``; others are asked for gathers and folds.
    """

    fold: str
    size: int | None
    weighted: bool
    skipped: int | None
    refuse: Callable[[int, int], BaseException]
