"""Automatic differentiation: ``backward``, ``grad``, modes, hooks, custom functions.

See https://docs.pytorch.org/docs/stable/autograd.html.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from antorcha.autograd import engine, hooks, inplace, node
from antorcha.autograd.gradcheck import gradcheck, gradgradcheck
from antorcha.autograd.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from antorcha.core import modes
from antorcha.core.hooks import hooks as steps
from antorcha.errors import GraphError, ValueRangeError, no_such_name
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

__all__ = [
    "Function", "backward", "detect_anomaly", "enable_grad", "grad", "gradcheck", "gradgradcheck",
    "inference_mode", "inplace", "is_grad_enabled", "is_inference_mode_enabled", "no_grad",
    "set_detect_anomaly", "set_grad_enabled", "set_multithreading_enabled",
]  # fmt: skip

_MODULES = ("anomaly", "anomaly_mode", "forward_ad", "function", "functional", "grad_mode", "graph",
            "profiler", "profiler_util", "variable")  # fmt: skip
_NAMES = {
    "Function": "function", "detect_anomaly": "anomaly", "set_detect_anomaly": "anomaly",
    "is_anomaly_enabled": "anomaly", "is_anomaly_check_nan_enabled": "anomaly",
    "Variable": "variable",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """What few programs use is imported when it is asked for."""
    if name in _MODULES:
        return importlib.import_module(f"antorcha.autograd.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"antorcha.autograd.{_NAMES[name]}"), name)
    raise no_such_name("torch.autograd", name, [*__all__, *_MODULES, *_NAMES])


hooks.bind()
node.bind()


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, Tensor) or hasattr(value, "output_nr"):  # (or a GradientEdge, a tuple)
        return [value]
    return list(value)


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
        return _batched(outputs, inputs, grad_outputs, create_graph, allow_unused)
    roots, wanted = _listed(outputs), _listed(inputs)
    if modes.batched:
        found = steps.batch_gradients(
            grad, roots, wanted, None if grad_outputs is None else _listed(grad_outputs),
            retain_graph=retain_graph, create_graph=create_graph, allow_unused=allow_unused,
            materialize_grads=materialize_grads,
        )  # fmt: skip
        if found is not NotImplemented:
            return found  # type: ignore[no-any-return]
    if materialize_grads and allow_unused is False:
        raise ValueRangeError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    keep = create_graph if retain_graph is None else retain_graph
    found = engine.gradients(roots, _seeds(roots, grad_outputs), wanted, keep, create_graph)
    if materialize_grads:
        found = [_zeros(w) if g is None else g for g, w in zip(found, wanted, strict=True)]
    elif not allow_unused:
        for k, g in enumerate(found):
            if g is None:
                raise GraphError(
                    f"The differentiated Tensor at index {k} appears to not have been used in the "
                    "graph. Set allow_unused=True if this is the desired behavior."
                )
    return tuple(found)


def _recorded_gradients(root: Tensor, wanted: tuple[Any, ...], seed: Tensor) -> list[Tensor | None]:
    return engine.gradients([root], [seed], wanted, True, True)


steps.gradients = _recorded_gradients


def _zeros(wanted: Any) -> Tensor:
    layout = wanted._layout if isinstance(wanted, Tensor) else wanted.layout
    return T.full_layout(tuple(layout.shape), 0, layout.dtype, layout.device)  # type: ignore[no-any-return]


def _batched(
    outputs: Any, inputs: Any, grad_outputs: Any, create_graph: bool, allow_unused: bool | None
) -> tuple[Any, ...]:
    """``grad`` for each slice of ``grad_outputs`` along its first dim, stacked."""
    batches = _listed(grad_outputs)
    rows = []
    for k in range(batches[0]._layout.shape[0]):
        seeds = [T.select(b, 0, k) for b in batches]
        rows.append(grad(outputs, inputs, seeds, True, create_graph, allow_unused=allow_unused))
    return tuple([None if c[0] is None else T.stack(c) for c in zip(*rows, strict=True)])


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
        if gradient is None and not create_graph and engine.backward_from(self, keep):
            return
        engine.backward((self,), (gradient,), keep, create_graph)
    else:
        backward((self,), (gradient,), retain_graph, create_graph, inputs)


_backward_method.__name__, _backward_method.__qualname__ = "backward", "Tensor.backward"
Tensor.backward = _backward_method  # type: ignore[assignment,method-assign]
