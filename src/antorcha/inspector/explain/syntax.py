"""Brackets that do not pair: where one is missing, wrong, or too many, found by compiling."""

from __future__ import annotations

import linecache
import re
import warnings
from collections.abc import Iterator

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_ROWS = 200  # lines below the one that opens
_SOURCE = 500_000  # characters of a program that is compiled
_SHARED = ("<string>", "<stdin>", "<unknown>")


def brackets(error: SyntaxError) -> tuple[str, dict[str, str], str] | None:
    """The sentence's key and what it names, and the line with its brackets in pairs (empty where
    none was found that compiles); None where brackets are not what is wrong."""
    message = str(error.msg)
    found = re.search(r"'([(\[{])' was never closed", message)
    rows, at = _rows(error)
    column = (error.offset or 1) - 1
    if not rows:
        return None
    if found:
        closing = _CLOSING[found[1]]
        key, values = "never closed", {"open": found[1], "close": closing}
        return key, values, _first(rows, _closed(rows, at, closing))
    found = re.search(
        r"closing parenthesis '(.)' does not match opening parenthesis '(.)'", message
    )
    if found:
        closing = _CLOSING[found[2]]
        row = rows[at]
        result = [(at, row[:column] + closing + row[column + 1 :]),
                (at, row[:column] + closing + row[column:])]  # fmt: skip
        return "wrong bracket", {"open": found[2], "close": found[1]}, _first(rows, iter(result))
    found = re.search(r"unmatched '([)\]}])'", message)
    if found:
        result = [(at, rows[at][:column] + rows[at][column + 1 :])]
        return "unmatched", {"close": found[1]}, _first(rows, iter(result))
    if "expecting '}'" in message:
        result = [(at, f"{rows[at][:k]}}}{rows[at][k:]}") for k in range(len(rows[at]), 0, -1)]
        values = {"open": "{", "close": "}"}
        return "never closed", values, _first(rows, iter(result))
    if message == "invalid syntax" and rows[at].rstrip().endswith(":"):  # if (a == 1:
        for opening, closing in _CLOSING.items():
            if rows[at].count(opening) == rows[at].count(closing) + 1:
                fixed = _first(rows, _closed(rows, at, closing))
                if fixed:
                    return "never closed", {"open": opening, "close": closing}, fixed
    return None


def _rows(error: SyntaxError) -> tuple[list[str], int]:
    """The program's lines and the place of the faulty one, or that one alone."""
    text = error.text if type(error.text) is str else ""
    number = error.lineno or 0
    if type(error.filename) is str and error.filename not in _SHARED:
        known = [row.rstrip("\n") for row in linecache.getlines(error.filename)]
        if 0 < number <= len(known) and known[number - 1].strip() == text.strip():
            return known, number - 1
    return ([text.rstrip("\n")], 0) if text.strip() else ([], 0)


def _closed(rows: list[str], at: int, closing: str) -> Iterator[tuple[int, str]]:
    """Lines with the bracket added: at their end, before a colon, before a comment."""
    for k in range(at, min(at + _ROWS, len(rows))):
        row = rows[k].rstrip()
        yield k, row + closing
        if row.endswith(":"):
            yield k, f"{row[:-1]}{closing}:"
        code = row.partition("#")[0].rstrip()
        if code != row and code:
            yield k, code + closing + row[len(code) :]


def _first(rows: list[str], candidates: Iterator[tuple[int, str]]) -> str:
    """The first of these lines that makes the program compile."""
    if sum(map(len, rows)) > _SOURCE:
        return ""
    alone = len(rows) == 1
    for k, row in candidates:
        text = "\n".join([*rows[:k], row, *rows[k + 1 :]])
        if _compiles(text.strip() if alone else text, alone):
            return row.strip()
    return ""


def _compiles(text: str, alone: bool) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for after in ("", "\n    pass") if alone else ("",):  # (a head without its body)
            try:
                compile(text + after, "<fix>", "exec", dont_inherit=True)
            except Exception:
                continue
            return True
    return False
