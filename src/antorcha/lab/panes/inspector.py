"""The live inspector: every tensor that the program's names hold, and one of them opened; above
them, what went wrong when something did.

The opened tensor stands right below its row; where the pane is wide, beside the rows.
"""

from __future__ import annotations

import time
from typing import Any

from nicegui import background_tasks, ui

from antorcha.inspector.forms import escaped
from antorcha.lab.child_names import MANY
from antorcha.lab.panes.applied import AppliedPane
from antorcha.lab.panes.base import Pane, View, trusted
from antorcha.lab.panes.empty import EmptyPane
from antorcha.lab.words import LabWords

# The rows are text of one element, so a click says which row it was in. A key on a row's button
# clicks it.
WHICH = """(event) => {
  const row = event.target.closest("[data-row]");
  if (row) emit(row.dataset.row);
}"""
# A new table takes the place of the one whose row had the focus: the focus goes with it.
_KEEP_FOCUS = """
const table = getHtmlElement(%d);
let row = null;
table.addEventListener("focusin", event => row = event.target.closest("[data-row]")?.dataset.row);
document.addEventListener("focusin", event => { if (!table.contains(event.target)) row = null; });
new MutationObserver(() => {
  if (row !== null && document.activeElement === document.body)
    table.querySelector(`[data-row="${row}"]`)?.focus({preventScroll: true});
}).observe(table, {childList: true, subtree: true});
"""
# Once the opened tensor is there, its row goes to the top of the pane, and it can be seen.
_REVEAL = """
let tries = 40;
function reveal() {
  const table = getHtmlElement(%d), row = table.querySelector(".lab-row-open");
  const detail = table.querySelector(".lab-detail");
  if (!row || !detail.childElementCount) { if (tries--) setTimeout(reveal, 50); return; }
  const panel = table.closest(".lab-panel");
  const top = row.getBoundingClientRect().top - panel.getBoundingClientRect().top;
  const beside = detail.getBoundingClientRect().left >= row.getBoundingClientRect().right;
  if (!beside || top < 0) panel.scrollTop += top - 8;
  detail.scrollTop = 0;
}
reveal();
"""
PACE = 0.7  # seconds between two looks at an opened tensor while the program runs


