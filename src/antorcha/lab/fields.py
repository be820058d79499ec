"""The YAML in a lesson, read field by field, so that every mistake is shown at its line."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from antorcha.errors import AntorchaError, did_you_mean, listed


class LessonError(AntorchaError, ValueError):
    """A lesson's file has a mistake; the message names the file, the line and the fix.

    Example: ``02_memory.md, line 40: an option needs `why`.``
    """


@dataclass(frozen=True)
class FilePlace:
    """A line of a file, counted from 1."""

    file: str
    line: int

    def down(self, lines: int) -> FilePlace:
        """The place so many lines below."""
        return FilePlace(self.file, self.line + lines)

    def error(self, message: str) -> LessonError:
        """The error to raise for what is wrong here."""
        return LessonError(f"{self.file}, line {self.line}: {message}")


@dataclass(frozen=True)
class Fields:
    """A mapping of a YAML document. Values are taken as they are written: ``text: 64`` and
    ``text: true`` are text, without quotes."""

    what: str
    place: FilePlace
    nodes: dict[str, Any]  # a name -> the yaml.Node of its value
    places: dict[str, FilePlace]  # a name -> its line
    origin: FilePlace  # of the document's first line

    @classmethod
    def read(cls, place: FilePlace, text: str, what: str) -> Fields:
        """Parse the YAML in `text`, which begins at `place`; `what` names it in messages."""
        yaml = _yaml()
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            # An open quote runs to the end, where the problem is found: say where it began.
            quoted = "quoted" in (error.context or "")
            mark = error.context_mark if quoted else error.problem_mark
            at = place.down(mark.line if mark else 0)
            fix = "text with `: `, ` #` or a quote in it stands in quotes, or in a block after |"
            raise at.error(f"{what} is not YAML ({error.problem}); {fix}") from error
        except yaml.YAMLError as error:
            raise place.error(f"{what} is not YAML: {error}") from error
        return cls._of(place, place, node, what)

    @classmethod
    def _of(cls, origin: FilePlace, place: FilePlace, node: Any, what: str) -> Fields:
        if not isinstance(node, _yaml().MappingNode):
            raise place.error(f"{what} consists of lines `name: value`")
        nodes: dict[str, Any] = {}
        places: dict[str, FilePlace] = {}
        for key, value in node.value:
            at = origin.down(key.start_mark.line)
            if key.value in nodes:
                raise at.error(f"{what} has `{key.value}` twice; take one out")
            nodes[key.value], places[key.value] = value, at
        return cls(what, place, nodes, places, origin)

    def only(self, *names: str) -> None:
        """Refuse fields of other names, which would be passed over in silence."""
        for name, at in self.places.items():
            if name not in names:
                hint = did_you_mean(name, names) or f" Its fields are {listed(names)}."
                raise at.error(f"{self.what} has no field `{name}`.{hint}")

    def text(self, name: str) -> str:
        """A text that is not empty."""
        return self._scalar(name, self._node(name))

    def texts(self, name: str) -> list[str]:
        """A list of texts, at least one."""
        return [self._scalar(name, node) for node in self._list(name)]

    def code(self, name: str) -> str:
        """Python, checked to be such; ends with a newline."""
        code = self.text(name) + "\n"
        parse_code(self.place_of_code(name), code)
        return code

    def number(self, name: str, least: int) -> int:
        """A whole number of at least `least`."""
        text = self.text(name)
        if not text.isdecimal() or int(text) < least:
            raise self.error(name, f"`{name}` is a whole number from {least}, not {text!r}")
        return int(text)

    def truth(self, name: str, default: bool) -> bool:
        """``true`` or ``false``."""
        if name not in self.nodes:
            return default
        text = self.text(name)
        if text not in ("true", "false"):
            raise self.error(name, f"`{name}` is true or false, not {text!r}")
        return text == "true"

    def items(self, name: str, what: str) -> list[Fields]:
        """A list of mappings, at least one."""
        return [self._of(self.origin, self._at(node), node, what) for node in self._list(name)]

    def error(self, name: str, message: str) -> LessonError:
        """The error to raise for what is wrong in the field `name`."""
        return self.places[name].error(message)

    def place_of_code(self, name: str) -> FilePlace:
        """Where the first line of a block stands: below the ``|``, if it has one."""
        node = self._node(name)
        return self._at(node).down(1 if node.style in ("|", ">") else 0)

    def _at(self, node: Any) -> FilePlace:
        return self.origin.down(node.start_mark.line)

    def _node(self, name: str) -> Any:
        if name not in self.nodes:
            raise self.place.error(f"{self.what} needs `{name}`")
        return self.nodes[name]

    def _list(self, name: str) -> Sequence[Any]:
        node = self._node(name)
        if not isinstance(node, _yaml().SequenceNode) or not node.value:
            raise self.error(name, f"`{name}` is a list: one line for each, beginning with a -")
        items: Sequence[Any] = node.value
        return items

    def _scalar(self, name: str, node: Any) -> str:
        if not isinstance(node, _yaml().ScalarNode) or not node.value.strip():
            fix = "if it has `: ` in it, put it in quotes"
            raise self._at(node).error(f"`{name}` is a text, and not an empty one; {fix}")
        text: str = node.value
        return text.strip("\n")


def _yaml() -> Any:
    """PyYAML, which comes with the extra."""
    try:
        import yaml
    except ModuleNotFoundError as error:
        fix = 'pip install "antorcha[lab]"'
        raise ModuleNotFoundError(f"lessons need PyYAML: {fix}", name="yaml") from error
    return yaml


# ---- Python in a lesson -------------------------------------------------------------------------


def parse_code(place: FilePlace, code: str, mode: Literal["exec", "eval"] = "exec") -> ast.AST:
    """The syntax tree of code that begins at `place`."""
    if not code.strip():
        raise place.error("there is no code here")
    try:
        return ast.parse(code.strip() if mode == "eval" else code, mode=mode)
    except SyntaxError as error:
        at = place.down((error.lineno or 1) - 1)
        raise at.error(f"not Python: {error.msg}: {(error.text or '').strip()}") from error


def check_asserts(place: FilePlace, code: str) -> None:
    """Refuse a check that cannot fail, or that fails without a word to the learner."""
    asserts = [node for node in ast.walk(parse_code(place, code)) if isinstance(node, ast.Assert)]
    if not asserts:
        raise place.error("a check has an assert; without one it cannot fail")
    for node in asserts:
        if node.msg is None:
            at = place.down(node.lineno - 1)
            raise at.error("this assert needs a message: what the learner reads when it fails")
