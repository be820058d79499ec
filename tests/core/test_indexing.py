"""Index expressions, compared with NumPy and PyTorch on random tensors."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np
import pytest

from antorcha.core import dtypes, indexing
from antorcha.core.indexing import basic_index, plan_index
from antorcha.core.shapes import contiguous_strides
from antorcha.errors import ArgumentError, OutOfRange, ValueRangeError


class Duck:
    """All that the planner may ask of a tensor, over PyTorch's."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.shape = tuple(tensor.shape)
        self.dtype = dtypes.by_name(str(tensor.dtype))

    def __len__(self) -> int:
        return len(self.tensor)

    def __index__(self) -> int:
        return int(self.tensor.__index__())

    def __bool__(self) -> bool:
        return bool(self.tensor)


def ducks(torch: Any, index: Any) -> Any:
    """The index with every tensor in it replaced by its duck."""
    if isinstance(index, tuple):
        return tuple(ducks(torch, item) for item in index)
    return Duck(index) if isinstance(index, torch.Tensor) else index


def random_slice(rng: random.Random) -> slice:
    ends = [None, 0, 1, 2, 3, 7, -1, -2, -9]
    return slice(rng.choice(ends), rng.choice(ends), rng.choice([None, 1, 1, 2, 3, 50]))


def random_item(rng: random.Random) -> Any:
    choice = rng.randrange(8)
    if choice < 3:
        return rng.choice([0, 0, 1, 2, -1, -2, -3])
    if choice < 6:
        return slice(None) if rng.random() < 0.3 else random_slice(rng)
    return None if choice == 6 else Ellipsis


def random_basic(rng: random.Random, ndim: int) -> Any:
    items = [random_item(rng) for _ in range(rng.randrange(ndim + 2))]
    while items.count(Ellipsis) > 1:
        items.remove(Ellipsis)
    if len(items) == 1 and rng.random() < 0.5:
        return items[0]
    return tuple(items)


def array_and_layout(rng: random.Random) -> tuple[Any, Any]:
    shape = tuple(rng.choice((1, 2, 3, 4)) for _ in range(rng.randrange(5)))
    if rng.random() < 0.1 and shape:
        shape = (0, *shape[1:])
    base = np.arange(int(np.prod(shape)) + 5)
    return base, (shape, contiguous_strides(shape), 5)


