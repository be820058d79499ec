"""Where PyTorch keeps what antorcha keeps elsewhere: the names of classes in a whole module's
pickle, in both directions."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, Final

from antorcha import basics
from antorcha.core.lazy import imported, lazy
from antorcha.ops.kinds.record import REGISTRY

antorcha_random = lazy("antorcha.random")

_RENAMED: Final = {
    "nn.containers": "nn.modules.container", "nn.module": "nn.modules.module",
    "nn.multihead": "nn.modules.activation", "nn.pooling_more": "nn.modules.pooling",
    "optim.lr_base": "optim.lr_scheduler", "optim.lr_policies": "optim.lr_scheduler",
    "nn.lazy": "nn.modules.lazy", "nn.state": "nn.modules.module", "autograd.hooks": "utils.hooks",
    "optim._adafactor": "optim", "optim._muon": "optim",
    "data.sampler": "utils.data.sampler", "data.dataset": "utils.data.dataset",
    "data.collate": "utils.data._utils.collate",
    "data.dataloader": "utils.data.dataloader",
    "data.distributed": "utils.data.distributed",
    "distributions.transform": "distributions.transforms",
    "distributions.vector_transforms": "distributions.transforms",
}  # fmt: skip
_SAME: Final = ("activation", "adaptive", "channelshuffle", "conv", "distance", "dropout",
                "flatten", "fold", "linear", "loss", "padding", "pooling", "rnn", "sparse",
                "transformer", "upsampling")  # fmt: skip
"""Files of layers that PyTorch names so in ``torch.nn.modules``."""
_NAMED: Final = {
    "antorcha.runtime.tensor.Tensor": "torch", "antorcha.core.dtypes.dtype": "torch",
    "antorcha.runtime.tensor.Parameter": "torch.nn.parameter", "antorcha.core.shapes.Size": "torch",
    "antorcha.random.Generator": "torch._C",
    "antorcha.nn.parallel.DataParallel": "torch.nn.parallel.data_parallel",
    "antorcha.nn.linear_cross_entropy.LinearCrossEntropyLoss": "torch.nn.modules.loss",
    "antorcha.nn.linear_cross_entropy.LinearCrossEntropyOptions":
        "torch.nn.modules.linear_cross_entropy_options",
}  # fmt: skip


def torch_module(thing: Any) -> str:
    """The module in which PyTorch has a class or function, given antorcha's."""
    module: str = thing.__module__
    if module == "antorcha":
        return "torch" if getattr(thing, "is_function", True) else "torch.nn.functional"
    if not module.startswith("antorcha."):
        return module
    found = _NAMED.get(f"{module}.{thing.__qualname__}")
    if found is not None:
        return found
    path = module.removeprefix("antorcha.")
    return f"torch.{_torch_path(path, thing.__qualname__)}"


def _torch_path(path: str, name: str) -> str:
    if path == "nn.lazy" and name != "LazyModuleMixin":
        ordinary: Any = getattr(imported("antorcha.nn"), name.removeprefix("Lazy"))
        return torch_module(ordinary).removeprefix("torch.")
    if path == "nn.norm":
        for file in ("BatchNorm", "InstanceNorm"):
            if file in name:
                return f"nn.modules.{file.lower()}"
        return "nn.modules." + ("batchnorm" if name.startswith("_") else "normalization")
    if path == "nn.upsampling" and name.startswith("Pixel"):
        return "nn.modules.pixelshuffle"
    package, _, file = path.rpartition(".")
    if package == "nn" and file in _SAME:
        return f"nn.modules.{file}"
    return _RENAMED.get(path, path)


def is_torch(module: str) -> bool:
    """Does a name in that module mean something of PyTorch's (or of antorcha's own)?"""
    return module.split(".")[0] in ("torch", "antorcha")


_PUBLIC: Final = ("nn", "optim", "distributions", "data", "utils.data", "utils.hooks")
_OPS: Final = ("torch", "torch.functional", "torch._C", "torch._C._nn", "torch._C._special",
               "torch._C._linalg", "torch._C._VariableFunctions",
               "torch._C._VariableFunctionsClass")  # fmt: skip


def resolve(module: str, name: str) -> Any:
    """antorcha's class or function of PyTorch's name; None where there is none.

    Looks into the packages of layers, optimizers, distributions and data sets, and at the ops, and
    nowhere else: what these give runs no code of a file's.
    """
    path = module.partition(".")[2]
    if module in _OPS or module == "torch._utils":
        return _generator() if name == "Generator" else _op(name.removeprefix("torch."))
    if not any(path == each or path.startswith(f"{each}.") for each in _PUBLIC):
        return None
    found = _class(path, name)
    home = getattr(found, "__module__", None)
    if isinstance(found, ModuleType) or not isinstance(home, str) or not is_torch(home):
        return None
    return found


def _class(path: str, name: str) -> Any:
    if path.startswith(("nn.modules.", "nn.parallel.")) or path == "nn":
        nn = imported("antorcha.nn")
        found = vars(nn).get(name)
        if found is not None:
            return found
    homes = [path, *(ours for ours, theirs in _RENAMED.items() if theirs == path)]
    if path.startswith("nn.modules."):
        homes += ["nn." + path.rpartition(".")[2], "nn.norm"]
    for home in homes:
        try:
            found = importlib.import_module(f"antorcha.{home}")
        except ImportError:
            continue
        for part in name.split("."):
            found = vars(found).get(part) if hasattr(found, "__dict__") else None
        if found is not None:
            return found
    return None


def _generator() -> Any:
    return antorcha_random.Generator


def _op(name: str) -> Any:
    if isinstance(vars(basics).get(name), basics.memory_format):
        return vars(basics)[name]
    if name in REGISTRY:
        return REGISTRY[name]
    return vars(imported("antorcha.nn.functional")).get(name)
