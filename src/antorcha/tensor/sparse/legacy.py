"""The older constructors of sparse tensors: ``torch.sparse.FloatTensor(indices, values, size)``."""

from __future__ import annotations

from typing import Any

from antorcha.runtime.tensor import Tensor
from antorcha.tensor.legacy import TYPE_NAMES, classes, tensortype
from antorcha.tensor.sparse.create import make_coo
from antorcha.tensor.sparse.tensor import SparseTensor


class _SparseTensorType(tensortype):
    """The type of ``torch.sparse.FloatTensor`` and its like."""

    is_sparse = True

    def __call__(self, *args: Any, device: Any = None, size: Any = None) -> Tensor:
        """As ``torch.sparse_coo_tensor``; sizes alone give a tensor that holds nothing."""
        if args and isinstance(args[0], Tensor):  # values keep their dtype, as in PyTorch
            return make_coo(args, None, device, False, None, None)
        if size is not None:
            args = (size,)
        sizes = args[0] if len(args) == 1 and not isinstance(args[0], int) else args or (0,)
        return make_coo((tuple(sizes),), self.dtype, device, False, None, None)

    def __instancecheck__(self, instance: Any) -> bool:
        return (
            isinstance(instance, SparseTensor)
            and instance._format == "coo"
            and instance._layout.dtype is self.dtype
        )


_WITHOUT_SPARSE = ("BoolTensor", "ComplexFloatTensor", "ComplexDoubleTensor")  # PyTorch has none

SPARSE_TYPES = classes(
    {name: dtype for name, dtype in TYPE_NAMES.items() if name not in _WITHOUT_SPARSE},
    _SparseTensorType,
    "torch.sparse",
)
