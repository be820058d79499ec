"""What optimizers written for PyTorch import from ``torch.optim.optimizer`` besides the base class.

antorcha's own do not use these. They decide between implementations that antorcha does not have,
and phrase documentation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from antorcha.autograd import set_grad_enabled
from antorcha.core import dtypes
from antorcha.ops.kinds.record import T
from antorcha.optim.frame import check_options
from antorcha.runtime.tensor import Tensor

ParamsT = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
StateDict = dict[str, Any]
DeviceDict = dict[Any, Tensor]
DeviceDtypeDict = dict[Any, Tensor]

_params_doc = """params (iterable): parameters, named parameters, or dicts that define groups"""
_foreach_doc = """foreach (bool, optional): a hint, without effect (default: None)"""
_fused_doc = """fused (bool, optional): a hint, without effect (default: None)"""
_capturable_doc = """capturable (bool, optional): counts steps on the GPU, so that a CUDA graph can
            hold a step (default: False)"""
_differentiable_doc = """differentiable (bool, optional): let autograd record the step
            (default: False)"""
_maximize_doc = """maximize (bool, optional): step along the gradient instead of against it
            (default: False)"""


def _use_grad_for_differentiable(step: Callable[..., Any]) -> Callable[..., Any]:
    """``step`` without gradients, unless ``differentiable`` is set."""

    @functools.wraps(step)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults["differentiable"])):
            return step(self, *args, **kwargs)

    return wrapper


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[Any], Any]:
    """A decorator that changes nothing: there is no compiler to switch off."""
    return lambda fn: fn


def _default_to_fused_or_foreach(
    params: Any, differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Neither is worth its while: a loop over the tensors is as fast."""
    return False, False


def _get_value(x: Any) -> Any:
    """A number, of a tensor too."""
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    return x


def _to_scalar(x: Any) -> Any:
    """A tensor of one element as a 0-dim one; other values as they are."""
    return x.squeeze() if isinstance(x, Tensor) and x.ndim else x


def _view_as_real(params: list[Any], *others: list[Any]) -> None:
    """Replaces complex tensors by views as pairs of reals, in lists of equal length."""
    for k, p in enumerate(params):
        if p.is_complex():
            for each in (params, *others):
                each[k] = T.view_as_real(each[k])


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    """The dtype of a step count."""
    wide = dtypes.get_default_dtype() is dtypes.float64 and not is_fused
    return dtypes.float64 if wide else dtypes.float32


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    check_options("fused", {"fused": True}, [p])


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    return ["cuda", "xpu", "hpu", "privateuseone", *["xla"] * supports_xla]
