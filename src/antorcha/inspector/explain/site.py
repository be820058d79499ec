"""Where an exception came from: the line of the program, and the part of it that failed."""

from __future__ import annotations
import __future__

import ast
import linecache
import os
import sysconfig
import textwrap
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import islice
from types import CodeType, FrameType, TracebackType
from typing import Any

from antorcha.errors import OUR_FOLDER

_MOST = 10_000  # frames of a traceback
_SOURCE = 2_000_000  # characters of a file that is parsed
_SHOWN = 6  # lines of a statement


@dataclass
class Site:
    """The line that failed, in the program itself rather than in a library where there is one.

    `lines` are the statement's source lines; `start`, `end` the columns of the failing part in the
    first of them (None where Python did not keep them), `last_end` the one in the last of them
    where it ends there; `node` is that part, parsed; `expression` its text.
    """

    frame: FrameType | None
    inner: list[FrameType]  # the frames further in
    file: str
    number: int
    function: str
    lines: list[str] = field(default_factory=list)
    start: int | None = None
    end: int | None = None
    last_end: int | None = None
    node: ast.AST | None = None
    expression: str = ""
    base: tuple[int, int] = (0, 0)  # line and column (in bytes) where the expression begins

    def text_of(self, node: ast.AST) -> str:
        """The source of a part of the expression."""
        span = self.span(node)
        return self.expression[span[0] : span[1]] if span else ""

    def span(self, node: ast.AST) -> tuple[int, int] | None:
        """Where in the expression's text a part of it stands."""
        try:
            start = self._offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
            end = self._offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        except (AttributeError, TypeError, IndexError):
            return None
        return (start, end) if 0 <= start <= end <= len(self.expression) else None

    def _offset(self, line: int, column: int) -> int:
        rows = self.expression.splitlines(keepends=True)
        row = line - self.base[0]
        if row < 0 or row > len(rows):
            raise IndexError
        if row == 0:
            column -= self.base[1]
        return sum(map(len, rows[:row])) + len(rows[row].encode()[:column].decode())

    def rewritten(self, changes: list[tuple[ast.AST, str]]) -> str:
        """The expression with parts replaced, within its lines where they are all known."""
        text = self.replaced(changes)
        if text and self.lines and self.start is not None and self.last_end is not None:
            tail = self.lines[-1][self.last_end :]
            return textwrap.dedent(self.lines[0][: self.start] + text + tail).strip()
        return text

    def replaced(self, changes: list[tuple[ast.AST, str]]) -> str:
        """The expression with parts replaced; empty where one of them is not in it."""
        text = self.expression
        spans = sorted([(self.span(node), new) for node, new in changes], key=lambda c: c[0] or ())
        for span, new in reversed(spans):
            if span is None:
                return ""
            start, end = span
            if new[:1] == text[start - 1 : start] == "(" and text[end : end + 1] == ")":
                before = text[start - 2 : start - 1]
                if not (before.isalnum() or before in ("_", ")", "]")):  # its own, not a call's
                    start, end = start - 1, end + 1
            text = text[:start] + new + text[end:]
        return text


def program_of(site: Site) -> ast.AST | None:
    """The function (or the whole file, or cell) that the failing line is in, parsed."""
    if site.frame is None:
        return None
    try:
        source = _source(site.frame)
        tree: ast.AST | None = _tree("".join(source)) if sum(map(len, source)) <= _SOURCE else None
    except Exception:  # (see _parsed)
        return None
    for node in ast.walk(tree) if tree is not None else ():
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        around = isinstance(node, kinds) and node.lineno <= site.number <= (node.end_lineno or 0)
        if around and node.name == site.function:  # type: ignore[attr-defined]
            tree = node
    return tree


def raw(error: BaseException, name: str, owner: type = BaseException) -> Any:
    """A field of an exception as `owner` has it, whatever the exception's own class does."""
    return vars(owner)[name].__get__(error)


def find(error: BaseException) -> Site | None:
    """The site of an exception; None where it has none."""
    steps = _steps(raw(error, "__traceback__"))
    if not steps:
        return None
    at = _chosen(steps)
    frame, lasti, number = steps[at]
    code = frame.f_code
    inner = [each[0] for each in steps[at + 1 :]]
    site = Site(frame, inner, code.co_filename, number, code.co_name)
    _read(site, lasti)
    return site


def _steps(trace: TracebackType | None) -> list[tuple[FrameType, int, int]]:
    found: list[tuple[FrameType, int, int]] = []
    while trace is not None and len(found) < _MOST:
        found.append((trace.tb_frame, trace.tb_lasti, trace.tb_lineno or 0))
        trace = trace.tb_next
    return found


