"""``antorcha.inspect``: its three faces say the same, fit their place, and are safe to show."""

from __future__ import annotations

import base64
import doctest
import io
import re
import struct
import subprocess
import sys
import weakref
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Callable
from typing import Any

import pytest

import antorcha as torch
from antorcha.errors import ArgumentError
from antorcha.inspector import theme
from antorcha.inspector.tensor.inspection import Inspection
from antorcha.inspector.vocabulary import LANGUAGES
from tests.patience import PATIENCE

SVG = "{http://www.w3.org/2000/svg}"


def freed() -> Any:
    x = torch.ones(5)
    x.untyped_storage().resize_(0)
    return x


def with_grad() -> Any:
    x = torch.randn(4, 3, requires_grad=True)
    (x * x).sum().backward()
    return x


CASES: dict[str, Callable[[], Any]] = {
    "matrix": lambda: torch.arange(12.0).view(3, 4),
    "view of a view": lambda: torch.arange(12.0).view(3, 4).t()[1:3],
    "expanded": lambda: torch.ones(3).expand(4, 3),
    "number": lambda: torch.tensor(-1.2345678e-20),
    "nothing": lambda: torch.zeros(2, 0, 3),
    "long name": lambda: torch.zeros(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 12345),
    "large": lambda: torch.zeros(1 << 11, 1 << 11)[:, 1::2],
    "many dims": lambda: torch.randn(2, 3, 4, 5, 6),
    "image": lambda: torch.rand(3, 150, 200),
    "batch": lambda: torch.rand(4, 1, 12, 12),
    "bool": lambda: torch.rand(30) > 0.5,
    "integers": lambda: torch.tensor([2**63 - 1, -(2**63), 0]),
    "complex": lambda: torch.tensor([[1 + 2j, complex("nan")]]),
    "bfloat16": lambda: torch.randn(3, 40).bfloat16(),
    "not finite": lambda: torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -2.5e30]),
    "only nan": lambda: torch.full((3,), float("nan")),
    "extremes": lambda: torch.tensor([1.7e308, -1.7e308], dtype=torch.float64),
    "meta": lambda: torch.ones(2, 3, device="meta"),
    "freed": freed,
    "grad": with_grad,
    "parameter": lambda: torch.nn.Parameter(torch.ones(2, 2)),
    "array": lambda: torch.from_numpy(__import__("numpy").arange(4)),
}  # fmt: skip


def found(case: str, /, **kwargs: Any) -> Inspection:
    torch.manual_seed(0)
    return torch.inspect(CASES[case](), **kwargs)


# ---- text
@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", CASES)
def test_the_text_fits_and_nothing_is_cut(name: str, lang: str) -> None:
    inspection = found(name, lang=lang)
    text = str(inspection)
    assert max(len(line) for line in text.splitlines()) <= 80
    joined = re.sub(r"\s+", "", text)
    for number in (*inspection.facts.shape, *inspection.facts.strides, inspection.facts.offset):
        assert str(number) in joined
    assert inspection.facts.dtype in joined
    assert "{" not in text  # nothing was left to be filled in
    assert not re.search(r"(?m)^\.\.\.$", text)  # no line was broken


def test_the_text_of_a_view() -> None:
    x = torch.arange(12.0).view(3, 4)
    corner = x.t()[1:3]
    lines = str(torch.inspect(corner)).splitlines()
    assert lines[0] == "corner: Tensor  (2, 3) float32 cpu"
    cells = [line.split() for line in lines if line.startswith(("cell ", "value ", "order "))]
    assert cells[:3] == [
        ["cell", *map(str, range(9))],
        ["value", "0.", "[1.]", "[2.]", "3.", "4.", "[5.]", "[6.]", "7.", "8."],
        ["order", "0", "3", "1", "4"],
    ]
    assert any(line.startswith("               x ") for line in lines)  # who shares it


def test_the_text_counts_how_often_a_cell_is_read() -> None:
    windows = torch.arange(5.0).unfold(0, 3, 1)
    lines = str(torch.inspect(windows, name="w")).splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("order"))
    assert lines[at].split() == ["order", "0", "1", "2", "5", "8"]
    assert lines[at + 1].split() == ["times", "1", "2", "3", "2", "1"]
    assert "times" not in str(torch.inspect(windows.contiguous(), name="w"))
    part = str(torch.inspect(torch.arange(48).view(3, 2, 2, 4), name="p"))
    assert "1-2 of 6 matrices" in part  # of those, the text shows two


