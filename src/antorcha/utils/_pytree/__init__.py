"""``torch.utils._pytree``: trees of lists, tuples, dicts and registered classes.

Anything else is a leaf.

A tree is taken apart into its leaves and its structure (a `TreeSpec`), and put together again::

    leaves, spec = tree_flatten({"a": [1, 2], "b": 3})     # [1, 2, 3]
    tree_unflatten([10, 20, 30], spec)                     # {"a": [10, 20], "b": 30}

None is a leaf. Dicts keep their order of keys. See ``torch/utils/_pytree.py`` of PyTorch 2.13.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from antorcha.errors import ArgumentError, ValueRangeError, explain_missing
from antorcha.ops.kinds.return_types import ALL as _RETURN_TYPES
from antorcha.utils._pytree import registry as _registry
from antorcha.utils._pytree import spec as _spec
from antorcha.utils._pytree.registry import (
    SUPPORTED_NODES,
    Context,
    FlattenFn,
    PyTree,
    UnflattenFn,
    _get_node_type,
)
from antorcha.utils._pytree.spec import _LEAF_SPEC, TreeSpec

KeyPath: TypeAlias = tuple[Any, ...]
KeyEntry: TypeAlias = Any
FlattenFunc: TypeAlias = FlattenFn
UnflattenFunc: TypeAlias = UnflattenFn
FlattenWithKeysFn: TypeAlias = Callable[[PyTree], tuple[list[tuple[KeyEntry, Any]], Any]]
FlattenWithKeysFunc: TypeAlias = FlattenWithKeysFn
DumpableContext: TypeAlias = Any
ToDumpableContextFn: TypeAlias = Callable[[Context], DumpableContext]
FromDumpableContextFn: TypeAlias = Callable[[DumpableContext], Context]
for _module in (_registry, _spec):  # one module in PyTorch
    globals().update({
        _name: _value for _name, _value in vars(_module).items()
        if getattr(_value, "__module__", "") == _module.__name__ or _name.isupper()
        or _name == "PyTreeSpec"
    })  # fmt: skip


def _maker(cls: Any) -> UnflattenFn:
    return lambda values, context: cls(values)


for _cls in _RETURN_TYPES.values():  # ``torch.max(x, 0)`` is a node of two leaves
    _registry.register_pytree_node(
        _cls, _registry._tuple_flatten, _maker(_cls),
        flatten_with_keys_fn=_registry._tuple_flatten_with_keys,
    )  # fmt: skip


def tree_is_leaf(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> bool:
    """Is it a leaf, or, by `is_leaf`, to be taken for one?"""
    return bool(is_leaf is not None and is_leaf(tree)) or (
        _get_node_type(tree) not in SUPPORTED_NODES
    )


_is_leaf = tree_is_leaf


def _flatten_into(
    tree: PyTree, leaves: list[Any], is_leaf: Callable[[PyTree], bool] | None
) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF_SPEC
    kind = _get_node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten_into(child, leaves, is_leaf) for child in children])


def tree_flatten(
    tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """The leaves, from left to right, and the structure.

    >>> from torch.utils import _pytree as pytree
    >>> leaves, spec = pytree.tree_flatten({"a": [1, 2], "b": 3})
    >>> leaves, pytree.tree_unflatten([10, 20, 30], spec)
    ([1, 2, 3], {'a': [10, 20], 'b': 30})
    """
    leaves: list[Any] = []
    spec = _flatten_into(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of that structure with those leaves; ValueError for another number of them."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of PyTreeSpec "
            f"but got item of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_iter(
    tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> Iterator[Any]:  # fmt: skip
    """The leaves, one by one."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None) -> list[Any]:
    """The leaves, from left to right."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(
    tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> TreeSpec:  # fmt: skip
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of all arguments."""
    return tree_leaves((args, kwargs))


# ---- mapping -------------------------------------------------------------------------------------


