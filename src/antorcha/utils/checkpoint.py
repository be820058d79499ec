"""``torch.utils.checkpoint``: parts of a model that are computed again in the backward pass.

What backward needs of a checkpointed part is not kept, only the part's arguments; the first tensor
of it that backward asks for has the part run again, in the state that the generator and autocast
were in (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016). `antorcha.utils.
selective` keeps the results of some ops.

A part inside another one is recomputed when its arguments, which the other has not kept either,
have been.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from antorcha.amp import autocast_mode as amp
from antorcha.autograd import backward as run_backward
from antorcha.autograd import enable_grad, engine, no_grad, saved
from antorcha.autograd.function import Function
from antorcha.autograd.saved import saved_tensors_hooks
from antorcha.core import modes
from antorcha.errors import GraphError, ShapeError, ValueRangeError, explain_missing, warn
from antorcha.nn.containers import Sequential
from antorcha.random import fork_rng, get_all_states, set_all_states
from antorcha.runtime.call.node import edge_of
from antorcha.runtime.tensor import Tensor
from antorcha.utils.selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
    traced,
)

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]  # fmt: skip

Contexts = Callable[[], tuple[Any, Any]]
_debug: bool | None = None
_early_stop: bool | None = None


class CheckpointError(RuntimeError):
    """The recomputation saved other tensors than the forward pass."""


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Inside, ``checkpoint`` takes this for its ``debug``; None leaves it to each call."""
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Inside, ``checkpoint`` takes this for its ``early_stop``, whenever backward runs."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


def noop_context_fn() -> tuple[Any, Any]:
    """Two contexts that do nothing: of the forward pass, and of the recomputation."""
    return contextlib.nullcontext(), contextlib.nullcontext()


# --------------------------------------------------------------------------------- the public calls
def checkpoint(
    function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
    context_fn: Contexts = noop_context_fn, determinism_check: str = "default",
    debug: bool = False, early_stop: bool = True, **kwargs: Any,
) -> Any:  # fmt: skip
    """``function(*args, **kwargs)``, whose intermediate results are computed again for backward.

    Args:
        function: must do the same both times
        use_reentrant (bool): True runs a backward pass within the backward pass: all arguments are
            positional, one of them must require a gradient, and ``autograd.grad`` is refused.
            False has no such limits. It should be given: without it, a warning and True
        preserve_rng_state (bool): the recomputation draws the numbers of the forward pass.
            Default: True
        context_fn: gives two context managers, for the forward pass and for the recomputation
        determinism_check (str): ``"default"`` compares shapes, dtypes and devices of what was saved
            with what is saved again; ``"none"`` does not
        debug (bool): the error of that check lists the ops of both runs
        early_stop (bool): the recomputation ends with the last tensor that is needed

    See https://docs.pytorch.org/docs/stable/checkpoint.html.

    >>> from torch.utils.checkpoint import checkpoint
    >>> x = torch.ones(2, requires_grad=True)
    >>> checkpoint(lambda x: x.exp().exp(), x, use_reentrant=False).sum().backward()
    >>> x.grad
    tensor([41.1936, 41.1936])
    """
    if use_reentrant is None:
        _warn_unasked("torch.utils.checkpoint: the use_reentrant parameter should be passed "
                      "explicitly. Starting in PyTorch 2.9, calling checkpoint without "
                      "use_reentrant will raise an exception.")  # fmt: skip
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if not use_reentrant:
        part = _Checkpoint(function, args, kwargs, preserve, context_fn, determinism_check, debug,
                     early_stop)  # fmt: skip
        return part.forward()
    if kwargs:
        raise ValueRangeError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug:
        raise ValueRangeError(
            "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
        )
    return CheckpointFunction.apply(function, preserve, *args)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Runs a Sequential, or a list of functions, in ``segments`` parts, all but the last of them
    checkpointed.

    See https://docs.pytorch.org/docs/stable/checkpoint.html#torch.utils.checkpoint.checkpoint_sequential.
    """
    if use_reentrant is None:
        _warn_unasked("torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter "
                      "should be passed explicitly. In version 2.9 we will raise an exception if "
                      "use_reentrant is not passed.")  # fmt: skip
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueRangeError("Unexpected keyword arguments: " + ",".join(kwargs))
    each = list(functions.children()) if isinstance(functions, Sequential) else functions
    size = len(each) // segments
    start = 0
    for _ in range(segments - 1):
        run = _in_a_row(each[start : start + size])
        input = checkpoint(run, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
        start += size
    return _in_a_row(each[start:])(input)


def _in_a_row(functions: Any) -> Callable[[Any], Any]:
    def run(input: Any) -> Any:
        for function in functions:
            input = function(input)
        return input

    return run


def _warn_unasked(first: str) -> None:
    warn(
        f"{first} use_reentrant=False is recommended, but if you need to preserve the current "
        "default behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
        "differences between the two variants.",
        UserWarning,
    )


# -------------------------------------------------------------------- the state of the forward pass
class _Surroundings:
    """What a part is recomputed in: the generator's state, and autocast."""

    def __init__(self, preserve_rng_state: bool) -> None:
        self.rng = get_all_states() if preserve_rng_state else None
        self.autocast: dict[str, Any] = {
            "enabled": amp.is_autocast_enabled("cpu"),
            "dtype": amp.get_autocast_dtype("cpu"),
            "cache_enabled": amp.is_autocast_cache_enabled(),
        }

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            if self.rng is not None:
                stack.enter_context(fork_rng())
                set_all_states(self.rng)
            stack.enter_context(amp.autocast("cpu", **self.autocast))
            yield


