"""Writes in place and views, case by case."""

from __future__ import annotations

from typing import Any

import pytest


def leaf(lib: Any, n: int = 3) -> Any:
    return lib.ones(n, dtype=lib.float64).requires_grad_()


def test_leaves(lib: Any) -> None:
    x = leaf(lib)
    for write in (lambda: x.mul_(2), lambda: x[0].mul_(2), lambda: x.__setitem__(0, 1.0)):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            write()
    with lib.no_grad():
        x.mul_(2)
        x[0] = 7
    assert x.tolist() == [7.0, 2.0, 2.0]
    assert x.is_leaf


LEAVES_THAT_ARE_VIEWS: dict[str, Any] = {
    "slice": lambda lib: lib.arange(6.0)[2:],
    "view": lambda lib: lib.arange(4.0).view(2, 2),
    "reshape": lambda lib: lib.arange(4.0).reshape(4, 1),
    "transposed": lambda lib: lib.zeros(2, 2).t(),
    "part": lambda lib: lib.arange(8.0).split(4)[0],
    "real": lambda lib: lib.zeros(4, dtype=lib.complex64).real,
    "expanded": lambda lib: lib.zeros(1).expand(1),
    "parameter": lambda lib: lib.nn.Parameter(lib.arange(6.0)[2:]).data.view(4),
}
WRITES: dict[str, Any] = {
    "mul_": lambda lib, w: w.mul_(2),
    "item": lambda lib, w: w.__setitem__(0, 7.0),
    "row": lambda lib, w: w[0].mul_(2),
    "mask": lambda lib, w: w.__setitem__(w.detach() >= 0, 0.0),
    "places": lambda lib, w: w.__setitem__(lib.tensor([0]), 0.0),
    "view of it": lambda lib, w: w.view_as(w).zero_(),
    "copy_": lambda lib, w: w.copy_(lib.ones(1)),
    "fill_": lambda lib, w: w.fill_(1),
    "random": lambda lib, w: w.uniform_(),
    "unsqueeze_": lambda lib, w: w.unsqueeze_(0),
    "set_": lambda lib, w: w.set_(lib.ones(3)),
    "function": lambda lib, w: _doubled(lib).apply(w),
}


def _doubled(lib: Any) -> Any:
    class Doubled(lib.autograd.Function):  # type: ignore[name-defined, misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    return Doubled


@pytest.mark.parametrize("made", LEAVES_THAT_ARE_VIEWS)
def test_leaves_that_are_views_keep_their_gradient(lib: Any, made: str) -> None:
    for name, write in WRITES.items():
        w = LEAVES_THAT_ARE_VIEWS[made](lib).requires_grad_()
        with pytest.raises(RuntimeError):
            write(lib, w)
        assert w.is_leaf, name
        (w * 2).sum().backward()
        assert w.grad.flatten().tolist() == [2.0] * w.numel(), name
        with lib.no_grad():
            w[0] = 7.0
        assert w.is_leaf, name


def test_a_write_to_a_view_reaches_its_base_and_its_views(lib: Any) -> None:
    x = leaf(lib)
    y = x * 1
    whole, first = y.view(-1), y[0]
    y[0:2].mul_(3)
    assert type(y.grad_fn).__name__ == "CopySlices"
    assert first.grad_fn.name() == "AsStridedBackward0"
    (whole.sum() + first * 10).backward()
    assert x.grad.tolist() == [33.0, 3.0, 1.0]


def test_a_base_without_gradient_gets_one(lib: Any) -> None:
    x = leaf(lib, 2)
    base = lib.zeros(3, dtype=lib.float64)
    early = base[0:2]
    base[1:3].mul_(0).add_(x)
    assert base.requires_grad
    assert early.requires_grad
    assert not early.is_leaf
    (early * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 0.0]
    again = lib.zeros(3, dtype=lib.float64)
    part = again[0:2]
    again.add_(lib.ones(3, dtype=lib.float64) * x[0])
    assert (part * 1).requires_grad


def test_a_buffer_filled_in_a_loop(lib: Any) -> None:
    x = leaf(lib)
    buffer = lib.zeros(3, dtype=lib.float64)
    for k in range(3):
        buffer[k] = x[k] * k
    buffer.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 2.0]


def test_views_of_a_stale_base_do_not_slow_others_for_ever(torch: Any) -> None:
    from antorcha.core import modes

    before = modes.busy
    buffer = torch.zeros(3)
    kept = buffer[0]
    buffer[1] = torch.ones((), requires_grad=True)
    assert modes.busy == before + 1
    assert kept.requires_grad
    del buffer, kept
    assert modes.busy == before


def test_views_made_in_no_grad(lib: Any) -> None:
    y = leaf(lib) * 1
    with lib.no_grad():
        view = y.view(-1)
        inner = view[0]
    for write in (lambda: view.mul_(2), lambda: inner.mul_(2)):
        with pytest.raises(RuntimeError, match=r"created in no_grad"):
            write()
    plain = lib.zeros(3, dtype=lib.float64)
    with lib.no_grad():
        part = plain[0:2]
    part.mul_(2)  # nothing to record: no harm
    with lib.no_grad():
        part = plain[0:2]
    plain.add_(leaf(lib))
    with pytest.raises(RuntimeError, match=r"created in no_grad"):
        part * 2


def test_views_made_in_no_grad_are_constants(torch: Any) -> None:
    """PyTorch says that they require a gradient, and sends it nowhere."""
    x = leaf(torch)
    with torch.no_grad():
        view = x.view(-1)
        view.mul_(2)
    assert not view.requires_grad
    assert not (view * 2).requires_grad
    assert view.grad_fn is None
    assert view.numpy().tolist() == [2.0] * 3


