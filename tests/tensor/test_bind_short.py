"""The short cuts behind methods and functions give what the general way gives."""

import types

import pytest

import antorcha as torch


@pytest.mark.parametrize("args", [(0, 1), (0.25, 0.75), (0, 0.5), (1, 0)])
def test_numbers_of_a_kernel(args):
    x = torch.tensor([-1.0, 0.1, 0.4, 0.6, 2.0], requires_grad=True)
    first = torch.clamp(x, min=args[0], max=args[1])
    for _ in range(4):
        y = x.clamp(*args)
        assert y.tolist() == first.tolist()
        (g,) = torch.autograd.grad(y.sum(), x)
        (want,) = torch.autograd.grad(first.sum(), x, retain_graph=True)
        assert g.tolist() == want.tolist()
    other = args[0] - 1, args[1] + 1  # of the same types: the same plan, other numbers
    assert x.clamp(*other).tolist() == torch.clamp(x, min=other[0], max=other[1]).tolist()


def test_true_is_not_one_where_it_matters():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    for _ in range(3):
        assert x.sum(1, True).shape == (2, 1)
        assert x.sum(1, False).shape == (2,)
        assert x.sum((0, 1)).item() == 10
        assert (x + True).tolist() == (x + 1).tolist()
        assert (torch.tensor([1]) + 1).dtype == torch.int64
        assert (torch.tensor([1]) + 1.0).dtype == torch.float32


def test_zero_divisors_are_refused_however_often_others_were_not():
    for divide in (
        lambda x, n: x // n,
        lambda x, n: x % n,
        lambda x, n: torch.fmod(x, n),
        lambda x, n: torch.div(x, n, rounding_mode="trunc"),
        lambda x, n: x.floor_divide_(n),
        lambda x, n: x.remainder_(n),
    ):
        for _ in range(4):
            divide(torch.arange(5), 2)
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            divide(torch.arange(5), 0)


def test_functions_and_methods_agree():
    a, b = torch.rand(4), torch.rand(4)
    for _ in range(3):
        assert torch.add(a, b).tolist() == a.add(b).tolist() == (a + b).tolist()
        assert torch.exp(a).tolist() == a.exp().tolist()
        assert torch.add(a, b, alpha=2).tolist() == (a + 2 * b).tolist()
        out = torch.empty(4)
        assert torch.exp(a, out=out) is out
        assert torch.sum(a, 0).item() == a.sum().item()
    for call in (lambda: torch.add(a), lambda: torch.exp(), lambda: torch.exp("a")):
        for _ in range(2):
            with pytest.raises(TypeError):
                call()
    with pytest.raises(TypeError):
        a + "b"
    assert "KeyError" not in error_chain(lambda: torch.exp("a"))


def error_chain(call):
    """The classes of the errors that a traceback would show."""
    try:
        call()
    except Exception as error:
        names = []
        each = error
        while each is not None:
            names.append(type(each).__name__)
            each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
        return names
    return []


def test_what_is_no_operand_is_part_of_the_plan():
    x = torch.tensor([2.26, 0.65])
    for _ in range(3):
        assert torch.polygamma(1, x).tolist() != torch.polygamma(2, x).tolist()
        w = torch.nn.Parameter(torch.rand(3, 2))
        torch.nn.functional.linear(x[None], w).sum().backward()
        assert torch.allclose(w.grad, x.expand(3, 2))


def test_methods_are_named_as_users_call_them():
    second = {"ndimension": "dim", "nelement": "numel"}  # one function, two methods
    for name, fn in vars(torch.Tensor).items():
        if isinstance(fn, types.FunctionType):
            assert fn.__name__ == second.get(name, name)
