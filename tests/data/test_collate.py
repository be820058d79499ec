"""Collating: the same trees, dtypes and refusals as PyTorch's."""

from __future__ import annotations

import array
import collections
import types
from typing import Any

import numpy as np
import pytest

from tests.data.side_by_side import same

pytestmark = pytest.mark.oracle

Point = collections.namedtuple("Point", ["x", "y"])


class Named(list):  # type: ignore[type-arg]
    """A list with a property of its own."""

    name = "none"


def named(*values: Any) -> Named:
    made = Named(values)
    made.name = "mine"
    return made


BATCHES = {
    "tensors": lambda t: [t.eye(2), t.ones(2, 2)],
    "channels last": lambda t: [t.rand(2, 4, 5, 3).permute(0, 3, 1, 2)] * 2,
    "transposed": lambda t: [t.rand(3, 4).t()] * 2,
    "zero-dim tensors": lambda t: [t.tensor(1), t.tensor(2)],
    "arrays": lambda t: [np.eye(2, dtype=np.float32), np.ones((2, 2), np.float32)],
    "zero-dim arrays": lambda t: [np.array(3), np.array(4)],
    "float64 scalars": lambda t: [np.float64(1.5), np.float64(2)],
    "float32 scalars": lambda t: [np.float32(1.5), np.float32(2)],
    "float16 scalars": lambda t: [np.float16(1.5)],
    "int32 scalars": lambda t: [np.int32(1), np.int32(2)],
    "uint8 scalars": lambda t: [np.uint8(1), np.uint8(2)],
    "bool scalars": lambda t: [np.bool_(True), np.bool_(False)],
    "complex scalars": lambda t: [np.complex64(1 + 2j)],
    "mixed scalars": lambda t: [np.float32(1), np.float64(2)],
    "mixed scalars, integers": lambda t: [np.int32(1), np.float16(2)],
    "scalars and numbers": lambda t: [np.int16(1), 2, True],
    "scalars and floats": lambda t: [np.float32(1), 2.5],
    "integers": lambda t: [1, 2],
    "floats": lambda t: [1.0, 2.5],
    "bools": lambda t: [True, False],
    "float first": lambda t: [1.0, 2],
    "integer first": lambda t: [1, 2.5],
    "strings": lambda t: ["a", "b"],
    "bytes": lambda t: [b"a", b"b"],
    "NumPy strings": lambda t: [np.str_("a"), np.str_("b")],
    "tuples": lambda t: [(1, "a", 2.0), (2, "b", 3.0)],
    "lists": lambda t: [[1, 2], [3, 4]],
    "nested": lambda t: [{"a": (1, [2.0]), "b": Point(t.ones(2), "s")}] * 3,
    "named tuples": lambda t: [Point(0, 1.5), Point(2, 3.5)],
    "ordered dicts": lambda t: [collections.OrderedDict(b=1, a=2)] * 2,
    "default dicts": lambda t: [collections.defaultdict(int, a=1)] * 2,
    "read-only dicts": lambda t: [types.MappingProxyType({"a": 1})] * 2,
    "more keys later": lambda t: [{"a": 1}, {"a": 2, "b": 3}],
    "lists with properties": lambda t: [named(1, 2), named(3, 4)],
    "ranges": lambda t: [range(2), range(2, 4)],
    "typed arrays": lambda t: [array.array("i", [1, 2]), array.array("i", [3, 4])],
    "a tuple as batch": lambda t: (t.ones(2), t.zeros(2)),
    "unequal lengths": lambda t: [[1, 2], [3]],
    "missing key": lambda t: [{"a": 1}, {"b": 1}],
    "string array": lambda t: [np.array(["a"]), np.array(["b"])],
    "object array": lambda t: [np.array([None]), np.array([None])],
    "None": lambda t: [None, None],
    "None inside": lambda t: [(1, None), (2, None)],
    "objects": lambda t: [object(), object()],
    "sets": lambda t: [{1}, {2}],
    "nothing": lambda t: [],
}


@pytest.mark.parametrize("name", BATCHES)
def test_default_collate(name: str) -> None:
    same(lambda torch: torch.utils.data.default_collate(BATCHES[name](torch)))


@pytest.mark.parametrize("name", BATCHES)
def test_default_convert(name: str) -> None:
    def program(torch: Any) -> Any:
        data = BATCHES[name](torch)
        if name == "objects":
            return torch.utils.data.default_convert(data)[0] is data[0]
        return torch.utils.data.default_convert(data)

    same(program)


def test_the_model_is_not_changed_and_keeps_its_properties() -> None:
    def program(torch: Any) -> Any:
        first, second = named(1, 2), named(3, 4)
        made = torch.utils.data.default_collate([first, second])
        return made, made.name, first, torch.utils.data.default_convert(first).name

    same(program)


def test_collate_with_a_map_of_ones_own() -> None:
    def program(torch: Any) -> Any:
        collate = torch.utils.data._utils.collate
        kinds = {
            torch.Tensor: lambda batch, *, collate_fn_map: torch.cat(batch),
            (int, float): lambda batch, *, collate_fn_map: sum(batch),
        }
        return collate.collate([(torch.ones(2), 1), (torch.ones(1), 2)], collate_fn_map=kinds)

    same(program)


def test_adding_to_the_default_map() -> None:
    def program(torch: Any) -> Any:
        table = torch.utils.data._utils.collate.default_collate_fn_map
        table[complex] = lambda batch, *, collate_fn_map: torch.tensor(batch)
        try:
            return torch.utils.data.default_collate([(1j, 2), (2j, 3)])
        finally:
            del table[complex]

    same(program)


def test_gradients_flow_through_a_batch() -> None:
    def program(torch: Any) -> Any:
        x = torch.arange(6.0).reshape(3, 2).requires_grad_()
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x), batch_size=2)
        for (batch,) in loader:
            (batch**2).sum().backward()
        return x.grad

    same(program)
