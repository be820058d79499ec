"""``torch.autocast``, the state behind it, and ``custom_fwd`` and ``custom_bwd``.

See https://docs.pytorch.org/docs/stable/amp.html and `antorcha.amp.casts`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from antorcha import cuda
from antorcha.amp.casts import BITS, lower_dtype, state
from antorcha.core import dtypes, modes
from antorcha.core.lazy import np
from antorcha.errors import (
    ArgumentError,
    ShapeError,
    ValueRangeError,
    explain_missing,
    warn,
)
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

_DEVICES = ("cpu", "cuda", "hpu", "ipu", "maia", "mps", "mtia", "privateuseone", "xla", "xpu")
_TYPES = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia",
    "xla", "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip
_LOWER = (dtypes.bfloat16, dtypes.float16)


# --------------------------------------------------------------------------------------- the state
def is_autocast_available(device_type: str) -> bool:
    """Has a type of device autocast?

    >>> torch.amp.is_autocast_available("cpu"), torch.amp.is_autocast_available("meta")
    (True, False)
    """
    return _known(device_type) in _DEVICES


def _known(device_type: Any) -> str:
    if not isinstance(device_type, str):
        raise ValueRangeError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device_type not in _TYPES:
        raise ShapeError(
            f"Expected one of {', '.join(_TYPES)} device type at start of device string: "
            f"{device_type}"
        )
    return device_type


def _served(device_type: str) -> str:
    if not is_autocast_available(device_type):
        raise ShapeError(f"autocast: there is none on device type {device_type!r}")
    return device_type


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Is autocast on, in this thread, for a type of device (CUDA unless it is given)?"""
    device = "cuda" if device_type is None else _served(device_type)
    if device in BITS:
        return bool(modes.state.word & BITS[device])
    return state.enabled.get(device, False)


def set_autocast_enabled(*args: Any) -> None:
    """Turns autocast on or off in this thread: ``(device_type, enabled)``; ``(enabled)`` is for
    CUDA. ``torch.autocast`` does it for a block."""
    if len(args) not in (1, 2):
        raise ArgumentError(f"set_autocast_enabled() takes 1 or 2 arguments, got {len(args)}")
    device, on = ("cuda", args[0]) if len(args) == 1 else args
    if not isinstance(on, bool):
        raise ArgumentError(f"enabled must be a bool (got {type(on).__name__})")
    bit = BITS.get(_served(device))
    if bit is not None:
        word = modes.state.word
        modes.set_word(word | bit if on else word & ~bit)
    else:
        state.enabled[device] = on


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """The dtype that ops run in under autocast on a type of device.

    >>> torch.get_autocast_dtype("cpu")
    torch.bfloat16
    """
    return lower_dtype(_served(device_type))


def set_autocast_dtype(device_type: str, dtype: dtypes.dtype) -> None:
    """Sets the dtype that ops run in under autocast on a type of device."""
    if not isinstance(dtype, dtypes.dtype):
        raise ArgumentError(f"dtype must be a torch.dtype (got {type(dtype).__name__})")
    if _served(device_type) == "cpu":
        state.lower = dtype
    else:
        state.dtypes[device_type] = dtype


