"""Tensors of one element where PyTorch takes a number: ``torch.arange(lengths.max())``."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import antorcha

CALLS = """
torch.arange(torch.tensor(3))
torch.arange(torch.tensor([True, True]).sum())
torch.arange(torch.tensor([True, True]).sum(), device=torch.device('cpu'))
torch.arange(0, torch.tensor(3))
torch.arange(0, torch.tensor(3.0))
torch.arange(torch.tensor(1), torch.tensor(3), torch.tensor(1))
torch.arange(torch.tensor(True))
torch.arange(torch.tensor([3]))
torch.arange(torch.tensor([3, 4]))
torch.arange(torch.tensor(3), requires_grad=False)
torch.arange(torch.tensor(3, dtype=torch.int32))
torch.arange(torch.tensor(3.0, requires_grad=True))
torch.arange(0, end=torch.tensor(4), step=2)
torch.full((2,), torch.tensor(3))
torch.full((2,), torch.tensor(True))
torch.full((2,), torch.tensor(3.0, dtype=torch.float64))
torch.full((2,), torch.tensor(2 + 1j))
torch.full((2,), torch.tensor([3]))
torch.full((2,), torch.tensor([3, 4]))
torch.full((2,), torch.tensor(3.0), dtype=torch.int64)
torch.full((torch.tensor(2),), 1)
torch.randint(0, torch.tensor(3), (2,)).mul(0)
torch.randint(torch.tensor(3), (2,)).mul(0)
torch.randint(torch.tensor(1), torch.tensor(3), (2,)).mul(0)
torch.randperm(torch.tensor(3)).mul(0)
torch.eye(torch.tensor(2), torch.tensor(3))
torch.zeros(4).chunk(torch.tensor(2))[0]
torch.zeros(4).split(torch.tensor(2))[0]
torch.tensor_split(torch.arange(4), torch.tensor(2))[0]
torch.tensor_split(torch.arange(4), torch.tensor([1, 2]))[0]
torch.arange(4).repeat_interleave(torch.tensor(2))
torch.arange(4).repeat(torch.tensor(2))
torch.zeros(2, 2).sum(torch.tensor(1))
torch.zeros(2, 2).softmax(torch.tensor(1))
torch.nn.functional.one_hot(torch.arange(2), torch.tensor(3))
torch.arange(4).narrow(0, torch.tensor(1), torch.tensor(2))
torch.arange(4.0).topk(torch.tensor(2))[0]
torch.arange(4).roll(torch.tensor(2))
torch.arange(4).unsqueeze(torch.tensor(0))
torch.arange(4).view(torch.tensor(2), torch.tensor(2))
torch.arange(4).reshape(torch.tensor(2), -1)
torch.arange(4).expand(torch.tensor(2), 4)
torch.linspace(0, torch.tensor(3), torch.tensor(4))
torch.linspace(torch.tensor(0.0), 1, steps=3)
torch.addmm(torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2), beta=torch.tensor(2.0))
torch.ones(3).add(torch.ones(3), alpha=torch.tensor(2))
torch.ones(3).clamp(torch.tensor(2))
torch.ones(3).clamp(max=torch.tensor(0.5))
torch.nn.functional.pad(torch.ones(2), (1, 1), value=torch.tensor(3))
torch.nn.functional.pad(torch.ones(2), (torch.tensor(1), 1))
torch.ones(3).fill_(torch.tensor(2))
torch.ones(3).masked_fill(torch.ones(3) > 0, torch.tensor(2))
torch.ones(3).index_fill(0, torch.tensor([0]), torch.tensor(2))
torch.triu(torch.ones(2, 2), torch.tensor(1))
torch.tril_indices(torch.tensor(2), torch.tensor(2))
torch.nn.functional.leaky_relu(torch.ones(2), torch.tensor(0.1))
torch.nn.functional.dropout(torch.ones(2), torch.tensor(0.0))
torch.var(torch.arange(4.0), correction=torch.tensor(0))
torch.logspace(torch.tensor(0), torch.tensor(2), 3)
torch.hann_window(torch.tensor(4))
torch.combinations(torch.arange(3), torch.tensor(2))
torch.cdist(torch.ones(2, 2), torch.zeros(2, 2), p=torch.tensor(1.0))
torch.norm(torch.ones(2), p=torch.tensor(1))
torch.ones(2).norm(torch.tensor(2))
torch.quantile(torch.arange(4.0), torch.tensor(0.5))
torch.diag(torch.ones(2), torch.tensor(1))
torch.ones(2, 2).select(0, torch.tensor(1))
torch.rand(torch.tensor(2)).mul(0)
torch.randn(torch.tensor(2), 3).mul(0)
torch.empty(torch.tensor(2)).mul(0)
torch.ones(2).new_zeros(torch.tensor(2))
torch.ones(2).new_full((2,), torch.tensor(2))
torch.full_like(torch.ones(2), torch.tensor(2))
torch.ones(4).unfold(0, torch.tensor(2), torch.tensor(1))
torch.bincount(torch.tensor([1]), minlength=torch.tensor(3))
torch.multinomial(torch.ones(1), torch.tensor(1))
torch.ones(3).kthvalue(torch.tensor(1))[0]
torch.normal(torch.tensor(0.0), torch.tensor(0.0))
torch.ones(2).uniform_(torch.tensor(1.0), torch.tensor(1.0))
torch.ones(2).normal_(torch.tensor(1.0), torch.tensor(0.0))
torch.ones(2).random_(torch.tensor(1))
torch.ones(2).bernoulli_(torch.tensor(1.0))
torch.histc(torch.arange(4.0), torch.tensor(2))
torch.movedim(torch.ones(2, 3), torch.tensor(0), torch.tensor(1))
torch.ones(2, 3).transpose(torch.tensor(0), torch.tensor(1))
torch.ones(2, 3).size(torch.tensor(1)) and torch.ones(1)
torch.nn.functional.interpolate(torch.ones(1, 1, 2), size=torch.tensor(4))
torch.nn.functional.avg_pool1d(torch.ones(1, 1, 4), torch.tensor(2))
torch.tensor([torch.tensor([0, 1]), torch.tensor([1, 0])])
torch.pow(2, torch.tensor(3))
torch.trapezoid(torch.ones(3), dx=torch.tensor(2.0))
torch.renorm(torch.ones(2, 2), torch.tensor(1), 0, torch.tensor(1.0))
torch.lerp(torch.zeros(2), torch.ones(2), torch.tensor(0.5))
torch.nn.functional.threshold(torch.ones(2), torch.tensor(2.0), torch.tensor(3.0))
torch.nn.functional.hardtanh(torch.ones(2), torch.tensor(-0.5), torch.tensor(0.5))
torch.nan_to_num(torch.ones(2), torch.tensor(1.0))
torch.isclose(torch.ones(2), torch.ones(2), torch.tensor(1.0))
torch.tensor(2).new_tensor(torch.tensor(3))
""".strip().splitlines()


def _answer(torch: Any, call: str) -> Any:
    """The result's dtype and numbers; the class of an error."""
    try:
        result = eval(call, {"torch": torch})
    except (TypeError, ValueError, RuntimeError, IndexError) as error:
        return next(c for c in (TypeError, ValueError, IndexError, RuntimeError)
                    if isinstance(error, c)).__name__  # fmt: skip
    return str(result.dtype), result.tolist()


@pytest.mark.oracle
def test_tensors_stand_for_numbers_as_in_pytorch() -> None:
    oracle = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        differ = [
            f"{call}: {ours}, PyTorch: {theirs}"
            for call in CALLS
            for ours, theirs in [(_answer(antorcha, call), _answer(oracle, call))]
            if ours != theirs
        ]
    assert not differ, "\n".join(differ)


def test_a_count_makes_whole_numbers() -> None:
    lengths = antorcha.tensor([2, 4])
    assert antorcha.arange(lengths.max()).tolist() == [0, 1, 2, 3]
    assert antorcha.arange(lengths.max()).dtype is antorcha.int64
    assert antorcha.full((2,), lengths[0]).dtype is antorcha.int64
    with pytest.raises(TypeError, match=r"no gradient would reach it; use \.item"):
        antorcha.arange(antorcha.tensor(3.0, requires_grad=True))
