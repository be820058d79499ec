"""``torch.nn``: modules, parameters, layers, losses.

See https://docs.pytorch.org/docs/stable/nn.html.
"""

from __future__ import annotations

import importlib
from typing import Any

from antorcha.errors import ArgumentError, no_such_name
from antorcha.nn import functional, init
from antorcha.nn.activation import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    RReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Softmax2d,
    Softmin,
    Softplus,
    Softshrink,
    Softsign,
    Tanh,
    Tanhshrink,
    Threshold,
)  # fmt: skip
from antorcha.nn.adaptive import AdaptiveLogSoftmaxWithLoss
from antorcha.nn.channelshuffle import ChannelShuffle
from antorcha.nn.containers import (
    Container,
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Sequential,
)  # fmt: skip
from antorcha.nn.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)  # fmt: skip
from antorcha.nn.distance import CosineSimilarity, PairwiseDistance
from antorcha.nn.dropout import (
    AlphaDropout,
    Dropout,
    Dropout1d,
    Dropout2d,
    Dropout3d,
    FeatureAlphaDropout,
)  # fmt: skip
from antorcha.nn.flatten import Flatten, Unflatten
from antorcha.nn.fold import Fold, Unfold
from antorcha.nn.lazy import (
    LazyBatchNorm1d,
    LazyBatchNorm2d,
    LazyBatchNorm3d,
    LazyConv1d,
    LazyConv2d,
    LazyConv3d,
    LazyConvTranspose1d,
    LazyConvTranspose2d,
    LazyConvTranspose3d,
    LazyInstanceNorm1d,
    LazyInstanceNorm2d,
    LazyInstanceNorm3d,
    LazyLinear,
)  # fmt: skip
from antorcha.nn.linear import Bilinear, Identity, Linear
from antorcha.nn.linear_cross_entropy import LinearCrossEntropyLoss, LinearCrossEntropyOptions
from antorcha.nn.loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CosineEmbeddingLoss,
    CrossEntropyLoss,
    CTCLoss,
    GaussianNLLLoss,
    HingeEmbeddingLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MarginRankingLoss,
    MSELoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    NLLLoss,
    NLLLoss2d,
    PoissonNLLLoss,
    SmoothL1Loss,
    SoftMarginLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)  # fmt: skip
from antorcha.nn.module import Module
from antorcha.nn.multihead import MultiheadAttention
from antorcha.nn.norm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    CrossMapLRN2d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    LocalResponseNorm,
    RMSNorm,
    SyncBatchNorm,
)  # fmt: skip
from antorcha.nn.padding import (
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)  # fmt: skip
from antorcha.nn.parallel import DataParallel
from antorcha.nn.parameter import (
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)  # fmt: skip
from antorcha.nn.pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
)  # fmt: skip
from antorcha.nn.pooling_more import (
    FractionalMaxPool2d,
    FractionalMaxPool3d,
    LPPool1d,
    LPPool2d,
    LPPool3d,
    MaxUnpool1d,
    MaxUnpool2d,
    MaxUnpool3d,
)  # fmt: skip
from antorcha.nn.rnn import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNBase, RNNCell, RNNCellBase
from antorcha.nn.sparse import Embedding, EmbeddingBag
from antorcha.nn.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)  # fmt: skip
from antorcha.nn.upsampling import (
    PixelShuffle,
    PixelUnshuffle,
    Upsample,
    UpsamplingBilinear2d,
    UpsamplingNearest2d,
)  # fmt: skip
from antorcha.ops.kinds.pages import name_pages

name_pages("torch.nn", globals())
_LAZY = (
    "_reduction", "attention", "common_types", "grad", "intrinsic", "modules", "qat", "quantizable",
    "quantized", "utils",
)  # fmt: skip


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """``device``, ``dtype`` and ``memory_format`` of the keyword arguments, for ``torch.empty``.

    >>> torch.nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": torch.float64}})
    {'dtype': torch.float64, 'device': 'cpu'}
    """
    given = dict(kwargs or {})
    found: dict[str, Any] = dict(given.pop("factory_kwargs", {}))
    wrong = given.keys() - {"device", "dtype", "memory_format"}
    if wrong:
        raise ArgumentError(f"unexpected kwargs {wrong}")
    for name in ("device", "dtype", "memory_format"):
        if name in given:
            if name in found:
                raise ArgumentError(f"{name} specified twice, in **kwargs and in factory_kwargs")
            found[name] = given[name]
    return found


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"antorcha.nn.{name}")
    raise no_such_name("torch.nn", name, globals())
