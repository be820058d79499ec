"""``antorcha lab``: from the command's options to the lab, to notebooks, or to one HTML file."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from antorcha.core.lazy import lazy

app = lazy("antorcha.lab.app", before_forks=False)
kernel = lazy("antorcha.lab.kernel", before_forks=False)
lessons = lazy("antorcha.lab.lesson", before_forks=False)
notebooks = lazy("antorcha.lab.export", before_forks=False)
single = lazy("antorcha.lab.single", before_forks=False)
vocabulary = lazy("antorcha.inspector.vocabulary", before_forks=False)
workplace = lazy("antorcha.lab.workplace", before_forks=False)
INSTALL = 'antorcha lab needs more packages: pip install "antorcha[lab]"'
HTML = "html"  # `--export html`: one file, not notebooks in a folder
NEEDED = ("nicegui", "jupyter_client", "ipykernel", "yaml", "nbformat", "matplotlib")


def main(
    what: str | None,
    *,
    lang: str,
    port: int,
    folder: Path | None,
    export: Path | None,
    seconds: float,
    memory: float,
    host: str,
    browser: bool,
) -> int:
    """Run the lab until it is interrupted, or write notebooks or a page; return the exit code."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"{INSTALL} (missing: {', '.join(missing)})", file=sys.stderr)
        return 1
    if export == Path(HTML):
        return _export_page(what, folder or Path.cwd(), lang or _language())
    if export is not None:
        return _export(export, lang)
    place = (folder or Path.home() / "antorcha-lab").expanduser().absolute()
    chosen = workplace.recall(place).get("lang")  # in the page, the last time
    options = app.CommandOptions(
        lang=lang or (chosen if chosen in [*vocabulary.LANGUAGES] else _language()),
        port=port,
        host=host,
        folder=place,
        limits=kernel.Limits(seconds=seconds, memory=int(memory * 2**30)),
        browser=browser,
    )
    try:
        code: int = app.serve(app.first_page(what, options))
    except app.CannotStart as error:
        print(f"antorcha lab: {error}", file=sys.stderr)
        return 1
    return code


def _export(folder: Path, lang: str) -> int:
    try:
        written = notebooks.export(folder, [lang] if lang else None)
    except (OSError, ValueError) as error:
        print(f"antorcha lab: {error}", file=sys.stderr)
        return 1
    for path in written:
        print(path)
    return 0


def _export_page(what: str | None, folder: Path, lang: str) -> int:
    """Write a lesson or a program as one HTML file."""
    try:
        if what is None:
            raise ValueError("--export html writes a lesson or a program: say which one")
        path = Path(what).expanduser().absolute()
        if path.suffix == ".py":
            written = single.export(folder, None, path, lang)
        else:
            own = path.suffix == ".md" and path.exists()
            lesson = lessons.load(path, lang) if own else lessons.find(what, lang)
            written = single.export(folder, lesson, None, lang)
    except (OSError, ValueError) as error:
        print(f"antorcha lab: {error}", file=sys.stderr)
        return 1
    print(written)
    return 0


def _language() -> str:
    """The language that the system is set to, if the lab has it."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name):
            return "es" if value.startswith("es") else "en"
    return "en"
