"""Which rule explains which exception: by its class, and by what its message says."""

from __future__ import annotations

import re
from collections.abc import Callable

from antorcha.errors import AntorchaError
from antorcha.inspector import explain_arrays as arrays
from antorcha.inspector import explain_layers as layers
from antorcha.inspector import explain_memory as memory
from antorcha.inspector import explain_others as others
from antorcha.inspector import explain_python as python
from antorcha.inspector import explain_shapes as shapes
from antorcha.inspector import explain_usage as usage
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
    (
        r"elements, the tensor has|is invalid for input|cannot be made of"
        r"|no size for the -1",
        shapes.element_count,
    ),
    (r"except in dimension", shapes.joining),
    (r"must have same number of dimensions", shapes.joining_ranks),
    (r"must be batches of square matrices", shapes.not_square),
    (
        r"expects each tensor to be equal size|list of batch should be of equal size",
        usage.unequal_samples,
    ),
    (r"expects each tensor to be equal size", shapes.stacking),
    (r"channels, but got", shapes.channels),
    (r"to match target batch_size", shapes.batches),
    (r"expected scalar type Long but found .* for the target", layers.class_dtype),
    (r"Expected target size", layers.class_shape),
    (r"must be the same as input size|that is different to the input size", layers.same_size),
    (r"should be between 0 and 1", layers.probabilities),
    (r"^embedding: index", layers.rows_of_a_table),
    (r"Class values must be smaller", layers.class_values),
    (r"Index tensor must have the same number of dim", layers.gathering),
    (r"^einsum\(\): subscript", layers.letters),
    (r"Given normalized_shape", layers.layer_norm),
    (r"Expected more than 1 value per channel", layers.one_value),
    (r"^expected \dD( or \dD)? input \(got", layers.norm_dims),
    (r"D \(unbatched\) or \dD \(batched\) input", layers.conv_dims),
    (r"Kernel size can't be greater|output size .* is too small", layers.window),
    (r"empty parameter list", usage.no_parameters),
    (r"can only optimize Tensors", usage.module_as_parameters),
    (r"Size mismatch between tensors", usage.sizes_of_a_dataset),
    (r"cannot allocate [\d,]+ bytes|there is no memory", memory.out_of_memory),
    (r"params argument given to the optimizer", usage.bare_parameter),
    (r"can't optimize a non-leaf", usage.computed_parameter),
    (r"in loading state_dict", usage.state_dict),
    (r"must be Tensor, not", usage.not_a_tensor),
    (r"expected sequence of length", usage.ragged),
    (r"size must be an int, not Tensor", usage.tensor_as_size),
    (r"stride in the given numpy array is negative", usage.backwards_array),
    (r"of a 0-d tensor|over a 0-d tensor", usage.no_length),
    (r"^mask of shape", usage.mask_shape),
    (r"length of the desired ordering", usage.orders),
    (r"Inference tensors cannot be saved", usage.inference),
    (r"support the deepcopy protocol", usage.deep_copy),
    (r"change requires_grad flags of leaf", usage.flag_of_computed),
    (r"Mismatch in shape: grad_output", usage.gradient_shape),
    (
        r"tensors used as indices must be|int32 or int64 for index|for argument 'indices'"
        r"|only applicable to index tensor",
        others.index_dtype,
    ),
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
    (r"more than one value is ambiguous", python.both),
    (r"more than one value is ambiguous", others.truth),
    (r"bitwise_\w+: not implemented for torch\.(b?float|complex)", python.bits_of_floats),
    (r"on a bool tensor is not supported|with a bool tensor is not supported", python.bools),
    (r"can't be cast to the desired output type", python.keeps_its_dtype),
    (r"tensors must not be a tensor|^(cat|stack)\(\) takes", python.list_of_tensors),
    (r"need to be at least 1D", python.number_times_matrix),
    (r"only one size can be -1", python.one_unknown_size),
    (r"dtype must be a dtype", python.dtype_by_name),
    (r"Parameter or None expected", python.parameter_wanted),
    (r"unsupported ScalarType BFloat16", python.no_bfloat16),
)

# The same for exceptions that Python itself, or a module of the program's own, raises.
PLAIN: tuple[tuple[str, Rule], ...] = (
    (r"object is not iterable", usage.module_as_parameters),
    (
        r"could not be broadcast together|doesn't match the broadcast shape"
        r"|could not broadcast input array",
        arrays.broadcasting,
    ),
    (r"mismatch in its core dimension|^shapes \(.*not aligned", arrays.matmul),
    (r"cannot reshape array", arrays.element_count),
    (r"Unable to allocate .* for an array", memory.out_of_memory),
    (r"list of batch should be of equal size|expects each tensor", usage.unequal_samples),
    (r"object is not (iterable|subscriptable)", python.method_without_call),
    (r"object is not callable", python.call_of_a_value),
    (r"can only concatenate str", python.text_and_tensor),
    (r"can only concatenate tuple", python.values_and_indices),
    (r"'(list|tuple)' object has no attribute", python.list_as_tensor),
    (r"NoneType", usage.no_gradient_yet),
    (r"unsupported operand type\(s\)", usage.operators),
    (r"before Module\.__init__\(\) call", usage.no_super),
    (r'missing the required "forward"', usage.no_forward),
)


def find(case: Case) -> Finding | None:
    """What is wrong; None where no rule knows."""
    ours = issubclass(type(case.error), AntorchaError) or "this version of antorcha" in case.message
    if issubclass(type(case.error), MemoryError):
        return memory.out_of_memory(case)
    for pattern, rule in RULES if ours else PLAIN:
        if re.search(pattern, case.message):
            found = rule(case)
            if found is not None:
                return found
    if ours and case.operands:
        return Finding("", Picture([row(operand) for operand in case.operands[:8]], right=False))
    return None
