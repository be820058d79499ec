"""The fixes of an explanation, put into the program and tried, in the child.

A fix is a line of code. Where it belongs is found by the syntax tree: in the place of the failing
line, where it is a statement of the same kind; in the place of the failing part; or, where it makes
a layer anew, in the place of the statement that made it. It is offered only if the program was run
with it, without effects, and went further than before.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from typing import Any

from antorcha.inspector.explain.explanation import Explanation
from antorcha.lab.effects import EffectsWatch
from antorcha.lab.process_reset import Beginning
from antorcha.lab.program import ProgramRun

Trail = list[tuple[str, int]]
"""Where in a program an error passed, outermost first: functions, and lines in them."""


def tried(
    program: ProgramRun, found: Explanation, beginning: Beginning, effects: EffectsWatch
) -> list[str]:
    """For each fix the program with it, or "" where none went further; `program` has failed."""
    assert program.error is not None
    before = None if isinstance(program.error, SyntaxError) else trail(program.error, program.name)
    kept = linecache.cache.get(program.name)
    texts: list[str] = []
    try:
        for code, _ in found.fixes:
            texts.append("")
            for text, added in mended(program.code, found, code):
                run = ProgramRun(text, program.name, program.folder, beginning, program.size)
                effects.begin(refuse=True)
                error = run.run()
                effects.end()
                run.forget(program.folder)
                if went_further(error, before, program.name, added, found.number):
                    texts[-1] = text
                if texts[-1] or isinstance(error, KeyboardInterrupt):
                    break
    finally:
        if kept is not None:
            linecache.cache[program.name] = kept
    return texts


def went_further(
    error: BaseException | None, before: Trail | None, name: str, added: int, line: int
) -> bool:
    """Did a run that ended with `error` come further than one that ended at `before` (None: one
    that was no Python)? In the new text there are `added` lines more after `line`."""
    if error is None or before is None:
        return not isinstance(error, SyntaxError)
    for (function, now), (old_function, old) in zip(trail(error, name), before, strict=False):
        moved = old + added if old > line else old
        if (function, now) != (old_function, moved):
            return function == old_function and now > moved
    return False


def trail(error: BaseException, name: str) -> Trail:
    """Where the error passed in the program of that file name."""
    found: Trail = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == name:
            found.append((code.co_name, trace.tb_lineno))
        trace = trace.tb_next
    return found


# ---- where a fix belongs ------------------------------------------------------------------------


def mended(text: str, found: Explanation, fix: str) -> Iterator[tuple[str, int]]:
    """The program with the fix, for every place where it may belong; and how many lines longer."""
    lines = text.splitlines(keepends=True)
    for first, count, new in _places(lines, found, fix):
        old = lines[first : first + count]
        end = "\n" if old and old[-1].endswith("\n") else ""
        changed = "".join([*lines[:first], new + end, *lines[first + count :]])
        if changed != text and _tree(changed) is not None:
            yield changed, new.count("\n") + 1 - count


def _places(lines: list[str], found: Explanation, fix: str) -> Iterator[tuple[int, int, str]]:
    """Lines that may be replaced (the first, and how many), and by what."""
    first, count = found.number - 1, max(len(found.lines), 1)
    if not 0 <= first < len(lines):
        return
    tree = _tree("".join(lines))
    line = lines[first].rstrip("\n")
    indent = line[: len(line) - len(line.lstrip())]
    whole = "\n".join([indent + row for row in fix.splitlines()])
    if tree is None:
        yield first, count, whole
        return
    statement = _statement(tree, found.number)
    if _is_alike(statement, _tree(fix) or _tree(fix.rstrip() + " pass")):
        yield first, count, whole
    elif _is_alike_part(found.expression, fix) and count == 1 and found.start is not None:
        yield first, 1, line[: found.start] + fix + line[found.end :]
    else:
        made = _made(tree, fix)
        if made is not None:
            line = lines[made.lineno - 1]
            target = (ast.get_source_segment("".join(lines), made.targets[0]) or "").strip()
            value = fix.partition("=")[2].strip()
            indent = line[: made.col_offset]
            length = (made.end_lineno or made.lineno) - made.lineno + 1
            yield made.lineno - 1, length, f"{indent}{target} = {value}"


def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _statement(tree: ast.AST, line: int) -> ast.stmt | None:
    """The innermost statement that is on that line."""
    found = None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or line):
            found = node  # (`walk` gives the outer ones first)
    return found


def _is_alike(statement: ast.stmt | None, fix: ast.Module | None) -> bool:
    """Is the fix a statement of that kind, to the same targets?"""
    if statement is None or fix is None or len(fix.body) != 1:
        return False
    new = fix.body[0]
    return type(new) is type(statement) and _targets(new) == _targets(statement)


def _targets(statement: ast.stmt) -> list[str]:
    every = [*getattr(statement, "targets", []), getattr(statement, "target", None)]
    return [ast.dump(each) for each in every if each is not None]


def _is_alike_part(expression: str, fix: str) -> bool:
    """Is the fix an expression of the kind of the failing one: the same operation or call?"""
    try:
        old: Any = ast.parse(f"({expression})", mode="eval").body
        new: Any = ast.parse(f"({fix})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return False
    if isinstance(old, ast.Call) and isinstance(new, ast.Call):
        return ast.dump(old.func) == ast.dump(new.func)
    return type(old) is type(new) and isinstance(old, (ast.BinOp, ast.Subscript))


def _made(tree: ast.AST, fix: str) -> ast.Assign | None:
    """The one statement of the program that gives the fix's target its value, for
    ``model.fc = nn.Linear(3, 4)`` also ``self.fc = ...``."""
    parsed = _tree(fix)
    new = parsed.body[0] if parsed is not None and len(parsed.body) == 1 else None
    if not isinstance(new, ast.Assign) or not isinstance(new.value, ast.Call):
        return None
    name = _name(new.targets[0])
    found = [
        node for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and len(node.targets) == 1
        and name and _name(node.targets[0]) == name and isinstance(node.value, ast.Call)
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _name(target: ast.expr) -> str:
    if isinstance(target, ast.Name):
        return target.id
    return f".{target.attr}" if isinstance(target, ast.Attribute) else ""
