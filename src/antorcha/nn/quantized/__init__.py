"""``torch.nn.quantized``: names that libraries import. Making a quantized layer raises;
``FloatFunctional``, which computes in floats, works.
"""

from __future__ import annotations

from antorcha.errors import explain_missing
from antorcha.nn.quantization import unsupported
from antorcha.nn.quantized import dynamic
from antorcha.nn.quantized.float_functional import FloatFunctional

BatchNorm2d = unsupported("torch.nn.quantized", "BatchNorm2d")
BatchNorm3d = unsupported("torch.nn.quantized", "BatchNorm3d")
Conv1d = unsupported("torch.nn.quantized", "Conv1d")
Conv2d = unsupported("torch.nn.quantized", "Conv2d")
Conv3d = unsupported("torch.nn.quantized", "Conv3d")
ConvTranspose1d = unsupported("torch.nn.quantized", "ConvTranspose1d")
ConvTranspose2d = unsupported("torch.nn.quantized", "ConvTranspose2d")
ConvTranspose3d = unsupported("torch.nn.quantized", "ConvTranspose3d")
DeQuantize = unsupported("torch.nn.quantized", "DeQuantize")
Dropout = unsupported("torch.nn.quantized", "Dropout")
ELU = unsupported("torch.nn.quantized", "ELU")
Embedding = unsupported("torch.nn.quantized", "Embedding")
EmbeddingBag = unsupported("torch.nn.quantized", "EmbeddingBag")
FXFloatFunctional = unsupported("torch.nn.quantized", "FXFloatFunctional")
GroupNorm = unsupported("torch.nn.quantized", "GroupNorm")
Hardswish = unsupported("torch.nn.quantized", "Hardswish")
InstanceNorm1d = unsupported("torch.nn.quantized", "InstanceNorm1d")
InstanceNorm2d = unsupported("torch.nn.quantized", "InstanceNorm2d")
InstanceNorm3d = unsupported("torch.nn.quantized", "InstanceNorm3d")
LSTM = unsupported("torch.nn.quantized", "LSTM")
LayerNorm = unsupported("torch.nn.quantized", "LayerNorm")
LeakyReLU = unsupported("torch.nn.quantized", "LeakyReLU")
Linear = unsupported("torch.nn.quantized", "Linear")
MaxPool2d = unsupported("torch.nn.quantized", "MaxPool2d")
MultiheadAttention = unsupported("torch.nn.quantized", "MultiheadAttention")
PReLU = unsupported("torch.nn.quantized", "PReLU")
QFunctional = unsupported("torch.nn.quantized", "QFunctional")
Quantize = unsupported("torch.nn.quantized", "Quantize")
ReLU6 = unsupported("torch.nn.quantized", "ReLU6")
Sigmoid = unsupported("torch.nn.quantized", "Sigmoid")
Softmax = unsupported("torch.nn.quantized", "Softmax")

explain_missing("torch.nn.quantized", globals())
