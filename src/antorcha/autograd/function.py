"""``autograd.Function``: operations with a derivative that the user writes.

``apply`` runs ``forward`` outside of any graph and gives its results a node of their own, whose
rule calls ``backward``. The context (``ctx``) belongs to the node and never holds the results: what
is saved of them is (layout, storage, offset, version), as for every node.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from antorcha.autograd.inplace import rebase
from antorcha.core import modes
from antorcha.core.hooks import hooks
from antorcha.core.lazy import lazy
from antorcha.core.shapes import broadcast_shapes
from antorcha.errors import ArgumentError, GraphError, MissingFeature, ShapeError, explain_missing
from antorcha.ops.kinds import derive
from antorcha.ops.kinds.derive import Rule, check_version, fit_one, saved_items
from antorcha.ops.kinds.record import T
from antorcha.runtime.call import node as nodes
from antorcha.runtime.call import path
from antorcha.runtime.call.node import Edge, Node, edge_of, save
from antorcha.runtime.call.plan import HOST, make
from antorcha.runtime.memory.layout import Layout
from antorcha.runtime.tensor import Tensor, bare, new

inspect = lazy("inspect")

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]


class FunctionCtx:
    """What ``forward`` leaves for ``backward``: saved tensors, settings, any attribute."""

    def __init__(self) -> None:
        self._to_save: tuple[Tensor | None, ...] = ()
        self._dirty: tuple[Tensor, ...] = ()
        self._constant: tuple[Tensor, ...] = ()
        self._materialize = True
        self._node: Callable[[], FunctionNode | None] = _no_node
        self.needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors for ``backward``, which finds them in ``ctx.saved_tensors``.

        Meant for inputs and outputs of ``forward``: writes to them before backward are noticed.
        """
        for k, each in enumerate(tensors):
            if each is not None and not isinstance(each, Tensor):
                raise ArgumentError(
                    f"save_for_backward can only save variables, but argument {k} is of type "
                    f"{type(each).__name__}"
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """For forward-mode differentiation, which antorcha does not have; accepted."""

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Says which inputs ``forward`` wrote to; they must be among its outputs."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Says which outputs have no gradient."""
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Should outputs without a gradient get zeros in ``backward`` (default), or None?"""
        self._materialize = bool(value)

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What ``save_for_backward`` was given."""
        node = self._node()
        if node is None:
            return self._to_save
        return tuple([None if k is None else k.unpack(node, n)
                      for n, k in enumerate(saved_items(node))])  # fmt: skip

    saved_variables = saved_tensors


def _no_node() -> None:
    return None


class SavedValue(NamedTuple):
    """A saved tensor of a custom function."""

    item: Any  # Saved, or packed by a hook
    tensor: Tensor | None  # an input (or any other tensor) itself; None for an output
    edge: Edge  # where its gradient goes
    output: int  # which output it is, or -1

    def unpack(self, node: Node, position: int) -> Tensor:
        """The tensor again, in its place in the graph."""
        if type(self.item) is not tuple:
            result: Tensor = hooks.unpack(self.item, True)
        else:
            check_version(node, self.item, position if self.output < 0 else -1 - self.output)
            if self.tensor is not None:
                return self.tensor
            result = bare(*self.item[:3])
        if self.output >= 0:
            result._rg, result._fn, result._nr = True, node, self.output
        elif self.edge is not None:
            result._rg = True
            result._fn, result._nr = self.edge if type(self.edge) is tuple else (self.edge, 0)
        return result


class FunctionNode(Node):
    """The node of a custom function; ``values`` is the context, whose attributes it shows."""

    __slots__ = ()

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self.values, attribute)

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{type(self).__name__} object at {id(self):#x}>"


class FunctionOp:
    """What the engine needs to know of a custom function."""

    why_not_written = (
        "This view was created inside a custom Function (or because an input was returned as-is) "
        "and the autograd logic to handle view+inplace would override the custom backward "
        "associated with the custom Function, leading to incorrect gradients. This behavior is "
        "forbidden. You can fix this by cloning the output of the custom Function."
    )

    def __init__(self, cls: type[Function]) -> None:
        self.name, self.node_name = cls.__name__, f"{cls.__name__}Backward"
        self.rule = FunctionRule(cls)


class FunctionRule(Rule):
    """Calls the user's ``backward`` and checks what it gives."""

    def __init__(self, cls: type[Function]) -> None:
        self.cls = cls

    def backward(self, node: Node, grads: list[Tensor | None], create: bool) -> Any:
        ctx: FunctionCtx = node.values
        assert node.plan is not None
        if ctx._materialize:
            grads = [zeros(layout) if g is None else g
                     for g, layout in zip(grads, node.plan.outs, strict=True)]  # fmt: skip
        word = derive.in_users_mode(create)
        try:
            given = self._user_backward()(ctx, *grads)
        finally:
            modes.set_word(word)
        return self._checked(node, given if isinstance(given, tuple) else (given,), create)

    def _user_backward(self) -> Callable[..., Any]:
        cls = self.cls
        if cls.backward is not Function.backward and cls.vjp is not Function.vjp:
            raise GraphError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                "should only implement one of them."
            )
        return cls.vjp if cls.vjp is not Function.vjp else cls.backward

    def _checked(self, node: Node, given: tuple[Any, ...], create: bool) -> list[Tensor | None]:
        name = node.op.node_name
        ctx: FunctionCtx = node.values
        is_tensor: tuple[bool, ...] = ctx._is_tensor  # type: ignore[attr-defined]
        expected = len(is_tensor)
        if len(given) > expected and set(given[expected:]) == {None}:
            given = given[:expected]
        if len(given) != expected:
            raise GraphError(
                f"function {name} returned an incorrect number of gradients (expected {expected}, "
                f"got {len(given)})"
            )
        results: list[Tensor | None] = []
        for k, (each, tensor) in enumerate(zip(given, is_tensor, strict=True)):
            if tensor:
                results.append(self._checked_one(node, len(results), each, create))
            elif each is not None:
                raise GraphError(
                    f"function {name} returned a gradient different than None at position {k + 1}, "
                    "but the corresponding forward input was not a Variable"
                )
        return results

    def _checked_one(self, node: Node, k: int, g: Any, create: bool) -> Tensor | None:
        if g is None or node.edges[k] is None:
            return None
        if not isinstance(g, Tensor):
            raise GraphError(f"expected Variable or None (got {type(g).__name__})")
        assert node.plan is not None
        layout = node.plan.tensors[k]
        assert layout is not None
        have, want = tuple(g._layout.shape), tuple(layout.shape)
        if have != want and not _expands(want, have):
            raise ShapeError(
                f"Function {node.op.node_name} returned an invalid gradient at index {k} - got "
                f"{list(have)} but expected shape compatible with {list(want)}"
            )
        if g._rg and not create:
            g = g.detach()
        return fit_one(g, layout)


