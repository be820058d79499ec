"""What the optimizers share whose step is one kernel for each parameter, or for many.

A subclass of :class:`StepOptimizer` says how the state of a parameter starts (`_start`), what the
settings of a group are as numbers (`_settings`), and how one parameter is updated (`_update`). The
loop, the checks of options, older checkpoints and the functional form (``torch.optim.adam.adam``)
follow.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from antorcha.autograd import no_grad
from antorcha.core import dtypes
from antorcha.core.device import CPU
from antorcha.core.lazy import lazy
from antorcha.errors import DtypeError, GraphError, ValueRangeError
from antorcha.ops import optim_step, tensor_lists
from antorcha.ops.kinds.record import T
from antorcha.ops.update_step import UpdateStep, runs_together
from antorcha.optim.optimizer import Optimizer
from antorcha.optim.together import CAPTURING, JoinedSteps, check_capture, on_device
from antorcha.runtime.tensor import Tensor

sparse_tensor = lazy("antorcha.tensor.sparse.tensor")

Run = Callable[..., None]
"""Runs an update: ``run(step, tensors, numbers, flags)``."""
State = dict[str, Any]
Group = dict[str, Any]

_CAPTURING = ["cuda", "xpu", "hpu", "privateuseone", "xla"]
_FUSING = ["mps", "cuda", "xpu", "hpu", "cpu", "privateuseone"]


class StepOptimizer(Optimizer):
    """An optimizer whose step is one kernel for each parameter."""

    _added: ClassVar[dict[str, Any]] = {
        "foreach": None, "maximize": False, "differentiable": False, "capturable": False,
    }  # fmt: skip
    """Options that older checkpoints lack, and what they meant then."""

    _scalars: ClassVar[tuple[str, ...]] = ("step",)
    """The state of one number, which older checkpoints hold as a Python number."""

    def _start(self, group: Group, p: Tensor) -> State:
        """The state of a parameter before its first step."""
        raise NotImplementedError

    def _settings(self, group: Group) -> Any:
        """What `_update` needs to know of a group, worked out once for all its parameters."""
        raise NotImplementedError

    def _update(self, run: Run, p: Tensor, grad: Tensor, state: State, settings: Any) -> None:
        """Updates one parameter and its state; ``run`` runs a :class:`Step`."""
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of all parameters that have a gradient.

        Args:
            closure (callable, optional): computes the loss again and returns it
        """
        loss = self._loss(closure)
        if self._step_supports_amp_scaling and not self._unscale():
            return loss
        for group in self.param_groups:
            params = [p for p in group["params"] if p._grad is not None]
            if params:
                check_options(type(self).__name__, group, params)
                check_capture(self, group, params)
                run = runner(group, params, self.defaults.get("differentiable"))
                self._update_all(run, group, params, self._settings(group))
                if type(run) is JoinedSteps:
                    run.run()
        return loss

    def _count(self, run: Run, p: Tensor, state: State) -> float | None:
        """Counts one more step of a parameter, and gives the count; None where a device counts."""
        if not (type(run) is JoinedSteps and run.capturable):
            return self._advance(state)
        check_count(type(self).__name__, p, state["step"])
        run.before(optim_step.count, [state["step"]])
        return None

    def _update_all(self, run: Run, group: Group, params: list[Tensor], settings: Any) -> None:
        """Updates the parameters of a group that have a gradient."""
        for p in params:
            grad: Any = p._grad
            if grad._layout.sparse:
                self._sparse(group, p, grad, None)
            else:
                self._update(run, p, grad, self._state_of(group, p), settings)

    def _sparse(self, group: Group, p: Tensor, grad: Any, state: State | None) -> None:
        """One parameter with a sparse gradient; ``state``: None, or that of a functional form."""
        if type(self)._update_sparse is StepOptimizer._update_sparse:
            check_dense(type(self).__name__, grad)
        with no_grad():
            self._update_sparse(
                p, -grad if group["maximize"] else grad,
                self._state_of(group, p) if state is None else state, group,
            )  # fmt: skip

    def _update_sparse(self, p: Tensor, grad: Any, state: State, group: Group) -> None:
        """Updates one parameter that has a sparse gradient, already negated for ``maximize``."""
        raise NotImplementedError

    def _state_of(self, group: Group, p: Tensor) -> State:
        state: State = self.state[p]
        if not state:
            state.update(self._start(group, p))
        return state

    def _unscale(self) -> bool:
        """Divides the gradients by a gradient scaler's ``grad_scale``; is there a step to make?"""
        overflow, scale = getattr(self, "found_inf", None), getattr(self, "grad_scale", None)
        if overflow is not None and float(overflow):
            return False
        if scale is not None:
            every = [p._grad for group in self.param_groups for p in group["params"]]
            with no_grad():
                for grads in tensor_lists.groups_of([g for g in every if g is not None]):
                    tensor_lists.divide(grads, scale)
        return True

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._added.items():
                group.setdefault(name, value)
            for p in group["params"]:
                kept = self.state.get(p, {})
                for name in self._scalars:
                    if name in kept and not isinstance(kept[name], Tensor):
                        kept[name] = scalar(float(kept[name]), group, p)


