"""``antorcha.explain``: an exception in the words of the program that raised it."""

from __future__ import annotations

import ast
import builtins
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from antorcha.core.cells import cell_of
from antorcha.core.lazy import lazy
from antorcha.errors import MissingName, facts_of, missing_attribute_text, nearest
from antorcha.inspector.explain import draw as drawn
from antorcha.inspector.explain import rules
from antorcha.inspector.explain.case import Case
from antorcha.inspector.explain.draw import Picture, Piece
from antorcha.inspector.explain.operands import gather
from antorcha.inspector.explain.site import Site, find, raw
from antorcha.inspector.explain.syntax import brackets
from antorcha.inspector.explain.values import (
    UNKNOWN,
    Names,
    is_worth_telling,
    keys_of,
    short_text,
    type_name,
    value_of,
)
from antorcha.inspector.explain.words import ExplainWords, say
from antorcha.inspector.forms import cut, escaped
from antorcha.inspector.page import block
from antorcha.inspector.shown import Shown

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

rich_text = lazy("rich.text")

_MESSAGE, _VALUES = 3000, 8  # characters of a message; names of a line
_WIDE = 80


@dataclass(repr=False)
class Explanation(Shown):
    """What an exception says, where it came from, what was there, and what would mend it.

    Attributes:
        kind: the exception's class
        message: its text
        file, number, function: the line of the program; empty, 0 where there is none
        lines: its source; `start`, `end`: the failing part's columns in the first of them,
            `last_end` its end in the last
        expression: that part
        picture: the operands' shapes as boxes, what does not fit marked (None: nothing to draw)
        rule: what must hold, in a sentence
        fixes: lines of code that would do, each with the shape that it gives
        names: names on the line, each with its value in a few words
        notes: did-you-mean, the layer, causes
    """

    kind: str
    message: str
    lang: str = "en"
    file: str = ""
    number: int = 0
    function: str = ""
    lines: list[str] = field(default_factory=list)
    start: int | None = None
    end: int | None = None
    last_end: int | None = None
    expression: str = ""
    picture: Picture | None = None
    rule: str = ""
    fixes: list[tuple[str, str]] = field(default_factory=list)
    names: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def fix(self) -> str:
        """The first of the fixes, as code; empty where none is known."""
        return self.fixes[0][0] if self.fixes else ""

    @property
    def text(self) -> str:
        """The whole explanation, as plain text."""
        return "\n".join(["".join([text for _, text in line]).rstrip() for line in self._lines()])

    def plain(self) -> str:
        return self.text

    def _lines(self) -> list[list[Piece]]:
        """The explanation as lines of styled text."""
        out: list[list[Piece]] = [[("bad", self.kind), ("plain", f": {self.message}")]]
        if self.file:
            out += [[], [("dim", f"  {self._place()}")]]
            out += self._source_lines()
        return out + self._advice_lines()

    @property
    def advice(self) -> str:
        """What the explanation adds to a traceback: picture, rule, fixes, layer; "" if nothing."""
        if self.picture is None and not self.rule and not self.fixes:
            return ""
        lines = ["".join([text for _, text in line]).rstrip() for line in self._advice_lines()]
        return "\n".join(lines).strip("\n")

    def _advice_lines(self) -> list[list[Piece]]:
        out: list[list[Piece]] = []
        if self.picture is not None:
            out.append([])
            out += [[("plain", "  "), *line] for line in drawn.text_lines(self.picture)]
        if self.rule:
            out += self._rule_lines()
        out += [[]] if self.fixes and not self.rule else []
        out += self._fix_lines()
        if self.names:
            out += [[], [("name", f"{say(self.lang, 'names')}:")]]
            wide = max([len(name) for name, _ in self.names])
            out += [[("plain", f"  {name:<{wide}}  {value}")] for name, value in self.names]
        out += [[("plain", note)] for note in ([""] if self.notes else []) + self.notes]
        return out

    def _place(self) -> str:
        cell = cell_of(self.file)
        file = self.file if cell is None else say(self.lang, "cell", cell=cell)
        where = f"{file}, {say(self.lang, 'line', number=self.number)}"
        inside = say(self.lang, "in", function=self.function)
        # (a cell's outermost level is the cell)
        named = self.function if cell is None else self.function.replace("<module>", "")
        return f"{where}, {inside}" if named else where

    def _source_lines(self) -> list[list[Piece]]:
        if not self.lines:
            return [[("dim", f"    ({say(self.lang, 'source unknown')})")]]
        lead = min([len(line) - len(line.lstrip()) for line in self.lines if line.strip()] or [0])
        out: list[list[Piece]] = []
        for n, line in enumerate(self.lines):
            out.append([("plain", f"    {line[lead:]}")])
            start, end = self._part(n)
            if start is not None and end is not None:
                marks = " " * (start - lead) + "^" * max(end - start, 1)
                out.append([("bad", f"    {marks}")])
        return out

    def _part(self, n: int) -> tuple[int | None, int | None]:
        """The columns of the failing part in a line."""
        if n == 0 or self.last_end is None:
            return (self.start, self.end) if n == 0 else (None, None)
        line = self.lines[n]
        end = self.last_end if n == len(self.lines) - 1 else len(line.rstrip())
        return len(line) - len(line.lstrip()), end

    def _rule_lines(self) -> list[list[Piece]]:
        head = f"{say(self.lang, 'rule')}: "
        first, *more = textwrap.wrap(self.rule, _WIDE - len(head))
        return [
            [], [("name", head), ("plain", first)],
            *[[("plain", " " * len(head) + line)] for line in more],
        ]  # fmt: skip

    def _fix_lines(self) -> list[list[Piece]]:
        out: list[list[Piece]] = []
        for n, (code, gives) in enumerate(self.fixes):
            rows = code.splitlines()
            shape = f"   ({say(self.lang, 'gives', shape=gives)})" if gives else ""
            head = f"{say(self.lang, 'fix')}: " if n == 0 else say(self.lang, "or", fix="")
            pad = max(6, len(say(self.lang, "fix")) + 2)
            for k, row in enumerate(rows):
                start = f"{head:<{pad}}" if not k else " " * pad
                end = shape if k == len(rows) - 1 else ""
                out.append([("name", start), ("good", row), ("dim", end)])
        return out

    # -------------------------------------------------------------------------------- other faces
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        styles = {"plain": "", "dim": "dim", "bad": "bold red", "good": "green", "name": "bold"}
        for line in self._lines():
            yield rich_text.Text.assemble(*[(text, styles[style]) for style, text in line])

    def html(self) -> str:
        """A self-contained ``<div>``: no script, nothing from outside."""
        parts = [f"<h3><span class='bad'>{escaped(self.kind)}</span>: {escaped(self.message)}</h3>"]
        if self.file:
            parts.append(f'<div class="muted">{escaped(self._place())}</div>')
            parts.append(f"<pre>{self._html_source()}</pre>")
        if self.picture is not None:
            label = "; ".join(["".join([text for _, text in line]).strip()
                               for line in drawn.text_lines(self.picture)])  # fmt: skip
            parts.append(f'<div class="wide">{drawn.as_svg(self.picture, label)}</div>')
        if self.rule:
            parts.append(f"<p><b>{say(self.lang, 'rule')}:</b> {escaped(self.rule)}</p>")
        for n, (code, gives) in enumerate(self.fixes):
            shape = f" ({say(self.lang, 'gives', shape=gives)})" if gives else ""
            head = f"{say(self.lang, 'fix')}: " if n == 0 else say(self.lang, "or", fix="")
            parts.append(
                f"<p><b>{head}</b><span class='muted'>{escaped(shape)}</span></p>"
                f'<pre><code class="fix">{escaped(code)}</code></pre>'
            )
        if self.names:
            parts.append(self._html_names())
        parts += [f"<p>{escaped(note)}</p>" for note in self.notes]
        return block("".join(parts), self.kind, drawn.STYLE, lang=self.lang)

    _repr_html_ = html

    def _html_names(self) -> str:
        rows = "".join([
            f"<tr><th scope='row'>{escaped(name)}</th><td>{escaped(value)}</td></tr>"
            for name, value in self.names
        ])  # fmt: skip
        return (
            f"<p><b>{say(self.lang, 'names')}</b></p>"
            f"<div class='wide'><table><tbody>{rows}</tbody></table></div>"
        )

    def _html_source(self) -> str:
        if not self.lines:
            return escaped(f"({say(self.lang, 'source unknown')})")
        lead = min([len(line) - len(line.lstrip()) for line in self.lines if line.strip()] or [0])
        rows = []
        for n, line in enumerate(self.lines):
            start, end = self._part(n)
            if start is None or end is None:
                rows.append(escaped(line[lead:]))
            else:
                before, part, after = line[lead:start], line[start:end], line[end:]
                rows.append(f"{escaped(before)}<mark>{escaped(part)}</mark>{escaped(after)}")
        return "\n".join(rows)


