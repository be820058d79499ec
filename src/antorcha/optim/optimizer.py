"""Optimizer: the base class, which holds parameters in groups with their settings and state.

A subclass calls ``super().__init__(params, defaults)`` and has a ``step``. State dictionaries have
PyTorch's format, so checkpoints go both ways.
"""

from __future__ import annotations

import copy
import ctypes
import functools
import importlib
import itertools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from antorcha.autograd import enable_grad
from antorcha.autograd.hooks import RemovableHandle
from antorcha.core import dtypes, modes
from antorcha.core.device import CPU
from antorcha.core.hooks import hooks
from antorcha.errors import ArgumentError, ValueRangeError, no_such_name, warn
from antorcha.ops import tensor_lists
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()
_global_optimizer_pre_hooks: OrderedDict[int, Any] = OrderedDict()
_global_optimizer_post_hooks: OrderedDict[int, Any] = OrderedDict()


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """``step`` with the optimizer's step hooks around it."""

    @functools.wraps(step)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._opt_called = True  # the learning rate schedulers ask for it
        plain = not (
            self._optimizer_step_pre_hooks or self._optimizer_step_post_hooks
            or _global_optimizer_pre_hooks or _global_optimizer_post_hooks
        )  # fmt: skip
        if modes.profiled:
            if plain and not kwargs:
                return hooks.observe_block(self._in_profiles[0], step, self, *args)
            return hooks.observe_block(self._in_profiles[0], hooked, self, args, kwargs)
        return step(self, *args, **kwargs) if plain else hooked(self, args, kwargs)

    def hooked(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        own = self._optimizer_step_pre_hooks
        for hook in [*_global_optimizer_pre_hooks.values(), *own.values()]:
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got "
                        f"{changed}."
                    )
                args, kwargs = changed
        result = step(self, *args, **kwargs)
        own = self._optimizer_step_post_hooks
        if own or _global_optimizer_post_hooks:
            for hook in [*own.values(), *_global_optimizer_post_hooks.values()]:
                hook(self, args, kwargs)
        return result

    wrapper.hooked = True  # type: ignore[attr-defined]
    return wrapper