# --------------------------------------------------------------------------- without a second graph
class _Stop(Exception):
    """The last tensor that is needed was computed."""


class _Holder:
    """Stands in a node for a tensor that it would have saved; ``value`` is the recomputed one,
    until the node has taken it."""

    __slots__ = ("__weakref__", "value")

    def __init__(self) -> None:
        self.value: Tensor | None = None


class _Checkpoint:
    """A call that is checkpointed: what it needs to run again, and what it would have saved."""

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        preserve: bool, context_fn: Contexts, determinism_check: str, debug: bool,
        early_stop: bool,
    ) -> None:  # fmt: skip
        self.function, self.args, self.kwargs = function, args, kwargs
        self.logs: tuple[list[str], list[str]] | None = None
        if debug if _debug is None else _debug:
            if context_fn is not noop_context_fn:
                raise ValueRangeError("debug=True is incompatible with non-default context_fn")
            context_fn, self.logs = traced()
        if determinism_check not in ("default", "none"):
            raise ValueRangeError(
                "determinism_check should be one of ['default', 'none'], but got "
                f"{determinism_check}"
            )
        self.checked = determinism_check == "default"
        self.forward_context, self.recompute_context = context_fn()
        self.surroundings = _Surroundings(preserve)
        self.early_stop = early_stop if _early_stop is None else _early_stop
        self.holders: list[weakref.ref[_Holder]] = []
        self.meta: list[Any] = []
        self.complete = False  # is the forward pass over?

    def forward(self) -> Any:
        """The call. Without gradients it is an ordinary one."""
        if modes.state.word & modes.NO_GRAD:
            return self.function(*self.args, **self.kwargs)
        args, self.args = self.args, tuple([_Argument(each) for each in self.args])
        done = False
        with saved_tensors_hooks(self._hide, self._bring), self.forward_context:
            result = self.function(*args, **self.kwargs)
            done = True
        if not done:
            raise GraphError(
                "torch.utils.checkpoint: the forward context provided by context_fn suppressed an "
                "exception raised during the checkpointed forward. This is not supported because "
                "checkpoint cannot return a value for a failed forward."
            )
        self.complete = True
        return result

    def _hide(self, tensor: Tensor) -> _Holder:
        holder = _Holder()
        self.holders.append(weakref.ref(holder))
        self.meta.append(_meta(tensor) if self.checked else None)
        return holder

    def _bring(self, holder: _Holder) -> Tensor:
        if holder.value is None:
            try:
                self._recompute()
            except CheckpointError as error:
                raise self._with_logs(error) from error
        value, holder.value = holder.value, None
        assert value is not None
        return value

    def _recompute(self) -> None:
        args = [each.value() for each in self.args]
        run = _Recomputation(self)
        with contextlib.suppress(_Stop), run, enable_grad(), self.surroundings.again():  # noqa: SIM117
            with self.recompute_context:
                self.function(*args, **self.kwargs)
        run.check()

    def _with_logs(self, error: CheckpointError) -> CheckpointError:
        if self.logs is None:
            return error
        forward, again = ["\n".join(lines) for lines in self.logs]
        return CheckpointError(
            "An error happened while unpacking tensors; dumping logs of latest computation because "
            "you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.\n\n"
            f"Operations executed during the original forward:\n\n{forward}\n\n"
            f"Operations executed during recomputation:\n\n{again}\n\n"
            "ERROR: Detected non-determinism while running activation checkpointing. Compare the "
            f"operators of both to see where they differ.\n{error}"
        )


class _Recomputation(saved_tensors_hooks):
    """A run of a part again: what it saves goes to the holders, one after the other."""

    def __init__(self, part: _Checkpoint) -> None:
        self.part, self.count, self.inner = part, 0, False
        self.meta: dict[int, Any] = {}
        super().__init__(self._hand_over, lambda tensor: tensor)

    def _hand_over(self, tensor: Tensor) -> Tensor:
        part, k = self.part, self.count
        self.count += 1
        if k >= len(part.holders):
            if part.complete:
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than "
                    f"during the original forward pass.\n{_TIP}"
                )
            self.inner = True  # backward runs within the part, which has saved only this much
            return tensor
        holder = part.holders[k]()
        if holder is not None:
            holder.value = tensor
            self.meta[k] = _meta(tensor) if part.checked else None
        if part.early_stop and self.count == len(part.holders):
            raise _Stop
        return tensor

    def check(self) -> None:
        """Refuses a run that did not save what the forward pass had saved."""
        if self.inner:
            return
        part = self.part
        if self.count != len(part.holders):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(part.holders)}\n"
                f"Number of tensors saved during recomputation: {self.count}.\n{_TIP}"
            )
        wrong = [
            f"tensor at position {k}:\nsaved metadata: {part.meta[k]}\n"
            f"recomputed metadata: {meta}\n"
            for k, meta in self.meta.items()
            if part.meta[k] != meta
        ]
        if wrong:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have "
                f"different metadata than during the forward pass.\n{''.join(wrong)}.\n{_TIP}"
            )


