"""``torch.amp.GradScaler``: keeps small gradients of float16 from vanishing.

The loss is multiplied by a scale, so are its gradients, and the optimizer's step divides them by it
again. A step with an inf or NaN among the gradients is left out, and the scale shrinks; after many
steps without one it grows (Micikevicius et al., "Mixed Precision Training", 2018).
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

from antorcha import cuda
from antorcha.amp.unscale import check_and_unscale, update_scale
from antorcha.autograd import no_grad
from antorcha.core import dtypes
from antorcha.core.device import Device
from antorcha.errors import GraphError, ShapeError, ValueRangeError, explain_missing, warn
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """How far an optimizer has come since the last ``update``."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses, unscales gradients, leaves out steps that overflowed, adjusts the scale.

    ``device`` is ``"cpu"`` or ``"cuda"``, which warns and disables where there is none. With
    ``enabled=False`` ``scale`` gives back what it gets, ``step`` calls the optimizer's, and nothing
    else happens.

    See https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling.

    >>> p = torch.nn.Parameter(torch.ones(2))
    >>> optimizer = torch.optim.SGD([p], lr=0.5)
    >>> scaler = torch.amp.GradScaler("cpu", init_scale=8.)
    >>> scaler.scale(p.sum()).backward()
    >>> p.grad
    tensor([8., 8.])
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> p
    Parameter containing:
    tensor([0.5000, 0.5000], requires_grad=True)
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        self._device, self._enabled = device, enabled
        if enabled and device == "cuda" and not cuda.is_available():
            warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                UserWarning,
            )
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._growth_factor = init_scale, growth_factor
        self._backoff_factor, self._growth_interval = backoff_factor, growth_interval
        self._init_growth_tracker = 0
        self._scale: Tensor | None = None  # made by the first call of scale()
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(
            _refresh_per_optimizer_state
        )

    # ---- the steps of an iteration
    def scale(self, outputs: Any) -> Any:
        """A tensor, or tensors in lists and tuples, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            return T.mul(outputs, self._scale)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueRangeError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of an optimizer's parameters by the scale, once before ``step``:
        for whoever looks at them or clips them there."""
        if not self._enabled:
            return
        scale, _ = self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise GraphError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise GraphError("unscale_() is being called after step().")
        inverse = T.to_dtype(T.reciprocal(T.to_dtype(scale, dtypes.float64)), dtypes.float32)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, None, False)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscales the gradients where ``unscale_`` has not, and calls ``optimizer.step`` unless
        one of them is inf or NaN; gives what that gives."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise GraphError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise GraphError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_of_its_own(optimizer, state, args, kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            if not state["found_inf_per_device"]:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """At the end of an iteration: shrinks the scale by ``backoff_factor`` if a step was left
        out, lets it grow by ``growth_factor`` after ``growth_interval`` steps in a row, or sets
        it."""
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
        elif new_scale is not None:
            placed = new_scale.device.type == self._device
            if not placed or new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or "
                    "torch.FloatTensor with requires_grad=False."
                )
            scale.copy_(new_scale)
        else:
            found = [
                each
                for state in self._per_optimizer_states.values()
                for each in state["found_inf_per_device"].values()
            ]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            update_scale(
                scale, tracker, [each.to(scale.device) for each in found], self._growth_factor,
                self._backoff_factor, self._growth_interval,
            )  # fmt: skip
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    # ---- their parts
    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Tensor, Tensor]:
        if self._scale is None or self._growth_tracker is None:
            which = "_scale" if self._scale is None else "_growth_tracker"
            raise AssertionError(
                f"Attempted {funcname} but {which} is None.  This may indicate your script did not "
                "use scaler.scale(loss or outputs) earlier in the iteration."
            )
        return self._scale, self._growth_tracker

    def _lazy_init_scale_growth_tracker(self, dev: Device) -> None:
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = T.full((), self._init_scale, dtype=dtypes.float32, device=dev)
        self._growth_tracker = T.full((), self._init_growth_tracker, dtype=dtypes.int32, device=dev)

    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor | None, allow_fp16: bool
    ) -> dict[Device, Tensor]:
        """Multiplies the gradients by ``inv_scale``; what was found of infs and NaNs, by device."""
        grads: dict[Device, list[Tensor]] = defaultdict(list)
        with no_grad():
            for group in optimizer.param_groups:
                for param in group["params"]:
                    if not isinstance(param, Tensor):
                        raise AssertionError(
                            f"expected param to be torch.Tensor, got {type(param).__name__}"
                        )
                    grad = param.grad
                    if grad is None:
                        continue
                    if not allow_fp16 and grad.dtype is dtypes.float16:
                        raise ValueRangeError("Attempting to unscale FP16 gradients.")
                    grads[grad.device].append(grad)
            return {
                device: check_and_unscale(each, inv_scale, found_inf)
                for device, each in grads.items()
            }

    def _maybe_opt_step(
        self, optimizer: Any, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        if sum(float(each) for each in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def _step_of_its_own(
        self, optimizer: Any, state: dict[str, Any], args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """The step of an optimizer that unscales by itself: it finds ``grad_scale`` and
        ``found_inf`` on itself (or the scaler among its arguments, as older ones want it)."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed "
                "optimizer. In the near future GradScaler registers `grad_scale: Tensor` and "
                "`found_inf: Tensor` to the passed optimizer and let the optimizer use them "
                "directly.",
                FutureWarning,
            )
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        scale = getattr(optimizer, "grad_scale", None)
        if state["stage"] is not OptState.UNSCALED:
            scale = T.mul(self._scale, 1 if scale is None else scale)
        optimizer.grad_scale = scale
        optimizer.found_inf = sum(state["found_inf_per_device"].values())
        result = optimizer.step(*args, **kwargs)
        del optimizer.grad_scale, optimizer.found_inf
        return result

    def _check_inf_per_device(self, optimizer: Any) -> dict[Device, Tensor]:
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        one = T.ones_like(scale)
        found = self._unscale_grads_(optimizer, one, None, True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer: Any) -> dict[Device, Tensor]:
        found: dict[Device, Tensor] = self._per_optimizer_states[id(optimizer)][
            "found_inf_per_device"
        ]
        return found

    # ---- settings and state
    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def get_scale(self) -> float:
        """The scale; 1.0 where scaling is disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale)

    def get_growth_factor(self) -> float:
        """By what the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets by what the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """By what the scale is multiplied when a step was left out."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets by what the scale is multiplied when a step was left out."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps in a row the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets after how many steps in a row the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else int(tracker)

    def is_enabled(self) -> bool:
        """Does it scale?"""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The scale, the settings and the steps in a row; {} where scaling is disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a ``state_dict``."""
        if not self._enabled:
            return
        if not state_dict:
            raise ShapeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, "
                    "or at the end after scaler.update()."
                )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


explain_missing("torch.amp.grad_scaler", globals())
