"""Shapes and strides, compared with PyTorch on random layouts where it is installed."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import random
from typing import Any

import numpy as np
import pytest

from antorcha.core import loops, shapes
from antorcha.core.shapes import Size
from antorcha.errors import ArgumentError, OutOfRange, ShapeError


def random_tensor(torch: Any, rng: random.Random, ndim: int, sizes: tuple[int, ...]) -> Any:
    """A strided tensor: permuted, sliced, expanded or with odd strides."""
    shape = [rng.choice(sizes) for _ in range(ndim)]
    kind = rng.randrange(4)
    if kind == 0:
        tensor = torch.empty(shape)
    elif kind == 1:
        grown = [size * rng.choice((1, 1, 2)) for size in shape]
        tensor = torch.empty(grown)
        tensor = tensor[tuple(slice(0, size) for size in shape)]
    elif kind == 2:
        base = [size if rng.random() < 0.7 else 1 for size in shape]
        tensor = torch.empty(base).expand(shape)
    else:
        strides = [rng.choice((0, 1, 2, 3, 4, 6, 12)) for _ in shape]
        tensor = torch.empty_strided(shape, strides)
    if ndim and rng.random() < 0.5:
        tensor = tensor.permute(rng.sample(range(ndim), ndim))
    return tensor


def layout(tensor: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(tensor.shape), tuple(tensor.stride())


def test_size() -> None:
    size = Size([2, 3, 4])
    assert repr(size) == "torch.Size([2, 3, 4])"
    assert repr(Size()) == "torch.Size([])"
    assert size == (2, 3, 4)
    assert hash(size) == hash((2, 3, 4))
    assert size.numel() == 24
    assert Size().numel() == 1
    five = (5,)
    for made in (size[1:], size + five, five + size, size * 2, 2 * size, size[:0]):
        assert type(made) is Size
    assert five + size == (5, 2, 3, 4)
    assert size[-1] == 4
    assert Size((True, np.int64(3))) == (1, 3)
    assert type(Size((True,))[0]) is int
    for twin in (pickle.loads(pickle.dumps(size)), copy.deepcopy(size)):
        assert type(twin) is Size
        assert twin == size
    with pytest.raises(ArgumentError, match=r"\(item 1 is 'float'\)"):
        Size([1, 2.5])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="can only concatenate tuple"):
        size.__add__([3])
    with pytest.raises(TypeError, match="can only concatenate list"):
        [1] + Size([2])  # type: ignore[operator]  # noqa: RUF005
    with pytest.raises(TypeError, match="unsupported operand"):
        1 + Size([2])  # type: ignore[operator]
    sizes = [1]
    sizes += Size([2])
    assert sizes == [1, 2]


def test_numel() -> None:
    assert shapes.numel(()) == 1
    assert shapes.numel((3, 0)) == 0
    assert shapes.numel((2, 5)) == 10
    assert shapes.numel((2**62, 1)) == 2**62
    for shape in ((2**62, 2), (2**32, 2**31), (2**62, 4, 0)):
        with pytest.raises(ShapeError, match=r"empty: .* more than 2\*\*63 - 1 elements"):
            shapes.numel(shape, "empty")
    with pytest.raises(RuntimeError, match=r"sizes must not be negative, got shape \(2, -1\)"):
        shapes.numel((2, -1))
    with pytest.raises(ShapeError, match="bytes"):
        shapes.nbytes((2**61,), 4)
    assert shapes.nbytes((2**60,), 4) == 2**62


def test_normalize_dim() -> None:
    assert [shapes.normalize_dim(dim, 2) for dim in (-2, -1, 0, 1)] == [0, 1, 0, 1]
    assert shapes.normalize_dim(-1, 0) == shapes.normalize_dim(0, 0) == 0
    with pytest.raises(OutOfRange) as caught:
        shapes.normalize_dim(3, 2, "sum")
    assert str(caught.value) == (
        "sum: dim 3 is out of range for a tensor of 2 dimensions (expected -2..1)"
    )
    with pytest.raises(IndexError, match=r"of 0 dimensions \(expected -1..0\)"):
        shapes.normalize_dim(1, 0)
    assert shapes.normalize_dims(None, 3) == (0, 1, 2)
    assert shapes.normalize_dims(-1, 3) == (2,)
    assert shapes.normalize_dims([0, -1], 3) == (0, 2)
    with pytest.raises(ShapeError, match="sum: dim 1 appears more than once"):
        shapes.normalize_dims((1, -2), 3, "sum")


def test_broadcast_message() -> None:
    with pytest.raises(ShapeError) as caught:
        shapes.broadcast_shapes((3, 2), (4, 2), op="add")
    assert str(caught.value) == (
        "add: shapes (3, 2) and (4, 2) do not broadcast: "
        "at dimension 0, 3 and 4 differ and neither is 1"
    )
    with pytest.raises(ShapeError, match=r"^shapes .* at dimension 2, 2 and 0 differ"):
        shapes.broadcast_shapes((1, 5, 2), (5, 1), (0,))


def test_broadcast(torch: Any) -> None:
    rng = random.Random(0)
    for _ in range(3000):
        given = [
            tuple(rng.choice((0, 1, 1, 2, 3)) for _ in range(rng.randrange(4)))
            for _ in range(rng.randrange(1, 4))
        ]
        try:
            expected = tuple(torch.broadcast_shapes(*given))
        except RuntimeError:
            with pytest.raises(ShapeError):
                shapes.broadcast_shapes(*given)
        else:
            assert shapes.broadcast_shapes(*given) == expected


def test_expand(torch: Any) -> None:
    rng = random.Random(1)
    for _ in range(4000):
        tensor = random_tensor(torch, rng, rng.randrange(4), (0, 1, 2, 3))
        target = [size if rng.random() < 0.5 else -1 for size in tensor.shape]
        target = [rng.choice((0, 1, 4)) if rng.random() < 0.2 else size for size in target]
        target = [rng.choice((0, 1, 1, 4, 5)) for _ in range(rng.randrange(3))] + target
        if rng.random() < 0.1:
            target = target[1:]
        if rng.random() < 0.05 and target and tensor.dim():
            target[0] = -1  # not -2: PyTorch makes a tensor of negative size for some
        try:
            expected = layout(tensor.expand(target))
        except RuntimeError:
            with pytest.raises(ShapeError, match="expand: "):
                shapes.expand_strides(*layout(tensor), target)
        else:
            assert shapes.expand_strides(*layout(tensor), target) == expected, layout(tensor)


def test_memory_formats(torch: Any) -> None:
    rng = random.Random(2)
    for _ in range(6000):
        tensor = random_tensor(torch, rng, rng.randrange(6), (0, 1, 1, 2, 3))
        if tensor.dim() == 4 and rng.random() < 0.5:
            tensor = torch.empty(tensor.shape, memory_format=torch.channels_last)
            tensor = tensor[..., : rng.randrange(1, 4)]
        shape, strides = layout(tensor)
        assert shapes.is_contiguous(shape, strides) == tensor.is_contiguous()
        if tensor.dim() in (4, 5):
            form = torch.channels_last if tensor.dim() == 4 else torch.channels_last_3d
            expected = tensor.is_contiguous(memory_format=form)
            assert shapes.is_channels_last(shape, strides) == expected
            made = torch.empty(shape, memory_format=form)
            assert shapes.channels_last_strides(shape) == made.stride()
        assert shapes.contiguous_strides(shape) == torch.empty(shape).stride()
        assert loops.dense_strides(shape, strides) == torch.empty_like(tensor).stride(), (
            shape,
            strides,
        )
    assert shapes.channels_last_strides((2, 3, 4)) == (1, 8, 2)
    with pytest.raises(ShapeError, match="4 or 5 dimensions"):
        shapes.channels_last_strides((2, 3))


def test_suggested_memory_format(torch: Any) -> None:
    rng = random.Random(3)
    for _ in range(2000):
        tensor = random_tensor(torch, rng, 4, (1, 2, 3))
        if rng.random() < 0.5:
            tensor = tensor.contiguous(memory_format=torch.channels_last)[..., :1, :]
        pooled = torch.nn.functional.max_pool2d(tensor, 1)
        wanted = shapes.suggests_channels_last(*layout(tensor))
        kept = shapes.channels_last_strides if wanted else shapes.contiguous_strides
        assert pooled.stride() == kept(pooled.shape), layout(tensor)


def offsets(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
    return [
        sum(i * s for i, s in zip(index, strides, strict=True))
        for index in itertools.product(*map(range, shape))
    ]


def test_overlap_and_extent_by_enumeration() -> None:
    rng = random.Random(4)
    for _ in range(4000):
        shape = tuple(rng.choice((0, 1, 1, 2, 3)) for _ in range(rng.randrange(4)))
        strides = tuple(rng.choice((-3, -1, 0, 1, 2, 3, 4, 6)) for _ in shape)
        reached = offsets(shape, strides)
        overlaps = len(set(reached)) < len(reached)
        if overlaps:
            assert shapes.may_overlap(shape, strides)
        if shapes.surely_overlaps(shape, strides):
            assert overlaps
        low, high = shapes.extent(shape, strides)
        assert (low, high) == ((min(reached), max(reached)) if reached else (0, -1))
        positive = all(stride >= 0 for stride in strides)
        dense = positive and sorted(reached) == list(range(len(reached)))
        if not dense:
            assert not (shapes.is_dense(shape, strides) and reached and not overlaps and positive)
        elif not overlaps:
            assert shapes.is_dense(shape, strides)
    assert not shapes.may_overlap((2, 3), (3, 1))
    assert shapes.may_overlap((2, 3), (2, 1))


def test_infer_size(torch: Any) -> None:
    rng = random.Random(5)
    for _ in range(3000):
        count = rng.choice((0, 1, 6, 12, 24))
        target = [rng.choice((-1, 0, 1, 2, 3, 4, 6, -2)) for _ in range(rng.randrange(4))]
        try:
            expected = tuple(torch.empty(count).view(target).shape)
        except RuntimeError:
            with pytest.raises(ShapeError, match=r"^view: "):
                shapes.infer_size(target, count)
        else:
            assert shapes.infer_size(target, count) == expected


def factorings(count: int, rng: random.Random) -> tuple[int, ...]:
    """A random shape of `count` elements."""
    if count == 0:
        return tuple(rng.sample((0, rng.randrange(4), rng.randrange(4)), rng.randrange(1, 4)))
    shape = [1] * rng.randrange(3)
    while count > 1:
        factor = rng.choice([f for f in range(2, count + 1) if count % f == 0])
        shape.insert(rng.randrange(len(shape) + 1), factor)
        count //= factor
    return tuple(shape)


def test_view_strides(torch: Any) -> None:
    rng = random.Random(6)
    views = 0
    for _ in range(8000):
        tensor = random_tensor(torch, rng, rng.randrange(5), (0, 1, 2, 2, 3, 4))
        target = factorings(tensor.numel(), rng)
        if math.prod(target) != tensor.numel():
            continue
        ours = shapes.view_strides(*layout(tensor), target)
        try:
            expected = tuple(tensor.view(target).stride())
        except RuntimeError:
            assert ours is None
        else:
            views += 1
            assert ours == expected, (layout(tensor), target)
    assert views > 1000


def test_result_strides(torch: Any) -> None:
    """Random operands through a real elementwise op of one, two and three inputs."""
    rng = random.Random(7)
    ops = {1: torch.neg, 2: torch.add, 3: torch.addcmul}
    seen = 0
    for _ in range(20000):
        count = rng.randrange(1, 4)
        ndim = rng.randrange(1, 6)
        full = [rng.choice((1, 2, 3)) for _ in range(ndim)]
        operands = []
        for _ in range(count):
            wanted = [size if rng.random() < 0.85 else 1 for size in full]
            operand = random_strided(torch, rng, wanted)
            if rng.random() < 0.15 and operand.numel():
                operand = operand[(0,) * rng.randrange(ndim + 1)]
            operands.append(operand)
        try:
            result = ops[count](*operands)
        except RuntimeError:  # a zero size met a size of 2 or 3
            continue
        ours = loops.result_strides(tuple(result.shape), [layout(each) for each in operands])
        assert ours == result.stride(), [layout(each) for each in operands]
        seen += ours != shapes.contiguous_strides(result.shape)
    assert seen > 2000


def random_strided(torch: Any, rng: random.Random, shape: list[int]) -> Any:
    """A tensor of this shape in a random layout, channels_last and zero sizes among them."""
    kind = rng.randrange(6)
    if rng.random() < 0.02:
        shape = [0 if size == 1 else size for size in shape]
    if kind == 0:
        return torch.empty(shape)
    if kind == 1 and len(shape) == 4:
        return torch.empty(shape, memory_format=torch.channels_last)
    if kind == 2:
        strides = [rng.choice((0, 1, 2, 3, 6, 9)) for _ in shape]
        return torch.empty_strided(shape, strides)
    order = rng.sample(range(len(shape)), len(shape))
    grown = [shape[dim] * (2 if kind == 3 and rng.random() < 0.3 else 1) for dim in order]
    tensor = torch.empty(grown)
    back = [order.index(dim) for dim in range(len(shape))]
    return tensor.permute(back)[tuple(slice(0, size) for size in shape)]


def test_result_strides_with_empty_operands(torch: Any) -> None:
    rng = random.Random(8)
    for _ in range(4000):
        shape = [rng.choice((0, 1, 2, 3)) for _ in range(rng.randrange(1, 5))]
        narrow = [size if rng.random() < 0.7 else 1 for size in shape]
        operands = [random_strided(torch, rng, sizes) for sizes in (shape, narrow)]
        try:
            result = torch.add(*operands)
        except RuntimeError:
            continue
        ours = loops.result_strides(tuple(result.shape), [layout(each) for each in operands])
        assert ours == result.stride(), [layout(each) for each in operands]


def test_result_strides_of_promoted_operands(torch: Any) -> None:
    """PyTorch converts an operand first, which closes its gaps (on the CPU)."""
    rng = random.Random(10)
    for _ in range(4000):
        full = [rng.choice((1, 2, 3)) for _ in range(rng.randrange(1, 5))]
        one, two = (
            random_strided(torch, rng, [size if rng.random() < 0.85 else 1 for size in full])
            for _ in range(2)
        )
        if one.numel() == 0 or two.numel() == 0:
            continue
        whole = torch.zeros(2000, dtype=torch.int32).as_strided(two.shape, two.stride())
        result = torch.add(one, whole)
        converted = (tuple(two.shape), loops.dense_strides(*layout(two)))
        ours = loops.result_strides(tuple(result.shape), [layout(one), converted])
        assert ours == result.stride(), (layout(one), layout(two))


def test_result_strides_of_scalars(torch: Any) -> None:
    tensor = torch.empty(2, 3, 4).permute(2, 0, 1)
    ours = loops.result_strides(tuple(tensor.shape), [layout(tensor), ((), ())])
    assert ours == (tensor + 2.0).stride()
    odd = torch.empty(4, 1, 1, 3).permute(0, 3, 1, 2)
    ours = loops.result_strides(tuple(odd.shape), [layout(odd), ((), ())])
    assert ours == (odd + 2.0).stride()


def test_collapse_walks_the_same_elements() -> None:
    rng = random.Random(9)
    merged = 0
    for _ in range(3000):
        shape = tuple(rng.choice((1, 2, 3)) for _ in range(rng.randrange(5)))
        several = [shapes.contiguous_strides(shape)]
        several.append(tuple(stride if rng.random() < 0.8 else 0 for stride in several[0]))
        several.append(tuple(2 * stride for stride in several[0]))
        small, walked = loops.collapse(shape, several)
        assert 1 not in small
        assert len(walked) == 3
        for before, after in zip(several, walked, strict=True):
            assert offsets(shape, before) == offsets(small, after)
        merged += len(small) < len(shape)
    assert merged > 1000
    assert loops.collapse((1, 1), [(5, 7)]) == ((), [()])
    assert loops.collapse((2, 3), []) == ((6,), [])