def check_dense(name: str, grad: Tensor) -> None:
    """Refuses a sparse gradient."""
    if grad._layout.sparse:
        if name in ("Adam", "AdamW"):
            raise GraphError(
                "Adam does not support sparse gradients, please consider SparseAdam instead"
            )
        raise GraphError(f"{name} does not support sparse gradients")


def check_count(name: str, p: Tensor, step: Tensor) -> None:
    """Refuses a parameter whose steps are not counted where it is."""
    device = p._layout.device
    if device.type not in CAPTURING or step._layout.device is not device:
        raise AssertionError(
            f"{name}: If capturable=True, params and state_steps must be on supported devices: "
            f"{_CAPTURING}."
        )


def check_options(name: str, group: Group, params: Sequence[Tensor]) -> None:
    """Refuses the options that PyTorch refuses at a step: most of them are hints here."""
    get = group.get
    capturable = get("capturable") and not get("fused")
    if capturable and any([p._layout.device.type not in CAPTURING for p in params]):
        raise AssertionError(
            f"{name}: If capturable=True, params and state_steps must be on supported devices: "
            f"{_CAPTURING}."
        )
    if get("foreach"):
        if get("differentiable") and name != "SGD":
            raise AssertionError(f"{name}: _foreach ops don't support autograd")
        if name in ("Adam", "AdamW") and isinstance(group["lr"], Tensor) and not capturable:
            raise GraphError(
                f"{name}: lr as a Tensor is not supported for capturable=False and foreach=True"
            )
    if get("fused"):
        for p in params:
            if p._layout.dtype.kind != "f":
                raise DtypeError(
                    f"{name}: `fused=True` requires all the params to be floating point Tensors of "
                    f"supported devices: {_FUSING} but {p._layout.dtype} and "
                    f"{p._layout.device.type}"
                )


def check_fused(optimizer: Optimizer, fused: Any, differentiable: bool, foreach: Any) -> None:
    """What ``fused=True`` excludes at construction, and what it promises to a gradient scaler."""
    if fused:
        if differentiable:
            raise GraphError("`fused` does not support `differentiable`")
        if foreach:
            raise GraphError("`fused` and `foreach` cannot be `True` together.")
        optimizer._step_supports_amp_scaling = True


def check_betas(betas: Sequence[Any]) -> None:
    """Raises ValueError for a beta outside of [0, 1)."""
    for k, beta in enumerate(betas[:2]):
        if not 0.0 <= beta < 1.0:
            raise ValueRangeError(f"Invalid beta parameter at index {k}: {beta}")


# ------------------------------------------------------------------------------- running one step
def runner(group: Group, params: Sequence[Tensor], differentiable: Any) -> Run:
    """How the updates of a group's parameters are run."""
    if differentiable:
        return recorded
    device = params[0]._layout.device
    if device is CPU or not runs_together(device):
        return in_place
    return JoinedSteps(bool(group.get("capturable")))


def run_counted(
    run: Run, step: UpdateStep, tensors: list[Tensor], counts: Sequence[Tensor],
    known: Sequence[Any], settings: Sequence[Any], flags: int,
) -> None:  # fmt: skip
    """An update whose numbers follow from counts of steps: ``known``, or, where that begins with
    None, what lies in the tensors ``counts``."""
    if known[0] is None:
        run(step, tensors, settings, flags, counts)
    elif type(run) is JoinedSteps:
        run(step, tensors, run.derived(step, known, settings), flags)
    else:
        assert step.derived is not None
        run(step, tensors, step.derived(*known, *settings), flags)


def in_place(step: UpdateStep, tensors: list[Tensor], numbers: Sequence[Any], flags: int) -> None:
    """One pass over memory, outside of any graph; complex tensors go as pairs of reals."""
    if tensors[0]._layout.dtype.kind == "c":
        tensors = [T.view_as_real(t.detach()) for t in tensors]
    step(tensors, numbers, flags)  # type: ignore[arg-type]


def recorded(step: UpdateStep, tensors: list[Tensor], numbers: Sequence[Any], flags: int) -> None:
    """The same as ops that autograd records, for ``differentiable=True``."""
    if tensors[0]._layout.dtype.kind == "c":
        tensors = [T.view_as_real(t) for t in tensors]
    step.recorded(tensors, numbers, flags)


def number(value: Any, group: Group | None = None) -> Any:
    """A setting as a float; a tensor that requires a gradient stays one in a differentiable step.

    A tensor has one element: a learning rate, a beta.
    """
    if type(value) is float:
        return value
    if group is not None and isinstance(value, Tensor) and value.requires_grad:
        if group["differentiable"]:
            return value.squeeze() if value.ndim else value
        value = value.detach()
    return float(value)


