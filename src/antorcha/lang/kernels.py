"""Descriptions of kernels: what a device is asked to compute. They name no device and no Tensor.

A device compiles a description for given layouts to a :class:`Launch`. Inputs are layouts (tensors)
or Python number types (``float``, ``int``, ``bool``, ``complex``: run-time numbers); outputs are
layouts whose storages are fresh or given. ``fresh(storage, offset, .., number, ..)`` allocates the
one output and gives its storage; ``into(out_storage, out_offset, .., inputs)`` writes to storages
that exist. Neither touches version counters.

A launch reads its inputs and writes its outputs, through their layouts, and no other memory. An
output that is a copy of the first input with something changed (Scatter, Replace), or has each
element of it in its own place (Pointwise, a triangle), may be the same memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from antorcha.core.lazy import Array
from antorcha.core.structs import struct
from antorcha.lang.index_kernels import Bags as Bags
from antorcha.lang.index_kernels import Bins as Bins
from antorcha.lang.index_kernels import Distinct as Distinct
from antorcha.lang.index_kernels import Gather as Gather
from antorcha.lang.index_kernels import Replace as Replace
from antorcha.lang.index_kernels import Scatter as Scatter
from antorcha.lang.index_kernels import Search as Search
from antorcha.lang.index_kernels import Select as Select
from antorcha.lang.layer_kernels import Ctc, GridSample

if TYPE_CHECKING:
    import numpy as np

    from antorcha.core.dtypes import dtype
    from antorcha.lang.expr import Expr
    from antorcha.lang.windows import Windows
    from antorcha.runtime.memory.layout import Layout
    from antorcha.runtime.memory.storage import Storage

In = Any  # Layout | type


@struct
class Pointwise:
    """Each output element is an expression of the input elements at the same place.

    ``exprs[k]`` gives output k over ``Input(j, dtype)`` nodes; input j is cast to that dtype as it
    is loaded, the result to the output layout's dtype as it is stored. Inputs broadcast: their
    layouts have been expanded to the output's shape (stride 0 where they repeat).
    """

    exprs: tuple[Expr, ...]


@struct
class Updates:
    """Sets of tensors, each updated in place by the same expressions: many Pointwise at once.

    A set has a tensor for each of ``exprs``, which is written, ``read`` more that lie as these do,
    in one piece, and ``single`` of one element. The outputs are the written ones, set after set;
    the inputs those again, the others of each set after them, and at the end what all sets share:
    numbers, and tensors of one element. ``exprs`` are a Pointwise's over the inputs of a set, then
    the shared ones.
    """

    exprs: tuple[Expr, ...]
    read: int
    single: int
    sets: int

    def inputs_of(self, k: int) -> slice:
        """Where the inputs of set k stand among all."""
        each = len(self.exprs) + self.read + self.single
        return slice(k * each, (k + 1) * each)

    @property
    def shared(self) -> slice:
        """Where those stand that all sets share."""
        return slice(self.inputs_of(self.sets).start, None)


@struct
class Reduce:
    """Folds the elements along some dims into a state, merges states, and finishes them.

    The inputs have the full shape; an output has it too, with stride 0 along the reduced dims.
    ``lift`` gives the state of one element: expressions over the inputs, then ``Input(n)``, the
    element's position within the reduced dims (int64). ``merge`` joins two states: expressions over
    state a (inputs 0..s-1) and state b (s..2s-1); it is associative and commutative up to rounding.
    ``finish`` gives the outputs over the state, then the count of elements (float64 or int64).
    ``start`` is the state of no elements. ``append``, where there is one, is what ``merge`` comes
    to if the elements of state b come after all those of state a.
    """

    dims: tuple[int, ...]
    start: tuple[float | int | bool, ...]
    lift: tuple[Expr, ...]
    merge: tuple[Expr, ...]
    finish: tuple[Expr, ...]
    name: str = ""  # sum, max, ...: lets a device recognise the common ones
    append: tuple[Expr, ...] = ()


@struct
class Folds:
    """Tensors folded to an element each, of one output: a Reduce of every input over all its dims.

    The inputs have one dtype, and each lies in one piece; the order of its elements is free. The
    expressions are those of a Reduce, whose ``lift`` asks for no position.
    """

    start: tuple[float | int | bool, ...]
    lift: tuple[Expr, ...]
    merge: tuple[Expr, ...]
    finish: tuple[Expr, ...]


@struct
class Rows:
    """A row program: each output row is computed from the input rows alone, along the last dim.

    Inputs and outputs that hold one value a row have stride 0 along the last dim (outputs: size 1).
    """

    program: Any  # lang.expr RowProgram
    length: int


@struct
class Scan:
    """Merges the elements along one dim, in order, into a running state; writes it at each element.

    Inputs and outputs have the same shape; one of no dims is a line of one element. ``lift``,
    ``merge``, ``finish`` and ``start`` are those of a Reduce: the state of one element (expressions
    over the inputs, then its position along the dim), how the state so far (inputs 0..s-1) joins a
    later one (s..2s-1), the outputs over the state, and the state of nothing, which joined with a
    state gives that state. ``merge`` is associative up to rounding, and need not be commutative;
    ``run`` bounds how many elements are merged with one another before the state so far joins them:
    0 is any number, 1 is none (strictly in order). ``reverse`` goes from the dim's end.
    """

    dim: int
    start: tuple[float | int | bool, ...]
    lift: tuple[Expr, ...]
    merge: tuple[Expr, ...]
    finish: tuple[Expr, ...]
    reverse: bool = False
    run: int = 0


@struct
class Host:
    """A function of NumPy arrays, run on the host by every device that shares its memory.

    ``fn(*arrays and numbers) -> array or tuple of arrays``, cast to the outputs' dtypes. When the
    output shapes depend on the data (``dynamic``), the arrays' own shapes are taken.
    """

    fn: Callable[..., Any]
    dynamic: bool = False
    dtypes: tuple[Any, ...] = ()


@struct
class Matrices:
    """Linear algebra on each matrix A of a stack.

    ``kind`` says what is computed of A, the first input; info (int32) comes with it where the kind
    ends with "info", and is 0, or the first pivot that is zero, or minor that is not positive:

    "lu": the LU factors with partial pivoting, in one matrix, the pivots, from 1 (int32), info.
    "solve", "solve info": the X of ``A X = B``, B being the second input, whose stack broadcasts
    to A's. With ``vectors``, B and X have vectors in the place of matrices.
    "inverse", "inverse info".
    "cholesky", "cholesky info": the lower factor, from A's lower triangle.
    "determinant"; "logarithm": the determinant's sign, and the logarithm of its magnitude.
    "qr": Q, of any number of columns that there is, and R; "r": R alone, the second output.
    "eigh", "eigh upper": the eigenvalues, ascending, and eigenvectors, from A's lower triangle, or
    from its upper one; "eigenvalues", "eigenvalues upper": the values alone.
    "svd": U, the singular values, descending, and V^H; "singular values".
    "least squares": the shortest X that makes ``A X - B`` least, for an A of full rank, B being the
    second input; and the sizes of the diagonal of R, descending, in the QR factors of A (of A^H, if
    that has fewer columns) with its columns exchanged.
    "triangular", "triangular upper": the X of ``A X = B`` for a triangular A, B being the second
    input; with "unit" at the end of the kind A's diagonal counts as ones.
    "cholesky solve", "cholesky solve upper": the X of ``A X = B`` of two inputs, B and A's factor.
    "lu solve", "lu solve adjoint": that of ``A X = B``, or ``A^H X = B``, of three: A's LU factors,
    the pivots, and B; ``refuse`` makes the exception for pivots that are no rows.
    "permutation": the matrix that exchanges rows as pivots say, which are the input, as above.
    "reflectors": R and the vectors of reflectors in one matrix, and the reflectors' factors.
    "reflector product": the first columns of the product of such reflectors, of these two inputs.
    "reflected", then "right" and "adjoint" where they hold: that product, or its adjoint, times
    the third input, or the third input times it.

    With ``transposed``, rows are columns, of all matrices. ``refuse(k, info)`` makes the exception
    for the first matrix whose info is not 0, number k of the stack; without it none is raised.
    ``run(*arrays)`` computes the same with NumPy, and raises the same.
    """

    name: str  # what errors call it
    kind: str
    run: Callable[..., Any]
    refuse: Callable[[int, int], BaseException] | None = None
    transposed: bool = False
    vectors: bool = False


@struct
class Fourier:
    """Discrete Fourier transforms along ``dims``: sums over x[n] exp(-+ 2 pi i k n / length).

    ``kind`` says from what to what: "complex" (complex to complex), "real" (real to complex; with
    ``onesided`` only the first length // 2 + 1 along the last of the dims, which say the rest), or
    "to real" (such a half back to ``length`` real numbers along the last of the dims). ``forward``
    is the sign of the exponent: minus. ``norm`` says what the sums are multiplied by, one over the
    product of the lengths: "all" of it, its "root", or "none" of it.
    """

    kind: str
    dims: tuple[int, ...]
    forward: bool
    norm: str
    onesided: bool = False
    length: int = 0


@struct
class MatMul:
    """``out[i, m, n] = alpha * sum_k a[i, m, k] * b[i, k, n] + beta * bias[i, m, n]``.

    The operands are seen as stacks of matrices through strides (in elements): (stack, row, column);
    a stride is 0 where an operand repeats. Inputs are a, b and, if there is one, the bias; the
    kernel reads nothing of their own layouts but the dtype.
    """

    batch: int
    m: int
    n: int
    k: int
    a: tuple[int, int, int]
    b: tuple[int, int, int]
    out: tuple[int, int, int]
    bias: tuple[int, int, int] | None = None
    alpha: complex = 1.0  # complex only with complex operands
    beta: complex = 1.0


@struct
class Attention:
    """``softmax(scale * query @ key.T) @ value`` over the last two dims; the dims before them are
    the same in all. ``causal``: query i looks at the keys up to number i, and finds zeros where all
    scores are -inf. A second output, where there is one, has the logarithm of the sum of each
    query's exp(scores)."""

    scale: float
    causal: bool


@struct
class AttentionGradient:
    """The gradients of an attention's query, key and value. The inputs: those three, the result of
    such an Attention, its logarithms of sums, and the gradient of the result."""

    scale: float
    causal: bool


@struct
class Conv:
    """A convolution (cross-correlation), or one of its gradients, over 1 to 3 spatial dims.

    With x of shape (N, C, spatial), w of (K, C / groups, taps) and y of (N, K, out):
    y[n, k, o] = bias[k] + sum over c and t of
    x[n, c, o * stride + t * dilation - padding] w[k, c, t], where x is zero outside.
    ``kind`` says what is computed: "forward" y of (x, w[, bias]), "data" x of (y, w[, bias]), where
    bias has a value for each channel of x, or "weight" w of (x, y).
    The padding is that of the low side; the shapes say how far the high side reaches.
    """

    kind: str
    x: tuple[int, ...]
    w: tuple[int, ...]
    y: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


@struct
class Draw:
    """Fills the output with random numbers, one after the other as its elements lie in memory.

    ``distribution`` says which, with ``parameters``: "uniform" (low, high), from low up to but not
    including high; "normal" (mean, deviation); "log_normal", exp of such a one; "exponential"
    (rate); "cauchy" (median, half-width); "geometric" (chance), tries up to the first success;
    "bernoulli" (chance), 1 or 0; "random" (low, high or None), whole numbers as
    ``runtime.integer_bounds`` has them; "permutation" (), all numbers below the count, once each.
    A complex element takes two numbers.

    Without inputs they come from the device's default generator, the Mersenne Twister of the CPU.
    A device that draws by counting (``runtime.philox``) gets the seed and the offset as run-time
    integers, and then a tensor, expanded to the output's shape, for each parameter that is None.
    In the seed's place may stand a tensor of two int64, the seed and what is added to the offset.
    """

    distribution: str
    parameters: tuple[Any, ...]


@struct
class Pooling:
    """The maximum or the average of windows over the last ``dims`` dims, or the gradient of one.

    With planes x[p, i] of elements and y[p, o] of results, window o being the taps i of x that
    ``windows`` gives it, ``kind`` says what is computed:

    "max": y[p, o] = max of x[p, i] over the window, NaN being the greatest; a second output, where
    there is one (int64), is the i that it was, the first of equals.
    "average": y[p, o] = sum of x[p, i] over the window, by the window's divisor.
    "max gradient": x[p, i] = sum of y[p, o] over the o whose place, the second input, is i.
    "average gradient": x[p, i] = sum of y[p, o] by o's divisor, over the windows that i is in.
    """

    kind: str
    dims: int
    windows: Windows | None = None  # a gradient of a maximum may lack them


@struct
class Resample:
    """Weighted sums of elements along a dim: out[a, i, b] is the sum over t, in this order, of
    weights[t, i] * x[a, p, b], p being places[t, i]; where p is -1 there is no such element.

    ``places`` (int64) and ``weights`` (of the type that the sums are worked out in) are arrays of
    NumPy. Without weights there is one place for each i, and its element is copied.
    """

    dim: int
    places: Array
    weights: Array | None


@struct
class Sort:
    """The elements along a dim in order, the first of them, or the one of some rank.

    Outputs are the values and, where there are two, their positions along ``dim`` (int64). Equal
    elements keep their order, NaN is the greatest, and ``descending`` turns the order. Without
    ``dim``, all elements in row-major order are one line.

    ``kind`` says what is given of each line: "sort" all of it, "top" as many of the first as the
    outputs have along the dim; the others give one element, and their outputs have size 1 there or
    lack the dim: "kth" the one of ``rank``; "median" the lower median, or the first NaN if there is
    one; "nanmedian" the lower median of what is no NaN; "mode" the commonest (the least of these,
    and the last of its equals).
    """

    name: str  # what errors call it
    kind: str
    dim: int | None
    descending: bool = False
    rank: int = 0


@struct
class Arrange:
    """The input's elements with its dims in another order, some of them backwards.

    out[i] = x[j], where j[order[d]] is i[d], or, for the dims of x in ``backwards``, the same from
    the dim's end. A ``triangle`` keeps a part of matrices in the last two dims, and puts zeros in
    the place of the rest: "lower" keeps row r, column c where c - r <= ``diagonal``, "upper" where
    c - r >= ``diagonal``.
    """

    order: tuple[int, ...]
    backwards: tuple[int, ...] = ()
    triangle: str = ""
    diagonal: int = 0


@struct
class Range:
    """Evenly spaced numbers: out[k] = start + k * step, for k = 0, 1, .. of n.

    They are worked out in int64 where both are integers, else in float64, then cast. With an
    ``end``, the second half, k >= n // 2, is end - (n - 1 - k) * step.
    """

    start: float
    step: float
    end: float | None = None


@struct
class TrianglePlaces:
    """Rows and, below, columns of the elements of a triangle, in order. The matrix has ``rows`` and
    ``columns``; what the triangle keeps of it, ``side`` and ``diagonal``, is said as in Arrange."""

    rows: int
    columns: int
    side: str
    diagonal: int


@struct
class Check:
    """Stops what runs unless every element of an integer tensor is right.

    It is where ``low`` <= v < ``high``, or v is ``besides`` (None: no other is). For the first
    element that is not ``refuse(v)`` makes the exception. There is no output.
    """

    low: int
    high: int
    refuse: Callable[[int], BaseException]
    besides: int | None = None


@struct
class Unfold:
    """The sliding blocks of images as columns, or with ``back`` the sum of the columns' blocks.

    With images x[n, c, place], zero outside, columns y[n, (c, tap), block], and tap t of block o
    being the place o * stride + t * dilation - padding along each spatial dim:
    y[n, (c, t), o] = x[n, c, place]; backwards x[n, c, place] = sum of y[n, (c, t), o] over all
    t and o of that place. ``blocks`` counts the blocks along each dim.
    """

    kernel_size: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]
    stride: tuple[int, ...]
    blocks: tuple[int, ...]
    back: bool = False


