"""``torch.nn.qat``: names that libraries import; making a layer raises."""

from __future__ import annotations

from antorcha.errors import explain_missing
from antorcha.nn.quantization import unsupported

Conv1d = unsupported("torch.nn.qat", "Conv1d")
Conv2d = unsupported("torch.nn.qat", "Conv2d")
Conv3d = unsupported("torch.nn.qat", "Conv3d")
Embedding = unsupported("torch.nn.qat", "Embedding")
EmbeddingBag = unsupported("torch.nn.qat", "EmbeddingBag")
Linear = unsupported("torch.nn.qat", "Linear")

explain_missing("torch.nn.qat", globals())
