"""What an ``out=`` tensor may be: memory apart from the operands', and a dtype the op writes.

An op computes a result whatever ``out=`` shares with its operands; but where PyTorch says that the
result would depend on the order of the writes it refuses, and so do we.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from antorcha.core import dtypes
from antorcha.core.shapes import is_dense, may_overlap
from antorcha.errors import ShapeError
from antorcha.runtime.tensor import Tensor

APART = {"cat": 1 << 30, "gather": 1, "index_select": 2, "kthvalue": 1, "masked_select": 2,
         "stack": 1 << 30, "take": 2}  # fmt: skip
"""The ops that do not even write over the whole of one of their first operands, and how many those
are: an element that is read may be one that was written."""

ANYWHERE = frozenset(
    ("all", "amax", "amin", "any", "argmax", "argmin", "avg_pool2d", "bmm", "bucketize",
     "cholesky_solve", "diag", "diff", "histc", "inner", "log_softmax", "logsigmoid", "logsumexp",
     "matmul", "matrix_power", "mean", "mm", "mv", "nanmean", "nanquantile", "nansum", "norm",
     "prod", "quantile", "searchsorted", "softmax", "std", "sum", "tensordot", "threshold", "tril",
     "triu", "var")
)  # fmt: skip
"""The ops whose result may reach into an operand: PyTorch does not look either."""

EXACT = frozenset(
    ("abs", "addbmm", "addmm", "addmv", "amax", "amin", "aminmax", "argmax", "argmin", "avg_pool2d",
     "baddbmm", "bitwise_not", "bmm", "ceil", "clamp", "clamp_max", "clamp_min", "complex",
     "cummax", "cummin", "diag", "dot", "floor", "frac", "gather", "gelu", "hardshrink",
     "hash_tensor", "histc", "index_add", "index_copy", "index_reduce", "index_select", "inner",
     "isin", "isneginf", "isposinf", "kthvalue", "lerp", "linear", "log_softmax", "logcumsumexp",
     "logsigmoid", "masked_select", "matmul", "matrix_power", "mm", "mode", "msort", "multinomial",
     "mv", "nan_to_num", "nanquantile", "neg", "nonzero", "norm", "polar", "quantile", "renorm",
     "round", "scatter", "scatter_add", "scatter_reduce", "sgn", "sign", "signbit", "slice_scatter",
     "softmax", "softplus", "softshrink", "sort", "take", "take_along_dim", "tensordot", "topk",
     "tril", "triu", "trunc", "vdot", "where")
)  # fmt: skip
"""The ops whose kernels write no other dtype than the result's, as do those that copy a view;
others cast to that of ``out=``."""


def check_apart(op: str, outs: Sequence[Any], given: Iterable[Any]) -> None:
    """Refuses results of which two elements share memory, and those that reach into an operand."""
    operands = list(_tensors(given))
    for out in outs:
        if not isinstance(out, Tensor):
            continue
        layout = out._layout
        if not layout.contiguous and may_overlap(layout.shape, layout.strides):
            raise ShapeError(
                f"{op}: unsupported operation: more than one element of the written-to tensor "
                f"out= (shape {tuple(layout.shape)}, strides {tuple(layout.strides)}) refers to a "
                "single memory location. Please clone() the tensor before performing the operation."
            )
        for k, operand in enumerate(operands):
            if op not in ANYWHERE and _collide(out, operand, k < APART.get(op, 0)):
                raise ShapeError(
                    f"{op}: unsupported operation: some elements of the input tensor and the "
                    "written-to tensor out= refer to a single memory location. Please clone() the "
                    "tensor before performing the operation."
                )


def check_exact(op: str, out: Tensor, dtype: dtypes.dtype) -> None:
    """Refuses an ``out=`` of another dtype than the result's, where the op does not cast."""
    if (op in EXACT or op.endswith("_copy")) and out._layout.dtype is not dtype:
        raise ShapeError(
            f"{op}: Expected out tensor to have dtype {dtype}, but got {out._layout.dtype} instead"
        )


def _collide(out: Tensor, operand: Tensor, apart: bool) -> bool:
    """Does the result share memory with the operand? Lying just where it does counts if `apart`."""
    a, b = out._layout, operand._layout
    if out is operand:
        return apart  # even of no elements: it is going to get some
    if not (a.numel and b.numel):
        return False
    if not (is_dense(a.shape, a.strides) and is_dense(b.shape, b.strides)):
        return False  # as in PyTorch: too hard to say
    starts, stops = zip(
        *[
            (t._storage.ptr + t._offset * layout.itemsize,
             t._storage.ptr + (t._offset + layout.high) * layout.itemsize)
            for t, layout in ((out, a), (operand, b))
        ], strict=True,
    )  # fmt: skip
    if max(starts) >= min(stops):
        return False
    whole = starts[0] == starts[1] and stops[0] == stops[1] and a.strides == b.strides
    return apart or not whole


def _tensors(given: Iterable[Any]) -> Iterator[Tensor]:
    for each in given:
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, (tuple, list)):
            yield from _tensors(each)