def explain(error: BaseException, *, lang: str = "en") -> Explanation:
    """What an exception means: the failing part of its line, the operands' shapes as boxes with
    what does not fit marked, the rule in a sentence, and a fix as code.

    For antorcha's errors of shape, dtype, device, index and autograd; for any other exception the
    message, the line, the values of the names on it, and a did-you-mean. No function of the program
    is run for it: names, plain fields and constants are looked up, the rest is taken from where the
    exception passed. A fix is tried on stand-ins of the operands before it is told. Whatever the
    exception is, this does not raise.

    Args:
        error (BaseException): the exception, as ``except ... as error`` gives it
        lang (str): "en" or "es"

    Raises:
        TypeError: where `lang` is another language.

    >>> a, b = torch.ones(3, 2), torch.ones(3, 2)
    >>> try:
    ...     a @ b
    ... except RuntimeError as error:
    ...     found = torch.explain(error)
    >>> found.rule  # doctest: +ELLIPSIS
    'In a @ b the last size of a must equal the second last size of b ...'
    """
    ExplainWords(lang)  # a wrong one is refused
    try:
        return _explained(error, lang)
    except Exception:  # nothing that an exception carries may stop its explanation
        return _least(error, lang)


def _least(error: Any, lang: str) -> Explanation:
    """The class and the message, of anything."""
    if not issubclass(type(error), BaseException):
        kind = type_name(error)
        return Explanation(kind, say(lang, "no error", kind=kind), lang)
    return Explanation(type_name(error), message_of(error, lang), lang)


