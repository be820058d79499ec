"""Rows of single operators at the sizes where they cost most in real programs.

Where a row says what it must read and write (`moved`, bytes) or compute (`operations`), its floor
stands beside its time: those bytes at the machine's bandwidth, those operations at its peak.
"""

from __future__ import annotations

from bench.harness import Row

MEGA = 1e6


def _row(
    name: str,
    statement: str,
    setup: str,
    target: float,
    *,
    moved: float | None = None,
    operations: float | None = None,
) -> Row:
    text = f"F = torch.nn.functional\ntorch.manual_seed(0)\n{setup}"
    return Row(
        "operators", name, statement, text, target, turns=7, moved=moved, operations=operations
    )


_SIXTEEN = "x = torch.randn(4096, 4096)"

_REDUCTIONS = [
    _row("sum of 16M", "x.sum()", _SIXTEEN, 1.0, moved=64 * MEGA),
    _row("sum of 16M, rows", "x.sum(1)", _SIXTEEN, 1.0, moved=64 * MEGA),
    _row("sum of 16M, columns", "x.sum(0)", _SIXTEEN, 1.0, moved=64 * MEGA),
    _row("max of 16M, rows", "x.max(1)", _SIXTEEN, 2.0, moved=64 * MEGA),
    _row("argmax of 16M, rows", "x.argmax(1)", _SIXTEEN, 2.0, moved=64 * MEGA),
    _row("cumsum of 4M, rows", "x.cumsum(1)", "x = torch.randn(4096, 1024)", 1.0, moved=32 * MEGA),
    _row("cumsum of 4M, columns", "x.cumsum(0)", "x = torch.randn(4096, 1024)", 1.0),
]

_LOGITS = "x = torch.randn(64, 50257)"
_ONE_LOGIT = "x = torch.randn(1, 50257); p = x.softmax(-1)"

_SELECTION = [
    _row("topk 50 of 64x50257", "x.topk(50)", _LOGITS, 2.0, moved=12.9 * MEGA),
    _row("topk 50 of 1x50257", "x.topk(50)", _ONE_LOGIT, 2.0, moved=0.2 * MEGA),
    _row("multinomial of 1x50257", "torch.multinomial(p, 1)", _ONE_LOGIT, 2.0),
    _row(
        "multinomial of 64x50257",
        "torch.multinomial(p, 1)",
        f"{_LOGITS}; p = x.softmax(-1)",
        2.0,
    ),
    _row("sort of 1M", "x.sort()", "x = torch.randn(1_000_000)", 2.0),
    _row("sort of 1000x1000", "x.sort()", "x = torch.randn(1000, 1000)", 2.0),
    _row("argsort of 1M integers", "x.argsort()", "x = torch.randint(0, 9999, (10**6,))", 1.0),
    _row("unique of 1M", "x.unique()", "x = torch.randint(0, 9999, (10**6,))", 1.0),
    _row(
        "searchsorted of 1M in 1000",
        "torch.searchsorted(s, x)",
        "x = torch.rand(10**6); s = torch.rand(1000).sort()[0]",
        1.0,
    ),
    _row("kthvalue of 1M", "x.kthvalue(1000)", "x = torch.randn(10**6)", 1.0),
    _row("median of 1000x1000", "x.median(1)", "x = torch.randn(1000, 1000)", 1.0),
]

_TABLE = "w = torch.randn(50257, 768); i = torch.randint(0, 50257, (4096,))"
_PUT = (
    "w = torch.zeros(10000, 64); i = torch.randint(0, 10000, (50000,)); v = torch.randn(50000, 64)"
)

