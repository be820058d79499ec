"""Finding things: nonzero, unique, searchsorted, counts, and tables looked up by index."""

from __future__ import annotations

from typing import Any as _Any

from antorcha import dtypes
from antorcha.errors import ArgumentError, DtypeError, OutOfRange, ShapeError
from antorcha.lang.kernels import Bins, Distinct, Gather, Host, Scatter, Search, Select
from antorcha.lazy import Array, np
from antorcha.ops.index import outside
from antorcha.ops.kernel import Planned, kernel
from antorcha.ops.memory import constant
from antorcha.ops.record import T, composite, sparse_gradients
from antorcha.ops.types import Any, Bool, Int, OptTensor, Str, Tensor
from antorcha.runtime import layout as L
from antorcha.runtime.tensor import Tensor as TensorType


# ------------------------------------------------------------------------------------- nonzero
@kernel(function=False, method=False, out=False)
def nonzero_columns(input: Tensor):
    """The position of every nonzero element: a row per dim."""
    return Planned(Select("nonzero", positions=True), [((0, 0), dtypes.int64)])


@composite()
def nonzero(input: Tensor, *, as_tuple: Bool = False):
    """The position of every nonzero element, one a row; ``as_tuple`` gives a tensor per dim.

    >>> torch.nonzero(torch.tensor([1, 0, 1]))
    tensor([[0],
            [2]])
    """
    if as_tuple:
        some = input if input._layout.ndim else T.unsqueeze(input, 0)
        return T.unbind(T.nonzero_columns(T.contiguous(some)), 0)
    made = T.t(T.nonzero_columns(T.contiguous(input)))
    made._base = None  # the columns are nobody else's
    return made


@nonzero.samples
def _(make):
    yield (make.bools((3, 4)),)
    yield (make.bools((3, 4)),), {"as_tuple": True}
    yield (make.ints((5, 40), 2),)
    yield (make.bools((130,)),)


@composite(out=False)
def argwhere(input: Tensor):
    """The position of every nonzero element, one a row.

    >>> torch.argwhere(torch.tensor([[1, 0], [0, 1]]))
    tensor([[0, 0],
            [1, 1]])
    """
    return T.nonzero(input)


@argwhere.samples
def _(make):
    yield (make.bools((3, 4)),)


# ---------------------------------------------------------------------------------- embeddings
@kernel(method=False, out=False)
def embedding(
    weight: Tensor, indices: Tensor, padding_idx: Int = -1, scale_grad_by_freq: Bool = False,
    sparse: Bool = False,
):  # fmt: skip
    """The rows of ``weight`` at the indices, whose shape the result has in front.

    The row ``padding_idx`` gets no gradient; ``scale_grad_by_freq`` divides a row's gradient by how
    often it was taken; with ``sparse`` the gradient of ``weight`` is a sparse tensor. See
    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.embedding.html.

    >>> torch.embedding(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1, 0, 1]))
    tensor([[3., 4.],
            [1., 2.],
            [3., 4.]])
    """
    if indices.dtype.name not in ("int64", "int32"):
        raise DtypeError(
            "embedding: Expected tensor for argument 'indices' to have one of the following scalar "
            "types: Long, Int; but got {0.dtype} instead",
            reason="integer index", op="embedding", operands=(indices,),
        )  # fmt: skip
    if weight.ndim != 2:
        raise ShapeError(f"embedding: 'weight' must be 2-D, not {tuple(weight.shape)}")
    out = L.contiguous((*indices.shape, weight.shape[1]), weight.dtype, weight.device)
    return Planned(Gather((0,), 0, outside("embedding", weight, 0)), [out])


@embedding.derivative
def _(g, weight_layout, indices, padding_idx, scale_grad_by_freq, sparse):
    if sparse:
        shape = tuple(weight_layout.shape)
        made = sparse_gradients.of_embedding(g, indices, shape, padding_idx, scale_grad_by_freq)
        return made, None
    rows = weight_layout.shape[0]
    return T.embedding_backward(g, indices, rows, padding_idx, scale_grad_by_freq), None


@embedding.samples
def _(make):
    yield make(5, 3), make.ints((4,), 5)
    yield make(5, 3), make.ints((2, 2), 4), 4
    yield (make(3, 2), make.ints((2,), 1) + 3), {}, IndexError, "index 3 is out of bounds"


