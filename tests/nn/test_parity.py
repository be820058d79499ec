"""Every layer beside PyTorch's: printed text, initial values for a seed, outputs, gradients."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest

import antorcha

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

LAYERS: dict[str, tuple[str, tuple[tuple[int, ...], ...]]] = {}


def case(text: str, *shapes: tuple[int, ...]) -> None:
    LAYERS[text] = text, shapes


case("Identity()", (2, 3))
case("Linear(4, 3)", (2, 4))
case("Linear(4, 3, bias=False)", (2, 5, 4))
case("Bilinear(3, 4, 5)", (2, 3), (2, 4))
case("Bilinear(3, 4, 5, bias=False)", (2, 3), (2, 4))
case("Conv1d(4, 6, 3, stride=2, padding=1)", (2, 4, 9))
case("Conv2d(3, 4, 3)", (2, 3, 8, 7))
case("Conv2d(4, 4, (3, 2), padding=(1, 2), dilation=2, groups=2, bias=False)", (2, 4, 9, 8))
case("Conv2d(2, 4, 3, padding='same', padding_mode='reflect')", (2, 2, 6, 5))
case("Conv2d(2, 4, 4, padding='same')", (1, 2, 6, 5))
case("Conv2d(2, 4, 3, padding='valid')", (2, 6, 5))
case("Conv2d(2, 4, 3, padding=1, padding_mode='circular')", (1, 2, 6, 5))
case("Conv2d(2, 4, 3, padding=1, padding_mode='replicate')", (1, 2, 6, 5))
case("Conv3d(2, 3, 2)", (1, 2, 4, 4, 4))
case("ConvTranspose1d(3, 4, 3, stride=2)", (2, 3, 5))
case("ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1)", (2, 3, 5, 4))
case("MaxPool1d(2)", (2, 3, 7))
case("MaxPool2d(3, stride=2, padding=1)", (2, 3, 7, 8))
case("MaxPool2d(2, ceil_mode=True)", (3, 7, 7))
case("AvgPool1d(2)", (2, 3, 7))
case("AvgPool2d(3, 2, 1, count_include_pad=False)", (2, 3, 7, 8))
case("AdaptiveAvgPool1d(3)", (2, 3, 7))
case("AdaptiveAvgPool2d((2, None))", (2, 3, 7, 5))
case("AdaptiveMaxPool2d(2)", (2, 3, 7, 5))
case("BatchNorm1d(4)", (5, 4))
case("BatchNorm1d(4, momentum=None, affine=False)", (5, 4, 3))
case("BatchNorm2d(3)", (4, 3, 5, 6))
case("BatchNorm2d(3, track_running_stats=False)", (4, 3, 5, 6))
case("BatchNorm3d(2, bias=False)", (2, 2, 3, 3, 3))
case("InstanceNorm1d(3)", (2, 3, 5))
case("InstanceNorm2d(3, affine=True, track_running_stats=True)", (2, 3, 5, 4))
case("LayerNorm(6)", (3, 6))
case("LayerNorm((3, 4), bias=False)", (2, 3, 4))
case("LayerNorm(6, elementwise_affine=False, eps=1e-3)", (3, 6))
case("GroupNorm(2, 6)", (2, 6, 3, 3))
case("RMSNorm(6)", (3, 6))
case("LocalResponseNorm(2)", (2, 4, 3, 3))
case("Dropout(0.3)", (40, 40))
case("Dropout1d(0.5)", (3, 8, 2))
case("Dropout2d(0.5)", (3, 8, 2, 2))
case("AlphaDropout(0.2)", (30, 3))
case("Flatten()", (2, 3, 4))
case("Flatten(0, 1)", (2, 3, 4))
case("Unflatten(1, (2, 3))", (2, 6))
case("Unfold((2, 3), padding=1, stride=2)", (2, 3, 5, 6))
case("Unfold(2, 2)", (3, 5, 6))
case("Fold((4, 5), (2, 3), stride=1, padding=1)", (2, 12, 25))
case("Fold(4, 2)", (8, 9))
case("CosineSimilarity()", (3, 4), (3, 4))
case("PairwiseDistance()", (3, 4), (3, 4))
case("PairwiseDistance(1.0, keepdim=True)", (3, 4), (3, 4))
for d in (1, 2, 3):
    shape = (2, 3, 6, 5, 6)[: d + 2]
    for kind in ("Zero", "Reflection", "Replication", "Circular"):
        case(f"{kind}Pad{d}d(2)", shape)
    case(f"ConstantPad{d}d({tuple(range(2 * d))}, 1.5)", shape)
case("ZeroPad2d((-1, 1, 2, -2))", (1, 1, 5, 5))
case("Upsample(scale_factor=2)", (1, 2, 3, 4))
case("Upsample(size=(5, 7))", (1, 2, 3, 4))
case("UpsamplingNearest2d(scale_factor=1.5)", (1, 2, 3, 4))
case("PixelShuffle(2)", (1, 8, 2, 3))
case("PixelUnshuffle(2)", (1, 2, 4, 6))
for text in (
    "ReLU()", "ReLU6()", "SiLU()", "Mish()", "SELU()", "Hardswish()", "Hardsigmoid()", "ELU()",
    "ELU(0.5)", "CELU(2.0)", "LeakyReLU()", "LeakyReLU(0.2)", "Threshold(0.1, 20.0)",
    "Softplus()", "Softplus(2.0, 1.0)", "Hardshrink()", "Softshrink(0.3)", "GELU()",
    "GELU('tanh')", "Sigmoid()", "Tanh()", "LogSigmoid()", "Softsign()", "Tanhshrink()", "GLU()",
    "GLU(0)", "Hardtanh()", "Hardtanh(-0.5, 0.5)", "RReLU()", "PReLU()", "PReLU(6)",
    "Softmax(-1)", "Softmin(0)", "LogSoftmax(1)",
):  # fmt: skip
    case(text, (4, 6))
case("Softmax2d()", (2, 3, 2, 2))
case("Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))", (3, 4))
case("Sequential(nn.Sequential(nn.Linear(2, 2), nn.Tanh()), nn.ModuleList([nn.ReLU()])[0])", (3, 2))


def numbers(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def build(library: Any, text: str) -> Any:
    library.manual_seed(7)
    return eval("nn." + text, {"nn": library.nn})


def run(library: Any, module: Any, shapes: Any) -> list[Any]:
    """Outputs, gradients of inputs and parameters, buffers after."""
    inputs = [
        library.from_numpy(numbers(k, *shape)).requires_grad_() for k, shape in enumerate(shapes)
    ]
    library.manual_seed(3)
    out = module(*inputs)
    weights = library.from_numpy(numbers(9, *out.shape))
    (out * weights).sum().backward()
    values = [out, *[i.grad for i in inputs], *[p.grad for p in module.parameters()],
              *module.buffers()]  # fmt: skip
    return [v.detach().numpy() for v in values]


@pytest.mark.parametrize("text", LAYERS)
def test_layer(text: str) -> None:
    text, shapes = LAYERS[text]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, theirs = build(antorcha, text), build(torch, text)
        assert repr(mine) == repr(theirs)
        assert list(mine.state_dict()) == list(theirs.state_dict())
        for name, value in theirs.state_dict().items():
            assert np.array_equal(mine.state_dict()[name].numpy(), value.numpy()), name
        for _ in ("train", "eval"):
            for a, b in zip(run(antorcha, mine, shapes), run(torch, theirs, shapes), strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
            mine.eval(), theirs.eval()
            mine.zero_grad(), theirs.zero_grad()
        assert repr(copy.deepcopy(mine)) == repr(theirs)


LOSSES = {
    "L1Loss()": "xx", "L1Loss(reduction='sum')": "xx", "MSELoss()": "xx",
    "MSELoss(reduction='none')": "xx", "SmoothL1Loss(beta=0.5)": "xx", "HuberLoss(delta=0.4)": "xx",
    "CrossEntropyLoss()": "xc", "CrossEntropyLoss(label_smoothing=0.1)": "xc",
    "CrossEntropyLoss(reduction='none', ignore_index=1)": "xc",
    "CrossEntropyLoss(reduction='sum')": "xp", "NLLLoss()": "xc", "BCELoss()": "qp",
    "BCEWithLogitsLoss()": "xp", "KLDivLoss(reduction='batchmean')": "xp",
    "PoissonNLLLoss()": "xp", "PoissonNLLLoss(log_input=False, full=True)": "qp",
    "GaussianNLLLoss()": "xxp", "GaussianNLLLoss(full=True)": "xxp", "SoftMarginLoss()": "xs",
    "MultiLabelSoftMarginLoss()": "xp", "MultiMarginLoss()": "xc", "MultiMarginLoss(2, 0.5)": "xc",
    "MultiLabelMarginLoss()": "xm", "HingeEmbeddingLoss()": "xs", "CosineEmbeddingLoss()": "xxv",
    "MarginRankingLoss(0.3)": "xxs", "TripletMarginLoss()": "xxx",
    "TripletMarginLoss(swap=True, p=1.0)": "xxx", "TripletMarginWithDistanceLoss()": "xxx",
}  # fmt: skip


def operand(library: Any, kind: str, seed: int) -> Any:
    x = numbers(seed, 4, 5)
    made = {
        "x": x, "p": np.abs(x) / (1 + np.abs(x)) * 0.9 + 0.05, "s": np.sign(x),
        "q": np.abs(x) / (1 + np.abs(x)) * 0.9 + 0.05,
        "c": np.array([0, 3, 1, 4]), "v": np.array([1.0, -1.0, 1.0, -1.0], np.float32),
        "m": np.array([[0, 2, -1, 1, 1]] * 4),
    }[kind]  # fmt: skip
    tensor = library.from_numpy(made.copy())
    return tensor.requires_grad_() if kind in "xq" else tensor


@pytest.mark.parametrize("text", LOSSES)
def test_loss(text: str) -> None:
    results = []
    for library in (antorcha, torch):
        loss = build(library, text)
        operands = [operand(library, kind, k) for k, kind in enumerate(LOSSES[text])]
        value = loss(*operands)
        value.sum().backward()
        grads = [o.grad.numpy() for o in operands if o.requires_grad]
        results.append((repr(loss), [value.detach().numpy(), *grads]))
    assert results[0][0] == results[1][0]
    for a, b in zip(results[0][1], results[1][1], strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def test_weighted_losses() -> None:
    for text in ("CrossEntropyLoss(weight=w)", "NLLLoss(w, ignore_index=3)",
                 "CrossEntropyLoss(w, label_smoothing=0.2)",
                 "MultiMarginLoss(weight=w)"):  # fmt: skip
        values = []
        for library in (antorcha, torch):
            w = library.from_numpy(np.array([0.1, 2.0, 0.5, 1.0, 3.0], np.float32))
            loss = eval("nn." + text, {"nn": library.nn, "w": w})
            assert list(loss.state_dict()) == ["weight"]
            args = operand(library, "x", 0), operand(library, "c", 1)
            values.append(loss(*args).item())
        assert values[0] == pytest.approx(values[1], rel=1e-5)


def test_embedding() -> None:
    results = []
    for library in (antorcha, torch):
        library.manual_seed(0)
        table = library.nn.Embedding(10, 3, padding_idx=-2)
        index = library.tensor([[1, 8, 2], [8, 1, 1]])
        table(index).pow(2).sum().backward()
        results.append((repr(table), table.weight.detach().numpy(), table.weight.grad.numpy()))
    assert results[0][0] == results[1][0]
    assert np.array_equal(results[0][1], results[1][1])
    np.testing.assert_allclose(results[0][2], results[1][2], rtol=1e-6)


INITIALISERS = (
    "uniform_(w, -1, 2)", "normal_(w, 1, 0.5)", "trunc_normal_(w)", "trunc_normal_(w, a=1., b=2.)",
    "trunc_normal_(w, std=0.02)", "constant_(w, 0.3)", "ones_(w)", "zeros_(w)", "eye_(w)",
    "xavier_uniform_(w, gain=2.)", "xavier_normal_(w)", "kaiming_uniform_(w, nonlinearity='relu')",
    "kaiming_normal_(w, mode='fan_out')", "sparse_(w, 0.3)", "dirac_(c)", "dirac_(c, 2)",
    "kaiming_uniform_(c)", "xavier_normal_(c)",
)  # fmt: skip


@pytest.mark.parametrize("text", INITIALISERS)
def test_init_draws_the_same(text: str) -> None:
    found = []
    for library in (antorcha, torch):
        library.manual_seed(11)
        names = {"w": library.empty(17, 13), "c": library.empty(4, 3, 3, 3)}
        made = eval("init." + text, {"init": library.nn.init, **names})
        found.append((made.numpy(), library.rand(2).numpy()))
    assert np.array_equal(found[0][1], found[1][1])
    np.testing.assert_array_max_ulp(found[0][0], found[1][0], maxulp=1)


@pytest.mark.parametrize("shape", [(5, 5), (3, 7), (7, 3), (4, 2, 3)])
def test_orthogonal(shape: tuple[int, ...]) -> None:
    found = []
    for library in (antorcha, torch):
        library.manual_seed(1)
        found.append(library.nn.init.orthogonal_(library.empty(*shape), gain=2.0).numpy())
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)


def test_messages_of_a_bad_state_dict() -> None:
    texts = []
    for library in (antorcha, torch):
        net = library.nn.Sequential(library.nn.Linear(2, 3), library.nn.ReLU())
        state = {"0.weight": library.zeros(3, 3), "1.x": library.zeros(1), "y": library.zeros(1)}
        with pytest.raises(RuntimeError) as raised:
            net.load_state_dict(state)
        texts.append(str(raised.value))
        keys = net.load_state_dict({"0.bias": library.ones(3), "z": 1}, strict=False)
        texts.append(repr(keys))
    assert texts[:2] == texts[2:]


@pytest.mark.parametrize(
    "code",
    [
        "m.register_buffer('a.b', None)", "m.register_buffer('', None)",
        "m.register_parameter('weight', 3)", "m.register_parameter('forward', None)",
        "m.weight = 3", "m.bias = L.zeros(3)", "m.add_module('x', 3)", "m.add_module('a.b', m)",
        "m.get_submodule('nope')", "m.get_parameter('forward')", "m.train(1)", "m.missing",
        "m.to(L.int64)", "m.register_parameter('p', None); m.p = 4", "L.nn.Linear(2, 3, foo=1)",
        "L.nn.Module()(1)", "L.nn.Sequential(m)[3]", "L.nn.ModuleList([m])['a']",
        "L.nn.Dropout(1.5)", "L.nn.Conv2d(3, 4, 3, groups=2)", "L.nn.BatchNorm2d(3)(L.zeros(2, 3))",
        "L.nn.Module(1)", "L.nn.Conv2d(2, 2, 2, padding='no')",
    ],
)  # fmt: skip
def test_errors_are_pytorchs(code: str) -> None:
    kinds = []
    for library in (antorcha, torch):
        with pytest.raises(Exception) as raised:
            exec(code, {"L": library, "m": library.nn.Linear(2, 3)})
        kinds.append(raised.value)
    mine, theirs = kinds
    builtin = next(k for k in type(theirs).__mro__ if k.__module__ == "builtins")
    assert isinstance(mine, builtin), (mine, theirs)
