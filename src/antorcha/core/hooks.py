"""What lower floors ask of higher ones: one table, filled by whoever provides each.

A file imports only lower floors, and some steps of a call, or of a backward pass, are those of
higher ones: subclasses, profiles, autocast. Whoever provides such a step sets it here when it is
imported; where nobody has to be there, the value is None until then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from antorcha.runtime.call.node import Node
    from antorcha.runtime.call.plan import Plan
    from antorcha.runtime.memory.layout import Layout
    from antorcha.runtime.tensor import Tensor

Arguments = tuple[Any, ...]
Names = dict[str, Any]


class HookTable:
    """The table."""

    # ---- who has a say in a call (each gives NotImplemented where it has nothing to say)
    batch: Callable[[Any, Arguments, Names], Any]
    """tensor.batched: runs a call for all examples of a batch among its arguments."""
    override: Callable[[Any, Arguments, Names], Any]
    """tensor.subclass: runs ``__torch_function__`` of modes and of the arguments' classes."""
    dual: Callable[[Any, Arguments, Names], Any]
    """autograd.forward_ad: runs a call with dual tensors among its arguments."""
    foreign: Callable[[Any, Arguments, Names], Any]
    """tensor.subclass: the same of classes that are no tensors, when a call has failed."""
    sparse: Callable[[Any, Arguments, Names], Any]
    """tensor.sparse: runs an op that has a sparse tensor among its arguments."""
    autocast: Callable[[Any, Arguments, Names, Callable[[Arguments, Names], Any]], Any]
    """amp: runs a call with its arguments cast."""
    intercept: Callable[[Plan, Any, Callable[[], Any]], Any]
    """call.intercepting: runs a plan, or does without."""
    overload_of: Callable[[Any, Arguments, Names], Any] | None = None
    """utils._python_dispatch: PyTorch's operator for a call."""

    batch_function: Callable[[Any, Arguments], Any]
    """tensor.batched: an autograd.Function of all examples of a batch."""
    check_contents: Callable[[Any], None]
    """tensor.batched: refuses to give the elements of an example."""

    # ---- the native path
    upgrade: Callable[[Any], Callable[..., Any] | None] | None = None
    """native.methods: gives an op, or the in-place form of one, its builtin."""
    native_runs: Callable[[], None]
    """tensor.subclass: is told that the native path runs from now on."""
    recent_layout: Callable[[Layout], Layout | None] | None = None
    """native.layouts: the layout that says the same and was made there not long ago."""
    share_array: Callable[[Any], Tensor | None] | None = None
    """native.arrays: a tensor over an array's memory; None: not in this way."""
    plan_of_view: Callable[[Tensor, Any], Plan | None]
    """tensor.indexing: the plan of a view that ``x[i]`` has made."""

    # ---- results
    resize_out: Callable[[str, Tensor, Any], None]
    """ops.memory: gives a tensor of ``out=`` the layout of the result."""
    mark_inference: Callable[[Any], None]
    """autograd.modes: makes results tensors of inference mode."""
    rebase: Callable[[Tensor, Node | None], None]
    """autograd.inplace: a write to a view changes its base's history."""
    regenerate: Callable[[Tensor], None]
    """autograd.inplace: makes a stale view's history afresh."""
    retain: Callable[[Tensor], None]
    """autograd.hooks: a tensor that retains its gradient has another node."""

    # ---- nodes, and what they keep
    pack: Callable[[Any, Tensor | None], Any]
    """autograd.saved: packs what is saved, under saved_tensors_hooks."""
    unpack: Callable[[Any, bool], Any]
    """autograd.saved: unpacks it."""
    origin: Callable[[], Any]
    """autograd.origin: where the program is."""

    # ---- a backward pass
    stream_of: Mapping[str, Callable[[Tensor], Any]] = MappingProxyType({})
    """devices, by their kinds, once a program has streams of its own there: a context in which the
    stream that a tensor was made on is the current one, and for whose end the one before waits.
    """
    gradients: Callable[[Tensor, Arguments, Tensor], list[Tensor | None]]
    """autograd: the recorded gradients of what a rule has recorded: result, operands, gradient."""
    batch_gradients: Callable[..., Any]
    """tensor.batched: the gradients of all examples of a batch."""
    new_replay: Callable[[Plan], None] | None = None
    """autograd.engine: a plan has a new ``ops.kinds.replay.Replay``."""
    meet_size: Callable[[Node, Any], None] | None = None
    """autograd.engine: a node of a plan by outline has come to its rule."""
    new_gradient_outline: Callable[[Any], None] | None = None
    """autograd.engine: an outline's nodes have a new ``ops.kinds.replay_sizes.GradientOutline``."""
    sparse_gradients: Any
    """tensor.sparse: sums, and accumulates, gradients that are sparse."""
    tell_origin: Callable[[Node], None]
    """autograd.anomaly: warns where a node was recorded."""
    check_nan: Callable[[Node, Any], None]
    """autograd.anomaly: refuses NaN among a node's gradients."""

    # ---- profiles (autograd.profiling)
    observe_call: Callable[..., Any]
    """Runs a call, and writes it down."""
    observe_node: Callable[..., Any]
    """Runs a node, and writes it down."""
    observe_block: Callable[..., Any]
    """Runs what has a name, and writes it down."""
    profiled_backward: Callable[..., Any] | None = None
    """The native backward pass while a profile is on."""


hooks = HookTable()


def set_stream_of(kind: str, stream_of: Callable[[Tensor], Any] | None) -> None:
    """Sets, or takes away, what ``hooks.stream_of`` has for a kind of device."""
    others = {name: found for name, found in hooks.stream_of.items() if name != kind}
    hooks.stream_of = others if stream_of is None else {**others, kind: stream_of}
