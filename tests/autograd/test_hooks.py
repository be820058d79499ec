"""Hooks: on tensors, leaves, nodes, saved tensors; their order and what they may return."""

from __future__ import annotations

import weakref
from typing import Any

import pytest


def test_order(lib: Any) -> None:
    log: list[Any] = []
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: (log.append("h1"), g * 2)[1])
    y.register_hook(lambda g: (log.append("h2"), g * 3)[1])
    y.grad_fn.register_prehook(lambda grads: (log.append("pre"), (grads[0] * 5,))[1])
    y.grad_fn.register_hook(lambda ins, outs: log.append(("post", ins[0].tolist(), len(outs))))
    x.register_hook(lambda g: (log.append("leaf"), g * 7)[1])
    x.register_post_accumulate_grad_hook(lambda t: log.append(("added", t.grad.tolist())))
    y.sum().backward()
    assert log == ["h1", "h2", "pre", ("post", [60.0, 60.0], 1), "leaf", ("added", [420.0, 420.0])]
    assert y.grad.tolist() == [6.0, 6.0]


def test_removing(lib: Any) -> None:
    x = lib.ones(1, requires_grad=True)
    handle = x.register_hook(lambda g: g * 2)
    with x.register_hook(lambda g: g * 3):
        (x * 1).sum().backward()
    assert x.grad.item() == 6
    handle.remove()
    handle.remove()
    (x * 1).sum().backward()
    assert x.grad.item() == 7


def test_grad_runs_a_leafs_hooks(lib: Any) -> None:
    x = lib.ones(1, requires_grad=True)
    x.register_hook(lambda g: g * 7)
    x.register_post_accumulate_grad_hook(lambda t: 1 / 0)
    assert lib.autograd.grad((x * 2).sum(), x)[0].item() == 14
    y = x * 2
    y.register_hook(lambda g: g * 3)
    assert lib.autograd.grad(y.sum(), y)[0].item() == 3


def test_what_hooks_may_not_return(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)
    for wrong, error in ((5, TypeError), (lib.ones(3), RuntimeError)):
        y = x * 2
        y.register_hook(lambda g, wrong=wrong: wrong)
        with pytest.raises(error):
            y.sum().backward()


def test_where_hooks_may_not_be(lib: Any) -> None:
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        lib.ones(2).register_hook(print)
    x = lib.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="requires_grad=False"):
        lib.ones(2).retain_grad()


def test_hooks_belong_to_the_value_before_a_write(lib: Any) -> None:
    seen: list[Any] = []
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    assert seen == [[3.0, 3.0]]
    assert y.grad.tolist() == [1.0, 1.0]  # retain_grad() follows the tensor


