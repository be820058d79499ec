"""antorcha: PyTorch's programming model in Python you can read, compiled while it runs.

``import antorcha as torch`` is enough for a script written for PyTorch. This file is the
torch-shaped face: it gives names to what lower floors hold, and nothing else. Ops come from their
records; subpackages are imported when they are first named.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from antorcha import autograd, basics, dtypes
from antorcha import tensor as _tensor
from antorcha._version import __version__
from antorcha.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from antorcha.basics import *  # noqa: F403  (every public name of the file)
from antorcha.device import Device as device
from antorcha.dtypes import (
    can_cast,
    dtype,
    finfo,
    get_default_dtype,
    iinfo,
    promote_types,
    set_default_dtype,
)
from antorcha.ops.record import NAMESPACES as _NAMESPACES
from antorcha.ops.record import REGISTRY as _REGISTRY
from antorcha.runtime.tensor import Tensor
from antorcha.shapes import Size
from antorcha.tensor.create import as_tensor, tensor
from antorcha.tensor.interop import asarray, from_numpy, frombuffer
from antorcha.tensor.legacy import STORAGE_TYPES as _STORAGES
from antorcha.tensor.legacy import TENSOR_TYPES as _TENSORS
from antorcha.tensor.printing import get_printoptions, set_printoptions
from antorcha.tensor.storages import TypedStorage, UntypedStorage

if TYPE_CHECKING:
    from antorcha.tensor.functions import *  # noqa: F403

for _each in dtypes.ALL:
    globals()[_each.name] = _each
globals().update(dtypes.ALIASES)
globals().update(_TENSORS)
globals().update(_STORAGES)
for _name, _op in _REGISTRY.items():
    if _op.is_function and _name not in globals():
        globals()[_name] = _op
    if _op.inplace is not None and _op.is_function:
        globals().setdefault(_name + "_", _op.inplace)

_LAZY = ("nn", "optim", "utils", "overrides", "linalg", "fft", "special", "random", "cuda",
         "backends", "profiler", "amp", "distributed", "testing", "mps", "version",
         "torch_alias")  # fmt: skip
_FROM = {
    "serialization": ("save", "load"),
    "tensor.dlpack": ("from_dlpack", "to_dlpack"),
    "ops.user": ("kernel",),
    "autograd.anomaly": ("is_anomaly_enabled", "is_anomaly_check_nan_enabled"),
    "autograd.modes": ("is_inference",),
    "random": ("Generator", "manual_seed", "seed", "initial_seed", "get_rng_state",
               "set_rng_state", "default_generator"),
}  # fmt: skip
_HOME = {name: module for module, names in _FROM.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        try:
            return importlib.import_module(f"antorcha.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"antorcha.{name}":
                raise
            raise AttributeError(f"antorcha has no torch.{name} yet") from None
    home = _HOME.get(name)
    if home is not None:
        found = getattr(importlib.import_module(f"antorcha.{home}"), name)
        globals()[name] = found
        return found
    raise _Missing(name)


class _Missing(AttributeError):
    """An attribute that is not there; the hint is worked out only if somebody reads it."""

    def __str__(self) -> str:
        from antorcha.errors import did_you_mean

        names = [n for n in globals() if not n.startswith("_")]
        (name,) = self.args
        return f"module 'torch' has no attribute {name!r}.{did_you_mean(name, names)}"


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_HOME})
