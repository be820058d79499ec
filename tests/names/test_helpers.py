"""Checks, symbolic numbers, type_as, lists of tensors, and helpers of private modules."""

from __future__ import annotations

from typing import Any

import pytest

import antorcha as torch
from antorcha import _tensor_str, _utils


def test_checks_raise_their_class() -> None:
    for check, kind in (
        (torch._check, RuntimeError), (torch._check_index, IndexError),
        (torch._check_value, ValueError), (torch._check_type, TypeError),
        (torch._check_not_implemented, NotImplementedError),
    ):  # fmt: skip
        check(True, lambda: 1 / 0)
        with pytest.raises(kind, match="so it is"):
            check(False, lambda: "so it is")
        with pytest.raises(kind, match="Expected cond to be True"):
            check(False)
        with pytest.raises(TypeError, match="cond must be a bool"):
            check(torch.tensor(True))
    torch._check_tensor_all(torch.tensor([True, True]))
    with pytest.raises(RuntimeError):
        torch._check_tensor_all(torch.tensor([True, False]))
    torch._assert_async(torch.tensor(1))
    with pytest.raises(RuntimeError, match="single nonzero value"):
        torch._assert_async(torch.tensor(0))


def test_nothing_is_symbolic() -> None:
    assert not isinstance(torch.ones(2).shape[0], torch.SymInt)
    with pytest.raises(NotImplementedError, match="plain ints"):
        torch.SymInt(3)
    with pytest.raises(TypeError, match="a number is needed"):
        torch.sym_max("a", 1)


def test_type_as_converts_with_a_gradient() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.type_as(torch.ones(1, dtype=torch.float64))
    y.sum().backward()
    assert y.dtype is torch.float64
    assert x.grad.dtype is torch.float32
    assert x.type_as(x) is x
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        x.type_as(3)


def test_python_functions_replace_elements() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    assert x.T.apply_(lambda v: v * 2) is not None
    assert x.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
    x.map_(torch.tensor([1.0, 2.0, 3.0]), lambda a, b: a + b)
    assert x[1].tolist() == [7.0, 10.0, 13.0]
    with pytest.raises(RuntimeError, match=r"Can't call apply_\(\)"):
        torch.ones(1, requires_grad=True).apply_(abs)


@pytest.mark.oracle
def test_ops_over_lists_give_pytorchs_numbers() -> None:
    theirs = pytest.importorskip("torch")

    def run(torch: Any) -> list[Any]:
        a = [torch.tensor([1.0, 2.0]), torch.tensor([[3.0], [0.5]])]
        b = [x * 2 + 1 for x in a]
        found = []
        for name, args, kwargs in (
            ("add", (b,), {"alpha": 2}), ("add", (1,), {}), ("sub", (b,), {}),
            ("mul", ([2, 3],), {}), ("div", (b,), {}), ("pow", (2,), {}),
            ("sqrt", (), {}), ("neg", (), {}), ("addcmul", (b, b), {"value": 0.5}),
            ("addcdiv", (b, b, [1.0, 2.0]), {}),
            ("addcmul", (b, b, torch.tensor([1.0, 2.0])), {}), ("lerp", (b, 0.25), {}),
            ("maximum", (1.5,), {}), ("minimum", (b,), {}), ("clamp_max", ([1, 2],), {}),
            ("maximum", ([1.5, 2.0],), {}), ("reciprocal", (), {}), ("abs", (), {}),
        ):  # fmt: skip
            new = getattr(torch, f"_foreach_{name}")(a, *args, **kwargs)
            copies = [x.clone() for x in a]
            assert getattr(torch, f"_foreach_{name}_")(copies, *args, **kwargs)[0] is copies[0]
            found += [[x.tolist() for x in new], [x.tolist() for x in copies]]
        found += [[x.tolist() for x in torch._foreach_norm(a)],
                  [x.tolist() for x in torch._foreach_norm(a, 1)],
                  [x.tolist() for x in torch._foreach_pow(2, a)]]  # fmt: skip
        torch._foreach_copy_(a, b)
        torch._foreach_zero_(b)
        return [*found, [x.tolist() for x in (*a, *b)]]

    for ours, expected in zip(run(torch), run(theirs), strict=True):
        for one, other in zip(ours, expected, strict=True):
            torch.testing.assert_close(torch.tensor(one), torch.tensor(other))


def test_lists_of_other_lengths_do_not_go_along() -> None:
    a = [torch.ones(1), torch.ones(1)]
    with pytest.raises(RuntimeError, match="same number of tensors, got 2 and 1"):
        torch._foreach_add(a, a[:1])
    with pytest.raises(RuntimeError, match="at least one tensor"):
        torch._foreach_neg([])


def test_helpers_of_private_modules() -> None:
    weights = [torch.ones(2, 2), torch.zeros(3)]
    flat = _utils._flatten_dense_tensors(weights)
    for one, other in zip(_utils._unflatten_dense_tensors(flat, weights), weights, strict=True):
        assert torch.equal(one, other)
    assert [len(g) for g in _utils._take_tensors([*weights, torch.ones(9)], 30)] == [2, 1]
    try:
        raise KeyError("k")
    except KeyError:
        wrapper = _utils.ExceptionWrapper(where="in a thread")
    with pytest.raises(KeyError, match="Caught KeyError in a thread"):
        wrapper.reraise()
    x = torch.arange(3.0)
    assert _tensor_str._tensor_str(x, 5) == "[0., 1., 2.]"
    assert _tensor_str._add_suffixes("T([0.]", ["a=1", "b=2"], 2, False) == "T([0.], a=1, b=2)"
    assert _tensor_str.PRINT_OPTS.linewidth == 80
    assert torch._C._nn._parse_to("cpu", torch.float16)[1] is torch.float16
