"""``torch._C``: the names of PyTorch's C++ part that libraries touch. There is no such part here.

The rest raises NotImplementedError when it is used.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from antorcha import backends
from antorcha._C.dispatch_keys import DispatchKey, DispatchKeySet
from antorcha._C.dispatch_keys import ExcludeDispatchKeyGuard as _ExcludeDispatchKeyGuard
from antorcha.core import absent
from antorcha.core.device import CPU, Device, as_device
from antorcha.core.dtypes import dtype
from antorcha.core.shapes import Size
from antorcha.jit.modules import ScriptFunction, ScriptModule
from antorcha.nn.moving import parse_to
from antorcha.ops.kinds.lapack import LinAlgError as _LinAlgError
from antorcha.random import Generator
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.subclass import DisableTorchFunction, DisableTorchFunctionSubclass

__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "DispatchKey", "DispatchKeySet",
           "Generator", "ScriptFunction", "ScriptModule", "Size", "device", "dtype"]  # fmt: skip
device = Device
TensorBase = _TensorBase = Tensor
_TensorMeta = type(Tensor)
_has_mkldnn = _has_mps = _has_cuda = _has_xpu = False


def _log_api_usage_once(event: str) -> None:
    """Nothing: antorcha counts no usage."""


def _get_privateuse1_backend_name() -> str:
    """The name of a device that a program registers: PyTorch's default."""
    return "privateuseone"


def _get_accelerator(check: Any = None) -> Device:
    """The device: the CPU."""
    return CPU


def _get_default_device() -> str:
    """The default device's name."""
    return str(as_device(None))


def _get_tracing_state() -> None:
    """None: nothing is traced."""


def _are_functorch_transforms_active() -> bool:
    """False, outside of ``torch.func``."""
    return False


def _disabled_torch_function_impl(
    func: Any, types: Any, args: Any = (), kwargs: Any = None
) -> Any:  # fmt: skip
    """A ``__torch_function__`` that asks nobody: results are plain tensors."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


# ---- settings of TorchScript's graphs: there are none --------------------------------------------


def _jit_set_profiling_mode(mode: bool) -> bool:
    """Gives True, what is set in PyTorch; there are no graphs."""
    return True


_jit_set_profiling_executor = _jit_set_profiling_mode


def _jit_set_texpr_fuser_enabled(enabled: bool) -> None:
    """Nothing: there are no graphs to fuse."""


_jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _jit_set_texpr_fuser_enabled
_jit_set_nvfuser_enabled = _jit_set_nvfuser_guard_mode = _jit_set_texpr_fuser_enabled
_jit_set_bailout_depth = _jit_set_num_profiled_runs = _jit_set_texpr_fuser_enabled


def _jit_can_fuse_on_cpu() -> bool:
    """False: there are no graphs to fuse."""
    return False


_jit_can_fuse_on_gpu = _jit_texpr_fuser_enabled = _jit_can_fuse_on_cpu


def _set_math_sdp_allow_fp16_bf16_reduction(enabled: bool) -> None:
    """``torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp``."""
    backends.cuda.allow_fp16_bf16_reduction_math_sdp(enabled)


class _Functions(ModuleType):
    """A part of ``torch._C`` that holds functions found elsewhere, too."""

    def __init__(self, name: str, home: str, **own: Any) -> None:
        super().__init__(f"{__name__}.{name}", f"The functions of ``{home}``.")
        self.__dict__.update(own, _home=home)

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__dict__["_home"]), name)


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """The device, dtype, ``non_blocking`` and memory format that ``to``'s arguments ask for."""
    wait = bool(kwargs.pop("non_blocking", False))
    kwargs.pop("copy", None)
    kind, place, form = parse_to(args, kwargs)
    return place, kind, wait, form


_nn = _Functions("_nn", "antorcha.nn.functional", _parse_to=_parse_to)
_VariableFunctions = _Functions("_VariableFunctions", "antorcha")
_linalg = _Functions("_linalg", "antorcha.linalg")

__getattr__ = absent.names("torch._C", globals())