@cache
def libraries() -> tuple[str, ...]:
    """Where libraries are installed."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple([path + os.sep for name in names if (path := sysconfig.get_path(name))])


def _chosen(steps: list[tuple[FrameType, int, int]]) -> int:
    """The innermost step of the program's own; else the innermost that is not antorcha's."""
    outside = libraries()
    for foreign in (True, False):
        for k in range(len(steps) - 1, -1, -1):
            file = steps[k][0].f_code.co_filename
            if file.startswith((OUR_FOLDER, "<frozen")) or (foreign and file.startswith(outside)):
                continue
            return k
    return len(steps) - 1


def _read(site: Site, lasti: int) -> None:
    """The source, and the part that Python says it was at."""
    assert site.frame is not None
    source = _source(site.frame)
    site.lines = _lines(source, site.number, site.number)
    positions = next(islice(site.frame.f_code.co_positions(), lasti // 2, None), (None,) * 4)
    first, last, start, end = positions
    if first is None or last is None or start is None or end is None or not site.lines:
        _only_candidate(site)
        return
    site.node = _parsed(source, (first, start, last, end))
    if site.node is not None:  # (a statement may be around that part)
        first, start, last, end = _place(site.node)
    rows = _lines(source, first, min(last, first + 200))
    if not rows:
        return
    site.number, site.base, site.lines = first, (first, start), rows[:_SHOWN]
    site.expression = _cut_out(rows, start, end)
    site.start = _column(rows[0], start)
    site.end = _column(rows[0], end) if last == first else len(rows[0].rstrip())
    site.last_end = _column(rows[-1], end) if len(site.lines) == last - first + 1 else None
    if site.node is None:
        site.node = _alone(site.expression)
        site.base = (1, 1)  # behind its parenthesis


def _place(node: Any) -> tuple[int, int, int, int]:
    """First line and column, last line and column (in bytes)."""
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _alone(expression: str) -> ast.AST | None:
    """An expression that is parsed by itself."""
    try:
        return ast.parse(f"({expression})", mode="eval").body
    except Exception:  # no expression, or nested too deep
        return None


def _column(line: str, column: int) -> int:
    """From bytes to characters."""
    return len(line.encode()[:column].decode(errors="replace"))


def _cut_out(lines: list[str], start: int, end: int) -> str:
    """The text between a column of the first line and one of the last (in bytes)."""
    rows = [line.encode() for line in lines]
    rows[-1] = rows[-1][:end]
    rows[0] = rows[0][start:]
    return "\n".join([row.decode(errors="replace") for row in rows])


def _source(frame: FrameType) -> list[str]:
    """The lines of the file that a frame runs; none where they are not known."""
    code = frame.f_code
    try:
        linecache.checkcache(code.co_filename)
        found = linecache.getlines(code.co_filename, frame.f_globals)
        if not found:  # Python 3.14 keeps what it was given by `-c` and at its prompt elsewhere
            of_code = getattr(linecache, "_getlines_from_code", None)
            found = of_code(code) if of_code is not None else []
        if code.co_filename in _SHARED and not _holds("".join(found), code):
            return []
    except Exception:
        return []
    return list(found)


_SHARED = ("<string>", "<stdin>")
"""Names that many texts go by: Python 3.13 knows that of `python -c`, and exec() uses the same."""


_FUTURE = __future__.annotations.compiler_flag


def _holds(text: str, code: CodeType) -> bool:
    """Was that code made from this text?"""
    if len(text) > _SOURCE:
        return False
    flags = code.co_flags & _FUTURE  # exec() hands on those of who calls it
    todo = [compile(text, code.co_filename, "exec", flags, dont_inherit=True)]
    while todo:
        each = todo.pop()
        if each == code:
            return True
        todo += [inner for inner in each.co_consts if isinstance(inner, CodeType)]
    return False


def _lines(source: list[str], first: int, last: int) -> list[str]:
    """Lines of the source, counted from 1; none where they are not known."""
    found = source[first - 1 : last] if first > 0 else []
    if found:  # (the file may have become shorter)
        found += [""] * (last - first + 1 - len(found))
    return [line.rstrip("\n") for line in found]


def _parsed(source: list[str], place: tuple[int, int, int, int]) -> ast.AST | None:
    """The part of the program at that place."""
    try:
        if sum(map(len, source)) > _SOURCE:
            return None
        tree = _tree("".join(source))
    except Exception:  # not Python as it stands, such as a cell with magics; nested too deep
        return None
    best: ast.AST | None = None
    for node in ast.walk(tree):
        if not hasattr(node, "end_col_offset") or _place(node)[2:] != place[2:]:
            continue
        if _place(node) == place:
            if isinstance(node, (ast.expr, ast.AugAssign)) or best is None:
                best = node
        elif best is None and isinstance(node, ast.Call) and _place(node)[:2] <= place[:2]:
            best = node  # (from 3.12 on a call of a method begins at its name)
    return _statement_of(tree, best)


@lru_cache(maxsize=2)
def _tree(text: str) -> ast.Module:
    """A program, parsed; the last ones are kept."""
    return ast.parse(text)


def _statement_of(tree: ast.AST, node: ast.AST | None) -> ast.AST | None:
    """``x[i] = y`` failed, and Python points at ``x[i]``: the assignment is what failed."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        for each in ast.walk(tree):
            if isinstance(each, ast.Assign) and each.targets == [node]:
                return each
            if isinstance(each, ast.AugAssign) and each.target is node:
                return each
    return node


def _only_candidate(site: Site) -> None:
    """Without positions: the one operation of the line, if it has only one."""
    if not site.lines:
        return
    text = site.lines[0]
    stripped = text.strip()
    try:
        tree = ast.parse(stripped)
    except Exception:
        return
    kinds = (ast.BinOp, ast.Call, ast.Subscript, ast.AugAssign, ast.Compare)
    found = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    if len(found) != 1:
        return
    node = found[0]
    lead = len(text) - len(text.lstrip())
    first, start, _, end = _place(node)
    site.node, site.base = node, (first, start)
    site.expression = _cut_out([stripped], start, end)
    site.start = lead + _column(stripped, start)
    site.end = site.last_end = lead + _column(stripped, end)