_GATHERING = [
    _row("embedding 4096x768", "F.embedding(i, w)", _TABLE, 1.2, moved=25 * MEGA),
    _row(
        "embedding 4096x768, gradient",
        "torch.autograd.grad(F.embedding(i, w), w, g)",
        f"{_TABLE}; w.requires_grad_(); g = torch.randn(4096, 768)",
        1.2,
        moved=205 * MEGA,
    ),
    _row(
        "gather of 4M",
        "x.gather(1, i)",
        "x = torch.randn(4096, 1024); i = torch.randint(0, 1024, (4096, 1024))",
        1.2,
        moved=64 * MEGA,
    ),
    _row("index_select of rows", "w.index_select(0, i)", _PUT, 1.2, moved=25.6 * MEGA),
    _row(
        "index_put, accumulate",
        "w.index_put_((i,), v, accumulate=True)",
        _PUT,
        1.2,
        moved=15 * MEGA,
    ),
    _row("index_add of rows", "w.index_add_(0, i, v)", _PUT, 1.2, moved=15 * MEGA),
    _row(
        "scatter_add of 3M",
        "w.scatter_add_(0, i[:, None].expand(-1, 64), v)",
        _PUT,
        1.2,
        moved=15 * MEGA,
    ),
    _row(
        "masked_select of 4M",
        "x[x > 0]",
        "x = torch.randn(4_000_000)",
        1.0,
    ),
    _row("nonzero of 4M", "m.nonzero()", "m = torch.randn(4_000_000) > 0", 1.0),
    _row("bincount of 1M", "i.bincount()", "i = torch.randint(0, 1000, (10**6,))", 1.0),
    _row("one_hot of 100k", "F.one_hot(i, 64)", "i = torch.randint(0, 64, (100_000,))", 1.0),
    _row("repeat_interleave", "x.repeat_interleave(8, 0)", "x = torch.randn(1000, 512)", 1.0),
    _row("roll", "x.roll((3, 5), (0, 1))", "x = torch.randn(1000, 1000)", 1.0),
    _row("flip", "x.flip(0, 1)", "x = torch.randn(1000, 1000)", 1.0),
    _row("pad", "F.pad(x, (1, 1, 1, 1))", "x = torch.randn(16, 64, 56, 56)", 1.0),
    _row("tril", "x.tril()", "x = torch.randn(2000, 2000)", 1.0),
]

_COMPLEX = "a = torch.randn(2 * 10**6, dtype=torch.complex64); b = a.clone()"
_INTEGERS = "a = torch.randint(0, 99, (4 * 10**6,)); b = a.clone()"
_CACHE = "k = torch.randn(1, 12, 1023, 64); n = torch.randn(1, 12, 1, 64)"

_PRODUCTS = [
    _row(
        "linear of one row, 768x3072",
        "F.linear(x, w, b)",
        "x = torch.randn(1, 768); w = torch.randn(3072, 768); b = torch.randn(3072)",
        1.0,
        moved=9.4 * MEGA,
    ),
    _row(
        "logits of one row, 768x50257",
        "F.linear(x, w)",
        "x = torch.randn(1, 768); w = torch.randn(50257, 768)",
        1.0,
        moved=154 * MEGA,
    ),
    _row("cat of a KV cache", "torch.cat([k, n], 2)", _CACHE, 2.0, moved=6.3 * MEGA),
    *[
        _row(
            f"product of {n} {dtype}",
            "a @ b",
            f"a = torch.randn({n}, {n}).to(torch.{dtype}); b = torch.randn({n}, {n}).to(a.dtype)",
            1.0,
            operations=(8 if "complex" in dtype else 2) * n**3,
        )
        for n, dtype in [
            (1024, "bfloat16"),
            (512, "float32"),
            (1024, "float32"),
            (512, "float64"),
            (512, "complex64"),
        ]
    ],
    _row(
        "linear of 3-d inputs",
        "F.linear(x, w, b)",
        "x = torch.randn(8, 128, 768); w = torch.randn(768, 768); b = torch.randn(768)",
        1.0,
        operations=2 * 1024 * 768 * 768,
    ),
    _row(
        "bmm of 64 of 128x64",
        "a @ b",
        "a = torch.randn(64, 128, 64); b = torch.randn(64, 64, 128)",
        1.0,
        operations=2 * 64 * 128 * 64 * 128,
    ),
    _row("complex multiply 2M", "a * b", _COMPLEX, 1.3, moved=48 * MEGA),
    _row("integer multiply 4M", "a * b", _INTEGERS, 2.0, moved=96 * MEGA),
]