def test_parts(lib: Any) -> None:
    y = leaf(lib) * 1
    a, b = y.split([1, 2])
    with pytest.raises(RuntimeError, match="multiple views"):
        a.mul_(2)
    with pytest.raises(RuntimeError, match="multiple views"):
        a[None].mul_(2)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="multiple views"):
        b * 2


def test_versions(lib: Any) -> None:
    x = leaf(lib)
    y = x * 2
    z = y * y
    y.detach().mul_(2)
    assert y._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    y = x * 2
    z = y * y
    y[0].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_data_has_a_version_of_its_own(lib: Any) -> None:
    x = leaf(lib)
    y = x * 2
    z = y * y
    data = y.data
    data.mul_(10)
    assert (y._version, y.data._version, data._version) == (0, 0, 1)
    assert data._base is None
    assert not data.requires_grad
    assert data.data_ptr() == y.data_ptr()
    z.sum().backward()
    assert x.grad.tolist() == [80.0] * 3
    w = lib.ones(3, requires_grad=True)
    product = w * data.float()
    kept = data * w.double()
    data.add_(1)
    product.sum().backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        kept.sum().backward()


def test_data_keeps_its_memory(torch: Any) -> None:
    x = torch.ones(3)
    data = x.data
    with pytest.raises((RuntimeError, BufferError)):
        x.resize_(100_000)
    del x
    assert data.tolist() == [1.0] * 3


def test_the_target_among_the_operands(torch: Any) -> None:
    """PyTorch overwrites what it needs of ``x.mul_(x)``; antorcha keeps a copy."""
    x = leaf(torch)
    with torch.no_grad():
        x.mul_(torch.tensor([1.0, 2.0, 3.0]))
    y = x * 1
    y.mul_(y)
    y.add_(y)
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 8.0, 12.0]


def test_columns_of_one_tensor(lib: Any) -> None:
    x = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x * 1
    y[:, 0].add_(y[:, 1])
    assert y.tolist() == [[3.0, 2.0], [7.0, 4.0]]
    y.sum().backward()
    assert x.grad.tolist() == [[1.0, 2.0], [1.0, 2.0]]
    with pytest.raises(RuntimeError, match="single memory location"):
        lib.arange(5.0)[0:4].add_(lib.arange(5.0)) if False else _overlapping(lib)


def _overlapping(lib: Any) -> None:
    x = lib.ones(5)
    x[0:4].add_(x[1:5])


def test_interleaved_operands_are_read_first(torch: Any) -> None:
    x = torch.arange(12.0).reshape(3, 4)
    right = x.clone()[:, 1:] + x.clone()[:, :-1]
    x[:, 1:].add_(x[:, :-1])
    assert x[:, 1:].tolist() == right.tolist()


def test_expanded_targets(lib: Any) -> None:
    view = lib.ones(1, 3).expand(2, 3)
    with pytest.raises(RuntimeError, match="more than one element"):
        view.mul_(2)


def test_integers_and_dtypes(lib: Any) -> None:
    x = leaf(lib)
    whole = lib.ones(3, dtype=lib.int64)
    with pytest.raises(RuntimeError, match="can't be cast"):
        whole.mul_(x)
    assert not whole.copy_(x).requires_grad
    single = lib.ones(3)
    single.add_(x)
    assert single.dtype is lib.float32
    assert single.requires_grad
    single.sum().backward()
    assert x.grad.dtype is lib.float64


def test_detach_in_place(lib: Any) -> None:
    y = leaf(lib) * 1
    with pytest.raises(RuntimeError, match="Can't detach views"):
        y.view(-1).detach_()
    y.detach_()
    assert y.is_leaf
    assert not y.requires_grad


def test_second_order_through_views(lib: Any) -> None:
    def program(x: Any) -> Any:
        y = x * 1
        y[0:2].mul_(y[1:3].clone())
        y.view(-1)[2:].exp_()
        return y * y

    x = lib.tensor([0.5, -1.0, 0.25], dtype=lib.float64, requires_grad=True)
    assert lib.autograd.gradcheck(program, x)
    assert lib.autograd.gradgradcheck(program, x)


def test_transposed_bases(lib: Any) -> None:
    def program(x: Any) -> Any:
        y = (x * 1).t()
        z = y.clone()
        z[0].mul_(2)
        z[:, 1].add_(x[0, 0])
        return z * z

    x = lib.tensor([[0.5, -1.0], [0.25, 2.0]], dtype=lib.float64, requires_grad=True)
    assert lib.autograd.gradcheck(program, x)
    assert lib.autograd.gradgradcheck(program, x)


def test_copies_of_what_a_write_changes_lie_otherwise():
    import antorcha as torch

    for _ in range(3):  # from the second time on by replay
        leaf = torch.arange(6.0).reshape(2, 3).requires_grad_()
        turned = (leaf * 1).t()
        turned.mul_(turned)
        turned.sum().backward()
        assert leaf.grad.tolist() == (2 * leaf).tolist()


def test_a_mask_over_an_expanded_target_is_refused(torch: Any) -> None:
    """One element is written for several masks, in any order: PyTorch warns that it should not be,
    and the result must not depend on which came last."""
    for place in (0, 5, 63):
        target = torch.zeros(1).expand(64)
        mask = torch.arange(64) == place
        with pytest.raises(RuntimeError, match="more than one element"):
            target.masked_fill_(mask, 1.0)
        with pytest.raises(RuntimeError, match="more than one element"):
            target[mask] = 1.0
        assert target[0] == 0
        target.fill_(2.0)
        assert target[place] == 2
        target.zero_()
