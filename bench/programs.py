"""Rows of whole programs: a training step of the models people write, a model that writes text,
batches of ever new lengths, loading, saving.

Each step is a forward pass, a backward pass and the optimizer's step, eagerly.
"""

from __future__ import annotations

from bench.harness import Row

_MLP = """
nn = torch.nn
torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
)
optimizer = torch.optim.Adam(model.parameters())
x, y = torch.randn(64, 784), torch.randint(0, 10, (64,))
def step():
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""

# The network of PyTorch's MNIST example.
_CNN = """
nn = torch.nn
torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
    nn.Dropout(0.25), nn.Flatten(1), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5),
    nn.Linear(128, 10), nn.LogSoftmax(1),
)
optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
x, y = torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))
def step():
    optimizer.zero_grad()
    nn.functional.nll_loss(model(x), y).backward()
    optimizer.step()
"""

_LSTM = """
nn = torch.nn
torch.manual_seed(0)
model, cell = nn.LSTM(128, 128), nn.LSTMCell(128, 128)
x = torch.randn(64, {batch}, 128)
def step():
    model.zero_grad()
    model(x)[0].sum().backward()
def cells():
    cell.zero_grad()
    state, outs = None, []
    for row in x:
        state = cell(row, state)
        outs.append(state[0])
    torch.stack(outs).sum().backward()
"""

_GPT = """
nn = torch.nn
F = nn.functional
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (
            part.view(B, T, self.heads, C // self.heads).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(C, 2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).contiguous().view(B, T, C))
        return x + self.down(F.gelu(self.up(self.norm2(x))))
class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(65, 128), nn.Embedding(64, 128)
        self.blocks = nn.Sequential(*(Block(128, 4) for _ in range(4)))
        self.norm, self.head = nn.LayerNorm(128), nn.Linear(128, 65, bias=False)
    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x)))
model = Gpt()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
ids = torch.randint(0, 65, (12, 65))
def step():
    optimizer.zero_grad()
    logits = model(ids[:, :-1])
    F.cross_entropy(logits.reshape(-1, 65), ids[:, 1:].reshape(-1)).backward()
    optimizer.step()
"""

# GPT-2's shape, without its weights: what is measured does not depend on them.
_GENERATION = """
nn = torch.nn
F = nn.functional
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    def forward(self, x, cache):
        B, T, C = x.shape
        q, k, v = (
            part.view(B, T, self.heads, C // self.heads).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(C, 2)
        )
        if cache is not None:
            k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        x = x + self.out(y.transpose(1, 2).reshape(B, T, C))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")), (k, v)
class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
        self.blocks = nn.ModuleList([Block(768, 12) for _ in range(12)])
        self.norm = nn.LayerNorm(768)
    def forward(self, ids, caches, start):
        x = self.tokens(ids) + self.places(torch.arange(start, start + ids.shape[1]))
        found = []
        for block, cache in zip(self.blocks, caches):
            x, kept = block(x, cache)
            found.append(kept)
        return self.norm(x[:, -1]) @ self.tokens.weight.T, found
model = Gpt2().eval()
prompt = torch.randint(0, 50257, (1, 8))
@torch.no_grad()
def generate(count=50):
    ids, caches, start, out = prompt, [None] * 12, 0, []
    for _ in range(count):
        logits, caches = model(ids, caches, start)
        start += ids.shape[1]
        ids = logits.argmax(-1, keepdim=True)
        out.append(ids.item())
    return out
"""

# The lengths go on from turn to turn: hardly a batch has the sizes of one before.
_LENGTHS = """
import random
nn = torch.nn
F = nn.functional
torch.manual_seed(0)
lengths = random.Random(0)
model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
data, classes = torch.randn(300, 32), torch.randint(0, 4, (300,))
def rows(batches=4000):
    for _ in range(batches):
        n = lengths.randint(1, 300)
        model.zero_grad()
        F.cross_entropy(model(data[:n]), classes[:n]).backward()
def padded(batches=2000):
    for _ in range(batches):
        sizes = [lengths.randint(1, 50) for _ in range(lengths.randint(1, 6))]
        x = nn.utils.rnn.pad_sequence([data[:n] for n in sizes], batch_first=True)
        ends = torch.tensor(sizes)
        real = torch.arange(x.shape[1]) < ends[:, None]  # (B, T)
        model.zero_grad()
        means = (model(x) * real[:, :, None]).sum(1) / ends[:, None]
        F.cross_entropy(means, classes[: len(sizes)]).backward()
def both():
    rows()
    padded()
"""

_SMALL_PARAMETERS = """
parameters = [torch.nn.Parameter(torch.randn(8, 8)) for _ in range(200)]
for p in parameters:
    p.grad = torch.randn(8, 8)
optimizer = torch.optim.{optimizer}(parameters, lr=1e-3)
"""

_LOADER = """
DataLoader, TensorDataset = torch.utils.data.DataLoader, torch.utils.data.TensorDataset
data = TensorDataset(torch.randn(10000, 32), torch.randint(0, 10, (10000,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=2, persistent_workers=True)
def epoch():
    for x, y in loader: pass
"""

_FILES = """
import os, tempfile
folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "weights.pt")
state = {f"layer.{k}": torch.randn(25, 1000, 100) for k in range(50)}  # 500 MB
torch.save(state, path)
"""

PROGRAMS = [
    Row("programs", "MLP 784-512-512-10, Adam", "step()", _MLP, 1.1),
    Row("programs", "MNIST CNN, Adadelta", "step()", _CNN, 1.2, turns=7),
    Row("programs", "LSTM 128, 64 steps, batch 1", "step()", _LSTM.format(batch=1)),
    Row("programs", "LSTM 128, 64 steps, batch 32", "step()", _LSTM.format(batch=32), 1.2),
    Row("programs", "64 LSTM cells, batch 1", "cells()", _LSTM.format(batch=1)),
    Row("programs", "GPT of 4 blocks of 128, AdamW", "step()", _GPT, 1.0),
    Row("programs", "GPT-2 writes 50 tokens, batch 1", "generate()", _GENERATION, 1.2, turns=5),
    Row("programs", "6,000 batches, each of its length", "both()", _LENGTHS, 1.5, turns=5),
    Row(
        "programs",
        "SGD, 200 parameters",
        "optimizer.step()",
        _SMALL_PARAMETERS.format(optimizer="SGD"),
        4,
    ),
    Row(
        "programs",
        "Adam, 200 parameters",
        "optimizer.step()",
        _SMALL_PARAMETERS.format(optimizer="Adam"),
        4,
    ),
    Row("programs", "DataLoader, 2 workers", "epoch()", _LOADER, 2, turns=7),
    Row("programs", "save 500 MB", "torch.save(state, path)", _FILES, 1.0, turns=15),
    Row("programs", "load 500 MB", "torch.load(path)", _FILES, 1.0, turns=5),
]
