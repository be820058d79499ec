"""The generated site: it builds without a warning, names everything, and all its links hold."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from antorcha import torch_alias
from antorcha.ops.kinds.record import REGISTRY, Op

pytest.importorskip("sphinx", reason="needs antorcha[docs]")
pytest.importorskip("furo", reason="needs antorcha[docs]")
pytest.importorskip("myst_parser", reason="needs antorcha[docs]")

from tools.reference import check
from tools.reference.guides import USER_GUIDES
from tools.reference.names import ROOT, PublicNames
from tools.reference.pages import tensor_methods
from tools.reference.site import LANGUAGES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with warnings as errors; every example in it has run (in a process of its
    own: what examples define, and who is called ``torch`` meanwhile, is not for other tests)."""
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "tools.reference", str(folder / "site"), str(folder / "work")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-8000:]
    return folder / "site"


@pytest.fixture
def listed() -> Iterator[PublicNames]:
    """All public names, as the site lists them."""
    yield PublicNames()
    torch_alias.uninstall()


def anchors(site: Path) -> set[str]:
    """Every anchor of the reference."""
    pages = (site / "reference").glob("*.html")
    return set().union(*[check.addresses(page).ids for page in pages])


def public_names(op: Op) -> list[str]:
    """The names that users may call a record by."""
    names = [f"torch.{alias}" for alias in op.aliases if "." in alias]
    if op.namespace != "torch":
        names.append(f"torch.{op.namespace}.{op.name.removeprefix(op.namespace + '_')}")
    elif op.is_function and not op.name.startswith("_"):
        names.append(f"torch.{op.name}")
    if op.is_method is True and not op.name.startswith("_"):
        names.append(f"torch.Tensor.{op.name}")
    return names


def test_every_public_op_has_an_entry(site: Path, listed: PublicNames) -> None:
    ops = {id(op): op for op in REGISTRY.values()}.values()
    known = anchors(site)
    names = [name for op in ops for name in public_names(op)]
    assert len(names) > 800
    homes = {name: listed.entries[name].name for name in names if name in listed.entries}
    assert not [name for name in names if homes.get(name, name) not in known]


def test_every_public_name_has_an_entry(site: Path, listed: PublicNames) -> None:
    known = anchors(site)
    listed.pages()
    assert not [entry.name for entry in listed.entries.values() if entry.name not in known]
    assert not [name for name in tensor_methods() if f"torch.Tensor.{name}" not in known]


def test_no_link_is_lost(site: Path) -> None:
    assert len(check.pages(site)) > 200
    assert not check.lost_links(site)


def test_a_lost_link_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a id="x" href="b.html">b</a> <a href="a.html#y">y</a>')
    assert check.lost_links(tmp_path) == ["a.html: b.html", "a.html: a.html#y (no such anchor)"]


def test_the_search_index_is_there(site: Path) -> None:
    for lang in LANGUAGES:
        index = (site if lang == "en" else site / lang) / "searchindex.js"
        assert "tensor" in index.read_text(encoding="utf-8")
    assert "softplus" in (site / "searchindex.js").read_text(encoding="utf-8")


def test_the_examples_stand_with_what_they_print(site: Path) -> None:
    page = site / "reference" / "torch-nn-functional-activation-functions.html"
    text = unescape(re.sub("<[^>]+>", "", page.read_text(encoding="utf-8")))
    assert (
        ">>> torch.nn.functional.softplus(torch.tensor([-1., 2.]))\ntensor([0.3133, 2.1269])"
        in text
    )


def test_an_op_shows_formula_picture_dtypes_and_errors(site: Path) -> None:
    page = site / "reference" / "torch-functions-of-a-number.html"
    text = page.read_text(encoding="utf-8")
    entry = text[text.index('id="torch.lgamma"') : text.index('id="torch.log"')]
    for mark in ("<math", "ref-plot", "<summary>Dtypes", "<summary>Shapes", "transcendental.py"):
        assert mark in entry
    refusing = (site / "reference" / "torch-arithmetic-and-rounding.html").read_text("utf-8")
    assert "do not broadcast" in refusing


def test_nothing_names_the_machine_and_nothing_is_fetched(site: Path) -> None:
    assert not check.machine_paths(site)
    assert not check.outside(site)


def test_user_guides_are_there_in_every_language(site: Path) -> None:
    for lang in LANGUAGES:
        home = site if lang == "en" else site / lang
        assert not [g for g in USER_GUIDES if not (home / "guides" / f"{g}.html").exists()]
