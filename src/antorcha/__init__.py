"""antorcha: PyTorch's programming model in Python you can read, compiled while it runs.

``import antorcha as torch`` is enough for a script written for PyTorch. This file is the
torch-shaped face: it gives names to what lower floors hold, and nothing else. Ops come from their
records; subpackages are imported when they are first named.
"""

from __future__ import annotations

import os as _os
import sys as _sys
from typing import TYPE_CHECKING, Any

from antorcha import autograd, basics
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
from antorcha.core import absent as _absent
from antorcha.core import dtypes
from antorcha.core import tracebacks as _tracebacks
from antorcha.core.device import Device as device
from antorcha.core.dtypes import (
    can_cast,
    dtype,
    finfo,
    get_default_dtype,
    iinfo,
    promote_types,
    set_default_dtype,
)
from antorcha.core.lazy import imported as _imported
from antorcha.core.shapes import Size
from antorcha.errors import MissingModules as _MissingModules
from antorcha.errors import no_such_name as _no_such_name
from antorcha.ops.kinds.record import NAMESPACES as _NAMESPACES
from antorcha.ops.kinds.record import REGISTRY as _REGISTRY
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.create import as_tensor, tensor
from antorcha.tensor.interop import asarray, from_numpy, frombuffer
from antorcha.tensor.legacy import STORAGE_TYPES as _STORAGES
from antorcha.tensor.legacy import TENSOR_TYPES as _TENSORS
from antorcha.tensor.printing import get_printoptions, set_printoptions
from antorcha.tensor.storages import UntypedStorage, from_file
from antorcha.tensor.typed_storage import TypedStorage

if TYPE_CHECKING:
    from antorcha.tensor.functions import *  # noqa: F403

_SETTINGS = ("ANTORCHA_CACHE", "ANTORCHA_CACHE_SIZE", "ANTORCHA_NUM_THREADS", "OMP_NUM_THREADS",
             "ANTORCHA_CALL", "ANTORCHA_TARGET", "ANTORCHA_TRACEBACK",
             "ANTORCHA_PROGRESS", "ANTORCHA_SYNC", "ANTORCHA_LIBRARIES")  # fmt: skip

_tracebacks.install()
if not _os.environ.keys().isdisjoint(_SETTINGS):
    from antorcha import config as _config  # a bad setting is an error here and now

for _each in dtypes.ALL + dtypes.NAMES_ONLY:
    globals()[_each.name] = _each
globals().update(dtypes.ALIASES)
globals().update(_TENSORS)
globals().update(_STORAGES)
Storage = _STORAGES["FloatStorage"]
for _name, _op in _REGISTRY.items():
    if _op.is_function and _name not in globals():
        globals()[_name] = _op
    if _op.inplace is not None and _op.is_function:
        globals().setdefault(_name + "_", _op.inplace)

for _name in ("as_strided_", "dequantize", "detach", "detach_", "fill_", "get_device", "is_conj",
              "is_distributed", "is_neg", "is_same_size", "is_signed", "resize_as_",
              "zero_"):  # fmt: skip
    globals()[_name] = getattr(Tensor, _name)  # methods that PyTorch shows as functions, too

_LAZY = ("amp", "cpu", "nn", "optim", "utils", "distributions", "overrides", "linalg", "special",
         "fft", "sparse", "random", "cuda", "backends", "profiler", "inspector", "testing",
         "version", "torch_alias", "__config__", "_VF", "accelerator", "classes", "compiler",
         "distributed", "export", "ao", "futures", "hub", "jit", "mps", "mtia", "nested", "onnx",
         "package", "quantization", "return_types", "torch_version", "types", "xpu", "_C",
         "_dynamo", "_inductor", "_utils", "_tensor", "_tensor_str", "storage", "multiprocessing",
         "func", "library", "_ops", "fx", "serialization", "functional", "masked",
         "array_api", "signal", "quasirandom", "sim", "data")  # fmt: skip
