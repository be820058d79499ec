"""``torch.func``: transforms of functions, in reverse mode.

``grad``, ``vjp`` and what is made of them run ordinary autograd. ``jvp``, ``jacfwd`` and
``linearize`` give forward mode's results by differentiating twice in reverse. ``vmap`` loops.
See https://docs.pytorch.org/docs/stable/func.api.html.
"""

from __future__ import annotations

from typing import Any

from antorcha.errors import MissingFeature, explain_missing
from antorcha.func.gradients import (
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
)
from antorcha.func.modules import (
    debug_unwrap,
    functional_call,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from antorcha.func.vmap import vmap

__all__ = [
    "debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian",
    "jacfwd", "jacrev", "jvp", "linearize", "replace_all_batch_norm_modules_",
    "stack_module_state", "vjp", "vmap",
]  # fmt: skip


def functionalize(func: Any, *, remove: str = "mutations") -> Any:
    """Not supported: raises NotImplementedError. There is no tracer below that would need it."""
    raise MissingFeature("torch.func.functionalize is not supported")


explain_missing("torch.func", globals())
