"""Rows of what people call a million times: each is promised at PyTorch's time or better.

Sizes are small, so that a row says what the call costs.
"""

from __future__ import annotations

from bench.harness import Row

_TENSORS = """
import numpy as np
nn, F = torch.nn, torch.nn.functional
torch.manual_seed(0)
x, m, r, big = torch.randn(10), torch.randn(8, 8), torch.randn(100, 100), torch.randn(1000, 1000)
i, scalar = torch.randint(0, 100, (20,)), torch.tensor(2.0)
mask = r > 0
numbers, nested = [1.0, 2.0, 3.0], [[1, 2, 3], [4, 5, 6]]
array = np.ones((3, 4), "f")
"""

_LAYERS = f"""{_TENSORS}
image = torch.randn(1, 1, 16, 16)
linear, norm, layer_norm = nn.Linear(8, 8), nn.BatchNorm1d(8), nn.LayerNorm(8)
three = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
conv, embedding, dropout = nn.Conv2d(1, 4, 3), nn.Embedding(100, 8), nn.Dropout(0.1)
"""

_MODEL = f"""{_TENSORS}
import copy
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.rest = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
    def forward(self, x):
        x = self.first(x)
        for layer in self.rest:
            x = layer(x).relu()
        return x
model = Model()
model(m).sum().backward()
sgd = torch.optim.SGD(model.parameters(), 0.1)
state = model.state_dict()
g = torch.randn(10, requires_grad=True)
"""

_OPTIMIZER = f"{_MODEL}\noptimizer = torch.optim.{{name}}(model.parameters(), 1e-3)"


def _rows(setup: str, statements: dict[str, str]) -> list[Row]:
    return [
        Row("everyday", name, statement, setup, 1.0, turns=5)
        for name, statement in statements.items()
    ]


_DATA = {
    "tensor of a list": "torch.tensor(numbers)",
    "tensor of lists": "torch.tensor(nested)",
    "tensor of a number": "torch.tensor(1.0)",
    "from_numpy": "torch.from_numpy(array)",
    "tensor of an array": "torch.tensor(array)",
    "as_tensor of a list": "torch.as_tensor(numbers)",
    "numpy": "x.numpy()",
    "np.asarray": "np.asarray(x)",
    "item": "scalar.item()",
    "float": "float(scalar)",
    "tolist 100x100": "r.tolist()",
    "if x > 0": "bool(scalar > 0)",
    "len": "len(r)",
    "shape": "r.shape",
    "size(0)": "r.size(0)",
    "dtype": "r.dtype",
    "device": "r.device",
    "for row in r": "for row in r: pass",
    "repr 8x8": "repr(m)",
    "str 1000x1000": "str(big)",
}

_INDEXING = {
    "x[3]": "x[3]",
    "r[2]": "r[2]",
    "r[1:5, ::2]": "r[1:5, ::2]",
    "r[..., 0]": "r[..., 0]",
    "r[None]": "r[None]",
    "r[i]": "r[i]",
    "r[mask]": "r[mask]",
    "r[[1, 2]]": "r[[1, 2]]",
    "r[i, i]": "r[i, i]",
    "r[0] = 1": "r[0] = 1.0",
    "r[mask] = 0": "r[mask] = 0.0",
    "x[3].item()": "x[3].item()",
}

_MAKING = {
    "zeros": "torch.zeros(3, 4)",
    "ones": "torch.ones(3, 4)",
    "empty": "torch.empty(3, 4)",
    "full": "torch.full((3, 4), 2.0)",
    "arange": "torch.arange(10)",
    "linspace": "torch.linspace(0, 1, 10)",
    "eye": "torch.eye(4)",
    "rand": "torch.rand(3, 4)",
    "randn": "torch.randn(3, 4)",
    "randint": "torch.randint(0, 5, (3, 4))",
    "randperm": "torch.randperm(10)",
    "zeros_like": "torch.zeros_like(x)",
    "clone": "x.clone()",
    "detach": "x.detach()",
    "to another dtype": "x.to(torch.float64)",
    "i.float()": "i.float()",
    "cpu": "x.cpu()",
    "contiguous": "m.t().contiguous()",
}

