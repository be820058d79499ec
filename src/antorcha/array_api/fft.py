"""Fourier transforms of the array API standard.

See https://data-apis.org/array-api/latest/extensions/fourier_transform_functions.html.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha.array_api.arrays import like, plain, wrapped
from antorcha.ops.kinds.record import T


def _along_one(name: str) -> Callable[..., Any]:
    op = f"fft_{name}"

    def function(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
        return like(getattr(T, op)(plain(x), n, axis, norm), x)

    return _named(function, name)


def _along_several(name: str) -> Callable[..., Any]:
    op = f"fft_{name}"

    def function(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Any:
        sizes, dims = [None if each is None else tuple(each) for each in (s, axes)]
        return like(getattr(T, op)(plain(x), sizes, dims, norm), x)

    return _named(function, name)


def _shift(name: str) -> Callable[..., Any]:
    op = f"fft_{name}"

    def function(x: Any, /, *, axes: Any = None) -> Any:
        dims = tuple(axes) if isinstance(axes, (list, tuple)) else axes
        return like(getattr(T, op)(plain(x), dims), x)

    return _named(function, name)


def _frequencies(name: str) -> Callable[..., Any]:
    op = f"fft_{name}"

    def function(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
        return wrapped(getattr(T, op)(n, d, dtype=dtype, device=device))

    return _named(function, name)


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = getattr(T, f"fft_{name}").__doc__
    return function


_MAKERS: dict[Callable[[str], Callable[..., Any]], tuple[str, ...]] = {
    _along_one: ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"),
    _along_several: ("fftn", "ifftn", "rfftn", "irfftn"), _shift: ("fftshift", "ifftshift"),
    _frequencies: ("fftfreq", "rfftfreq"),
}  # fmt: skip
_made = {name: make(name) for make, names in _MAKERS.items() for name in names}
globals().update(_made)
__all__ = [*_made]
