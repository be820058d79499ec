"""``x[...]`` and ``x[...] = value``: random indices against PyTorch, and what NumPy agrees with."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import pytest

import antorcha
from tests.ops.parity import needs_torch

SHAPES = [(), (3,), (2, 3), (3, 4, 2), (2, 1, 3, 2), (0, 3), (4, 3, 2)]
INDEX_SHAPES = [(2,), (1,), (2, 2), (2, 1), (1, 2), (0,)]


def random_item(pick: random.Random, n: int, rest: tuple[int, ...]) -> tuple[Any, ...]:
    """One item of an index, as (kind, value)."""
    kind = pick.choices(
        ["int", "slice", "none", "ellipsis", "flag", "list", "array", "tensor", "mask", "mask2"],
        [22, 23, 8, 5, 4, 10, 8, 12, 4, 4],
    )[0]
    if kind == "int":
        return kind, pick.randint(-n - (pick.random() < 0.03), max(n - 1, 0))
    if kind == "slice":
        ends = [pick.choice([None, 0, 1, 2, -1, -2, 5, n]) for _ in range(2)]
        return kind, slice(*ends, pick.choice([None, 1, 2, 3]))
    if kind == "flag":
        return kind, pick.random() < 0.7
    if kind in ("list", "array", "tensor"):
        shape = pick.choice(INDEX_SHAPES)
        values = [pick.randint(-n, n - 1) if n else 0 for _ in range(int(np.prod(shape)))]
        return kind, np.array(values, np.int64).reshape(shape), pick.choice(["int64", "int32"])
    if kind.startswith("mask"):
        shape = (n,) if kind == "mask" else rest[:2]
        return "mask", np.array([pick.random() < 0.5 for _ in range(int(np.prod(shape)))]).reshape(
            shape
        )
    return (kind,)


def random_index(pick: random.Random) -> tuple[tuple[int, ...], list[Any], bool]:
    shape = pick.choice(SHAPES)
    items: list[Any] = []
    dim = 0
    for _ in range(pick.randint(0, len(shape) + 1)):
        item = random_item(pick, shape[dim] if dim < len(shape) else 2, shape[dim:])
        if item[0] == "ellipsis" and any(i[0] == "ellipsis" for i in items):
            continue
        items.append(item)
        if item[0] == "mask":
            dim += item[1].ndim
        elif item[0] not in ("none", "ellipsis", "flag"):
            dim += 1
    return shape, items, len(items) == 1 and pick.random() < 0.7


def spell(lib: Any, item: tuple[Any, ...]) -> Any:
    kind = item[0]
    if kind in ("none", "ellipsis"):
        return None if kind == "none" else ...
    if kind == "tensor":
        return lib.tensor(item[1], dtype=getattr(lib, item[2]))
    if kind == "mask":
        return lib.tensor(item[1])
    return item[1].tolist() if kind == "list" else item[1]


def attempt(lib: Any, array: Any, order: list[int], items: Any, alone: bool) -> dict[str, Any]:
    """Reads, differentiates twice, writes: what came of each."""
    back = list(np.argsort(order))
    x = lib.tensor(array.transpose(order).copy(), requires_grad=True)
    index = tuple([spell(lib, item) for item in items])
    if alone:
        index = index[0]
    made: dict[str, Any] = {}
    try:
        y = (x * 1).permute(back) if order else x * 1
        z = y[index]
    except Exception as error:
        return {"error": error}
    made["value"] = z.detach().numpy().copy()
    made["strides"] = z.stride() if z.numel() else None
    made["view"] = z._base is not None
    made["node"] = type(z.grad_fn).__name__.replace("Alias", "Slice")
    weight = lib.tensor(np.cos(np.arange(z.numel())).reshape(z.shape))
    (g,) = lib.autograd.grad((z * z * weight).sum(), x, create_graph=True)
    made["gradient"] = g.detach().numpy().copy()
    made["second"] = lib.autograd.grad((g * g).sum(), x)[0].numpy().copy()
    value = lib.tensor(0.5, dtype=lib.float64, requires_grad=True)
    y = (x * 1).permute(back) if order else x * 1
    y[index] = value * 2
    made["written"] = y.detach().numpy().copy()
    weight = lib.tensor(np.cos(np.arange(y.numel())).reshape(y.shape))
    found = lib.autograd.grad((y * y * weight).sum(), [x, value], allow_unused=True)
    made["written gradient"] = [0.0 if f is None else f.numpy().copy() for f in found]
    return made


@needs_torch
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.filterwarnings("ignore")
def test_random_indices(seed: int) -> None:
    import torch

    pick = random.Random(seed)
    for _ in range(60):
        shape, items, alone = random_index(pick)
        array = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
        order = list(range(len(shape)))
        pick.shuffle(order)
        wanted = attempt(torch, array, order, items, alone)
        found = attempt(antorcha, array, order, items, alone)
        what = f"shape {shape}, order {order}, index {items}: "
        if "error" in wanted:
            assert isinstance(found.get("error"), type(wanted["error"])), what + str(found)
            continue
        if "error" in found and 0 in wanted["value"].shape:
            continue  # PyTorch does not look at indices of an empty result
        assert "error" not in found, what + repr(found)
        repeated = any(i[0] in ("list", "array", "tensor") for i in items)
        for name, value in wanted.items():
            if name in ("strides", "view", "node"):
                if name == "strides" and repeated and 1 in shape:
                    continue  # PyTorch leaves strides of size-1 dims as its iterator has them
                assert found[name] == value, what + name
            elif name == "written gradient":
                continue_ok = repeated  # the value's gradient at a place written twice is anyone's
                if not continue_ok:
                    for a, b in zip(found[name], value, strict=True):
                        np.testing.assert_allclose(a, b + np.zeros_like(a), err_msg=what + name)
            else:
                np.testing.assert_allclose(found[name], value, err_msg=what + name)


@pytest.mark.parametrize(
    "index",
    [
        0, -1, slice(1, None), (slice(None), 1), (Ellipsis, 0), (None, 1), (slice(0, 3, 2), None),
        [0, 2], ([0, 1], [1, 2]), (slice(None), [2, 0, 0]), np.array([[0, 1], [2, 0]]),
        np.arange(12).reshape(3, 4) % 3 == 0, (np.array([True, False, True]), slice(None, 2)),
        np.array([True, False, True]),
    ],
)  # fmt: skip
def test_as_numpy(index: Any) -> None:
    array = np.arange(12.0).reshape(3, 4)
    x = antorcha.tensor(array)
    for _ in range(2):  # the second time by the plan
        assert x[index].tolist() == array[index].tolist()
    array[index] = -1
    x[index] = -1
    assert x.tolist() == array.tolist()
    array[index] *= 3
    x[index] *= 3
    assert x.tolist() == array.tolist()


def test_true_is_not_one() -> None:
    x = antorcha.arange(6).reshape(2, 3)
    assert x[1].tolist() == [3, 4, 5]
    assert x[True].tolist() == [x.tolist()]
    assert x[1, 1].item() == 4
    assert x[True, 1].tolist() == [[3, 4, 5]]
    assert x[(1,)].tolist() == [3, 4, 5]


def test_a_tuple_is_not_a_slice() -> None:
    x = antorcha.arange(12).reshape(3, 4)
    assert x[0:2, 1].tolist() == [1, 5]
    assert x[(0, 2), 1].tolist() == [1, 9]


def test_assignment() -> None:
    x = antorcha.zeros(2, 3)
    x[0] = antorcha.ones(1, 1, 3)
    x[:, 1] = np.array([5.0, 6.0])
    x[1, 2] = 7
    assert x.tolist() == [[1, 5, 1], [0, 6, 7]]
    x[x > 5] = 0
    x[...] += 1
    assert x.tolist() == [[2, 6, 2], [1, 1, 1]]
    with pytest.raises(TypeError, match="can't assign a list"):
        x[0] = [1, 2, 3]
    with pytest.raises(RuntimeError):
        x[0] = antorcha.ones(4)
    with pytest.raises(RuntimeError, match="dtypes match"):
        x[antorcha.tensor([0])] = antorcha.tensor([[1, 2, 3]])
    leaf = antorcha.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf[0] = 1


@pytest.mark.parametrize(
    ("index", "kind"),
    [
        (3, IndexError), ((0, 0, 0), IndexError), (1.0, IndexError), ("a", TypeError),
        (slice(None, None, -1), ValueError), ([5], IndexError), (np.array([True]), IndexError),
        (np.array([1.5]), IndexError), (([0, 1], [0, 1, 2]), IndexError),
    ],
)  # fmt: skip
def test_refusals(index: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        antorcha.zeros(2, 3)[index]


def test_byte_masks_warn() -> None:
    x = antorcha.arange(3)
    with pytest.warns(UserWarning, match="uint8"):
        assert x[antorcha.tensor([1, 0, 1], dtype=antorcha.uint8)].tolist() == [0, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x[antorcha.tensor([True, False, True])].tolist() == [0, 2]


@needs_torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "index",
    [
        [0, slice(1, 2)], [0, None], [slice(0, 2)], [None], [..., 1], [0, ...],
        [slice(0, 1), [0, 1]],
        [[0, 1], [1, 2]], [0.5], [0, 1.5], [-0.5, 2], [], [True, False, True], [0], [-1, 0],
    ],
    ids=str,
)  # fmt: skip
def test_lists_that_stand_for_tuples_or_hold_floats(index: Any) -> None:
    import torch

    results = []
    for lib in (antorcha, torch):
        x = lib.arange(12.0).reshape(3, 4)
        found = x[index]
        x[index] = 50
        results.append((found.tolist(), tuple(found.shape), found._is_view(), x.tolist()))
    assert results[0] == results[1]