class Optimizer:
    """Base class of all optimizers.

    Args:
        params (iterable): Tensors, (name, Tensor) pairs, or dicts that define groups with settings
            of their own
        defaults (dict): the settings of groups that do not say otherwise

    Attributes:
        param_groups (list of dict): the groups: ``params`` and settings
        state (dict): what the optimizer keeps for each parameter

    See https://docs.pytorch.org/docs/stable/optim.html.

    >>> w = torch.nn.Parameter(torch.ones(1))
    >>> optimizer = torch.optim.SGD([w], lr=0.1)
    >>> (w * 3).sum().backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.7000])
    """

    OptimizerPreHook = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    OptimizerPostHook = Callable[[Any, tuple[Any, ...], dict[str, Any]], None]
    profile_hook_step = staticmethod(_with_hooks)

    _opt_called = False
    _step_supports_amp_scaling = False
    _in_profiles = "Optimizer.step#Optimizer.step", "Optimizer.zero_grad#Optimizer.zero_grad"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name = cls.__name__
        cls._in_profiles = f"Optimizer.step#{name}.step", f"Optimizer.zero_grad#{name}.zero_grad"

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hooks()
        if isinstance(params, Tensor):
            raise ArgumentError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                "but got {kind}",
                reason="list of parameters", kind=params.type(), fix="[params]",
            )  # fmt: skip
        self.state: Any = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueRangeError("optimizer got an empty parameter list", reason="no parameters")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hooks(self) -> None:
        # Only a class of which an optimizer is made: one that wraps another optimizer and forwards
        # to it (accelerate's AcceleratedOptimizer) has a step of its own and no hooks.
        cls = type(self)
        if not hasattr(cls.step, "hooked"):
            cls.step = _with_hooks(cls.step)  # type: ignore[method-assign]
        self._optimizer_step_pre_hooks: OrderedDict[int, Any] = OrderedDict()
        self._optimizer_step_post_hooks: OrderedDict[int, Any] = OrderedDict()
        self._state_hooks: dict[str, OrderedDict[int, Any]] = {
            name: OrderedDict() for name in ("save_pre", "save_post", "load_pre", "load_post")
        }
        self._counters: dict[int, tuple[Tensor, Any]] = {}

    # ------------------------------------------------------------------------------------- groups
    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group: a dict with ``params`` and any settings."""
        if not isinstance(param_group, dict):
            raise ArgumentError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise ArgumentError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        params = list(params)
        names = [p[0] for p in params if isinstance(p, tuple)]
        if names:
            if len(names) != len(params):
                raise ValueRangeError(
                    "all optimizer params should be with/without names. Some param names are "
                    "missing"
                )
            param_group["param_names"] = names
            params = [p for _, p in params]
        param_group["params"] = params
        for param in params:
            if not isinstance(param, Tensor):
                raise ArgumentError(
                    "optimizer can only optimize Tensors, but one of the params is {kind}",
                    reason="parameters of a module", kind=type(param).__name__,
                )  # fmt: skip
            if not (self.defaults.get("differentiable") or param._fn is None or param.retains_grad):
                raise ValueRangeError(
                    "can't optimize a non-leaf Tensor", reason="computed parameter",
                    operands=(param._layout,),
                )  # fmt: skip
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueRangeError(
                    "parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            param_group.setdefault(name, default)
        ids = {id(p) for p in params}
        if len(ids) != len(params):
            warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information",
            )
        for group in self.param_groups:
            if ("param_names" in param_group) != ("param_names" in group):
                kind = "with" if "param_names" in param_group else "without"
                raise ValueRangeError(
                    "all optimizer param groups should be with/without names. cannot add param "
                    f"group {kind} names to the optimizer"
                )
        if any(id(p) in ids for group in self.param_groups for p in group["params"]):
            raise ValueRangeError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def __repr__(self) -> str:
        text = type(self).__name__ + " ("
        for k, group in enumerate(self.param_groups):
            text += f"\nParameter Group {k}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"

    # --------------------------------------------------------------------------------------- steps
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all parameters (or sets them to zero)."""
        if modes.profiled:
            hooks.observe_block(self._in_profiles[1], self._drop_grads, set_to_none)
        else:
            self._drop_grads(set_to_none)

    def _drop_grads(self, set_to_none: bool) -> None:
        left = []
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param._grad = None
                elif param._grad is not None:
                    left.append(param._grad.detach_().requires_grad_(False))
        if left:
            tensor_lists.clear(left)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of all parameters; ``closure`` computes the loss again and returns it."""
        raise NotImplementedError

    @staticmethod
    def _loss(closure: Callable[[], Any] | None) -> Any:
        if closure is None:
            return None
        with enable_grad():
            return closure()

    def _advance(self, state: dict[str, Any]) -> float:
        """Counts one more step in ``state["step"]`` and gives the count.

        The count is a tensor, as in PyTorch; where it lies in host memory it is counted in place.
        """
        step = state["step"]
        found = self._counters.get(id(step))
        if found is None or found[0] is not step:
            if not isinstance(step, Tensor):
                step = state["step"] = T.full((), float(step))
            layout = step._layout
            if layout.device is not CPU or layout.dtype.name != "float32":
                step.add_(1)
                return float(step.item())
            memory: Any = memoryview(step._storage)
            found = step, ctypes.c_float.from_buffer(memory, 4 * step._offset)
            self._counters[id(step)] = found
        counter = found[1]
        counter.value += 1
        step._storage.version += 1
        return float(counter.value)

    # --------------------------------------------------------------------------------------- state
    def state_dict(self) -> dict[str, Any]:
        """``state`` and ``param_groups``, the parameters replaced by their numbers."""
        for hook in self._state_hooks["save_pre"].values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {(numbers[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()}
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._state_hooks["save_post"].values():
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes state and settings from what :meth:`state_dict` gave."""
        state_dict = dict(state_dict)
        for hook in self._state_hooks["load_pre"].values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        groups, saved = self.param_groups, copy.deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueRangeError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(groups, saved, strict=True)):
            raise ValueRangeError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
            )
        capturing = {
            id(p) for old, new in zip(groups, saved, strict=True) if new.get("capturable")
            for p in old["params"]
        }  # fmt: skip
        numbers = itertools.chain.from_iterable([g["params"] for g in saved])
        params = itertools.chain.from_iterable([g["params"] for g in groups])
        owners = dict(zip(numbers, params, strict=True))
        state: Any = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in owners:
                param = owners[key]
                state[param] = _fitted(param, value, None, id(param) in capturing)
            else:
                state[key] = value
        for old, new in zip(groups, saved, strict=True):
            new["params"] = old["params"]
            if "param_names" in old:
                new.setdefault("param_names", old["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._state_hooks["load_post"].values():
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_optimizer_step_pre_hooks" not in self.__dict__:
            self._make_hooks()
        self._counters = {}
        self.defaults.setdefault("differentiable", False)

    # --------------------------------------------------------------------------------------- hooks
    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Any:
        """Runs ``hook(optimizer, args, kwargs)`` before every step."""
        return _add(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Any:
        """Runs ``hook(optimizer, args, kwargs)`` after every step."""
        return _add(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """Runs ``hook(optimizer)`` before ``state_dict``."""
        return _add(self._state_hooks["save_pre"], hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Any:
        """Runs ``hook(optimizer, state_dict)`` after ``state_dict``; may return another."""
        return _add(self._state_hooks["save_post"], hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Any:
        """Runs ``hook(optimizer, state_dict)`` before loading; may return another."""
        return _add(self._state_hooks["load_pre"], hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Any:
        """Runs ``hook(optimizer)`` after loading."""
        return _add(self._state_hooks["load_post"], hook, prepend)


def _add(hooks: OrderedDict[int, Any], hook: Any, prepend: bool = False) -> Any:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> Any:
    """Runs ``hook(optimizer, args, kwargs)`` before every step of every optimizer."""
    return _add(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> Any:
    """Runs ``hook(optimizer, args, kwargs)`` after every step of every optimizer."""
    return _add(_global_optimizer_post_hooks, hook)


def remove_global_step_hooks() -> None:
    """Removes the hooks of all optimizers."""
    _global_optimizer_pre_hooks.clear()
    _global_optimizer_post_hooks.clear()


def _fitted(param: Tensor, value: Any, key: Any, capturable: bool) -> Any:
    """A loaded value, its tensors with the parameter's device, and its dtype where that is real
    (counts keep theirs; they lie beside the parameter only where steps are ``capturable``)."""
    if isinstance(value, Tensor):
        if key == "step":
            if not capturable:
                return value.clone()
            return value.to(param._layout.device, dtypes.float32, copy=True)
        if param._layout.dtype.kind == "f":
            return value.to(param._layout.device, param._layout.dtype, copy=True)
        return value.to(param._layout.device, copy=True)
    if isinstance(value, dict):
        return {k: _fitted(param, v, k, capturable) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        every = [_fitted(param, v, None, capturable) for v in value]
        return type(value)(every)  # type: ignore[call-arg]
    return value


def check(**settings: Any) -> None:
    """Raises ValueError for a setting that must not be negative and is."""
    names = {"lr": "learning rate: {}", "eps": "epsilon value: {}"}
    for name, value in settings.items():
        if isinstance(value, Tensor) and value.numel() != 1:
            raise ValueRangeError(f"Tensor {name} must be 1-element")
        if not value >= 0.0:
            text = names.get(name, name + " value: {}").format(value)
            raise ValueRangeError(f"Invalid {text}")


def __getattr__(name: str) -> Any:
    """The helpers of PyTorch's module, for optimizers written for it."""
    known = globals()
    if not name.startswith("__"):
        known = {**known, **vars(importlib.import_module("antorcha.optim.helpers"))}
        if name in known:
            return known[name]
    raise no_such_name("torch.optim.optimizer", name, known)
