"""The smaller parts beside the inspector: loss curve, profiler, pictures."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from antorcha.inspector.forms import escaped
from antorcha.lab import curves
from antorcha.lab.panes.base import Pane, press, trusted
from antorcha.lab.panes.empty import EmptyPane
from antorcha.lab.panes.film import FilmPane

ROWS = 40  # of a profile's table, at most


class Loss(Pane):
    """The curve of every number that the program calls its loss."""

    watches = ("losses", "state")
    rests = True

    def build(self) -> None:
        self._empty = EmptyPane(self.view, "loss", "training")
        self._picture = trusted(classes="lab-curves")
        self._pin = ui.button(self.words("pin"), icon="push_pin", color=None)
        self._pin.props("no-caps dense outline").on_click(self.session.pin)
        self._at: tuple[str, int] | None = None  # where the film stands
        self._film = FilmPane(self.view, self._mark)
        self._film.build()

    def refresh(self) -> None:
        self._film.is_seen = self.is_seen
        self._film.refresh()  # first: it says where the mark stands
        super().refresh()

    def _mark(self, at: tuple[str, int] | None) -> None:
        if at == self._at:
            return
        self._at = at
        if not self._is_behind:  # (else the curves are to be drawn anyway)
            self.update()

    def update(self) -> None:
        every = {k: v for k, v in self.session.losses.items() if v["count"] > 1}
        losses = dict(list(every.items())[-len(curves.LINES) :])
        label = "; ".join(self._said(name, curve) for name, curve in losses.items())
        if len(every) > len(losses):
            label += "; " + self.words("more_curves", ", ".join([*every][: -len(losses)]))
        self._empty.show(not losses, "no_loss")
        words = self.words
        axis = words("loss_axis"), words("loss_axis_log")
        session = self.session
        grey = session.pinned or session.before
        grey = {name: curve for name, curve in grey.items() if curve["count"] > 1}
        if losses and grey and grey != every:
            label += "; " + words("grey_pinned" if session.pinned else "grey_before")
        picture = ""
        if losses:
            picture = curves.draw(losses, label, words("step"), axis, words.number, grey, self._at)
        self._pin.set_visibility(bool(losses))
        self._pin.set_text(words("unpin" if session.pinned else "pin"))
        self._picture.set_content(f'{picture}<p class="lab-caption">{escaped(label)}</p>')

    def _said(self, name: str, curve: dict[str, Any]) -> str:
        said = curves.loss_told(name, curve, self.words)
        gap = curves.first_gap(curve)
        return said if gap is None else said + self.words("loss_gap", gap)


class Profiler(Pane):
    """What every operation took, in a run that was measured."""

    watches = ("result", "state")
    rests = True

    def build(self) -> None:
        act = "profile_run", "speed", self._start
        self._empty = EmptyPane(self.view, "profiler", act=act)
        self._button = ui.button(
            self.words("profile_run"), icon="speed", color=None, on_click=press(self._start)
        ).props("no-caps dense outline")
        self._flame = trusted(classes="lab-flame")
        self._table = trusted(classes="lab-profile")

    async def _start(self) -> None:
        await self.session.run(watched="profile")

    def update(self) -> None:
        profile = self.session.result.get("profile") or {}
        self._button.set_enabled(not self.session.busy)
        self._button.set_visibility(bool(profile))
        self._empty.show(not profile, "no_profile")
        self._flame.set_content(profile.get("flame", {}).get(self.words.lang, ""))
        self._table.set_content(self._rows(profile.get("rows", [])))

    def _rows(self, rows: list[dict[str, Any]]) -> str:
        """The table, as HTML."""
        if not rows:
            return ""
        words = self.words
        whole = sum([row["own"] for row in rows]) or 1.0
        heads = ("op", "calls", "own_time", "share", "whole_time", "mean_time")
        head = "".join(
            [f'<th scope="col">{escaped(words(f"profile_{key}"))}</th>' for key in heads]
        )
        body = [
            f'<tr><th scope="row">{escaped(row["name"])}</th>'
            + "".join([
                f"<td>{escaped(text)}</td>"
                for text in (
                    str(row["calls"]), words.seconds(row["own"]),
                    words.number(f"{row['own'] / whole * 100:.1f} %"),
                    words.seconds(row["whole"]), words.seconds(row["whole"] / row["calls"]),
                )
            ]) + "</tr>"
            for row in rows[:ROWS]
        ]  # fmt: skip
        more = words("profile_more", len(rows) - ROWS) if len(rows) > ROWS else ""
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
            f'<p class="lab-caption">{escaped(" ".join([words("profile_told"), more]))}</p>'
        )


class Pictures(Pane):
    """The pictures that the program made with matplotlib."""

    watches = ("pictures", "state")

    def build(self) -> None:
        self._empty = EmptyPane(self.view, "pictures")
        self._all = trusted(classes="lab-pictures")
        self._count = len(self.session.pictures)

    def update(self) -> None:
        pictures = self.session.pictures
        self._empty.show(not pictures, "no_pictures")
        parts = []
        for number, picture in enumerate(pictures, 1):
            label = escaped(self.words("picture", number))
            source = f"data:{picture['kind']};base64,{picture['data']}"
            parts.append(f'<img alt="{label}" src="{escaped(source)}">')
        self._all.set_content("".join(parts))
        if len(pictures) > self._count == 0:
            self.view.show("pictures")
        self._count = len(pictures)
