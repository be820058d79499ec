"""DataLoader: the same batches, warnings, refusals and random stream as PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.data.fetch import _MapDatasetFetcher, _RowsFetcher
from tests.data.side_by_side import same
from tests.data.test_datasets import Whole, stream

oracle = pytest.mark.oracle


def tensors(torch: Any) -> Any:
    x = torch.arange(44.0).reshape(11, 2, 2).transpose(1, 2)
    return torch.utils.data.TensorDataset(x, torch.arange(11), torch.eye(11) > 0)


class Noisy:
    """Draws from the default generator for each sample, as augmentation does."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < 5:
            raise IndexError(index)
        return {"x": self.torch.rand(2), "index": index, "name": str(index)}


LOADERS = {
    "defaults": lambda t, g: (tensors(t), {}),
    "batches": lambda t, g: (tensors(t), {"batch_size": 4}),
    "drop last": lambda t, g: (tensors(t), {"batch_size": 4, "drop_last": True}),
    "shuffle": lambda t, g: (tensors(t), {"batch_size": 4, "shuffle": True}),
    "own generator": lambda t, g: (tensors(t), {"shuffle": True, "generator": g}),
    "own generator, in order": lambda t, g: (tensors(t), {"generator": g}),
    "single samples": lambda t, g: (tensors(t), {"batch_size": None, "shuffle": True}),
    "sampler": lambda t, g: (tensors(t), {"sampler": [3, 1, 2], "batch_size": 2}),
    "from the end": lambda t, g: (tensors(t), {"sampler": [-1, 1, -11], "batch_size": 2}),
    "out of range": lambda t, g: (tensors(t), {"sampler": iter([1, 2]), "batch_size": 2}),
    "slices": lambda t, g: (
        tensors(t), {"batch_size": None, "sampler": [slice(0, 3), [4, 5], slice(9, 20)]},
    ),
    "slices in batches": lambda t, g: (tensors(t), {"sampler": [slice(0, 2), slice(2, 4)]}),
    "NumPy indices": lambda t, g: (tensors(t), {"sampler": np.arange(5), "batch_size": 2}),
    "tensor indices": lambda t, g: (tensors(t), {"sampler": t.arange(5), "batch_size": 2}),
    "bool indices": lambda t, g: (tensors(t), {"sampler": [True, False], "batch_size": 2}),
    "channels last": lambda t, g: (
        t.utils.data.TensorDataset(t.rand(5, 2, 4, 4, 3).permute(0, 1, 4, 2, 3)),
        {"batch_size": 2},
    ),
    "batch sampler": lambda t, g: (tensors(t), {"batch_sampler": [[0, 1], [5], [2, 2, 2]]}),
    "batch sampler of tuples": lambda t, g: (tensors(t), {"batch_sampler": [(0, 1), (5,)]}),
    "an empty batch": lambda t, g: (tensors(t), {"batch_sampler": [[]]}),
    "weighted": lambda t, g: (
        tensors(t),
        {"batch_size": 3, "sampler": t.utils.data.WeightedRandomSampler([1.0] * 11, 7)},
    ),
    "replacement": lambda t, g: (
        tensors(t),
        {"batch_size": 9, "sampler": t.utils.data.RandomSampler(range(11), True, 40)},
    ),
    "subset": lambda t, g: (
        t.utils.data.random_split(tensors(t), [0.6, 0.4])[0],
        {"batch_size": 3, "shuffle": True},
    ),
    "subset of subset": lambda t, g: (
        t.utils.data.Subset(t.utils.data.Subset(tensors(t), range(10, 0, -1)), [7, 2, -1]),
        {"batch_size": 2},
    ),
    "subset by tensor": lambda t, g: (
        t.utils.data.Subset(tensors(t), t.tensor([7, 2, 3])), {"batch_size": 2},
    ),
    "concat": lambda t, g: (tensors(t) + tensors(t), {"batch_size": 8}),
    "noisy": lambda t, g: (Noisy(t), {"batch_size": 2, "shuffle": True}),
    "noisy, own generator": lambda t, g: (Noisy(t), {"shuffle": True, "generator": g}),
    "a list": lambda t, g: ([(1, 2.0), (3, 4.0), (5, 6.0)], {"batch_size": 2}),
    "an array": lambda t, g: (np.arange(6.0).reshape(3, 2), {"batch_size": 2}),
    "a tensor": lambda t, g: (t.arange(6.0).reshape(3, 2), {"batch_size": 2}),
    "arrays, single": lambda t, g: ([np.arange(2), np.ones(1)], {"batch_size": None}),
    "whole batches": lambda t, g: (Whole(), {"batch_size": 3}),
    "collate": lambda t, g: (list(range(5)), {"batch_size": 2, "collate_fn": tuple}),
    "pinned": lambda t, g: ([1, 2], {"pin_memory": True}),
    "pinned to": lambda t, g: ([1, 2], {"pin_memory": True, "pin_memory_device": "cuda"}),
    "stream": lambda t, g: (stream(t, 1, 2, 3, length=3), {"batch_size": 2}),
    "stream, drop last": lambda t, g: (
        stream(t, 1, 2, 3, length=3), {"batch_size": 2, "drop_last": True},
    ),
    "stream, single": lambda t, g: (stream(t, 1, 2, length=2), {"batch_size": None}),
    "stream, no shuffle": lambda t, g: (stream(t, 1, 2, length=2), {"shuffle": False}),
    "stream longer than said": lambda t, g: (stream(t, 1, 2, 3, length=1), {"batch_size": None}),
    "different shapes": lambda t, g: ([[1, 2], [3]], {"batch_size": 2}),
    "empty": lambda t, g: ([], {}),
    "empty, shuffled": lambda t, g: ([], {"shuffle": True}),
}  # fmt: skip