def test_retained_twice(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    assert not y.retains_grad
    y.retain_grad()
    y.retain_grad()
    assert y.retains_grad
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert y.grad.tolist() == [2.0, 2.0]


def test_nodes(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)
    node = (x * 2).grad_fn
    assert node.name() == "MulBackward0" == type(node).__name__
    assert str(node).startswith("<MulBackward0 object at 0x")
    (leaf, number), (nothing, zero) = node.next_functions
    assert (number, nothing, zero) == (0, None, 0)
    assert leaf.variable is x
    assert leaf.name() == "torch::autograd::AccumulateGrad"
    assert type(leaf).__name__ == "AccumulateGrad"
    assert leaf.next_functions == ()
    assert (x * 3).grad_fn.next_functions[0][0] is leaf
    node.metadata["mine"] = 1
    assert node.metadata == {"mine": 1}
    assert isinstance(node, lib.autograd.graph.Node)


def test_hooks_of_a_leafs_node(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    leaf = y.grad_fn.next_functions[0][0]
    seen: list[Any] = []
    leaf.register_prehook(lambda grads: (grads[0] * 10,))
    leaf.register_hook(lambda ins, outs: seen.append((ins, outs[0].tolist())))
    y.sum().backward()
    assert x.grad.tolist() == [20.0, 20.0]
    assert seen == [((), [20.0, 20.0])]


def test_the_leafs_node_does_not_keep_the_leaf(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    leaf = (x * 2).grad_fn.next_functions[0][0]
    reference = weakref.ref(x)
    del x, leaf
    assert reference() is None


def test_saved_by_name(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    assert (x * x).grad_fn._saved_self.tolist() == [1.0, 2.0]
    with pytest.raises(AttributeError):
        _ = (x * x).grad_fn._saved_nonsense


def test_gradient_edges(lib: Any) -> None:
    graph = lib.autograd.graph
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn
    assert edge.output_nr == 0
    z = (y * 3).sum()
    del y
    (g,) = lib.autograd.grad(z, edge)
    assert g.tolist() == [3.0, 3.0]
    leaf = graph.get_gradient_edge(x)
    assert lib.autograd.grad((x * 5).sum(), leaf)[0].tolist() == [5.0, 5.0]
    lib.autograd.backward(graph.get_gradient_edge(x * 4), lib.ones(2))
    assert x.grad.tolist() == [4.0, 4.0]
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.get_gradient_edge(lib.ones(1))


@pytest.mark.parametrize("mode", ["all", "any"])
def test_multi_grad_hooks(lib: Any, mode: str) -> None:
    seen: list[Any] = []
    tensors = [lib.ones(1, requires_grad=True) for _ in range(3)]
    a, b, c = tensors

    def hook(grads: Any) -> None:
        if mode == "all":
            seen.append([None if g is None else g.item() for g in grads])
        else:
            seen.append("any")

    handle = lib.autograd.graph.register_multi_grad_hook(tensors, hook, mode=mode)
    (a * 2 + b * 3).sum().backward()
    (a * 2 + b * 3 + c * 4).sum().backward()
    handle.remove()
    (a * 2).sum().backward()
    expected = [[2.0, 3.0, None], [2.0, 3.0, 4.0]] if mode == "all" else ["any", "any"]
    assert seen == expected


def test_saved_tensors_hooks(lib: Any) -> None:
    log: list[Any] = []
    x = lib.tensor([2.0, 3.0], requires_grad=True)

    def pack(t: Any) -> Any:
        log.append(t.tolist())
        return t.clone()

    with lib.autograd.graph.saved_tensors_hooks(pack, lambda t: t * 10):
        y = x.exp() * x
    assert [2.0, 3.0] in log
    z = y + x * x
    (g,) = lib.autograd.grad(z.sum(), x)
    e = x.detach().exp()
    right = 10 * e + 10 * (x.detach() * 10 * e) + 2 * x.detach()
    assert all(abs(u - v) < 1e-2 for u, v in zip(g.tolist(), right.tolist(), strict=True))


def test_saved_tensors_hooks_keep_the_graph(lib: Any) -> None:
    x = lib.tensor([2.0, 3.0], requires_grad=True)
    with lib.autograd.graph.saved_tensors_hooks(lambda t: [t], lambda packed: packed[0]):
        y = (x * x * x).sum()
    (g,) = lib.autograd.grad(y, x, create_graph=True)
    assert lib.autograd.grad(g.sum(), x)[0].tolist() == [12.0, 18.0]


def test_saved_tensors_hooks_errors(lib: Any) -> None:
    graph = lib.autograd.graph
    x = lib.tensor([2.0], requires_grad=True)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: 5):
        y = x * x
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor"):
        y.sum().backward()
    writes = graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t)
    with pytest.raises(RuntimeError, match="in place"), writes:
        x.clone() * x.clone()
    harmless = graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    disabled = graph.disable_saved_tensors_hooks("not here")
    with disabled, pytest.raises(RuntimeError, match="not here"), harmless:
        pass
    with graph.save_on_cpu():
        y = x * x
    y.sum().backward()


def test_increment_version(lib: Any) -> None:
    x = lib.tensor([2.0], requires_grad=True)
    y = x + 0
    z = y * y
    lib.autograd.graph.increment_version(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_what_hooks_return_makes_no_graph(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)
    y = x.exp()
    y.register_hook(lambda g: x)
    x.register_hook(lambda g: x)
    (y * x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    assert not x.grad.requires_grad
