"""Binding by types that have been seen gives what binding in full gives, and refuses the same."""

import itertools

import pytest

import antorcha as torch
from antorcha.ops.kinds.record import REGISTRY

X = torch.rand(2, 3, 4)
W = torch.nn.Parameter(torch.rand(2, 3, 4))
VALUES = [X, W, 1, 0, True, False, 1.0, 0.5, None, (0, 1), (1.0, 2), [0, 1], "mean", torch.float64,
          "float64", object(), (X,), torch.device("cpu"), 1j, ()]  # fmt: skip
OPS = ["sum", "mean", "add", "mul", "softmax", "where", "clamp", "view", "permute", "transpose",
       "matmul", "full_layout", "cat", "amax", "conv_forward", "cumsum", "roll", "pow"]  # fmt: skip


def outcome(bind, args, kwargs):
    """What binding gives, or the class of its error."""
    try:
        found = bind(args, kwargs)
    except Exception as error:
        return type(error)
    return [list(part) for part in found[1:4]] if found is not None else None


@pytest.mark.parametrize("name", [name for name in OPS if name in REGISTRY])
def test_same_as_bind(name):
    signature = REGISTRY[name].signature
    tried = 0
    for count in (0, 1, 2, 3):
        for args in itertools.product(VALUES, repeat=count):
            if count == 3 and args[0] is not X:
                continue
            full = outcome(signature.bind, args, {})
            for _ in range(2):  # the second time by its recipe
                quick = outcome(signature.quick_bind, args, {})
                if quick is not None and not isinstance(full, type):
                    assert len(quick) == len(full)
                    for a, b in zip(quick, full, strict=True):
                        assert len(a) == len(b)
                        assert all(p is q or (type(p) is type(q) and p == q)
                                   for p, q in zip(a, b, strict=True))  # fmt: skip
                    tried += 1
    assert tried or name in ("view", "full_layout", "cat", "conv_forward")


def test_equal_values_of_other_types_are_not_confused():
    x = torch.arange(24.0).reshape(2, 3, 4)
    for _ in range(3):
        assert torch.sum(x, (0, 1)).shape == (4,)
        assert torch.sum(x, dim=1, keepdim=True).shape == (2, 1, 4)
        with pytest.raises(TypeError):
            torch.sum(x, (0.0, 1.0))
        with pytest.raises(TypeError):
            torch.sum(x, 1.0)
        assert x.view(4, 6).shape == (4, 6)
        with pytest.raises(TypeError):
            x.view(4.0, 6)
        assert (torch.tensor([3]) * 1).dtype == torch.int64
        assert torch.mul(torch.tensor([3]), 1.0).dtype == torch.float32
        assert torch.mul(torch.tensor([True]), True).dtype == torch.bool
        assert torch.mul(torch.tensor([True]), 1).dtype == torch.int64
        with pytest.raises(TypeError):
            torch.sum(x, 1, axes=2)
        with pytest.raises(TypeError):
            torch.sum(x, 1, dim=1)


def test_refused_values_stay_refused():
    for _ in range(3):
        for bad in ("no", object(), [0.5], {}, X):
            with pytest.raises((TypeError, ValueError, RuntimeError)):
                torch.transpose(X, bad, 1)
        with pytest.raises(IndexError):
            torch.sum(X, 7)


BOOLS_AS_INTS = [
    "x.sum(V)", "x.sum(dim=V)", "x.sum((V,))", "x.mean(V)", "x.argmax(V)", "x.amax(V)",
    "torch.softmax(x, V)", "x.cumsum(V)", "torch.cat([x, x], V)", "torch.cat([x, x], dim=V)",
    "torch.zeros(V)", "torch.zeros(V, 2)", "torch.zeros((V, 2))", "torch.rand(V)", "torch.eye(V)",
    "x.view(V, 8)", "x.view((V, 8))", "x.reshape(V, -1)", "x.expand(V, 2, 4)", "x.repeat(V, 2)",
    "x.unsqueeze(V)", "x.transpose(0, V)", "x.permute(V, 0)", "x.movedim(V, 0)",
    "x.narrow(1, V, 1)", "x.select(0, V)", "x.index_select(V, torch.tensor([0]))", "x.topk(V)",
    "x.chunk(V)", "x.split(V)", "x.roll(V, 0)", "x.tril(V)", "x.size(V)", "x.stride(V)",
    "x.new_zeros(V, 2)", "torch.randint(V, (2,))", "torch.full((V,), 2.0)",
    "torch.stack([x, x], V)",
]  # fmt: skip


@pytest.mark.parametrize("call", BOOLS_AS_INTS)
def test_a_bool_is_no_int(call: str) -> None:
    """Nor does it find the plan of 1, which is the same key to Python."""
    names = {"torch": torch, "x": torch.arange(8.0).reshape(2, 4)}
    for _ in range(3):
        eval(call.replace("V", "1"), names)
    for _ in range(2):
        with pytest.raises(TypeError, match="bool"):
            eval(call.replace("V", "True"), names)
    eval(call.replace("V", "1"), names)
