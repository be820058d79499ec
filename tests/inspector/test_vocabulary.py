"""Every word that antorcha says to people is in every language, with the same gaps."""

from __future__ import annotations

import string

import pytest

from antorcha.inspector.explain import words as explain_words
from antorcha.inspector.graph import words as graph_words
from antorcha.inspector.launch import words as launch_words
from antorcha.inspector.tensor import words
from antorcha.inspector.vocabulary import LANGUAGES, Vocabulary, spoken

VOCABULARIES: list[type[Vocabulary]] = [
    words.WordTable, graph_words.GraphWords, explain_words.ExplainWords, launch_words.LaunchWords
]  # fmt: skip


def lab_vocabularies() -> list[type[Vocabulary]]:
    from antorcha.lab import words as lab_words
    from antorcha.lab.check import CheckWords
    from antorcha.lab.export import NotebookWords

    return [lab_words.LabWords, CheckWords, NotebookWords]


def gaps(text: str) -> list[str]:
    return sorted({name for _, name, _, _ in string.Formatter().parse(text) if name is not None})


@pytest.mark.parametrize("vocabulary", [*VOCABULARIES, *lab_vocabularies()])
def test_every_word_is_in_every_language(vocabulary: type[Vocabulary]) -> None:
    for key, texts in vocabulary.table.items():
        assert len(texts) == len(LANGUAGES), key
        assert all(texts), key
        assert gaps(texts[0]) == gaps(texts[1]), key


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_another_language_is_refused(vocabulary: type[Vocabulary]) -> None:
    with pytest.raises(TypeError, match=r"lang='ess' must be one of en, es\. Did you mean 'es'"):
        vocabulary("ess")


def test_the_lab_speaks_english_where_it_has_no_words() -> None:
    assert [spoken(lang) for lang in ("es", "fr", "")] == ["es", "en", "en"]
    assert lab_vocabularies()[0]("fr").lang == "en"
