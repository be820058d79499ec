"""Rows of ops at sizes never met before, each call a new one; each is promised at PyTorch's time.

The slice that gives a tensor its size is part of every row. Each turn goes on where the last one
stopped: `_CALLS` sizes, so that the tensors stay small however little a call takes.
"""

from __future__ import annotations

from bench.harness import Row

_CALLS = 100  # of a statement in a turn
_TURNS = 9

_ROWS_OF = """
import itertools
F = torch.nn.functional
torch.manual_seed(0)
n = itertools.count(1)
base, images = torch.randn(1100, 32), torch.randn(8, 8, 1100)
weight, bias = torch.randn(32, 32, requires_grad=True), torch.randn(32)
fixed = weight.detach()
def rows():
    return base[: next(n)]
"""

_STATEMENTS = {
    "slice": "base[: next(n)]",
    "zeros": "torch.zeros(next(n), 4)",
    "ones": "torch.ones(next(n), 4)",
    "arange": "torch.arange(next(n))",
    "rows + 1": "rows() + 1",
    "relu": "rows().relu()",
    "rows * a row": "rows() * base[:1]",
    "where": "k = next(n); torch.where(base[:k] > 0, base[:k], 0.)",
    "matmul": "rows() @ fixed",
    "linear": "F.linear(rows(), fixed, bias)",
    "softmax": "rows().softmax(-1)",
    "layer_norm": "F.layer_norm(rows(), (32,))",
    "cross_entropy": "k = next(n); F.cross_entropy(base[:k], torch.zeros(k, dtype=torch.long))",
    "sum(0)": "rows().sum(0)",
    "argmax": "rows().argmax(-1)",
    "cumsum": "rows().cumsum(0)",
    "mean of 3 dims": "images[:, :, : next(n)].mean(0)",
    "cat": "torch.cat((rows(), base[:1]))",
    "pad": "F.pad(rows(), (0, 0, 1, 1))",
    "view": "k = next(n); base[:k].view(k, 4, 8)",
    "expand": "base[:1].expand(next(n), 32)",
    "permute": "k = next(n); base[:k].view(k, 4, 8).permute(2, 0, 1)",
    "transpose, contiguous": "k = next(n); base[:k].view(k, 4, 8).transpose(0, 1).contiguous()",
    "tril": "torch.ones(next(n), 8).tril()",
    "index": "base[torch.arange(next(n))]",
    "embedding": "F.embedding(torch.arange(next(n)), base)",
    "dropout": "F.dropout(rows())",
    "linear, relu, backward": "(rows() @ weight).relu().sum().backward()",
}

SIZES = [
    Row("sizes", f"new sizes: {name}", statement, _ROWS_OF, 1.0, _TURNS, _CALLS)
    for name, statement in _STATEMENTS.items()
]
