"""The fix that was applied, and the button that takes it back."""

from __future__ import annotations

from nicegui import ui

from antorcha.lab.panes.base import Pane, press

# The button that was pressed is about to go: the focus goes to the one that takes back.
_FOCUS = """
const now = document.activeElement;
if (now === document.body || now.closest(".lab-why"))
  getHtmlElement(%d)?.focus({preventScroll: true});
"""


class AppliedPane(Pane):
    """A line above the explanations; empty where nothing was applied to the text as it is."""

    watches = ("fixes", "text", "result")

    def build(self) -> None:
        with ui.element("p").classes("lab-applied").props('aria-live="polite"') as self._line:
            ui.label(self.words("applied"))
            self._code = ui.element("code")
            with self._code:
                self._text = ui.label()
            take_back = press(self.session.applying.take_back)
            self._key = ui.button(self.words("undo"), icon="undo", color=None, on_click=take_back)
            self._key.props("no-caps dense outline").classes("lab-undo")
        self._line.set_visibility(False)

    def update(self) -> None:
        applied = self.session.applying.applied
        is_new = applied is not None and not self._line.visible
        self._line.set_visibility(applied is not None)
        self._text.set_text(applied.code if applied else "")
        if is_new:
            ui.run_javascript(_FOCUS % self._key.id)