_FROM = {
    "amp.grad_scaler": ("GradScaler",),
    "amp.autocast_mode": (
        "autocast", "autocast_decrement_nesting", "autocast_increment_nesting",
        "clear_autocast_cache", "get_autocast_cpu_dtype", "get_autocast_dtype",
        "get_autocast_gpu_dtype", "get_autocast_ipu_dtype", "get_autocast_xla_dtype",
        "is_autocast_cache_enabled", "is_autocast_cpu_enabled", "is_autocast_enabled",
        "is_autocast_ipu_enabled", "is_autocast_xla_enabled", "set_autocast_cache_enabled",
        "set_autocast_cpu_dtype", "set_autocast_cpu_enabled", "set_autocast_dtype",
        "set_autocast_enabled", "set_autocast_gpu_dtype", "set_autocast_ipu_dtype",
        "set_autocast_ipu_enabled", "set_autocast_xla_dtype", "set_autocast_xla_enabled",
    ),
    "serialization": ("save", "load"),
    "tensor.dlpack": ("from_dlpack", "to_dlpack"),
    "ops.kinds.user": ("kernel",),
    "func.vmap": ("vmap",),
    "_ops": ("ops",),
    "basics": ("_assert",),
    "sparse": ("sparse_coo_tensor", "sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor",
               "sparse_bsc_tensor", "sparse_compressed_tensor", "spmm", "smm", "hspmm",
               "dsmm", "hsmm", "_convert_indices_from_coo_to_csr",
               "_convert_indices_from_csr_to_coo"),
    "compiler.eager": ("compile",),
    "accelerator": ("Stream", "Event"),
    "jit.modules": ("ScriptModule", "ScriptFunction"),
    "sym": ("SymBool", "SymFloat", "SymInt", "sym_constrain_range", "sym_constrain_range_for_size",
            "sym_float", "sym_fresh_size", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not",
            "sym_sqrt", "sym_sum", "_assert_async", "_check", "_check_index",
            "_check_is_size", "_check_not_implemented", "_check_tensor_all",
            "_check_tensor_all_with", "_check_type", "_check_value", "_check_with",
            "_shape_as_tensor"),
    "nn.functional": ("bilinear", "pixel_shuffle", "pixel_unshuffle", "rrelu_"),
    "nn.torch_functions": ("_embedding_bag", "_weight_norm", "batch_norm",
                           "binary_cross_entropy_with_logits", "cosine_embedding_loss",
                           "embedding_bag", "embedding_renorm_", "grid_sampler_2d",
                           "grid_sampler_3d", "hinge_embedding_loss", "instance_norm", "kl_div",
                           "margin_ranking_loss", "max_pool1d_with_indices", "norm_except_dim",
                           "poisson_nll_loss", "rrelu", "triplet_margin_loss"),
    "inspector.tensor.inspection": ("inspect",),
    "autograd.anomaly": ("is_anomaly_enabled", "is_anomaly_check_nan_enabled",
                         "set_anomaly_enabled"),
    "tensor.subclass": ("DisableTorchFunction", "DisableTorchFunctionSubclass"),
    "jit": ("fork", "wait"),
    "control_flow": ("cond", "while_loop"),
    "autograd.modes": ("is_inference",),
    "inspector.explain.explanation": ("explain",),
    "inspector.graph.picture": ("graph",),
    "inspector.summary.table": ("summary",),
    "random": ("Generator", "manual_seed", "seed", "initial_seed", "get_rng_state",
               "set_rng_state", "default_generator"),
}  # fmt: skip
_HOME = {name: module for module, names in _FROM.items() for name in names}

del globals()["ops"]  # (the package of that name; torch.ops is another thing, see `_ops`)

if _MissingModules not in _sys.meta_path:
    _sys.meta_path.append(_MissingModules)
_absent.install()


def __getattr__(name: str) -> Any:
    if name == "torch":  # (PyTorch holds itself under its own name)
        return _sys.modules[__name__]
    if name in _LAZY:
        return _imported(f"antorcha.{name}")
    if name in _absent.NAMES:
        globals()[name] = _absent.placeholder(f"torch.{name}")
        return globals()[name]
    home = "foreach" if name.startswith("_foreach_") else _HOME.get(name)
    if home is not None:
        found = getattr(_imported(f"antorcha.{home}"), name, None)
        if found is None:
            raise _no_such_name("torch", name, __dir__)
        globals()[name] = found
        return found
    raise _no_such_name("torch", name, __dir__)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_HOME, *_absent.NAMES})