def message_of(error: BaseException, lang: str) -> str:
    """The text of an exception, if it can be had."""
    try:
        text = missing_attribute_text(error) if type(error) is AttributeError else ""
        text = text or str(error)
    except Exception:
        return say(lang, "no text")
    return cut(text, _MESSAGE) if type(text) is str else say(lang, "no text")


def _explained(error: BaseException, lang: str) -> Explanation:
    result = _least(error, lang)
    if not issubclass(type(error), BaseException):
        return result
    if issubclass(type(error), SyntaxError) and type(getattr(error, "lineno", None)) is int:
        _at_syntax(result, error)  # type: ignore[arg-type]
    else:
        site = find(error)
        if site is not None:
            _at(result, error, site)
    if issubclass(type(error), BaseExceptionGroup):
        result.notes += _members(error, lang)
    result.notes += _notes(error) + _chain(error, lang)
    return result


def _notes(error: BaseException) -> list[str]:
    """What ``add_note`` has added."""
    fields = object.__getattribute__(error, "__dict__")
    notes = fields.get("__notes__") if type(fields) is dict else None
    listed = notes[:3] if type(notes) is list else []
    return [cut(note, _MESSAGE) for note in listed if type(note) is str]


def _at_syntax(result: Explanation, error: SyntaxError) -> None:
    """The line that could not be read."""
    result.file, result.number = str(error.filename or ""), error.lineno or 0
    result.message = cut(str(error.msg), _MESSAGE)
    if type(error.text) is str and error.text.strip():
        result.lines = [error.text.rstrip("\n").splitlines()[0]]
        if type(error.offset) is int and error.offset > 0:
            result.start = min(error.offset - 1, len(result.lines[0]))
            ends = error.end_lineno == error.lineno and type(error.end_offset) is int
            end = error.end_offset - 1 if ends and error.end_offset else result.start + 1
            result.end = max(end, result.start + 1)
    found = brackets(error)
    if found is not None:
        key, values, fix = found
        result.rule = say(result.lang, key, **values)
        result.fixes = [(fix, "")] if fix else []


def _at(result: Explanation, error: BaseException, site: Site) -> None:
    """What is known at the site."""
    lang = result.lang
    result.file, result.number, result.function = site.file, site.number, site.function
    result.lines, result.start, result.end = site.lines, site.start, site.end
    result.last_end = site.last_end
    result.expression = site.expression
    names = Names(site.frame)
    try:
        failed = gather(site, names, facts_of(error).op)
        found = rules.find(Case(error, result.message, site, names, failed, lang))
        if found is not None:
            result.rule, result.picture, result.fixes = found.rule, found.picture, found.fixes[:3]
            result.notes += found.notes
        if failed.layer is not None and found is not None:
            kind = _layer_text(failed.layer)
            name = failed.layer_name or type_name(failed.layer)
            result.notes.append(say(lang, "layer", name=name, kind=kind))
    except Exception:  # a rule that does not fit: the line and its names are still told
        result.rule, result.picture, result.fixes, found = "", None, [], None
    if result.picture is None and not result.rule:
        result.names = _names_on(site, names)
    wanted, meant = _misspelt(error, site, names)
    if meant and repr(meant) not in result.message:
        result.notes.append(say(lang, "did you mean", name=meant))
    result.fixes = result.fixes or _respelt(site, wanted, meant)
    names.known.clear()