@composite(function=False, method=False, out=False)
def embedding_backward(
    g: Tensor, indices: Tensor, num_weights: Int, padding_idx: Int, scale_grad_by_freq: Bool
):
    """The gradient of ``embedding``'s table: each row of ``g`` added where it came from."""
    lay = g._layout
    if scale_grad_by_freq:
        count = T.bincount(T.reshape(indices, (-1,)), minlength=num_weights)
        often = T.to_dtype(T.index_at(count, [indices], (0,)), lay.dtype)
        g = T.div(g, T.unsqueeze(often, -1))
    made = T.full_layout((num_weights, lay.shape[-1]), 0, lay.dtype, lay.device)
    return T.embedding_add_(made, g, indices, padding_idx)


@kernel(function=False, method=False, inplace=True)
def embedding_add(input: Tensor, rows: Tensor, indices: Tensor, padding_idx: Int):
    """``input`` with each of ``rows`` added at its index, but for the index ``padding_idx``."""
    refuse = outside("embedding_backward", input, 0)
    skipped = padding_idx if padding_idx >= 0 else None
    what = Scatter("add", (0,), 0, refuse, skipped=skipped)
    return Planned(what, [L.contiguous(tuple(input.shape), input.dtype, input.device)])


@embedding_add.derivative
def _(g, indices, padding_idx, needs):
    if not needs[1]:
        return g, None, None
    taken = T.embedding(g, indices)
    if padding_idx >= 0:
        taken = T.where(T.unsqueeze(T.eq(indices, padding_idx), -1), 0, taken)
    return g, taken, None


@kernel(function=False, method=False, out=False)
def one_hot_of(input: Tensor, num_classes: Int):
    """What ``one_hot`` runs once the number of classes is known."""

    def run(at: Array) -> Array:
        if at.size and (at < 0).any():
            raise ShapeError("one_hot: Class values must be non-negative.")
        if at.size and (at >= num_classes).any():
            raise ShapeError(
                "one_hot: Class values must be smaller than num_classes: {given} is not smaller "
                "than {count}.",
                reason="one-hot class", op="one_hot", given=int(at.max()), count=num_classes,
            )  # fmt: skip
        hot: Array = at[..., None] == np.arange(num_classes)
        return hot.astype(np.int64)

    return Planned(Host(run), [((*input.shape, num_classes), dtypes.int64)])


@composite(function=False, method=False, out=False)
def one_hot(input: Tensor, num_classes: Int = -1):
    """Rows of zeros with a one at the index that each element is.

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.one_hot.html.
    """
    lay = input._layout
    if lay.dtype.name != "int64":
        raise DtypeError(
            "one_hot is only applicable to index tensor (int64), not {0.dtype}.",
            reason="integer index", op="one_hot", operands=(lay,),
        )  # fmt: skip
    if lay.numel == 0 and num_classes <= 0:
        raise ShapeError("one_hot: Can not infer total number of classes from empty tensor.")
    if num_classes < -1 or (num_classes == 0 and lay.numel):
        raise ShapeError(f"one_hot: num_classes should be positive, not {num_classes}")
    if num_classes == -1:
        num_classes = int(T.max(input).item()) + 1
    return T.one_hot_of(input, max(num_classes, 0))


# -------------------------------------------------------------------------------------- counts
@kernel(function=False, method=False, out=False)
def counts_of(input: Tensor, weights: OptTensor, minlength: Int):
    """What ``bincount`` runs."""
    if input.ndim != 1 or input.dtype.kind not in "iu":
        raise ShapeError(
            "bincount only supports 1-d non-negative integral inputs, not "
            f"{tuple(input.shape)} {input.dtype}"
        )
    if minlength < 0:
        raise ShapeError("bincount: minlength should be >= 0")
    if minlength >= 1 << 60:
        raise ShapeError(f"bincount: minlength is too large: {minlength}")
    if weights is not None and tuple(weights.shape) != tuple(input.shape):
        raise ShapeError(
            f"bincount: weights should be 1-d and have the same length as input, not "
            f"{tuple(weights.shape)}"
        )
    single = weights is not None and weights.dtype.name == "float32"
    made = dtypes.int64 if weights is None else dtypes.float32 if single else dtypes.float64
    return Planned(Bins("bincount", minlength, negative), [((0,), made)])


def negative() -> ShapeError:
    return ShapeError("bincount only supports 1-d non-negative integral inputs.")


counts_of.has_no_derivative("bincount")


@composite(out=False)
def bincount(input: Tensor, weights: OptTensor = None, minlength: Int = 0):
    """How often each non-negative integer occurs, or the sum of its weights.

    >>> torch.bincount(torch.tensor([4, 3, 6, 3, 4]))
    tensor([0, 0, 0, 2, 2, 0, 1])
    """
    few = None if weights is None else T.contiguous(weights)
    return T.counts_of(T.contiguous(input), few, minlength)


