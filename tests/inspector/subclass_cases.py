"""What test_facts.py runs in a process of its own."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import antorcha as torch
from antorcha.inspector.tensor.facts import gather


class Loud(torch.Tensor):
    """A subclass that hears of every call."""

    heard: list[Any] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.heard.append(func)
        raise AssertionError("asked")


def test_a_subclass_is_not_asked() -> None:
    loud = torch.arange(3.0).as_subclass(Loud)
    facts = gather(loud, names={"loud": loud})
    assert (facts.kind, facts.name, facts.shape) == ("Loud", "loud", (3,))
    assert facts.statistics is not None
    assert Loud.heard == []


def test_a_strange_class_is_escaped() -> None:
    class Odd(torch.Tensor):
        pass

    Odd.__name__ = "<script>alert(1)</script>"
    x = torch.ones(2, 2).as_subclass(Odd)
    inspection = torch.inspect(x)
    for html in (inspection.html(), inspection.html(brief=True), x._repr_html_()):
        assert "<script" not in html
        assert "&lt;script&gt;" in html
        ET.fromstring(html)
    assert "<script>" in str(inspection)


def test_the_short_form_asks_no_subclass() -> None:
    assert "Loud" in torch.arange(3.0).as_subclass(Loud)._repr_html_()
    assert Loud.heard == []


def test_the_text_of_subclasses() -> None:
    class Named(torch.Tensor):
        def __repr__(self) -> str:  # type: ignore[override]
            return "<named>"

    class Broken(torch.Tensor):
        def __repr__(self) -> str:  # type: ignore[override]
            raise ValueError

    def text(x: Any) -> Any:
        return ET.fromstring(x._repr_html_()).findtext("pre")

    assert text(torch.ones(2).as_subclass(Named)) == "<named>"
    assert text(torch.ones(2).as_subclass(Broken)) == "Broken([1., 1.])"
