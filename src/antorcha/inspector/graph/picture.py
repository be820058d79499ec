"""``antorcha.graph``: the autograd graph of a tensor, as a picture and as text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from antorcha.core.files import write_whole
from antorcha.errors import ArgumentError
from antorcha.inspector.forms import escaped
from antorcha.inspector.graph.drawing import STYLE, draw
from antorcha.inspector.graph.facts import GraphFacts, GraphLeaf, Operation, read
from antorcha.inspector.graph.nest import TOP, Group, Nest
from antorcha.inspector.graph.recording import recording
from antorcha.inspector.graph.text import as_text, caption
from antorcha.inspector.graph.words import GraphWords
from antorcha.inspector.naming import module_fields, names_of, users_frame
from antorcha.inspector.page import block
from antorcha.inspector.shown import Shown
from antorcha.runtime.tensor import Tensor

_OVERVIEW, _LIMIT = 30, 150  # boxes in the first picture, and in any
_PICTURES = 40  # of groups, in the HTML


def graph(
    tensors: Tensor | Iterable[Tensor],
    *,
    model: Any = None,
    names: Mapping[str, Tensor] | None = None,
    lang: str = "en",
) -> GraphPicture:
    """The graph that backward would walk from a tensor, or from several: see :class:`GraphPicture`.

    It shows the operations by PyTorch's node names, shapes and dtypes of results, what each keeps
    for its derivative, and the leaves with their gradients. Lines and modules are shown where they
    were noted: build the graph inside ``with antorcha.graph.recording():`` (lines are noted in
    anomaly mode, too). After ``backward()`` has freed what was kept, the rest is still shown.

    Args:
        tensors (Tensor or iterable of Tensors): the results, each of which requires a gradient
        model (torch.nn.Module): names its parameters and modules
        names (dict of str to Tensor): names of tensors; those without one get theirs from `model`,
            then from the caller's variables
        lang: "en" or "es", of the words in the picture and in the text

    Raises:
        TypeError: for what is no tensor (names: no tensors; model: no module), another `lang`.

    >>> w = torch.tensor([1., 2.], requires_grad=True)
    >>> loss = (w * w).sum()
    >>> print(torch.graph(loss, names={"w": w, "loss": loss}))
    graph of loss: 2 operations, 1 leaf, 0 B kept for backward
    lines and modules: not noted (build it inside `with antorcha.graph.recording():`)
    <BLANKLINE>
    leaves
      w  (2,) float32
    <BLANKLINE>
    operations, first to last
      %0 MulBackward0(w, w) -> (2,) float32
           keeps input (2,), other (2,)
      %1 SumBackward0(%0) -> () float32  = loss
    """
    variables = names_of(users_frame())
    try:
        return graph_among(variables, tensors, model=model, names=names, lang=lang)
    finally:
        variables.clear()


def graph_among(
    variables: Mapping[str, Any],
    tensors: Tensor | Iterable[Tensor],
    *,
    model: Any = None,
    names: Mapping[str, Tensor] | None = None,
    lang: str = "en",
) -> GraphPicture:
    """As `graph`, with these variables in the place of the caller's."""
    say = GraphWords(lang)  # a wrong one is refused before any work
    roots = _checked(tensors)
    if model is not None and module_fields(model) is None:
        raise ArgumentError(f"graph: model must be a torch.nn.Module, not {type(model).__name__}")
    facts = read(roots, _checked_names(names), model, variables)
    facts.say = say
    return GraphPicture(facts, model)


graph.recording = recording  # type: ignore[attr-defined]


def _checked(tensors: Any) -> list[Tensor]:
    if isinstance(tensors, Tensor):
        return [tensors]
    try:
        roots = list(tensors)
    except TypeError:
        roots = [tensors]
    for root in roots:
        if not isinstance(root, Tensor):
            raise ArgumentError(
                f"graph: expected a Tensor (or several), not {type(root).__name__}: graph(loss)"
            )
    if not roots:
        raise ArgumentError("graph: expected at least one Tensor")
    return roots


def _checked_names(names: Any) -> dict[str, Tensor]:
    given = dict(names or {})
    for name, tensor in given.items():
        if type(name) is not str or not isinstance(tensor, Tensor):
            raise ArgumentError(
                "graph: names is a dictionary of names and Tensors, such as {'x': x}; not "
                f"{type(name).__name__}: {type(tensor).__name__}"
            )
    return given


