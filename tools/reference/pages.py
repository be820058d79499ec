"""The pages of the reference: a table of every name of a namespace, and the entries."""

from __future__ import annotations

import importlib
import inspect
import types
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from antorcha.ops.kinds.record import REGISTRY, Op
from antorcha.runtime.tensor import Tensor
from tools.reference import docstrings, families
from tools.reference.entries import Entries, directive, raw, signature
from tools.reference.names import Entry, PublicNames, ReferencePage


class Reference:
    """Writes the reference below a folder; ``files`` are the sources that its pages link to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names = PublicNames()
        self.pages = self.names.pages()
        self.entries = Entries(self.address)
        self.methods = tensor_methods()

    @property
    def files(self) -> set[str]:
        return self.entries.files

    def address(self, name: str) -> str | None:
        """Where a name is described, seen from a page of the reference."""
        for full in (name, f"torch.{name}" if name.startswith(("nn.", "linalg.")) else name):
            entry = self.names.entries.get(full)
            if entry is not None and full.startswith(("torch.", "antorcha.")):
                return f"{entry.page}.html#{entry.name}"
        if name in ("Tensor", "torch.Tensor"):
            return "torch-Tensor.html#torch.Tensor"
        method = name.removeprefix("torch.").removeprefix("Tensor.")
        if name.removeprefix("torch.").startswith("Tensor.") and method in self.methods:
            return f"torch-Tensor.html#torch.Tensor.{method}"
        return None

    def write(self) -> None:
        """All pages."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for page in self.pages:
            self._write(page.slug, self._page(page))
        self._write("torch-Tensor", self._tensor_page())
        self._write("names", self._all_names())
        self._write("index", self._index())

    def _write(self, slug: str, lines: Iterator[str]) -> None:
        text = "\n".join(lines) + "\n"
        (self.folder / f"{slug}.rst").write_text(text, encoding="utf-8")

    def _page(self, page: ReferencePage) -> Iterator[str]:
        is_first = page.slug == page.space.replace(".", "-")
        title = page.title if is_first else f"{page.space}: {page.title[0].lower()}{page.title[1:]}"
        yield heading(title, "=")
        parts = [p for p in self.pages if p.space == page.space and p is not page]
        if is_first:
            yield families.SPACES[page.space] + "\n"
            yield from self._introduction(page.space)
        if is_first and parts:
            yield toctree([f"{part.title} <{part.slug}>" for part in parts])
            for part in parts:
                yield heading(part.title, "-")
                yield self._table(part.sections[0].entries)
        elif page.sections and page.sections[0].entries and not page.sections[0].title:
            yield self._table(page.sections[0].entries)
        if is_first:
            yield from self._elsewhere(page)
        for section in page.sections:
            if section.title:
                yield heading(section.title, "-")
            for entry in section.entries:
                yield self.entries.text(entry)
        if is_first:
            yield from self._constants(page.space)

    def _introduction(self, space: str) -> Iterator[str]:
        """What the module says of itself beyond its first line."""
        if space in ("torch", "torch.others", families.OWN):
            return
        doc = inspect.getdoc(importlib.import_module(space)) or ""
        text, _ = docstrings.split_page(doc)
        yield raw(docstrings.html(text, self.address, space, space))

    def _table(self, entries: list[Entry]) -> str:
        rows = [
            (f"{entry.page}.html#{entry.name}", entry.name, inspect.getdoc(entry.value))
            for entry in entries
        ]
        return names_table(rows, self.address)

    def _elsewhere(self, page: ReferencePage) -> Iterator[str]:
        """The names of the namespace that are described under another name."""
        shown = self.names.spaces.get(page.space, {})
        rows = [
            (
                f"{entry.page}.html#{entry.name}",
                f"{page.space}.{name}",
                f"The same as ``{entry.name}``.",
            )
            for name, entry in sorted(shown.items())
            if entry.name != f"{page.space}.{name}" and entry.page
        ]
        if rows:
            yield heading("Other names", "-")
            yield names_table(rows, self.address)

    def _constants(self, space: str) -> Iterator[str]:
        found = {
            owner: values
            for owner, values in self.names.constants.items()
            if families.page_space(owner) == space
        }
        if not found:
            return
        yield heading("Values", "-")
        rows = [
            f"<tr><td><code>{owner}.{name}</code></td><td>{_kind(value)}</td></tr>"
            for owner, values in sorted(found.items())
            for name, value in sorted(values.items())
            if not isinstance(value, types.ModuleType)
        ]
        yield raw(f'<table class="ref-names"><tbody>{"".join(rows)}</tbody></table>')

    # ----------------------------------------------------------------------------- tensor, indexes
    def _tensor_page(self) -> Iterator[str]:
        yield heading("torch.Tensor", "=")
        yield families.SPACES["torch.Tensor"] + "\n"
        links = [f'<a href="#torch.Tensor.{name}">{name}</a>' for name in self.methods]
        yield raw(f'<p class="ref-cloud">{" ".join(links)}</p>')
        doc, _ = docstrings.split_page(inspect.getdoc(Tensor) or "")
        yield directive("class", ["torch.Tensor"], docstrings.html(doc, self.address, "Tensor"))
        for name, value in self.methods.items():
            yield self._method(name, value)

    def _method(self, name: str, value: Any) -> str:
        full = f"torch.Tensor.{name}"
        self.entries.described.add(full)
        if isinstance(value, property) or not callable(value):
            body = docstrings.html(inspect.getdoc(value), self.address, full)
            return directive("property", [full], body)
        op, plain = REGISTRY.get(name), REGISTRY.get(name.removesuffix("_"))
        if op is not None and op.is_method is True:
            return directive("method", [full + _bound(op)], self._as_function(op, full))
        if name.endswith("_") and plain is not None and plain.inplace is not None:
            form = docstrings.code(f"torch.Tensor.{plain.name}", self.address)
            return directive("method", [full + _bound(plain)], f"<p>In-place form of {form}.</p>")
        head = full + signature(value, None, skip=1)
        return directive("method", [head], self._documented(value, full))

    def _as_function(self, op: Op, full: str) -> str:
        """What a method says that is an op: the op's first sentence, and where the rest is."""
        entry = self.names.entries.get(f"torch.{op.name}")
        if entry is None or entry.op is not op:
            entry = next((e for e in self.names.entries.values() if e.op is op), None)
        if entry is None:
            return self._documented(op, full)
        said = docstrings.inline(docstrings.summary(op.__doc__), self.address)
        href = f"{entry.page}.html#{entry.name}"
        return f'<p>{said} See <a href="{href}"><code>{entry.name}</code></a>.</p>'

    def _documented(self, value: Any, full: str) -> str:
        doc, page = docstrings.split_page(inspect.getdoc(value) or "")
        text = docstrings.html(doc, self.address, full)
        foot = (
            f'<p class="ref-foot"><a class="external" href="{page}">PyTorch</a></p>' if page else ""
        )
        return text + foot

    def _all_names(self) -> Iterator[str]:
        """An index of all names, which can be narrowed by typing."""
        yield heading("All names", "=")
        found: dict[str, tuple[str, str]] = {}
        for name, entry in self.names.entries.items():
            if entry.page:
                said = docstrings.summary(inspect.getdoc(entry.value))
                found[name] = f"{entry.page}.html#{entry.name}", said
        for name in self.methods:
            found[f"torch.Tensor.{name}"] = f"torch-Tensor.html#torch.Tensor.{name}", ""
        rows = sorted(
            [(name, *told) for name, told in found.items()],
            key=lambda row: (not row[0].startswith("torch."), row[0].lower()),
        )
        listed = "".join([
            f'<tr><td><a href="{href}"><code>{name}</code></a></td>'
            f"<td>{docstrings.inline(said, lambda _: None)}</td></tr>"
            for name, href, said in rows
        ])  # fmt: skip
        yield raw(
            f'<p>{len(rows)} names. <label>Narrow them: <input id="ref-filter" type="search" '
            'placeholder="softmax" autocomplete="off"></label></p>'
            f'<table class="ref-names" id="ref-all"><tbody>{listed}</tbody></table>{FILTER}'
        )

    def _index(self) -> Iterator[str]:
        yield heading("Reference", "=")
        yield (
            "Every public name: signature, formula, gradient, dtypes, shapes, errors, and an "
            "example that was run while these pages were made. What a page says of an op is read "
            "from its record.\n"
        )
        slugs = [space.replace(".", "-") for space in families.SPACES]
        rows = [(f"{space.replace('.', '-')}.html", space, said)
                for space, said in families.SPACES.items()]  # fmt: skip
        first = ("names.html", "All names", "Every name, to be narrowed by typing.")
        yield names_table([first, *rows], self.address)
        yield toctree(["names", *slugs])


