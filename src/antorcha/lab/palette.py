"""The editor's code in the colours of the lesson's: one palette, of the page's theme."""

from __future__ import annotations

import json

# What is said of a token, and the colour of it; all other names and signs have the text's.
_COLOURS = {
    "accent": ["keyword", "operatorKeyword", "bool", "atom", "self"],
    "good": ["string", "special(string)", "escape", "regexp"],
    "negative": ["number", "standard(name)"],
    "muted": ["comment", "meta"],
}

# The bundle gives no tags by name, but a style of its own that holds those that we need.
_SCRIPT = """
const CM = await import("nicegui-codemirror");
const component = getElement(%d);
const view = component.editor || await component.editorPromise;
const tags = {}, colours = %s;
for (const spec of CM.oneDarkHighlightStyle.specs)
  for (const tag of [spec.tag].flat()) tags[String(tag)] = tag;
const specs = Object.entries(colours).map(([colour, names]) => ({
  tag: names.map(name => tags[name]).filter(Boolean), color: `var(--ant-${colour})`,
  ...(colour === "muted" ? {fontStyle: "italic"} : {}),
})).filter(spec => spec.tag.length);
const named = new Set(Object.values(colours).flat());
const rest = Object.keys(tags).filter(name => !named.has(name)).map(name => tags[name]);
specs.push({tag: rest, color: "var(--ant-fg)"});
const style = CM.syntaxHighlighting(CM.HighlightStyle.define(specs));
view.dispatch({effects: CM.StateEffect.appendConfig.of(CM.Prec.highest(style))});
"""


def script(editor: int) -> str:
    """JavaScript that gives the editor of that element number the colours."""
    return _SCRIPT % (editor, json.dumps(_COLOURS))
