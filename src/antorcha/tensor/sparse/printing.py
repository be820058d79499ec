"""The printed text of sparse tensors: their components, then what ``repr`` says of any tensor."""

from __future__ import annotations

from antorcha.core import dtypes
from antorcha.core.device import as_device
from antorcha.runtime.tensor import Parameter, Tensor
from antorcha.tensor import printing
from antorcha.tensor.convert import to_array
from antorcha.tensor.sparse.tensor import FORMATS, SparseTensor, stored

_NAMES = {
    "coo": ("indices", "values"), "csr": ("crow_indices", "col_indices", "values"),
    "bsr": ("crow_indices", "col_indices", "values"),
    "csc": ("ccol_indices", "row_indices", "values"),
    "bsc": ("ccol_indices", "row_indices", "values"),
}  # fmt: skip
_INDENT = len("tensor(")


def text(x: SparseTensor) -> str:
    """``repr`` of a sparse tensor."""
    layout = x._layout
    parts = [_part(name, part) for name, part in zip(_NAMES[x._format], x._parts, strict=True)]
    suffixes = [] if layout.device is as_device(None) else [f"device='{layout.device}'"]
    suffixes += [f"size={tuple(layout.shape)}", f"nnz={stored(x)}"]
    if layout.dtype not in _known_by_sight():
        suffixes.append(f"dtype={layout.dtype}")
    suffixes.append(f"layout={FORMATS[x._format]}")
    if x._fn is not None:
        suffixes.append(f"grad_fn=<{x._fn.op.node_name}>")
    elif x._rg:
        suffixes.append("requires_grad=True")
    body = "tensor(" + f",\n{' ' * _INDENT}".join(parts)
    if x._format == "coo":  # the suffixes begin on a line of their own
        body += f",\n{' ' * _INDENT}{suffixes.pop(0)}"
    options = printing.PrintOptions(**printing.get_printoptions())
    result = printing.with_suffixes(body, suffixes, _INDENT, options)
    return printing.parameter_repr(result) if isinstance(x, Parameter) else result


def _part(name: str, part: Tensor) -> str:
    layout = part._layout
    options = printing.PrintOptions(**printing.get_printoptions())
    contents = printing.format_contents(
        to_array(part), dtype=layout.dtype, indent=_INDENT + len(f"{name}=tensor("), options=options
    )
    size = "" if layout.numel else f", size={tuple(layout.shape)}"
    return f"{name}=tensor({contents}{size})"


def _known_by_sight() -> tuple[dtypes.dtype, ...]:
    default = dtypes.get_default_dtype()
    pair = dtypes.complex128 if default is dtypes.float64 else dtypes.complex64
    return default, pair, dtypes.int64, dtypes.bool_
