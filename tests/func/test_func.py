"""``torch.func``: transforms nest, keep the caller's graph apart, and agree with PyTorch's."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import antorcha as torch

F = torch.func


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [leaf for each in value for leaf in leaves(each)]
    return [] if callable(value) and not hasattr(value, "shape") else [value]


def cases(torch: Any) -> Any:
    """(name, result) of every transform, on the same numbers in both libraries."""
    F = torch.func
    x, y = torch.tensor([0.3, -1.2, 2.0]), torch.tensor([1.5, 0.2, -0.7])
    batch = torch.arange(12.0).reshape(4, 3) / 7

    def f(x: Any, y: Any) -> Any:
        return (x.sin() * y**2).sum()

    yield "grad", F.grad(f)(x, y)
    yield "argnums", F.grad(f, argnums=(1, -2))(x, y)
    yield "aux", F.grad(lambda x: (x.sum(), {"x": x * 2}), has_aux=True)(x)
    yield "nested", F.grad(F.grad(F.grad(lambda x: x**4)))(torch.tensor(2.0))
    yield "tree", F.grad_and_value(lambda p: (p["a"] * p["b"][0]).sum())({"a": x, "b": [y]})
    yield "hessian", F.hessian(f, argnums=(0, 1))(x, y)
    yield "jacrev", F.jacrev(lambda x: {"o": x * 2, "p": (x.sum(), x[:2] ** 2)})(x)
    yield "jacfwd", F.jacfwd(lambda x, y: (x * y,), argnums=1)(x, y)
    yield "jvp", F.jvp(lambda x: (x**2, x.sum()), (x,), (y,))
    value, fn = F.vjp(lambda x, y: (x * y, y.sum()), x, y)
    yield "vjp", (value, fn((x, torch.tensor(1.0))))
    yield "linearize", F.linearize(torch.exp, x)[1](y)
    yield "vmap", torch.vmap(f)(batch, batch + 1)
    yield "vmap of grad", F.vmap(F.grad(f), in_dims=(0, None))(batch, y)
    yield "vmap of jacrev", F.vmap(F.jacrev(torch.sin))(batch)
    yield "grad of vmap", F.grad(lambda x: F.vmap(lambda v: v.sin())(x).sum())(x)
    yield "outer product", F.vmap(F.vmap(torch.mul, (None, 0)), (0, None))(x, y)
    both = F.vmap(lambda p: (p["a"] + 1, p["a"].sum()), in_dims=({"a": 1},), out_dims=(1, 0))
    yield "dims", both({"a": batch})


@pytest.mark.oracle
def test_every_transform_gives_pytorchs_numbers() -> None:
    for (name, ours), (_, theirs) in zip(
        cases(torch), cases(importlib.import_module("torch")), strict=True
    ):
        for a, b in zip(leaves(ours), leaves(theirs), strict=True):
            assert tuple(a.shape) == tuple(b.shape), name
            assert torch.allclose(a, torch.tensor(b.tolist()), atol=1e-6), name


def test_the_callers_graph_goes_on_through_a_transform() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    g = F.grad(lambda x: (x**3).sum())(x)
    g.sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]
    w = torch.tensor(2.0, requires_grad=True)
    assert F.grad(lambda x: x * x * w)(torch.tensor(3.0)).requires_grad
    assert not F.grad(lambda x: x * x)(torch.tensor(3.0)).requires_grad
    with torch.no_grad():
        assert not F.grad(lambda x: (x**3).sum())(x).requires_grad


def test_a_module_as_a_function_of_its_parameters() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    data, target = torch.randn(5, 3), torch.randn(5, 1)
    params = {k: v.detach() for k, v in net.named_parameters()}

    def loss(params: Any, x: Any, t: Any) -> Any:
        return ((F.functional_call(net, params, (x,)) - t) ** 2).sum()

    per_example = F.vmap(F.grad(loss), (None, 0, 0))(params, data, target)
    ((net(data) - target) ** 2).sum().backward()
    for name, param in net.named_parameters():
        assert torch.allclose(per_example[name].sum(0), param.grad, atol=1e-5)
    stacked, buffers = F.stack_module_state([net, net])
    made = F.vmap(lambda p, b, x: F.functional_call(net, (p, b), x), (0, 0, None))(
        stacked, buffers, data
    )
    assert torch.allclose(made[1], net(data), atol=1e-6)
    assert stacked["0.weight"].is_leaf
    assert stacked["0.weight"].requires_grad


def test_random_numbers_in_vmap() -> None:
    x = torch.zeros(3)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        F.vmap(lambda x: x + torch.rand(()))(x)
    same = F.vmap(lambda x: x + torch.rand(()), randomness="same")(x)
    assert same[0] == same[1] == same[2]
    different = F.vmap(lambda x: x + torch.rand(()), randomness="different")(x)
    assert different[0] != different[1]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: F.grad(lambda x: x)(x), RuntimeError, "use the vjp or jacrev APIs"),
        (lambda x: F.grad(torch.sum, argnums=3)(x), RuntimeError, "only 1 positional inputs"),
        (lambda x: F.grad(torch.sum, argnums=(0, 0))(x), RuntimeError, "must be unique"),
        (lambda x: F.grad(torch.sin)(1.0), ValueError, "must be Tensor"),
        (lambda x: F.vjp(lambda x: x.long(), x), RuntimeError, "floating-point or complex"),
        (lambda x: F.vjp(torch.sin, x)[1]((x,)), RuntimeError, "pytree structure"),
        (lambda x: F.vmap(lambda x: 1)(x), ValueError, "must only return Tensors"),
        (lambda x: F.vmap(torch.mul)(x, x[:2]), ValueError, "same size in the mapped"),
        (lambda x: F.vmap(torch.mul, (0, 1))(x, x), ValueError, "dimensionality 1"),
        (lambda x: F.vmap(torch.sin)(3.0), ValueError, "cannot vmap over non-Tensor"),
        (lambda x: F.vmap(torch.mul, (0,))(x, x), ValueError, "not compatible"),
        (lambda x: F.functionalize(torch.sin), NotImplementedError, "functionalize"),
    ],
)
def test_what_is_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(torch.ones(3))


@pytest.mark.oracle
def test_what_goes_into_a_map_and_comes_out() -> None:
    """None where there is no batch, on either side, and results that are no tensors."""
    oracle = pytest.importorskip("torch")

    def cases(lib: Any) -> list[Any]:
        ones, vmap = lib.ones(3, 2), lib.func.vmap
        return [
            lambda: vmap(lambda x: (x, 3.0), out_dims=(0, None))(ones)[1],
            lambda: vmap(lambda x: (x, lib.ones(2)), out_dims=(0, None))(ones)[1].shape,
            lambda: vmap(lambda x, y: x, in_dims=(0, None))(ones, None).shape,
            lambda: vmap(lambda x: (x.sum(), None))(ones),
            lambda: vmap(lambda x: x, out_dims="0")(ones),
            lambda: lib.func.grad(lambda x, n: x.sum())(ones, None).tolist(),
        ]

    for mine, theirs in zip(cases(torch), cases(oracle), strict=True):
        try:
            wanted: Any = theirs()
        except Exception as error:
            with pytest.raises(type(error)):
                mine()
        else:
            assert mine() == wanted