@bincount.samples
def _(make):
    yield (make.ints((10,), 5),)
    yield (make.ints((10,), 5),), {"minlength": 8}
    yield make.ints((10,), 5), make.ints((10,), 7)
    yield (make(3),), {}, RuntimeError, "non-negative integral"


# ---------------------------------------------------------------------------------- searchsorted
@kernel(function=False, method=False)
def places_in(sequence: Tensor, values: Tensor, out_int32: Bool, right: Bool, sorter: OptTensor):
    """What ``searchsorted`` and ``bucketize`` run."""
    if sequence.ndim != 1 and tuple(sequence.shape[:-1]) != tuple(values.shape[:-1]):
        raise ShapeError(
            "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of"
            " boundaries tensor and input value tensor must match, but we got boundaries tensor "
            f"{list(sequence.shape)} and input value tensor {list(values.shape)}"
        )
    if sequence.dtype is not values.dtype:
        raise DtypeError(
            "searchsorted(): boundary tensor and input value tensor should have same dtype, but "
            f"got boundary tensor {sequence.dtype} and input value tensor {values.dtype}"
        )
    if sorter is not None and tuple(sorter.shape) != tuple(sequence.shape):
        raise ShapeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary "
            f"tensor {list(sequence.shape)} and got sorter tensor {list(sorter.shape)}"
        )
    made = dtypes.int32 if out_int32 else dtypes.int64
    return Planned(Search(right, bad_sorter), [(tuple(values.shape), made)])


def bad_sorter() -> ShapeError:
    return ShapeError("torch.searchsorted(): sorter index out of range")


@composite(method=False)
def searchsorted(
    sorted_sequence: Tensor, input: Any, *, out_int32: Bool = False, right: Bool = False,
    side: Str = None, sorter: OptTensor = None,
):  # fmt: skip
    """Where values would have to be put into a sorted sequence (along its last dim).

    ``side`` says whether before (``"left"``) or behind equal elements.

    >>> torch.searchsorted(torch.tensor([1, 3, 5, 7]), torch.tensor([3, 6]))
    tensor([1, 3])
    """
    if side is not None and side not in ("left", "right"):
        raise ShapeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise ShapeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while"
            " right was True"
        )
    lay = sorted_sequence._layout
    if lay.ndim == 0:
        raise ShapeError("torch.searchsorted(): input value can't be scalar boundaries")
    order = None if sorter is None else T.contiguous(sorter)
    values = T.contiguous(as_values("searchsorted", input, lay))
    right = right or side == "right"
    return T.places_in(T.contiguous(sorted_sequence), values, out_int32, right, order)


def as_values(op: str, value: _Any, lay: _Any) -> _Any:
    """The values to place: a tensor, or a number with the boundaries' dtype."""
    if isinstance(value, TensorType):
        return value
    if not isinstance(value, (int, float)):
        raise ArgumentError(f"{op}(): the values must be a Tensor or a number, not {value!r:.60}")
    return constant(np.asarray(value).astype(lay.dtype.np), lay.device)


@searchsorted.samples
def _(make):
    yield make.ints((6,), 10).sort()[0], make.ints((3, 2), 10)
    yield (make.ints((3, 6), 10).sort(1)[0], make.ints((3, 2), 10)), {"right": True}


@composite()
def bucketize(input: Any, boundaries: Tensor, *, out_int32: Bool = False, right: Bool = False):
    """The number of the interval between sorted boundaries in which each value lies.

    >>> torch.bucketize(torch.tensor([3, 6]), torch.tensor([1, 3, 5]))
    tensor([1, 3])
    """
    lay = boundaries._layout
    if lay.ndim != 1:
        raise ShapeError(f"bucketize: boundaries tensor must be 1 dimension, not {lay.ndim}")
    values = T.contiguous(as_values("bucketize", input, lay))
    return T.places_in(T.contiguous(boundaries), values, out_int32, right, None)


@bucketize.samples
def _(make):
    yield make.ints((3, 2), 10), make.ints((6,), 10).sort()[0]


# ------------------------------------------------------------------------------- sets of values
@kernel(function=False, method=False)
def member(elements: Tensor, tests: Tensor, invert: Bool):
    """What ``isin`` runs."""

    def run(x: Array, y: Array) -> Array:
        return np.isin(x, y, invert=invert)

    return Planned(Host(run), [(tuple(elements.shape), dtypes.bool_)])