def zeros(layout: Layout | None) -> Tensor | None:
    """Zeros of a layout's shape, dtype and device."""
    if layout is None:
        return None
    return T.full_layout(tuple(layout.shape), 0, layout.dtype, layout.device)  # type: ignore[no-any-return]


def _expands(shape: tuple[int, ...], wide: tuple[int, ...]) -> bool:
    try:
        return tuple(broadcast_shapes(shape, wide)) == wide
    except ShapeError:
        return False


class FunctionMeta(type):
    """Gives each Function its op, its class of nodes and its class of contexts."""

    _op: FunctionOp
    _node_cls: type[FunctionNode]
    _backward_cls: type[FunctionCtx]

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        super().__init__(name, bases, attrs)
        shown = {"__module__": "torch.autograd.function"}
        cls._op = FunctionOp(cls)  # type: ignore[arg-type]
        cls._node_cls = type(f"{name}Backward", (FunctionNode,), {"__slots__": (), **shown})
        cls._backward_cls = type(f"{name}Backward", (FunctionCtx,), {"_forward_cls": cls, **shown})


class Function(metaclass=FunctionMeta):
    """Base of operations with a derivative of the user's own.

    Subclass it, write ``forward`` and ``backward`` as static methods, and call ``apply``.
    See https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.Function.

    >>> class Exp(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, i):
    ...         result = i.exp()
    ...         ctx.save_for_backward(result)
    ...         return result
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         (result,) = ctx.saved_tensors
    ...         return grad_output * result
    >>> x = torch.zeros(2, requires_grad=True)
    >>> Exp.apply(x)
    tensor([1., 1.], grad_fn=<ExpBackward>)
    """

    generate_vmap_rule = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise GraphError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method: call "
            f"{type(self).__name__}.apply(...)."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the results: ``forward(ctx, *args)``, or ``forward(*args)`` where
        ``setup_context`` is defined too."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Saves what ``backward`` needs, where ``forward`` has no ``ctx``."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """From a gradient for each result to a gradient (or None) for each argument."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs ``forward`` and records ``backward``."""
        separate = cls.setup_context is not Function.setup_context
        if separate or kwargs:
            args = _positional(cls.forward, args, kwargs, separate)
        if modes.batched:
            done = hooks.batch_function(cls, args)
            if done is not NotImplemented:
                return done
        word = modes.state.word
        if modes.profiled:
            return hooks.observe_call(cls._op, args, kwargs, _apply, cls, args, separate, word)
        return _apply(cls, args, separate, word)


