"""``torch.nn.modules``: the layers under the name that PyTorch's own code uses."""

from __future__ import annotations

import sys
from types import ModuleType

from antorcha.errors import explain_missing
from antorcha.nn import *  # noqa: F403
from antorcha.nn import (
    activation,
    adaptive,
    channelshuffle,
    containers,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    lazy,
    linear,
    loss,
    module,
    norm,
    padding,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
)  # fmt: skip
from antorcha.nn.module import Module

_FILES: dict[str, ModuleType] = {
    "activation": activation, "adaptive": adaptive, "batchnorm": norm,
    "channelshuffle": channelshuffle, "container": containers, "conv": conv,
    "distance": distance, "dropout": dropout, "flatten": flatten, "fold": fold,
    "instancenorm": norm, "lazy": lazy, "linear": linear, "loss": loss, "module": module,
    "normalization": norm, "padding": padding, "pixelshuffle": upsampling, "pooling": pooling,
    "rnn": rnn, "sparse": sparse, "transformer": transformer, "upsampling": upsampling,
}  # fmt: skip
for _name, _module in _FILES.items():
    globals()[_name] = _module
    explain_missing("torch.nn", vars(_module))
    sys.modules[f"{__name__}.{_name}"] = _module  # import torch.nn.modules.batchnorm

explain_missing("torch.nn", globals())
