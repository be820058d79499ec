"""Which rule explains which exception: antorcha's own by the reason that they carry, others by what
their messages say."""

from __future__ import annotations

from antorcha.errors import AntorchaError
from antorcha.inspector.explain import foreign as foreign
from antorcha.inspector.explain import layers, memory, shapes, tensors
from antorcha.inspector.explain.case import RULES, Case, Finding, Fixes, rows
from antorcha.inspector.explain.words import WORDS

MODULES = layers, memory, shapes, tensors  # whose rules are RULES

SUFFIXES = {
    "deep copy": [".detach()"],
    "numpy": [".detach()"],
    "no array": [".float()"],
    "no length": [".reshape(1)"],
    "scalar": [".sum()", ".mean()"],
    "computed parameter": [".detach().requires_grad_()"],
}
"""What mends the first operand, where that is all there is to say beside the sentence."""


def find(case: Case) -> Finding | None:
    """What is wrong; None where no rule knows."""
    reason = case.facts.reason
    ours = bool(reason) or issubclass(type(case.error), AntorchaError)
    if not ours:
        return foreign.find(case)
    rule = RULES.get(reason, sentence if reason in WORDS else None)
    found = rule(case) if rule is not None else None
    if found is None and case.operands:
        found = Finding("", rows(case.operands[:8], right=False))
    return found


def sentence(case: Case) -> Finding:
    """A reason without a rule of its own: its sentence, its operands, and what mends the first."""
    suffixes, fixes = SUFFIXES.get(case.facts.reason), Fixes()
    for first in case.operands[:1]:
        for suffix in suffixes or ():
            fixes += case.with_suffix(first, suffix)
    if suffixes is None and case.facts.fix:
        fixes = [(case.facts.fix, "")]
    label = case.operands[0].label if case.operands else ""
    picture = rows(case.operands[:4], right=False) if case.operands else None
    return case.finding(picture, fixes, label=label)
