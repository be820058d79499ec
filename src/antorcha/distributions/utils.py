"""Helpers of the distributions: broadcasting of parameters, probabilities and logits, lazily
computed attributes, triangles of matrices."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from antorcha.autograd import enable_grad
from antorcha.core.dtypes import finfo, get_default_dtype
from antorcha.errors import ValueRangeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.create import tensor

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits",
    "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip

euler_constant = 0.57721566490153286060
"""Euler's constant: the mean of the standard Gumbel distribution."""


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


def broadcast_all(*values: Any) -> Any:
    """Tensors and numbers as tensors of one shape.

    Numbers take the dtype and device of the first tensor, or the default dtype.

    >>> torch.distributions.utils.broadcast_all(1, torch.zeros(2))
    (tensor([1., 1.]), tensor([0., 0.]))
    """
    if not all(_is_tensor(v) or isinstance(v, (int, float)) for v in values):
        raise ValueRangeError(
            "Input arguments must all be instances of Number, torch.Tensor or objects "
            f"implementing __torch_function__, got {', '.join(type(v).__name__ for v in values)}."
        )
    first = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = get_default_dtype() if first is None else first.dtype
    device = None if first is None else first.device
    return T.broadcast_tensors(
        *[v if _is_tensor(v) else tensor(v, dtype=dtype, device=device) for v in values]
    )


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    drawn: Tensor = T.empty(shape, dtype=dtype, device=device).normal_()
    return drawn


def _sum_rightmost(value: Any, dim: int) -> Any:
    """The sum over the last `dim` dims."""
    return value if dim == 0 else value.reshape((*value.shape[:-dim], -1)).sum(-1)


# ------------------------------------------------------------------- probabilities and logits
def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The probabilities: the sigmoid of one logit each, or the softmax of the last dim.

    >>> torch.distributions.utils.logits_to_probs(torch.zeros(2))
    tensor([0.5000, 0.5000])
    """
    probs: Tensor = T.sigmoid(logits) if is_binary else T.softmax(logits, -1)
    return probs


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept away from 0 and 1 by the dtype's eps."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The logits: ``log(p / (1 - p))``, or ``log(p)`` of the last dim's probabilities.

    >>> torch.distributions.utils.probs_to_logits(torch.tensor([0.5]), is_binary=True)
    tensor([0.])
    """
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


def clipped_sigmoid(x: Any) -> Any:
    """The sigmoid, kept off 0 and 1."""
    info = finfo(x.dtype)
    return T.clamp(T.sigmoid(x), info.tiny, 1.0 - info.eps)


# ------------------------------------------------------------------- attributes
class lazy_property:
    """An attribute computed when it is first asked for, with gradients recorded."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]  # an object that looks like it

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def attribute_of(path: str) -> Any:
    """A property that hands on an attribute of a part: ``attribute_of("base_dist.scale")``."""
    return property(operator.attrgetter(path))


# ------------------------------------------------------------------- triangles
def _lower_mask(n: int, diag: int, device: Any) -> Tensor:
    index: Tensor = T.arange(n, device=device)
    return index < index.view(-1, 1) + (diag + 1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangle up to a diagonal, row by row, as vectors.

    >>> torch.distributions.utils.tril_matrix_to_vec(torch.tensor([[1., 0.], [2., 3.]]))
    tensor([1., 2., 3.])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueRangeError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _lower_mask(n, diag, mat.device)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Vectors written into the lower triangle up to a diagonal: the other way round.

    >>> torch.distributions.utils.vec_to_tril_matrix(torch.tensor([1., 2., 3.]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    # a matrix of n rows has n (n + 1 + 2 diag) / 2 - diag (diag + 1) / 2 elements there (diag <= 0)
    linear = 1 + 2 * diag
    n = (-linear + (linear**2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > finfo(vec.dtype).eps:
        raise ValueRangeError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower "
            "triangular part of a square D x D matrix."
        )
    size = round(n)
    mat = vec.new_zeros((*vec.shape[:-1], size, size))
    mat[..., _lower_mask(size, diag, vec.device)] = vec
    return mat
