"""How many multiply-adds a layer's forward takes: one rule per class of modules.

A multiply-add is one product that is added to a sum. What a layer does besides (activations,
pooling, copies, a bias that is only added) is no multiply-add, so those layers have the rule
``none``. A class that is not in the table has no rule: how many it takes is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from antorcha import nn

Shapes = list[tuple[int, ...]]
Rule = Callable[[Any, Shapes, Shapes], int]
"""From a module, the shapes of the tensors it was given and of those it made, to a count."""


def none(module: Any, given: Shapes, result: Shapes) -> int:
    """Nothing is multiplied and added."""
    return 0


def linear(module: Any, given: Shapes, result: Shapes) -> int:
    """Each output is a dot product over the input's features."""
    return prod(result[0]) * int(module.in_features)


def linear_loss(module: Any, given: Shapes, result: Shapes) -> int:
    """The logits of the linear layer inside: each row of the input with each row of the weight."""
    return prod(given[0][:-1]) * int(module.linear.weight.numel())


def bilinear(module: Any, given: Shapes, result: Shapes) -> int:
    """Each output is ``x1^T W x2``: a product and a sum for each element of ``W`` and of ``x2``."""
    return prod(result[0]) * int(module.in2_features) * (int(module.in1_features) + 1)


def conv(module: Any, given: Shapes, result: Shapes) -> int:
    """Each output is a dot product over a window of its group's channels."""
    return prod(result[0]) * int(prod(module.weight.shape[1:]))


def conv_transpose(module: Any, given: Shapes, result: Shapes) -> int:
    """Each input is spread, by a window of weights, over its group's output channels."""
    return prod(given[0]) * int(prod(module.weight.shape[1:]))


def scale(module: Any, given: Shapes, result: Shapes) -> int:
    """Known statistics: one scale and shift per element."""
    return prod(result[0])


def normalise(module: Any, given: Shapes, result: Shapes) -> int:
    """The squares are summed and each element is scaled; weights scale it once more."""
    return prod(result[0]) * (2 if getattr(module, "weight", None) is None else 3)


def local_response(module: Any, given: Shapes, result: Shapes) -> int:
    """A window of squares per element, and its scale."""
    return prod(result[0]) * (int(module.size) + 1)


def instance_norm(module: Any, given: Shapes, result: Shapes) -> int:
    """As a batch norm where the statistics are known, else as a layer norm."""
    rule = scale if module.track_running_stats else normalise
    return rule(module, given, result)


def similarity(module: Any, given: Shapes, result: Shapes) -> int:
    """Three sums of products: of the two vectors, and of each with itself."""
    return 3 * max(prod(shape) for shape in given)


def recurrent(module: Any, given: Shapes, result: Shapes) -> int:
    """Each place takes a product with every weight."""
    weights = sum([w.numel() for name, w in module.named_parameters() if "weight" in name])
    return prod(given[0][:-1]) * int(weights)


def attention(module: Any, given: Shapes, result: Shapes) -> int:
    """Four projections; then each query meets each key of its sequence, and its value."""
    query, key = given[0], given[min(1, len(given) - 1)]
    batch = 1 if len(query) < 3 else query[0 if module.batch_first else 1]
    queries, keys, size = prod(query[:-1]), prod(key[:-1]), int(module.embed_dim)
    projected = 2 * queries * size * size + keys * size * int(module.kdim + module.vdim)
    return projected + 2 * queries * (keys // max(batch, 1)) * size


TABLE: tuple[tuple[Rule, str], ...] = (
    (linear, "Linear LazyLinear"),
    (linear_loss, "LinearCrossEntropyLoss"),
    (bilinear, "Bilinear"),
    (conv, "Conv1d Conv2d Conv3d LazyConv1d LazyConv2d LazyConv3d"),
    (conv_transpose, """
    ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConvTranspose1d LazyConvTranspose2d
    LazyConvTranspose3d"""),
    (recurrent, "RNNBase RNN LSTM GRU RNNCellBase RNNCell LSTMCell GRUCell"),
    (attention, "MultiheadAttention"),
    (scale, """
    BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d
    SyncBatchNorm"""),
    (instance_norm, """
    InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d
    LazyInstanceNorm3d"""),
    (normalise, "LayerNorm GroupNorm RMSNorm"),
    (local_response, "LocalResponseNorm CrossMapLRN2d"),
    (similarity, "CosineSimilarity"),
    (none, """
    Identity ChannelShuffle Embedding EmbeddingBag FractionalMaxPool2d FractionalMaxPool3d LPPool1d
    LPPool2d LPPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d Flatten Unflatten Fold Unfold PixelShuffle
    PixelUnshuffle UpsamplingNearest2d
    CELU ELU GELU GLU SELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax
    Mish PReLU ReLU ReLU6 RReLU Sigmoid SiLU Softmax Softmax2d Softmin Softplus Softshrink Softsign
    Tanh Tanhshrink Threshold AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout
    CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d
    ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d
    ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d AdaptiveAvgPool1d AdaptiveAvgPool2d
    AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d AvgPool1d AvgPool2d
    AvgPool3d MaxPool1d MaxPool2d MaxPool3d"""),
)  # fmt: skip
RULES: dict[type, Rule] = {
    getattr(nn, name): rule for rule, names in TABLE for name in names.split()
}


def rule_of(module: Any) -> Rule | None:
    """The rule for a module: that of its class, or of a base whose ``forward`` it has kept.

    >>> rule_of(torch.nn.Linear(2, 3)).__name__
    'linear'
    """
    for cls in type(module).__mro__:
        found = RULES.get(cls)
        if found is not None:
            return found if type(module).forward is cls.forward else None  # type: ignore[attr-defined]
    return None
