"""What is typed while the page has no connection to the lab: the browser keeps it for its tab.

A lab may be ended and started again, or its machine be busy, while somebody types. The text goes
into the tab's own storage until there is a connection, and the page that loads then hands it over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Draft:
    """A text that the lab has not seen: of which file, and what it was typed on."""

    name: str
    base: str
    text: str


def read(kept: Any) -> Draft | None:
    """The draft in what the page answered; None for anything else.

    >>> read({"name": "a.py", "base": "x", "text": "xy"})
    Draft(name='a.py', base='x', text='xy')
    >>> read(None), read({"name": "a.py", "base": 1, "text": "xy"})
    (None, None)
    """
    if not isinstance(kept, dict):
        return None
    fields = [kept.get(key) for key in ("name", "base", "text")]
    name, base, text = fields
    if isinstance(name, str) and isinstance(base, str) and isinstance(text, str):
        return Draft(name, base, text)
    return None


def script(editor: int) -> str:
    """JavaScript that keeps drafts of the editor of that element number, and gives the last one."""
    return f"""
const CM = await import("nicegui-codemirror");
const component = getElement({editor});
const view = component.editor || await component.editorPromise;
const key = "antorcha-lab " + location.pathname;
const kept = sessionStorage.getItem(key);
sessionStorage.removeItem(key);
const forget = () => sessionStorage.removeItem(key);
window.socket.on("connect", () => setTimeout(forget, 5000));  // unless it leads to a reload
view.dispatch({{effects: CM.StateEffect.appendConfig.of(
  CM.EditorView.updateListener.of(update => {{
    if (!update.docChanged) return;
    if (window.socket.connected) return forget();
    const before = JSON.parse(sessionStorage.getItem(key) ?? "null");
    sessionStorage.setItem(key, JSON.stringify({{
      name: document.querySelector(".lab-file-active")?.textContent.trim(),
      base: before ? before.base : update.startState.doc.toString(),
      text: update.state.doc.toString(),
    }}));
  }})
)}});
return JSON.parse(kept);
"""


def whole_text(editor: int) -> str:
    """JavaScript that gives the text in the editor of that element number."""
    return f"""
const component = getElement({editor});
const view = component.editor || await component.editorPromise;
return view.state.doc.toString();
"""
