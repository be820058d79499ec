"""Automatic differentiation: ``backward``, ``grad``, modes, hooks, custom functions.

See https://docs.pytorch.org/docs/stable/autograd.html.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from antorcha.autograd import engine, inplace
from antorcha.autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from antorcha.errors import GraphError
from antorcha.runtime.tensor import Tensor

__all__ = [
    "backward", "enable_grad", "grad", "inference_mode", "inplace", "is_grad_enabled",
    "is_inference_mode_enabled", "no_grad", "set_grad_enabled",
]  # fmt: skip


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return [value] if isinstance(value, Tensor) else list(value)


def _seeds(roots: Sequence[Tensor], given: Any) -> list[Tensor | None]:
    seeds = [None] * len(roots) if given is None else _listed(given)
    if len(seeds) != len(roots):
        raise GraphError(f"got {len(roots)} tensors and {len(seeds)} gradients")
    return seeds


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Adds the gradients of ``tensors`` to the ``grad`` of the graph's leaves.

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.backward.html.
    """
    roots = _listed(tensors)
    only = None if inputs is None else _listed(inputs)
    if only is not None and not only:
        raise GraphError("`inputs` argument to `backward()` cannot be empty.")
    keep = create_graph if retain_graph is None else retain_graph
    engine.backward(roots, _seeds(roots, grad_tensors), keep, create_graph, only)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of ``outputs`` with respect to ``inputs``, as a tuple.

    An input that the outputs do not depend on is an error, unless ``allow_unused`` (its gradient is
    None then) or ``materialize_grads`` (zeros).
    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html.
    """
    if is_grads_batched:
        raise NotImplementedError("autograd.grad: is_grads_batched is not supported")
    roots, wanted = _listed(outputs), _listed(inputs)
    keep = create_graph if retain_graph is None else retain_graph
    found = engine.gradients(roots, _seeds(roots, grad_outputs), wanted, keep, create_graph)
    if materialize_grads:
        from antorcha.ops.record import T

        found = [T.zeros_like(w) if g is None else g for g, w in zip(found, wanted, strict=True)]
    elif not allow_unused and any([g is None for g in found]):
        raise GraphError(
            "One of the differentiated Tensors appears to not have been used in the graph. Set "
            "allow_unused=True if this is the desired behavior."
        )
    return tuple(found)


def _backward_method(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Adds the gradients of this tensor to the ``grad`` of the graph's leaves.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html.

    >>> x = torch.tensor(3., requires_grad=True)
    >>> (x ** 2).backward()
    >>> x.grad
    tensor(6.)
    """
    if inputs is None:
        keep = create_graph if retain_graph is None else retain_graph
        engine.backward((self,), (gradient,), keep, create_graph)
    else:
        backward((self,), (gradient,), retain_graph, create_graph, inputs)


Tensor.backward = _backward_method  # type: ignore[attr-defined]
