"""The page of PyTorch's documentation about an op, which the op's docstring names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from antorcha.ops.kinds.record import Op

_DOCS = "https://docs.pytorch.org/docs/stable"


def address_of(op: Op) -> str | None:
    """Where PyTorch writes about the op; None of one that only other ops call."""
    if op.namespace == "special":  # one page for all
        return f"{_DOCS}/special.html#torch.special.{op.name}"
    name = _documented_name(op)
    return name and f"{_DOCS}/generated/torch.{name}.html"


def _documented_name(op: Op) -> str | None:
    """The name that the op's page has, without ``torch.``."""
    if op.namespace != "torch":
        return f"{op.namespace}.{op.name.removeprefix(op.namespace + '_')}"
    for alias in op.aliases:
        if alias.startswith("nn.functional."):
            return alias
    if op.name.startswith("_"):
        return None
    if op.is_function:
        return op.name
    return f"Tensor.{op.name}" if op.is_method else None


def naming_page(doc: str | None, address: str | None) -> str | None:
    """The docstring with a line for the page, at the end of the text before the example. One that
    names a page of PyTorch's by itself, or has no example, stays as it is."""
    if doc is None or address is None or ">>>" not in doc or _DOCS in doc:
        return doc
    text, _, example = doc.partition(">>>")
    indent = text.rpartition("\n")[2]
    text = text.rstrip()
    last = text.rpartition("\n")[2]
    in_list = last.startswith(indent + " ")  # of arguments
    gap = "\n" if "\n\n" in text and not in_list else "\n\n"
    return f"{text}{gap}{indent}See {address}.\n\n{indent}>>>{example}"


def name_pages(space: str, names: dict[str, Any]) -> None:
    """Has the classes of a public namespace, ``torch.nn``, name their pages."""
    for name, value in names.items():
        if isinstance(value, type) and value.__module__.startswith("antorcha"):
            value.__doc__ = naming_page(value.__doc__, f"{_DOCS}/generated/{space}.{name}.html")
