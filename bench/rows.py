"""What is measured: the rows, by group, with the ratio that the project has promised for each.

``eager``: what one small call costs. ``everyday`` and ``sizes``: the calls that programs are made
of, and the same at sizes never met. ``kernels``: how fast the work is. ``operators``:
single operators at the sizes where they cost most. ``train`` and ``programs``:
whole steps and programs. ``survey``: every kind of op, to find what is slower than PyTorch's.
A statement that only makes a result drops it at once, as a program's temporaries are.
"""

from __future__ import annotations

from bench.everyday import EVERYDAY
from bench.harness import Row
from bench.operators import OPERATORS
from bench.programs import PROGRAMS
from bench.sizes import SIZES
from bench.survey import SURVEY

# ---- eager: ten elements, so that nothing but the call is measured -------------------------------

_TEN = "a = torch.arange(10.); b = torch.ones(10)"
_TEN_GRAD = "a = torch.arange(10., requires_grad=True); b = torch.ones(10)"
_EIGHT = "a = torch.arange(64.).reshape(8, 8); b = torch.ones(8, 8)"

_UNSEEN = "import itertools; n = itertools.count(1); a = torch.zeros(4_000_000)"
_ROWS_OF = "import itertools; n = itertools.count(1); r = torch.zeros(1_000_000, 4)"
_ROWS_OF_W = f"{_ROWS_OF}; w = torch.ones(4, 4)"
_MILLION = "a = torch.ones(1_000_000); b = torch.ones(1_000_000)"
_MILLION_TWICE = f"""{_MILLION}
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(2)
def both():
    first, second = pool.submit(torch.add, a, b), pool.submit(torch.add, a, b)
    first.result(), second.result()
"""

EAGER = [
    Row("eager", "a + b", "a + b", _TEN, 12.0),
    Row("eager", "a + b, grad", "a + b", _TEN_GRAD, 14.0),
    Row("eager", "view", "c.view(4, 3)", "c = torch.zeros(3, 4)", 10.0),
    Row("eager", "index", "c[2:5, 1]", "c = torch.zeros(8, 8)", 10.0),
    Row("eager", "index an element", "a[3]", _TEN, 2.0),
    Row("eager", "sum()", "a.sum()", _TEN, 10.0),
    Row("eager", "sum(0)", "c.sum(0)", "c = torch.zeros(8, 8)", 10.0),
    Row("eager", "mean()", "a.mean()", _TEN, 10.0),
    Row("eager", "exp", "a.exp()", _TEN, 10.0),
    Row("eager", "matmul 8x8", "a @ b", _EIGHT, 10.0),
    Row("eager", "add_", "a.add_(b)", _TEN, 10.0),
    Row("eager", "(p*b).sum().backward()", "(a * b).sum().backward()", _TEN_GRAD, 14.0),
    Row("eager", "a + 2.0", "a + 2.0", _TEN, 15.0),
    Row("eager", "int64 + float32", "i + b", f"{_TEN}; i = torch.arange(10)", 15.0),
    Row("eager", "(8, 1) * (8,)", "a * b", "a = torch.ones(8, 1); b = torch.ones(8)", 8.0),
    Row("eager", "8x8 + transposed", "a + b.T", _EIGHT, 8.0),
    Row("eager", "with no_grad(): a + b", "with torch.no_grad(): a + b", _TEN_GRAD, 6.0),
    Row("eager", "linear 8x8", "F.linear(a, b)", f"{_EIGHT}; F = torch.nn.functional"),
    Row("eager", "cat", "torch.cat([a, b])", _TEN),
    Row("eager", "softmax", "torch.softmax(a, 0)", _TEN),
    Row("eager", "zeros(10)", "torch.zeros(10)", ""),
    Row("eager", "a size never seen", "a[: next(n)].exp()", _UNSEEN),
    Row("eager", "softmax of a size never seen", "torch.softmax(r[: next(n)], 1)", _ROWS_OF),
    Row("eager", "matmul of a size never seen", "r[: next(n)] @ w", _ROWS_OF_W),
    Row("eager", "a row never asked for", "r[next(n) % 1_000_000]", _ROWS_OF),
    Row("eager", "1M a + b", "a + b", _MILLION, 1.0),
    Row("eager", "1M a + b, two Python threads", "both()", _MILLION_TWICE, 1.0),
]

# ---- kernels ------------------------------------------------------------------------------------

# "8M" twice: up to 32 MiB glibc keeps a freed block for the next result, so that PyTorch's come
# from memory that is there; 2**23 floats are just above that, and their pages are new each time.
_EIGHT_MILLION = "torch.manual_seed(0); x = torch.randn({count})"
_POSITIVE = "torch.manual_seed(0); x = torch.rand({count}) + 0.01"
_ROWS = "torch.manual_seed(0); x = torch.randn(8192, 1024)"
_SQUARE = "torch.manual_seed(0); a = torch.randn(2048, 2048); b = torch.randn(2048, 2048)"
_SUMS = "torch.manual_seed(0); x = torch.randn(4096, 4096)"


