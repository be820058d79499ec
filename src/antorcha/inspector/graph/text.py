"""What is written in the boxes of a graph's picture, and the graph as plain text."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from antorcha.autograd.origin import SourceLine
from antorcha.core.cells import cell_of
from antorcha.inspector.forms import cut, shape_text
from antorcha.inspector.graph.facts import (
    GraphFacts,
    GraphLeaf,
    OperandSource,
    Operation,
    OperationResult,
    Saved,
)
from antorcha.inspector.graph.nest import Group
from antorcha.inspector.graph.words import GraphWords
from antorcha.inspector.numbers import memory_size

_WIDE = 40  # characters in a box
_LISTED = 40  # operations of a long graph that the text lists, at each end

Lines = list[tuple[str, str]]
"""Of a box: (style, text) for each line; style "name", "plain", "dim" or "bad"."""


def where(line: SourceLine, say: GraphWords) -> str:
    """A line's place, without the folder."""
    return _place(os.path.basename(line.file), line, say)


def _place(file: str, line: SourceLine, say: GraphWords) -> str:
    cell = cell_of(line.file)
    return f"{file}:{line.number}" if cell is None else say("cell", cell=cell, line=line.number)


def operation_lines(op: Operation, say: GraphWords) -> Lines:
    """The text of an operation's box."""
    lines: Lines = [("name", cut(op.name, _WIDE))]
    for result in op.results[:3]:
        lines.append(("plain", cut(_result_text(result), _WIDE)))
        if result.gradient:
            lines.append(("good", cut(f"grad {result.gradient}", _WIDE)))
    if len(op.results) > 3:
        lines.append(("dim", say.count("more result", len(op.results) - 3)))
    if op.line is not None:
        text = op.line.text
        lines.append(("dim", cut(f"{where(op.line, say)}  {text}".rstrip(), _WIDE)))
    kept = [saved for saved in op.saved if saved.state in ("kept", "packed")]
    if kept:
        lines.append(("dim", cut(_keeps(kept, say), _WIDE)))
    for saved in op.saved:
        if saved.state == "overwritten":
            lines.append(("bad", cut(say("was overwritten", name=saved.name), _WIDE)))
    return lines


def _keeps(kept: Sequence[Saved], say: GraphWords) -> str:
    return say("keeps", what=", ".join([saved.told(say) for saved in kept]))


def _result_text(result: OperationResult) -> str:
    names = f"{', '.join(result.names)} = " if result.names else ""
    return f"{names}{shape_text(result.shape)} {result.dtype}"


def operation_title(op: Operation, say: GraphWords) -> str:
    """All that is known of an operation: shown when the pointer rests on its box."""
    parts = [op.name]
    parts += [
        say("result", what=f"{shape_text(r.shape)} {r.dtype}")
        + (f", grad {r.gradient}" if r.gradient else "")
        for r in op.results
    ]
    parts += [f"{name} = {text}" for name, text in op.settings.items()]
    parts += [
        say(
            "keeps" if saved.state != "freed" else "kept",
            what=f"{saved.told(say)}, {memory_size(saved.nbytes)}",
        )
        for saved in op.saved
    ]
    for line in reversed(op.lines[-6:]):
        place = say("in", place=_place(line.file, line, say), function=line.function)
        parts.append(f"{place}  {line.text}".rstrip())
    return "\n".join(parts)


def leaf_lines(leaf: GraphLeaf) -> Lines:
    """The text of a leaf's box."""
    lines: Lines = [
        ("name", cut(leaf.name, _WIDE)),
        ("plain", cut(f"{shape_text(leaf.shape)} {leaf.dtype}", _WIDE)),
    ]
    if leaf.gradient:
        lines.append(("good", cut(f"grad {leaf.gradient}", _WIDE)))
    return lines


def leaf_title(leaf: GraphLeaf, say: GraphWords) -> str:
    """All that is known of a leaf."""
    what = say("a parameter" if leaf.parameter else "a leaf", name=leaf.name)
    place = say("on", what=f"{shape_text(leaf.shape)} {leaf.dtype}", device=leaf.device)
    grad = f"grad: {leaf.gradient}" if leaf.gradient else say("no grad")
    return f"{what}\n{place}\n{grad}"


