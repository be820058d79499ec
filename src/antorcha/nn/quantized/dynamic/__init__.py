"""``torch.nn.quantized.dynamic``: names that libraries import; making a layer raises."""

from __future__ import annotations

from antorcha.errors import explain_missing
from antorcha.nn.quantization import unsupported

Conv1d = unsupported("torch.nn.quantized.dynamic", "Conv1d")
Conv2d = unsupported("torch.nn.quantized.dynamic", "Conv2d")
Conv3d = unsupported("torch.nn.quantized.dynamic", "Conv3d")
ConvTranspose1d = unsupported("torch.nn.quantized.dynamic", "ConvTranspose1d")
ConvTranspose2d = unsupported("torch.nn.quantized.dynamic", "ConvTranspose2d")
ConvTranspose3d = unsupported("torch.nn.quantized.dynamic", "ConvTranspose3d")
GRU = unsupported("torch.nn.quantized.dynamic", "GRU")
GRUCell = unsupported("torch.nn.quantized.dynamic", "GRUCell")
LSTM = unsupported("torch.nn.quantized.dynamic", "LSTM")
LSTMCell = unsupported("torch.nn.quantized.dynamic", "LSTMCell")
Linear = unsupported("torch.nn.quantized.dynamic", "Linear")
RNNCell = unsupported("torch.nn.quantized.dynamic", "RNNCell")

explain_missing("torch.nn.quantized.dynamic", globals())
