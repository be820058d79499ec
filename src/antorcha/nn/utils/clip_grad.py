"""Gradients made smaller before a step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from antorcha.autograd import no_grad
from antorcha.errors import ShapeError, warn
from antorcha.ops import tensor_lists
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor


def _listed(parameters: Any) -> list[Any]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def get_total_norm(
    tensors: Any,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """The norm of all tensors together, as if they were one vector.

    >>> torch.nn.utils.get_total_norm([torch.tensor([3.]), torch.tensor([4.])])
    tensor(5.)
    """
    found = _listed(tensors)
    if not found:
        return T.full((), 0.0)
    with no_grad():
        each: Any = tensor_lists.norms([t.detach() for t in found], norm_type)
        device = found[0].device
        total = T.linalg_vector_norm(T.cat(tuple([n.to(device) for n in each])), norm_type)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise ShapeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Any, foreach: bool | None = None
) -> None:
    """Scales gradients in place by ``max_norm / total_norm`` where that is below one."""
    with no_grad():
        factor = T.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
        grads = [p._grad for p in _listed(parameters) if p._grad is not None]
        for group in tensor_lists.groups_of(grads):
            tensor_lists.scale(group, factor.to(group[0]._layout.device))


def clip_grad_norm_(
    parameters: Iterable[Any] | Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Scales all gradients together so that their norm is at most ``max_norm``, in place.

    Args:
        parameters (iterable of Tensor, or one): whose gradients
        max_norm (float): the largest norm
        norm_type (float): which norm; ``inf`` is the largest absolute value. Default: 2
        error_if_nonfinite (bool): raise when the norm is nan or inf? Default: False
        foreach: accepted

    Returns the norm before.
    See https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html.

    >>> w = torch.nn.Parameter(torch.zeros(2))
    >>> w.grad = torch.tensor([3., 4.])
    >>> torch.nn.utils.clip_grad_norm_([w], 1.0)
    tensor(5.)
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    listed = _listed(parameters)
    if not listed:
        warn("`parameters` is an empty generator, no gradient clipping will occur.")
    grads = [p._grad for p in listed if p._grad is not None]
    total = get_total_norm(grads, norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(listed, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:  # fmt: skip
    """The old name of :func:`clip_grad_norm_`."""
    warn(
        "torch.nn.utils.clip_grad_norm is now deprecated in favor of "
        "torch.nn.utils.clip_grad_norm_.",
        FutureWarning,
    )  # fmt: skip
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Limits every element of the gradients to ``[-clip_value, clip_value]``, in place.

    >>> w = torch.nn.Parameter(torch.zeros(2))
    >>> w.grad = torch.tensor([3., -0.5])
    >>> torch.nn.utils.clip_grad_value_([w], 1.0)
    >>> w.grad
    tensor([ 1.0000, -0.5000])
    """
    limit = float(clip_value)
    with no_grad():
        for p in _listed(parameters):
            if p._grad is not None:
                p._grad.clamp_(min=-limit, max=limit)