def strided(base: Any, shape: Any, strides: Any, offset: int) -> Any:
    """A view of `base` by element strides, never reading outside for empty shapes."""
    if 0 in shape:
        return np.empty(shape, base.dtype)
    bytes_strides = [stride * base.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(base[offset:], shape, bytes_strides)


def test_basic_against_numpy() -> None:
    rng = random.Random(0)
    compared = 0
    for _ in range(8000):
        base, layout = array_and_layout(rng)
        index = random_basic(rng, len(layout[0]))
        array = strided(base, *layout)
        try:
            expected = array[index]
        except IndexError:
            with pytest.raises(OutOfRange):
                basic_index(*layout, index)
            with pytest.raises(OutOfRange):
                plan_index(*layout, index)
            continue
        ours = basic_index(*layout, index)
        assert ours is not None
        np.testing.assert_array_equal(strided(base, *ours), expected)
        plan = plan_index(*layout, index)
        assert plan[:3] == ours
        assert not plan.advanced
        compared += 1
    assert compared > 3000


def run_steps(tensor: Any, steps: Any) -> Any:
    """The steps of a plan, as the ops of PyTorch that they name."""
    for name, *arguments in steps:
        if name == "slice":
            dim, start, stop, step = arguments
            tensor = tensor[(slice(None),) * dim + (slice(start, stop, step),)]
        elif name == "alias":
            tensor = tensor.view(tensor.shape)
        else:
            tensor = getattr(tensor, name)(*arguments)
    return tensor


STEP_NODE = {
    "select": "SelectBackward0",
    "slice": "SliceBackward0",
    "unsqueeze": "UnsqueezeBackward0",
    "alias": "AliasBackward0",
}


def test_basic_against_pytorch(torch: Any) -> None:
    """Layouts bit for bit (also of empty results), and the names of the autograd nodes."""
    rng = random.Random(1)
    for _ in range(6000):
        base, layout = array_and_layout(rng)
        index = random_basic(rng, len(layout[0]))
        tensor = torch.from_numpy(base).double().requires_grad_().as_strided(*layout)
        try:
            expected = tensor[index]
        except IndexError:
            with pytest.raises(OutOfRange):
                basic_index(*layout, index)
            continue
        ours = basic_index(*layout, index)
        theirs = (tuple(expected.shape), expected.stride(), expected.storage_offset())
        assert ours == theirs, (layout, index)
        plan = plan_index(*layout, index)
        stepped = run_steps(tensor, plan.steps)
        # `stop` is where the slice ends, not what was written: only offsets of empties may differ.
        assert stepped.shape == expected.shape
        assert stepped.stride() == expected.stride()
        assert STEP_NODE[plan.steps[-1][0]] == expected.grad_fn.name(), (layout, index)


def random_advanced(rng: random.Random, torch: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A tuple with lists, index tensors, masks and bools among basic items."""
    items: list[Any] = []
    dim = 0
    common = rng.choice([1, 2, 3])
    used_ellipsis = False
    while dim < len(shape) and len(items) < 6:
        choice = rng.randrange(11)
        size = shape[dim]
        if choice < 4 and size:
            values = [rng.randrange(-size, size) for _ in range(rng.choice([1, common]))]
            items.append(values if choice == 0 else torch.tensor(values))
            dim += 1
        elif choice == 4:
            span = min(rng.choice([1, 2]), len(shape) - dim)
            mask = torch.zeros(shape[dim : dim + span], dtype=torch.bool)
            if mask.numel():
                mask.view(-1)[: rng.choice([1, common])] = True
            items.append(mask.tolist() if rng.random() < 0.3 and span == 1 else mask)
            dim += span
        elif choice == 5:
            items.append(rng.choice([True, True, False]))
        elif choice == 6:
            items.append(None)
        elif choice == 7 and not used_ellipsis:
            items.append(Ellipsis)
            used_ellipsis = True
            dim += 1
        elif choice == 8 and size:
            items.append(rng.choice([rng.randrange(-size, size), torch.tensor(size - 1)]))
            dim += 1
        else:
            items.append(random_slice(rng))
            dim += 1
    return tuple(items)


def take(torch: Any, base: Any, layout: Any, index: Any) -> Any:
    plan = plan_index(*layout, index)
    return gather(torch, torch.from_numpy(base).as_strided(*plan[:3]), plan)


def gather(torch: Any, view: Any, plan: indexing.IndexPlan) -> Any:
    """The advanced part of a plan, with the helpers for its shape; values from PyTorch."""
    indices: list[Any] = []
    for entry in plan.advanced:
        index = getattr(entry.index, "tensor", None)
        index = torch.as_tensor(entry.index) if index is None else index
        indices += torch.nonzero(index, as_tuple=True) if entry.is_mask else [index]
    shape = indexing.broadcast_indices([tuple(index.shape) for index in indices])
    dims = [dim for entry in plan.advanced for dim in range(entry.dim, entry.dim + entry.span)]
    others = [dim for dim in range(view.dim()) if dim not in dims]
    picked = view.permute(*dims, *others)[tuple(index.expand(shape) for index in indices)]
    position = indexing.advanced_position(plan.advanced)
    order = list(range(len(shape), picked.dim()))
    order[position:position] = range(len(shape))
    result = picked.permute(order)
    expected = indexing.advanced_result_shape(plan.shape, plan.advanced, shape)
    assert tuple(result.shape) == expected
    return result


def test_advanced_against_pytorch(torch: Any) -> None:
    rng = random.Random(2)
    compared = 0
    for _ in range(6000):
        base, layout = array_and_layout(rng)
        index = random_advanced(rng, torch, layout[0])
        tensor = torch.from_numpy(base).as_strided(*layout)
        ours = ducks(torch, index)
        try:
            expected = tensor[index]
        except IndexError:
            with pytest.raises(OutOfRange):
                take(torch, base, layout, ours)
            continue
        plan = plan_index(*layout, ours)
        view = run_steps(tensor, plan.steps)
        assert tuple(view.shape) == plan.shape
        assert view.stride() == plan.strides
        result = gather(torch, view, plan) if plan.advanced else view
        assert torch.equal(result, expected), (layout, index)
        if plan.advanced:
            assert basic_index(*layout, ours) is None
            compared += 1
    assert compared > 2000


LAYOUT = ((2, 3, 4), (12, 4, 1), 0)


def test_integers_of_all_kinds(torch: Any) -> None:
    class One:
        def __index__(self) -> int:
            return 1

    expected = basic_index(*LAYOUT, 1)
    for index in (One(), np.int64(1), np.uint8(1), np.array(1), Duck(torch.tensor(1))):
        assert basic_index(*LAYOUT, index) == plan_index(*LAYOUT, index)[:3] == expected
    byte = torch.tensor(1, dtype=torch.uint8)
    for flag in (True, np.bool_(True), Duck(torch.tensor(True)), Duck(byte)):
        assert basic_index(*LAYOUT, flag) is None
        plan = plan_index(*LAYOUT, flag)
        assert plan.shape == (1, 2, 3, 4)
        assert plan.advanced[0].index.tolist() == [0]


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (5, "index 5 is out of bounds for dimension 0 with size 2"),
        (-3, "index -3 is out of bounds for dimension 0 with size 2"),
        ((0, 5), "index 5 is out of bounds for dimension 1 with size 3"),
        ((0, 0, 2**70), "index 1180591620717411303424 is out of bounds for dimension 2"),
        ((None, slice(None), 5), "index 5 is out of bounds for dimension 1 with size 3"),
        (
            (0, 0, 0, 0),
            r"too many indices for tensor of dimension 3: 4 indices for shape \(2, 3, 4",
        ),
        ((..., 0, 0, 0, slice(None)), "too many indices"),
        (1.5, r"only integers, slices .* \(got float\)"),
        ({0}, r"\(got set\)"),
        (np.array([1.0]), r"integer or bool tensors, got \(1,\) float64"),
        (np.array([True, False, True]), r"mask of shape \(3,\) does not match the sizes \(2,\)"),
        ((0, np.ones((3, 3), bool)), r"mask of shape \(3, 3\) .* \(3, 4\) at dimension 1"),
    ],
)
def test_errors(index: Any, message: str) -> None:
    with pytest.raises(IndexError, match=message) as caught:
        plan_index(*LAYOUT, index)
    assert isinstance(caught.value, OutOfRange)
    with contextlib.suppress(OutOfRange):
        assert basic_index(*LAYOUT, index) is None


def test_errors_of_other_classes() -> None:
    for step in (-1, 0):
        with pytest.raises(ValueRangeError, match="step must be greater than zero"):
            basic_index(*LAYOUT, slice(None, None, step))
    with pytest.raises(ArgumentError, match="slice indices must be integers"):
        basic_index(*LAYOUT, slice(1.5))
    with pytest.raises(TypeError, match="got str"):
        plan_index(*LAYOUT, "a")
    for other in ([1j], ["a"], [float("nan")]):
        with pytest.raises(TypeError, match="must hold integers or bools"):
            plan_index(*LAYOUT, other)
    with pytest.raises(IndexError, match="0-dim tensor"):
        basic_index((), (), 0, 0)
    with pytest.raises(IndexError, match="could not be broadcast"):
        indexing.broadcast_indices([(2,), (3,)])
    with pytest.raises(ValueRangeError, match="ragged"):
        plan_index(*LAYOUT, ([[0, 1], [0]],))


def test_a_list_of_lists_is_a_tuple() -> None:
    for index in ([[0, 1], [1, 0]], [(0, 1), (1, 0)]):
        with pytest.warns(UserWarning, match="non-tuple sequence"):
            plan = plan_index(*LAYOUT, index)
        assert [entry.dim for entry in plan.advanced] == [0, 1]
    with pytest.warns(UserWarning, match="non-tuple sequence"):
        assert plan_index(*LAYOUT, [None, slice(0, 1)]).shape == (1, 1, 3, 4)
    assert plan_index(*LAYOUT, [0, True]).advanced[0].index.dtype == np.int64
    assert plan_index(*LAYOUT, []).advanced[0].index.shape == (0,)
    assert plan_index(*LAYOUT, range(2)).advanced[0].index.tolist() == [0, 1]


def test_huge_steps_do_not_overflow() -> None:
    result = basic_index(*LAYOUT, slice(None, None, 2**70))
    assert result == ((1, 3, 4), (12, 4, 1), 0)
    assert basic_index(*LAYOUT, slice(None, None, 100)) == ((1, 3, 4), (1200, 4, 1), 0)


def test_ellipsis_before_a_mask() -> None:
    index = (..., 1, np.ones((3, 4), bool))
    assert basic_index(*LAYOUT, index) is None
    plan = plan_index(*LAYOUT, index)
    assert plan.shape == (3, 4)
    assert plan.offset == 12
    assert plan.advanced[0].span == 2
    assert plan_index(*LAYOUT, (..., ...)).steps == (("alias",),)
