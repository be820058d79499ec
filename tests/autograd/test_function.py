"""autograd.Function: what apply records, what backward may give, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest


def make(lib: Any, **methods: Any) -> Any:
    return type("Mine", (lib.autograd.Function,), {k: staticmethod(v) for k, v in methods.items()})


def times(ctx: Any, a: Any, b: Any) -> Any:
    ctx.save_for_backward(a)
    ctx.b = b
    ctx.mask = "any attribute"
    return a * b


def test_forward_and_backward(lib: Any) -> None:
    fn = make(lib, forward=times, backward=lambda ctx, g: (g * ctx.b, None))
    x = lib.ones(3, requires_grad=True)
    y = fn.apply(x, 2.0)
    node = y.grad_fn
    assert y.tolist() == [2.0] * 3
    assert node.name() == "MineBackward" == type(node).__name__
    assert "grad_fn=<MineBackward>" in repr(y)
    assert str(node).startswith("<torch.autograd.function.MineBackward object at 0x")
    assert node.b == 2.0
    assert node.needs_input_grad == (True, False)
    assert node.saved_tensors[0] is x
    assert len(node.next_functions) == 1
    assert node.next_functions[0][0].variable is x
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    with pytest.raises(RuntimeError, match="second time"):
        _ = node.saved_tensors
    assert fn.apply(x, b=3.0).tolist() == [3.0] * 3
    with lib.no_grad():
        assert not fn.apply(x, 2.0).requires_grad


def test_setup_context(lib: Any) -> None:
    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0], output)
        ctx.n = inputs[1]

    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * ctx.n * y / x, None

    fn = make(lib, forward=lambda x, n=2: x**n, setup_context=setup, backward=backward)
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    fn.apply(x, 3).sum().backward()
    assert x.grad.tolist() == [3.0, 12.0]
    x.grad = None
    fn.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_double_backward(lib: Any) -> None:
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y, None, x)
        return y

    def backward(ctx: Any, g: Any) -> Any:
        y, nothing, _ = ctx.saved_tensors
        assert nothing is None
        assert y.requires_grad
        return g * y

    fn = make(lib, forward=forward, backward=backward)
    x = lib.tensor([0.0, 1.0], dtype=lib.float64, requires_grad=True)
    (g,) = lib.autograd.grad(fn.apply(x).sum(), x, create_graph=True)
    (h,) = lib.autograd.grad(g.sum(), x, create_graph=True)
    assert h.tolist() == pytest.approx(x.exp().tolist())
    assert lib.autograd.gradcheck(fn.apply, x)
    assert lib.autograd.gradgradcheck(fn.apply, x)


def test_several_outputs(lib: Any) -> None:
    seen: list[Any] = []

    def backward(ctx: Any, *grads: Any) -> Any:
        seen.append([None if g is None else g.tolist() for g in grads])
        return grads[0]

    fn = make(lib, forward=lambda ctx, a: (a * 1, a * 2, 5, None, "text"), backward=backward)
    x = lib.ones(2, requires_grad=True)
    out = fn.apply(x)
    assert type(out) is tuple
    assert out[2:] == (5, None, "text")
    out[0].sum().backward()
    assert seen == [[[1.0, 1.0], [0.0, 0.0], None, None, None]]
    assert out[1].grad_fn is out[0].grad_fn


def test_settings(lib: Any) -> None:
    def forward(ctx: Any, a: Any) -> Any:
        ctx.set_materialize_grads(False)
        b, c = a * 2, (a * 1).long()
        ctx.mark_non_differentiable(b)
        return b, c, a * 3, a * 4

    def backward(ctx: Any, *grads: Any) -> Any:
        assert grads[0] is None
        assert grads[1] is None
        assert grads[3] is None
        return grads[2]

    fn = make(lib, forward=forward, backward=backward)
    x = lib.ones(2, requires_grad=True)
    b, c, d, e = fn.apply(x)
    assert [t.requires_grad for t in (b, c, d, e)] == [False, False, True, True]
    d.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_written_inputs(lib: Any) -> None:
    def forward(ctx: Any, a: Any) -> Any:
        a.mul_(2)
        ctx.mark_dirty(a)
        return a

    fn = make(lib, forward=forward, backward=lambda ctx, g: g * 2)
    x = lib.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="in-place operation"):
        fn.apply(x)
    z = x * 1
    assert fn.apply(z) is z
    z.sum().backward()
    x.grad = None
    z = x * 1
    part = fn.apply(z[0:2])
    assert part.grad_fn.name() == "AsStridedBackward0"
    assert z.grad_fn.name() == "torch::autograd::CopySlices"
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 1.0]

    def lost(ctx: Any, a: Any) -> Any:
        ctx.mark_dirty(a)
        return a * 1

    with pytest.raises(RuntimeError, match="must all be outputs"):
        make(lib, forward=lost, backward=lambda ctx, g: g).apply(x * 1)


def test_inputs_and_views_as_outputs(lib: Any) -> None:
    same = make(lib, forward=lambda ctx, a: a, backward=lambda ctx, g: g * 3)
    x = lib.ones(3, requires_grad=True)
    y = same.apply(x)
    assert y is not x
    assert y._base is x
    with pytest.raises(RuntimeError, match="inside a custom Function"):
        y.mul_(2)
    y.sum().backward()
    assert x.grad.tolist() == [3.0] * 3
    plain = lib.ones(2)
    assert same.apply(plain) is not plain
    flat = make(lib, forward=lambda ctx, a: a.view(-1), backward=lambda ctx, g: g * 3)
    z = x * 1
    y = flat.apply(z)
    z.mul_(2)
    with pytest.raises(RuntimeError, match="its base or another view of its base"):
        _ = y.grad_fn


@pytest.mark.parametrize(
    ("backward", "message"),
    [
        (lambda ctx, g: g, "incorrect number of gradients"),
        (lambda ctx, g: (g, g), "gradient different than None at position 2"),
        (lambda ctx, g: (5, None), "expected Variable or None"),
        (lambda ctx, g: [g, None], "incorrect number of gradients|expected Variable"),
    ],
)
def test_wrong_gradients(lib: Any, backward: Any, message: str) -> None:
    fn = make(lib, forward=lambda ctx, a, b: a * b, backward=backward)
    x = lib.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match=message):
        fn.apply(x, 2.0).sum().backward()


def test_shapes_of_gradients(lib: Any) -> None:
    x = lib.ones(3, requires_grad=True)
    wrong = make(lib, forward=lambda ctx, a: a * 1, backward=lambda ctx, g: lib.ones(5))
    with pytest.raises(RuntimeError, match="invalid gradient at index 0"):
        wrong.apply(x).sum().backward()
    wide = make(lib, forward=lambda ctx, a: a * 1, backward=lambda ctx, g: lib.ones(2, 3))
    wide.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    more = make(lib, forward=lambda ctx, a: a * 1, backward=lambda ctx, g: (g, None, None))
    more.apply(x).sum().backward()
    with pytest.raises(TypeError, match="can only save variables"):
        make(lib, forward=lambda ctx, a: ctx.save_for_backward(5)).apply(x)


def test_missing_methods(lib: Any) -> None:
    x = lib.ones(3, requires_grad=True)
    with pytest.raises(NotImplementedError, match="implement either the backward"):
        make(lib, forward=lambda ctx, a: a * 2).apply(x).sum().backward()
    with pytest.raises(NotImplementedError, match="implement the forward"):
        make(lib, backward=lambda ctx, g: g).apply(x)


@pytest.mark.filterwarnings("ignore")
def test_instances_are_not_called(lib: Any) -> None:
    with pytest.raises(RuntimeError, match="non-static forward"):
        make(lib)()(lib.ones(1))


def test_saved_tensors_are_watched(lib: Any) -> None:
    fn = make(lib, forward=times, backward=lambda ctx, g: (g * ctx.saved_tensors[0], None))
    x = lib.ones(3, requires_grad=True)
    z = x * 1
    y = fn.apply(z, 2.0)
    z.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_once_differentiable(lib: Any) -> None:
    once = lib.autograd.function.once_differentiable
    fn = make(lib, forward=lambda ctx, a: a * 2, backward=once(lambda ctx, g: g * 2))
    x = lib.ones(3, requires_grad=True)
    (g,) = lib.autograd.grad((fn.apply(x) ** 2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"differentiate twice|Error"):
        g.sum().backward()


def test_grad_mode_inside(lib: Any) -> None:
    modes: list[bool] = []

    def backward(ctx: Any, g: Any) -> Any:
        modes.append(lib.is_grad_enabled())
        return g

    def forward(ctx: Any, a: Any) -> Any:
        modes.append(lib.is_grad_enabled())
        return a * 1

    fn = make(lib, forward=forward, backward=backward)
    x = lib.ones(3, requires_grad=True)
    fn.apply(x).sum().backward()
    lib.autograd.grad(fn.apply(x).sum(), x, create_graph=True)
    assert modes == [False, False, False, True]


def test_saved_tensors_hooks_apply(lib: Any) -> None:
    fn = make(lib, forward=times, backward=lambda ctx, g: (g * ctx.saved_tensors[0], None))
    x = lib.ones(3, requires_grad=True)
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t + 4, lambda t: t * 2):
        y = fn.apply(x, 2.0)
    y.sum().backward()
    assert x.grad.tolist() == [10.0] * 3