def is_autocast_cache_enabled() -> bool:
    """Are the casts of weights kept while autocast is on?"""
    return state.caching


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Sets whether the casts of weights are kept while autocast is on."""
    state.caching = bool(enabled)


def clear_autocast_cache() -> None:
    """Forgets the casts of weights."""
    state.cache.clear()


def autocast_increment_nesting() -> int:
    """Another block of autocast is entered; gives how many there are."""
    state.nesting += 1
    return state.nesting


def autocast_decrement_nesting() -> int:
    """A block of autocast is left; gives how many remain."""
    state.nesting -= 1
    return state.nesting


def _old_form(old: str, new: Callable[..., Any], device: str, takes: str = "") -> None:
    """Defines the deprecated form of a function that names its device in its own name."""

    def old_form(*args: Any) -> Any:
        now = f"torch.{new.__name__}({device!r}{takes and ', ' + takes})"
        warn(f"torch.{old}({takes}) is deprecated. Please use {now} instead.", DeprecationWarning)
        return new(device, *args)

    old_form.__name__ = old_form.__qualname__ = old
    old_form.__doc__ = f"Deprecated form of ``torch.{new.__name__}({device!r})``."
    globals()[old] = old_form


for _device, _word in (("cpu", "cpu"), ("cuda", "gpu"), ("ipu", "ipu"), ("xla", "xla")):
    if _device != "cuda":
        _old_form(f"is_autocast_{_word}_enabled", is_autocast_enabled, _device)
        _old_form(f"set_autocast_{_word}_enabled", set_autocast_enabled, _device, "enabled")
    _old_form(f"get_autocast_{_word}_dtype", get_autocast_dtype, _device)
    _old_form(f"set_autocast_{_word}_dtype", set_autocast_dtype, _device, "dtype")


# --------------------------------------------------------------------------------------- the block
class autocast:
    """Inside, ops run in the dtype that suits them: matrix products and convolutions in ``dtype``,
    losses and decompositions in float32, the others in that of their operands.

    A context manager and a decorator. ``dtype`` is bfloat16 (the CPU's default) or float16. Unless
    ``cache_enabled`` is False a weight is cast once in a block; its gradient has its own dtype.
    ``enabled=False`` turns autocast off inside. For ``"cuda"`` without such a device it warns, and
    does nothing. Backward passes run without autocast, in the dtypes of the forward pass.

    See https://docs.pytorch.org/docs/stable/amp.html.

    >>> linear = torch.nn.Linear(2, 2)
    >>> with torch.autocast("cpu", dtype=torch.bfloat16):
    ...     y = linear(torch.ones(2))
    >>> y.dtype
    torch.bfloat16
    """

    def __init__(
        self, device_type: str, dtype: dtypes.dtype | None = None, enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:  # fmt: skip
        if not is_autocast_available(device_type):
            raise ShapeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = (
            is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        )
        self._enabled = enabled and self._can_run()

    def _can_run(self) -> bool:
        if self.device == "cuda":
            if cuda.is_available():
                return True
            warn("CUDA is not available or torch_xla is imported. Disabling autocast.", UserWarning)
            return False
        if self.fast_dtype in _LOWER:
            return True
        name = self.device.upper()
        warn(
            f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
            f"{name} Autocast only supports dtypes of {', '.join(map(str, _LOWER))} currently.",
            UserWarning,
        )
        return False

    def __enter__(self) -> autocast:
        device = self.device
        self.prev_cache_enabled = is_autocast_cache_enabled()
        self.prev = is_autocast_enabled(device)
        self.prev_fastdtype = get_autocast_dtype(device)
        set_autocast_enabled(device, self._enabled)
        set_autocast_dtype(device, self.fast_dtype)
        autocast_increment_nesting()
        set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(self, *_: object) -> None:
        if autocast_decrement_nesting() == 0:
            clear_autocast_cache()
        set_autocast_enabled(self.device, self.prev)
        set_autocast_dtype(self.device, self.prev_fastdtype)
        set_autocast_cache_enabled(self.prev_cache_enabled)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(func):
            raise ArgumentError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you "
                "mean to use autocast as a context manager? For example:\n"
                "    with torch.autocast(device_type=...):\n        output = model(input)"
            )
        return autocast_decorator(self, func)


def autocast_decorator(autocast_instance: autocast, func: Callable[..., Any]) -> Callable[..., Any]:
    """``func`` with its calls inside the block."""

    @functools.wraps(func)
    def decorate_autocast(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return decorate_autocast


def _enter_autocast(*vals: Any) -> autocast:
    mode = autocast(*vals)
    mode.__enter__()
    return mode


def _exit_autocast(mode: autocast) -> None:
    mode.__exit__(None, None, None)


# ---------------------------------------------------------------------- autograd.Function's methods
def _cast(value: Any, device_type: str, dtype: dtypes.dtype) -> Any:
    """The floating-point tensors of a nested value in ``dtype`` (float64 stays)."""
    if isinstance(value, Tensor):
        layout = value._layout
        casts = layout.dtype.kind == "f" and layout.dtype is not dtypes.float64
        return T.to_dtype(value, dtype) if casts and layout.device.type == device_type else value
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, Mapping):
        return {
            _cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()
        }
    if isinstance(value, Iterable):
        each = (_cast(v, device_type, dtype) for v in value)
        return type(value)(each) if isinstance(value, (list, tuple)) else each
    return value


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str,
    cast_inputs: dtypes.dtype | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Decorates the ``forward`` of an autograd.Function that may run under autocast.

    With ``cast_inputs`` its floating-point arguments are cast to that dtype there, and it runs
    without autocast. See https://docs.pytorch.org/docs/stable/amp.html#torch.amp.custom_fwd.
    """
    _known(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(*args: Any, **kwargs: Any) -> Any:
        ctx, on = args[0], is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = on and cast_inputs is None
        if cast_inputs is None or not on:
            return fwd(*args, **kwargs)
        with autocast(device_type=device_type, enabled=False):
            return fwd(
                *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs)
            )

    return decorate_fwd


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorates the ``backward`` of such a Function: it runs with autocast as ``forward`` did."""
    _known(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        with autocast(device_type=device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(*args, **kwargs)

    return decorate_bwd


explain_missing("torch.amp.autocast_mode", globals())