def tree_map(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree,
    is_leaf: Callable[[PyTree], bool] | None = None,
) -> PyTree:  # fmt: skip
    """The tree with ``func(leaf, *parts)`` for each leaf, `parts` from where it stands in `rests`.

    >>> from torch.utils import _pytree as pytree
    >>> pytree.tree_map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *[spec.flatten_up_to(rest) for rest in rests]))


def tree_map_(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree,
    is_leaf: Callable[[PyTree], bool] | None = None,
) -> PyTree:  # fmt: skip
    """Calls ``func(leaf, *parts)`` for each leaf; gives the tree itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for _ in map(func, leaves, *[spec.flatten_up_to(rest) for rest in rests]):
        pass
    return tree


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function for values of these types (or that a predicate takes); others stay
    as they are."""
    wanted = type_or_types_or_pred
    if isinstance(wanted, (type, tuple, types.UnionType)):

        def takes(x: Any) -> bool:
            return isinstance(x, wanted)
    elif callable(wanted):
        takes = wanted
    else:
        raise ArgumentError("Argument must be a type, a tuple of types, or a callable.")

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapped(x: Any) -> Any:
            return func(x) if takes(x) else x

        return wrapped

    return decorate


def tree_map_only(
    type_or_types_or_pred: Any, /, func: Callable[..., Any], tree: PyTree,
    is_leaf: Callable[[PyTree], bool] | None = None,
) -> PyTree:  # fmt: skip
    """`tree_map` for the leaves of these types; others stay as they are.

    >>> from torch.utils import _pytree as pytree
    >>> pytree.tree_map_only(int, lambda x: -x, [1, "a", (2,)])
    [-1, 'a', (-2,)]
    """
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any, /, func: Callable[..., Any], tree: PyTree,
    is_leaf: Callable[[PyTree], bool] | None = None,
) -> PyTree:  # fmt: skip
    """`tree_map_` for the leaves of these types."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(
    pred: Callable[[Any], bool], tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> bool:
    """Does `pred` hold for all leaves?"""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(
    pred: Callable[[Any], bool], tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> bool:
    """Does `pred` hold for a leaf?"""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree,
    is_leaf: Callable[[PyTree], bool] | None = None,
) -> bool:  # fmt: skip
    """Does `pred` hold for all leaves of these types?"""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(
    type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree,
    is_leaf: Callable[[PyTree], bool] | None = None,
) -> bool:  # fmt: skip
    """Does `pred` hold for a leaf of these types?"""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def _broadcast_to_and_flatten(
    tree: PyTree, treespec: TreeSpec, is_leaf: Callable[[PyTree], bool] | None = None
) -> list[Any] | None:
    """For each leaf of the structure, the leaf of `tree` above it; None where `tree` is no prefix.

    ``0`` for ``[*, (*, *)]`` gives ``[0, 0, 0]``: so `vmap` reads its ``in_dims``.
    """
    found: list[Any] = []
    whole = treespec.unflatten([0] * treespec.num_leaves)
    try:
        tree_map_(lambda x, part: found.extend([x] * tree_structure(part, is_leaf).num_leaves),
                  tree, whole, is_leaf=is_leaf)  # fmt: skip
    except ValueError:
        return None
    return found


# ---- with the way to each leaf -------------------------------------------------------------------


def _generate_key_paths(
    key_path: KeyPath, tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> Iterator[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield key_path, tree
        return
    kind = _get_node_type(tree)
    with_keys = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if with_keys is None:
        raise ValueRangeError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a "
            "flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in with_keys(tree)[0]:
        yield from _generate_key_paths((*key_path, key), child, is_leaf)


def tree_flatten_with_path(
    tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves with the keys that lead to them, and the structure.

    >>> from torch.utils import _pytree as pytree
    >>> pairs, _ = pytree.tree_flatten_with_path({"a": [1, 2]})
    >>> [(pytree.keystr(path), leaf) for path, leaf in pairs]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_leaves_with_path(
    tree: PyTree, is_leaf: Callable[[PyTree], bool] | None = None
) -> list[tuple[KeyPath, Any]]:
    """The leaves with the keys that lead to them."""
    return list(_generate_key_paths((), tree, is_leaf))


def tree_map_with_path(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree,
    is_leaf: Callable[[PyTree], bool] | None = None,
) -> PyTree:  # fmt: skip
    """`tree_map` with ``func(path, leaf, *parts)``."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    parts = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(
        [func(*pair, *others) for pair, *others in zip(pairs, *parts, strict=True)]
    )


def keystr(kp: KeyPath) -> str:
    """The keys as they are written behind the tree: ``['a'][0].x``."""
    return "".join([str(key) for key in kp])


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What the keys lead to."""
    for key in kp:
        obj = key.get(obj)
    return obj


explain_missing("torch.utils._pytree", globals())