def _convolution(name: str, n: int, c: int, s: int, kernel: int, groups: int, back: bool) -> Row:
    setup = f"""
x = torch.randn({n}, {c}, {s}, {s}, requires_grad={back})
w = torch.randn({c}, {c // groups}, {kernel}, {kernel}, requires_grad={back})
def both():
    F.conv2d(x, w, padding={kernel // 2}, groups={groups}).sum().backward()
"""
    statement = "both()" if back else f"F.conv2d(x, w, padding={kernel // 2}, groups={groups})"
    operations = 2.0 * n * s * s * c * (c // groups) * kernel * kernel * (3 if back else 1)
    name = f"{name}, with backward" if back else name
    return _row(name, statement, setup, 1.2 if back else 1.0, operations=operations)


_NORM = "f = torch.nn.BatchNorm2d(64); x = torch.randn(16, 64, 28, 28)"
_LOSS = "x = torch.randn(256, 50257); t = torch.randint(0, 50257, (256,))"
_ADAM = """
p = [torch.randn(64, 64, requires_grad=True) for _ in range(100)]
for q in p:
    q.grad = torch.randn(64, 64)
o = torch.optim.Adam(p, 1e-3)
"""

_NETWORKS = [
    *[_convolution("convolution 3x3 C64", 16, 64, 28, 3, 1, back) for back in (False, True)],
    *[_convolution("convolution 1x1 C128", 16, 128, 28, 1, 1, back) for back in (False, True)],
    _convolution("convolution 3x3, depthwise", 16, 64, 56, 3, 64, False),
    _row("max_pool2d", "F.max_pool2d(x, 2)", "x = torch.randn(16, 64, 56, 56)", 1.0),
    _row("avg_pool2d", "F.avg_pool2d(x, 2)", "x = torch.randn(16, 64, 56, 56)", 1.0),
    _row(
        "interpolate, bilinear",
        "F.interpolate(x, scale_factor=2, mode='bilinear')",
        "x = torch.randn(4, 16, 64, 64)",
        1.0,
    ),
    _row("unfold", "F.unfold(x, 3)", "x = torch.randn(4, 16, 64, 64)", 1.0),
    _row("dropout of 4M", "F.dropout(x, 0.1)", "x = torch.randn(4_000_000)", 1.0),
    _row("batch_norm in training", "f(x)", _NORM, 1.0),
    _row("cross_entropy of 256x50257", "F.cross_entropy(x, t)", _LOSS, 1.0, moved=51 * MEGA),
    _row(
        "attention 8x12x256x64",
        "F.scaled_dot_product_attention(q, q, q, is_causal=True)",
        "q = torch.randn(8, 12, 256, 64)",
        1.0,
    ),
    _row("Adam step of 100 small parameters", "o.step()", _ADAM, 1.0),
    _row("zero_grad of 100 small parameters", "o.zero_grad(set_to_none=False)", _ADAM, 1.0),
]

_SPD = "a = torch.randn({n}, {n}); s = a @ a.mT + {n} * torch.eye({n}); b = torch.randn({n}, 4)"
_STACK = "a = torch.randn(4096, 8, 8); s = a @ a.mT + 8 * torch.eye(8); b = torch.randn(4096, 8, 4)"

_CALLS = {
    "svd": "torch.linalg.svd(a)",
    "solve": "torch.linalg.solve(a, b)",
    "cholesky": "torch.linalg.cholesky(s)",
    "eigh": "torch.linalg.eigh(s)",
    "qr": "torch.linalg.qr(a)",
    "inv": "torch.linalg.inv(a)",
    "det": "torch.linalg.det(a)",
    "lu_factor": "torch.linalg.lu_factor(a)",
}

_LINALG = [
    *[
        _row(
            f"{name} {256 if name == 'solve' else 128}",
            call,
            _SPD.format(n=256 if name == "solve" else 128),
            1.0,
        )
        for name, call in _CALLS.items()
    ],
    *[_row(f"{name} of 4096 8x8", call, _STACK, 3.0) for name, call in _CALLS.items()],
]

_FOURIER = [
    _row("fft 1M", "torch.fft.fft(x)", "x = torch.randn(2**20, dtype=torch.complex64)", 1.0),
    _row("rfft 1M", "torch.fft.rfft(x)", "x = torch.randn(2**20)", 1.0),
    _row("fft2 of 512x512", "torch.fft.fft2(x)", "x = torch.randn(512, 512)", 1.0),
    _row("rfft of 1000x1000", "torch.fft.rfft(x)", "x = torch.randn(1000, 1000)", 1.0),
    _row("fft of 64", "torch.fft.fft(x)", "x = torch.randn(64)", 1.0),
    _row(
        "stft of 10 s",
        "torch.stft(x, 400, 160, window=w, return_complex=True)",
        "x = torch.randn(160000); w = torch.hann_window(400)",
        1.0,
    ),
]

OPERATORS = [
    *_REDUCTIONS,
    *_SELECTION,
    *_GATHERING,
    *_PRODUCTS,
    *_NETWORKS,
    *_LINALG,
    *_FOURIER,
]
