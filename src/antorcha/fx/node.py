"""Node: one step of a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from antorcha.errors import explain_missing
from antorcha.fx.functions import qualified_name, type_name
from antorcha.fx.immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from antorcha.fx.graph import Graph

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

Target = Any
Argument = Any
base_types = (str, int, float, bool, complex)

_OPS = frozenset(
    ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
)
_side_effectful_functions: set[Any] = set()
_get_qualified_name = qualified_name
_type_repr = type_name


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a function whose calls stay in a graph though nobody uses their results."""
    _side_effectful_functions.add(fn)
    return fn


def _format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    if hasattr(arg, "_custom_fx_repr_fn"):
        return str(arg._custom_fx_repr_fn())
    if isinstance(arg, dict):
        return f"{{{', '.join([f'{k}: {_format_arg(v)}' for k, v in arg.items()])}}}"
    if isinstance(arg, (list, tuple)):
        shown = [_format_arg(a) for k, a in enumerate(arg) if k < max_list_len]
        rest = f", ...[total_len={len(arg)}]" if len(arg) > max_list_len else ""
        if isinstance(arg, list):
            return f"[{', '.join(shown)}{rest}]"
        return f"({', '.join(shown)}{',' if len(arg) == 1 else ''}{rest})"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


class Node:
    """One step of a graph: what is called, with what, and who uses the result.

    Attributes:
        op (str): ``placeholder`` (an argument of the graph), ``get_attr`` (a parameter or buffer),
            ``call_function``, ``call_method``, ``call_module``, or ``output``
        target: the function, or the name of the method, module, attribute or argument
        args, kwargs: the arguments; other nodes stand for their results. Assign to change them.
        name (str): the variable in generated code
        users (dict): the nodes that use it, as keys
        meta (dict): what passes note of it

    See https://docs.pytorch.org/docs/stable/fx.html#torch.fx.Node.
    """

    def __init__(
        self, graph: Graph, name: str, op: str, target: Target, args: tuple[Any, ...],
        kwargs: dict[str, Any], return_type: Any = None,
    ) -> None:  # fmt: skip
        if op not in _OPS:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{type(target).__name__} but a Callable is expected"
            )
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{type(target).__name__} but a str is expected"
            )
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self.type = return_type
        self._input_nodes: dict[Node, None] = {}
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._update_args_kwargs(args, kwargs)

    # --------------------------------------------------------------------------- place in the graph
    @property
    def next(self) -> Node:
        """The node after it."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before it."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Moves ``x``, a node of the same graph, before this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Moves ``x``, a node of the same graph, after this one."""
        self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def __lt__(self, other: Node) -> bool:
        order = {node: k for k, node in enumerate(self.graph.nodes)}
        return order[self] < order[other]

    def __gt__(self, other: Node) -> bool:
        return other < self

    # ------------------------------------------------------------------------------------ arguments
    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments."""
        return self._args

    @args.setter
    def args(self, args: tuple[Any, ...]) -> None:
        self._update_args_kwargs(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._update_args_kwargs(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def _update_args_kwargs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def use(node: Node) -> Node:
            self._input_nodes[node] = None
            node.users[self] = None
            return node

        self._args = tuple([map_arg(arg, use) for arg in args])
        self._kwargs = immutable_dict({name: map_arg(v, use) for name, v in kwargs.items()})

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replaces one positional argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Puts a positional argument before the one at ``idx``."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(
                f"insert_args index must be between 0 and len(self.args), got {idx}"
            )
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replaces, or adds, one keyword argument."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Uses ``new_input`` wherever ``old_input`` was an argument."""

        def chosen(node: Node) -> Node:
            return new_input if node is old_input else node

        self._update_args_kwargs(map_arg(self._args, chosen), map_arg(self._kwargs, chosen))

    _replace_input_with = replace_input_with

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] | None = None, *,
        propagate_meta: bool = False,
    ) -> list[Node]:  # fmt: skip
        """Has all users (those that ``delete_user_cb`` accepts) use another node; gives them."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but "
                    "replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = []
        for user in list(self.users):
            if delete_user_cb is None or delete_user_cb(user):
                changed.append(user)
                user.replace_input_with(self, replace_with)
        return changed

    # ----------------------------------------------------------------------------------- properties
    @property
    def stack_trace(self) -> str | None:
        """Where in the traced program it comes from, if the tracer recorded that."""
        found: str | None = self.meta.get("stack_trace")
        return found

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Must it stay though nobody uses its result?"""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            if self.target in _side_effectful_functions:
                return True
            name = str(getattr(self.target, "__name__", ""))
            if name == "setitem" or (name.endswith("_") and not name.endswith("__")):
                return True
            return bool(impure_random and getattr(self.target, "random", False) is True)
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return bool(getattr(owner.get_submodule(self.target), "_is_impure", False))
        return False

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            name = self.graph._graph_namespace.create_name(candidate, None)
            self.name = name
            self.graph._graph_namespace._rename_object(self, name)

    # ---------------------------------------------------------------------------------------- text
    def __repr__(self) -> str:
        return self.name if self._repr_fn is None else self._repr_fn(self)

    @staticmethod
    def _pretty_print_target(target: Any) -> str:
        if isinstance(target, str):
            return target
        name, module = getattr(target, "__name__", None), getattr(target, "__module__", None)
        if name is not None and module in ("builtins", "_operator"):
            return f"{module.removeprefix('_')}.{name}"
        return qualified_name(target)

    def format_node(
        self, placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None, *, include_tensor_metadata: bool = False,
    ) -> str | None:  # fmt: skip
        """The line that stands for it in the graph's text."""
        kind = f"{type_name(self.type)} " if self.type is not None else ""
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            if placeholder_names:
                placeholder_names.append(self.target + (f": {kind.strip()}" if kind else ""))
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"{head}[target={self.target}]{default}"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_name(self.type)}"
            return f"return {self.args[0]}"
        head = f"{head}[target={self._pretty_print_target(self.target)}]"
        if self.op == "get_attr":
            return head
        return f"{head}(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """The argument with ``fn`` of each node in it, through tuples, lists, dicts and slices."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """The argument with ``fn`` of each value in it, through tuples, lists, dicts and slices."""
    if isinstance(a, tuple):
        values = [map_aggregate(each, fn) for each in a]
        return type(a)(*values) if hasattr(a, "_fields") else tuple(values)
    if isinstance(a, list):
        return immutable_list([map_aggregate(each, fn) for each in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(value, fn) for key, value in a.items()})
    if isinstance(a, slice):
        return slice(*[map_aggregate(each, fn) for each in (a.start, a.stop, a.step)])
    return fn(a)


explain_missing("torch.fx.node", globals())
