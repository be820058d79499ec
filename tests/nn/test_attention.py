"""``torch.nn.attention`` beside PyTorch's, and what needs no PyTorch."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.nn.attention import SDPBackend, _cur_sdpa_kernel_backends, sdpa_kernel
from antorcha.nn.attention import flex_attention as flex
from antorcha.nn.attention.varlen import AuxRequest, varlen_attn
from tests.patience import PATIENCE

BIASES = Path(__file__).with_name("subclass_causal_bias.py")
F = antorcha.nn.functional


def numbers(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def inputs(library: Any, heads: int = 4, few: int = 4, q: int = 9, k: int = 7) -> list[Any]:
    shapes = ((2, heads, q, 8), (2, few, k, 8), (2, few, k, 6))
    return [library.from_numpy(numbers(n, *shape)) for n, shape in enumerate(shapes)]


def score_mods(library: Any) -> dict[str, Any]:
    bias = library.from_numpy(numbers(5, 4, 20))
    table = library.from_numpy(numbers(6, 2, 4))
    square = library.from_numpy(numbers(7, 16, 16))
    code = library.from_numpy(numbers(8, 16, 3))
    return {
        "none": None,
        "alibi": lambda s, b, h, q, kv: s + (kv - q) * library.exp2(-(h + 1) * 2.0),
        "causal": lambda s, b, h, q, kv: library.where(q >= kv, s, -float("inf")),
        "relative": lambda s, b, h, q, kv: s + bias[h, q - kv + 9],
        "chained": lambda s, b, h, q, kv: s * table[b][h] + square[q][kv],
        "both": lambda s, b, h, q, kv: s + square[q, kv] * table[b, h],
        "softcap": lambda s, b, h, q, kv: library.tanh(s / 3) * 3,
        "summed": lambda s, b, h, q, kv: s + (code[q] * code[kv]).sum(),
        "constant": lambda s, b, h, q, kv: library.zeros_like(s),
    }


MASKS = {
    "causal": lambda b, h, q, kv: q >= kv,
    "by head": lambda b, h, q, kv: (q - kv).abs() <= h,
    "by batch": lambda b, h, q, kv: kv < 3 + b,
    "nothing for some": lambda b, h, q, kv: (q > 2) & (kv > 1),
}


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", score_mods(antorcha))
def test_score_mods_as_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    there = importlib.import_module(f"{torch.__name__}.nn.attention.flex_attention")
    _without_compiling(there)
    results = []
    for library, module in ((antorcha, flex), (torch, there)):
        mask = module.create_block_mask(MASKS["nothing for some"], 2, None, 9, 7, "cpu")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.append(
                module.flex_attention(
                    *inputs(library), score_mod=score_mods(library)[name], block_mask=mask,
                    scale=0.4, return_lse=True, kernel_options={"BLOCK_M": 16},
                )
            )  # fmt: skip
    for mine, theirs in zip(*results, strict=True):
        assert mine.dtype is antorcha.float32
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
def test_masks_and_grouped_heads_as_pytorch() -> None:
    torch = pytest.importorskip("torch")
    there = importlib.import_module(f"{torch.__name__}.nn.attention.flex_attention")
    _without_compiling(there)
    for mask in MASKS.values():
        results = []
        for library, module in ((antorcha, flex), (torch, there)):
            blocks = module.create_block_mask(mask, 2, 4, 9, 7, "cpu", BLOCK_SIZE=(4, 3))
            results.append(
                module.flex_attention(
                    *inputs(library, 4, 2), block_mask=blocks, enable_gqa=True,
                    return_aux=module.AuxRequest(lse=True),
                )
            )  # fmt: skip
        (mine, aux), (theirs, their_aux) = results
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(aux.lse.numpy(), their_aux.lse.numpy(), rtol=1e-5, atol=1e-6)
        assert aux.max_scores is None


def _without_compiling(module: Any) -> None:
    """PyTorch traces the function through its compiler, which these tests need not."""
    module._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True


@pytest.mark.oracle
@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("separate", [True, False])
def test_block_masks_as_pytorch(name: str, separate: bool) -> None:
    torch = pytest.importorskip("torch")
    there = importlib.import_module(f"{torch.__name__}.nn.attention.flex_attention")
    mine, theirs = [
        module.create_block_mask(MASKS[name], 2, 3, 40, 30, "cpu", 4, separate_full_blocks=separate)
        for module in (flex, there)
    ]
    sliced = [
        mask[part] for mask in (mine, theirs)
        for part in (0, (slice(0, 2), -1), (slice(None), slice(None), slice(1, 4)))
    ]  # fmt: skip
    pairs = [(mine, theirs), (mine.to("cpu"), theirs.to("cpu"))]
    pairs += zip(sliced[:3], sliced[3:], strict=True)
    if name != "nothing for some":  # PyTorch's raises an IndexError, and so does ours
        pairs.append((mine._adjust(20, 18), theirs._adjust(20, 18)))
    for a, b in pairs:
        assert repr(a).replace("sliced_mask", "_sliced_mask") == repr(b)
        assert str(a) == str(b)
        assert a.to_string(5, limit=2) == b.to_string(5, limit=2)
        assert (a.shape, a.numel()) == (b.shape, b.numel())
        for x, y in zip(a.as_tuple()[:-1], b.as_tuple()[:-1], strict=True):
            if hasattr(y, "dtype"):
                assert str(x.dtype) == str(y.dtype)
                assert x.tolist() == y.tolist()
            else:
                assert x == y
    with pytest.raises(RuntimeError, match="sliced BlockMask"):
        flex.flex_attention(*inputs(antorcha, 1, 1, 40, 30), block_mask=mine[0])


def test_gradients_reach_captured_tensors() -> None:
    q, k, v = [each.double().requires_grad_() for each in inputs(antorcha, 4, 2, 4, 3)]
    bias = antorcha.from_numpy(numbers(5, 4, 3)).double().requires_grad_()
    mask = flex.create_block_mask(MASKS["causal"], None, None, 4, 3)

    def run(q: Any, k: Any, v: Any, bias: Any) -> Any:
        def score_mod(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
            return s * 2 + bias[i, j] * h

        return flex.flex_attention(q, k, v, score_mod, mask, enable_gqa=True)

    assert antorcha.autograd.gradcheck(run, (q, k, v, bias))


def test_create_mask_of_scores_and_combinations() -> None:
    causal = flex.create_mask(score_mods(antorcha)["causal"], None, None, 3, 3)
    assert causal.tolist() == antorcha.ones(1, 1, 3, 3).tril().bool().tolist()
    window = flex.and_masks(MASKS["causal"], lambda b, h, q, kv: q - kv < 2)
    either = flex.or_masks(window, lambda b, h, q, kv: kv == 0)
    assert flex.create_mask(either, 1, 1, 4, 4)[0, 0, 3].tolist() == [True, False, True, True]
    assert flex.create_mask(flex.noop_mask, 2, 1, 2, 2).all()
    assert repr(flex.create_block_mask(flex.noop_mask, None, None, 256, 256)).count("Size") == 8


def test_errors_of_flex_attention() -> None:
    q, k, v = inputs(antorcha)
    with pytest.raises(ValueError, match="Try setting enable_gqa=True"):
        flex.flex_attention(q, k[:, :2], v[:, :2])
    with pytest.raises(ValueError, match="same embedding dimension"):
        flex.flex_attention(q[..., :4], k, v)
    with pytest.raises(ValueError, match="smaller length"):
        flex.flex_attention(q, k, v, block_mask=flex.create_block_mask(MASKS["causal"], 1, 1, 4, 4))
    mask = flex.create_block_mask(MASKS["causal"], 1, 1, 99, 99)
    with pytest.raises(ValueError, match="larger length"):
        flex.flex_attention(q, k, v, block_mask=mask)
    with pytest.raises(NotImplementedError, match="4D"):
        flex.flex_attention(q[0], k[0], v[0])
    with pytest.raises(AssertionError, match="mask_mod function"):
        flex.create_block_mask(score_mods(antorcha)["causal"], 1, 1, 4, 4)


def test_backends_are_chosen_and_given_back() -> None:
    before = _cur_sdpa_kernel_backends()
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.EFFICIENT_ATTENTION], set_priority=True):
        assert _cur_sdpa_kernel_backends(True)[0] is SDPBackend.MATH
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            assert _cur_sdpa_kernel_backends() == [SDPBackend.FLASH_ATTENTION]
    assert _cur_sdpa_kernel_backends() == before
    with pytest.raises(AssertionError, match="got str"), sdpa_kernel("math"):  # type: ignore[arg-type]
        pass


def test_causal_biases_in_a_process_of_their_own() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(BIASES)],
        capture_output=True, text=True, timeout=PATIENCE, cwd=BIASES.parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]


def test_varlen_is_attention_of_each_sequence() -> None:
    q, k, v = [
        antorcha.from_numpy(numbers(n, t, h, 4))
        for n, (t, h) in enumerate([(7, 4), (9, 2), (9, 2)])
    ]
    starts_q, starts_k = [0, 3, 7], [0, 4, 9]
    ends = antorcha.tensor(starts_q), antorcha.tensor(starts_k)
    got, lse = varlen_attn(
        q, k, v, *ends, 4, 5, window_size=(-1, 0), enable_gqa=True, return_aux=AuxRequest(lse=True)
    )
    assert lse.shape == (4, 7)
    for n in range(2):
        one = [
            each[starts[n] : starts[n + 1]].transpose(0, 1).unsqueeze(0)
            for each, starts in ((q, starts_q), (k, starts_k), (v, starts_k))
        ]
        shape = one[0].shape[2], one[1].shape[2]
        want = F.scaled_dot_product_attention(
            *one, attn_mask=antorcha.ones(shape).tril(shape[1] - shape[0]).bool(), enable_gqa=True
        )
        np.testing.assert_allclose(
            got[starts_q[n] : starts_q[n + 1]].transpose(0, 1).numpy(), want[0].numpy(), atol=1e-6
        )