@oracle
@pytest.mark.parametrize("name", LOADERS)
def test_same_epochs(name: str) -> None:
    def program(torch: Any) -> Any:
        generator = torch.Generator().manual_seed(99)
        dataset, options = LOADERS[name](torch, generator)
        loader = torch.utils.data.DataLoader(dataset, **options)
        length = len(loader) if name != "out of range" else None
        epochs = []
        for _ in range(2):
            epochs.append(list(loader))
            epochs.append(torch.rand(2))  # the stream between epochs
        return length, epochs, torch.rand(2, generator=generator)

    same(program)


@oracle
def test_an_epoch_left_early_draws_as_much() -> None:
    def program(torch: Any) -> Any:
        loader = torch.utils.data.DataLoader(tensors(torch), batch_size=2, shuffle=True)
        first = next(iter(loader))
        begun = iter(loader)  # its seed is drawn, its order is not
        return first, torch.rand(2), next(begun), len(begun), torch.rand(2)

    same(program)


@oracle
def test_two_epochs_at_once() -> None:
    def program(torch: Any) -> Any:
        loader = torch.utils.data.DataLoader(list(range(6)), batch_size=2, shuffle=True)
        return list(zip(loader, loader))

    same(program)


REFUSED = {
    "workers": lambda t: ([1], {"num_workers": -1}),
    "timeout": lambda t: ([1], {"timeout": -1}),
    "a timeout without workers": lambda t: ([1], {"timeout": 1}),
    "prefetch": lambda t: ([1], {"prefetch_factor": 2}),
    "negative prefetch": lambda t: ([1], {"prefetch_factor": -2, "num_workers": 1}),
    "persistent": lambda t: ([1], {"persistent_workers": True}),
    "context": lambda t: ([1], {"multiprocessing_context": "fork"}),
    "sampler and shuffle": lambda t: ([1], {"sampler": [0], "shuffle": True}),
    "batch sampler and size": lambda t: ([1], {"batch_sampler": [[0]], "batch_size": 2}),
    "batch sampler and sampler": lambda t: ([1], {"batch_sampler": [[0]], "sampler": [0]}),
    "batch sampler and drop": lambda t: ([1], {"batch_sampler": [[0]], "drop_last": True}),
    "single and drop": lambda t: ([1], {"batch_size": None, "drop_last": True}),
    "batch size": lambda t: ([1], {"batch_size": 0}),
    "batch size, a float": lambda t: ([1], {"batch_size": 2.0}),
    "stream and shuffle": lambda t: (stream(t, 1), {"shuffle": True}),
    "stream and sampler": lambda t: (stream(t, 1), {"sampler": [0]}),
    "stream and batch sampler": lambda t: (stream(t, 1), {"batch_sampler": [[0]]}),
    "bad item": lambda t: ([None], {}),
    "index": lambda t: (tensors(t), {"sampler": ["a"]}),
}


@oracle
@pytest.mark.parametrize("name", REFUSED)
def test_same_refusal(name: str) -> None:
    def program(torch: Any) -> Any:
        dataset, options = REFUSED[name](torch)
        return list(torch.utils.data.DataLoader(dataset, **options))

    if name == "index":  # the words are those of indexing
        with pytest.raises((IndexError, TypeError)):
            program(antorcha)
    else:
        same(program)


