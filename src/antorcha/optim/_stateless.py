"""Running an optimizer on other parameters and other state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from antorcha.errors import GraphError
from antorcha.optim.optimizer import Optimizer
from antorcha.runtime.tensor import Tensor

_NAME = "swap_in_optimizer_params_and_state"


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer,
    swapin_parameters: dict[str, Tensor],
    swapin_optim_state: dict[str, Any],
) -> Iterator[None]:
    """Replaces an optimizer's parameters, state and settings within a ``with`` block.

    Writes to the tensors of the state given stay; other changes of it do not.

    Args:
        optimizer (Optimizer): one that has made a step
        swapin_parameters (dict): the parameters, in the order of the optimizer's groups
        swapin_optim_state (dict): state and settings, as ``optimizer.state_dict()`` gives them

    >>> w, v = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.zeros(1))
    >>> w.grad = v.grad = torch.ones(1)
    >>> optimizer = torch.optim.SGD([w], lr=0.5, momentum=0.9)
    >>> optimizer.step()
    >>> state = optimizer.state_dict()
    >>> with torch.optim.swap_in_optimizer_params_and_state(optimizer, {"v": v}, state):
    ...     optimizer.step()
    >>> w.item(), v.item()
    (0.5, -0.949999988079071)
    """
    state, params = _checked(optimizer, swapin_parameters, swapin_optim_state)
    old_state = optimizer.state
    old_groups = [dict(group) for group in optimizer.param_groups]
    new_state: Any = defaultdict(dict)
    given = swapin_optim_state["param_groups"]
    try:
        for group, settings, tensors in zip(optimizer.param_groups, given, params, strict=True):
            group.update({key: v for key, v in settings.items() if key != "params"})
            group["params"] = tensors
            for p, number in zip(tensors, settings["params"], strict=True):
                new_state[p] = dict(state.get(number, {}))
        optimizer.state = new_state
        yield
    finally:
        for group, before in zip(optimizer.param_groups, old_groups, strict=True):
            group.clear()
            group.update(before)
        optimizer.state = old_state


def _checked(
    optimizer: Optimizer, parameters: dict[str, Tensor], given: Any
) -> tuple[dict[Any, Any], list[list[Tensor]]]:
    """The state by numbers, and the parameters of each group."""
    if not optimizer.state:
        raise GraphError(f"{_NAME} requires initialized optimizer state.")
    if not isinstance(given, dict):
        raise GraphError(f"{_NAME} requires a DCP-style optimizer state_dict.")
    state, groups = given.get("state"), given.get("param_groups")
    if not isinstance(state, dict):
        raise GraphError(
            f"{_NAME} requires swapin_optim_state['state'] to be a dict mapping packed parameter "
            f"ids to per-param state dicts, got {type(state).__name__}."
        )
    if any(isinstance(key, Tensor) for key in state):
        raise GraphError(
            f"{_NAME} requires optimizer.state_dict()-style state keyed by packed parameter ids."
        )
    if any(isinstance(key, int) and not isinstance(value, dict) for key, value in state.items()):
        raise GraphError(
            f"{_NAME} requires per-parameter optimizer state entries to be dictionaries."
        )
    if not isinstance(groups, list):
        raise GraphError(
            f"{_NAME} requires swapin_optim_state['param_groups'] to be a list of param-group "
            f"dicts, got {type(groups).__name__}."
        )
    if len(groups) != len(optimizer.param_groups):
        raise GraphError(
            "swapin_optim_state has a different number of parameter groups than the live optimizer."
        )
    left = list(parameters.values())
    params, known = [], set()
    for k, (live, other) in enumerate(zip(optimizer.param_groups, groups, strict=True)):
        numbers = _check_group(k, live, other)
        if len(numbers) > len(left):
            raise GraphError(
                f"{_NAME} requires the explicit parameter state to match optimizer.param_groups "
                "ordering."
            )
        known.update(numbers)
        params.append(left[: len(numbers)])
        del left[: len(numbers)]
    extra = [key for key in state if key not in known]
    if extra:
        raise GraphError(
            f"{_NAME} requires swapin_optim_state['state'] to be keyed only by packed parameter "
            f"ids from param_groups[*]['params']; got extra keys {extra!r}."
        )
    return state, params


def _check_group(k: int, live: dict[str, Any], other: Any) -> list[int]:
    """The numbers of a group's parameters, once it has proved to fit the live one."""
    if not isinstance(other, dict):
        raise GraphError(f"{_NAME} requires each optimizer param group to be a dictionary.")
    numbers = other.get("params")
    if not isinstance(numbers, list) or not all(isinstance(n, int) for n in numbers):
        raise GraphError(
            f"{_NAME} requires optimizer.state_dict()-style param_groups[*]['params'] entries "
            "keyed by packed parameter ids."
        )
    if len(live["params"]) != len(numbers):
        raise GraphError(
            f"swapin_optim_state param group {k} has a different number of params than the live "
            "optimizer param group."
        )
    if live.keys() != other.keys():
        raise GraphError(
            f"{_NAME} requires optimizer.state_dict()-style param group keys to exactly match the "
            f"live optimizer group keys for group {k}. Keys only in swap-in: "
            f"{[key for key in other if key not in live]}. Keys only in live: "
            f"{[key for key in live if key not in other]}."
        )
    return numbers