_ARITHMETIC = {
    "x * 2 + 1": "x * 2 + 1",
    "x ** 2": "x ** 2",
    "x / 2": "x / 2",
    "-x": "-x",
    "x > 0": "x > 0",
    "x == x": "x == x",
    "(x > 0) & (x < 1)": "(x > 0) & (x < 1)",
    "sum of 100x100": "r.sum()",
    "sum(1)": "r.sum(1)",
    "mean of 100x100": "r.mean()",
    "max": "r.max()",
    "max(1)": "r.max(1)",
    "argmax": "r.argmax(1)",
    "std": "r.std()",
    "norm": "r.norm()",
    "any": "mask.any()",
    "all": "mask.all()",
    "sort": "x.sort()",
    "topk": "x.topk(3)",
    "cumsum": "x.cumsum(0)",
    "where": "torch.where(x > 0, x, 0.)",
    "clamp": "x.clamp(0, 1)",
    "x.exp()": "x.exp()",
    "m.softmax(-1)": "m.softmax(-1)",
    "log_softmax": "F.log_softmax(m, -1)",
    "relu": "F.relu(x)",
    "gelu": "F.gelu(x)",
    "sigmoid": "x.sigmoid()",
}

_SHAPES = {
    "r.view": "r.view(10, 1000)",
    "reshape": "r.reshape(-1)",
    "transpose": "r.transpose(0, 1)",
    ".T": "r.T",
    "permute": "r.permute(1, 0)",
    "unsqueeze": "x.unsqueeze(0)",
    "squeeze": "x.squeeze()",
    "expand": "x.expand(3, 10)",
    "repeat": "x.repeat(3)",
    "cat": "torch.cat([x, x])",
    "stack": "torch.stack([x, x])",
    "split": "r.split(25)",
    "chunk": "r.chunk(4)",
    "unbind": "m.unbind()",
    "flip": "x.flip(0)",
    "roll": "x.roll(1)",
    "tril": "m.tril()",
    "diag": "m.diag()",
    "pad": "F.pad(x, (1, 1))",
}

_LOOKUPS = {
    "gather": "r.gather(0, i.view(1, -1))",
    "index_select": "r.index_select(0, i)",
    "masked_fill": "r.masked_fill(mask, 0)",
    "nonzero": "mask.nonzero()",
    "unique": "i.unique()",
    "bincount": "i.bincount()",
    "one_hot": "F.one_hot(i, 100)",
}

_PRODUCTS = {
    "einsum": "torch.einsum('ij,jk->ik', m, m)",
    "m @ m": "m @ m",
    "mv": "m @ m[0]",
    "dot": "x @ x",
    "bmm": "torch.bmm(m[None], m[None])",
    "outer": "torch.outer(x, x)",
    "inverse": "torch.linalg.inv(m)",
    "det": "torch.linalg.det(m)",
    "svd": "torch.linalg.svd(m)",
}

_NETWORKS = {
    "Linear": "linear(m)",
    "Sequential of three": "three(m)",
    "BatchNorm1d": "norm(m)",
    "LayerNorm": "layer_norm(m)",
    "Conv2d": "conv(image)",
    "Embedding": "embedding(i)",
    "Dropout": "dropout(m)",
    "max_pool2d": "F.max_pool2d(image, 2)",
    "mse_loss": "F.mse_loss(m, m)",
    "cross_entropy": "F.cross_entropy(m, i[:8] % 8)",
    "Linear()": "nn.Linear(8, 8)",
}

_MODULES = {
    "a module of four layers": "model(m)",
    "the same, and backward": "model(m).sum().backward()",
    "zero_grad": "sgd.zero_grad()",
    "autograd.grad": "torch.autograd.grad((g * g).sum(), g)",
    "with no_grad()": "with torch.no_grad(): pass",
    "state_dict": "model.state_dict()",
    "load_state_dict": "model.load_state_dict(state)",
    "parameters": "list(model.parameters())",
    "deepcopy of a module": "copy.deepcopy(model)",
    "a module's constructor": "Model()",
}

EVERYDAY = [
    *_rows(_TENSORS, {**_DATA, **_INDEXING, **_MAKING, **_ARITHMETIC}),
    *_rows(_TENSORS, {**_SHAPES, **_LOOKUPS, **_PRODUCTS}),
    *_rows(_LAYERS, _NETWORKS),
    *_rows(_MODEL, _MODULES),
    *[
        row
        for name in ("SGD", "Adam", "AdamW")
        for row in _rows(_OPTIMIZER.format(name=name), {f"{name}.step": "optimizer.step()"})
    ],
]
