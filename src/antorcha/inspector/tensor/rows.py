"""The facts as lines of words, which every face shows: a label, a value, what it means."""

from __future__ import annotations

from typing import NamedTuple

from antorcha.inspector.numbers import grouped, memory_size, rounded
from antorcha.inspector.tensor.facts import AutogradFacts, GradFacts, TensorFacts
from antorcha.inspector.tensor.memory import MemoryPicture
from antorcha.inspector.tensor.sharing import Sharer
from antorcha.inspector.tensor.values import Statistics
from antorcha.inspector.tensor.words import WordTable


class FactRow(NamedTuple):
    """One fact."""

    label: str
    value: str
    note: str = ""


def title(facts: TensorFacts) -> tuple[str, str]:
    """The name, or the class where there is none, and the facts that a headline has."""
    head = f"{facts.name}: {facts.kind}" if facts.name else facts.kind
    return head, f"{facts.shape} {facts.dtype} {facts.device}"


def rows(facts: TensorFacts, words: WordTable) -> list[FactRow]:
    """All facts but memory and values."""
    found = [
        FactRow(words("shape"), str(facts.shape), _shape_note(facts, words)),
        FactRow("dtype", facts.dtype, words("each", size=memory_size(facts.itemsize))),
        FactRow(words("device"), facts.device),
        FactRow(words("strides"), str(facts.strides), _strides_note(facts, words)),
        FactRow(words("offset"), str(facts.offset), words("starts", cell=facts.offset)),
        FactRow(words("layout"), facts.layout, words(facts.layout.removesuffix("_3d"))),
        FactRow(words("bytes"), memory_size(facts.nbytes), _storage_note(facts, words)),
    ]
    if facts.storage.owner or facts.storage.readonly:
        found.append(_owner(facts, words))
    found += [_version(facts, words), *_shared(facts, words), *_autograd(facts.autograd, words)]
    return found


def _shape_note(facts: TensorFacts, words: WordTable) -> str:
    if not facts.shape:
        return words("0-dim")
    product = f"{' x '.join(map(str, facts.shape))} = " if len(facts.shape) > 1 else ""
    key = "one element" if facts.numel == 1 else "elements"
    note = words(key, product=product, count=grouped(facts.numel))
    if facts.axes:
        note = f"{', '.join([words.axis(name) for name in facts.axes])}; {note}"
    return note


def _strides_note(facts: TensorFacts, words: WordTable) -> str:
    parts = []
    for dim, stride in enumerate(facts.strides):
        key = "stride" if stride > 1 else f"stride {stride}"
        key = "no step" if facts.shape[dim] == 1 else key
        parts.append(words(key, dim=dim, stride=grouped(stride)))
    return ", ".join(parts)


def _storage_note(facts: TensorFacts, words: WordTable) -> str:
    if facts.why_no_values == "meta":
        return words("no memory")
    cells, rest = divmod(facts.storage.nbytes, facts.itemsize)
    size = memory_size(facts.storage.nbytes)
    note = words("one cell" if cells == 1 else "storage size", size=size, cells=grouped(cells))
    return note + words("rest", rest=rest) if rest else note


def _owner(facts: TensorFacts, words: WordTable) -> FactRow:
    storage = facts.storage
    note = words("read-only") if storage.readonly else words("borrowed")
    return FactRow(words("memory of"), storage.owner or "-", note)


def _version(facts: TensorFacts, words: WordTable) -> FactRow:
    version = facts.storage.version
    if version is None:
        return FactRow(words("version"), "-", words("inference"))
    key = f"version {version}" if version < 2 else "version n"
    return FactRow(words("version"), str(version), words(key, count=grouped(version)))


def _shared(facts: TensorFacts, words: WordTable) -> list[FactRow]:
    sharing = facts.sharing
    found = []
    label = words("shared with")
    for sharer in sharing.others:
        found.append(FactRow(label, sharer.name or words("no name"), _sharer(sharer, words)))
        label = ""
    if sharing.more:
        found.append(FactRow(label, words("more", count=sharing.more)))
    if sharing.saved:
        key = "saved 1" if sharing.saved == 1 else "saved n"
        found.append(FactRow(label, "-" if label else "", words(key, count=sharing.saved)))
    return found or [FactRow(label, "-", words("nobody"))]


def _sharer(sharer: Sharer, words: WordTable) -> str:
    parts = [f"{sharer.shape} {sharer.dtype}"]
    if sharer.offset is not None:
        parts.append(f"{words('strides')} {sharer.strides}, {words('offset')} {sharer.offset}")
    if sharer.is_base:
        parts.append(words("base"))
    if sharer.kind != "view":
        parts.append(words(sharer.kind))
    return "; ".join(parts)


