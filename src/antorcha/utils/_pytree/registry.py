"""Which containers are nodes of a tree, how each is taken apart and put together, and the keys that
lead to its children."""

from __future__ import annotations

import dataclasses
import importlib
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from antorcha.errors import ArgumentError, MissingFeature, ValueRangeError, warn

Context: TypeAlias = Any
PyTree: TypeAlias = Any
FlattenFn: TypeAlias = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFn: TypeAlias = Callable[[Iterable[Any], Context], PyTree]
NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"


class NodeDef(NamedTuple):
    """How a kind of container is taken apart and put together."""

    type: Any
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: Any


class _SerializeNodeDef(NamedTuple):
    """The name of a kind of container in a text, and how its context is written and read."""

    typ: Any
    serialized_type_name: str
    to_dumpable_context: Any
    from_dumpable_context: Any


SUPPORTED_NODES: dict[Any, NodeDef] = {}
SUPPORTED_SERIALIZED_TYPES: dict[Any, _SerializeNodeDef] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}
CONSTANT_NODES: set[type] = set()


# ---- keys ----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class SequenceKey:
    """Leads to the child at an index: ``[0]``."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """The child."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True, slots=True)
class MappingKey:
    """Leads to the child under a key: ``['a']``."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """The child."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True, slots=True)
class GetAttrKey:
    """Leads to an attribute: ``.x``."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The attribute."""
        return getattr(obj, self.name)


# ---- registering ---------------------------------------------------------------------------------


def register_pytree_node(
    cls: Any, flatten_fn: FlattenFn, unflatten_fn: UnflattenFn, *,
    serialized_type_name: str | None = None, to_dumpable_context: Any = None,
    from_dumpable_context: Any = None, flatten_with_keys_fn: Any = None,
) -> None:  # fmt: skip
    """Makes a class a container whose children are looked at.

    Args:
        cls (type): the class
        flatten_fn: gives ``(children, context)`` of an instance
        unflatten_fn: makes an instance of ``children, context``
        serialized_type_name: its name for `treespec_dumps`
        to_dumpable_context, from_dumpable_context: from the context to what JSON takes, and back
        flatten_with_keys_fn: gives ``([(key, child), ...], context)``

    Raises ValueError for a class that is registered already.
    """
    if cls in SUPPORTED_NODES:
        raise ValueRangeError(f"{cls} is already registered as pytree node.")
    _private_register_pytree_node(
        cls, flatten_fn, unflatten_fn, serialized_type_name=serialized_type_name,
        to_dumpable_context=to_dumpable_context, from_dumpable_context=from_dumpable_context,
        flatten_with_keys_fn=flatten_with_keys_fn,
    )  # fmt: skip


def _private_register_pytree_node(
    cls: Any, flatten_fn: FlattenFn, unflatten_fn: UnflattenFn, *,
    serialized_type_name: str | None = None, to_dumpable_context: Any = None,
    from_dumpable_context: Any = None, flatten_with_keys_fn: Any = None,
) -> None:  # fmt: skip
    """`register_pytree_node`, which may register a class again (and warns of it)."""
    if cls in SUPPORTED_NODES:
        warn(f"{cls} is already registered as pytree node. Overwriting the previous registration.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueRangeError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or "
            "registered."
        )
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    name = serialized_type_name or NO_SERIALIZED_TYPE_NAME_FOUND
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(
        cls, name, to_dumpable_context, from_dumpable_context
    )
    SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


def _register_pytree_node(
    cls: Any, flatten_fn: FlattenFn, unflatten_fn: UnflattenFn, to_str_fn: Any = None,
    maybe_from_str_fn: Any = None, **options: Any,
) -> None:  # fmt: skip
    """The older name of `register_pytree_node`."""
    warn("`torch.utils._pytree._register_pytree_node` is deprecated. Please use "
         "`torch.utils._pytree.register_pytree_node` instead.", FutureWarning)  # fmt: skip
    _private_register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def _deregister_pytree_node(cls: Any) -> None:
    """Forgets a class."""
    del SUPPORTED_NODES[cls]
    name = SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name
    del SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    CONSTANT_NODES.discard(cls)


