"""What the page asks of the models of a program: what can be pictured, and one picture."""

from __future__ import annotations

import contextlib
from typing import Any

from antorcha.lab import namespace, plane
from antorcha.lab.views import attention, flow, forward, inputs, pad
from antorcha.lab.views.forward import ModelPass, NoInput
from antorcha.lab.words import LabWords
from antorcha.tensor.interop import from_numpy

DRAWING = "~"  # the name of the pad's drawing, as an input of `flow`
RANDOM = "?"  # and that of an input that is made up


def offers(names: dict[str, Any]) -> dict[str, list[str]]:
    """What can be pictured: for each view the models (of attention: tensors, too) that it fits.

    Nothing of the learner's runs for this.
    """
    modules = inputs.models(names)
    found = {
        "pad": [name for name, each in modules.items() if pad.find(each, names)],
        "plane": list(plane.every(names)),
        "attention": attention.squares(names),
        "flow": list(modules),
    }
    found["attention"] += [name for name, each in modules.items() if attention.attends(each)]
    return {view: each for view, each in found.items() if each}


class ModelViews:
    """The pictures of one program's models.

    Args:
        names: those of the program.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._readers: dict[str, pad.PadReader] = {}

    def look(self, request: dict[str, Any], lang: str) -> dict[str, Any]:
        """One picture: ``view``, ``name``, and what the view needs besides. The answer has ``html``
        and more, or ``problem``, or ``gone``."""
        words = LabWords(lang)
        try:
            work = {"plane": self._plane, "flow": self._flow, "pad": self._pad,
                    "attention": self._attention}[request["view"]]  # fmt: skip
            return work(request, words)
        except KeyError:
            return {"gone": True}
        except NoInput as error:
            return {"problem": f"{words('flow_no_input')} {error}".strip()}

    def _plane(self, request: dict[str, Any], words: LabWords) -> dict[str, Any]:
        drawing = plane.every(self._names)[request["name"]]
        parameters: dict[str, Any] = dict(drawing.module.named_parameters())
        return {"html": drawing.draw(parameters, words("film_plane"))}

    # ---- flow -----------------------------------------------------------------------------------

    def _flow(self, request: dict[str, Any], words: LabWords) -> dict[str, Any]:
        name = request["name"]
        module = inputs.models(self._names)[name]
        choices = inputs.fitting(module, self._names)
        chosen = request.get("input", "")
        opened = request.get("layer", -1), request.get("sheet", -1)
        count, label = 1, ""
        if chosen == DRAWING and request.get("drawing"):
            given = self._reader(name).picture(request["drawing"])
            done = forward.run(module, [from_numpy(given)])
        else:
            chosen, done = self._chosen(name, chosen, choices, request.get("index", 0))
            choices = [RANDOM] if chosen == RANDOM else choices
            shape: tuple[int, ...] = ()
            if chosen != RANDOM:
                shape = tuple(self._names[chosen]._layout.shape)
            if done.given is not None and len(shape) > 1 and done.given.shape[0] == 1 < shape[0]:
                count = shape[0]
                label = self._answer(count, request.get("index", 0))
        return {
            "html": flow.draw(done, words, opened), "inputs": choices, "input": chosen,
            "count": count, "label": label,
        }  # fmt: skip

    def _chosen(
        self, name: str, chosen: str, choices: list[str], index: int
    ) -> tuple[str, ModelPass]:
        """The first of the choices that the model takes, from `chosen` on, and the pass; where
        there is none, one that is made up. Raises NoInput where that does not fit, either."""
        module = inputs.models(self._names)[name]
        problem = ""
        for tensor in dict.fromkeys([chosen, *choices] if chosen in choices else choices):
            try:
                return tensor, forward.run_on(module, tensor, self._names, index)
            except NoInput as error:
                problem = problem or str(error)
        for args in inputs.made_up(module):
            with contextlib.suppress(Exception):
                return RANDOM, forward.run(module, args)
        raise NoInput(problem)

    def _answer(self, count: int, index: int) -> str:
        """What the program says that an example is, in a word."""
        answers = inputs.answers(self._names, count)
        if answers is None or index >= count:
            return ""
        number = int(answers[index].item())
        known = int(answers.max().item()) + 1
        labels = inputs.texts(self._names, known) if 1 < known <= pad.CLASSES else []
        return labels[number] if 0 <= number < len(labels) else str(number)

    # ---- pad ------------------------------------------------------------------------------------

    def _reader(self, name: str) -> pad.PadReader:
        reader = self._readers.get(name)
        if reader is None:
            module = inputs.models(self._names)[name]
            pictures = pad.find(module, self._names)
            if pictures is None:
                raise KeyError(name)
            reader = self._readers[name] = pad.PadReader(module, pictures, self._names)
        return reader

    def _pad(self, request: dict[str, Any], words: LabWords) -> dict[str, Any]:
        reader = self._reader(request["name"])
        drawing = [stroke for stroke in request.get("drawing", []) if stroke]
        return reader.read(drawing, lambda count: inputs.texts(self._names, count), words)

    # ---- attention ------------------------------------------------------------------------------

    def _attention(self, request: dict[str, Any], words: LabWords) -> dict[str, Any]:
        name = request["name"]
        modules = inputs.models(self._names)
        if name in modules:
            squares = self._watched(name, request)
        else:
            tensor = namespace.find(self._names, name)
            heads = None if tensor is None else attention.shares(tensor)
            squares = [] if heads is None else [heads]
        if not squares:
            return {"gone": True} if name not in modules else {
                "problem": words("attention_none")
            }  # fmt: skip
        layer = min(max(request.get("layer", 0), 0), len(squares) - 1)
        heads = squares[layer]
        head = min(max(request.get("head", 0), 0), len(heads) - 1)
        tokens = inputs.tokens(self._names, heads.shape[-1])
        return {"html": attention.draw(heads, head, tokens, words), "layers": len(squares),
                "layer": layer, "heads": len(heads), "head": head}  # fmt: skip

    def _watched(self, name: str, request: dict[str, Any]) -> list[Any]:
        """The squares that a model computes while it runs on its input."""
        module = inputs.models(self._names)[name]
        choices = inputs.fitting(module, self._names)
        watch = attention.AttentionWatch()
        given = [
            args
            for tensor in choices[:3]
            for args in inputs.arguments(module, tensor, self._names, request.get("index", 0))
        ]
        for args in [*given, *inputs.made_up(module)]:
            with watch, contextlib.suppress(Exception):  # another form may fit
                forward.run(module, args)
                if watch.found:
                    break
            watch.found.clear()
        return watch.found
