"""``torch.nn.modules``: the layers under the name that PyTorch's own code uses."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from antorcha import nn
from antorcha.core.shapes import Size
from antorcha.errors import explain_missing
from antorcha.nn import *  # noqa: F403
from antorcha.nn import (
    _reduction,
    activation,
    adaptive,
    channelshuffle,
    common_types,
    containers,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    hooks,
    init,
    lazy,
    linear,
    loss,
    module,
    multihead,
    norm,
    padding,
    pooling,
    pooling_more,
    rnn,
    sparse,
    transformer,
    upsampling,
    words,
)  # fmt: skip
from antorcha.nn.module import Module
from antorcha.runtime.tensor import Tensor

utils = importlib.import_module(f"{__name__}.utils")  # not nn.utils, which the star brought
_FILES: dict[str, ModuleType] = {
    "activation": activation, "adaptive": adaptive, "batchnorm": norm,
    "channelshuffle": channelshuffle, "container": containers, "conv": conv,
    "distance": distance, "dropout": dropout, "flatten": flatten, "fold": fold,
    "instancenorm": norm, "lazy": lazy, "linear": linear, "loss": loss, "module": module,
    "normalization": norm, "padding": padding, "pixelshuffle": upsampling, "pooling": pooling,
    "rnn": rnn, "sparse": sparse, "transformer": transformer, "upsampling": upsampling,
}  # fmt: skip
_ALSO = {  # what stands in another file here
    "activation": "MultiheadAttention NonDynamicallyQuantizableLinear Parameter Tensor",
    "batchnorm": "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d Parameter Tensor",
    "container": "_addindent",
    "conv": "LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d "
    "LazyConvTranspose3d Parameter Tensor _pair _reverse_repeat_tuple _single _triple _size_1_t "
    "_size_2_t _size_3_t",
    "dropout": "Tensor",
    "instancenorm": "LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d Tensor",
    "linear": "LazyLinear Parameter Tensor",
    "loss": "LinearCrossEntropyLoss LinearCrossEntropyOptions Tensor _Reduction",
    "module": "Buffer RemovableHandle _addindent",
    "normalization": "Parameter Tensor _shape_t",
    "padding": "_ntuple _pair _quadruple _size_2_t _size_4_t _size_6_t",
    "pooling": "FractionalMaxPool2d FractionalMaxPool3d LPPool1d LPPool2d LPPool3d MaxUnpool1d "
    "MaxUnpool2d MaxUnpool3d _LPPoolNd _MaxUnpoolNd _pair _single _triple _size_1_t _size_2_t "
    "_size_3_t _size_any_t",
    "rnn": "Parameter Tensor",
    "sparse": "Parameter Tensor",
    "transformer": "Tensor xavier_uniform_",
    "upsampling": "Tensor _size_2_t _size_any_t",
}
_HERE = {
    name: value
    for source in (pooling_more, common_types, utils, hooks, words, nn, multihead, linear, init)
    for name, value in vars(source).items()
}
_HERE.update(
    Tensor=Tensor, _Reduction=_reduction, _addindent=words.indented,
    _shape_t=int | list[int] | Size,
)  # fmt: skip
for _name, _others in _ALSO.items():
    for _other in _others.split():
        vars(_FILES[_name]).setdefault(_other, _HERE[_other])
for _name, _module in _FILES.items():
    globals()[_name] = _module
    explain_missing("torch.nn", vars(_module))
    sys.modules[f"{__name__}.{_name}"] = _module  # import torch.nn.modules.batchnorm

explain_missing("torch.nn", globals())