_TIP = (
    "\nTip: To see a more detailed error message, either pass `debug=True` to "
    "`torch.utils.checkpoint.checkpoint(...)` or wrap the code block with `with "
    "torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to enable checkpoint-debug mode "
    "globally.\n"
)


def _meta(tensor: Tensor) -> dict[str, Any]:
    layout = tensor._layout
    return {"shape": layout.shape, "dtype": layout.dtype, "device": layout.device}


class _Argument:
    """An argument of a part, for later. A tensor is saved as a node would save it: the hooks of an
    outer part hide it, and it must not be written to."""

    def __init__(self, value: Any) -> None:
        self.given = value
        self.packed: Any = None
        if isinstance(value, Tensor):
            self.version = value._storage.version
            if modes.state.word & modes.SAVED_HOOKS:
                self.packed, self.edge = saved.pack(True, value), edge_of(value)
                self.given = None

    def value(self) -> Any:
        """The argument, requiring a gradient where it did."""
        if self.packed is not None:
            return _linked(saved.unpack(self.packed, False), self.edge)
        if isinstance(self.given, Tensor) and self.given._storage.version != self.version:
            raise GraphError(
                "one of the variables needed for gradient computation has been modified by an "
                "inplace operation: an argument of a checkpointed function, of shape {0.shape}, is "
                "at version {version}; expected version {expected} instead.",
                reason="overwritten", operands=(self.given._layout,),
                version=self.given._storage.version, expected=self.version,
            )  # fmt: skip
        return self.given


def _linked(tensor: Tensor, edge: Any) -> Tensor:
    """A tensor in the graph, where ``edge`` leads to."""
    if edge is None or isinstance(edge, Tensor):
        return tensor if edge is None else edge
    node, number = edge if type(edge) is tuple else (edge, 0)
    result = tensor.detach()
    result._rg, result._fn, result._nr = True, node, number
    return result


# ------------------------------------------------------------------------------ with a second graph
class CheckpointFunction(Function):
    """``checkpoint`` with ``use_reentrant=True``."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = _Surroundings(preserve_rng_state)
        ctx.inputs = [None if isinstance(each, Tensor) else each for each in args]
        ctx.tensor_indices = [k for k, each in enumerate(args) if isinstance(each, Tensor)]
        ctx.save_for_backward(*[args[k] for k in ctx.tensor_indices])
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if engine.running.limited:
            raise GraphError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter to .backward(). To resolve this error, you can "
                "either set use_reentrant=False, or call .backward() without passing the `inputs` "
                "argument."
            )
        inputs = list(ctx.inputs)
        for k, tensor in zip(ctx.tensor_indices, ctx.saved_tensors, strict=True):
            inputs[k] = tensor
        detached = detach_variable(tuple(inputs))
        with ctx.surroundings.again(), enable_grad():
            outputs = ctx.run_function(*detached)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        wanted = [
            (out, g)
            for out, g in zip(outputs, grads, strict=False)
            if isinstance(out, Tensor) and out.requires_grad
        ]
        if not wanted:
            raise GraphError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        run_backward([out for out, _ in wanted], [g for _, g in wanted])
        return None, None, *[each.grad if isinstance(each, Tensor) else None for each in detached]


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tensors of a tuple as leaves that require gradients where they did."""
    if not isinstance(inputs, tuple):
        raise ShapeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(
        [
            each.detach().requires_grad_(each.requires_grad) if isinstance(each, Tensor) else each
            for each in inputs
        ]
    )


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warns where no tensor requires a gradient."""
    if not any(each.requires_grad for each in inputs if isinstance(each, Tensor)):
        warn("None of the inputs have requires_grad=True. Gradients will be None", UserWarning)


# ------------------------------------------------------------------------------------ other devices
class DefaultDeviceType:
    """The device whose generators ``checkpoint`` keeps where no argument is on one; on the CPU
    there is only the default generator."""

    _default_device_type = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Sets it."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """What was set."""
        return DefaultDeviceType._default_device_type


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The generators' states of the devices that the arguments are on, beside the CPU: none."""
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Sets the states that ``get_device_states`` gave."""


class GraphExecGroup:
    """Inside, several backward passes over a part run it again once. (They do so outside, too: what
    was recomputed is kept until it is used.)"""

    _current: GraphExecGroup | None = None

    def __enter__(self) -> GraphExecGroup:
        if GraphExecGroup._current is not None:
            raise GraphError(
                "GraphExecGroup contexts cannot be nested. Already inside group "
                f"{GraphExecGroup._current}"
            )
        GraphExecGroup._current = self
        return self

    def __exit__(self, *_: object) -> None:
        GraphExecGroup._current = None


explain_missing("torch.utils.checkpoint", globals())