def test_what_cannot_be_read_is_said() -> None:
    assert "no memory: there are no values" in str(found("meta"))
    assert "The storage has 0 B, the tensor needs 20 B" in str(found("freed"))
    assert "There are no elements" in str(found("nothing"))
    assert "Of a sample: " in str(found("large"))


def test_the_languages_differ() -> None:
    assert "una celda tras otra" in str(found("matrix", lang="es"))
    with pytest.raises(
        ArgumentError, match=r"lang='ess' must be one of en, es\. Did you mean 'es'"
    ):
        found("matrix", lang="ess")


def faces() -> list[Any]:
    """One of each thing that prints itself, with characters that ASCII lacks."""
    x = torch.ones(3, 2, requires_grad=True)
    explained = None
    try:
        x @ x
    except RuntimeError as error:
        explained = torch.explain(error, lang="es")
    model = torch.nn.Sequential(torch.nn.Linear(2, 1))
    named = torch.inspect(x, name="aña→", lang="es")
    with torch.sim.recording() as launches:
        torch.ones(9, device="sim") + 1
    launch = torch.inspect(launches[-1], name="aña→", lang="es")
    return [
        found("many dims"), named, torch.summary(model, (1, 2)), torch.graph(x.sum()), explained,
        launch,
    ]  # fmt: skip


@pytest.mark.parametrize("k", range(6))
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_a_terminal_of_few_characters(
    k: int, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = faces()[k]
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    text = str(shown)
    print(text)
    shown.show()
    assert encoding != "ascii" or text.isascii()
    assert encoding != "utf-8" or text == shown.plain()


def test_rich_shows_it_in_colour() -> None:
    from rich.console import Console

    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system="truecolor")
    console.print(found("matrix"))
    assert isinstance(console.file, io.StringIO)
    assert "\x1b[" in console.file.getvalue()
    assert "\x1b" not in str(found("matrix"))


def test_show_prints(capsys: pytest.CaptureFixture[str]) -> None:
    found("matrix", name="grid").show()
    assert "grid: Tensor" in capsys.readouterr().out


