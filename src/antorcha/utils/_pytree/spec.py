"""TreeSpec: the structure of a tree without its leaves; as text, too."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from antorcha.errors import MissingFeature, ValueRangeError
from antorcha.utils._pytree.registry import (
    BUILTIN_TYPES,
    NO_SERIALIZED_TYPE_NAME_FOUND,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    STANDARD_DICT_TYPES,
    SUPPORTED_NODES,
    SUPPORTED_SERIALIZED_TYPES,
    ConstantNode,
    Context,
    PyTree,
    _get_node_type,
)

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


@dataclasses.dataclass(init=False, frozen=True, eq=False, repr=False, slots=True)
class TreeSpec:
    """The structure of a tree: the root's type, what else it takes to make it, and its children.

    Attributes:
        type: the container's class, ``collections.namedtuple`` for every named tuple; None: a leaf
        context: what the class needs besides the children, e.g. a dict's keys
        num_nodes, num_leaves, num_children (int)
    """

    type: Any
    _context: Context
    _children: list[Any]
    num_nodes: int
    num_leaves: int
    num_children: int

    def __init__(self, type: Any, context: Context, children_specs: list[Any]) -> None:
        put = functools.partial(object.__setattr__, self)
        put("type", type)
        put("_context", context)
        put("_children", children_specs)
        if type is None and (context is not None or children_specs):
            raise AssertionError("leaf node should not have a context or children")
        put("num_nodes", 1 + sum([child.num_nodes for child in children_specs]))
        leaves = sum([child.num_leaves for child in children_specs])
        put("num_leaves", 1 if type is None else leaves)
        put("num_children", len(children_specs))

    def __repr__(self, indent: int = 0) -> str:
        gap = ",\n" + " " * (indent + 2)
        children = gap.join([child.__repr__(indent + 2) for child in self._children])
        return f"TreeSpec({self.type.__name__}, {self._context}, [{children}])"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other.__class__ is not self.__class__:
            return NotImplemented
        assert isinstance(other, TreeSpec)
        return bool(
            str(self.type) == str(other.type)
            and self._context == other._context
            and self._children == other._children
        )

    def __hash__(self) -> int:
        context = self._context
        if self.type is defaultdict:
            context = (context[0], tuple(context[1]))
        elif self.type in (dict, OrderedDict):
            context = tuple(context)
        elif isinstance(context, ConstantNode):
            context = context.value
        elif self.type is not None and self.type not in BUILTIN_TYPES:
            context = None  # (it may have no hash)
        return hash((self.type, context, tuple(self._children)))

    @property
    def context(self) -> Context:
        """What the class needs besides the children."""
        return self._context

    @property
    def children_specs(self) -> list[Any]:
        """The older name of `children`."""
        return self._children

    def is_leaf(self) -> bool:
        """Is it a leaf?"""
        return self.num_nodes == 1 and self.num_leaves == 1

    def children(self) -> list[Any]:
        """The children's structures."""
        return self._children.copy()

    def child(self, index: int) -> Any:
        """One child's structure."""
        return self._children[index]

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """The parts of `tree` that stand where this structure has leaves.

        Raises ValueError where the structures differ above them.
        """
        parts: list[PyTree] = []
        self._collect(tree, parts)
        return parts

    def _collect(self, node: PyTree, parts: list[PyTree]) -> None:
        if self.is_leaf():
            parts.append(node)
            return
        for child, part in zip(self._children, self._children_of(node), strict=True):
            child._collect(part, parts)

    def _children_of(self, node: PyTree) -> list[Any]:
        """The children of a node that must be of this structure at its root."""
        kind = _get_node_type(node)
        dicts = self.type in STANDARD_DICT_TYPES and kind in STANDARD_DICT_TYPES
        if kind != self.type and not dicts:
            raise ValueRangeError(f"Node type mismatch; expected {self.type!r}, but got {kind!r}.")
        if dicts:
            keys = self._context[1] if self.type is defaultdict else self._context
            self._check_arity(len(node))
            if set(node) != set(keys):
                missing, extra = set(keys) - set(node), set(node) - set(keys)
                raise ValueRangeError(
                    "Node keys mismatch" + (f"; missing key(s): {missing}" if missing else "")
                    + (f"; extra key(s): {extra}" if extra else "") + "."
                )  # fmt: skip
            return [node[key] for key in keys]
        children, context = SUPPORTED_NODES[kind].flatten_fn(node)
        self._check_arity(len(children))
        if context != self._context and kind is not deque:  # (its size limit may differ)
            raise ValueRangeError(
                f"Node context mismatch for node type {self.type!r}; expected "
                f"{self._context!r}, but got {context!r}."
            )
        return children

    def _check_arity(self, count: int) -> None:
        if count != self.num_children:
            raise ValueRangeError(
                f"Node arity mismatch; expected {self.num_children}, but got {count}."
            )

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree of this structure with these leaves; ValueError for another number of them."""
        given = leaves if isinstance(leaves, (list, tuple)) else list(leaves)
        if len(given) != self.num_leaves:
            raise ValueRangeError(
                f"treespec.unflatten(leaves): `leaves` has length {len(given)} but the spec refers "
                f"to a pytree that holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(given))

    def _build(self, leaves: Any) -> PyTree:
        if self.is_leaf():
            return next(leaves)
        children = [child._build(leaves) for child in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self._context)


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])

    def __repr__(self, indent: int = 0) -> str:
        return "*"

    def __reduce__(self) -> Any:
        return LeafSpec, ()


_LEAF_SPEC = LeafSpec()


def treespec_leaf() -> LeafSpec:
    """The structure of a leaf."""
    return _LEAF_SPEC


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The structure of a tuple of such children."""
    children = list(iterable)
    if not all([isinstance(child, TreeSpec) for child in children]):
        raise ValueRangeError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The structure of a dict of such children."""
    children = dict(mapping, **kwargs)
    if not all([isinstance(child, TreeSpec) for child in children.values()]):
        raise ValueRangeError(f"Expected a dictionary of TreeSpec values, got: {children!r}.")
    return TreeSpec(dict, list(children), list(children.values()))


def _is_constant_holder(spec: TreeSpec) -> bool:
    """Is it the structure of an instance of a `register_constant` class?"""
    return isinstance(spec._context, ConstantNode)


def _retrieve_constant(spec: TreeSpec) -> Any:
    """The instance of which that is the structure."""
    assert _is_constant_holder(spec), "spec does not correspond to a registered constant pytree"
    return spec.unflatten([])


# ---- as text -------------------------------------------------------------------------------------


class EnumEncoder(json.JSONEncoder):
    """JSON with members of enumerations."""

    def default(self, obj: object) -> Any:
        """An enumeration's member as its place and name."""
        if isinstance(obj, Enum):
            place = f"{type(obj).__module__}:{type(obj).__qualname__}"
            return {"__enum__": True, "fqn": place, "name": obj.name}
        return super().default(obj)


