"""Every kind of op at two sizes, to find those that are slower than PyTorch's.

A survey, whose rows are many and short: `python -m bench survey` takes some twenty minutes, and its
table shows what is missed. `n` is 1000 at the usual size, 100 at the small one; pictures have `s`
times `s` pixels; `k` batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bench.harness import Row

_TURNS = 3
_SCALES = {"usual": "n, s, k = 1000, 64, 8", "small": "n, s, k = 100, 16, 2"}
_NUMBERS = """
F = torch.nn.functional
torch.manual_seed(0)
x, y, u = torch.randn(n, n), torch.randn(n, n), torch.rand(n, n) * 0.98 + 0.01
v, b, d, h = torch.randn(n), x > 0, x.double(), x.bfloat16()
i, ids = torch.randint(0, n, (n, n)), torch.randint(0, n, (n,))
"""
_COMPLEX = f"{_NUMBERS}\nc = torch.complex(x, y)"
_INTEGERS = f"{_NUMBERS}\ni32, i8, g = i.int(), (i % 100).to(torch.uint8), x.half()"
_PICTURES = """
F, nn = torch.nn.functional, torch.nn
torch.manual_seed(0)
img, seq, vol = torch.randn(k, 16, s, s), torch.randn(k, 16, s * s), torch.randn(k, 8, 16, 16, 16)
w3, w1, w5 = torch.randn(32, 16, 3, 3), torch.randn(32, 16, 1, 1), torch.randn(32, 16, 5, 5)
taps, cube, up, each = (torch.randn(32, 16, 3), torch.randn(8, 8, 3, 3, 3),
    torch.randn(16, 32, 4, 4), torch.randn(16, 1, 3, 3))