def learning_rate(group: Group) -> Any:
    """The learning rate as a number; a tensor on a device whose steps are capturable stays one."""
    lr = group["lr"]
    if on_device(lr, group):
        lr = lr.detach()
        return lr.squeeze() if lr.ndim else lr
    return number(lr, group)


def weight_decay(group: Group) -> tuple[Any, Any, dict[str, bool]]:
    """The weight decay of a group with ``decoupled_weight_decay``, which is the first number less
    the learning rate times the second one, and the flags that say what it is: added to the
    gradient, or decoupled, the factor of the weights themselves."""
    decay = number(group["weight_decay"], group)
    decoupled = bool(group["decoupled_weight_decay"]) and decay != 0
    flags = {"decay": decay != 0 and not decoupled, "decoupled": decoupled}
    return (1.0, decay, flags) if decoupled else (decay, None, flags)


def scalar(value: float, group: Group, p: Tensor | None = None) -> Tensor:
    """A 0-dim tensor for the state: float32, or float64 where that is the default dtype. It lies in
    the host's memory, or, where steps are ``capturable``, beside the parameter."""
    wide = dtypes.get_default_dtype() is dtypes.float64 and not group.get("fused")
    device = p._layout.device if p is not None and group.get("capturable") else CPU
    result: Tensor = T.full(
        (), value, dtype=dtypes.float64 if wide else dtypes.float32, device=device
    )
    return result


def zeros(p: Tensor) -> Tensor:
    """A buffer of a parameter's shape, strides and dtype."""
    result: Tensor = T.zeros_like(p.detach())
    return result


def like(grad: Any, values: Tensor) -> Tensor:
    """A sparse tensor with the indices of a coalesced gradient and other values."""
    found: Tensor = sparse_tensor.new_sparse((grad._indices(), values), grad.shape, "coo", True)
    return found


def filled(p: Tensor, value: float) -> Tensor:
    """The same, filled; both parts of complex elements are."""
    both = complex(value, value) if p._layout.dtype.kind == "c" else value
    result: Tensor = T.full_like(p.detach(), both)
    return result


# -------------------------------------------------------------------------------- functional forms
_DEFAULTS = {
    "foreach": None, "fused": None, "capturable": False, "differentiable": False,
    "has_complex": False, "has_sparse_grad": False, "maximize": False,
    "decoupled_weight_decay": False, "grad_scale": None, "found_inf": None,
}  # fmt: skip
_TUPLES = {
    "betas": ("beta1", "beta2"), "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"), "eps": ("eps1", "eps2"),
}  # fmt: skip


def functional(cls: type[StepOptimizer], lists: str, options: str, settings: str) -> Any:
    """The functional form of an optimizer: ``adam(params, grads, exp_avgs, ..., lr=0.1, ...)``.

    Args:
        cls: the optimizer
        lists: the arguments after ``params`` and ``grads``, each a list of tensors, as
            ``argument:key``, where ``key`` is the state's name
        options: arguments with defaults, in PyTorch's order
        settings: required keyword arguments
    """
    keys = [pair.split(":") for pair in lists.split()]
    kinds = inspect.Parameter
    names = [
        "params",
        "d_p_list" if cls.__name__ == "SGD" else "grads",
        *[name for name, _ in keys],
    ]
    params = [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in names]
    params += [
        kinds(name, kinds.POSITIONAL_OR_KEYWORD, default=_DEFAULTS[name])
        for name in options.split()
    ]
    params += [kinds(name, kinds.KEYWORD_ONLY) for name in settings.split()]
    signature = inspect.Signature(params)
    name = cls.__name__.lower()

    def update(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        group = {**_DEFAULTS, **cls._added, **given}
        for whole, parts in _TUPLES.items():
            if parts[0] in given:
                group[whole] = tuple([given[part] for part in parts])
        tensors, grads, *states = [given[name] for name in names]
        if not tensors:
            return
        check_options(cls.__name__, group, tensors)
        frame = cls.__new__(cls)
        frame._counters = {}
        run = runner(group, tensors, group["differentiable"])
        result = frame._settings(group)
        for k, (p, grad) in enumerate(zip(tensors, grads, strict=True)):
            state = {key: values[k] for (_, key), values in zip(keys, states, strict=True)
                     if len(values) > k and values[k] is not None}  # fmt: skip
            if grad._layout.sparse:
                frame._sparse(group, p, grad, state)
            else:
                frame._update(run, p, grad, state, result)
            for (_, key), values in zip(keys, states, strict=True):
                if len(values) > k:
                    values[k] = state.get(key)
        if type(run) is JoinedSteps:
            run.run()

    update.__name__ = update.__qualname__ = name
    update.__module__ = cls.__module__
    update.__doc__ = (
        f"The functional form of :class:`~torch.optim.{cls.__name__}`: one update of ``params``\n"
        "from lists of gradients and of state, in place."
    )
    update.__signature__ = signature  # type: ignore[attr-defined]
    return update
