"""``torch.nn.quantizable``: names that libraries import; making a layer raises."""

from __future__ import annotations

from antorcha.errors import explain_missing
from antorcha.nn.quantization import unsupported

LSTM = unsupported("torch.nn.quantizable", "LSTM")
LSTMCell = unsupported("torch.nn.quantizable", "LSTMCell")
MultiheadAttention = unsupported("torch.nn.quantizable", "MultiheadAttention")

explain_missing("torch.nn.quantizable", globals())
