"""Nested tensors: what PyTorch gives, and gradients beside those of the components alone."""

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest

import antorcha
from antorcha.errors import ShapeError

CALLS = """
nt | nt.shape | nt.size() | nt.size(0) | nt.size(1) | nt.size(-1) | nt.dim() | nt.ndim | nt.numel()
nt.is_nested | nt.layout | nt.dtype | nt.unbind() | nt[0] | nt[-1] | nt[0, 1] | nt + 1 | 2 - nt
nt * nt | nt / 2 | nt == nt | nt > 1 | nt.to_padded_tensor(0.) | F.linear(nt, torch.ones(3, 2))
torch.softmax(nt, -1) | nt.sum(-1, keepdim=True) | F.dropout(nt, 0.) | nt.relu() | nt.values()
nt.clone() | nt.detach() | nt.is_contiguous() | nt.to(torch.float64) | nt.requires_grad | -nt
torch.ones_like(nt) | nt.unsqueeze(-1) | nt.view(2, -1, 1, 2) | nt.reshape(2, -1, 2)
nt.masked_fill(nt > 2, 0.) | torch.unbind(nt) | nt.to_padded_tensor(-1., (2, 4, 2)) | nt.double()
F.gelu(nt) | nt.abs() | nt.cos() | torch.cat([nt, nt]) | nested.as_nested_tensor([a, b], layout=lay)
"""
STRIDED = """
torch.bmm(nt, nt.transpose(1, 2)).unbind() | nested.nested_tensor([]) | nested.nested_tensor([1, 2])
nested.nested_tensor([[1, 2], [3]]) | nested.nested_tensor([a, b], requires_grad=True)
nt._nested_tensor_size() | nt.transpose(1, 2)
nested.nested_tensor([torch.ones(2, 3), torch.ones(3, 2)]).size(1)
nested.nested_tensor([torch.ones(2), torch.ones(3, 2)])
"""
JAGGED = """
nt.offsets() | nt.lengths() | nt._min_seqlen | nt._max_seqlen | nt + torch.ones(2) | nt.exp()
nt @ torch.ones(2, 3) | nt.sum() | nt.sum(-1) | nt.sum(1) | nt.mean(-1) | nt.max() | nt.amax(-1)
F.layer_norm(nt, (2,)) | len(nt) | list(nt) | torch.where(nt > 1, nt, -nt) | nt.sum(0)
nt + torch.ones(2, 1, 2) | torch.log_softmax(nt, 2)
nested.nested_tensor_from_jagged(flat, torch.tensor([0, 2, 5]))
nested.nested_tensor_from_jagged(flat, torch.tensor([0, 2, 5]), torch.tensor([1, 2])).unbind()
nested.nested_tensor_from_jagged(flat, lengths=torch.tensor([1, 4])).unbind()
nested.nested_tensor_from_jagged(flat.T, torch.tensor([0, 2, 5]), jagged_dim=2).unbind()
nested.nested_tensor_from_jagged(flat)
nested.narrow(x, 1, torch.tensor([0, 1]), torch.tensor([2, 3]), layout=lay).unbind()
nested.masked_select(x, x > 3).unbind() | nested.as_nested_tensor(x, layout=lay)
nested.nested_tensor([torch.ones(2, 3), torch.ones(3, 2)], layout=lay)
"""
DIFFER = {"torch.cat([nt, nt])"}  # of the jagged layout: an error of another text


def said(library: Any, layout: str, call: str) -> tuple[str, Any]:
    """How a result prints, or the class of the error; and the result."""
    torch = library
    names = {
        "torch": torch, "F": torch.nn.functional, "nested": torch.nested,
        "lay": getattr(torch, layout), "a": torch.arange(6.0).reshape(3, 2),
        "b": torch.arange(4.0).reshape(2, 2), "x": torch.arange(24.0).reshape(2, 4, 3),
        "flat": torch.arange(10.0).reshape(5, 2),
    }  # fmt: skip
    names["nt"] = torch.nested.nested_tensor([names["a"], names["b"]], layout=names["lay"])
    try:
        found = eval(call, names)
    except Exception as error:
        kinds = (RuntimeError, ValueError, TypeError, NotImplementedError, IndexError)
        return next(k.__name__ for k in kinds if isinstance(error, k)), None
    numbers = re.sub(r"\d\.\d{3,}", "0.000", repr(found))  # (they are compared as numbers)
    return re.sub(r"\bj\d+", "j", numbers), found


