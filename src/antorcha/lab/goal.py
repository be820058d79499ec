"""The goal of the course: a network that reads digits, finished, and the stages that lead there.

The final project's challenge has a step for each stage. Home shows what they arrive at: the network
that its solutions make runs in a child of its own, and reads what the learner draws.
"""

from __future__ import annotations

from antorcha.lab.lesson import Lesson
from antorcha.lab.session import Session
from antorcha.lab.workplace import Workplace

PROJECT = "digits"  # the lesson's name
MODEL = "reader"  # the network's, in its program
STAGES = {
    "stage_1": "indexing",
    "stage_2": "operations",
    "stage_3": "training",
    "stage_4": "convolution",
    "stage_5": "saving",
}
"""What each stage is called (a word of the lab's), and after which lesson it can be built."""
_NETWORK = 4  # stages that make the network; the last one writes a file


def project(workplace: Workplace, lang: str) -> Lesson | None:
    """The final project, if the course has it."""
    lesson = workplace.lesson(PROJECT, lang)
    return lesson if lesson and lesson.challenge else None


def program(lesson: Lesson) -> str:
    """The finished network: the project's beginning, and what its stages add."""
    challenge = lesson.challenge
    assert challenge is not None
    solutions = [step.solution for step in challenge.steps[:_NETWORK]]
    return "\n\n".join([challenge.start, *solutions])


def session(workplace: Workplace) -> Session:
    """The session in whose child the finished network lives; it has no file on disk."""
    return workplace.session("goal", "digits_goal.py", "")


async def learn(work: Session, lesson: Lesson) -> bool:
    """Train the network, unless the child has it already; is it there?"""
    if work.child.pid is not None and work.result.get("ended") == "ok":
        return True
    work.result, _ = await work.attempt(program(lesson))
    return bool(work.result.get("ended") == "ok")
