"""The first page of each language, and the lists of pages that the side bar shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from antorcha.lab.lesson import Lesson
from tools.reference import docstrings
from tools.reference.entries import raw
from tools.reference.guides import INSIDE, USER_GUIDES
from tools.reference.pages import heading

EXAMPLE = """\
>>> import antorcha as torch
>>> x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> y = (x**2).sum()
>>> y.backward()
>>> x.grad
tensor([2., 4., 6.])
"""

WORDS: dict[str, dict[str, str]] = {
    "en": {
        "switch": "Leer en español",
        "title": "antorcha",
        "lead": "PyTorch's programming model in Python that you can read, compiled to machine code "
        "while it runs.",
        "guides": "Guides", "course": "Course", "reference": "Reference", "examples": "Examples",
        "inside": "Inside", "about": "About", "readme": "Read me", "all_guides": "All guides",
        "course_text": "Each lesson with its cells, what they print, three questions and a "
        "challenge. `antorcha lab` shows the same lessons as a page on which the code runs.",
    },
    "es": {
        "switch": "Read in English",
        "title": "antorcha",
        "lead": "El modelo de programación de PyTorch en Python que se puede leer, compilado a "
        "código máquina mientras se ejecuta.",
        "guides": "Guías", "course": "Curso", "reference": "Referencia", "examples": "Ejemplos",
        "inside": "Por dentro", "about": "Acerca de", "readme": "Presentación",
        "all_guides": "Todas las guías",
        "course_text": "Cada lección con sus celdas, lo que imprimen, tres preguntas y un reto. "
        "`antorcha lab` muestra las mismas lecciones en una página en la que el código se ejecuta.",
    },
}  # fmt: skip
# Where a card leads, its title, and its text; those of "es" name pages in English as `../`.
CARDS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "en": (
        ("guides/tensors.html", "New to tensors", "Storage, strides, views: what a tensor is."),
        ("guides/from_pytorch.html", "From PyTorch", "Run your program as it is; what differs."),
        ("course/index.html", "The course", "23 lessons, from a grid of numbers to attention."),
        ("reference/index.html", "Reference", "Every name, with formulas and executed examples."),
        ("guides/kernels.html", "Your own kernels", "A fused, differentiable op in three lines."),
        ("guides/architecture.html", "How it works", "From a line of Python to machine code."),
    ),
    "es": (
        ("guides/tensors.html", "Qué es un tensor", "Almacenamiento, pasos y vistas."),
        ("guides/from_pytorch.html", "Desde PyTorch", "Tu programa, tal cual; qué cambia."),
        (
            "course/index.html",
            "El curso",
            "23 lecciones, de una cuadrícula de números a la atención.",
        ),
        (
            "../reference/index.html",
            "Referencia",
            "Cada nombre, con fórmulas y ejemplos (en inglés).",
        ),
        ("guides/kernels.html", "Tus propios kernels", "Una operación fusionada en tres líneas."),
        (
            "../guides/architecture.html",
            "Cómo funciona",
            "De Python al código máquina (en inglés).",
        ),
    ),
}


def write(lang: str, folder: Path, lessons: Sequence[Lesson]) -> None:
    """The first page, and that of the course."""
    words = WORDS[lang]
    cards = "".join([
        f'<a class="ref-card" href="{href}"><strong>{title}</strong><span>{text}</span></a>'
        for href, title, text in CARDS[lang]
    ])  # fmt: skip
    hero = f'<p class="ref-lead">{words["lead"]}</p>\n{docstrings.console(EXAMPLE)}'
    parts = [heading(words["title"], "="), raw(f'{hero}\n<div class="ref-cards">{cards}</div>')]
    here = [f"guides/{name}" for name in USER_GUIDES]
    parts.append(_tree(words["guides"], [f"{words['all_guides']} <guides/index>", *here]))
    parts.append(_tree(words["course"], ["course/index"]))
    if lang == "en":
        parts.append(_tree(words["examples"], ["examples/index"]))
        parts.append(_tree(words["reference"], ["reference/index"]))
        inside = [f"guides/{name}" for name in INSIDE]
        parts.append(_tree(words["inside"], [*inside, "about/contributing"]))
        parts.append(
            _tree(words["about"], [f"{words['readme']} <about/readme>", "about/changelog"])
        )
    else:
        parts.append(_tree(words["about"], [f"{words['readme']} <about/readme>"]))
    (folder / "index.rst").write_text("\n".join(parts), encoding="utf-8")
    listed = "\n".join([f"{lesson.path.stem}" for lesson in lessons])
    rows = "\n".join([f"1. [{lesson.title}]({lesson.path.stem}.md)" for lesson in lessons])
    tree = f"```{{toctree}}\n:hidden:\n\n{listed}\n```"
    course = f"# {words['course']}\n\n{words['course_text']}\n\n{rows}\n\n{tree}\n"
    (folder / "course" / "index.md").write_text(course, encoding="utf-8")


def _tree(caption: str, pages: Sequence[str]) -> str:
    listed = "\n".join([f"   {page}" for page in pages])
    return f".. toctree::\n   :hidden:\n   :caption: {caption}\n\n{listed}\n"
