"""A launch's facts as lines of words, which every face shows."""

from __future__ import annotations

from antorcha.inspector.launch.facts import BufferFacts, LaunchFacts, ThreadElements, WarpAccess
from antorcha.inspector.launch.words import LaunchWords
from antorcha.inspector.numbers import grouped, memory_size
from antorcha.inspector.tensor.rows import FactRow


def title(facts: LaunchFacts) -> tuple[str, str]:
    """What was asked for, under its name if it has one; the grid."""
    head = f"{facts.name}: {facts.description}" if facts.name else facts.description
    return head, f"{facts.kernel} {grid(facts)} sim"


def grid(facts: LaunchFacts) -> str:
    """The sizes of the grid: blocks x threads.

    >>> from types import SimpleNamespace
    >>> grid(SimpleNamespace(blocks=(4,), threads=256)), grid(SimpleNamespace(blocks=(4, 2),
    ...                                                                       threads=32))
    ('4 x 256', '(4, 2) x 32')
    """
    blocks = facts.blocks
    return f"{blocks[0] if len(blocks) == 1 else blocks} x {facts.threads}"


def rows(facts: LaunchFacts, words: LaunchWords) -> list[FactRow]:
    """All facts but those of the warp."""
    shared = "shared of block" if facts.shared_bytes else "no shared"
    found = [
        FactRow(words("kernel"), facts.kernel, facts.source),
        FactRow(words("grid"), grid(facts), _grid_note(facts, words)),
        FactRow(words("shared"), memory_size(facts.shared_bytes), words(shared)),
        FactRow(words("accesses"), grouped(facts.accesses), _access_note(facts, words)),
    ]
    if facts.noted < facts.accesses:
        left = grouped(facts.accesses - facts.noted)
        found.append(FactRow(words("noted"), grouped(facts.noted), words("noted first", left=left)))
    for operand in facts.operands:
        size = memory_size(operand.itemsize)
        note = _operand_note(operand, words)
        found.append(FactRow(operand.name, f"{operand.dtype}, {size}", note))
    return found


def _grid_note(facts: LaunchFacts, words: LaunchWords) -> str:
    every, busy = facts.thread_count, grouped(facts.busy)
    key = "one block" if facts.block_count == 1 else "blocks"
    said = words(
        key, blocks=grouped(facts.block_count), threads=facts.threads, all=grouped(every)
    )  # fmt: skip
    if facts.noted < facts.accesses:
        return f"{said}; {words('busy at least', busy=busy)}"
    if facts.busy == every:
        return f"{said}; {words('all busy')}"
    return f"{said}; {words('busy', busy=busy, idle=grouped(every - facts.busy))}"


def _counted(key: str, count: int, words: LaunchWords) -> str:
    return words(f"{key} one") if count == 1 else words(key, count=grouped(count))


def _access_note(facts: LaunchFacts, words: LaunchWords) -> str:
    parts = [_counted("reads", facts.reads, words), _counted("writes", facts.writes, words)]
    if facts.elsewhere:
        parts.append(words("elsewhere", count=grouped(facts.elsewhere)))
    return ", ".join(parts)


def _operand_note(operand: BufferFacts, words: LaunchWords) -> str:
    if operand.same_as and not operand.reads + operand.writes:
        return words("same as", name=operand.same_as)
    parts = []
    for key, elements, accesses in (
        ("read", operand.elements_read, operand.reads),
        ("written", operand.elements_written, operand.writes),
    ):
        if accesses:
            often = "" if accesses == elements else words("in accesses", count=grouped(accesses))
            parts.append(_counted(key, elements, words) + often)
    return ", ".join(parts) or words("untouched")


# ---- the warp
def warp_text(facts: LaunchFacts, words: LaunchWords) -> str:
    """What the lines below are of, or why there are none."""
    key = "warp text" if facts.warp else "no warp"
    if not facts.warp and facts.noted < facts.accesses:
        key = "no warp noted"
    return words(key, first=0, last=facts.lanes - 1)


def subject(access: WarpAccess, words: LaunchWords) -> str:
    """The operand and what was done with it."""
    return words("is written" if access.write else "is read", name=access.operand)


def pattern(access: WarpAccess, words: LaunchWords) -> str:
    """Whether the first accesses of the lanes are together."""
    if access.lanes == 1:
        return words("one lane")
    key = "one segment" if access.segments == 1 else "segments"
    return words(key, lanes=access.lanes, count=access.segments, pattern=words(access.pattern))


def idle_text(facts: LaunchFacts, words: LaunchWords) -> str:
    """How many threads of the warp touched nothing; "" where all did."""
    busy = {own.thread for access in facts.warp for own in access.threads}
    idle = facts.lanes - len(busy)
    return words("idle", count=idle, lanes=facts.lanes) if idle and busy else ""


def element_list(own: ThreadElements, words: LaunchWords, width: int) -> str:
    """A thread's elements in so many characters; those that have no room are counted."""
    texts = [str(element) for element in own.elements]
    for shown in range(len(texts), 0, -1):
        left = len(texts) - shown + own.more
        said = ", ".join(texts[:shown])
        said += words("and more", count=grouped(left)) if left else ""
        if len(said) <= width:
            return said
    return texts[0]
