"""The site: the pages of both languages, made by Sphinx with the theme Furo.

Nothing is fetched, neither while the site is built nor while it is read: fonts are the system's,
formulas are MathML, pictures are SVG, and the search runs in the browser, also from ``file://``.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

import antorcha
from antorcha.inspector import theme
from antorcha.lab.lesson import lessons
from tools.reference import landing, sources
from tools.reference.guides import GuideStage
from tools.reference.names import ROOT
from tools.reference.pages import Reference

HERE = Path(__file__).parent
LANGUAGES = ("en", "es")
PROMPTS = r">>> |\.\.\. |\$ "


@dataclass(frozen=True)
class ReferenceSite:
    """The folders of a build: the finished site, and what Sphinx reads and keeps."""

    out: Path
    work: Path

    def build(self) -> None:
        """All pages of both languages. Sphinx's warnings, a lost link, and an example that does
        not do what it shows raise."""
        for folder in (self.out, self.work):
            shutil.rmtree(folder, ignore_errors=True)
        reference = Reference(self.work / "en" / "reference")
        reference.write()
        files = set(reference.files)
        for lang in LANGUAGES:
            stage = GuideStage(lang, self.work / lang)
            stage.write()
            files |= stage.files
            landing.write(lang, self.work / lang, lessons(lang))
        pages = {lang: _pages(self.work / lang) for lang in LANGUAGES}
        for lang in LANGUAGES:
            self._run(lang, pages)
        sources.write(ROOT, files, self.out)

    def _run(self, lang: str, pages: dict[str, set[str]]) -> None:
        source, out = self.work / lang, self.out if lang == "en" else self.out / lang
        with (
            patch_docutils(),
            docutils_namespace(),
        ):  # a second site in this process is like a first
            app = Sphinx(
                str(source), None, str(out), str(self.work / "doctrees" / lang), "html",
                confoverrides=settings(lang), status=None, warning=sys.stderr, warningiserror=True,
            )  # fmt: skip
            app.connect("html-page-context", _Languages(lang, pages))
            app.build()
        for left in (".buildinfo", ".buildinfo.bak", "objects.inv"):
            (out / left).unlink(missing_ok=True)
        if app.statuscode:
            raise RuntimeError(f"Sphinx: the pages in {lang!r} have errors; they are told above")


def settings(lang: str) -> dict[str, Any]:
    """Sphinx's settings for the pages of a language."""
    words = landing.WORDS[lang]
    return {
        "project": "antorcha",
        "release": antorcha.__version__,
        "language": lang,
        "extensions": ["myst_parser", "sphinx_copybutton"],
        "html_theme": "furo",
        "html_title": "antorcha",
        "highlight_language": "text",
        "html_static_path": [str(HERE / "static")],
        "html_css_files": ["reference.css"],
        "templates_path": [str(HERE / "templates")],
        "html_sidebars": {"**": SIDEBAR},
        "html_theme_options": {
            "light_css_variables": _variables(theme.LIGHT),
            "dark_css_variables": _variables(theme.DARK),
        },
        "html_context": {"language_words": words["switch"]},
        "html_copy_source": False,
        "html_show_sourcelink": False,
        "html_show_copyright": False,
        "html_show_sphinx": False,
        "html_domain_indices": False,
        "maximum_signature_line_length": 88,
        "toc_object_entries": False,  # each page opens with a table of its names
        "myst_heading_anchors": 4,
        "suppress_warnings": ["myst.header"],
        "copybutton_prompt_text": PROMPTS,
        "copybutton_prompt_is_regexp": True,
        "smartquotes": False,
    }


SIDEBAR = [
    "sidebar/brand.html", "languages.html", "sidebar/search.html", "sidebar/scroll-start.html",
    "sidebar/navigation.html", "sidebar/scroll-end.html",
]  # fmt: skip


def _variables(colours: dict[str, str]) -> dict[str, str]:
    """The theme's colours: those of every picture that antorcha draws."""
    return {
        "color-brand-primary": colours["accent"],
        "color-brand-content": colours["accent"],
        "ref-value": colours["positive"],
        "ref-slope": colours["negative"],
        "font-stack": theme.SANS,
        "font-stack--monospace": theme.MONO,
    }


def _pages(folder: Path) -> set[str]:
    """The pages below a folder, as Sphinx calls them."""
    files = [path for path in folder.rglob("*") if path.suffix in (".md", ".rst")]
    return {path.relative_to(folder).with_suffix("").as_posix() for path in files}


class _Languages:
    """Tells each page where the same page is in the other language; its first page if nowhere."""

    def __init__(self, lang: str, pages: dict[str, set[str]]) -> None:
        self.lang, self.pages = lang, pages

    def __call__(
        self, app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
    ) -> None:
        other = next(lang for lang in LANGUAGES if lang != self.lang)
        same = page if page in self.pages[other] else "index"
        up = "../" * page.count("/")
        start = f"{up}{other}/" if other != "en" else f"{up}../"
        context["other_language"] = f"{start}{same}.html"
