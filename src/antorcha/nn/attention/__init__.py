"""``torch.nn.attention``: which backend attention may use, causal biases, flexible masks.

There is one implementation of attention here, so the choice of a backend is kept and told, and
changes no number. See https://docs.pytorch.org/docs/stable/nn.attention.html.
"""

from __future__ import annotations

import contextlib
import enum
import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from antorcha.errors import ArgumentError, MissingFeature, ValueRangeError, no_such_name

__all__ = [
    "WARN_FOR_UNFUSED_KERNELS", "SDPBackend", "activate_flash_attention_impl",
    "current_flash_attention_impl", "list_flash_attention_impls", "register_flash_attention_impl",
    "restore_flash_attention_impl", "sdpa_kernel",
]  # fmt: skip

WARN_FOR_UNFUSED_KERNELS = False
"""Read and written by programs; there are no fused kernels to warn about."""


class SDPBackend(enum.Enum):
    """The implementations of scaled dot product attention that PyTorch tells apart.

    >>> torch.nn.attention.SDPBackend.MATH.name
    'MATH'
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self) -> int:
        return self.value

    __index__ = __int__


_PRIORITY = [
    SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH,
    SDPBackend.CUDNN_ATTENTION, SDPBackend.OVERRIDEABLE,
]  # fmt: skip
_ORDER = [
    SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH, SDPBackend.OVERRIDEABLE,
]  # fmt: skip
_enabled: set[SDPBackend] = set(_ORDER)


def _cur_sdpa_kernel_backends(with_priority: bool = False) -> list[SDPBackend]:
    """The backends that are enabled now."""
    return [backend for backend in (_PRIORITY if with_priority else _ORDER) if backend in _enabled]


def _sdpa_kernel(backends: Iterable[SDPBackend], set_priority: bool = False) -> None:
    """Enables these backends and no others."""
    chosen = list(backends)
    _enabled.clear()
    _enabled.update(chosen)
    if set_priority:
        _PRIORITY[:] = [*chosen, *[each for each in _PRIORITY if each not in chosen]]


@contextlib.contextmanager
def sdpa_kernel(
    backends: SDPBackend | list[SDPBackend], set_priority: bool = False
) -> Iterator[dict[str, Any]]:
    """Inside, attention is asked to use one of these backends; every one gives the same numbers.

    Args:
        backends (SDPBackend or list of SDPBackend): those that are allowed
        set_priority (bool): is the list in the order of preference? Default: False

    Raises AssertionError for anything else.
    See https://docs.pytorch.org/docs/stable/generated/torch.nn.attention.sdpa_kernel.html.

    >>> from antorcha.nn.attention import SDPBackend, sdpa_kernel
    >>> q = torch.ones(1, 1, 2, 4)
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     torch.nn.functional.scaled_dot_product_attention(q, q, q).shape
    torch.Size([1, 1, 2, 4])
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    chosen = [backends] if isinstance(backends, SDPBackend) else list(dict.fromkeys(backends))
    before = _cur_sdpa_kernel_backends(with_priority=set_priority)
    try:
        _sdpa_kernel(chosen, set_priority)
        yield {}
    finally:
        _sdpa_kernel(before, set_priority)


# -------------------------------------------------------------------------- other implementations
_flash: dict[str, Callable[..., Any]] = {}


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """Notes an implementation of flash attention under a name."""
    if not callable(register_fn):
        raise ArgumentError("register_flash_attention_impl: register_fn must be callable")
    _flash[impl] = register_fn


def activate_flash_attention_impl(impl: str) -> None:
    """Raises: an implementation for another library's GPU kernels has no place to go to here."""
    if impl not in _flash:
        raise ValueRangeError(
            f"Unknown flash attention impl '{impl}'. Available implementations: "
            f"{list_flash_attention_impls()}"
        )
    raise MissingFeature(f"activate_flash_attention_impl: '{impl}' cannot replace the attention")


def list_flash_attention_impls() -> list[str]:
    """The names that were registered."""
    return sorted(_flash)


def current_flash_attention_impl() -> str | None:
    """None: no implementation can be active."""
    return None


def restore_flash_attention_impl() -> None:
    """Nothing can be active, so there is nothing to restore."""


_FILES = ("bias", "flex_attention", "varlen")


def __getattr__(name: str) -> Any:
    if name in _FILES:
        return importlib.import_module(f"antorcha.nn.attention.{name}")
    raise no_such_name("torch.nn.attention", name, globals())
