"""Datasets, samplers and loaders; the orders are PyTorch's for a seed."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import antorcha


def epochs(library: Any) -> list[Any]:
    """What loaders of many kinds give, and the state of the generator after each."""
    data = library.utils.data
    library.manual_seed(5)
    table = data.TensorDataset(library.randn(23, 3), library.arange(23))
    weights = [1.0] * 10 + [2.0] * 13
    out: list[Any] = []
    for options in (
        {"batch_size": 4, "shuffle": True},
        {"batch_size": 4, "shuffle": True, "drop_last": True},
        {"batch_size": 5},
        {"batch_size": 4, "sampler": data.WeightedRandomSampler(weights, 9)},
        {"batch_size": 4, "sampler": data.WeightedRandomSampler(weights, 9, replacement=False)},
        {"batch_size": 4, "sampler": data.RandomSampler(table, True, 40)},
        {"batch_size": None, "shuffle": True},
        {"batch_size": 4, "sampler": data.SubsetRandomSampler([1, 5, 7, 9, 11])},
        {"batch_size": 4, "shuffle": True, "generator": library.Generator().manual_seed(3)},
        {"batch_size": 3, "sampler": data.RandomSampler(table, num_samples=30)},
        {"batch_sampler": [[0, 1], [2]]},
    ):
        loader = data.DataLoader(table, **options)
        out.append(len(loader))
        for _ in range(2):
            out += [[t.tolist() for t in batch] for batch in loader]
        if "generator" in options:
            out.append(library.rand(2, generator=options["generator"]).tolist())
        out.append(library.rand(3).tolist())
    parts = data.random_split(table, [0.7, 0.3])
    out += [list(part.indices) for part in parts]
    return out


@pytest.mark.oracle
def test_same_order_as_pytorch() -> None:
    torch = pytest.importorskip("torch")
    for mine, theirs in zip(epochs(antorcha), epochs(torch), strict=True):
        assert mine == theirs


def test_fast_batches_are_the_slow_ones() -> None:
    torch: Any = antorcha
    data = torch.utils.data
    table = data.TensorDataset(torch.randn(7, 2).t().contiguous().t(), torch.arange(7))
    batches = []
    for collate in (None, lambda samples: data.default_collate(samples)):
        torch.manual_seed(1)
        batches.append(list(data.DataLoader(table, 3, shuffle=True, collate_fn=collate)))
    for (a, b), (c, d) in zip(*batches, strict=True):
        assert torch.equal(a, c)
        assert torch.equal(b, d)
        assert a.stride() == c.stride()


def test_collate() -> None:
    torch: Any = antorcha
    collate = torch.utils.data.default_collate
    point = namedtuple("point", "x y")
    assert collate([point(1, 2.0), point(3, 4.0)]).y.dtype is torch.float64
    assert collate([np.float32(1), np.float32(2)]).dtype is torch.float32
    assert collate([np.ones(2), np.zeros(2)]).shape == (2, 2)
    assert collate([{"a": [1, 2]}, {"a": [3, 4]}])["a"][1].tolist() == [2, 4]
    assert collate(["a", "b"]) == ["a", "b"]
    assert collate([True, False]).dtype is torch.bool
    for bad, kind in (([object()], TypeError), ([np.array(["x"])], TypeError),
                      ([[1], [1, 2]], RuntimeError)):  # fmt: skip
        with pytest.raises(kind):
            collate(bad)
    convert = torch.utils.data.default_convert
    assert convert(np.array([1])).tolist() == [1]
    assert convert({"a": (np.ones(1),)})["a"][0][0] == 1


def test_datasets() -> None:
    torch: Any = antorcha
    data = torch.utils.data

    class Numbers(data.IterableDataset):  # type: ignore[misc]
        def __iter__(self) -> Any:
            return iter(range(5))

    assert [b.tolist() for b in data.DataLoader(Numbers(), 2)] == [[0, 1], [2, 3], [4]]
    assert list(Numbers() + Numbers()) == [0, 1, 2, 3, 4] * 2
    joined = data.ConcatDataset([range(3), range(10, 12)])
    assert [joined[k] for k in range(5)] == [0, 1, 2, 10, 11]
    assert joined[-1] == 11
    assert data.Subset(joined, [4, 0])[0] == 11
    assert data.StackDataset(a=range(2), b=range(2))[1] == {"a": 1, "b": 1}
    with pytest.raises(NotImplementedError):
        data.Dataset()[0]
    with pytest.raises(AssertionError):
        data.TensorDataset(torch.zeros(2), torch.zeros(3))
    with pytest.raises(ValueError, match="mutually exclusive"):
        data.DataLoader(joined, shuffle=True, sampler=[0])
    with pytest.raises(ValueError, match="Sum of input lengths"):
        data.random_split(joined, [1, 1])
    loader = data.DataLoader(joined)
    with pytest.raises(ValueError, match="should not be set"):
        loader.batch_size = 3
    assert data.get_worker_info() is None


def test_a_network_learns() -> None:
    torch: Any = antorcha
    torch.manual_seed(0)
    x = torch.randn(200, 2)
    y = (x[:, 0] * x[:, 1] > 0).long()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 20, shuffle=True)
    net = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    loss_of = torch.nn.CrossEntropyLoss()
    for _ in range(30):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = loss_of(net(inputs), labels)
            loss.backward()
            optimizer.step()
    assert (net(x).argmax(1) == y).float().mean().item() > 0.93