FILTER = """<script>
document.getElementById("ref-filter").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\\s+/);
  for (const row of document.getElementById("ref-all").rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
});
</script>"""


def tensor_methods() -> dict[str, Any]:
    """The public attributes of Tensor, by name; special methods are Python's own."""
    found = {}
    for name in sorted(dir(Tensor)):
        if not name.startswith("_"):
            value = inspect.getattr_static(Tensor, name)
            found[name] = getattr(value, "__wrapped__", value)
    return found


def _bound(op: Op) -> str:
    """An op's parameters as those of a method."""
    text = signature(None, op).replace(", *, out=None)", ")").replace(", out=None)", ")")
    first = op.signature.names[0]
    return text.replace(f"({first}, ", "(", 1).replace(f"({first})", "()", 1)


def heading(title: str, mark: str) -> str:
    """A heading of a page."""
    return f"{title}\n{mark * len(title)}\n"


def toctree(slugs: list[str]) -> str:
    """The pages below one."""
    listed = "\n".join([f"   {slug}" for slug in slugs])
    return f".. toctree::\n   :hidden:\n   :maxdepth: 1\n\n{listed}\n"


def names_table(rows: list[tuple[str, str, str | None]], link: docstrings.Link) -> str:
    """Names with their first sentences: rows of address, name and docstring."""
    listed = "".join([
        f'<tr><td><a href="{href}"><code>{escape(name)}</code></a></td>'
        f"<td>{docstrings.inline(docstrings.summary(doc), link)}</td></tr>"
        for href, name, doc in rows
    ])  # fmt: skip
    return raw(f'<table class="ref-names"><tbody>{listed}</tbody></table>')


def _kind(value: Any) -> str:
    """What sort of value a constant is."""
    shown = repr(value) if isinstance(value, (bool, float)) else ""
    kind = type(value).__name__
    return f"<code>{escape(shown)}</code>" if shown else escape(kind)
