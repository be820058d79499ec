"""Numbers as text: exact, and in few characters; sizes of memory."""

from __future__ import annotations

import math
from typing import Any

_DIGITS = 4  # of a number that is rounded


def exact(value: Any) -> str:
    """The shortest text that is this number of its dtype: of a NumPy scalar, "0.1" for float32.

    >>> exact(2.0), exact(True), exact(complex(1, -2))
    ('2.0', 'True', '1-2j')
    """
    text = str(value)
    return text[1:-1] if text[0] == "(" else text


def compact(text: str, width: int) -> str:
    """An exact number's text in at most `width` characters (4 or more); rounded ones have four
    digits at most.

    >>> compact("2.0", 5), compact("-0.12345678", 9), compact("1234567.0", 6), compact("True", 5)
    ('2.', '-0.1235', '1.23e6', 'True')
    >>> compact("1e-07", 4), compact("-1.2345e-20", 6), compact("nan", 5), compact("1-2j", 6)
    ('1e-7', '-1e-20', 'nan', '1-2j')
    >>> compact("1.23456-0.98765j", 10), compact("1.23456-0.98765j", 5)
    ('1.23-0.99j', '1-1j')
    """
    if text.endswith(".0"):
        text = text[:-1]
    if len(text) <= width and (text[-1] == "." or len(text.strip("-0.")) <= _DIGITS + 1):
        return text
    if text.endswith("j"):
        return _compact_complex(complex(text), text, width)
    try:
        number = float(text)
    except ValueError:  # a word
        return text[: width - 1] + "…"
    if not math.isfinite(number):
        return text[:width]
    if text.lstrip("-").isdigit() and len(text) <= width:
        return text
    for digits in range(min(width, _DIGITS), -1, -1):
        for form in (f"{number:.{digits}g}", f"{number:.{digits}e}"):
            short = _bare_exponent(form)
            if len(short) <= width and (float(short) != 0 or number == 0):
                return short
    return _bare_exponent(f"{number:.0e}")


def _compact_complex(number: complex, text: str, width: int) -> str:
    for digits in range(_DIGITS, 0, -1):
        for least in (digits, max(digits - 1, 1)):
            short = f"{number.real:.{digits}g}{number.imag:+.{least}g}j"
            if len(short) <= width:
                return short
    return text[: width - 1] + "…"


def ending(number: int, width: int) -> str:
    """A place's number, of a long one its last digits: neighbours must differ.

    >>> ending(4095, 6), ending(268435455, 6)
    ('4095', '…35455')
    """
    text = str(number)
    return text if len(text) <= width else f"…{text[1 - width :]}"


def _bare_exponent(text: str) -> str:
    """1.5e-07 as 1.5e-7, 2e+10 as 2e10."""
    mantissa, e, power = text.partition("e")
    return f"{mantissa}e{int(power)}" if e else text


def rounded(value: float | int | None, digits: int = 5) -> str:
    """A statistic for reading; integers stay whole.

    >>> rounded(1 / 3), rounded(12), rounded(2.0), rounded(None)
    ('0.33333', '12', '2.0', '-')
    >>> rounded(-0.000514634), rounded(4e25)
    ('-5.1463e-4', '4e25')
    """
    if value is None:
        return "-"
    if isinstance(value, int):
        return str(value)
    text = f"{value:.{digits}g}"
    if 0 < abs(value) < 1e-3 or "e" in text:
        mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
        if "." in mantissa:
            mantissa = mantissa.rstrip("0").rstrip(".")
        return f"{mantissa}e{int(power)}" if power else mantissa
    return text if not text.lstrip("-").isdigit() else f"{text}.0"


def memory_size(nbytes: int) -> str:
    """Bytes for reading.

    >>> memory_size(24), memory_size(1536), memory_size(1 << 30)
    ('24 B', '1.5 KiB', '1 GiB')
    """
    size, unit = float(nbytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.4g} {unit}"


def grouped(count: int) -> str:
    """A count with spaces (that no line is broken at) between the thousands, from five digits on:
    it reads the same in every language.

    >>> grouped(65536), grouped(5120)
    ('65\\xa0536', '5120')
    """
    return f"{count:,}".replace(",", "\N{NO-BREAK SPACE}") if abs(count) > 9999 else str(count)