def group_lines(group: Group, facts: GraphFacts) -> Lines:
    """The text of a closed group's box."""
    lines: Lines = [("name", cut(group.title, _WIDE))]
    if group.title != group.kind:
        lines.append(("dim", cut(group.kind, _WIDE)))
    for value in list(group.results)[:2]:
        if value[0] == "operation":
            result = facts.operations[value[1]].results[value[2]]
            lines.append(("plain", cut(_result_text(result), _WIDE)))
    line = facts.operations[group.first].line if group.operations == 1 else None
    if line is not None:
        lines.append(("dim", cut(f"{where(line, facts.say)}  {line.text}", _WIDE)))
    lines.append(("dim", facts.say.count("operation", group.operations)))
    return lines


def folded_lines(names: Sequence[str], say: GraphWords, leaves: int = 0) -> Lines:
    """The text of the box that stands for many operations (their names), and leaves."""
    words = [say.count("operation", len(names))] if names else []
    words += [say.count("leaf", leaves)] if leaves else []
    lines: Lines = [("name", f"… {', '.join(words)} …")]
    for name, count in Counter(names).most_common(3):
        lines.append(("dim", cut(f"{count:,} x {name}", _WIDE)))
    return lines


def caption(facts: GraphFacts) -> list[str]:
    """A graph in a few words."""
    say = facts.say
    names = ", ".join([name for name in facts.root_names if name][:4])
    words = [say.count("operation", len(facts.operations)), say.count("leaf", len(facts.leaves))]
    if facts.freed and not facts.saved_bytes:
        words.append(say("freed values"))
    else:
        words.append(say("kept for", size=memory_size(facts.saved_bytes)))
    lines = [say("graph of" if names else "graph", names=names, facts=", ".join(words))]
    if not facts.operations:
        lines.append(say("no operation", why=say("is leaf" if facts.leaves else "no gradient")))
    if facts.more:
        lines.append(say("only newest", count=len(facts.operations)))
    if facts.operations and not facts.recorded:
        lines.append(say("not recorded"))
    return lines


# ------------------------------------------------------------------------------------ plain text
def as_text(facts: GraphFacts) -> str:
    """The graph as text: leaves, then operations in the order in which they ran."""
    out, say = caption(facts), facts.say
    if facts.leaves:
        out += ["", say("leaves:")]
        width = min(max([len(leaf.name) for leaf in facts.leaves]), 32)
        for leaf in facts.leaves[: 2 * _LISTED]:
            grad = f"  grad {leaf.gradient}" if leaf.gradient else ""
            line = f"  {leaf.name:<{width}}  {shape_text(leaf.shape)} {leaf.dtype}{grad}"
            out.append(line)
        if len(facts.leaves) > 2 * _LISTED:
            out.append(f"  {say.count('more leaf', len(facts.leaves) - 2 * _LISTED)}")
    if facts.operations:
        out += ["", say("operations:")]
    count = len(facts.operations)
    for op in facts.operations:
        if count > 2 * _LISTED and _LISTED <= op.index < count - _LISTED:
            if op.index == _LISTED:
                hidden = facts.operations[_LISTED : count - _LISTED]
                lines = folded_lines([each.name for each in hidden], say)
                out += [f"  {text}" for _, text in lines]
            continue
        out += _operation_text(op, facts)
    return "\n".join(out)


def _operation_text(op: Operation, facts: GraphFacts) -> list[str]:
    operands = ", ".join([_source_text(source, facts) for source in op.operands if source])
    results = ", ".join([f"{shape_text(r.shape)} {r.dtype}" for r in op.results[:3]])
    names = ", ".join([name for result in op.results for name in result.names])
    first = f"  %{op.index} {op.name}({operands}) -> {results}"
    out = [first + (f"  = {names}" if names else "")]
    if op.line is not None:
        out.append(f"       {where(op.line, facts.say)}  {op.line.text}".rstrip())
    kept = [saved for saved in op.saved if saved.state != "freed"]
    if kept:
        out.append(f"       {_keeps(kept, facts.say)}")
    out += [f"       grad {r.gradient}" for r in op.results if r.gradient]
    return out


def _source_text(source: OperandSource, facts: GraphFacts) -> str:
    if source.kind == "leaf":
        return facts.leaves[source.index].name
    return f"%{source.index}" + (f".{source.result}" if source.result else "")
