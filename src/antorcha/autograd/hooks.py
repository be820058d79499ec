"""Hooks: functions of the user's that see, and may replace, gradients on their way.

Where they are kept: those of a computed tensor on its node, by result number (so a write in place,
which gives the tensor another node, leaves them with the value they were meant for); those of a
leaf on the tensor. Order, as in PyTorch: a result's tensor hooks in order of registration, then
``retain_grad``, then the node's pre-hooks, the node, its post-hooks; for a leaf its tensor hooks,
the accumulation, then its post-accumulate hooks.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from antorcha.core import modes
from antorcha.core.hooks import hooks
from antorcha.errors import ArgumentError, GraphError, ShapeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.call.node import Node, edge_of
from antorcha.runtime.tensor import Tensor, bare, extra


class RemovableHandle:
    """What registering a hook gives: ``remove()`` takes the hook away again; also a context.

    >>> handle = torch.nn.ReLU().register_forward_hook(lambda module, args, output: None)
    >>> handle.remove()
    """

    next_id = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extra = () if extra_dict is None else extra_dict
        self.extra_dict_ref = tuple(
            [weakref.ref(d) for d in (extra if isinstance(extra, (list, tuple)) else (extra,))]
        )

    def remove(self) -> None:
        """Takes the hook away; a second call does nothing."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> Any:
        return self.hooks_dict_ref(), self.id, tuple([ref() for ref in self.extra_dict_ref])

    def __setstate__(self, state: Any) -> None:
        hooks, self.id, *extra = state
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        others = extra[0] if extra else None
        self.extra_dict_ref = tuple([weakref.ref(d) for d in others or () if d is not None])
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def register(table: OrderedDict[int, Any], hook: Any) -> RemovableHandle:
    """Puts a hook into a table, behind those that are there."""
    if not callable(hook):
        raise ArgumentError(f"a hook must be callable, not {type(hook).__name__}")
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle


class NodeHooks:
    """The hooks of a node: on its results' gradients, and around its own run."""

    __slots__ = ("metadata", "post", "pre", "retains", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, OrderedDict[int, Any]] = {}  # result -> Tensor.register_hook hooks
        self.retains: dict[int, Any] = {}  # result -> weakref of a tensor that retains its grad
        self.pre: OrderedDict[int, Any] = OrderedDict()
        self.post: OrderedDict[int, Any] = OrderedDict()
        self.metadata: dict[Any, Any] = {}


def hooks_of(node: Node) -> NodeHooks:
    """The node's hooks, made when it has none."""
    if node.hooks is None:
        node.hooks = NodeHooks()
    return node.hooks  # type: ignore[no-any-return]


# ------------------------------------------------------------------------------ run by the engine
def run_tensor_hooks(hooks: NodeHooks, grads: list[Any]) -> None:
    """What is registered on a node's results sees, replaces and keeps their gradients."""
    for k, table in hooks.tensor.items():
        if grads[k] is not None:
            grads[k] = run_table(table, grads[k])
    for k, ref in hooks.retains.items():
        tensor = ref()
        if tensor is not None and grads[k] is not None:
            old = tensor._grad
            tensor._grad = T.clone(grads[k]) if old is None else T.add(old, grads[k])


def run_table(table: dict[int, Any], g: Tensor) -> Tensor:
    """A tensor's hooks, one after the other."""
    for hook in list(table.values()):
        result = hook(g)
        if result is not None:
            g = _checked(hook, g, result)
    return g


def _checked(hook: Any, old: Tensor, result: Any) -> Tensor:
    """What a hook returned, if it may replace the gradient."""
    if not isinstance(result, Tensor):
        raise ArgumentError(f"expected Variable, but hook returned {type(result).__name__!r}")
    name = getattr(hook, "__name__", type(hook).__name__)
    if result._layout.shape != old._layout.shape:
        raise ShapeError(
            f"hook {name!r} has changed the size of value: it got {tuple(old._layout.shape)} and "
            f"returned {tuple(result._layout.shape)}"
        )
    if result._layout.dtype is not old._layout.dtype:
        raise GraphError(
            f"hook {name!r} has changed the type of value: it got {old._layout.dtype} and returned "
            f"{result._layout.dtype}"
        )
    return unrecorded(result)


def unrecorded(tensor: Tensor) -> Tensor:
    """A gradient that the user made, out of any graph where this pass creates none."""
    if tensor._rg and modes.state.word & modes.NO_GRAD:
        return bare(tensor._layout, tensor._storage, tensor._offset)
    return tensor


def run_pre_hooks(hooks: NodeHooks, grads: list[Any]) -> list[Any]:
    for hook in list(hooks.pre.values()):
        result = hook(tuple(grads))
        if result is not None:
            grads = _as_many(hook, result, len(grads))
    return grads


