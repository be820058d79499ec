"""One name of the reference, as text that Sphinx reads: a directive with HTML below it.

The signatures are Sphinx's, so that the index, the search and the contents of a page know the name.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from antorcha.ops.kinds.record import Composite, Op
from tools.reference import docstrings, mathml, plots, trials
from tools.reference.docstrings import Link
from tools.reference.families import home_file
from tools.reference.formulas import Formula, formula_of
from tools.reference.names import ROOT, Entry

_ADDRESS = re.compile(r"<[^<>]*>")
_DIFFERENCE = re.compile(
    r"^\| (?P<names>`[^|]+) \| (?P<what>[^|]+) \| (?P<why>[^|]+) \|$", re.MULTILINE
)
SOURCES = "../source"
"""Where the pages of source files are, seen from a page of the reference."""


class Entries:
    """Writes entries; notes the source files that they link to."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.files: set[str] = set()
        self.described: set[str] = set()

    def text(self, entry: Entry) -> str:
        """The directive of an entry."""
        self.described.add(entry.name)
        kind = "class" if isinstance(entry.value, type) else "function"
        heads = [f"{entry.name}{signature(entry.value, entry.op)}"]
        for alias in entry.aliases:
            if not _inner(alias) and alias not in self.described:
                self.described.add(alias)
                heads.append(f"{alias}{signature(entry.value, entry.op)}")
        parts = [directive(kind, heads, self._body(entry))]
        if kind == "class":
            parts += [_indented(text) for text in self._members(entry)]
        return "\n".join(parts)

    def _body(self, entry: Entry) -> str:
        doc, page = docstrings.split_page(inspect.getdoc(entry.value) or "")
        home = str(getattr(entry.value, "__module__", ""))
        parts = [docstrings.html(doc, self.link, entry.name, home)]
        if entry.op is not None:
            parts += self._of_record(entry.op, entry.name)
        parts += differences(entry.name, self.link)
        source = self._source(entry)
        if page:
            source.append(f'<a class="external" href="{page}">PyTorch</a>')
        if source:
            parts.append(f'<p class="ref-foot">{" · ".join(source)}</p>')
        return "\n".join(parts)

    def _of_record(self, op: Op, name: str) -> Iterator[str]:
        formula = formula_of(op)
        if formula is not None:
            yield _formulas(op, formula)
        yield from _tables(op)
        yield _forms(op, name)

    def _source(self, entry: Entry) -> list[str]:
        place = _place(entry)
        if place is None:
            return []
        file, line = place
        self.files.add(file)
        address = f"{SOURCES}/{file.removesuffix('.py')}.html#line-{line}"
        words = "record" if entry.op is not None else "source"
        shown = f"{file.removeprefix('src/antorcha/')}, line {line}"
        return [f'{words}: <a href="{address}">{shown}</a>']

    def _members(self, entry: Entry) -> Iterator[str]:
        """The class's own public methods and properties that say what they do."""
        for name, value in sorted(vars(entry.value).items()):
            doc = inspect.getdoc(value)
            if name.startswith("_") or name == "forward" or not doc or isinstance(value, type):
                continue
            if _inherited(entry.value, name, value):
                continue
            full = f"{entry.name}.{name}"
            is_call = inspect.isroutine(value) or isinstance(value, (staticmethod, classmethod))
            if not is_call and not isinstance(value, (property, functools.cached_property)):
                continue
            if full in self.described:
                continue
            self.described.add(full)
            text, _ = docstrings.split_page(doc)
            body = docstrings.html(text, self.link, full, entry.value.__module__)
            head = (
                f"{name}{signature(getattr(entry.value, name), None, skip=1)}" if is_call else name
            )
            yield directive("method" if is_call else "property", [head], body)


def directive(kind: str, heads: list[str], body: str) -> str:
    """A directive of Sphinx's domain for Python, with HTML for its text."""
    lines = [
        f".. py:{kind}:: {heads[0]}",
        *[f"{' ' * (len(kind) + 9)}{head}" for head in heads[1:]],
    ]
    return "\n".join([*lines, "", _indented(raw(body)), ""])


def raw(markup: str) -> str:
    """HTML in a page that Sphinx reads."""
    if not markup.strip():
        return ""
    return ".. raw:: html\n\n" + _indented(markup) + "\n"


def _indented(text: str) -> str:
    return "\n".join([f"   {line}" if line.strip() else "" for line in text.split("\n")])


def signature(value: Any, op: Op | None, skip: int = 0) -> str:
    """The parameters in parentheses; the first `skip` of a method are left out."""
    if op is not None:
        text = str(op.signature).removeprefix(op.signature.op)
        if op.has_out and "out" not in op.signature.names:
            text = text.removesuffix(")") + (", " if text != "()" else "")
            text += "out=None)" if "*, " in text else "*, out=None)"
    else:
        try:
            found = inspect.signature(value)
        except (TypeError, ValueError):
            return "(...)"
        params = [*found.parameters.values()]
        if skip and params and params[0].name in ("self", "cls"):
            params = params[1:]
        bare = [p.replace(annotation=p.empty) for p in params]
        text = str(found.replace(parameters=bare, return_annotation=found.empty))
    return _ADDRESS.sub("...", text).replace("\\", "\\\\").replace("torch.torch.", "torch.")


def _inner(alias: str) -> bool:
    """Is this alias one of a module that only PyTorch's own files import?"""
    return alias.count(".") > 1 and not alias.startswith(
        ("torch.nn.functional.", "torch.special.", "torch.linalg.", "torch.fft.", "torch.optim.")
    )