def parts(value: Any) -> Any:
    """What is in a result, component by component."""
    if getattr(value, "is_nested", False) is True:
        return [part.tolist() for part in value.unbind()]
    return value.tolist() if hasattr(value, "tolist") else None


def same(a: Any, b: Any) -> bool:
    """Are nested lists of numbers equal, but for the last digits?"""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == pytest.approx(b, rel=1e-5) if isinstance(a, float) else bool(a == b)


@pytest.mark.oracle
@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_as_pytorch(layout: str) -> None:
    oracle = importlib.import_module("torch")
    text = CALLS + (STRIDED if layout == "strided" else JAGGED)
    wrong = []
    for call in [c.strip() for c in text.replace("\n", " | ").split(" | ") if c.strip()]:
        theirs, ours = said(oracle, layout, call), said(antorcha, layout, call)
        if (
            theirs[0] != ours[0]
            and call not in DIFFER
            and not (
                theirs[1] is None and layout == "strided"  # (more is done here than there)
            )
        ):
            wrong.append(f"{call}: {ours[0]}, not {theirs[0]}")
        elif theirs[1] is not None and not same(parts(theirs[1]), parts(ours[1])):
            wrong.append(f"{call}: {parts(ours[1])}, not {parts(theirs[1])}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_gradients_are_those_of_the_components(layout: str) -> None:
    torch = antorcha
    torch.manual_seed(0)
    a, b, w = torch.randn(3, 4), torch.randn(2, 4), torch.randn(5, 4)
    leaves = [t.clone().requires_grad_() for t in (a, b, w)]
    nt = torch.nested.as_nested_tensor(leaves[:2], layout=getattr(torch, layout))
    out = torch.nn.functional.linear(nt, leaves[2]).tanh().softmax(-1)
    out.to_padded_tensor(0.0).square().sum().backward()
    alone = [t.clone().requires_grad_() for t in (a, b, w)]
    sum([(t @ alone[2].T).tanh().softmax(-1).square().sum() for t in alone[:2]]).backward()
    for mine, other in zip(leaves, alone, strict=True):
        assert torch.allclose(mine.grad, other.grad, atol=1e-6)
    leaf = torch.nested.nested_tensor([a, b], layout=getattr(torch, layout), requires_grad=True)
    (leaf * 2).values().sum().backward()
    assert leaf.grad.is_nested
    assert all((part == 2).all() for part in leaf.grad.unbind())


def test_attention_without_padding_is_attention_alone() -> None:
    torch = antorcha
    torch.manual_seed(0)
    heads, width = 2, 8
    parts = [torch.randn(n, heads * width) for n in (3, 5)]
    nt = torch.nested.nested_tensor(parts, layout=torch.jagged)
    q = nt.unflatten(-1, (heads, width)).transpose(1, 2)
    out = torch.nn.functional.scaled_dot_product_attention(q, q, q).transpose(1, 2).flatten(-2)
    for part, found in zip(parts, out.unbind(), strict=True):
        alone = part.view(1, -1, heads, width).transpose(1, 2)
        alone = torch.nn.functional.scaled_dot_product_attention(alone, alone, alone)
        assert torch.allclose(found, alone.transpose(1, 2).reshape(-1, heads * width), atol=1e-6)


def test_layers_train_on_jagged_batches() -> None:
    torch = antorcha
    torch.manual_seed(0)
    tokens = [torch.randint(0, 9, (n,)) for n in (4, 2, 7)]
    model = torch.nn.Sequential(
        torch.nn.Embedding(9, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 8), torch.nn.ReLU(),
        torch.nn.Linear(8, 3),
    )  # fmt: skip
    nt = torch.nested.nested_tensor(tokens, layout=torch.jagged)
    labels = torch.tensor([0, 1, 2])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(nt).mean(1), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 10


def test_what_does_not_fit_is_refused() -> None:
    torch = antorcha
    nt = torch.nested.nested_tensor([torch.ones(3, 2), torch.ones(2, 2)], layout=torch.jagged)
    other = torch.nested.nested_tensor([torch.ones(2, 2), torch.ones(2, 2)], layout=torch.jagged)
    with pytest.raises(ShapeError, match="components"):
        nt + other
    with pytest.raises(NotImplementedError, match="cholesky"):
        torch.linalg.cholesky(nt)
    with pytest.raises(ShapeError, match="ragged"):
        torch.bmm(nt, nt.transpose(1, 2))
    with pytest.raises(ShapeError, match="no room"):
        torch.nested.nested_tensor([torch.ones(3)]).to_padded_tensor(0.0, (1, 2))