Function.vjp = Function.backward


def _positional(forward: Any, args: Any, kwargs: Any, separate: bool) -> tuple[Any, ...]:
    """The arguments in order, with the defaults of those not given."""
    lead = () if separate else (None,)
    bound = inspect.signature(forward).bind(*lead, *args, **kwargs)
    bound.apply_defaults()
    found: tuple[Any, ...] = bound.args[len(lead) :]
    return found


def _apply(cls: type[Function], args: tuple[Any, ...], separate: bool, word: int) -> Any:
    ctx = cls._backward_cls()
    tensors = [a for a in args if isinstance(a, Tensor)]
    edges: list[Edge] = [edge_of(t) for t in tensors]
    each_edge = iter(edges)
    ctx.needs_input_grad = tuple(
        [isinstance(a, Tensor) and next(each_edge) is not None for a in args]
    )
    ctx._is_tensor = tuple([isinstance(a, Tensor) for a in args])  # type: ignore[attr-defined]
    modes.set_word(word | modes.NO_GRAD)
    try:
        if separate:
            output = cls.forward(*args)
            cls.setup_context(ctx, args, output)
        else:
            output = cls.forward(ctx, *args)
    finally:
        modes.set_word(word)
    outs = output if isinstance(output, tuple) else (output,)
    for each in ctx._dirty:
        if not _among(each, outs):
            raise GraphError(
                "Some elements marked as dirty during the forward method were not returned as "
                "output. The inputs that are modified inplace must all be outputs of the Function."
            )
        each._storage.version += 1
    recorded = not word & (modes.NO_GRAD | modes.INFERENCE) and any(ctx.needs_input_grad)
    node = _make_node(cls, ctx, tensors, edges, outs, word) if recorded else None
    results = tuple([_result(ctx, node, tensors, out, k) for k, out in enumerate(outs)])
    if node is not None:
        node.saved = [_keep(node, each, outs, results, word) for each in ctx._to_save]
        ctx._node = weakref.ref(node)
    ctx._to_save, ctx._dirty, ctx._constant = (), (), ()
    return results if isinstance(output, tuple) else results[0]


def _among(tensor: Tensor, others: Sequence[Any]) -> bool:
    """Is it one of them, itself?"""
    return any(tensor is other for other in others)


def _make_node(
    cls: type[Function], ctx: FunctionCtx, tensors: list[Tensor], edges: list[Edge],
    outs: tuple[Any, ...], word: int,
) -> FunctionNode:  # fmt: skip
    node = new(cls._node_cls)
    node.op, node.values, node.edges = cls._op, ctx, tuple(edges)
    layouts = tuple([out._layout if isinstance(out, Tensor) else None for out in outs])
    node.plan = make(
        cls._op,  # type: ignore[arg-type]  # the node's, which no call finds
        HOST,
        layouts,  # type: ignore[arg-type]
        tensors=tuple([t._layout for t in tensors]),
    )
    node.mask = sum(1 << k for k, edge in enumerate(edges) if edge is not None)
    node.saved, node.hooks, node.seq = None, None, nodes.next_seq()
    node.stack = nodes.where()
    return node