def _map(name: str, statement: str, setup: str = _EIGHT_MILLION) -> list[Row]:
    return [
        Row("kernels", f"{name} {shown}", statement, setup.format(count=count), 1.4)
        for shown, count in (("8M", 8_000_000), ("2**23", 2**23))
    ]


KERNELS = [
    Row(
        "kernels",
        "x*y 10000x10000",
        "x * y",
        "x = torch.full((10000, 10000), 1.5); y = torch.full((10000, 10000), 0.5)",
        3.0,
        turns=5,
    ),
    *_map("exp", "torch.exp(x)"),
    *_map("tanh", "torch.tanh(x)"),
    *_map("sigmoid", "torch.sigmoid(x)"),
    *_map("sin", "torch.sin(x)"),
    *_map("log", "torch.log(x)", _POSITIVE),
    *_map("erf", "torch.erf(x)"),
    *_map("gelu", "torch.nn.functional.gelu(x)"),
    Row("kernels", "softmax 8192x1024", "torch.softmax(x, 1)", _ROWS, 3.0),
    Row(
        "kernels",
        "layer_norm 8192x1024",
        "torch.nn.functional.layer_norm(x, (1024,), w, b)",
        f"{_ROWS}; w = torch.ones(1024); b = torch.zeros(1024)",
        3.0,
    ),
    Row("kernels", "a + b.T 2048", "a + b.T", _SQUARE, 1.5),
    Row("kernels", "broadcast row 2048", "a + r", f"{_SQUARE}; r = torch.randn(2048)", 1.5),
    Row("kernels", "broadcast column 2048", "a + c", f"{_SQUARE}; c = torch.randn(2048, 1)", 1.5),
    Row("kernels", "where 2048", "torch.where(m, a, b)", f"{_SQUARE}; m = a > 0", 1.5),
    Row("kernels", "float32 -> float64 2048", "a.to(torch.float64)", _SQUARE, 1.5),
    Row("kernels", "float32 -> float16 2048", "a.to(torch.float16)", _SQUARE, 1.5),
    Row("kernels", "float32 -> bfloat16 2048", "a.to(torch.bfloat16)", _SQUARE, 1.5),
    Row(
        "kernels",
        "int64 -> float32 2048",
        "i.to(torch.float32)",
        f"{_SQUARE}; i = torch.arange(2048 * 2048).view(2048, 2048)",
        1.5,
    ),
    Row("kernels", "sum of rows 4096", "x.sum(1)", _SUMS, 1.05),
    Row("kernels", "sum of columns 4096", "x.sum(0)", _SUMS, 1.05),
    Row("kernels", "sum of all 4096", "x.sum()", _SUMS, 1.05),
    Row("kernels", "max of rows 4096", "x.max(1)", _SUMS, 2.0),
    Row("kernels", "argmax of rows 4096", "x.argmax(1)", _SUMS, 2.0),
    Row("kernels", "var of rows 4096", "x.var(1)", _SUMS, 2.0),
]

# ---- train --------------------------------------------------------------------------------------

_MLP = """
torch.manual_seed(0)
nn = torch.nn
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
loss_of = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(32, 64)
t = torch.randint(0, 10, (32,))
def step():
    loss = loss_of(model(x), t)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

_DEMO = """
from antorcha.cli import demo
digits = demo.load_digits(0)
torch.manual_seed(0)
model = demo.build_model(torch)
loader = demo.make_loader(torch, digits, 32)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
"""

_GRU = """
torch.manual_seed(0)
F = torch.nn.functional
w_x, w_h = torch.randn(96, 32) / 8, torch.randn(96, 32) / 8
b_x, b_h = torch.zeros(96), torch.zeros(96)
for p in (w_x, w_h, b_x, b_h):
    p.requires_grad_()
x = torch.randn(1, 32)
def cell(x, h):
    x_r, x_z, x_n = F.linear(x, w_x, b_x).chunk(3, 1)
    h_r, h_z, h_n = F.linear(h, w_h, b_h).chunk(3, 1)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h
def forward():
    h = torch.zeros(1, 32)
    for _ in range(100):
        h = cell(x, h)
    return h
def both_ways():
    forward().sum().backward()
    for p in (w_x, w_h, b_x, b_h):
        p.grad = None
"""

TRAIN = [
    Row("train", "MLP step 64-64-10, batch 32", "step()", _MLP, 6.0),
    Row("train", "GRU cell, 100 steps, batch 1", "forward()", _GRU, 5.0),
    Row("train", "the same, and backward", "both_ways()", _GRU),
    Row(
        "train",
        "demo epoch",
        "for loss in demo.train_epoch(torch, model, loader, optimizer): pass",
        _DEMO,
        1.5,
        turns=7,
    ),
]

ROWS = [*EAGER, *EVERYDAY, *SIZES, *KERNELS, *OPERATORS, *TRAIN, *PROGRAMS, *SURVEY]
