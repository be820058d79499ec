"""antorcha: PyTorch's programming model in Python you can read, compiled while it runs.

``import antorcha as torch`` is enough for a script written for PyTorch.
"""

from __future__ import annotations

import importlib
from typing import Any

from antorcha import autograd, dtypes, tensor as _tensor  # noqa: F401
from antorcha._version import __version__
from antorcha.autograd import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
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
from antorcha.ops.record import REGISTRY as _REGISTRY
from antorcha.runtime.tensor import Tensor
from antorcha.shapes import Size
from antorcha.tensor.create import as_tensor, from_numpy, tensor

for _each in dtypes.ALL:
    globals()[_each.name] = _each
globals().update(dtypes.ALIASES)
for _name, _op in _REGISTRY.items():
    if _op.is_function and _name not in globals():
        globals()[_name] = _op
    if _op.inplace is not None and _op.is_function:
        globals().setdefault(_name + "_", _op.inplace)

_LAZY = ("nn", "optim", "data", "utils", "linalg", "fft", "special", "random", "cuda", "backends",
         "serialization", "profiler", "amp", "distributed", "testing", "mps", "jit", "compiler",
         "cli", "version")  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"antorcha.{name}")
    from antorcha.errors import did_you_mean

    raise AttributeError(f"module 'torch' has no attribute {name!r}.{did_you_mean(name, globals())}")