def enum_object_hook(obj: dict[str, Any]) -> Any:
    """Reads what `EnumEncoder` writes."""
    if "__enum__" not in obj:
        return obj
    module, _, name = obj["fqn"].partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found[obj["name"]]


def _to_json(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    how = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if how is None:
        raise MissingFeature(f"Serializing {spec.type} in pytree is not registered.")
    if how.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise MissingFeature(
            f"No registered serialization name for {spec.type} found. Please update your "
            "_register_pytree_node call with a `serialized_type_name` kwarg."
        )
    if how.to_dumpable_context is not None:
        context = how.to_dumpable_context(spec._context)
    else:
        try:
            context = json.dumps(spec._context, cls=EnumEncoder)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register "
                "a custom serializer using _register_pytree_node."
            ) from error
    children = [_to_json(child) for child in spec._children]
    return {"type": how.serialized_type_name, "context": context, "children_spec": children}


def _from_json(schema: Mapping[str, Any]) -> TreeSpec:
    if schema["type"] is None:
        return _LEAF_SPEC
    if schema["type"] not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise MissingFeature(f"Deserializing {schema['type']} in pytree is not registered.")
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE[schema["type"]]
    how = SUPPORTED_SERIALIZED_TYPES[kind]
    if how.from_dumpable_context is not None:
        context = how.from_dumpable_context(schema["context"])
    else:
        context = json.loads(schema["context"], object_hook=enum_object_hook)
    return TreeSpec(kind, context, [_from_json(child) for child in schema["children_spec"]])


def _check_protocol(protocol: Any) -> None:
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueRangeError(f"Unknown protocol {protocol}. Available protocols: [1]")


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """The structure as JSON text, as PyTorch writes it.

    >>> from torch.utils import _pytree as pytree
    >>> pytree.treespec_dumps(pytree.tree_structure([1]))[:20]
    '[1, {"type": "builti'
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "treespec_dumps(treespec): Expected `treespec` to be instance of PyTreeSpec but got "
            f"item of type {type(treespec)}."
        )
    used = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    _check_protocol(used)
    return json.dumps((used, _to_json(treespec)), cls=EnumEncoder)


@functools.lru_cache
def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that `treespec_dumps` wrote."""
    protocol, schema = json.loads(serialized)
    _check_protocol(protocol)
    return _from_json(schema)


class _Asterisk(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """The structure as Python writes it, with ``*`` for each leaf.

    >>> from torch.utils import _pytree as pytree
    >>> pytree.treespec_pprint(pytree.tree_structure({"a": (1, 2)}))
    "{'a': (*, *)}"
    """
    return repr(treespec.unflatten([_Asterisk("*")] * treespec.num_leaves))
