"""The words that antorcha says to people, in more than one language: one mechanism for all tables.

A table says each sentence once in every language, side by side, so that none is forgotten; gaps in
it (``{name}``) are filled where it is said. The inspector, the graph, explanations, the lab and its
notebooks have a table each, as a class of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, TypeAlias

from antorcha.errors import ArgumentError, did_you_mean

LANGUAGES = {"en": "English", "es": "Español"}
"""code: what the language is called in itself; tables hold them in this order."""
Table: TypeAlias = Mapping[str, tuple[str, str]]


class Vocabulary:
    """A table in one language: ``words("starts", cell=3)``.

    Raises TypeError for a language that there is not.

    >>> class Greetings(Vocabulary):
    ...     table = {"hello": ("Hello, {0}!", "¡Hola, {0}!")}
    >>> Greetings("es")("hello", "Ada")
    '¡Hola, Ada!'
    """

    table: ClassVar[Table]
    asked_by: ClassVar[str] = "antorcha"  # who says so when there is no such language

    def __init__(self, lang: str = "en") -> None:
        if lang not in LANGUAGES:
            raise ArgumentError(
                f"{self.asked_by}: lang={lang!r} must be one of {', '.join(LANGUAGES)}."
                + did_you_mean(str(lang), LANGUAGES)
            )
        self.lang = lang
        self._column = [*LANGUAGES].index(lang)

    def __call__(self, key: str, *values: object, **named: object) -> str:
        return self.table[key][self._column].format(*values, **named)


def spoken(lang: str) -> str:
    """That language, or English where we do not have it: of lessons, say, that anyone may add."""
    return lang if lang in LANGUAGES else "en"
