"""Marks in the editor: what stands beside lines, and under an error.

They may come to the browser before the text does that they are for: then they wait for it, until
other marks come.
"""

from __future__ import annotations

import json
from typing import Any

WAIT = 25  # ms from one look to the next
LOOKS = 80

_SCRIPT = """
const pane = getElement(%d), marks = %s;
let looks = %d;
const put = () => {
  if (!pane?.editor) return;
  const lines = pane.editor.state.doc.lines;
  if (marks.some((mark) => mark.line > lines) && looks-- > 0) {
    pane.lateMarks = setTimeout(put, %d);
    return;
  }
  pane.setDecorations(marks.filter((mark) => !(mark.line > lines)));
};
clearTimeout(pane?.lateMarks);
put();
"""


def script(editor: int, marks: list[dict[str, Any]]) -> str:
    """Puts marks into the editor of that number, in the place of those it has."""
    return _SCRIPT % (editor, json.dumps(marks), LOOKS, WAIT)
