"""Views: values, strides, shared memory, gradients to order 2, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import antorcha
from tests.ops.parity import compare, data, needs_torch

# x: (3, 4), c: (2, 3, 4), q: (1, 3, 1), s: ()
CASES = """
x.view(4, 3)|x.view(-1)|x.view((2, 6))|x.reshape(2, 6)|x.t().reshape(12)|x.t().reshape(2, -1)
x.transpose(0, 1)|x.swapaxes(0, -1)|c.swapdims(1, 2)|x.t()|x.T|c.mT|c.permute(2, 0, 1)
c.permute((0, -1, 1))|c.movedim(0, 2)|c.movedim((0, 1), (-1, 0))|x.unsqueeze(0)|x.t().unsqueeze(1)
q.squeeze()|q.squeeze(0)|q.squeeze(1)|q.squeeze((0, 2))|x.expand(2, 3, 4)|x[:, :1].expand(-1, 5)
x.broadcast_to((2, 3, 4))|x.select(1, 2)|x.narrow(1, 1, 2)|x.narrow(0, -2, 2)
x.as_strided((2, 2), (4, 1), 1)|x.as_strided((3, 3), (2, 1))|x.as_strided((3, 3), (1, 1), 2)
x.t().as_strided((2, 3), (1, 2))|x[1:].as_strided((2, 3), (4, 1))
x[:, 1:].as_strided((2, 2), (3, 1), 3)
x[:, :1].expand(3, 5).as_strided((2, 2), (4, 1), 0)|x.diagonal()|x.diagonal(1)|x.diagonal(9)
c.diagonal(0, 1, 2)|c.diagonal(1, -1, 0)|x.unfold(1, 2, 1)|x.unfold(0, 2, 2)|c.unfold(2, 3, 1)
c.transpose(0, 2).unfold(0, 3, 2)|x.flatten()|c.flatten(1)|c.permute(2, 1, 0).flatten(1)
s.flatten()
x.unflatten(1, (2, 2))|x.unflatten(-1, (-1, 2))|x.ravel()|x.t().ravel()|x.unbind()|x.unbind(1)[2]
x.split(2)|x.split(3, 1)|x.split([1, 2])|x.split((1, 0, 3), 1)[2]|x.chunk(2)|x.chunk(5, 1)[1]
x.tensor_split(2)|x.tensor_split(sections=3)|x.tensor_split(indices=[1], dim=1)
x.vsplit(sections=1)|x.tensor_split(3, 1)|x.tensor_split((1, 2), 1)|x.hsplit(2)|x.vsplit((1,))
c.dsplit(2)
x.flip(0)|x.flip(0, 1)|c.permute(2, 0, 1).flip(1)|x.fliplr()|x.flipud()|torch.rot90(x)
torch.rot90(x, 3)|torch.rot90(c, 2, (1, 2))|x.roll(1)|x.t().roll(2)|x.roll(1, 0)
x.roll((1, 2), (0, 1))|x.t().roll((1, -2), (0, 1))|x.roll((1, 1), (0, 0))|x.tile(2)
x.tile((2, 1, 3))
x.repeat(2, 2)|x.t().repeat(2, 1, 3)|s.repeat(3)|x.repeat_interleave(2)|x.repeat_interleave(2, 1)
x.repeat_interleave(torch.tensor([1, 0, 2]), 0)|x.tril()|x.tril(1)|x.triu(-1)|c.triu()|x.t().tril()
x.diag()|x.diag(1)|x[0].diag(-1)|x.diag_embed()|x.diag_embed(1)|x.diag_embed(-1, 0, 2)
x.view(5, 3)|x.view(-1, -1)|x.t().view(12)|x.transpose(0, 2)|x.permute(0, 0)|x.squeeze(2)
x.expand(4, 4)
x.select(0, 3)|x.narrow(1, 3, 2)|x.as_strided((4, 4), (4, 1))|x.diagonal(0, 1, 1)|x.unfold(1, 5, 1)
x.split([1, 1])|x.split(-1)|x.chunk(0)|x.flip(0, 0)|x.unflatten(1, (3, 2))|x.flatten(1, 0)
""".replace("\n", "|").strip("|").split("|")  # fmt: skip


@needs_torch
@pytest.mark.parametrize("text", CASES)
def test_as_pytorch(text: str) -> None:
    arrays = [data(3, 4), data(2, 3, 4), data(1, 3, 1), data()]

    def call(torch: Any, x: Any, c: Any, q: Any, s: Any) -> Any:
        return eval(text, {"torch": torch, "x": x, "c": c, "q": q, "s": s})

    compare(call, *arrays, dtype="float64", grad=2, strides=True)
    compare(call, *arrays, dtype="bool", strides=True)


@pytest.mark.parametrize(
    ("ours", "numpy"),
    [
        (lambda x: x.t(), lambda a: a.T),
        (lambda x: x[1:, ::2], lambda a: a[1:, ::2]),
        (lambda x: x.view(4, 3), lambda a: a.reshape(4, 3)),
        (lambda x: x.diagonal(), lambda a: a.diagonal()),
        (lambda x: x.unbind(1)[2], lambda a: a[:, 2]),
        (lambda x: x.split(2)[1], lambda a: a[2:]),
        (lambda x: x.unsqueeze(1), lambda a: a[:, None]),
    ],
)
def test_views_share_memory(ours: Any, numpy: Any) -> None:
    array = np.arange(12.0).reshape(3, 4)
    x = antorcha.tensor(array)
    view = ours(x)
    assert view.tolist() == numpy(array).tolist()
    x.mul_(10)
    assert view.tolist() == numpy(array * 10).tolist()


def test_view_of_another_dtype() -> None:
    x = antorcha.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.view(antorcha.int32)[0, 0].item() == np.float32(1).view(np.int32)
    assert x.view(antorcha.float64).shape == (2, 1)
    assert x.view(antorcha.uint8).shape == (2, 8)
    assert x.view(antorcha.int16).data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="divisible"):
        x[:, :1].contiguous().view(antorcha.float64)
    with pytest.raises(RuntimeError, match=r"stride\(-1\) must be 1"):
        x.t().view(antorcha.float64)


def test_in_place_on_one_of_several_views_is_refused() -> None:
    x = antorcha.ones(3, requires_grad=True) * 1
    first = x.unbind()[0]
    with pytest.raises(RuntimeError, match="multiple views"):
        first.add_(1)
    x[0].add_(1)


def test_metadata_in_place() -> None:
    x = antorcha.arange(6.0).reshape(2, 3).clone()
    assert x.unsqueeze_(0).shape == (1, 2, 3)
    assert x.squeeze_(0).t_().stride() == (1, 3)
    assert x.transpose_(0, 1).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    x.resize_(3, 4)
    assert x.shape == (3, 4)
    y = antorcha.zeros(2).set_(x)
    assert y.data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError):
        antorcha.zeros(2, requires_grad=True).resize_(3)
    with pytest.raises(RuntimeError, match="leaf"):
        antorcha.zeros(2, requires_grad=True).unsqueeze_(0)
    z = antorcha.ones(2, 3, requires_grad=True)
    w = z * 2
    w.t_()
    (w * antorcha.arange(6.0).reshape(3, 2)).sum().backward()
    assert z.grad.tolist() == [[0, 4, 8], [2, 6, 10]]


def test_short_cuts_agree() -> None:
    """The second call of each goes by the short cut."""
    x = antorcha.arange(12.0).reshape(3, 4).requires_grad_()
    for call in (
        lambda: x.view(2, 6), lambda: x.reshape(2, 6), lambda: x.t(), lambda: x.transpose(0, 1),
        lambda: x.flatten(), lambda: x.unsqueeze(0), lambda: x[1:, 2], lambda: x[0],
    ):  # fmt: skip
        a, b = call(), call()
        assert a.stride() == b.stride()
        assert a.storage_offset() == b.storage_offset()
        assert type(a.grad_fn) is type(b.grad_fn)
        with antorcha.no_grad():
            assert not call().requires_grad


@pytest.mark.parametrize("name", ["slice_scatter", "select_scatter", "diagonal_scatter",
                                  "as_strided_scatter"])  # fmt: skip
def test_what_is_scattered_alone_may_want_a_gradient(name: str) -> None:
    """At every call, also where the whole wants none."""
    args: Any = {"select_scatter": (0, 1), "as_strided_scatter": ((4,), (1,))}.get(name, ())
    shape = {"slice_scatter": (4, 4)}.get(name, (4,))
    for _ in range(4):
        whole, part = antorcha.zeros(4, 4), antorcha.ones(shape, requires_grad=True)
        getattr(antorcha, name)(whole, part, *args).sum().backward()
        assert part.grad.tolist() == antorcha.ones(shape).tolist()