class Inspector(Pane):
    """Rows of tensors, the opened one, and the explanation of the last error."""

    watches = ("rows", "result", "state", "fixes")

    def __init__(self, view: View) -> None:
        super().__init__(view)
        self._open: str | None = None
        self._names: list[str] = []  # of the rows, as they are shown
        self._next_look = 0.0
        self._looking = False
        self._explained: tuple[str | None, list[bool]] = None, []  # what is shown of the error
        self._applied = AppliedPane(view)

    def build(self) -> None:
        self._applied.build()
        self._why = trusted(classes="lab-why")
        self._why.on("click", self._apply, js_handler=WHICH)
        self._why.set_visibility(False)
        self._live = ui.label(self.words("live")).classes("lab-live")
        self._empty = EmptyPane(self.view, "inspector", "creating")
        with ui.element("div").classes("lab-inspect") as self._table:
            self._upper = trusted(classes="lab-rows")
            self._detail = trusted(classes="lab-detail")
            self._lower = trusted(classes="lab-rows lab-rows-lower")
        self._table.on("click", self._pressed, js_handler=WHICH)
        ui.timer(0.1, lambda: ui.run_javascript(_KEEP_FOCUS % self._table.id), once=True)
        self._more = ui.label(self.words("many_tensors", MANY)).classes("lab-empty")

    def refresh(self) -> None:
        super().refresh()
        self._applied.refresh()
        if self._explained[1]:  # fixes are offered: for one text
            self._explain()
        if self._open is not None and self.session.state == "running":
            self._look()

    def update(self) -> None:
        session = self.session
        ran = bool(session.result) or session.busy
        self._live.set_visibility(session.state == "running")
        is_empty = not (session.rows or session.busy or session.result.get("explanation"))
        self._empty.show(is_empty, "none_left" if ran else "no_tensors")
        self._more.set_visibility(len(session.rows) >= MANY)
        if not session.busy and self._open not in [row["name"] for row in session.rows]:
            self._open = None
            self._detail.set_content("")
        self._show_rows()
        self._explain()
        if self._open is not None and not session.busy:
            self._next_look = 0.0
            self._look()

    # ---- the rows -------------------------------------------------------------------------------

    def _show_rows(self) -> None:
        """Show the rows: up to the opened one, and, below what is inside of it, the others."""
        rows = self.session.rows
        self._names = [row["name"] for row in rows]
        result = [
            row_html(self.words, number, row, opened=row["name"] == self._open)
            for number, row in enumerate(rows)
        ]
        upper = self._names.index(self._open) + 1 if self._open in self._names else len(result)
        self._upper.set_content("".join(result[:upper]))
        self._lower.set_content("".join(result[upper:]))
        self._table.classes(
            add="lab-inspect-open" if self._open else "",
            remove="" if self._open else "lab-inspect-open",
        )

    def _pressed(self, event: Any) -> None:
        number = int(event.args) if str(event.args).isdecimal() else len(self._names)
        if number >= len(self._names):
            return
        name = self._names[number]
        self._open = None if name == self._open else name
        self._next_look = 0.0
        self._detail.set_content("")
        self._show_rows()
        if self._open is not None:
            self._look(pressed=True)
            ui.run_javascript(_REVEAL % self._table.id)

    # ---- the opened one -------------------------------------------------------------------------

    def _look(self, *, pressed: bool = False) -> None:
        if not self._looking and time.monotonic() >= self._next_look:
            self._looking = True
            background_tasks.create(self._show(self._open or "", pressed))

    async def _show(self, name: str, pressed: bool) -> None:
        look = self.session.child.look
        try:
            answer = await look("inspect", name, self.words.lang, pressed=pressed)
        finally:
            self._looking = False
        if name != self._open:  # another one was pressed meanwhile
            self._next_look = 0.0
            if self._open is not None:
                self._look(pressed=True)
            return
        self._next_look = time.monotonic() + max(PACE, answer.pop("wait", 0.0))
        if answer:
            self._detail.set_content(told(answer, self.words, name))

    # ---- errors ---------------------------------------------------------------------------------

    def _explain(self) -> None:
        """Show what went wrong: in a sentence, what mends it, and the whole of it below."""
        session, words = self.session, self.words
        result = session.result
        explanation = result.get("explanation", {}).get(words.lang)
        offered = session.applying.offered
        is_new = explanation != self._explained[0]
        if (explanation, offered) == self._explained:
            return
        self._explained = explanation, offered
        self._why.set_visibility(explanation is not None)
        if explanation is not None:
            headline = words("explanation", words.headline(result.get("kinds", [])))
            fixes = "".join([
                self._fix(number, *fix, offered=offered[number : number + 1] == [True])
                for number, fix in enumerate(result.get("fixes", []))
            ])  # fmt: skip
            self._why.set_content(f"<h3>{escaped(headline)}</h3>{fixes}{explanation}")
        if explanation is not None and is_new:
            self.view.show("inspector")
            ui.run_javascript(f"getHtmlElement({self._why.id}).parentElement.scrollTop = 0")

    def _apply(self, event: Any) -> None:
        if str(event.args).isdecimal():
            background_tasks.create(self.session.applying.apply(int(event.args)))

    def _fix(self, number: int, code: str, gives: str, *, offered: bool) -> str:
        words = self.words
        said = words("fix_gives" if gives else "fix", gives) if not number else (
            words("fix_or_gives" if gives else "fix_or", gives)
        )  # fmt: skip
        key = (
            f'<button type="button" class="lab-apply" data-row="{number}" '
            f'aria-label="{escaped(words("apply_code", code))}">{escaped(words("apply"))}</button>'
        )
        return (
            f'<p class="lab-fix"><b>{escaped(said)}</b><code>{escaped(code)}</code>'
            f"{key if offered else ''}</p>"
        )


def row_html(words: LabWords, number: int, row: dict[str, Any], *, opened: bool) -> str:
    """A tensor's row, as HTML: a button that opens it."""
    name = escaped(row["name"])
    shape = escaped("(" + ", ".join([str(n) for n in row["shape"]])
                   + (",)" if len(row["shape"]) == 1 else ")"))  # fmt: skip
    facts = " · ".join([escaped(row["dtype"]), escaped(row["device"])])
    if row["grad"]:
        facts += " · grad"
    return (
        f'<button type="button" class="lab-row{" lab-row-open" if opened else ""}" '
        f'data-row="{number}" aria-expanded="{str(opened).lower()}" '
        f'aria-label="{escaped(words("open_tensor", row["name"]))}: {shape} {facts}">'
        f'<b>{name}</b><span class="lab-shape">{shape}</span>'
        f'<span class="lab-facts">{facts}</span>'
        f"<code>{escaped(row['values'])}</code></button>"
    )


def told(answer: dict[str, Any], words: Any, name: str) -> str:
    """What the child answered when it was asked to show a tensor."""
    if "html" in answer:
        return str(answer["html"])
    if answer.get("gone"):
        return f'<p class="lab-empty">{escaped(words("gone", name))}</p>'
    problem = answer["problem"] or words("no_answer")
    return f'<p class="lab-empty">{escaped(words("cannot_show", problem))}</p>'
