"""Data sets: the same samples, lengths and refusals as PyTorch's."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import antorcha
from tests.data.side_by_side import same

pytestmark = pytest.mark.oracle


class Whole:
    """A data set that answers for whole batches, and says so."""

    def __init__(self, short: bool = False) -> None:
        self.short = short

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> str:
        return f"one {index}"

    def __getitems__(self, indices: list[int]) -> list[str]:
        return [f"many {index}" for index in indices[self.short :]]


def stream(torch: Any, *values: int, length: int | None = None) -> Any:
    """An IterableDataset of these values, with a length if one is said."""

    class Stream(torch.utils.data.IterableDataset):  # type: ignore[misc]
        def __iter__(self) -> Any:
            return iter(values)

        if length is not None:

            def __len__(self) -> int:
                return length

    return Stream()


PROGRAMS = {
    "tensors": lambda t, d: d.TensorDataset(t.eye(3), t.arange(3))[1],
    "tensors, several": lambda t, d: d.TensorDataset(t.eye(3), t.arange(3))[[0, 2]],
    "tensors, length": lambda t, d: len(d.TensorDataset(t.zeros(5, 2))),
    "tensors, mismatch": lambda t, d: d.TensorDataset(t.zeros(3), t.zeros(4)),
    "tensors, none": lambda t, d: len(d.TensorDataset()),
    "concat": lambda t, d: [d.ConcatDataset(["ab", "cde"])[i] for i in (0, 1, 2, 4, -1, -5)],
    "concat, sizes": lambda t, d: d.ConcatDataset(["ab", "cde"]).cumulative_sizes,
    "concat, sizes' old name": lambda t, d: d.ConcatDataset(["ab"]).cummulative_sizes,
    "concat, below": lambda t, d: d.ConcatDataset(["ab"])[-3],
    "concat, above": lambda t, d: d.ConcatDataset(["ab"])[2],
    "concat, empty": lambda t, d: d.ConcatDataset([]),
    "concat, stream": lambda t, d: d.ConcatDataset([stream(t, 1)]),
    "sum": lambda t, d: (d.TensorDataset(t.zeros(2)) + d.TensorDataset(t.ones(1)))[2],
    "chain": lambda t, d: list(stream(t, 1, 2) + stream(t, 3)),
    "chain, length": lambda t, d: len(d.ChainDataset([stream(t, 1, length=4)] * 2)),
    "chain, no stream": lambda t, d: list(d.ChainDataset([[1]])),
    "chain, no stream, length": lambda t, d: len(d.ChainDataset([[1]])),
    "subset": lambda t, d: [d.Subset("abcd", [3, 1])[0], len(d.Subset("abcd", [3, 1]))],
    "subset, list": lambda t, d: d.Subset(d.TensorDataset(t.arange(9)), [8, 4, 2])[[0, 2]],
    "subset, batch": lambda t, d: d.Subset("abcd", [3, 1]).__getitems__([1, 0]),
    "subset, batch asked on": lambda t, d: d.Subset(Whole(), [3, 1]).__getitems__([1, 0]),
    "stack": lambda t, d: d.StackDataset("ab", range(2))[1],
    "stack, named": lambda t, d: d.StackDataset(x="ab", y=range(2))[1],
    "stack, batch": lambda t, d: d.StackDataset(Whole(), "abcd").__getitems__([1, 3]),
    "stack, named batch": lambda t, d: d.StackDataset(x=Whole(), y="abcd").__getitems__([1, 3]),
    "stack, short batch": lambda t, d: d.StackDataset(Whole(short=True)).__getitems__([1, 3]),
    "stack, no batch": lambda t, d: d.StackDataset("ab").__getitems__([]),
    "stack, length": lambda t, d: len(d.StackDataset("ab")),
    "stack, none": lambda t, d: d.StackDataset(),
    "stack, both": lambda t, d: d.StackDataset("a", y="a"),
    "stack, mismatch": lambda t, d: d.StackDataset("a", "bc"),
    "abstract": lambda t, d: d.Dataset()[0],
    "abstract, length": lambda t, d: len(d.Dataset()),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_samples(name: str) -> None:
    same(lambda torch: PROGRAMS[name](torch, torch.utils.data))


SPLITS: dict[str, tuple[int, list[Any]]] = {
    "lengths": (10, [3, 7]),
    "fractions": (10, [0.25, 0.25, 0.5]),
    "remainder goes round": (17, [0.1, 0.2, 0.3, 0.4]),
    "one part": (5, [1]),  # a sum of 1 means fractions
    "an empty part": (2, [0.1, 0.9]),
    "no part": (3, []),
    "wrong sum": (10, [3, 6]),
    "fraction out of range": (10, [-0.5, 1.5]),
    "floats that are no fractions": (10, [3.0, 7.0]),
}


@pytest.mark.parametrize("name", SPLITS)
@pytest.mark.parametrize("own", [False, True])
def test_random_split(name: str, own: bool) -> None:
    size, lengths = SPLITS[name]

    def program(torch: Any) -> Any:
        how = {"generator": torch.Generator().manual_seed(3)} if own else {}
        parts = torch.utils.data.random_split(range(size), lengths, **how)
        return [list(part.indices) for part in parts]

    if name == "floats that are no fractions":
        with pytest.raises(TypeError):
            program(antorcha)
    else:
        same(program)


def test_a_subset_with_its_own_items_needs_its_own_batches() -> None:
    def program(torch: Any) -> Any:
        class Loud(torch.utils.data.Subset):  # type: ignore[misc]
            def __getitem__(self, index: int) -> Any:
                return super().__getitem__(index) * 2

        return Loud(range(3), [0])

    same(program)


def test_bases_and_generic_forms() -> None:
    def program(torch: Any) -> Any:
        d = torch.utils.data
        kinds = [d.Dataset[int], d.IterableDataset[int], d.Sampler[int], d.DataLoader[int]]
        return [kind.__origin__.__name__ for kind in kinds], [
            base.__name__ for base in d.IterableDataset.__mro__
        ]

    same(program)


def test_submodules_are_one_module_under_two_names() -> None:
    for old, new in (("dataset", "dataset"), ("_utils.collate", "collate")):
        alias = importlib.import_module(f"antorcha.utils.data.{old}")
        assert alias is importlib.import_module(f"antorcha.data.{new}")
    assert antorcha.utils.data.dataset.Subset is antorcha.utils.data.Subset