def _inherited(kind: type, name: str, value: Any) -> bool:
    """Is this a class's way of saying again what its base says?"""
    return any([
        inspect.getdoc(vars(base).get(name)) == inspect.getdoc(value)
        for base in kind.__mro__[1:]
        if vars(base).get(name) is not None
    ])  # fmt: skip


def _place(entry: Entry) -> tuple[str, int] | None:
    """The file, from the repository's root, and the line that say what the name is."""
    if entry.op is not None:
        file, line = home_file(entry.op)
        return f"src/antorcha/{file}", line
    value = inspect.unwrap(entry.value) if callable(entry.value) else entry.value
    try:
        path = Path(inspect.getsourcefile(value) or "").resolve()
        _, line = inspect.getsourcelines(value)
    except (TypeError, OSError):
        return None
    if not path.is_relative_to(ROOT):
        return None
    return path.relative_to(ROOT).as_posix(), max(line, 1)


def _formulas(op: Op, formula: Formula) -> str:
    """The function and its derivatives as formulas, beside its picture."""
    names, several = formula.input_names, len(formula.results) > 1
    shown = []
    for k, expr in enumerate(formula.results):
        left = mathml.letter(f"out_{k}" if several else "out")
        shown.append(mathml.shown(left, expr, names))
    slopes = [
        mathml.shown(_gradient_of(name), slope, names)
        for name, slope in zip(formula.names, formula.gradients, strict=True)
        if slope is not None
    ]
    head = f'<div class="ref-math"><p class="ref-head">Formula</p>{"".join(shown)}</div>'
    picture = plots.plot(op, formula)
    if picture:
        legend = '<span class="value">value</span>'
        legend += '<span class="slope">derivative</span>' if 'class="slope"' in picture else ""
        figure = f"<figure>{picture}<figcaption>{legend}</figcaption></figure>"
        head = f'<div class="ref-pair">{head}{figure}</div>'
    if not slopes:
        return head
    how = "written in the record" if formula.written else "derived from the formula"
    told = f'Gradient <span class="ref-kind">{how}; g is the gradient of out</span>'
    return f'{head}<div class="ref-math"><p class="ref-head">{told}</p>{"".join(slopes)}</div>'


def _gradient_of(name: str) -> str:
    letter = mathml.letter(name)
    return f"<msub><mi>g</mi>{letter}</msub>"


def _tables(op: Op) -> Iterator[str]:
    """What the op takes, gives and refuses, as it was tried."""
    rule = trials.dtype_rule(op)
    if rule:
        rows = [(" ".join([f"<code>{k}</code>" for k in kinds]), _result(to)) for kinds, to in rule]
        yield _table("Dtypes", ("given", "result"), rows)
    found = trials.shapes(op)
    if found:
        name = op.name.removeprefix(f"{op.namespace}_")
        calls = [(f"<code>{escape(f'{name}({call})')}</code>", f"<code>{to}</code>")
                 for call, to in found]  # fmt: skip
        yield _table("Shapes", ("call", "result"), calls)
    refused = trials.errors(op)
    if refused:
        name = op.name.removeprefix(f"{op.namespace}_")
        errors = [(f"<code>{escape(f'{name}({call})')}</code>",
                   f"<code>{kind}</code> {escape(text)}")
                  for call, kind, text in refused]  # fmt: skip
        yield _table("Errors", ("call", "raises"), errors)


def _result(to: str) -> str:
    plain = to in ("the same", trials.REFUSED)
    return f'<span class="ref-kind">{to}</span>' if plain else f"<code>{to}</code>"


def _table(title: str, heads: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    top = "".join([f"<th>{head}</th>" for head in heads])
    body = "".join([f"<tr><td>{a}</td><td>{b}</td></tr>" for a, b in rows])
    table = f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return f'<details class="ref-table"><summary>{title}</summary><div>{table}</div></details>'


def _forms(op: Op, name: str) -> str:
    """The other ways to call it, how it is computed, and whether it has a gradient."""
    forms = [f"<code>{name}</code>"]
    if op.is_method:
        forms.append(f"<code>Tensor.{op.name}</code>")
    if op.inplace is not None:
        forms.append(f"in place <code>Tensor.{op.name}_</code>")
    if op.has_out:
        forms.append("<code>out=</code>")
    kind = "Made of other ops, whose gradients it has"
    if not isinstance(op, Composite):
        has = op.rule is not None and op.differentiable
        kind = f"One op, {'with' if has else 'without'} a gradient"
    return f'<p class="ref-forms">Forms: {", ".join(forms)}. {kind}.</p>'


@functools.cache
def _differences() -> dict[str, tuple[str, str]]:
    """What docs/differences.md says of each name: what differs, and why."""
    page = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    found: dict[str, tuple[str, str]] = {}
    for row in _DIFFERENCE.finditer(page):
        for name in re.findall(r"`([\w.]+)`", row["names"]):
            found[name] = row["what"].strip(), row["why"].strip()
    return found


def differences(name: str, link: Link) -> Iterator[str]:
    """What differs from PyTorch: rows of differences.md that name this op, or a variant of it."""
    short = name.removeprefix("torch.")
    told = {row for said, row in _differences().items() if said == short or _variant(said, short)}
    for what, why in sorted(told):
        text = f"{docstrings.inline(what, link)}: {docstrings.inline(why, link)}"
        yield (
            '<div class="admonition note"><p class="admonition-title">Differs from PyTorch</p>'
            f'<p>{text}. <a href="../guides/differences.html">All differences</a></p></div>'
        )


def _variant(said: str, short: str) -> bool:
    """``linalg.lstsq.grad_oriented`` is about linalg.lstsq."""
    return said.startswith(f"{short}.")