@oracle
@pytest.mark.parametrize("name", ["batch_size", "sampler", "batch_sampler", "drop_last", "dataset",
                                  "persistent_workers", "collate_fn", "timeout"])  # fmt: skip
def test_what_is_fixed(name: str) -> None:
    def program(torch: Any) -> Any:
        loader = torch.utils.data.DataLoader([1, 2])
        setattr(loader, name, None)
        return getattr(loader, name)

    same(program)


@oracle
def test_attributes() -> None:
    names = ["batch_size", "num_workers", "drop_last", "pin_memory", "timeout", "worker_init_fn",
             "prefetch_factor", "persistent_workers", "pin_memory_device", "in_order", "generator",
             "multiprocessing_context", "_dataset_kind", "_auto_collation"]  # fmt: skip

    def program(torch: Any) -> Any:
        d = torch.utils.data
        loaders = [d.DataLoader([1]), d.DataLoader([1], batch_sampler=[[0]]),
                   d.DataLoader([1], batch_size=None, shuffle=True)]  # fmt: skip
        seen = [[getattr(loader, name) for name in names] for loader in loaders]
        kinds = [[type(x).__name__ for x in (n.sampler, n.batch_sampler)] for n in loaders]
        return seen, kinds, d.get_worker_info(), [n.collate_fn.__name__ for n in loaders]

    same(program)


def test_the_length_of_a_stream_without_one() -> None:
    with pytest.raises(TypeError, match="has no len"):
        len(antorcha.utils.data.DataLoader(stream(antorcha, 1)))


def test_an_iterator_cannot_be_pickled() -> None:
    import pickle

    with pytest.raises(NotImplementedError):
        pickle.dumps(iter(antorcha.utils.data.DataLoader([1])))


def test_which_batches_are_selected_by_rows() -> None:
    d = antorcha.utils.data
    rows, x = tensors(antorcha), antorcha.ones(3, requires_grad=True)

    class Own(d.TensorDataset):  # type: ignore[misc, name-defined]
        pass

    def fetcher(dataset: Any, **options: Any) -> type:
        return type(iter(d.DataLoader(dataset, **options))._dataset_fetcher)

    assert fetcher(rows) is fetcher(d.Subset(rows, [1])) is _RowsFetcher
    assert fetcher(rows, batch_size=None) is _MapDatasetFetcher
    assert fetcher(rows, collate_fn=list) is _MapDatasetFetcher
    assert fetcher(Own(x.detach())) is fetcher(d.TensorDataset(x)) is _MapDatasetFetcher
    assert fetcher([1]) is _MapDatasetFetcher
    # stacking samples of four dims keeps channels_last, selecting rows does not
    assert fetcher(d.TensorDataset(antorcha.ones(3, 2, 2, 2, 2))) is _MapDatasetFetcher


def test_both_ways_to_a_batch_are_equal() -> None:
    torch = antorcha
    indices = [3, 0, 3, 7]
    for make in (
        lambda: torch.rand(8, 4, 5, 3).permute(0, 3, 1, 2),
        lambda: torch.rand(3, 8).t(),
        lambda: torch.rand(8, 1, 1)[:, ::1],
        lambda: torch.rand(16, 4)[::2, 1:3],
        lambda: torch.rand(1, 4).expand(8, 4),
        lambda: torch.arange(8, dtype=torch.uint8),
        lambda: torch.zeros(8, 0),
        lambda: torch.rand(8, 2).bfloat16(),
        lambda: torch.complex(torch.rand(8), torch.rand(8)),
    ):
        data = torch.utils.data.TensorDataset(make())
        setting = (data, True, torch.utils.data.default_collate, False)
        slow = _MapDatasetFetcher(*setting).fetch(indices)
        fast = _RowsFetcher(*setting).fetch(indices)
        assert type(slow) is type(fast) is list
        assert fast[0].dtype == slow[0].dtype
        assert fast[0].stride() == slow[0].stride()
        assert torch.equal(fast[0], slow[0])


def test_the_iterator_with_workers_has_pytorchs_name() -> None:
    from antorcha.data.dataloader import _MultiProcessingDataLoaderIter

    utils = antorcha.utils.data
    loader = utils.DataLoader(utils.TensorDataset(antorcha.arange(4)), batch_size=2)
    assert not isinstance(iter(loader), _MultiProcessingDataLoaderIter)