def register_dataclass(
    cls: Any, *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:  # fmt: skip
    """Makes a dataclass (or a class made of named fields) a container of its fields.

    Raises ValueError where the fields named are not those that make an instance.
    """
    names = field_names
    if dataclasses.is_dataclass(cls):
        fields = {each.name: None for each in dataclasses.fields(cls) if each.init}
        if names is None:
            names = list(fields)
        else:
            needed = fields.keys() - set(drop_field_names or ())
            if needed != set(names):
                raise ValueRangeError(
                    "field_names does not include all dataclass fields.\nMissing fields in "
                    f"`field_names`: {sorted(needed - set(names))}. Unexpected fields in "
                    f"`field_names`: {sorted(set(names) - needed)}."
                )
    if names is None:
        raise ValueRangeError(
            "field_names must be specified with a list of all fields used to initialize "
            f"{cls}, as it is not a dataclass."
        )
    fixed = names

    def flatten(obj: Any) -> tuple[list[Any], Context]:
        values = {name: getattr(obj, name) for name in fixed}
        there = [name for name in fixed if values[name] is not None]
        return [values[k] for k in there], [there, [k for k in fixed if values[k] is None]]

    def unflatten(values: Iterable[Any], context: Context) -> Any:
        there, none = context
        return cls(**dict(zip(there, values, strict=True)), **dict.fromkeys(none))

    def flatten_with_keys(obj: Any) -> tuple[list[Any], Context]:
        values, context = flatten(obj)
        return [(GetAttrKey(k), v) for k, v in zip(context[0], values, strict=True)], context

    _private_register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class ConstantNode:
    """The context of a node without leaves: the value itself."""

    value: Any


def register_constant(cls: Any) -> None:
    """Makes a class a node without leaves: its instances stay as they are.

    Raises TypeError for a class that compares or hashes by identity alone.
    """
    if cls.__eq__ is object.__eq__:
        raise ArgumentError("register_constant(cls) expects `cls` to have a non-default `__eq__` "
                            "implementation.")  # fmt: skip
    if cls.__hash__ is None:
        raise ArgumentError("register_constant(cls) expects `cls` to have a non-default `__hash__` "
                            "implementation.")  # fmt: skip
    _private_register_pytree_node(
        cls, lambda x: ([], ConstantNode(x)), lambda _, context: context.value,
        flatten_with_keys_fn=lambda x: ([], ConstantNode(x)),
    )  # fmt: skip
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: Any) -> bool:
    """Was the class given to `register_constant`?"""
    return isinstance(cls, type) and cls in CONSTANT_NODES


def _register_namedtuple(cls: Any, *, serialized_type_name: str) -> None:
    """Gives a class of named tuples a name for `treespec_dumps`."""
    _private_register_pytree_node(
        cls, _namedtuple_flatten, _namedtuple_unflatten,
        serialized_type_name=serialized_type_name, to_dumpable_context=_namedtuple_serialize,
        from_dumpable_context=_namedtuple_deserialize,
        flatten_with_keys_fn=_namedtuple_flatten_with_keys,
    )  # fmt: skip


# ---- which kind of container? --------------------------------------------------------------------


def is_namedtuple_class(cls: Any) -> bool:
    """Is it a class of named tuples?"""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(getattr(cls, "_fields", None), tuple)
        and all([type(field) is str for field in cls._fields])  # type: ignore[attr-defined]
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def is_namedtuple(obj: Any) -> bool:
    """Is it a named tuple, or a class of them?"""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_instance(obj: Any) -> bool:
    """Is it a named tuple?"""
    return is_namedtuple_class(type(obj))


_is_namedtuple_instance = is_namedtuple_instance


def is_structseq_class(cls: Any) -> bool:
    """Is it a class of CPython's structures, such as ``time.struct_time``?"""
    counts = ("n_fields", "n_sequence_fields", "n_unnamed_fields")
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all([isinstance(getattr(cls, count, None), int) for count in counts])
        and not cls.__flags__ & 1 << 10  # (Py_TPFLAGS_BASETYPE: none can be derived)
    )


def is_structseq(obj: Any) -> bool:
    """Is it one of CPython's structures, or a class of them?"""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_instance(obj: Any) -> bool:
    """Is it one of CPython's structures?"""
    return is_structseq_class(type(obj))


def _get_node_type(tree: Any) -> Any:
    """What `SUPPORTED_NODES` is asked for: the class, and for every named tuple one key."""
    node_type = type(tree)
    return namedtuple if is_namedtuple_class(node_type) else node_type


# ---- the containers of Python --------------------------------------------------------------------


def _sequence_keys(values: Iterable[Any]) -> list[Any]:
    return [(SequenceKey(k), value) for k, value in enumerate(values)]


def _mapping_keys(d: Any) -> list[Any]:
    return [(MappingKey(key), value) for key, value in d.items()]


def _tuple_flatten(d: Any) -> tuple[list[Any], Context]:
    return list(d), None


def _tuple_flatten_with_keys(d: Any) -> tuple[list[Any], Context]:
    return _sequence_keys(d), None


def _tuple_unflatten(values: Iterable[Any], context: Context) -> Any:
    return tuple(values)


_list_flatten, _list_flatten_with_keys = _tuple_flatten, _tuple_flatten_with_keys


