"""``torch.testing``: comparing tensors in tests."""

from __future__ import annotations

from typing import Any

from antorcha.core.lazy import np
from antorcha.errors import explain_missing, warn
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.create import tensor
from antorcha.testing.creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

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
    _compare_items(actual, expected, options, "")


_OLD_TOLERANCES = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}


def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = True, msg: str = "",
) -> None:  # fmt: skip
    """`assert_close` as it once was, deprecated: other tolerances, and any dtypes."""
    warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a "
        "future release. Please use `torch.testing.assert_close()` instead.",
        FutureWarning,
    )
    one = actual if isinstance(actual, Tensor) else tensor(actual)
    other = expected if isinstance(expected, Tensor) else tensor(expected, dtype=one.dtype)
    if rtol is None and atol is None:
        known = [_OLD_TOLERANCES.get(each.dtype.name, (0.0, 0.0)) for each in (one, other)]
        rtol, atol = [max(pair) for pair in zip(*known, strict=True)]
    assert_close(
        one, other, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None
    )


def _compare_items(actual: Any, expected: Any, options: dict[str, Any], item: str) -> None:
    """Compares two values, or what is in them; `item` says where in the arguments they stand."""
    if isinstance(expected, (list, tuple)):
        if len(actual) != len(expected):
            text = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            _fail(text, options, item)
        for k, (a, b) in enumerate(zip(actual, expected, strict=True)):
            _compare_items(a, b, options, f"{item}[{k}]")
    elif isinstance(expected, dict):
        if actual.keys() != expected.keys():
            _fail(f"The keys of the mappings do not match: {sorted(actual)} != {sorted(expected)}",
                  options, item)  # fmt: skip
        for key in expected:
            _compare_items(actual[key], expected[key], options, f"{item}[{key!r}]")
    else:
        text = _difference(actual, expected, options)
        if text:
            _fail(text, options, item)


def _fail(text: str, options: dict[str, Any], item: str) -> None:
    text += f"\n\nThe failure occurred for item {item}" if item else ""
    msg = options["msg"]
    raise AssertionError(msg(text) if callable(msg) else msg or text)


def _array(value: Any) -> Any:
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        if value.dtype.name in ("bfloat16", "float16"):
            value = value.float()
        return value.numpy()
    return np.asarray(value)


def _attributes(actual: Tensor, expected: Tensor, options: dict[str, Any]) -> str:
    """Which attribute of the tensors differs, or the empty string."""
    a, b = actual._layout, expected._layout
    for name, one, other, looked_at in (
        ("shape", a.shape, b.shape, True), ("dtype", a.dtype, b.dtype, options["check_dtype"]),
        ("device", a.device, b.device, options["check_device"]),
        ("stride()", a.strides, b.strides, options["check_stride"]),
    ):  # fmt: skip
        if looked_at and one != other:
            return f"The values for attribute {name!r} do not match: {one} != {other}."
    return ""


def _difference(actual: Any, expected: Any, options: dict[str, Any]) -> str:
    """How two tensors or numbers differ, in PyTorch's words, or the empty string."""
    kinds = {type(actual), type(expected)}
    name = "float64" if float in kinds else "complex128" if complex in kinds else ""
    if isinstance(actual, Tensor) and isinstance(expected, Tensor):
        text = _attributes(actual, expected, options)
        if text:
            return text
        name = actual._layout.dtype.name
    a, b = _array(actual), _array(expected)
    relative, absolute = _TOLERANCES.get(name or a.dtype.name, (0.0, 0.0))
    relative = relative if options["rtol"] is None else options["rtol"]
    absolute = absolute if options["atol"] is None else options["atol"]
    with np.errstate(all="ignore"):
        near = np.isclose(a, b, rtol=relative, atol=absolute, equal_nan=options["equal_nan"])
        if near.all():
            return ""
        if not near.ndim:  # as Python numbers
            a, b = np.asarray(a.item()), np.asarray(b.item())
        if a.dtype.kind in "biu" and b.dtype.kind in "biu":
            a, b = a.astype(object), b.astype(object)  # ints of any size
        gap = np.asarray(np.where(near, 0, np.abs(a - b)))
        size = np.asarray(np.abs(b), np.float64 if b.dtype.kind == "O" else None)
        share = np.where(near, 0, gap.astype(size.dtype) / size)
    exact = not (relative or absolute)
    gaps = (("absolute", gap, absolute), ("relative", share, relative))
    if not near.ndim:
        lines = [f"Expected {b.item()} but got {a.item()}."]
        lines += [f"{kind.capitalize()} difference: {each.item()}{_allowed(limit, exact)}"
                  for kind, each, limit in gaps]  # fmt: skip
    else:
        wrong = int((~near).sum())
        lines = [f"Mismatched elements: {wrong} / {near.size} ({100 * wrong / near.size:.1f}%)"]
        for kind, each, limit in gaps:
            order = each.astype(np.float64)
            at = tuple([int(i) for i in np.unravel_index(int(np.argmax(order)), each.shape)])
            most = each[at]
            most = most.item() if hasattr(most, "item") else most
            lines.append(
                f"Greatest {kind} difference: {most} at index {at}{_allowed(limit, exact)}"
            )
    what = f"{'Tensor-likes' if near.ndim else 'Scalars'} are not {'equal' if exact else 'close'}!"
    return "\n".join([what, "", *lines])


def _allowed(limit: float, exact: bool) -> str:
    return "" if exact else f" (up to {limit} allowed)"


explain_missing("torch.testing", globals())
