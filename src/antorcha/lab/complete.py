"""Completion in the editor: the names of antorcha, with a line on what each is.

The editor completes Python's words and the program's own names by itself. Here is what follows a
dot: the names of a module after its usual short names, a tensor's methods after anything else.
"""

from __future__ import annotations

import inspect
import json
from functools import cache
from types import ModuleType
from typing import Any

import antorcha
from antorcha.runtime.tensor import Tensor

# module -> the names that programs use for it
_MODULES = {
    "": ("torch", "antorcha"),
    "nn": ("nn", "torch.nn"),
    "nn.functional": ("F", "nn.functional", "torch.nn.functional"),
    "nn.init": ("init", "nn.init", "torch.nn.init"),
    "optim": ("optim", "torch.optim"),
    "linalg": ("linalg", "torch.linalg"),
    "fft": ("torch.fft",),
    "utils.data": ("torch.utils.data",),
}


@cache
def table() -> dict[str, list[list[str]]]:
    """What may follow a module's name: for each option its label, its kind, and a line about it.

    The modules go by their paths in antorcha; the key ``"Tensor"`` is for tensors. The first call
    imports them all, which takes a second.
    """
    found: dict[str, list[list[str]]] = {}
    for path in _MODULES:
        module: Any = antorcha
        for part in path.split(".") if path else ():
            module = getattr(module, part, None)
        if module is not None:  # a module that antorcha does not have yet
            found[path] = _options(module)
    found["Tensor"] = _options(Tensor)
    return found


def _options(owner: Any) -> list[list[str]]:
    options = []
    for name in dir(owner):
        if name.startswith("_"):
            continue
        try:
            value = getattr(owner, name)
        except (AttributeError, NotImplementedError):
            continue
        options.append([name, _kind(value), _line(value)])
    return options


def _kind(value: Any) -> str:
    if isinstance(value, ModuleType):
        return "namespace"
    if isinstance(value, type):
        return "class"
    return "function" if callable(value) else "property"


def _line(value: Any) -> str:
    """The first sentence of a docstring that is the object's own."""
    if not (callable(value) or isinstance(value, (ModuleType, property))):
        return ""
    text = inspect.getdoc(value) or ""
    return " ".join(text.split("\n\n")[0].split())[:120]


def script(editor: int, label: str) -> str:
    """JavaScript that adds this to the editor of that element number, and names it for those who
    hear the page. (The editor's own completion has no other door.)"""
    paths = {name: path for path, names in _MODULES.items() for name in names if path in table()}
    return f"""
const CM = await import("nicegui-codemirror");
const component = getElement({editor});
const view = component.editor || await component.editorPromise;
const table = {json.dumps(table())};
const paths = {json.dumps(paths)};
const option = ([label, type, info]) => ({{label, type, info: info || undefined}});
function source(context) {{
  const found = context.matchBefore(/[\\w.]*\\.\\w*/);
  if (!found) return null;
  const dot = found.text.lastIndexOf(".");
  const before = found.text.slice(0, dot);
  if (/^\\d*$/.test(before)) return null;
  const options = table[paths[before] ?? "Tensor"].map(option);
  return {{from: found.from + dot + 1, options, validFor: /^\\w*$/}};
}}
view.dispatch({{effects: CM.StateEffect.appendConfig.of([
  CM.EditorState.languageData.of(() => [{{autocomplete: source}}]),
  CM.EditorView.contentAttributes.of({{"aria-label": {json.dumps(label)}}}),
])}});
"""