def _layer_text(layer: Any) -> str:
    """A layer's class and its sizes, where those are plain numbers."""
    fields = object.__getattribute__(layer, "__dict__")
    words = [
        f"{name}={fields[name]}"
        for name in ("in_features", "out_features", "in_channels", "out_channels", "num_embeddings")
        if type(fields.get(name)) is int
    ]
    return f"{type_name(layer)}({', '.join(words)})"


def _names_on(site: Site, names: Names) -> list[tuple[str, str]]:
    """The names of the failing part (else of the line), with their values."""
    tree: ast.AST | None = site.node
    if tree is None and site.lines:
        try:
            tree = ast.parse(site.lines[0].strip().rstrip(":"))
        except Exception:
            return []
    found: dict[str, str] = {}
    inner: set[ast.AST] = set()
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.Name, ast.Attribute)) and len(found) < _VALUES:
            value = value_of(node, names)
            if node in inner and value is UNKNOWN:
                continue
            if is_worth_telling(value):
                found.setdefault(ast.unparse(node), short_text(value))
        if isinstance(node, ast.Attribute):
            inner.add(node.value)
    return list(found.items())


def _misspelt(error: BaseException, site: Site, names: Names) -> tuple[str, str]:
    """A name that is not there, and the nearest that is; "" where there is no such name."""
    kind, facts = type(error), facts_of(error)
    known: Iterable[Any] = ()
    wanted: Any = ""
    if facts.reason == "unexpected keyword":
        return facts.more["name"], facts.more["meant"]
    if issubclass(kind, NameError):
        wanted, known = raw(error, "name", NameError), [*names.known, *vars(builtins)]
    elif kind is MissingName:
        return raw(error, "name", AttributeError), MissingName.meant(error)  # type: ignore[arg-type]
    elif issubclass(kind, AttributeError) and not missing_attribute_text(error):  # type: ignore[arg-type]
        wanted, owner = raw(error, "name", AttributeError), raw(error, "obj", AttributeError)
        known = keys_of(owner) if owner is not None else ()
    elif issubclass(kind, KeyError) and isinstance(site.node, ast.Subscript):
        table, key = value_of(site.node.value, names), raw(error, "args")
        wanted, known = (key[0], table) if type(table) is dict and key else ("", ())
    if type(wanted) is not str:
        return "", ""
    return wanted, nearest(wanted, [name for name in known if type(name) is str])


def _respelt(site: Site, wanted: str, meant: str) -> list[tuple[str, str]]:
    """The line with the name that was perhaps meant."""
    if site.node is None or not meant.isidentifier():
        return []
    for node in ast.walk(site.node):
        text = site.text_of(node)
        if isinstance(node, ast.keyword) and node.arg == wanted:
            new = meant + text[len(wanted) :]
        elif (isinstance(node, ast.Name) and node.id == wanted) or (
            isinstance(node, ast.Attribute) and node.attr == wanted
        ):
            new = text.removesuffix(wanted) + meant
        else:
            continue
        code = site.rewritten([(node, new)])
        return [(code, "")] if code else []
    return []


def _members(error: Any, lang: str) -> list[str]:
    """The exceptions of a group."""
    inside = raw(error, "exceptions", BaseExceptionGroup)
    lines = [say(lang, "group", count=len(inside))]
    lines += [f"  {type_name(each)}: {cut(message_of(each, lang), 200)}" for each in inside[:6]]
    return lines + (["  …"] if len(inside) > 6 else [])


def _chain(error: BaseException, lang: str) -> list[str]:
    """What the exception came from."""
    cause = raw(error, "__cause__")
    context = raw(error, "__context__")
    hidden = raw(error, "__suppress_context__")
    for key, other in (("cause", cause), ("context", None if hidden else context)):
        if other is not None and other is not error:
            text = f"{type_name(other)}: {cut(message_of(other, lang), 200)}"
            return [say(lang, key, error=text)]
    return []