def _autograd(autograd: AutogradFacts, words: WordTable) -> list[FactRow]:
    if not autograd.requires_grad:
        note = words("leaf") if autograd.is_leaf else ""
    elif autograd.is_leaf:
        note = words("leaf grad")
    else:
        note = words("retains" if autograd.retains_grad else "made by")
    found = [FactRow("requires_grad", str(autograd.requires_grad), note)]
    if autograd.grad_fn:
        found.append(FactRow("grad_fn", autograd.grad_fn, autograd.problem))
    elif autograd.problem:
        found.append(FactRow("grad_fn", "-", autograd.problem))
    if autograd.grad is not None:
        found.append(FactRow("grad", *_grad(autograd.grad, words)))
    elif autograd.requires_grad and (autograd.is_leaf or autograd.retains_grad):
        found.append(FactRow("grad", "None", words("no grad yet")))
    return found


def _grad(grad: GradFacts, words: WordTable) -> tuple[str, str]:
    numbers = grad.statistics
    if numbers is None or numbers.count == 0:
        return str(grad.shape), grad.dtype
    note = words(
        "grad values", dtype=grad.dtype, mean=rounded(numbers.mean),
        std=rounded(numbers.std), min=rounded(numbers.min), max=rounded(numbers.max),
    )  # fmt: skip
    infinite = numbers.posinf + numbers.neginf
    if numbers.nan or infinite:
        note += words("grad bad", nan=numbers.nan, inf=infinite)
    if numbers.sampled:
        note += f". {_sample(numbers, words)}"
    return str(grad.shape), note


def why_no_values(facts: TensorFacts, words: WordTable) -> str:
    """Why there is nothing to see; "" where there is."""
    if facts.why_no_values == "freed":
        has, needs = memory_size(facts.storage.nbytes), memory_size(facts.storage.needed)
        return words("freed", has=has, needs=needs)
    if facts.why_no_values:
        return words(facts.why_no_values, device=facts.device)
    return "" if facts.numel else words("empty")


def _sample(numbers: Statistics, words: WordTable) -> str:
    return words("sample", looked=grouped(numbers.looked_at), count=grouped(numbers.count))


def of_what(numbers: Statistics, words: WordTable) -> str:
    """What the statistics are of: all elements, a sample, magnitudes."""
    key = "only element" if numbers.count == 1 else "all elements"
    said = words(key, count=grouped(numbers.count))
    said = _sample(numbers, words) if numbers.sampled else said
    return f"{said} {words('magnitude')}" if numbers.of_magnitude else said


def counted(numbers: Statistics, words: WordTable) -> list[tuple[str, str]]:
    """The statistics: label and number."""
    extremes = [
        (words(key), rounded(getattr(numbers, key))) for key in ("min", "max", "mean", "std")
    ]
    counts = [
        (words(key), grouped(getattr(numbers, key))) for key in ("nan", "posinf", "neginf", "zeros")
    ]
    return extremes + counts


def memory_text(facts: TensorFacts, drawn: MemoryPicture, words: WordTable) -> str:
    """What the drawing of the storage shows."""
    name = facts.name or words("this tensor")
    if not drawn.cells:
        return words("no cells")
    cells = grouped(drawn.cells)
    if drawn.read is None or facts.why_no_values == "freed":
        said = words("reads", cells=cells)
    elif drawn.read == drawn.cells == 1:
        return words("reads one", name=name)
    elif drawn.read == drawn.cells:
        said = words("reads all", cells=cells, name=name)
    else:
        said = words("reads some", cells=cells, name=name, read=grouped(drawn.read))
    if facts.numel:
        said += f" {words('numbered all' if drawn.read == drawn.cells else 'numbered')}"
    if drawn.repeats:
        assert drawn.read is not None
        counts = {"elements": grouped(facts.numel), "read": grouped(drawn.read)}
        said += f" {words('repeats', **counts)}"
    return said


def shown_part(facts: TensorFacts, words: WordTable, most: int = 4) -> str:
    """Which part of the values the map shows, of whose matrices `most` are drawn; "" for all."""
    heat = facts.heat
    if heat is None or not heat.grids:
        return ""
    parts = []
    shown = min(len(heat.grids), most)
    if shown < heat.of:
        index = f"1-{shown}" if shown > 1 else 1
        parts.append(words("matrix", index=index, of=grouped(heat.of)))
    if len(heat.steps) == 2 and max(heat.steps) > 1:
        parts.append(words("every", rows=heat.steps[0], columns=heat.steps[1]))
    elif len(heat.steps) == 1 and heat.steps[0] > 1:
        parts.append(words("every element", step=heat.steps[0]))
    return "; ".join(parts)
