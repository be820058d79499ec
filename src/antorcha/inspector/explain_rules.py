"""Which rule explains which exception: by its class, and by what its message says."""

from __future__ import annotations

import re
from collections.abc import Callable

from antorcha.errors import AntorchaError
from antorcha.inspector import explain_others as others
from antorcha.inspector import explain_shapes as shapes
from antorcha.inspector.explain_case import Case, Finding, row
from antorcha.inspector.explain_draw import Picture

Rule = Callable[[Case], Finding | None]

# The first whose pattern is in the message, and that finds something, explains it.
RULES: tuple[tuple[str, Rule], ...] = (
    (r"Expected all tensors to be on the same device", others.devices),
    (r"not compiled with CUDA|no device '", others.no_device),
    (r"expected all operands to have the same dtype|must have the same dtype", others.dtypes),
    (r"^linear: input", shapes.linear),
    (r"inner sizes|must be a \dD tensor|the vectors have|^(matmul|bmm): shapes", shapes.matmul),
    (r"do not broadcast", shapes.broadcasting),
    (r"does not expand to", shapes.expanding),
    (r"view size is not compatible", shapes.not_contiguous),
    (r"elements, the tensor has|is invalid for input|cannot be made of", shapes.element_count),
    (r"except in dimension", shapes.joining),
    (r"must have same number of dimensions", shapes.joining_ranks),
    (r"must be batches of square matrices", shapes.not_square),
    (r"expects each tensor to be equal size", shapes.stacking),
    (r"channels, but got", shapes.channels),
    (r"to match target batch_size", shapes.batches),
    (r"tensors used as indices must be|int32 or int64 for index", others.index_dtype),
    (r"can require gradients", others.integer_gradient),
    (
        r"could not infer output dtype|only support floating point|Expected a floating point"
        r"|not implemented for torch\.u?int",
        others.needs_float,
    ),
    (r"condition to be a boolean|only supports boolean masks", others.needs_mask),
    (r"is out of range for a tensor of", others.dims),
    (r"is out of bounds for dimension", others.indices),
    (r"too many indices", others.too_many),
    (r"Target -?\d+ is out of bounds", others.classes),
    (r"only for scalar outputs", others.not_scalar),
    (r"backward through the graph a second time", others.second_backward),
    (r"leaf Variable that requires grad is being used in an in-place", others.leaf_write),
    (r"modified by an inplace operation", others.overwritten),
    (r"does not require grad and does not have a grad_fn", others.no_graph),
    (r"numpy\(\) on Tensor that requires grad", others.numpy),
    (r"cannot be converted to Scalar", others.one_element),
    (r"more than one value is ambiguous", others.truth),
)


def find(case: Case) -> Finding | None:
    """What is wrong, for an exception of antorcha; None where no rule knows."""
    ours = issubclass(type(case.error), AntorchaError) or "this version of antorcha" in case.message
    if not ours:
        return None
    for pattern, rule in RULES:
        if re.search(pattern, case.message):
            found = rule(case)
            if found is not None:
                return found
    if case.operands:
        return Finding("", Picture([row(operand) for operand in case.operands[:8]], right=False))
    return None