# ---- HTML
@pytest.mark.parametrize("brief", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_the_html_stands_by_itself(name: str, brief: bool) -> None:
    html = found(name).html(brief)
    root = ET.fromstring(html)  # well formed
    assert root.tag == "div"
    assert root.get("class") == "ant ant-inspect"
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert not tags & {"script", "link", "iframe", "object", "use", "foreignObject"}
    for element in root.iter():
        assert not any(key.startswith("on") or key == "href" for key in element.attrib)
        assert element.get("src", "data:").startswith("data:")
    assert "url(" not in html
    assert "@import" not in html
    for picture in root.iter(f"{SVG}svg"):
        assert picture.get("aria-label")
        assert float(picture.get("width", "1e9")) <= 325
    assert len(html) < 150_000


def test_the_html_draws_every_cell() -> None:
    inspection = found("view of a view", name="part")
    root = ET.fromstring(inspection.html())
    (memory,) = [s for s in root.iter(f"{SVG}svg") if s.get("class") == "ant-memory"]
    titles = [title.text for title in memory.iter(f"{SVG}title")]
    assert len(titles) == 12
    assert titles[0] == "cell 0: 0.0; part does not read it"
    assert titles[5] == "cell 5: 5.0; element [0, 1], number 1 in order"
    read = [r for r in memory.iter(f"{SVG}rect") if r.get("class") == "read"]
    assert len(read) == 6
    hops = [p.get("d", "") for p in memory.iter(f"{SVG}path") if p.get("class") == "hop"]
    assert len(hops) == 2  # 0 to 1 and 3 to 4; the third line begins with 2
    ends = [re.findall(r"[\d.]+,", hop) for hop in hops]
    width = 320 / 8
    assert [(float(e[0][:-1]) // width, float(e[-1][:-1]) // width) for e in ends] == [
        (1, 5), (2, 6),
    ]  # fmt: skip
    labels = [t.text for t in memory.iter(f"{SVG}text") if t.get("class") == "dim"]
    assert labels == ["dim 0: +1", "dim 1: +4"]


def test_the_heat_map_says_exact_numbers() -> None:
    root = ET.fromstring(torch.inspect(torch.tensor([[0.1, -3.0]]), name="x").html())
    titles = {title.text for title in root.iter(f"{SVG}title")}
    assert {"[0, 0]: 0.1", "[0, 1]: -3.0"} <= titles
    cells = [r for r in root.iter(f"{SVG}rect") if (r.get("class") or "").startswith("heat ")]
    assert [r.get("class") for r in cells[:2]] == ["heat p", "heat n"]
    weak, strong = [float(r.get("fill-opacity", "0")) for r in cells[:2]]
    assert 0 < weak < strong < 1


def plane(image: ET.Element) -> list[int]:
    """The grey values of a PNG in an ``<image>``."""
    data = base64.b64decode((image.get("href") or "").removeprefix("data:image/png;base64,"))
    width, height = struct.unpack(">II", data[16:24])
    (length,) = struct.unpack(">I", data[33:37])
    rows = zlib.decompress(data[41 : 41 + length])
    assert len(rows) == height * (width + 1)
    return [grey for k in range(height) for grey in rows[k * (width + 1) + 1 :][:width]]


def test_a_map_of_many_cells_is_a_picture_in_the_theme_s_colours() -> None:
    x = torch.zeros(20, 20)
    x[0, 0], x[1, 2], x[19, 19] = 2.0, -1.0, float("nan")
    html = torch.inspect(x, name="x").html()
    assert len(html) < 40_000
    root = ET.fromstring(html)
    planes = {image.get("id", "")[4]: plane(image[0]) for image in root.iter(f"{SVG}mask")}
    assert {colour: [(k, v) for k, v in enumerate(found) if v]
            for colour, found in planes.items()} == {
        "p": [(0, 255)], "n": [(22, 128)], "x": [(399, 255)],
    }  # fmt: skip
    painted = [r for r in root.iter(f"{SVG}rect") if r.get("mask")]
    assert [r.get("class") for r in painted] == ["p", "n", "x"]
    assert [r.get("mask") for r in painted] == [
        f"url(#{mask.get('id')})" for mask in root.iter(f"{SVG}mask")
    ]
    narrow = ET.fromstring(torch.inspect(torch.ones(30, 8), name="x").html())
    numbers = [t for t in narrow.iter(f"{SVG}text") if (t.get("class") or "").startswith("number")]
    assert len(numbers) == 240  # what is written in wide cells stays


def test_the_short_form_of_a_long_one() -> None:
    inspection = found("large")
    assert len(inspection.html(brief=True)) < 40_000
    root = ET.fromstring(inspection.html(brief=True))
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert titles[:2] == ["[0, 0]: 0.0", "[0, 96]: 0.0"]
    assert "of every 192 rows and 96 columns one is shown" in inspection.html(brief=True)


def test_large_numbers_are_written_with_spaces() -> None:
    html = found("large").html()
    assert "2\N{NO-BREAK SPACE}097\N{NO-BREAK SPACE}152 " in html
    assert "\N{REPLACEMENT CHARACTER}" not in html


def test_strange_names_are_escaped() -> None:
    inspection = torch.inspect(torch.ones(2, 4)[:, :2], name="<img src=x>&", axes=("<b>", '"'))
    for html in (inspection.html(), inspection.html(brief=True)):
        assert "<img src=x" not in html
        assert '<b>"' not in html
        ET.fromstring(html)


def test_a_picture_has_its_pixels_and_says_what_is_left_out() -> None:
    html = found("image").html()
    assert 'src="data:image/png;base64,' in html
    assert "200 x 150 pixels; of every 2 x 2 pixels one is shown" in html
    assert "number 0 of the batch" in found("batch").html()


def test_the_themes_have_the_same_colours() -> None:
    assert list(theme.LIGHT) == list(theme.DARK)
    style = theme.style()
    used = set(re.findall(r"var\(--ant-(\w+)\)", found("matrix").html()))
    assert used <= set(theme.LIGHT)
    assert "prefers-color-scheme:dark" in style
    assert '[data-theme="dark"] .ant' in style


def _luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    r, g, b = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@pytest.mark.parametrize("colours", [theme.LIGHT, theme.DARK])
def test_text_can_be_read(colours: dict[str, str]) -> None:
    # WCAG 2.2, 1.4.3: a contrast of 4.5 at least.
    for ink in ("fg", "muted", "accent", "negative"):
        for paper in ("bg", "panel"):
            light, dark = sorted(map(_luminance, (colours[ink], colours[paper])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, paper)
    light, dark = sorted(map(_luminance, (colours["fg"], colours["soft"])), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


# ---- the short form
@pytest.mark.parametrize("name", CASES)
def test_a_notebook_shows_the_short_form(name: str) -> None:
    torch.manual_seed(0)
    x = CASES[name]()
    html = x._repr_html_()
    assert str(x.dtype).removeprefix("torch.") in html
    assert len(html) < 50_000


@pytest.mark.parametrize("name", CASES)
def test_the_printed_text_stands_above_the_picture(name: str) -> None:
    torch.manual_seed(0)
    x = CASES[name]()
    html = ET.fromstring(x._repr_html_())
    try:
        printed = [repr(x)]
    except IndexError:  # (its memory is freed)
        printed = []
    assert [pre.text for pre in html.iter("pre")] == printed
    kinds = [element.tag.removeprefix(SVG) for element in html.iter()]
    pictures = [kinds.index(kind) for kind in ("svg", "img") if kind in kinds]
    assert all(kinds.index("pre") < at for at in pictures)


def test_long_texts_are_cut() -> None:
    torch.set_printoptions(threshold=10**6)
    try:
        text = ET.fromstring(torch.zeros(20_000)._repr_html_()).findtext("pre")
    finally:
        torch.set_printoptions(profile="default")
    assert text is not None
    assert len(text) == 20_000


def test_the_short_form_names_the_node() -> None:
    x = torch.ones(2, requires_grad=True)
    assert "grad_fn=ExpBackward0" in x.exp()._repr_html_()
    assert "requires_grad" in x._repr_html_()


def test_the_short_form_looks_at_little(monkeypatch: pytest.MonkeyPatch) -> None:
    from antorcha.inspector import reading

    seen: list[int] = []
    block = reading.Elements.block

    def watched(self: Any, shape: Any, strides: Any, first: int) -> Any:
        got = block(self, shape, strides, first)
        seen.append(got.size)
        return got

    monkeypatch.setattr(reading.Elements, "block", watched)
    torch.zeros(1 << 11, 1 << 11)._repr_html_()
    assert 0 < sum(seen) < 1 << 16


# ---- names, life, refusals
def test_the_callers_names_are_found_in_a_function() -> None:
    x = torch.arange(4.0)
    half = x[2:]
    inspection = torch.inspect(half)
    assert inspection.facts.name == "half"
    assert [s.name for s in inspection.facts.sharing.others] == ["x"]


def test_an_inspection_keeps_nothing_alive() -> None:
    x = torch.arange(4.0)
    half = x[2:]
    refs = [weakref.ref(x), weakref.ref(half)]
    inspection = torch.inspect(half)
    del x, half
    assert [ref() for ref in refs] == [None, None]
    assert "half" in str(inspection)


@pytest.mark.parametrize("wrong", [None, 1, [1.0], "x"])
def test_what_is_no_tensor_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"inspect: a tensor is needed, not \w+; torch.as_tensor"):
        torch.inspect(wrong)


def test_the_three_faces_say_the_same() -> None:
    inspection = found("grad", name="w")
    facts = inspection.as_dict()
    mean = f"{facts['statistics']['mean']:.5g}"
    assert mean in str(inspection)
    assert mean in inspection.html()


def test_nothing_of_it_is_imported_with_antorcha() -> None:
    code = (
        "import sys, antorcha; antorcha.ones(2) + 1; "
        "print([m for m in sys.modules if m.startswith(('antorcha.inspector', 'rich', 'scipy'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert done.stdout.strip() == "[]"


def test_examples_in_docstrings() -> None:
    from antorcha.inspector.tensor import inspection, svg

    names = {"torch": torch}
    for module in (inspection, svg):
        assert doctest.testmod(module, extraglobs=names).failed == 0


def test_text_is_text_in_a_notebook_too(monkeypatch: pytest.MonkeyPatch) -> None:
    import rich.console

    shown: list[Any] = []
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda *args: shown.append(args))
    for face in faces():
        assert len(face.plain()) > 50
    assert not shown


def test_no_style_reaches_another_picture() -> None:
    """Notebooks have many on one page: each rule names the picture that it is for."""
    html = "".join(face.html() for face in faces())
    html += torch.inspect(torch.ones(2), name="x").html(brief=True)
    for sheet in set(re.findall("<style>(.*?)</style>", html, re.DOTALL)):
        own = sheet.partition(theme.COLOURS + theme.TYPE)[2]
        for selectors in re.findall(r"([^{}]+)\{[^{}]*\}", own):
            for selector in re.split(r",(?![^(]*\))", selectors):
                assert re.search(r"\.ant-|\.ant (mark|h3|code\.fix)", selector), selector
