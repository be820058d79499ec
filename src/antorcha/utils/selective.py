"""Selective checkpoints: a policy says of which ops the results are kept, not computed again.

The ops are those that compute, seen below autograd (`runtime.call.intercepting`): a layer's matrix
product is an ``addmm`` as in PyTorch. A policy is handed ``torch.ops.aten.addmm.default``.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from antorcha.core.lazy import lazy
from antorcha.errors import ArgumentError, GraphError
from antorcha.ops.kinds.record import REGISTRY
from antorcha.runtime.call.intercepting import Interceptor, Results, Run, aten_name
from antorcha.runtime.call.plan import VIEW, VIEWS, Plan
from antorcha.runtime.tensor import Tensor, bare

torch_ops = lazy("antorcha._ops")


class CheckpointPolicy(enum.Enum):
    """What a policy says of an op: SAVE keeps its result, RECOMPUTE computes it again. (PREFER
    leaves a compiler the choice. CPU_OFFLOAD computes again, as PyTorch does.)"""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """A policy's first argument; ``op_output`` is the op's result."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


SAC_IGNORED_OPS: set[Any] = set()
"""Ops that no policy is asked about: views, which have no memory of their own, are none of them."""

_SAVES = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
_MISMATCH = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend "
    "on global state that changed between forward and backward."
)


class _Store:
    """What was kept: for each op, by the number of its call, (tensors, versions), or None where it
    is to be computed again."""

    def __init__(self) -> None:
        self.kept: dict[str, list[Any]] = defaultdict(list)
        self.used: set[tuple[str, int]] = set()


class _Caching(Interceptor):
    """In the forward pass: asks the policy, and keeps."""

    def __init__(self, policy: Callable[..., Any], store: _Store) -> None:
        self.policy, self.store = policy, store

    def see(self, plan: Plan, operands: Any, run: Run) -> Results:
        outs = run()
        if plan.kind in (VIEW, VIEWS):
            return outs
        name = aten_name(plan)
        output = outs[0] if len(outs) == 1 else outs
        context = SelectiveCheckpointContext(is_recompute=False, op_output=output)
        given = self.policy(context, overload(plan), *operands)
        saves = given is True or given in _SAVES
        kept = [(bare(t._layout, t._storage, t._offset), t._storage.version) for t in outs]
        self.store.kept[name].append(kept if saves else None)
        return outs


class _Cached(Interceptor):
    """In the recomputation: gives what was kept."""

    def __init__(self, store: _Store, may_be_written: bool) -> None:
        self.store, self.may_be_written = store, may_be_written

    def __enter__(self) -> Any:
        self.counts: dict[str, int] = defaultdict(int)
        return super().__enter__()

    def see(self, plan: Plan, operands: Any, run: Run) -> Results:
        if plan.kind in (VIEW, VIEWS):
            return run()
        name = aten_name(plan)
        number = self.counts[name]
        self.counts[name] += 1
        calls = self.store.kept[name]
        if number >= len(calls):
            raise GraphError(
                f"{name} invocation index {number} encountered during backward but not found in "
                f"storage. {_MISMATCH}"
            )
        kept = calls[number]
        if kept is None:
            return run()
        if (name, number) in self.store.used:
            raise GraphError(
                "Trying to backward an extra time. You are only allowed to backward once on any "
                "region computed under selective activation checkpoint."
            )
        self.store.used.add((name, number))
        calls[number] = ()  # (its memory goes with the graph)
        return tuple([self._checked(*each) for each in kept])

    def _checked(self, tensor: Tensor, version: int) -> Tensor:
        if tensor._storage.version != version and not self.may_be_written:
            raise GraphError(
                "Tensor cached during selective activation checkpoint has been mutated"
            )
        return bare(tensor._layout, tensor._storage, tensor._offset)


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """For the ``context_fn`` of ``checkpoint`` (by ``functools.partial``): keeps the results of
    some ops.

    Args:
        policy_fn_or_list: ``policy(ctx, op, *tensors)`` gives a ``CheckpointPolicy``; or the list
            of ops to keep, such as ``torch.ops.aten.mm.default`` or ``torch.mm``
        allow_cache_entry_mutation (bool): what is kept may be written to meanwhile

    A policy gets the op's tensors, not its other arguments.
    See https://docs.pytorch.org/docs/stable/checkpoint.html#torch.utils.checkpoint.create_selective_checkpoint_contexts.
    """
    if isinstance(policy_fn_or_list, list):
        wanted = {_record_name(each) for each in policy_fn_or_list}

        def policy(context: Any, op: Any, *tensors: Any) -> CheckpointPolicy:
            saves = _record_name(op) in wanted
            return CheckpointPolicy.MUST_SAVE if saves else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise ArgumentError("policy_fn_or_list must be either a function or a list of ops.")
    store = _Store()
    return _Caching(policy, store), _Cached(store, allow_cache_entry_mutation)


def _record_name(op: Any) -> str:
    """``"mm"`` of ``torch.mm`` and of ``torch.ops.aten.mm.default``."""
    found = getattr(op, "_opname", None) or getattr(op, "__name__", None)
    if not isinstance(found, str):
        raise ArgumentError(f"Expected op in `op_list` to be an operator but got: {op!r:.60}")
    return found


def overload(plan: Plan) -> Any:
    """PyTorch's operator for a plan, or the record where ``torch.ops`` has none of that name."""
    name = aten_name(plan)
    try:
        return getattr(torch_ops.ops.aten, name).default
    except (ModuleNotFoundError, AttributeError):
        return REGISTRY.get(name, plan.op)


class _Tracing(Interceptor):
    """Writes down the ops that run."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def see(self, plan: Plan, operands: Any, run: Run) -> Results:
        given = ", ".join([_shown(t) for t in operands])
        outs = run()
        self.lines.append(f"{', '.join([_shown(t) for t in outs])} = {aten_name(plan)}({given})")
        return outs


def _shown(tensor: Tensor | None) -> str:
    if tensor is None:
        return "None"
    return f"{str(tensor.dtype)[6:]}{list(tensor.shape)}"


def traced() -> tuple[Callable[[], tuple[Any, Any]], tuple[list[str], list[str]]]:
    """A ``context_fn`` that writes down the ops of both runs, and where."""
    forward: list[str] = []
    again: list[str] = []
    return lambda: (_Tracing(forward), _Tracing(again)), (forward, again)