def run_post_hooks(hooks: NodeHooks, results: Any, grads: list[Any]) -> Any:
    for hook in list(hooks.post.values()):
        result = hook(tuple(results), tuple(grads))
        if result is not None:
            results = _as_many(hook, result, len(results))
    return results


def _as_many(hook: Any, result: Any, count: int) -> list[Any]:
    listed = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(listed) != count:
        name = getattr(hook, "__name__", type(hook).__name__)
        raise GraphError(
            f"hook {name!r} has returned an incorrect number of values (got {len(listed)}, but "
            f"expected {count})"
        )
    for each in listed:
        if each is not None and not isinstance(each, Tensor):
            raise ArgumentError(f"expected Variable, but hook returned {type(each).__name__!r}")
    return [None if each is None else unrecorded(each) for each in listed]


def run_leaf_hooks(leaf: Tensor, g: Tensor) -> Tensor:
    """A leaf's own hooks, then the pre-hooks of its AccumulateGrad node."""
    kept = leaf._extra
    if kept is None:
        return g
    if kept.hooks:
        g = run_table(kept.hooks, g)
    if kept.node_hooks is not None:
        (g,) = run_pre_hooks(kept.node_hooks, [g])
    return g


def run_accumulated_hooks(leaf: Tensor, g: Tensor) -> None:
    """After a gradient was added to a leaf's."""
    kept = leaf._extra
    if kept is None:
        return
    if kept.node_hooks is not None:
        run_post_hooks(kept.node_hooks, (), [g])
    for hook in list((kept.accumulate_hooks or {}).values()):
        result = hook(leaf)
        if result is not None:
            raise ArgumentError(
                f"a post accumulate grad hook must return None, not {type(result).__name__!r}"
            )


# --------------------------------------------------------------------------------- Tensor's methods
def register_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> RemovableHandle:
    """Calls ``hook(grad)`` each time a gradient of this tensor is computed.

    What it returns, if not None, takes the gradient's place. The handle's ``remove()`` takes the
    hook away. See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_hook.html.

    >>> v = torch.tensor([0., 0., 0.], requires_grad=True)
    >>> h = v.register_hook(lambda grad: grad * 2)  # double the gradient
    >>> v.backward(torch.tensor([1., 2., 3.]))
    >>> v.grad
    tensor([2., 4., 6.])
    >>> h.remove()
    """
    edge = edge_of(self)
    if edge is None:
        raise GraphError("cannot register a hook on a tensor that doesn't require gradient")
    node = self._fn
    if node is None:
        kept = extra(self)
        if kept.hooks is None:
            kept.hooks = OrderedDict()
        return register(kept.hooks, hook)
    return register(hooks_of(node).tensor.setdefault(self._nr, OrderedDict()), hook)


def register_post_accumulate_grad_hook(
    self: Tensor, hook: Callable[[Tensor], None]
) -> RemovableHandle:
    """Calls ``hook(tensor)`` after a gradient was added to this leaf's ``grad``.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.register_post_accumulate_grad_hook.html.
    """
    edge = edge_of(self)
    if edge is None:
        raise GraphError("cannot register a hook on a tensor that doesn't require gradient")
    if edge is not self:
        raise GraphError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    kept = extra(self)
    if kept.accumulate_hooks is None:
        kept.accumulate_hooks = OrderedDict()
    return register(kept.accumulate_hooks, hook)


def retain_grad(self: Tensor) -> None:
    """Asks that backward also keeps the gradient of this non-leaf tensor in ``grad``.

    See https://docs.pytorch.org/docs/stable/generated/torch.Tensor.retain_grad.html.
    """
    edge = edge_of(self)
    if edge is None:
        raise GraphError("can't retain_grad on Tensor that has requires_grad=False")
    if edge is self:
        return
    _retain(self)


def _retain(tensor: Tensor) -> None:
    node = tensor._fn
    assert node is not None
    retained = extra(tensor)
    if retained.retains is not None:  # the value before a write in place is no longer the tensor's
        retained.retains.pop(retained.retained_nr, None)
    table = hooks_of(node).retains
    table[tensor._nr] = weakref.ref(tensor)
    retained.retains, retained.retained_nr = table, tensor._nr


hooks.retain = _retain


def bind() -> None:
    """Sets this file's methods on Tensor."""
    for fn in (register_hook, register_post_accumulate_grad_hook, retain_grad):
        setattr(Tensor, fn.__name__, fn)
    Tensor.retains_grad = property(  # type: ignore[assignment,method-assign]
        lambda self: bool(self._extra and self._extra.retains is not None),
        doc="Does backward keep the gradient of this non-leaf tensor?",
    )
