"""``antorcha.inspect``: what a tensor is, for people: text, HTML, a dictionary."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from antorcha.core.lazy import lazy
from antorcha.errors import ArgumentError
from antorcha.inspector.forms import cut
from antorcha.inspector.naming import names_around, users_frame
from antorcha.inspector.shown import Shown
from antorcha.inspector.tensor.facts import TensorFacts, gather
from antorcha.inspector.tensor.html import page
from antorcha.inspector.tensor.terminal import renderables, text
from antorcha.inspector.tensor.words import WordTable
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.subclass import DisableTorchFunctionSubclass

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

    from antorcha.devices.sim import recording
    from antorcha.inspector.launch import facts as launch_facts
    from antorcha.inspector.launch import inspection as launch_inspection
    from antorcha.inspector.launch import words as launch_words
else:
    recording = lazy("antorcha.devices.sim.recording")
    launch_facts = lazy("antorcha.inspector.launch.facts")
    launch_inspection = lazy("antorcha.inspector.launch.inspection")
    launch_words = lazy("antorcha.inspector.launch.words")


_PRINTED = 20_000  # characters of a printed tensor


class Inspection(Shown):
    """What `inspect` found: a snapshot that holds words and numbers, not the tensor.

    ``print`` shows it as text 80 characters wide, rich in colours, a notebook as a picture.
    `facts` are the same as fields, ``as_dict()`` as values that JSON has.
    """

    def __init__(self, facts: TensorFacts, lang: str = "en") -> None:
        self.facts = facts
        self.words = WordTable(lang)

    def as_dict(self) -> dict[str, Any]:
        """The facts as nested dictionaries and lists."""
        return self.facts.as_dict()

    def plain(self) -> str:
        """The text, 80 characters wide."""
        return text(self.facts, self.words)

    def html(self, brief: bool = False, printed: str = "") -> str:
        """One ``<div>`` with all it needs in it: no script, nothing loaded; light and dark.

        `brief`: the headline and the values only, below the text `printed`.
        """
        return page(self.facts, self.words, brief, printed)

    def _repr_html_(self) -> str:
        return self.html()

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        yield from renderables(self.facts, self.words, options.max_width)


@overload
def inspect(
    tensor: Tensor,
    *,
    name: str | None = None,
    axes: str | Sequence[str] | None = None,
    lang: str = "en",
    names: Mapping[str, Any] | None = None,
) -> Inspection: ...


@overload
def inspect(
    tensor: recording.SimulatedLaunch,
    *,
    name: str | None = None,
    lang: str = "en",
    block: int | None = None,
) -> launch_inspection.LaunchInspection: ...


def inspect(
    tensor: Any,
    *,
    name: str | None = None,
    axes: str | Sequence[str] | None = None,
    lang: str = "en",
    names: Mapping[str, Any] | None = None,
    block: int | None = None,
) -> Any:
    """What a tensor is: how it lies in memory, who shares it, its place in the graph, its values.
    Or what a launch of ``torch.sim.recording()`` did: which thread touched which element.

    Nothing about the tensor or the program changes, and a gigabyte takes no longer than a page: of
    more than a million elements an evenly spread sample is looked at, and the text says so.

    Args:
        tensor: any tensor, on any device, of any dtype; or a launch.
        name: what to call it; by default the name that the caller's variables have for it.
        axes: a name for each dim: words, or letters such as "NCHW".
        lang: "en" or "es".
        names: where names for the tensor and for those that share its memory are looked up; by
            default the variables of the caller, and of those who called it.
        block: of a launch, the number of the block whose first warp is shown; 0 by default.

    Raises:
        TypeError: what is given is neither, `axes` or `block` does not fit, or `lang` is neither
            language.

    >>> grid = torch.arange(6.).view(2, 3)
    >>> found = torch.inspect(grid.t())
    >>> found.facts.strides, found.facts.layout
    ((1, 3), 'permuted')
    >>> [cell.order for cell in found.facts.memory.shown()]
    [0, 2, 4, 1, 3, 5]
    """
    if not isinstance(tensor, Tensor) and isinstance(tensor, recording.SimulatedLaunch):
        return _of_launch(tensor, name, lang, block, axes, names)
    if block is not None:
        raise ArgumentError(
            f"inspect: block= is for a launch of torch.sim.recording(), not {type(tensor).__name__}"
        )
    words = WordTable(lang)  # a wrong one is refused before any work
    known = names_around(users_frame()) if names is None else names
    facts = gather(tensor, name=name, axes=axes, names=known)
    return Inspection(facts, words.lang)


def _of_launch(
    launch: recording.SimulatedLaunch, name: str | None, lang: str, block: int | None, axes: Any,
    names: Any,
) -> launch_inspection.LaunchInspection:  # fmt: skip
    words = launch_words.LaunchWords(lang)
    for key, given in (("axes", axes), ("names", names)):
        if given is not None:
            raise ArgumentError(f"inspect: {key}= is for tensors; a launch takes name, lang, block")
    facts = launch_facts.gather(launch, name=name or "", block=0 if block is None else block)
    return launch_inspection.LaunchInspection(facts, words)


def brief_html(tensor: Tensor) -> str:
    """The short form, ``Tensor._repr_html_``: the printed text and, below it, a picture of the
    values; bounded work, and nobody looks for who shares."""
    return Inspection(gather(tensor, brief=True)).html(brief=True, printed=_printed(tensor))


def _printed(tensor: Tensor) -> str:
    """What ``print`` shows, which a notebook does not where there is HTML. "" where it cannot be
    printed: memory that is freed, or out of reach; the picture says why."""
    own = type(tensor).__repr__
    if own is not Tensor.__repr__:
        with contextlib.suppress(Exception):
            return cut(own(tensor), _PRINTED)
    with contextlib.suppress(Exception), DisableTorchFunctionSubclass():
        return cut(Tensor.__repr__(tensor), _PRINTED)
    return ""
