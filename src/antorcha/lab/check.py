"""Checks of a challenge's steps: does what the learner's code made hold what was asked for?"""

from __future__ import annotations

import builtins
import os
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import antorcha
from antorcha.inspector.vocabulary import Vocabulary, spoken
from antorcha.lab.lesson import Step

_FILE = "<check>"
_LIBRARY = os.path.dirname(antorcha.__file__)


class CheckWords(Vocabulary):
    """What a check says."""

    table = {  # noqa: RUF012
        "right": ("Right.", "¡Correcto!"),
        "undefined": (
            "`{name}` is not defined yet: give that name to what this step asks for.",
            "`{name}` todavía no está definido: dale ese nombre a lo que pide este paso.",
        ),
        "theirs": (
            "Your code raised {kind} when it was tried: {error}",
            "Tu código lanzó {kind} al probarlo: {error}",
        ),
        "stopped": (
            "The check could not go on: {kind}: {error}. Something has another type or shape than "
            "it should.",
            "La comprobación no pudo seguir: {kind}: {error}. Algo tiene un tipo o una forma "
            "distintos de los que debería.",
        ),
    }


@dataclass(frozen=True)
class Verdict:
    """Whether a step is done, and what to tell the learner."""

    ok: bool
    message: str


def check_step(step: Step, namespace: Mapping[str, Any]) -> Verdict:
    """Run a step's check on the names that the learner's code left.

    The check works on a copy of `namespace`, so that it defines nothing for the learner; in it
    ``torch`` is antorcha whatever the learner called it. It never raises: a failed assert's message
    is the verdict's, and every other error, also one in a function of the learner's that the check
    calls, becomes a sentence in the step's language.
    """
    names = {**namespace, "torch": antorcha}
    words = CheckWords(spoken(step.lang))
    try:
        exec(compile(step.check, _FILE, "exec", dont_inherit=True), names)
    except (Exception, SystemExit) as error:
        return Verdict(False, _said(error, words))
    return Verdict(True, words("right"))


def _said(error: BaseException, words: CheckWords) -> str:
    kind = type(error).__name__
    frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)][1:]
    if not all(name == _FILE or name.startswith(_LIBRARY) for name in frames):
        return words("theirs", kind=kind, error=error)
    if frames and frames[-1] == _FILE:
        if isinstance(error, AssertionError):
            return str(error)
        if isinstance(error, NameError) and error.name and not hasattr(builtins, error.name):
            return words("undefined", name=error.name)
    return words("stopped", kind=kind, error=str(error).rstrip("."))