def _result(
    ctx: FunctionCtx, node: FunctionNode | None, tensors: list[Tensor], out: Any, k: int
) -> Any:
    """An output of ``forward`` as the caller gets it."""
    if not isinstance(out, Tensor):
        return out
    is_input, dirty = _among(out, tensors), _among(out, ctx._dirty)
    constant = out._layout.dtype.kind not in "fc" or _among(out, ctx._constant)
    if dirty and not constant:
        if node is not None:
            _written(node, out, k)
        return out
    if constant or node is None:
        if dirty:
            return out
        if node is None and is_input:
            return T.alias(out)
        return bare(out._layout, out._storage, out._offset) if is_input or out._rg else out
    if is_input or out._fn is not None or out._rg:
        word = modes.set_word(modes.state.word | modes.NO_GRAD)
        out = T.alias(out)
        modes.set_word(word)
    if out._base is not None:
        out._seen = out._storage.version
    out._rg, out._fn, out._nr = True, node, k
    return out


def _written(node: FunctionNode, out: Tensor, k: int) -> None:
    """Gives an input that ``forward`` wrote to its new history."""
    base = out._base
    leaf = path.leaf_written(out)
    if leaf:
        raise GraphError(f"{leaf} that requires grad has been used in an in-place operation.")
    if base is None:
        if not out._rg and path.was_viewed(out):
            modes.note_stale_views(out)
        out._fn, out._nr, out._rg = node, k, True
        return
    if k != 0 or len(node.plan.outs) != 1 or node.plan.tensors[0] is not out._layout:  # type: ignore[union-attr]
        raise MissingFeature(
            f"{node.op.name}: a custom Function that writes to a view must have it as first input "
            "and only output; clone() the view first"
        )
    rebase(out, node)


def _keep(
    node: FunctionNode, tensor: Tensor | None, outs: tuple[Any, ...], results: tuple[Any, ...],
    word: int,
) -> SavedValue | None:  # fmt: skip
    if tensor is None:
        return None
    output, edge = -1, None
    for k, (out, result) in enumerate(zip(outs, results, strict=True)):
        if out is tensor and isinstance(result, Tensor) and result._fn is node:
            output = k
    kept = tensor if output < 0 else None
    if output < 0:
        edge = edge_of(tensor)
    item: Any = save(tensor)
    if word & modes.SAVED_HOOKS:
        item, kept = hooks.pack(item, tensor), None
    return SavedValue(item, kept, edge, output)


class _DelayedErrorRule(Rule):
    def backward(self, node: Node, grads: list[Tensor | None], create: bool) -> Any:
        raise GraphError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


class _DelayedError:
    name = node_name = "Error"
    rule = _DelayedErrorRule()


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a ``backward`` that cannot be differentiated in its turn."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        word = modes.set_word(modes.state.word | modes.NO_GRAD)
        try:
            given = fn(ctx, *args)
        finally:
            modes.set_word(word)
        if word & modes.NO_GRAD or not any(isinstance(a, Tensor) and a._rg for a in args):
            return given
        if isinstance(given, tuple):
            return tuple([_refusing(each) for each in given])
        return _refusing(given)

    return wrapper


def _refusing(tensor: Any) -> Any:
    """The tensor with a node that refuses to run."""
    if not isinstance(tensor, Tensor) or tensor._layout.dtype.kind not in "fc":
        return tensor
    result = bare(tensor._layout, tensor._storage, tensor._offset)
    node = new(nodes.node_type("Error"))
    node.op = _DelayedError
    node.plan = make(_DelayedError, HOST, (tensor._layout,))  # type: ignore[arg-type]  # as above
    node.edges, node.saved, node.values, node.mask = (), None, None, 0
    node.hooks, node.stack, node.seq = None, None, nodes.next_seq()
    result._rg, result._fn = True, node
    return result


BackwardCFunction = FunctionCtx


class InplaceFunction(Function):
    """A Function with an ``inplace`` setting; PyTorch keeps it for old programs."""

    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace


explain_missing("torch.autograd.function", globals())
