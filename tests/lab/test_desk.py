"""The lab's page as a desk: what lies where, what is remembered, and that it speaks Spanish."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="needs antorcha[lab]")

from antorcha.inspector.explain.words import ExplainWords
from antorcha.inspector.graph.words import GraphWords
from antorcha.inspector.tensor.words import WordTable
from antorcha.inspector.vocabulary import Vocabulary
from antorcha.lab.check import CheckWords
from antorcha.lab.layout import SPLITS
from antorcha.lab.lesson import find
from antorcha.lab.words import HEADLINES, LabWords
from antorcha.lab.workplace import MEMORY
from antorcha.profiler.flame import FlameWords
from tests.lab.learner import AGAIN, Lab, Learner

pytestmark = [pytest.mark.slow, AGAIN]
MANY = "import torch\n" + "".join([f"t{k} = torch.rand({k + 2}, 3)\n" for k in range(9)])
MISTAKES = {
    "C = A @ B": "import torch\nA = torch.ones(3, 2)\nB = torch.ones(3, 2)\nC = A @ B\n",
    "x + y": "import torch\nx = torch.ones(3, 2)\ny = torch.ones(3)\nz = x + y\n",
    "view": "import torch\nx = torch.ones(3, 2).t()\ny = x.view(6)\n",
    "Linear": "import torch\nlayer = torch.nn.Linear(4, 2)\ny = layer(torch.ones(3, 5))\n",
    "name": "import torch\nvalues = torch.ones(2)\nprint(valeus)\n",
}


def box(learner: Learner, selector: str) -> dict[str, float]:
    found = learner.page.locator(selector).first.bounding_box()
    return dict(found) if found else {"x": 0, "y": 0, "width": 0, "height": 0}


def is_within(learner: Learner, inner: str, outer: str, least: float = 20) -> bool:
    """Are at least so many pixels of it (all, if it is less high) to be seen in that part?"""
    one, other = box(learner, inner), box(learner, outer)
    seen = min(one["y"] + one["height"], other["y"] + other["height"]) - max(one["y"], other["y"])
    return seen >= min(least, one["height"]) > 0


def is_all_within(learner: Learner, inner: Any, outer: str) -> bool:
    one, other = inner.bounding_box(), box(learner, outer)
    return one is not None and other["y"] <= one["y"] <= one["y"] + one["height"] <= (
        other["y"] + other["height"]
    )


# ---- what lies where ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t0", "t4", "t6", "t8"])
def test_an_opened_tensor_is_seen_however_many_there_are(learner: Learner, name: str) -> None:
    if name == "t0":
        learner.run(MANY)
    panel = ".lab-panel:visible"
    learner.page.click(f".lab-row:has(b:text-is('{name}'))")
    learner.until(lambda: f"{name}: Tensor" in learner.page.inner_text(".lab-detail"), "it")
    learner.until(lambda: is_within(learner, ".lab-detail", panel, 180), "its inside, in view")
    assert is_within(learner, ".lab-row-open", panel)
    rows = [row["name"] for row in [{"name": each} for each in learner.rows()]]
    assert rows == [f"t{k}" for k in range(9)]
    row, detail = box(learner, ".lab-row-open"), box(learner, ".lab-detail")
    assert 0 <= detail["y"] - row["y"] - row["height"] < 20


def test_a_part_in_full_shows_rows_and_the_opened_tensor_side_by_side(learner: Learner) -> None:
    learner.run(MANY)
    inside = learner.page.locator(".lab-inside")
    inside.get_by_role("button", name="Show this part in full").click()
    learner.until(lambda: box(learner, ".lab-inside")["width"] == 1280, "the inspector in full")
    learner.page.click(".lab-row:has(b:text-is('t7'))")
    learner.until(lambda: "t7: Tensor" in learner.page.inner_text(".lab-detail"), "t7")

    def is_beside() -> bool:
        row, detail = box(learner, ".lab-row-open"), box(learner, ".lab-detail")
        return detail["x"] >= row["x"] + row["width"] and detail["y"] < 120

    learner.until(is_beside, "the opened tensor beside the rows")
    learner.page.reload()
    learner.page.wait_for_selector(".lab-row")
    learner.until(lambda: box(learner, ".lab-inside")["width"] == 1280, "still in full")
    learner.page.locator(".lab-inside").get_by_role("button", name="Show all parts").click()
    learner.until(learner.page.locator(".cm-content").is_visible, "the editor again")


def test_an_error_lets_the_inspector_be_seen(learner: Learner) -> None:
    edit = learner.page.locator(".lab-edit")
    edit.get_by_role("button", name="Show this part in full").click()
    learner.until(lambda: box(learner, ".lab-edit")["width"] == 1280, "the editor in full")
    learner.write(MISTAKES["C = A @ B"])
    learner.page.wait_for_timeout(500)
    learner.page.keyboard.press("Control+Enter")
    learner.until(learner.page.locator(".lab-why").is_visible, "what went wrong")


@pytest.mark.parametrize("name", MISTAKES)
def test_the_fix_is_seen_without_scrolling(learner: Learner, name: str) -> None:
    learner.run(MISTAKES[name], ends="ended with an error")
    fix = learner.page.locator(".lab-why .lab-fix code").first
    learner.until(lambda: fix.count() and is_all_within(learner, fix, ".lab-panel:visible"), "fix")
    assert learner.page.locator(".lab-why code.fix").first.is_hidden()  # it stands there once


def test_lines_are_dragged_and_stay_where_they_were_left(lab: Lab, learner: Learner) -> None:
    page = learner.page

    def drag(name: str, right: float, down: float) -> None:
        line = box(learner, f".lab-split-{name}")
        x, y = line["x"] + line["width"] / 2, line["y"] + line["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + right / 2, y + down / 2)
        page.mouse.move(x + right, y + down)
        page.mouse.up()

    before = {name: box(learner, f".lab-{name}") for name in ("lesson", "edit", "below")}
    drag("lesson", -128, 0)
    drag("rows", 0, -100)
    drag("low", 100, 0)
    after = {name: box(learner, f".lab-{name}") for name in before}
    assert before["lesson"]["width"] - after["lesson"]["width"] == pytest.approx(128, abs=8)
    assert before["edit"]["height"] - after["edit"]["height"] == pytest.approx(100, abs=8)
    assert after["below"]["width"] > before["below"]["width"] + 100
    memory = lab.folder / MEMORY
    kept = lambda: set(SPLITS) <= set(json.loads(memory.read_text()).get("layout", {}))  # noqa: E731
    learner.until(kept, "the layout, remembered")
    page.reload()
    page.wait_for_selector(".cm-content")
    for name, was in after.items():
        learner.until(lambda name=name, was=was: abs(box(learner, f".lab-{name}")["width"]
                      - was["width"]) < 3, f"{name} as it was")  # fmt: skip
    page.wait_for_timeout(500)
    line = page.locator(".lab-split-lesson")
    line.focus()
    width = box(learner, ".lab-lesson")["width"]
    page.keyboard.press("ArrowRight")
    learner.until(lambda: box(learner, ".lab-lesson")["width"] > width + 10, "a step by a key")
    drag("lesson", -2000, 0)
    assert box(learner, ".lab-lesson")["width"] > 200
    for name in SPLITS:
        page.locator(f".lab-split-{name}").dblclick()
    usual = 12.80 * SPLITS["lesson"].usual
    learner.until(lambda: abs(box(learner, ".lab-lesson")["width"] - usual) < 10, "as usual")


# ---- the terminal -------------------------------------------------------------------------------


def test_no_number_is_broken_and_programs_know_the_width(learner: Learner) -> None:
    code = (
        "import shutil, torch\n"
        "print('columns', shutil.get_terminal_size().columns)\n"
        "print(torch.full((20,), 1234.5678))\n"
        "torch.set_printoptions(linewidth=200)\n"
        "print(torch.full((20,), 1234.5678))\n"
    )
    learner.run(code)
    shown = learner.terminal().splitlines()
    assert "columns 80" in shown
    widths = [len(line) for line in shown if "1234.5677" in line]
    assert max(widths) > 180
    assert all("." not in line[-1:] for line in shown if "1234" in line)
    assert sum([line.count("1234.5677") for line in shown]) == 40
    terminal = learner.page.locator(".lab-terminal")
    assert terminal.evaluate("each => each.scrollWidth > each.clientWidth + 100")
    learner.run("import os\nprint('kept')\nos._exit(3)\n", ends="exit code 3")
    assert learner.ended("kept")
    learner.page.wait_for_timeout(300)
    own = [line for line in learner.terminal().splitlines() if "safe" in line or "crashed" in line]
    room = terminal.evaluate("each => each.clientWidth") / 7.8
    assert all(len(line) <= room + 1 for line in own), own


def test_the_last_line_is_followed_until_somebody_scrolls(learner: Learner) -> None:
    viewport = learner.page.locator(".lab-terminal .xterm-viewport")
    learner.run("for k in range(200):\n    print('line', k)\n")
    viewport.evaluate("each => { each.scrollTop = 0; }")  # as browsers do of their own accord
    learner.until(lambda: "line 199" in learner.terminal(), "the last line again")
    learner.write("import time\nfor k in range(40):\n    print('slow', k)\n    time.sleep(0.1)\n")
    learner.press_run()
    learner.until(lambda: "slow 5" in learner.terminal(), "the first lines")
    learner.page.hover(".lab-terminal", force=True)
    learner.page.mouse.wheel(0, -1500)
    learner.until(lambda: "slow 5" not in learner.terminal(), "older lines")
    read = learner.terminal()
    learner.page.wait_for_timeout(1000)
    assert learner.terminal() == read  # what is being read stays
    learner.run("print('anew')\n")
    assert learner.ended("anew")


def test_a_wide_terminal_says_so(learner: Learner) -> None:
    learner.write("import shutil\nprint('columns', shutil.get_terminal_size().columns)\n")
    below = learner.page.locator(".lab-below")
    below.get_by_role("button", name="Show this part in full").click()
    learner.until(lambda: box(learner, ".lab-below")["width"] == 1280, "the terminal in full")
    learner.page.wait_for_timeout(800)
    learner.press_run()
    learner.until(lambda: learner.ended("Done in"), "the end")
    columns = int(re.findall(r"columns (\d+)", learner.terminal())[-1])
    assert 140 < columns < 170
    below.get_by_role("button", name="Show all parts").click()
    learner.until(learner.page.locator(".cm-content").is_visible, "the editor again")


# ---- beginning again ----------------------------------------------------------------------------


def test_the_starter_code_comes_back_and_the_learner_s_is_kept(lab: Lab, learner: Learner) -> None:
    learner.write("mine = 'precious'\n")
    learner.reset("Starter code")
    learner.until(lambda: learner.text().startswith("import antorcha as torch"), "the beginning")
    learner.until(lambda: "kept in fundamentals_1.py" in learner.page.inner_text("body"), "a word")
    assert (lab.folder / "fundamentals_1.py").read_text() == "mine = 'precious'\n"
    learner.write("second = 2\n")
    learner.reset("Starter code")
    learner.until(lambda: learner.text().startswith("import antorcha as torch"), "the beginning")
    assert (lab.folder / "fundamentals_2.py").read_text() == "second = 2\n"
    learner.reset("Your text again")
    learner.until(lambda: learner.text().startswith("second"), "the learner's text")
    assert not (lab.folder / "fundamentals_3.py").exists()


# ---- trainings ----------------------------------------------------------------------------------


def test_successive_trainings_are_separate_curves(learner: Learner) -> None:
    learner.run(
        "import torch\ndef train(rate):\n    w = torch.zeros(3, requires_grad=True)\n"
        "    for step in range(40):\n        loss = ((w - 1) ** 2).sum() + 0.123\n"
        "        loss.backward()\n        with torch.no_grad():\n            w -= rate * w.grad\n"
        "        w.grad = None\nfor rate in (0.3, 0.1, 0.01):\n    train(rate)\n"
    )
    learner.tab("Loss")
    curves = learner.page.locator(".lab-curves")
    learner.until(lambda: "loss 3: 40 steps" in curves.inner_text(), "three curves")
    learner.until(lambda: curves.locator("polyline").count() == 3, "three lines")
    marks = curves.locator("svg > text.lab-mark").all_text_contents()
    values = [float(mark) for mark in marks if re.fullmatch(r"[\d.]+", mark)]
    assert len(values) >= 7
    assert any("loss" in mark for mark in marks)
    titles = curves.locator(".lab-point title").all_text_contents()
    assert any(re.fullmatch(r"loss 2: [\d.]+ \(step \d+\)", title) for title in titles)
    learner.tab("Tensor inspector")


# ---- where one is -------------------------------------------------------------------------------


def test_the_menu_says_where_one_is_how_far_and_how_long(lab: Lab, learner: Learner) -> None:
    page = learner.page
    quiz = page.locator(".lab-quiz", has_text="CUDA").first
    quiz.get_by_role("button", name="An error, because").click()
    bar = page.locator(".lab-lesson-bar")
    learner.until(lambda: re.search(r"1 of \d questions", bar.inner_text()), "how far")
    learner.button("Lessons and files").click()
    menu = page.locator(".lab-menu:visible")
    learner.until(lambda: "0 of 23 lessons done" in menu.inner_text(), "the course")
    here = menu.locator("[aria-current=page]")
    assert here.count() == 1
    assert re.search(r"You are here · 20 min · 1 of \d questions", here.inner_text())
    assert "Lesson 1 of 23" in page.inner_text(".lab-header")
    menu.get_by_text("2. Inside a tensor").click()
    page.wait_for_url("**/lesson/memory**")
    page.wait_for_selector(".cm-content")
    kept = lambda: json.loads((lab.folder / MEMORY).read_text())["last"]  # noqa: E731
    learner.until(lambda: kept() == "/lesson/memory", "the last lesson")


def test_a_lesson_has_a_table_of_contents(learner: Learner) -> None:
    page = learner.page
    learner.button("Contents").click()
    menu = page.locator(".lab-menu:visible")
    headings = page.locator(".lab-text > .nicegui-markdown h2").all_inner_texts()
    assert len(headings) > 3

    def listed() -> list[str]:
        titles = [text.strip() for text in menu.locator(".q-item").all_inner_texts()]
        return [title for title in titles if title in headings]

    learner.until(lambda: listed() == headings, "every part's heading")
    last = page.locator(".lab-text > .nicegui-markdown h2").last
    menu.get_by_text(headings[-1], exact=True).click()
    learner.until(lambda: is_all_within(learner, last, ".lab-reader"), "the last part")
    learner.button("Contents").click()
    page.locator(".lab-menu:visible").get_by_text("Challenge:").click()
    learner.until(lambda: is_within(learner, ".lab-challenge", ".lab-reader", 100), "the challenge")


def test_the_lab_opens_where_one_was(lab: Lab, learner: Learner) -> None:
    other = Lab(lab.folder, "")
    try:
        assert "/lesson/memory?" in other.address
    finally:
        other.close()
    learner.page.goto(re.sub(r"(?<=\d)/.*", "/", learner.page.url))
    learner.page.wait_for_url("**/lesson/memory**")
    learner.page.wait_for_selector(".cm-content")


# ---- the way in ---------------------------------------------------------------------------------


def test_without_the_key_a_page_explains_and_lets_in(
    lab: Lab, learner: Learner, context: Any
) -> None:
    address = lab.read(r"http://\S+token=\S+")
    context.clear_cookies()
    page = context.new_page()
    page.set_extra_http_headers({"Accept-Language": "es-ES,es;q=0.9"})
    plain = re.sub(r"(?<=\d)/.*", "/lesson/memory", address)
    answer = page.goto(plain)
    assert answer.status == 403
    assert "Esta página necesita su llave" in page.inner_text("h1")
    assert lab.read(r"http://\S+token=\S+") == address  # it is shown in the terminal once more
    page.goto(plain + "?lang=en")
    assert "This page needs its key" in page.inner_text("h1")
    read = "getComputedStyle(document.querySelector('button')).color"
    assert page.evaluate(read) == "rgb(255, 255, 255)"  # its style is applied
    page.fill("input", "http://127.0.0.1/?token=wrong")
    page.click("button")
    page.wait_for_selector(".wrong")
    page.fill("input", address)
    page.click("button")
    page.wait_for_selector(".cm-content")
    page.close()


# ---- Spanish ------------------------------------------------------------------------------------

TABLES: list[type[Vocabulary]] = [
    LabWords, WordTable, GraphWords, ExplainWords, CheckWords, FlameWords
]  # fmt: skip
ENGLISH = re.compile(
    r"\b(the|of|and|with|is|are|not|this|that|from|by|for|was|were|has|have|your|you|it|"
    r"which|what|when|where|every|all|more|than|step of|an|line|calls?|value|values|show|done)\b",
    re.IGNORECASE,
)
READ = """() => {
  const found = [];
  // Programs and what they print, Python's own messages, lessons; the framework's popup, which is
  // never shown.
  const skip = ".cm-content, .xterm-rows, .lab-output, .xterm, .lab-text .nicegui-markdown," +
    "pre, code, style, script, .lab-language, .lab-brand, .q-icon, .lab-why .ant h3, #popup, " +
    ".cm-tooltip-autocomplete";
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (!parent || parent.closest(skip)) continue;
    const text = walker.currentNode.textContent.trim();
    if (text) found.push(text);
  }
  for (const each of document.querySelectorAll("*"))
    for (const name of ["aria-label", "title", "placeholder", "alt"]) {
      if (each.closest("svg.ant-shapes")) continue;  // shapes as text
      const text = each.getAttribute(name);
      if (text) found.push(text);
    }
  return found;
}"""


def english_templates() -> list[re.Pattern[str]]:
    """What the page would say in English, of all that it says otherwise in Spanish."""
    pairs = [pair for table in TABLES for pair in table.table.values()] + [*HEADLINES.values()]
    found = []
    for english, spanish in pairs:
        if english != spanish and len(re.sub(r"\{[^}]*\}|\W", "", english)) > 3:
            pattern = re.sub(r"\\\{[^}]*\\\}", ".+", re.escape(english))
            found.append(re.compile(pattern))
    return found


def test_in_spanish_every_word_is_spanish(lab: Lab, learner: Learner) -> None:
    page = learner.page
    templates = english_templates()
    spanish = {text for pair in [pair for table in TABLES for pair in table.table.values()]
               for text in pair[1:]}  # fmt: skip
    problems: dict[str, str] = {}

    def look(state: str) -> None:
        page.wait_for_timeout(600)
        for text in page.evaluate(READ):
            text = re.sub(r"`[^`]*`|\bloss\b", "", text)  # code, and the program's own name
            if text in spanish:
                continue
            wrong = next((each.pattern for each in templates if each.fullmatch(text)), None)
            word = ENGLISH.search(text)
            if wrong or word:
                problems[text[:120]] = f"{state}: {wrong or word[0]}"

    base = re.sub(r"(?<=\d)/.*", "", page.url)
    page.goto(f"{base}/lesson/fundamentals?lang=en")
    page.wait_for_selector(".cm-content")
    learner.until(lambda: learner.terminal(), "the terminal")
    learner.run(MISTAKES["C = A @ B"], ends="ended with an error")
    page.goto(f"{base}/lesson/fundamentals?lang=es")  # what was said in English is said anew
    page.wait_for_selector(".cm-content")
    learner.until(lambda: "Terminó con un error" in learner.terminal(), "the terminal, in Spanish")
    assert "Done" not in learner.terminal()
    assert "ended" not in learner.terminal()
    why = page.locator(".lab-why")
    learner.until(lambda: "Qué ha fallado: las formas no encajan" in why.inner_text(), "a headline")
    learner.until(lambda: "Arreglo" in why.inner_text(), "the fix")
    look("error")
    learner.run(MANY + "x = torch.ones(2, requires_grad=True)\nloss = (x * 2).sum()\n", "Hecho en")
    page.click(".lab-row:has(b:text-is('t1'))")
    learner.until(lambda: page.inner_text(".lab-detail"), "the opened tensor")
    look("a tensor")
    learner.tab("Grafo")
    learner.until(lambda: page.locator(".lab-graph svg").count(), "the graph")
    look("graph")
    learner.run("for step in range(30):\n    loss = 1 / (1 + step)\n", "Hecho en")
    learner.tab("Pérdida")
    learner.until(lambda: page.locator(".lab-curve polyline").count(), "the curve")
    look("loss")
    learner.write(MANY + "y = t1.tanh().sum().item()\n")
    learner.tab("Perfilador")
    learner.rest()
    learner.button("Ejecutar y medir").click()
    learner.until(lambda: "aten::tanh" in page.inner_text(".lab-profile"), "the profile")
    assert "(midiendo)" in learner.terminal()
    look("profile")
    learner.button("Lecciones y archivos").click()
    look("menu")
    page.keyboard.press("Escape")
    learner.button("Contenido").click()
    look("contents")
    page.keyboard.press("Escape")
    learner.button("Reiniciar").click()
    look("reset")
    page.keyboard.press("Escape")
    page.click(".cm-content")
    page.keyboard.press("Control+f")
    page.wait_for_selector(".cm-search")
    look("search")
    page.keyboard.press("Escape")
    quiz = page.locator(".lab-quiz .lab-option").first
    quiz.click()
    page.locator(".lab-challenge").get_by_role("button", name="Abrir en el editor").click()
    learner.rest()
    page.locator(".lab-challenge").get_by_role("button", name="Comprobar").click()
    learner.until(lambda: page.locator(".lab-verdict").first.inner_text(), "a verdict")
    look("challenge")
    learner.run("import os\nos._exit(4)\n", ends="código de salida 4")
    learner.write("input('¿? ')\n")
    learner.press_run()
    page.get_by_label("El programa espera una línea").wait_for()
    look("input")
    learner.button("Parar").click()
    learner.until(lambda: learner.ended("Parado."), "Parado.")
    assert not problems, json.dumps(problems, indent=1, ensure_ascii=False)
    assert find("fundamentals", "es").title in page.inner_text(".lab-header")
