"""Batching rules: what an op does to a batch of examples, in one call.

Under ``vmap`` an op is called with examples: tensors that stand for a batch of them. A rule gets
the ``Batch``, the op (or its in-place form) and the bound values of its parameters, examples among
them, and gives the results for the whole batch, whose first dim is the batch's. Each kind of record
has a rule of this file by default; a record names another (``batching="matrices"``) or has one of
its own::

    @matmul.batches
    def _(batch, op, input, other):
        ...

What has none is run example by example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from antorcha.core.shapes import normalize_dim, normalize_dims
from antorcha.ops.kinds.operands import common_dtype
from antorcha.ops.kinds.params import NUMBER, TENSORS
from antorcha.ops.kinds.record import InPlace, Op, T
from antorcha.runtime.tensor import Tensor

if TYPE_CHECKING:
    from antorcha.tensor.batched import Batch

Values = Sequence[Any]
Kind = TypeVar("Kind")
_OWN_DTYPES = ("predicate", "own", "copy", "masked")


def rule_of(op: Op) -> Callable[..., Any] | None:
    """The op's rule; None: it has none."""
    rule = op.batching
    if rule == "":
        rule = _by_kind(op)
    if isinstance(rule, str):
        found: Callable[..., Any] = _RULES[rule]
        return found
    if rule is None:
        return None
    own = rule
    return lambda batch, run, values: own(batch, run, *values)


def _by_kind(op: Op) -> str | None:
    kind = type(op).__name__
    if kind in ("PointwiseOp", "ReductionOp"):
        return "pointwise" if kind == "PointwiseOp" else "reduction"
    planner = getattr(op.planner, "__name__", "")
    if planner in ("plan_view", "plan_views") or any(
        [param.kind in ("Dim", "Dims") for param in op.signature.params]
    ):
        return "along"
    return "matrices" if op.name.startswith("linalg_") and planner == "plan_kernel" else None


def record_of(op: Op | InPlace) -> Op:
    """The op, of its in-place form, too."""
    return op.op if isinstance(op, InPlace) else op


def call(op: Any, values: Values) -> Any:
    """Calls an op, or its in-place form, with a value for each parameter."""
    signature = record_of(op).signature
    n = signature.positional
    named = dict(zip(signature.names[n:], values[n:], strict=True))
    defaults = signature.defaults[n:]
    return op(
        *values[:n],
        **{k: v for (k, v), d in zip(named.items(), defaults, strict=True) if v is not d},
    )


def instances_in(values: Iterable[Any], kind: type[Kind]) -> list[Kind]:
    """What there is of exactly this class among a call's arguments, in tuples and lists, too."""
    found: list[Kind] = []
    for value in values:
        if type(value) is kind:
            found.append(value)
        elif type(value) in (tuple, list):
            found += instances_in(value, kind)
    return found


def _ndim(value: Any) -> int:
    return int(value._layout.ndim) if isinstance(value, Tensor) else 0


def beside(tensor: Tensor, ndim: int) -> Tensor:
    """A batch with dims of size 1 behind the batch's, so that its examples have so many."""
    missing = ndim + 1 - tensor._layout.ndim
    if missing <= 0:
        return tensor
    shape = tensor._layout.shape
    aligned: Tensor = T.view(tensor, (shape[0], *[1] * missing, *shape[1:]))
    return aligned


def _flat(whole: Tensor) -> Tensor:
    """A batch of vectors: all elements of each example."""
    flat: Tensor = T.flatten(whole, 1) if whole._layout.ndim > 1 else T.unsqueeze(whole, 1)
    return flat


# ------------------------------------------------------------------------------------ by the kind
def pointwise(batch: Batch, run: Any, values: Values) -> Any:
    """Operands broadcast as the examples do, and are cast as the examples would be."""
    op = record_of(run)
    ndim = max(map(_ndim, values))
    aligned = [beside(batch.whole(v), ndim) if batch.has(v) else v for v in values]
    return call(run, _cast(op, values, aligned))


def _cast(op: Any, values: Values, aligned: list[Any]) -> list[Any]:
    """The operands in the examples' common dtype, where that of the batches is another: an example
    of 0 dims has no say beside larger ones, a batch of them has."""
    rule = op.types if isinstance(op.types, str) else "promote"
    if rule in _OWN_DTYPES:
        return aligned
    places = [
        k for k, p in enumerate(op.signature.params)
        if p.check is None and p.code not in (NUMBER, TENSORS) and not (rule == "where" and k == 0)
    ]  # fmt: skip
    places = [k for k in places if values[k] is not None]
    kinds = [[_kind(v[k]) for k in places] for v in (values, aligned)]
    dtype = common_dtype(kinds[0])
    if common_dtype(kinds[1]) is not dtype:
        for k in places:
            if isinstance(aligned[k], Tensor):
                aligned[k] = T.to_dtype(aligned[k], dtype)
    return aligned


def _kind(value: Any) -> Any:
    return value._layout if isinstance(value, Tensor) else type(value)


