"""``torch.utils._pytree``: trees taken apart, mapped and put together."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest

import antorcha as torch
from antorcha.utils import _pytree as pytree

Pair = namedtuple("Pair", "x y")
TREES: list[Any] = [
    1, None, [1, 2], (1, [2, {"b": 3, "a": 4}]), Pair(1, (2,)), OrderedDict(b=1, a=[2]),
    defaultdict(list, {"k": [1, 2]}), deque([1, 2], maxlen=5), {}, [], {"x": [(), {}], 1: 2},
]  # fmt: skip


def paths(module: Any, tree: Any) -> list[tuple[str, Any]]:
    return [(module.keystr(path), leaf) for path, leaf in module.tree_leaves_with_path(tree)]


@pytest.mark.oracle
def test_leaves_structures_paths_and_texts_are_pytorchs() -> None:
    theirs = pytest.importorskip("torch.utils._pytree")
    for tree in TREES:
        leaves, spec = pytree.tree_flatten(tree)
        expected, structure = theirs.tree_flatten(tree)
        assert (leaves, repr(spec)) == (expected, repr(structure))
        assert pytree.treespec_pprint(spec) == theirs.treespec_pprint(structure)
        assert paths(pytree, tree) == paths(theirs, tree)
        assert [spec.num_nodes, spec.num_leaves, spec.num_children] == [
            structure.num_nodes, structure.num_leaves, structure.num_children,
        ]  # fmt: skip
        if "Pair" not in repr(tree):
            text = theirs.treespec_dumps(structure)
            assert pytree.treespec_dumps(spec) == text
            assert pytree.treespec_loads(text) == spec


def test_a_tree_is_put_together_as_it_was() -> None:
    for tree in TREES:
        leaves, spec = pytree.tree_flatten(tree)
        again = spec.unflatten(leaves)
        assert (again, type(again)) == (tree, type(tree))
        assert hash(spec) == hash(pytree.tree_structure(tree))
        assert copy.deepcopy(spec) == pickle.loads(pickle.dumps(spec)) == spec
        for path, leaf in pytree.tree_leaves_with_path(tree):
            assert pytree.key_get(tree, path) is leaf
    with pytest.raises(ValueError, match="has length 1 but the spec refers"):
        pytree.tree_unflatten([1], pytree.tree_structure([1, 2]))


def test_mapping() -> None:
    assert pytree.tree_map(lambda x, y: (x, y), [1, (2,)], [[3], (4,)]) == [(1, [3]), ((2, 4),)]
    assert pytree.tree_map_only((int, str), str, [1, 2.0, "a"]) == ["1", 2.0, "a"]
    assert pytree.tree_map_only(lambda x: x > 1, str, [1, 2]) == [1, "2"]
    seen: list[int] = []
    tree = {"a": 1, "b": [2]}
    assert pytree.tree_map_(seen.append, tree) is tree
    assert seen == [1, 2]
    assert pytree.tree_map_with_path(lambda p, x: (pytree.keystr(p), x), tree)["b"] == [
        ("['b'][0]", 2)
    ]
    assert pytree.tree_leaves([1, (2, 3)], is_leaf=lambda x: isinstance(x, tuple)) == [1, (2, 3)]
    assert pytree.tree_all(bool, [1, [2]])
    assert not pytree.tree_any_only(int, bool, [0, "a"])
    for wrong in ([1], (1, 2), {"a": 1}):
        with pytest.raises(ValueError, match=r"Node (type|arity) mismatch"):
            pytree.tree_map(lambda *x: x, [1, 2], wrong)
    with pytest.raises(ValueError, match="missing key"):
        pytree.tree_map(lambda *x: x, {"a": 1}, {"b": 1})


def test_prefixes_are_broadcast() -> None:
    spec = pytree.tree_structure([1, (2, 3)])
    assert pytree._broadcast_to_and_flatten(0, spec) == [0, 0, 0]
    assert pytree._broadcast_to_and_flatten([0, 1], spec) == [0, 1, 1]
    assert pytree._broadcast_to_and_flatten([0], spec) is None


def test_classes_are_registered() -> None:
    @dataclasses.dataclass
    class Point:
        x: Any
        y: Any = None

    assert pytree.tree_leaves(Point(1, 2)) == [Point(1, 2)]
    pytree.register_dataclass(Point, serialized_type_name="test.Point")
    try:
        assert pytree.tree_map(lambda x: x + 1, [Point(1), Point(1, 2)]) == [Point(2), Point(2, 3)]
        assert paths(pytree, Point(1, [2])) == [(".x", 1), (".y[0]", 2)]
        spec = pytree.tree_structure(Point(1, 2))
        assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
        with pytest.raises(ValueError, match="already registered"):
            pytree.register_pytree_node(Point, list, list)
    finally:
        pytree._deregister_pytree_node(Point)
    assert pytree.tree_is_leaf(Point(1))


def test_results_of_ops_are_nodes() -> None:
    found = torch.max(torch.tensor([[1.0, 3.0]]), 1)
    doubled = pytree.tree_map(lambda t: t * 2, found)
    assert type(doubled) is type(found)
    assert doubled.values.item() == 6.0
    assert doubled.indices.item() == 2
