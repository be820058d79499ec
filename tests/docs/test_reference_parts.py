"""The parts that a page of the reference is made of: text, formulas, pictures, trials."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from antorcha.core import dtypes
from antorcha.lang import expr as E
from antorcha.ops.kinds.record import REGISTRY

pytest.importorskip("docutils", reason="needs antorcha[docs]")
pytest.importorskip("yaml", reason="needs antorcha[lab]")

from tools.reference import docstrings, entries, mathml, plots, trials
from tools.reference.families import FAMILIES, family, home_file
from tools.reference.formulas import formula_of
from tools.reference.names import ROOT


def no_link(name: str) -> str | None:
    return None


def test_a_docstring_has_its_lists_and_what_its_example_prints() -> None:
    doc = """Adds ``a`` < 2.

    Args:
        a (int): a number,
            the first
        b, c: others

    >>> torch.tensor([1.]) + 1
    tensor([2.])
    """
    text = docstrings.html(doc, no_link, "here")
    assert "<p>Adds <code>a</code> &lt; 2.</p>" in text
    assert '<dt><code>a</code> <span class="ref-kind">int</span></dt>' in text
    assert "<dd>a number,\nthe first</dd><dt><code>b, c</code></dt>" in text
    plain = re.sub("<[^>]+>", "", text)
    assert "&gt;&gt;&gt; torch.tensor([1.]) + 1\ntensor([2.])" in plain


def test_an_example_that_shows_something_else_is_refused() -> None:
    with pytest.raises(docstrings.ExampleError, match="here: an example"):
        docstrings.html(">>> 1 + 1\n3\n", no_link, "here")


def test_a_name_in_a_docstring_is_a_link() -> None:
    text = docstrings.inline("see ``torch.add`` and ``add``", {"torch.add": "a.html#add"}.get)
    assert text == 'see <a href="a.html#add"><code>torch.add</code></a> and <code>add</code>'


def test_every_formula_is_well_formed() -> None:
    found = {op.name: formula_of(op) for op in REGISTRY.values()}
    formulas = [formula for formula in found.values() if formula is not None]
    assert len(formulas) > 130
    for formula in formulas:
        for expr in (*formula.results, *[g for g in formula.gradients if g is not None]):
            text = mathml.shown(mathml.letter("out"), expr, formula.input_names)
            assert ElementTree.fromstring(text).tag == "math"


def test_formulas_read_as_they_are_written() -> None:
    x, y = E.input_(0, dtypes.float64), E.input_(1, dtypes.float64)
    shown = mathml.shown("z", (x + y) * (x + y) - E.exp(-x), ["input", "other"])
    total = "<mrow><mi>x</mi><mo>+</mo><mi>y</mi></mrow>"
    assert f"<msup><mrow><mrow><mo>(</mo>{total}<mo>)</mo></mrow></mrow><mn>2</mn></msup>" in shown
    assert "<msup><mi>e</mi><mrow><mrow><mo>−</mo><mi>x</mi></mrow></mrow></msup>" in shown


def test_only_functions_of_one_number_have_a_picture() -> None:
    for name, drawn in {"relu": True, "lgamma": True, "add": False, "isnan": False}.items():
        formula = formula_of(REGISTRY[name])
        assert formula is not None
        picture = plots.plot(REGISTRY[name], formula)
        assert bool(picture) is drawn
        assert picture.count("<polyline") >= 2 * drawn


def test_dtypes_shapes_and_errors_are_those_of_the_record() -> None:
    softmax = REGISTRY["softmax"]
    rule = {kind: result for kinds, result in trials.dtype_rule(softmax) for kind in kinds}
    assert rule["float32"] == "the same"
    assert rule["int64"] == trials.REFUSED
    assert ("bool" in [result for _, result in trials.dtype_rule(REGISTRY["eq"])]) is True
    assert ("(3, 4), 1", "(3, 4)") in trials.shapes(softmax)
    assert any([kind == "IndexError" for _, kind, _ in trials.errors(softmax)])


def test_every_record_has_a_file_and_a_family() -> None:
    for op in REGISTRY.values():
        file, line = home_file(op)
        lines = (ROOT / "src" / "antorcha" / file).read_text(encoding="utf-8").splitlines()
        assert 0 < line <= len(lines)
        assert family("torch", op, op) in FAMILIES["torch"]


def test_what_differs_is_told_where_the_op_is() -> None:
    (told,) = entries.differences("torch.nn.functional.hardsigmoid", no_link)
    assert "1 / 6" in told
    assert not [*entries.differences("torch.add", no_link)]