def _list_unflatten(values: Iterable[Any], context: Context) -> Any:
    return list(values)


def _dict_flatten(d: Any) -> tuple[list[Any], Context]:
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: Any) -> tuple[list[Any], Context]:
    return _mapping_keys(d), list(d)


def _dict_unflatten(values: Iterable[Any], context: Context) -> Any:
    return dict(zip(context, values, strict=True))


_ordereddict_flatten, _ordereddict_flatten_with_keys = _dict_flatten, _dict_flatten_with_keys


def _ordereddict_unflatten(values: Iterable[Any], context: Context) -> Any:
    return OrderedDict(zip(context, values, strict=True))


_odict_flatten, _odict_unflatten = _ordereddict_flatten, _ordereddict_unflatten


def _namedtuple_flatten(d: Any) -> tuple[list[Any], Context]:
    return list(d), type(d)


def _namedtuple_flatten_with_keys(d: Any) -> tuple[list[Any], Context]:
    return [(GetAttrKey(k), v) for k, v in zip(type(d)._fields, d, strict=True)], type(d)


def _namedtuple_unflatten(values: Iterable[Any], context: Context) -> Any:
    return context(*values)


def _namedtuple_serialize(context: Context) -> Any:
    found = SUPPORTED_SERIALIZED_TYPES.get(context)
    if found is None or found.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise MissingFeature(
            f"Can't serialize TreeSpec of namedtuple class {context} because we didn't register a "
            "serializated_type_name. Please register using `_register_namedtuple`."
        )
    return found.serialized_type_name


def _namedtuple_deserialize(dumpable_context: Any) -> Context:
    if dumpable_context not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise MissingFeature(
            f"Can't deserialize TreeSpec of namedtuple class {dumpable_context} because we "
            "couldn't find a serializated name."
        )
    return SERIALIZED_TYPE_TO_PYTHON_TYPE[dumpable_context]


def _defaultdict_flatten(d: Any) -> tuple[list[Any], Context]:
    return list(d.values()), [d.default_factory, list(d)]


def _defaultdict_flatten_with_keys(d: Any) -> tuple[list[Any], Context]:
    return _mapping_keys(d), [d.default_factory, list(d)]


def _defaultdict_unflatten(values: Iterable[Any], context: Context) -> Any:
    factory, keys = context
    return defaultdict(factory, zip(keys, values, strict=True))


def _defaultdict_serialize(context: Context) -> Any:
    factory, keys = context
    return {"default_factory_module": factory.__module__,
            "default_factory_name": factory.__qualname__, "dict_context": keys}  # fmt: skip


def _defaultdict_deserialize(dumpable_context: Any) -> Context:
    module = importlib.import_module(dumpable_context["default_factory_module"])
    factory = getattr(module, dumpable_context["default_factory_name"])
    return [factory, dumpable_context["dict_context"]]


def _deque_flatten(d: Any) -> tuple[list[Any], Context]:
    return list(d), d.maxlen


def _deque_flatten_with_keys(d: Any) -> tuple[list[Any], Context]:
    return _sequence_keys(d), d.maxlen


def _deque_unflatten(values: Iterable[Any], context: Context) -> Any:
    return deque(values, maxlen=context)


_PYTHONS: tuple[tuple[Any, ...], ...] = (
    (tuple, "builtins.tuple", _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys),
    (list, "builtins.list", _list_flatten, _list_unflatten, _list_flatten_with_keys),
    (dict, "builtins.dict", _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    (namedtuple, "collections.namedtuple", _namedtuple_flatten, _namedtuple_unflatten,
     _namedtuple_flatten_with_keys, _namedtuple_serialize, _namedtuple_deserialize),
    (OrderedDict, "collections.OrderedDict", _ordereddict_flatten, _ordereddict_unflatten,
     _ordereddict_flatten_with_keys),
    (defaultdict, "collections.defaultdict", _defaultdict_flatten, _defaultdict_unflatten,
     _defaultdict_flatten_with_keys, _defaultdict_serialize, _defaultdict_deserialize),
    (deque, "collections.deque", _deque_flatten, _deque_unflatten, _deque_flatten_with_keys),
)  # fmt: skip
for _cls, _name, _flatten, _unflatten, _with_keys, *_context in _PYTHONS:
    _private_register_pytree_node(
        _cls, _flatten, _unflatten, serialized_type_name=_name, flatten_with_keys_fn=_with_keys,
        to_dumpable_context=_context[0] if _context else None,
        from_dumpable_context=_context[1] if _context else None,
    )  # fmt: skip
STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})
BUILTIN_TYPES = frozenset([row[0] for row in _PYTHONS])
