"""antorcha: PyTorch's programming model in Python you can read, compiled while it runs.

``import antorcha as torch`` is enough for a script written for PyTorch. This file is the
torch-shaped face: it gives names to what lower floors hold, and nothing else. Ops come from their
records; subpackages are imported when they are first named.
"""

from __future__ import annotations

import importlib
import os as _os
import sys as _sys
from typing import TYPE_CHECKING, Any

from antorcha import autograd, basics, dtypes
from antorcha import tensor as _tensor
from antorcha import tracebacks as _tracebacks
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
from antorcha.errors import MissingModules as _MissingModules
from antorcha.errors import no_such_name as _no_such_name
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

_SETTINGS = ("ANTORCHA_CACHE", "ANTORCHA_CACHE_SIZE", "ANTORCHA_NUM_THREADS", "OMP_NUM_THREADS",
             "ANTORCHA_CALL", "ANTORCHA_TARGET", "ANTORCHA_TRACEBACK",
             "ANTORCHA_PROGRESS")  # fmt: skip

_tracebacks.install()
if not _os.environ.keys().isdisjoint(_SETTINGS):
    from antorcha import config as _config  # a bad setting is an error here and now

for _each in dtypes.ALL + dtypes.NAMES_ONLY:
    globals()[_each.name] = _each
globals().update(dtypes.ALIASES)
globals().update(_TENSORS)
globals().update(_STORAGES)
for _name, _op in _REGISTRY.items():
    if _op.is_function and _name not in globals():
        globals()[_name] = _op
    if _op.inplace is not None and _op.is_function:
        globals().setdefault(_name + "_", _op.inplace)

for _name in ("as_strided_", "detach_", "fill_", "resize_as_", "zero_"):
    globals()[_name] = getattr(Tensor, _name)  # methods that PyTorch shows as functions, too

_LAZY = ("nn", "optim", "utils", "distributions", "overrides", "linalg", "special", "random",
         "sparse", "cuda", "backends", "profiler", "inspector", "testing", "version",
         "torch_alias", "__config__")  # fmt: skip
_FROM = {
    "serialization": ("save", "load"),
    "tensor.dlpack": ("from_dlpack", "to_dlpack"),
    "ops.user": ("kernel",),
    "sparse": ("sparse_coo_tensor", "sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor",
               "sparse_bsc_tensor", "sparse_compressed_tensor", "spmm", "smm", "hspmm"),
    "inspector.inspection": ("inspect",),
    "autograd.anomaly": ("is_anomaly_enabled", "is_anomaly_check_nan_enabled"),
    "autograd.modes": ("is_inference",),
    "inspector.explain": ("explain",),
    "inspector.graph": ("graph",),
    "inspector.summary": ("summary",),
    "random": ("Generator", "manual_seed", "seed", "initial_seed", "get_rng_state",
               "set_rng_state", "default_generator"),
}  # fmt: skip
_HOME = {name: module for module, names in _FROM.items() for name in names}

if _MissingModules not in _sys.meta_path:
    _sys.meta_path.append(_MissingModules)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"antorcha.{name}")
    home = _HOME.get(name)
    if home is not None:
        found = getattr(importlib.import_module(f"antorcha.{home}"), name)
        globals()[name] = found
        return found
    raise _no_such_name("torch", name, __dir__)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_HOME})