@composite(method=False)
def isin(elements: Any, test_elements: Any, *, assume_unique: Bool = False, invert: Bool = False):
    """Whether each element is one of ``test_elements``.

    >>> torch.isin(torch.tensor([[1, 2], [3, 4]]), torch.tensor([2, 3]))
    tensor([[False,  True],
            [ True, False]])
    """
    for each in (elements, test_elements):
        if not isinstance(each, (TensorType, int, float, complex)):
            raise ArgumentError(f"isin(): expected a Tensor or a number, not {each!r:.60}")
    if not (isinstance(elements, TensorType) or isinstance(test_elements, TensorType)):
        raise ArgumentError("isin(): expected a Tensor among elements and test_elements")
    some = elements if isinstance(elements, TensorType) else test_elements
    lay = some._layout
    pair = [
        each if isinstance(each, TensorType) else constant(np.asarray(each), lay.device)
        for each in (elements, test_elements)
    ]
    return T.member(*pair, invert)


@isin.samples
def _(make):
    yield make.ints((3, 4), 5), make.ints((2,), 5)


@kernel(function=False, method=False, out=False)
def unique_parts(input: Tensor, dim: Int, consecutive: Bool):
    """Values, inverse and counts; ``dim`` is -1 for the flattened tensor."""
    what = Distinct("unique", None if dim < 0 else dim, consecutive)
    return Planned(what, [((0,), input.dtype), ((0,), dtypes.int64), ((0,), dtypes.int64)])


unique_parts.has_no_derivative("unique")


def chosen(found: _Any, return_inverse: bool, return_counts: bool) -> _Any:
    values, inverse, counts = found
    made: tuple[_Any, ...] = (values,)
    if return_inverse:
        made += (inverse,)
    if return_counts:
        made += (counts,)
    return made if len(made) > 1 else values


def in_front(values: TensorType, dim: int) -> TensorType:
    """The same tensor, lying as if ``dim`` were its first."""
    made = T.movedim(T.contiguous(T.movedim(values, dim, 0)), 0, dim)
    made._base = None
    return made  # type: ignore[no-any-return]


def unique_dim(input: TensorType, dim: _Any, op: str) -> int:
    if dim is None:
        return -1
    ndim = input._layout.ndim
    if not -max(ndim, 1) <= dim < max(ndim, 1):
        raise OutOfRange(
            f"{op}: Dimension out of range (expected to be in range of [{-max(ndim, 1)}, "
            f"{max(ndim, 1) - 1}], but got {dim})"
        )
    return -1 if ndim == 0 else int(dim % ndim)


@composite(out=False)
def unique(
    input: Tensor, sorted: Bool = True, return_inverse: Bool = False, return_counts: Bool = False,
    dim: Any = None,
):  # fmt: skip
    """The distinct elements (or slices along ``dim``), in order.

    ``return_inverse`` adds where each element went, ``return_counts`` how often each occurs.

    >>> torch.unique(torch.tensor([1, 3, 2, 3]))
    tensor([1, 2, 3])
    """
    d = unique_dim(input, dim, "unique")
    found = T.unique_parts(T.contiguous(input) if d < 0 else input, d, False)
    if dim is not None and input._layout.ndim > 1:  # PyTorch puts the dim in front, and back
        found = (in_front(found[0], dim), *found[1:])
    return chosen(found, return_inverse, return_counts)


@unique.samples
def _(make):
    yield (make.ints((3, 4), 5),)
    yield (make.ints((6, 2), 2),), {"dim": 0}
    yield (make.ints((100,), 9),), {"return_inverse": True, "return_counts": True}


@composite(out=False)
def unique_consecutive(
    input: Tensor, return_inverse: Bool = False, return_counts: Bool = False, dim: Any = None
):
    """The elements (or slices along ``dim``) without those equal to the one before.

    >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 2, 3, 1, 1, 2]))
    tensor([1, 2, 3, 1, 2])
    """
    d = unique_dim(input, dim, "unique_consecutive")
    found = T.unique_parts(T.contiguous(input) if d < 0 else input, d, True)
    if dim is not None and input._layout.ndim > 1:
        found = (in_front(found[0], dim), *found[1:])
    return chosen(found, return_inverse, return_counts)


@unique_consecutive.samples
def _(make):
    yield (make.ints((4, 10), 2),), {"return_inverse": True, "return_counts": True}
    yield (make.ints((10,), 2),)