grid, angles = torch.rand(k, s, s, 2) * 2 - 1, torch.rand(k, 2, 3)
batch, groups, instance = nn.BatchNorm2d(16), nn.GroupNorm(4, 16), nn.InstanceNorm2d(16)
"""
_MATRICES = """
F = torch.nn.functional
torch.manual_seed(0)
A = torch.randn(k * k, s, s)
spd = A @ A.mT + s * torch.eye(s)
q, t = torch.randn(4, 8, 4 * s, 64), torch.randn(4, 8, 4 * s, 64)
"""
_LAYERS = """
F, nn = torch.nn.functional, torch.nn
torch.manual_seed(0)
table, words = torch.randn(n * 10, 128), torch.randint(0, n * 10, (k * 8, 128))
logits, labels = torch.randn(n * 2, n), torch.randint(0, n, (n * 2,))
steps, tokens = torch.randn(k * 2, 50, 64), torch.randn(k, 128, 256)
lstm, gru = nn.LSTM(64, 128, 2, batch_first=True), nn.GRU(64, 128, batch_first=True)
heads = nn.MultiheadAttention(256, 8, batch_first=True)
block = nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
paths, target = torch.randn(50, 16, 20).log_softmax(-1), torch.randint(1, 20, (16, 10))
lengths = torch.full((16,), 50), torch.full((16,), 10)
"""
_SCATTERED = f"{_NUMBERS}\nparts, values = torch.randint(0, 100, (n * 100,)), torch.randn(n * 100)"


class Area(NamedTuple):
    """Statements that share a setup: a line each, or names of functions of one argument."""

    setup: str
    statements: str
    leaf: str = ""  # whose gradient is asked for, of the sum of each statement's result


_FUNCTIONS = {
    "torch.{}(u)": """abs neg sign ceil floor round trunc frac sqrt rsqrt exp exp2 expm1 log log2
        log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh atanh erf erfc erfinv sigmoid
        logit reciprocal square lgamma digamma i0 sinc isnan isfinite signbit logical_not deg2rad
        nan_to_num relu""",
    "torch.{}(d)": "exp sin tanh erf sigmoid abs",
    "torch.{}(h)": "exp tanh abs sigmoid relu",
    "torch.{}(x, y)": """add sub mul div atan2 maximum fmax remainder fmod hypot copysign nextafter
        logaddexp logaddexp2 xlogy eq lt ne logical_and floor_divide heaviside isclose""",
    "torch.{}(u, y.abs())": "pow float_power igamma",
    "torch.special.{}(u)": """entr erfcx i0e i1 log_ndtr ndtri gammaln bessel_j0 airy_ai""",
    "F.{}(x)": """gelu silu mish elu selu celu leaky_relu softplus hardswish hardsigmoid hardtanh
        relu6 glu logsigmoid tanhshrink softshrink hardshrink softsign normalize dropout rrelu""",
    "x.{}()": """sum mean prod amax max argmax std norm median nansum count_nonzero aminmax msort
        unique trace tril triu clone isfinite int half bfloat16 double bool""",
    "x.{}": """cumsum(0) cumsum(1) cumprod(1) cummax(1) logcumsumexp(1) sort(0) sort(1)
        argsort(1)""",
    "x.{}(0)": "sum mean prod amax max argmax std var nansum logsumexp median nanmedian",
    "x.{}(1)": "sum mean prod amax max argmax std var nansum logsumexp median nanmedian mode norm",
}
_FUNCTIONS_OF_COMPLEX = {
    "torch.{}(c)": """exp log log10 sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan asinh atanh
        abs angle reciprocal sigmoid conj_physical square expm1 log1p""",
}
_AREAS = {
    "arithmetic": Area(_NUMBERS, """
        x + 1
        x * 2.5
        x / 3
        2 ** u
        u ** 2
        u ** 0.5
        u ** -1
        x + v
        x * v[:, None]
        x + x.t()
        x.t() * 2
        x > 0
        b & b
        ~b
        h + h
        d * d
        torch.where(b, x, y)
        torch.where(b, x, 0.)
        x.clamp(-1, 1)
        torch.lerp(x, y, 0.3)
        torch.addcmul(x, x, y)
        torch.addcdiv(x, x, u)
        x.masked_fill(b, 0)
        torch.polygamma(1, u)
        torch.isin(i, ids[:50])
        torch.bucketize(x, torch.linspace(-3, 3, 50))
        b.float()
        h.float()
    """),
    "complex": Area(_COMPLEX, "c + c\nc * c\nc / c\nc ** 2\nc @ c\nc.sum(1)"),
    "integers": Area(_INTEGERS, """
        i + i
        i * i
        i // 7
        i % 7
        i << 2
        i & i
        i > 500
        i32 * i32
        i32 // 7
        i8 + i8
        i.float()
        i8.float()
        i.sum()
        i.sum(1)
        i32.sum(0)
        i8.sum()
        b.sum(1)
        b.any(0)
        b.all(1)
        i.sort(1)
        i.unique()
        i.view(-1).bincount()
        i.mode(1)
        i32[:100, :100] @ i32[:100, :100]
        h.sum(1)
        g + g
        h @ h
        g @ g
    """),
    "folds": Area(_NUMBERS, """
        x.sum((0, 1))
        x.view(10, -1, n).sum(0)
        x.view(n, 10, -1).sum(1)
        x.t().sum(0)
        x.t().sum(1)
        x.norm(1, dim=0)
        torch.linalg.vector_norm(x, 3)
        torch.var_mean(x, 1)
        x.quantile(0.5, dim=1)
        x.kthvalue(10, dim=1)
        x.topk(10, 1)
        x.topk(10, 0)
        x.view(-1).topk(100)
        torch.searchsorted(v.sort().values, x)
        torch.histc(x, 100)
        torch.cdist(x[:n // 2], y[:n // 2])
        torch.cov(x[:n // 5])
        F.cosine_similarity(x, y)
        F.softmax(x, 0)
        F.softmax(x, 1)
        F.log_softmax(x, 1)
        F.layer_norm(x, (n,))
        F.rms_norm(x, (n,))
    """),
    "indexing": Area(_SCATTERED, """
        x[ids]
        x[:, ids]
        x[ids, ids]
        x[b]
        x.gather(1, i)
        x.gather(0, i)
        x.index_select(0, ids)
        x.index_select(1, ids)
        x.take(i)
        x.take_along_dim(i, 1)
        x.clone().scatter_(1, i, y)
        x.clone().scatter_add_(1, i, y)
        x.clone().scatter_add_(0, i, y)
        x.clone().index_add_(0, ids, y)
        x.clone().index_add_(1, ids, y)
        x.clone().index_copy_(0, ids, y)
        x.clone().index_fill_(1, ids, 0.)
        torch.zeros(100).index_add_(0, parts, values)
        torch.zeros(100).scatter_add_(0, parts, values)
        torch.zeros(100).scatter_reduce_(0, parts, values, 'amax')
        x.clone().masked_scatter_(b, y)
        b.nonzero()
        x.clone().index_put_((ids, ids), v)
        x.clone().index_put_((ids, ids), v, accumulate=True)
        F.one_hot(ids, n)
        parts.unique(return_inverse=True, return_counts=True)
    """),
    "moves": Area(_NUMBERS, """
        x.t().contiguous()
        x.flip(0)
        x.flip(1)
        x.roll(3, 1)
        x.rot90()
        x.repeat(2, 2)
        x.repeat_interleave(2, 0)
        x.repeat_interleave(2, 1)
        torch.cat([x, y], 0)
        torch.cat([x, y], 1)
        torch.stack([x, y])
        torch.stack([x, y], -1)
        torch.tril_indices(n // 2, n // 2)
        torch.diag(v)
        torch.diag_embed(x[:n // 10, :n // 10])
        x.view(10, -1, n).permute(2, 0, 1).contiguous()
        x.expand(3, n, n).contiguous()
        x.unfold(1, 10, 5).contiguous()
        torch.combinations(v[:n // 5])
        torch.cartesian_prod(v, v)
        torch.block_diag(x, x)
    """),
    "draws and factories": Area(_NUMBERS, """
        torch.zeros(n, n)
        torch.full((n, n), 2.)
        torch.eye(n)
        torch.arange(n * n)
        torch.linspace(0, 1, n * n)
        torch.rand(n, n)
        torch.randn(n, n)
        torch.randint(0, 10, (n, n))
        torch.randperm(n * 100)
        torch.bernoulli(u)
        torch.empty(n, n).exponential_()
        torch.multinomial(u, 5)
        torch.poisson(u)
        torch.normal(x, u)
        F.gumbel_softmax(x)
    """),
    "pictures": Area(_PICTURES, """
        F.conv2d(img, w3, padding=1)
        F.conv2d(img, w1)
        F.conv2d(img, w5, padding=2)
        F.conv2d(img, w3, stride=2, padding=1)
        F.conv2d(img, w3, padding=2, dilation=2)
        F.conv2d(img, each, padding=1, groups=16)
        F.conv1d(seq, taps, padding=1)
        F.conv3d(vol, cube, padding=1)
        F.conv_transpose2d(img, up, stride=2, padding=1)
        F.max_pool2d(img, 2)
        F.max_pool2d(img, 3, 1, 1)
        F.avg_pool2d(img, 2)
        F.adaptive_avg_pool2d(img, 1)
        F.adaptive_avg_pool2d(img, 7)
        F.max_pool2d(img, 2, return_indices=True)
        F.unfold(img, 3, padding=1)
        F.interpolate(img, scale_factor=2)
        F.interpolate(img, scale_factor=2, mode='bilinear')
        F.interpolate(img, scale_factor=2, mode='bicubic')
        F.interpolate(img, size=(40, 40), mode='bilinear', antialias=True)
        F.grid_sample(img, grid, align_corners=False)
        F.affine_grid(angles, (k, 16, s, s))
        F.pixel_shuffle(img, 2)
        F.pad(img, (1, 1, 1, 1))
        F.pad(img, (1, 1, 1, 1), mode='reflect')
        img.to(memory_format=torch.channels_last)
        batch(img)
        groups(img)
        instance(img)
        F.local_response_norm(img, 5)
    """),
    "matrices": Area(_MATRICES, """
        A @ A
        A @ A.mT
        A @ A[0, :, 0]
        torch.baddbmm(A, A, A)
        torch.einsum('bij,bjk->bik', A, A)
        torch.einsum('bhid,bhjd->bhij', q, t)
        F.scaled_dot_product_attention(q, t, t)
        F.scaled_dot_product_attention(q, t, t, is_causal=True)
        torch.linalg.inv(spd)
        torch.linalg.det(spd)
        torch.linalg.slogdet(spd)
        torch.linalg.cholesky(spd)
        torch.linalg.solve(spd, A)
        torch.linalg.qr(A)
        torch.linalg.eigh(spd)
        torch.linalg.eigvalsh(spd)
        torch.linalg.svd(A)
        torch.linalg.svdvals(A)
        torch.linalg.lstsq(A, A)
        torch.linalg.pinv(A)
        torch.linalg.matrix_exp(A / s)
        torch.linalg.lu(A)
        torch.linalg.lu_factor(A)
        torch.linalg.solve_triangular(spd.tril(), A, upper=False)
        torch.cholesky_solve(A, spd)
        torch.linalg.householder_product(A, A[:, :, 0])
    """),
    "layers": Area(_LAYERS, """
        F.embedding(words, table)
        F.embedding_bag(words, table)
        F.embedding_bag(words, table, mode='max')
        lstm(steps)[0]
        gru(steps)[0]
        heads(tokens, tokens, tokens)[0]
        block(tokens)
        F.linear(tokens, tokens[0])
        F.cross_entropy(logits, labels)
        F.cross_entropy(logits, labels, label_smoothing=0.1)
        F.nll_loss(logits, labels)
        F.multi_margin_loss(logits, labels)
        F.ctc_loss(paths, target, *lengths)
    """),
    "losses": Area(_NUMBERS, """
        F.mse_loss(x, y)
        F.l1_loss(x, y)
        F.smooth_l1_loss(x, y)
        F.binary_cross_entropy(u, u)
        F.binary_cross_entropy_with_logits(x, u)
        F.kl_div(x, u)
        F.cosine_embedding_loss(x, y, v.sign())
        F.triplet_margin_loss(x, y, x.flip(0))
        F.multilabel_soft_margin_loss(x, u)
        F.gaussian_nll_loss(x, y, u)
        F.poisson_nll_loss(x, u)
    """),
    "products": Area(_NUMBERS, """
        x @ y
        x @ v
        v @ x
        v.dot(v)
        d @ d
        torch.outer(v, v)
        F.linear(x, y, v)
        torch.addmm(x, x, y)
    """),
    "transforms": Area(_COMPLEX, """
        torch.fft.fft(c)
        torch.fft.fft(c[0])
        torch.fft.rfft(x)
        torch.fft.rfft(x.view(-1))
        torch.fft.irfft(c)
        torch.fft.fft2(c)
        torch.fft.fftshift(x)
    """),
    "gradients": Area(_NUMBERS, """
        x.sin()
        x.softmax(1)
        x.softmax(0)
        F.layer_norm(x, (n,)).square()
        x @ y
        x[ids]
        x.cumsum(1)
        x.sort(1).values
        x.amax(1)
        x.var(1)
        F.gelu(x)
        x.logsumexp(1)
        x.prod(1)
        torch.cat([x, x], 1)
        x.gather(1, i)
        x.norm()
        F.normalize(x)
        x.t().contiguous()
        x.topk(10, 1).values
        F.cross_entropy(x, ids)
        torch.where(b, x, y)
        x.clamp(-1, 1)
        x.expand(3, n, n)
        x.repeat(2, 2)
        x.index_add(0, ids, y)
        x ** 3
        x.unfold(1, 10, 5)
        x.flip(0)
        x.roll(1, 1)
    """, "x"),
    "gradients of pictures": Area(_PICTURES, """
        F.conv2d(img, w3, padding=1)
        F.max_pool2d(img, 2)
        F.avg_pool2d(img, 2)
        F.interpolate(img, scale_factor=2, mode='bilinear')
        F.grid_sample(img, grid, align_corners=False)
        batch(img).square()
        groups(img).square()
        F.unfold(img, 3)
        F.conv_transpose2d(img, up, stride=2, padding=1)
    """, "img"),
    "gradients of matrices": Area(_MATRICES, """
        A @ A
        torch.linalg.inv(A)
        torch.linalg.slogdet(A)[1]
        torch.linalg.solve(A, A)
        torch.linalg.qr(A)[1]
        torch.linalg.svdvals(A)
    """, "A"),
    "gradients of attention": Area(_MATRICES, """
        F.scaled_dot_product_attention(q, t, t)
        F.scaled_dot_product_attention(q, t, t, is_causal=True)
    """, "q"),
    "gradients of layers": Area(_LAYERS, """
        F.embedding(words, table)
        F.embedding_bag(words, table)
    """, "table"),
    "gradients of steps": Area(_LAYERS, "lstm(steps)[0]\ngru(steps)[0]", "steps"),
    "gradients of tokens": Area(
        _LAYERS, "heads(tokens, tokens, tokens)[0]\nblock(tokens)", "tokens"
    ),
    "gradients of paths": Area(_LAYERS, "F.ctc_loss(paths, target, *lengths)", "paths"),
}  # fmt: skip


def _statements() -> Iterator[tuple[str, str]]:
    """Setups and statements."""
    for setup, table in ((_NUMBERS, _FUNCTIONS), (_COMPLEX, _FUNCTIONS_OF_COMPLEX)):
        for form, names in table.items():
            for name in names.split():
                yield setup, form.format(name)
    for area in _AREAS.values():
        setup = area.setup + (f"\n{area.leaf}.requires_grad_()" if area.leaf else "")
        for line in area.statements.strip().splitlines():
            statement = line.strip()
            if area.leaf:
                statement = f"({statement}).sum().backward(); {area.leaf}.grad = None"
            yield setup, statement


SURVEY = [
    Row("survey", f"{scale}: {statement}", statement, f"{sizes}\n{setup}", 1.0, _TURNS)
    for scale, sizes in _SCALES.items()
    for setup, statement in _statements()
]
