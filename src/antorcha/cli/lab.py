"""``antorcha lab``: from the command's options to the lab, to notebooks, or to one HTML file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

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
    from importlib.util import find_spec

    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        print(f"{INSTALL} (missing: {', '.join(missing)})", file=sys.stderr)
        return 1
    if export == Path(HTML):
        return _export_page(what, folder or Path.cwd(), lang or _language())
    if export is not None:
        return _export(export, lang)

    from antorcha.inspector.vocabulary import LANGUAGES
    from antorcha.lab import app
    from antorcha.lab.kernel import Limits
    from antorcha.lab.workplace import recall

    place = (folder or Path.home() / "antorcha-lab").expanduser().absolute()
    chosen = recall(place).get("lang")  # in the page, the last time
    options = app.CommandOptions(
        lang=lang or (chosen if chosen in [*LANGUAGES] else _language()),
        port=port,
        host=host,
        folder=place,
        limits=Limits(seconds=seconds, memory=int(memory * 2**30)),
        browser=browser,
    )
    try:
        return app.serve(app.first_page(what, options))
    except app.CannotStart as error:
        print(f"antorcha lab: {error}", file=sys.stderr)
        return 1


def _export(folder: Path, lang: str) -> int:
    from antorcha.lab.export import export

    try:
        written = export(folder, [lang] if lang else None)
    except (OSError, ValueError) as error:
        print(f"antorcha lab: {error}", file=sys.stderr)
        return 1
    for path in written:
        print(path)
    return 0


def _export_page(what: str | None, folder: Path, lang: str) -> int:
    """Write a lesson or a program as one HTML file."""
    from antorcha.lab.lesson import find, load
    from antorcha.lab.single import export

    try:
        if what is None:
            raise ValueError("--export html writes a lesson or a program: say which one")
        path = Path(what).expanduser().absolute()
        if path.suffix == ".py":
            written = export(folder, None, path, lang)
        else:
            own = path.suffix == ".md" and path.exists()
            lesson = load(path, lang) if own else find(what, lang)
            written = export(folder, lesson, None, lang)
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