def reduction(batch: Batch, run: Any, values: Values) -> Any:
    """Reduces dims of the examples, all where none are named."""
    op: Any = record_of(run)
    names = op.signature.names
    ndim = _ndim(values[0])
    whole = [batch.whole(v) if isinstance(v, Tensor) else v for v in values]
    size = whole[0]._layout.shape[0]
    if "dim" not in names:
        return (T.amax if op.name == "max_all" else T.amin)(_flat(whole[0]), (1,))
    at, dim = names.index("dim"), values[names.index("dim")]
    whole[at] = _shifted(dim, max(ndim, 1), op.name) if dim is not None else None
    if ndim and dim is not None and (dim != () or not op.empty_dims_are_all):
        return call(run, whole)
    keeps = "keepdim" in names and whole[names.index("keepdim")]
    whole[0] = _flat(whole[0])
    whole[at] = 1 if op.signature.params[at].kind == "Dim" else (1,)
    if keeps:
        whole[names.index("keepdim")] = False
    result = call(run, whole)
    return batch.each(result, lambda t: T.reshape(t, (size, *[1] * ndim))) if keeps else result


def _shifted(dim: Any, ndim: int, name: str) -> Any:
    """Dims of an example as dims of a batch."""
    if isinstance(dim, tuple):
        return tuple([d + 1 for d in normalize_dims(dim, ndim, op=name)])
    return normalize_dim(dim, ndim, op=name) + 1


def along(batch: Batch, run: Any, values: Values) -> Any:
    """An op that does the same with each of what the other dims hold: its dims move by one. Several
    operands have the examples' dims in common."""
    op = record_of(run)
    tensors = [v for v in values if isinstance(v, Tensor)]
    ndim = max(map(_ndim, tensors), default=0)
    if any([_ndim(v) != ndim for v in tensors]) or not tensors:
        return batch.one_by_one(run, values)
    scalar = not ndim and op.name not in ("unsqueeze", "alias", "squeeze")
    more = 1 if op.name == "unsqueeze" else 0
    whole = [batch.whole(v) if isinstance(v, Tensor) else v for v in values]
    if scalar:  # PyTorch takes dims 0 and -1 of a tensor that has none
        whole = [T.unsqueeze(v, 1) if isinstance(v, Tensor) else v for v in whole]
    for k, param in enumerate(op.signature.params):
        if param.kind in ("Dim", "Dims") and values[k] is not None:
            whole[k] = _shifted(values[k], max(ndim, 1) + more, op.name) if ndim + more else (
                _shifted(values[k], 1, op.name) if scalar else values[k]
            )  # fmt: skip
    result = call(run, whole)
    return batch.each(result, lambda t: T.squeeze(t, 1)) if scalar else result


def numbered(batch: Batch, run: Any, values: Values) -> Any:
    """The same of an op whose dims are a tuple of numbers."""
    at = run.signature.names.index("dims")
    whole = [batch.whole(values[0]), *values[1:]]
    whole[at] = _shifted(values[at], max(_ndim(values[0]), 1), run.name)
    return call(run, whole) if _ndim(values[0]) else batch.one_by_one(run, values)


def listed(batch: Batch, run: Any, values: Values) -> Any:
    """An op along a dim of each of a list of tensors, such as ``cat``."""
    tensors, dim = values
    ndim = max(map(_ndim, tensors))
    if run.name == "stack":
        ndim += 1
    whole = [
        # (`cat` skips vectors of no elements)
        T.reshape(batch.whole(t), (0,)) if t._layout.shape == (0,) and ndim > 1 else batch.whole(t)
        for t in tensors
    ]
    return run(whole, _shifted(dim, ndim, run.name))


def leading(batch: Batch, run: Any, values: Values) -> Any:
    """An op that takes any number of dims in front of those that it works on."""
    return call(run, [batch.whole(v) if isinstance(v, Tensor) else v for v in values])


def copies(batch: Batch, run: Any, values: Values) -> Any:
    """A copy: of all examples, but where it is to lie in an order that counts dims."""
    of_images = isinstance(values[1], str) and "channels" in values[1]
    return batch.one_by_one(run, values) if of_images else leading(batch, run, values)


def medians(batch: Batch, run: Any, values: Values) -> Any:
    """The median of all elements of each example."""
    of_rows = getattr(T, run.name.replace("_all", "_dim"))
    return of_rows(_flat(batch.whole(values[0])), 1)[0]


def matrices(batch: Batch, run: Any, values: Values) -> Any:
    """The same of an op on matrices, several of which broadcast."""
    ndim = max(map(_ndim, values))
    return call(run, [beside(batch.whole(v), ndim) if isinstance(v, Tensor) else v for v in values])


def images(batch: Batch, run: Any, values: Values) -> Any:
    """An op on images (N, C, ...): more of them."""
    whole = batch.whole(values[0])
    shape = whole._layout.shape
    result = call(run, [T.reshape(whole, (shape[0] * shape[1], *shape[2:])), *values[1:]])
    return batch.each(result, lambda t: T.reshape(t, (shape[0], shape[1], *t._layout.shape[1:])))


def sums_of_losses(batch: Batch, run: Any, values: Values) -> Any:
    """Losses summed up, or averaged, for each example."""
    input, target, mean, param = values
    each = getattr(T, run.name.replace("_total", "_each"))(
        *[batch.whole(t) for t in (input, target)], param
    )
    flat = _flat(each)
    return T.mean(flat, 1) if mean else T.sum(flat, 1)


_RULES: dict[str, Callable[..., Any]] = {
    "along": along, "copies": copies, "images": images, "leading": leading,
    "listed": listed, "losses": sums_of_losses, "matrices": matrices, "medians": medians,
    "numbered": numbered, "pointwise": pointwise, "reduction": reduction,
}  # fmt: skip
