"""``torch.testing``: comparing tensors in tests."""

from __future__ import annotations

from typing import Any

from antorcha.errors import explain_missing
from antorcha.lazy import np
from antorcha.runtime.tensor import Tensor

__all__ = ["assert_close"]

_TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Any = None,
) -> None:
    """Raises AssertionError unless the two are close: ``|a - b| <= atol + rtol * |b|``.

    The tolerances' defaults depend on the dtype, as in PyTorch. Sequences and mappings are compared
    item by item.
    See https://docs.pytorch.org/docs/stable/testing.html.

    >>> torch.testing.assert_close(torch.tensor([1., 2.]), torch.tensor([1., 2. + 1e-7]))
    """
    options = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "check_dtype": check_dtype,
               "check_device": check_device, "check_stride": check_stride, "msg": msg}  # fmt: skip
    if isinstance(expected, (list, tuple)):
        if len(actual) != len(expected):
            raise AssertionError(f"The length of the sequences mismatch: {len(actual)} != "
                                 f"{len(expected)}")  # fmt: skip
        for a, b in zip(actual, expected, strict=True):
            assert_close(a, b, **options)
        return
    if isinstance(expected, dict):
        if actual.keys() != expected.keys():
            raise AssertionError(f"The keys of the mappings do not match: {sorted(actual)} != "
                                 f"{sorted(expected)}")  # fmt: skip
        for key in expected:
            assert_close(actual[key], expected[key], **options)
        return
    _compare(actual, expected, options)


def _array(value: Any) -> Any:
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        if value.dtype.name in ("bfloat16", "float16"):
            value = value.float()
        return value.numpy()
    return np.asarray(value)


def _compare(actual: Any, expected: Any, options: dict[str, Any]) -> None:
    def fail(text: str) -> None:
        msg = options["msg"]
        raise AssertionError(msg(text) if callable(msg) else msg or text)

    name = "float64"
    if isinstance(actual, Tensor) and isinstance(expected, Tensor):
        name = actual._layout.dtype.name
        if actual._layout.shape != expected._layout.shape:
            fail(f"The values for attribute 'shape' do not match: {actual._layout.shape} != "
                 f"{expected._layout.shape}.")  # fmt: skip
        if options["check_dtype"] and actual._layout.dtype is not expected._layout.dtype:
            fail(f"The values for attribute 'dtype' do not match: {actual._layout.dtype} != "
                 f"{expected._layout.dtype}.")  # fmt: skip
        if options["check_device"] and actual._layout.device is not expected._layout.device:
            fail(f"The values for attribute 'device' do not match: {actual._layout.device} != "
                 f"{expected._layout.device}.")  # fmt: skip
        if options["check_stride"] and actual._layout.strides != expected._layout.strides:
            fail(f"The values for attribute 'stride()' do not match: {actual._layout.strides} != "
                 f"{expected._layout.strides}.")  # fmt: skip
    a, b = _array(actual), _array(expected)
    relative, absolute = _TOLERANCES.get(name, (0.0, 0.0))
    relative = relative if options["rtol"] is None else options["rtol"]
    absolute = absolute if options["atol"] is None else options["atol"]
    with np.errstate(all="ignore"):
        near = np.isclose(a, b, rtol=relative, atol=absolute, equal_nan=options["equal_nan"])
    if near.all():
        return
    wrong = int((~near).sum())
    with np.errstate(all="ignore"):
        gap = np.abs(a.astype(np.complex128) - b.astype(np.complex128))
        gap = np.where(np.isnan(gap), np.inf, gap)
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(gap)), gap.shape))
    fail(
        f"{'Tensor-likes' if np.ndim(b) else 'Scalars'} are not close!\n\n"
        f"Mismatched elements: {wrong} / {max(near.size, 1)} ({100 * wrong / near.size:.1f}%)\n"
        f"Greatest absolute difference: {gap.max()} at index {at} (up to {absolute} allowed)\n"
        f"Relative tolerance: {relative}"
    )


explain_missing("torch.testing", globals())
