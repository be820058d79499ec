"""Names below ``torch.nn`` that libraries import or call, beside PyTorch's where it is installed.

From a scan of transformers, timm, torchvision, torchaudio, kornia, diffusers, peft, torchmetrics,
einops, vit-pytorch, skorch and lightning, and PyTorch's own documented private helpers.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha import nn

F: Any = nn.functional

NAMES = """
nn.modules.module: _IncompatibleKeys _EXTRA_STATE_KEY_SUFFIX _addindent Module
nn.modules.utils: _pair _single _triple _quadruple _ntuple _reverse_repeat_tuple _list_with_default
nn.modules.conv: _ConvNd Conv2d _pair
nn.modules.batchnorm: _BatchNorm _NormBase SyncBatchNorm LazyBatchNorm1d
nn.modules.instancenorm: _InstanceNorm
nn.modules.loss: _Loss _WeightedLoss CrossEntropyLoss
nn.modules.activation: MultiheadAttention ReLU
nn.modules.transformer: _get_activation_fn _get_clones TransformerEncoderLayer
nn.modules.linear: NonDynamicallyQuantizableLinear Linear
nn.modules.normalization: LayerNorm GroupNorm
nn.modules.container: Sequential ModuleList
nn.modules.pooling: _MaxPoolNd LPPool2d
nn.common_types: _size_1_t _size_2_t _size_3_t _size_any_t _ratio_2_t
nn.parameter: Parameter Buffer UninitializedParameter UninitializedBuffer is_lazy
nn._reduction: get_enum legacy_get_string
nn.grad: conv2d_input conv2d_weight
nn.parallel: DataParallel DistributedDataParallel data_parallel replicate scatter gather
nn.parallel.distributed: DistributedDataParallel
nn.parallel.scatter_gather: scatter_kwargs gather
nn.quantized: FloatFunctional Linear Conv2d
nn.quantized.dynamic: Linear LSTM
nn.intrinsic: ConvReLU2d ConvBn2d LinearReLU
nn.intrinsic.qat: ConvBnReLU2d
nn.qat: Linear Conv2d
nn.functional: _canonical_mask _none_or_dtype _in_projection _in_projection_packed grouped_mm
nn.functional: has_torch_function handle_torch_function multi_head_attention_forward ScalingType
nn.functional: linear_cross_entropy _verify_batch_size _pair _Reduction grad
nn.attention.flex_attention: BlockMask create_block_mask flex_attention
_VF: lstm gru rnn_tanh lstm_cell batch_norm
"""


@pytest.mark.parametrize("line", NAMES.strip().splitlines())
def test_libraries_find_their_names(line: str) -> None:
    module, _, names = line.partition(":")
    found = importlib.import_module(f"antorcha.{module}")
    missing = [name for name in names.split() if not hasattr(found, name)]
    assert not missing


def test_helpers_compute() -> None:
    assert nn.modules.utils._pair(2) == (2, 2)
    assert nn.modules.utils._reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    assert nn.modules.utils._list_with_default([None, 3], [1, 2, 5, 7]) == [5, 3]
    x, w, b = antorcha.randn(5, 4), antorcha.randn(12, 4), antorcha.randn(12)
    packed = F._in_projection_packed(x, x, x, w, b)
    for k, part in enumerate(F._in_projection_packed(x, x + 0, x, w, b)):
        assert antorcha.allclose(part, packed[k], atol=1e-6)
        assert antorcha.allclose(part, F.linear(x, w.chunk(3)[k], b.chunk(3)[k]), atol=1e-6)
    mask = antorcha.tensor([True, False])
    added = F._canonical_mask(mask, "mask", None, "", antorcha.float32, False)
    assert added.tolist() == [float("-inf"), 0.0]
    with pytest.raises(NotImplementedError, match="quantized"):
        nn.quantized.Linear(2, 2)
    with pytest.raises(NotImplementedError, match="process group"):
        nn.parallel.DistributedDataParallel(nn.ReLU())
    assert antorcha.equal(nn.parallel.data_parallel(nn.ReLU(), x), x.relu())


def test_grouped_products() -> None:
    x, w = antorcha.randn(5, 3), antorcha.randn(2, 3, 4, requires_grad=True)
    ends = antorcha.tensor([2, 4], dtype=antorcha.int32)
    out = F.grouped_mm(x, w, offs=ends)
    want = antorcha.cat([x[:2] @ w[0], x[2:4] @ w[1], antorcha.zeros(1, 4)])
    assert antorcha.allclose(out, want)
    out.sum().backward()
    assert w.grad is not None
    assert w.grad.shape == w.shape
    both = F.grouped_mm(x.t(), antorcha.ones(5, 2), offs=ends)
    assert both.shape == (2, 3, 2)
    assert F.grouped_mm(w, antorcha.ones(2, 4, 1)).shape == (2, 3, 1)


@pytest.mark.oracle
@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("padding", [None, 1])
def test_embedding_bag_of_torch(mode: int, padding: int | None) -> None:
    torch = pytest.importorskip("torch")
    table = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    results = []
    for library in (antorcha, torch):
        indices, offsets = library.tensor([4, 1, 1, 0, 2, 4]), library.tensor([0, 2, 2, 6])
        args = (library.from_numpy(table), indices, offsets, False, mode, False, None, True)
        results.append(library.embedding_bag(*args, padding))
    for mine, theirs in zip(*results, strict=True):
        assert str(mine.dtype) == str(theirs.dtype)
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-6)


@pytest.mark.oracle
@pytest.mark.parametrize("d", [1, 2, 3])
def test_gradients_of_convolutions_as_functions(d: int) -> None:
    torch = pytest.importorskip("torch")
    numbers = np.random.default_rng(d)
    x = numbers.standard_normal((2, 4, *[7] * d)).astype(np.float32)
    w = numbers.standard_normal((6, 2, *[3] * d)).astype(np.float32)
    g = numbers.standard_normal((2, 6, *[3] * d)).astype(np.float32)
    options = {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}
    results = []
    for library in (antorcha, torch):
        grad = importlib.import_module(f"{library.__name__}.nn.grad")
        a, b, c = map(library.from_numpy, (x, w, g))
        results.append([
            getattr(grad, f"conv{d}d_input")(x.shape, b, c, **options),
            getattr(grad, f"conv{d}d_weight")(a, w.shape, c, **options),
        ])  # fmt: skip
    for mine, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.oracle
def test_linear_cross_entropy_as_pytorch() -> None:
    torch = pytest.importorskip("torch")
    for kwargs in ({}, {"bias": True, "reduction": "sum"}, {"out_features": (2,), "bias": True},
                   {"label_smoothing": 0.1, "reduction": "none"}, {"ignore_index": 1}):  # fmt: skip
        results = []
        for library in (antorcha, torch):
            library.manual_seed(0)
            loss = library.nn.LinearCrossEntropyLoss(4, 3, **kwargs)
            x = library.ones(2, 4) * library.tensor([[1.0], [-2.0]])
            y = (
                library.tensor([[0, 1], [2, 1]])
                if "out_features" in kwargs
                else library.tensor([0, 1])
            )
            value = loss(x, y)
            value.sum().backward()
            results.append((repr(loss), value.detach().numpy(), loss.linear.weight.grad.numpy()))
        assert results[0][0] == results[1][0]
        for mine, theirs in zip(results[0][1:], results[1][1:], strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