Description = (
    Draw | Pointwise | Updates | Reduce | Folds | Rows | Scan | Host | Matrices | Fourier | MatMul
    | Conv | Pooling | Gather | Scatter | Bags | Sort | Search | Select | Replace | Distinct | Bins
    | Arrange | Range | TrianglePlaces | Check | Unfold | Resample | Attention
    | AttentionGradient | Ctc | GridSample
)  # fmt: skip
Placed = (Pooling, Resample, Gather, Scatter, Sort, Search, Replace, Arrange, Range,
          TrianglePlaces, GridSample)  # fmt: skip
"""Descriptions whose results lie as the op wants that plans them; others write to any layout."""


def is_dynamic(what: Description) -> bool:
    """Do the outputs' shapes depend on the data? ``fresh`` then gives (layout, storage) of each."""
    return getattr(what, "dynamic", False)


@struct
class Launch:
    """A compiled description."""

    fresh: Callable[..., Any]
    into: Callable[..., None]
    keep: Any = None


class Backend(Protocol):
    """What a device must be able to do. One object each, ``antorcha.devices.<type>.backend``."""

    name: str
    host_memory: bool  # are its storages' addresses readable by this process?

    # A device that runs `Updates` and `Folds` in few launches says so by ``runs_together = True``,
    # one that has a kernel for `GridSample` in float32 and float64 by ``samples_grids = True``.

    def compile(self, what: Description, outs: Sequence[Layout], ins: Sequence[In]) -> Launch: ...

    def multiplies(self, what: MatMul, dtype: dtype) -> bool:
        """Is there a kernel for that product of halves? Else they are widened first."""
        ...

    def attends(self, dtype: dtype, features: int, gradient: bool) -> bool:
        """Is there a kernel for attention in this dtype to so many features at most, or for its
        ``gradient``, too? Else halves are widened, and what is to be differentiated is recorded as
        products and a softmax."""
        ...

    def allocate(self, nbytes: int) -> Storage: ...

    # A device that lacks a dtype has ``check_dtype(dtype)`` too, which raises for it.

    def from_host(self, array: np.ndarray[Any, Any], out: Layout) -> Storage: ...

    def to_host(self, layout: Layout, storage: Storage, offset: int) -> np.ndarray[Any, Any]: ...

    # A device that copies by itself may have three more: ``receive(source, layout, storage, offset,
    # out, wait)``, a storage with a copy of another device's tensor, ``deliver(layout, storage,
    # offset, out)``, one in the host's memory which is there when the device has been waited for,
    # and ``moving(layout, out, wait)``, a launch that copies between its memory and the host's, or
    # None where there is none.

    # A device whose work can be captured has ``held_state(generator, seed, offset, words)``: while
    # it is, the state as a `Draw` takes it from memory (a layout, a storage, where it begins there)
    # and the offset; else None.