class GraphPicture(Shown):
    """A graph as it was when it was asked for: prints as text, shows as a picture.

    Attributes:
        operations: in the order in which they ran (``graph_facts.Operation``)
        leaves: where gradients are collected (``graph_facts.GraphLeaf``)
        groups: the calls of modules around them, if noted (``graph_nest.Group``)
    """

    def __init__(self, facts: GraphFacts, model: Any) -> None:
        self.facts = facts
        self._nest = Nest(facts, model)
        if not self._nest.can_be_drawn():  # threads whose modules wait for each other
            self._nest = Nest(facts, model, flat=True)

    @property
    def operations(self) -> list[Operation]:
        return self.facts.operations

    @property
    def leaves(self) -> list[GraphLeaf]:
        return self.facts.leaves

    @property
    def groups(self) -> list[Group]:
        return [group for serial, group in self._nest.groups.items() if serial != TOP]

    def plain(self) -> str:
        """The operations as lines of text."""
        return as_text(self.facts)

    def svg(self, *, boxes: int = _LIMIT) -> str:
        """The picture as an SVG, which needs nothing else: groups are open as long as there are
        not more than `boxes` boxes; the rest is summarised, and the picture says so."""
        limit = max(int(boxes), 8)
        return self._drawn(self._nest.opened(limit), limit, True)

    def _drawn(self, opened: set[int], limit: int, styled: bool = False) -> str:
        return draw(self._nest, opened, limit, heading=caption(self.facts), styled=styled)

    def html(self) -> str:
        """A self-contained ``<div>``: the picture with its groups closed where there are many, and
        below it each closed group, to be opened."""
        opened = self._nest.opened(_OVERVIEW, least=2)
        everything = self._nest.opened(_LIMIT)
        body = [f'<div class="wide">{self._drawn(opened, _LIMIT)}</div>']
        left = [_PICTURES]
        body += self._details(TOP, opened, left)
        if everything != opened:
            picture = self._drawn(everything, _LIMIT)
            body.append(
                f"<details><summary>{self.facts.say('all open')}</summary>"
                f'<div class="wide">{picture}</div></details>'
            )
        return block("".join(body), self.facts.say("title"), STYLE)

    _repr_html_ = html

    def _details(self, top: int, opened: set[int], left: list[int]) -> list[str]:
        """Pictures of the groups that are closed below `top`, each in a ``<details>``; what is
        closed in those comes after them."""
        out: list[str] = []
        waiting = [(top, opened)]
        skipped = 0
        while waiting:
            inside, shown = waiting.pop(0)
            for serial in self._closed(inside, shown):
                if left[0] <= 0:
                    skipped += 1
                    continue
                left[0] -= 1
                group = self._nest.groups[serial]
                within = self._nest.opened(_OVERVIEW, serial, least=2)
                title = escaped(f"{group.path or group.title}: {group.kind}")
                count = self.facts.say.count("operation", group.operations)
                picture = draw(self._nest, within, _LIMIT, serial, styled=False)
                out.append(
                    f'<details><summary>{title} <span class="muted">{count}</span></summary>'
                    f'<div class="wide">{picture}</div></details>'
                )
                waiting.append((serial, within))
        if skipped:
            words = self.facts.say("more groups", count=skipped)
            out.append(f'<p class="muted">{words}</p>')
        return out

    def _closed(self, inside: int, opened: set[int]) -> list[int]:
        """The closed groups that a picture of `inside` shows."""
        found: list[int] = []
        waiting = [inside]
        while waiting:
            for kind, serial, *_ in self._nest.groups[waiting.pop()].items:
                if kind == "group":
                    (waiting if serial in opened else found).append(serial)
        return sorted(found, key=lambda serial: self._nest.groups[serial].first)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture to a file: ``.svg``, or ``.html`` with groups to open, or ``.txt``."""
        suffix = os.path.splitext(os.fspath(path))[1].lower()
        if suffix == ".svg":
            text = self.svg()
        elif suffix in (".html", ".htm"):
            text = f'<!doctype html><meta charset="utf-8"><title>graph</title>{self.html()}\n'
        elif suffix == ".txt":
            text = f"{self.plain()}\n"
        else:
            raise ArgumentError(f"graph: save to a .svg, .html or .txt file, not {path!r:.80}")
        write_whole(path, text)
