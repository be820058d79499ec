"""Which names are public, and the page that each is described on.

PyTorch's public names that antorcha has, and antorcha's own. What has several names (an op that is
``torch.relu`` and ``torch.nn.functional.relu``) is described once, at its home; the others are
aliases that lead there.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import antorcha
from antorcha import array_api, torch_alias
from antorcha.core.dtypes import dtype
from antorcha.data import digits
from antorcha.ops.kinds.pages import address_of
from antorcha.ops.kinds.record import NAMESPACES, REGISTRY, InPlace, Op
from antorcha.runtime.tensor import Tensor
from tools import list_pytorch_names
from tools.reference import families

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Entry:
    """What is described once: its name, its other names, the object, and its record if any."""

    name: str
    value: Any
    op: Op | None = None
    aliases: list[str] = field(default_factory=list)
    page: str = ""

    @property
    def space(self) -> str:
        """The namespace of the home."""
        return self.name.rpartition(".")[0]


@dataclass
class Section:
    """Some entries of a page, under a heading; the first section of a page may have none."""

    title: str
    entries: list[Entry]


@dataclass
class ReferencePage:
    """A page of the reference: `slug` is its file's name."""

    slug: str
    title: str
    space: str
    sections: list[Section]


class PublicNames:
    """Every public name: ``entries`` by each of their names, and for each namespace its names."""

    def __init__(self) -> None:
        torch_alias.install(hide=True)
        self.entries: dict[str, Entry] = {}
        self.spaces: dict[str, dict[str, Entry]] = {}
        self.constants: dict[str, dict[str, Any]] = {}
        self._by_identity: dict[int, Entry] = {}
        self._paths = _op_paths()
        self._kept: list[Any] = []  # an id names an object only while it lives
        for space in _in_order(_public_names()):
            self._add(*space)

    def _add(self, space: str, names: list[str]) -> None:
        owner = _resolve(space)
        shown = self.spaces.setdefault(space, {})
        for name in names:
            value = getattr(owner, name)
            if isinstance(value, types.ModuleType):
                continue
            if not callable(value) or isinstance(value, dtype):
                self.constants.setdefault(space, {})[name] = value
            else:
                shown[name] = self._entry(f"{space}.{name}", value)

    def _entry(self, full: str, value: Any) -> Entry:
        """The entry of a name, made where it is the first of its object."""
        op = value if isinstance(value, Op) else self._paths.get(full)
        subject = value if op is None else op
        found = self._by_identity.get(id(subject))
        if found is None:
            home = full if op is None else _home(op, full)
            found = self._by_identity[id(subject)] = Entry(home, subject, op)
            self._kept.append(subject)
            self.entries[home] = found
        if full != found.name and full not in found.aliases:
            found.aliases.append(full)
        self.entries[full] = found
        return found

    def pages(self) -> list[ReferencePage]:
        """The pages, in order; every entry is on one of them."""
        homes: dict[str, dict[str, list[Entry]]] = {}
        for entry in self._by_identity.values():
            space = entry.space
            shown_in = families.page_space(space)
            homes.setdefault(shown_in, {}).setdefault(space, []).append(entry)
        made = []
        for space in families.SPACES:
            made += list(_pages_of(space, homes.get(space, {}), self.constants))
        for page in made:
            for section in page.sections:
                for entry in section.entries:
                    entry.page = page.slug
        return made


def _pages_of(
    space: str, homes: dict[str, list[Entry]], constants: dict[str, dict[str, Any]]
) -> Iterator[ReferencePage]:
    """The page of a namespace, or one for each family of a large one."""
    own = homes.pop(space, [])
    rest = [Section(name, entries) for name, entries in sorted(homes.items())]
    slug = space.replace(".", "-")
    families_of = families.FAMILIES.get(space)
    if families_of is None:
        if own or rest or space in constants:
            yield ReferencePage(slug, space, space, [Section("", sorted(own, key=_order)), *rest])
        return
    grouped: dict[str, list[Entry]] = {title: [] for title in families_of}
    for entry in own:
        grouped[families.family(space, entry.op, entry.value)].append(entry)
    yield ReferencePage(slug, space, space, rest)
    for title, entries in grouped.items():
        if entries:
            at = families.slug(title)
            yield ReferencePage(
                f"{slug}-{at}", title, space, [Section("", sorted(entries, key=_order))]
            )


def _order(entry: Entry) -> tuple[str, str]:
    last = entry.name.rpartition(".")[2]
    return last.lower(), last


def _home(op: Op, full: str) -> str:
    """The name that PyTorch's page about the op has; the first one where it has none."""
    if op.namespace == "torch" and "nn.functional" in (address_of(op) or ""):
        return f"torch.{next(a for a in op.aliases if a.startswith('nn.functional.'))}"
    if op.namespace == "torch":
        return f"torch.{op.name}" if op.is_function else full
    return f"torch.{op.namespace}.{op.name.removeprefix(op.namespace + '_')}"


def _op_paths() -> dict[str, Op]:
    """Every public path of every record: ``torch.nn.functional.relu`` -> relu."""
    found: dict[str, Op] = {}
    for name, op in REGISTRY.items():
        if op.namespace != "torch":
            found[f"torch.{op.namespace}.{op.name.removeprefix(op.namespace + '_')}"] = op
        elif op.is_function:
            found[f"torch.{name}"] = op
        for alias in op.aliases:
            if "." in alias:
                found[f"torch.{alias}"] = op
    return found


def _public_names() -> dict[str, list[str]]:
    """The names of each namespace: PyTorch's that are there, then antorcha's own."""
    found = {}
    for owner, names in list_pytorch_names.listed_names().items():
        have = list_pytorch_names.names_there(owner, names)
        if have and owner not in list_pytorch_names.CLASSES:
            found[owner] = [name for name in have if _has_entry(owner, name)]
    for space, shown in NAMESPACES.items():
        names = found.setdefault(f"torch.{space}", [])
        new = set(shown).difference(names)
        names += sorted([n for n in new if n[0] != "_" and not isinstance(shown[n], InPlace)])
    listed = set(list_pytorch_names.listed_names()["torch"])
    own = {name: getattr(antorcha, name) for name in dir(antorcha)}
    found[families.OWN] = [
        name
        for name, value in own.items()
        if not name.startswith("_")
        and name not in listed
        and callable(value)
        and not isinstance(value, (types.ModuleType, dtype, InPlace))
        and str(getattr(value, "__module__", "")).startswith("antorcha")
    ]
    found["antorcha.array_api"] = sorted(array_api.__all__)
    found["antorcha.data"] = sorted(digits.__all__)
    return found


def _has_entry(owner: str, name: str) -> bool:
    """In-place forms stand with their ops, and Tensor has a page of its own."""
    value = getattr(_resolve(owner), name, None)
    return not isinstance(value, InPlace) and value is not Tensor


def _resolve(path: str) -> Any:
    """A module by the name that users know it by."""
    if path == families.OWN:
        return antorcha
    return importlib.import_module(path)


def _in_order(found: dict[str, list[str]]) -> Iterator[tuple[str, list[str]]]:
    """The namespaces that have pages first: what stands in several has its home there."""
    for space in families.SPACES:
        if space in found:
            yield space, found.pop(space)
    yield from sorted(found.items())
