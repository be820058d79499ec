"""Digits from pen strokes: the same for a seed, and a small network learns to read them."""

from __future__ import annotations

import doctest

import pytest

import antorcha as torch
from antorcha.data import digits, strokes
from antorcha.data.digits import paint


def test_examples() -> None:
    found = doctest.testmod(digits, extraglobs={"torch": torch})
    assert found.attempted > 0
    assert found.failed == 0


def test_shapes_dtypes_and_values() -> None:
    for n, size in ((0, 16), (1, 8), (70, 16), (5, 28)):
        images, labels = strokes(n, size=size, seed=3)
        assert (images.shape, images.dtype) == ((n, 1, size, size), torch.float32)
        assert (labels.shape, labels.dtype) == ((n,), torch.int64)
        assert not images.requires_grad
        if n:
            assert 0 == images.min() < images.max() <= 1
            assert bool((images.flatten(1).sum(1) > 5).all())  # each is drawn
            assert images[..., 0, :].max() < 0.5  # and keeps clear of the edge
            assert 0 <= labels.min() <= labels.max() <= 9


def test_a_seed_decides_alone_and_more_go_on_from_fewer() -> None:
    torch.manual_seed(1)
    images, labels = strokes(200)
    drawn = torch.rand(3)
    torch.manual_seed(1)
    assert torch.equal(drawn, torch.rand(3))  # no random number of the program's is used
    again, same = strokes(300)
    assert torch.equal(images, again[:200])
    assert torch.equal(labels, same[:200])
    other, others = strokes(200, seed=1)
    assert not torch.equal(images, other)
    assert not torch.equal(labels, others)
    counts = strokes(3000)[1].bincount()
    assert counts.shape == (10,)
    assert counts.min() > 240


@pytest.mark.parametrize(("given", "fix"), [((-1, 16), "0 or more"), ((3, 7), "8 rows")])
def test_what_cannot_be_drawn_is_refused(given: tuple[int, int], fix: str) -> None:
    with pytest.raises(ValueError, match=fix):
        strokes(given[0], size=given[1])


def test_a_drawing_of_ones_own_is_of_the_same_kind() -> None:
    line = [(10.0, 200.0), (10.0, 300.0)]
    picture = paint([line])
    assert (picture.shape, picture.dtype) == ((16, 16), torch.ones(1).numpy().dtype)
    moved = paint([[(x * 3 + 5, y * 3 - 70) for x, y in line]])
    assert abs(picture - moved).max() < 1e-5  # place and size do not count
    rows = picture.sum(1) > 0.5
    assert 12 <= rows.sum() <= 14
    assert picture[:, :5].sum() == picture[:, 11:].sum() == 0
    assert paint([]).sum() == 0
    assert paint([[(3.0, 3.0)]]).sum() > 0.5  # a dot


@pytest.mark.slow
def test_a_small_network_learns_to_read_them() -> None:
    images, labels = strokes(4000)
    torch.manual_seed(1)
    layers = torch.nn
    model = layers.Sequential(
        layers.Conv2d(1, 8, 3, padding=1), layers.ReLU(), layers.MaxPool2d(2),
        layers.Conv2d(8, 16, 3, padding=1), layers.ReLU(), layers.MaxPool2d(2),
        layers.Flatten(), layers.Linear(256, 10),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), lr=0.004)
    for _ in range(6):
        for part in torch.randperm(4000).split(50):
            loss = torch.nn.functional.cross_entropy(model(images[part]), labels[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    unseen, wanted = strokes(2000, seed=1)
    assert (model(unseen).argmax(1) == wanted).float().mean() > 0.98
