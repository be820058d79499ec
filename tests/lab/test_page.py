"""The lab as a learner uses it, in a browser."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

psutil = pytest.importorskip("psutil", reason="needs antorcha[lab]")
pytest.importorskip("nicegui", reason="needs antorcha[lab]")

from antorcha.inspector.theme import DARK, LIGHT  # noqa: E402
from tests.lab.learner import AGAIN, PATIENCE, Lab, Learner  # noqa: E402

pytestmark = [pytest.mark.slow, AGAIN]
TEMPS = ".lab-row:has(b:text-is('temps'))"
RUNS = int(os.environ.get("ANTORCHA_LAB_RUNS", "20"))


def test_the_page_opens_and_the_token_is_used_up(lab: Lab, learner: Learner) -> None:
    learner.until(lambda: learner.terminal() == '> Ready. Click "Run" to execute.', "Ready")
    assert "Run code to inspect active tensors" in learner.page.inner_text(".lab-inside")
    assert "token" not in learner.page.url
    assert lab.read(r"http://\S+token=\S+") != lab.address
    cookies = learner.page.context.cookies()
    assert [(c["httpOnly"], c["sameSite"]) for c in cookies] == [(True, "Strict")]


def test_fundamentals_runs_and_its_tensors_show(lab: Lab, learner: Learner) -> None:
    assert learner.button("Run").is_enabled()
    assert learner.text().startswith("import antorcha as torch")
    learner.button("Run").click()
    learner.until(lambda: learner.ended("Done in"), "the end")
    assert "> python fundamentals.py\ntensor([[11.0000, 14.5000, 21.0000, 17.5000]," in (
        learner.terminal()
    )
    row = learner.row("temps")
    assert "(3, 4)" in row
    assert "float32 · cpu" in row
    assert "11, 14.5, 21, 17.5" in row
    learner.page.click(TEMPS)
    detail = learner.until(lambda: learner.page.inner_text(".lab-detail"), "the opened tensor")
    for fact in ("(3, 4)", "float32", "(4, 1)"):
        assert fact in detail
    learner.page.click(TEMPS)
    learner.until(lambda: not learner.page.inner_text(".lab-detail"), "closing")


def test_tensors_on_two_devices_are_explained(learner: Learner) -> None:
    learner.run(
        "import torch\nA = torch.ones(2, 3)\nB = torch.ones(2, 3, device='meta')\nC = A + B\n",
        ends="ended with an error",
    )
    learner.until(lambda: learner.marked() == ["A + B"], "the mark under the error")
    why = learner.page.locator(".lab-why")
    for word in ("What went wrong", "cpu", "meta", "A", "B"):
        learner.until(lambda word=word: word in why.inner_text(), word)


def test_inner_sizes_that_differ_are_explained(learner: Learner) -> None:
    learner.run(
        "import torch\nA = torch.ones(3, 2)\nB = torch.ones(3, 2)\n\nC = A @ B\n",
        ends="ended with an error",
    )
    learner.until(lambda: learner.marked() == ["A @ B"], "the mark under the error")
    assert "ShapeError: matmul: (3, 2) @ (3, 2)" in learner.terminal().replace("\n", " ")
    why = learner.page.locator(".lab-why")
    learner.until(lambda: "(3, 2)" in why.inner_text(), "the explanation")
    learner.write("import torch\nA = torch.ones(3, 2)\nB = torch.ones(3, 2)\n\nC = A @ B.T\n")
    learner.press_run()
    learner.until(lambda: "C" in learner.rows(), "the mended program's result")
    learner.until(lambda: learner.marked() == [], "no mark")
    learner.until(lambda: not why.is_visible(), "no explanation")


def test_the_quiz_says_why(learner: Learner) -> None:
    quiz = learner.page.locator(".lab-quiz", has_text="CUDA").first
    quiz.get_by_role("button", name="moved to the CUDA device").click()
    learner.until(lambda: quiz.locator(".lab-reason").inner_text().startswith("No."), "No.")
    assert quiz.locator(".lab-option.lab-wrong").count() == 1
    quiz.get_by_role("button", name="An error, because").click()
    learner.until(lambda: quiz.locator(".lab-reason").inner_text().startswith("Right."), "Right.")


def test_the_challenge_is_passed_step_by_step(lab: Lab, learner: Learner) -> None:
    challenge = learner.page.locator(".lab-challenge")
    challenge.get_by_role("button", name="Open in the editor").click()
    learner.until(lambda: "F_all" in learner.text(), "the challenge's beginning")
    start = learner.text()

    def verdict(step: int) -> str:
        return str(challenge.locator(".lab-verdict").nth(step).inner_text())

    def check(text: str, step: int, says: str) -> None:
        learner.write(text)
        learner.rest()
        challenge.get_by_role("button", name="Check").click()
        learner.until(lambda: says in verdict(step), says)

    check(start, 0, "F_new")
    challenge.get_by_role("button", name="Hint").first.click()
    learner.until(lambda: challenge.locator(".lab-hints p").count() == 1, "a hint")
    check(start + "\nF_new = F.view(-1, 1)", 0, "(10, 1): that is a column")
    done = start + "\nF_new = F.view(1, -1)\noutput = F_new @ W"
    check(done, 2, "F_flat")
    learner.until(lambda: verdict(1) == "Right.", "Right.")
    check(done + "\nF_flat = F_all.reshape(50)", 2, "Right.")
    learner.until(lambda: challenge.locator(".lab-passed").is_visible(), "Challenge passed!")
    assert "F_flat" in (lab.folder / "fundamentals_challenge.py").read_text()
    learner.page.get_by_role("tab", name="fundamentals.py").click()
    learner.until(lambda: "F_flat" not in learner.text(), "the lesson's file")


def test_stop_ends_an_endless_loop_that_is_seen_running(learner: Learner) -> None:
    learner.write("import torch\nx = torch.zeros(1)\nwhile True:\n    x += 1\n")
    learner.press_run()
    learner.until(lambda: "x" in learner.rows(), "the row of x")
    first = learner.row("x")
    learner.until(lambda: learner.row("x") != first, "a new value while it runs")
    learner.until(learner.page.locator(".lab-live").is_visible, "the word that it runs")
    learner.until(learner.button("Run").is_disabled, "a button that waits")
    learner.button("Stop").click()
    learner.until(lambda: learner.ended("Stopped."), "Stopped.")
    learner.run("print('again')")


def test_a_crash_is_survived(learner: Learner) -> None:
    learner.run("import os\nos.abort()\n", ends="The process crashed (SIGABRT).")
    learner.run("print('alive')")
    assert learner.ended("alive")


def test_a_program_asks_and_gets_an_answer(learner: Learner) -> None:
    learner.write("name = input('who? ')\nprint('hello', name)\n")
    learner.press_run()
    field = learner.page.get_by_label("The program waits for a line")
    field.fill("Ada")
    field.press("Enter")
    learner.until(lambda: learner.ended("hello Ada"), "the greeting")


def test_pictures_and_the_loss_curve_show(learner: Learner) -> None:
    learner.run("import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.show()\n")
    image = learner.page.locator(".lab-pictures img")
    assert learner.until(lambda: image.count() == 1 and image.is_visible(), "the picture")
    width = "image => image.naturalWidth"
    assert learner.until(lambda: image.evaluate(width), "the picture's width") > 100
    learner.run(
        "import antorcha.lab.notes as notes\n"
        "notes.FREE, free = 1e9, notes.FREE  # every loss is read, however long that takes\n"
        "for step in range(100):\n    loss = 1 / (1 + step)\n"
        "notes.FREE = free\n"
    )
    learner.tab("Loss")
    learner.until(lambda: learner.page.locator(".lab-curve polyline").count() == 1, "the curve")
    curves = learner.page.locator(".lab-curves")
    learner.until(lambda: "loss: 100 steps, now 0.01" in curves.inner_text(), "its words")
    learner.run(
        "import torch\nfor k in range(50):\n    loss = torch.tensor(10.0) ** k\n"
        "    val_loss = 1.0\n"
    )
    learner.until(
        lambda: learner.page.locator(".lab-curve-gap").count() == 1, "the mark of infinity"
    )
    wanted = "loss: 50 steps, now inf (NaN or infinite for the first time in step 39"
    learner.until(lambda: wanted in curves.inner_text(), "its words")
    dashed = learner.page.locator(".lab-curve polyline[stroke-dasharray]")
    learner.until(lambda: dashed.count() == 1, "the other curve")
    learner.tab("Tensor inspector")


def test_the_graph_shows_its_lines_when_asked(learner: Learner) -> None:
    learner.run(
        "import torch\nmodel = torch.nn.Linear(2, 1)\nx = torch.ones(3, 2)\n"
        "loss = (model(x) ** 2).mean()\n"
    )
    learner.tab("Graph")
    graph = learner.page.locator(".lab-graph")
    learner.until(lambda: graph.locator("svg").count() == 1, "the graph")
    again = learner.button("Run again, with lines and modules")
    assert "fundamentals.py:4" not in graph.text_content()
    learner.rest()
    again.click()
    learner.until(lambda: "fundamentals.py:4" in graph.text_content(), "the lines")
    learner.until(lambda: "Linear" in graph.text_content(), "the module")
    learner.until(lambda: not again.is_visible(), "nothing more to ask for")
    learner.tab("Tensor inspector")


def test_a_run_is_measured(learner: Learner) -> None:
    learner.write("import torch\nx = torch.rand(64, 64)\nfor _ in range(20):\n    (x @ x).tanh()\n")
    learner.tab("Profiler")
    learner.rest()
    learner.button("Run and measure").click()
    table = learner.page.locator(".lab-profile")
    learner.until(lambda: "aten::tanh" in table.inner_text(), "the table")
    flame = learner.page.locator(".lab-flame svg")
    learner.until(lambda: "fundamentals.py(4)" in flame.text_content(), "the flame graph")
    calls = table.locator("tr", has_text="aten::tanh").locator("td").first
    learner.until(lambda: calls.inner_text() == "20", "the count of calls")
    assert "aten::item" not in table.inner_text()
    assert "kernelbase.py" not in flame.text_content()
    learner.tab("Tensor inspector")


def test_user_output_is_text_and_never_markup(learner: Learner) -> None:
    evil = "<img src=x onerror=document.title='evil'><script>document.title='evil'</script>"
    learner.run(
        f"import torch\nprint({evil!r})\nprint('\\x1b]0;evil\\x07')\n"
        f"names = {{{evil!r}: torch.ones(1)}}\nraise RuntimeError({evil!r})\n",
        ends="ended with an error",
    )
    assert "<img src=x" in learner.terminal()
    learner.until(lambda: evil in "".join(learner.rows()), "the row")
    learner.page.locator(".lab-row").first.click()
    learner.until(lambda: learner.page.inner_text(".lab-detail"), "the opened tensor")
    learner.page.wait_for_timeout(300)
    assert "evil" not in learner.page.title()
    assert learner.page.locator(".lab-inside img, .lab-inside script").count() == 0


def test_names_of_antorcha_are_completed(learner: Learner) -> None:
    ready = learner.page.locator(".cm-content[aria-label^='Editor: fundamentals.py']")
    learner.until(lambda: ready.count() == 1, "the editor's additions")
    options = learner.page.locator(".cm-tooltip-autocomplete li")
    asked = 0.0

    def completed() -> bool:
        """As one types anew, or asks, where a key was lost or what shows is for an earlier word."""
        nonlocal asked
        if options.count() and options.first.inner_text().startswith("arange"):
            return True
        if time.monotonic() > asked + 10:
            learner.page.keyboard.press("Escape")
            if learner.text() == "import torch\ntorch.arang":
                learner.page.keyboard.press("Control+Space")
            else:
                learner.write("import torch\n")
                learner.page.keyboard.type("torch.arang")
            asked = time.monotonic()
        return False

    learner.until(completed, "completions")
    learner.page.wait_for_timeout(200)  # the editor takes a key this soon for one meant before
    learner.page.keyboard.press("Enter")
    learner.until(lambda: "torch.arange" in learner.text(), "the completed name")
    learner.page.keyboard.press("Escape")


def test_work_is_there_after_a_reload(lab: Lab, learner: Learner) -> None:
    learner.run("answer = 42\nprint('kept')\n")
    learner.page.reload()
    learner.page.wait_for_selector(".cm-content")
    learner.until(lambda: "kept" in learner.terminal(), "the terminal as it was")
    learner.until(lambda: learner.text().startswith("answer = 42"), "the text as it was")
    assert (lab.folder / "fundamentals.py").read_text() == "answer = 42\nprint('kept')\n"
    quiz = learner.page.locator(".lab-quiz", has_text="CUDA").first
    learner.until(lambda: "Right." in quiz.inner_text(), "the answer given before")


def test_two_tabs_show_the_same_work(lab: Lab, learner: Learner, context: Any) -> None:
    other = Learner(context.new_page())
    other.open(learner.page.url)
    learner.run("shared = 'both'\nprint(shared)\n")
    other.until(lambda: "both" in other.terminal(), "the other tab's output")
    other.until(lambda: other.text().startswith("shared"), "the other tab's text")
    other.run("print('from the other tab')\n")
    learner.until(lambda: "from the other tab" in learner.terminal(), "the way back")
    other.page.close()


def test_a_change_by_another_program_is_not_overwritten(lab: Lab, learner: Learner) -> None:
    path = lab.folder / "fundamentals.py"
    path.write_text("theirs = 1\n")
    learner.write("mine = 2\n")
    problem = learner.page.locator(".lab-problem")
    learner.until(lambda: "changed by another program" in problem.inner_text(), "the question")
    assert path.read_text() == "theirs = 1\n"
    learner.button("The one on disk").click()
    learner.until(lambda: learner.text().startswith("theirs"), "their text")
    learner.until(lambda: not problem.is_visible(), "no question any more")


def test_reset_gives_an_empty_terminal_and_keeps_the_text(learner: Learner) -> None:
    learner.run("import torch\nleft = torch.ones(1)\n")
    learner.reset("New process")
    learner.until(lambda: learner.terminal() == '> Ready. Click "Run" to execute.', "Ready")
    learner.until(lambda: not learner.rows(), "an empty inspector")
    assert learner.text().startswith("import torch")


def test_a_new_file_is_made_and_listed(lab: Lab, learner: Learner) -> None:
    learner.button("Lessons and files").click()
    learner.page.get_by_label("Name, such as try.py").fill("../evil.py")
    learner.button("New file").click()
    learner.until(lambda: "letters, digits" in learner.page.inner_text("body"), "a refusal")
    learner.page.get_by_label("Name, such as try.py").fill("mine.py")
    learner.button("New file").click()
    learner.page.wait_for_url("**/file/mine.py**")
    learner.page.wait_for_selector(".cm-content")
    learner.run("print('mine')\n")
    assert (lab.folder / "mine.py").read_text() == "print('mine')\n"
    learner.page.go_back()
    learner.page.wait_for_selector(".lab-text")
    learner.until(lambda: learner.terminal() != "", "the terminal")


def test_the_language_is_switched_and_kept(lab: Lab, learner: Learner) -> None:
    learner.page.locator(".lab-language").click()
    learner.page.get_by_role("option", name="Español").click()
    learner.page.wait_for_url("**lang=es")
    learner.until(lambda: learner.button("Ejecutar").count() == 1, "Ejecutar")
    text = learner.page.locator(".lab-text")
    learner.until(lambda: "Por qué importan los tensores" in text.inner_text(), "the lesson")
    learner.page.goto(learner.page.url.partition("?")[0])
    learner.until(lambda: learner.button("Ejecutar").count() == 1, "Ejecutar again")
    learner.page.locator(".lab-language").click()
    learner.page.get_by_role("option", name="English").click()
    learner.until(lambda: learner.button("Run").count() == 1, "Run")


def outside(page: Any, width: int, height: int) -> list[Any]:
    """What is cut off or hidden at that size of the window."""
    size = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    )
    found = [] if size[0] <= width and size[1] <= height else [size]
    for button in page.locator("header button, .lab-bar button").all():
        box = button.bounding_box() if button.is_visible() else None
        if box is not None and not 0 <= box["x"] <= box["x"] + box["width"] <= width:
            found.append(box)
    return found


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_cut_or_hidden(learner: Learner, width: int, dark: bool) -> None:
    page = learner.page
    page.set_viewport_size({"width": width, "height": 800})
    is_dark = page.evaluate("document.body.classList.contains('body--dark')")
    if is_dark != dark:
        learner.button("Light or dark").click()
    read = "each => getComputedStyle(each).color"
    accent = (DARK if dark else LIGHT)["accent"]
    rgb = ", ".join([str(int(accent[k : k + 2], 16)) for k in (1, 3, 5)])
    button = ".lab-challenge .q-btn--outline"
    learner.until(lambda: page.eval_on_selector(button, read) == f"rgb({rgb})", "the theme")
    for place in ("Lesson", "Code", "Inside"):
        if width == 400:
            page.locator(".lab-places").get_by_role("tab", name=place).click()
            learner.until(page.locator(f".lab-{place.lower()}").first.is_visible, place)
        learner.until(lambda: outside(page, width, 800) == [], "a page that fits")
    if width == 400:
        page.locator(".lab-places").get_by_role("tab", name="Lesson").click()
        page.set_viewport_size({"width": 1280, "height": 800})


def test_the_keyboard_leads_everywhere_and_stays_where_it_was(learner: Learner) -> None:
    page = learner.page
    learner.run("import torch\nx = torch.ones(2)\nfor _ in range(3): pass\n")
    focused = "(document.activeElement.closest('{0}') !== null)"

    def stands_in(what: str) -> bool:
        return bool(page.evaluate(focused.format(what)))

    page.click(".cm-content")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    learner.until(lambda: stands_in(".lab-below"), "the focus, below")
    for _ in range(4):  # its button, what is scrolled, the terminal
        if not stands_in(".lab-inside"):
            page.keyboard.press("Tab")
            page.wait_for_timeout(100)
    learner.until(lambda: stands_in(".lab-inside"), "the focus, in the inspector")
    page.locator(".lab-row").first.focus()
    page.keyboard.press("Enter")
    learner.until(lambda: page.inner_text(".lab-detail"), "the opened tensor")
    learner.until(lambda: stands_in(".lab-row"), "the focus, on the row again")
    page.keyboard.press("Enter")
    learner.until(lambda: not page.inner_text(".lab-detail"), "closing")
    option = page.locator(".lab-quiz .lab-option").first
    option.focus()
    page.keyboard.press("Enter")
    learner.until(lambda: option.get_attribute("aria-pressed") == "true", "the answer")
    assert stands_in(".lab-option")
    ring = "each => getComputedStyle(each).boxShadow.includes('0px 0px 0px 2px')"
    learner.until(lambda: option.evaluate(ring), "the ring around it")
    assert page.evaluate("document.documentElement.lang") == "en"


def test_what_can_be_pressed_has_a_name(learner: Learner) -> None:
    nameless = learner.page.evaluate(
        """() => [...document.querySelectorAll('button, input, [role=tab], [role=textbox]')]
            .filter(each => each.offsetParent !== null)
            .filter(each => !(each.innerText.trim() || each.getAttribute('aria-label')
                || each.labels?.length || each.closest('label')?.innerText.trim()
                || each.closest('.xterm')))
            .map(each => each.outerHTML.slice(0, 200))"""
    )
    assert nameless == []


def test_many_runs_leave_the_page_and_the_server_as_they_were(lab: Lab, learner: Learner) -> None:
    def run(number: int) -> None:
        learner.run(f"import torch\nx = torch.rand(300, 300)\nprint('run {number}')\n")

    def state() -> tuple[int, int, int]:
        server = psutil.Process(lab.process.pid)
        memory = sum(p.memory_info().rss for p in [server, *server.children(recursive=True)])
        return memory, server.num_fds(), len(server.children(recursive=True))

    for number in range(5):
        run(number)
    before = state()
    for number in range(RUNS):
        run(number)

    def is_as_it_was() -> bool:  # but for what is being saved just now
        memory, files, processes = state()
        return files <= before[1] and processes == before[2] and memory - before[0] < 40e6

    learner.until(is_as_it_was, f"a server like that of before, {before}, after {state()},")


def test_nothing_left_the_page_s_own_origin(lab: Lab, learner: Learner) -> None:
    own = urlsplit(lab.address).netloc
    hosts = {urlsplit(url).netloc for url in learner.requests if not url.startswith("data:")}
    assert hosts == {own}
    assert learner.problems == []


def test_a_read_only_folder_is_told_of_and_nothing_is_lost(tmp_path: Path, context: Any) -> None:
    folder = tmp_path / "a file"
    folder.write_text("not a folder")
    lab = Lab(folder)
    try:
        learner = Learner(context.new_page())
        learner.open(lab.address)
        learner.write("precious = 1\nprint('ran anyway')\n")
        problem = learner.page.locator(".lab-problem")
        learner.until(lambda: "Your text stays here" in problem.inner_text(), "the problem")
        learner.press_run()
        learner.until(lambda: learner.ended("ran anyway"), "the run")
        problem.get_by_label("Folder").fill(str(tmp_path / "better"))
        learner.button("Save to folder").click()
        saved = tmp_path / "better" / "fundamentals.py"
        learner.until(saved.exists, "the file in the other folder")
        assert saved.read_text().startswith("precious = 1")
        learner.until(lambda: not problem.is_visible(), "no problem any more")
    finally:
        lab.close()


def test_a_brief_run_renders_the_page_no_second_time(tmp_path: Path, context: Any) -> None:
    """What a run prints waits for nothing but its terminal, where nothing else has changed."""
    lab = Lab(tmp_path / "work", before="from antorcha.lab import session; session.BRIEF = 1000.0")
    page = context.new_page()
    learner = Learner(page)
    came: list[str] = []
    network = context.new_cdp_session(page)
    network.send("Network.enable")
    network.on(
        "Network.webSocketFrameReceived",
        lambda event: came.append(event["response"]["payloadData"]),
    )
    try:
        learner.open(lab.address)
        learner.run("print('first')\n")
        came.clear()
        learner.write("print('second')\n")
        learner.until(lambda: any('"Saved"' in each for each in came), "the text is saved")
        learner.rest()
        came.clear()
        page.keyboard.press("Control+Enter")
        learner.until(lambda: "second" in learner.terminal().rpartition("> python ")[2], "output")
        assert any("second" in each for each in came)
        assert [each for each in came if each.startswith('42["update"')] == []
    finally:
        page.close()
        lab.close()


def test_ending_the_lab_ends_its_children(tmp_path: Path, context: Any) -> None:
    lab = Lab(tmp_path)
    learner = Learner(context.new_page())
    learner.open(lab.address)
    learner.run("print(1)")
    children = psutil.Process(lab.process.pid).children(recursive=True)
    assert children
    lab.close()
    _, alive = psutil.wait_procs(children, timeout=PATIENCE)
    assert alive == []


def test_what_is_typed_without_connection_is_not_lost(tmp_path: Path, context: Any) -> None:
    lab = Lab(tmp_path)
    learner = Learner(context.new_page())
    file = tmp_path / "fundamentals.py"
    try:
        learner.open(lab.address)
        learner.write("before = 1\n")
        learner.until(file.exists, "the saved file")
        lab.process.kill()
        lab.close()
        offline = learner.page.locator(".lab-offline")
        learner.until(offline.is_visible, "the word about the connection")
        learner.page.keyboard.insert_text("after = 2\n")
        lab = Lab(tmp_path)  # on the same port
        other = Learner(context.new_page())
        other.open(lab.address)
        learner.until(lambda: "after = 2" in file.read_text(), "what was typed meanwhile")
        assert file.read_text() == "before = 1\nafter = 2\n"
        learner.until(lambda: not offline.is_visible(), "the connection")
        other.page.close()
        lab.process.kill()
        lab.close()
        learner.until(offline.is_visible, "the word about the connection")
        learner.page.click(".cm-content")
        learner.page.keyboard.press("Control+End")
        learner.page.keyboard.insert_text("mine = 3\n")
        file.write_text("theirs = 4\n")
        lab = Lab(tmp_path)
        Learner(context.new_page()).open(lab.address)
        problem = learner.page.locator(".lab-problem")
        learner.until(lambda: "without connection" in problem.inner_text(), "the question")
        assert file.read_text() == "theirs = 4\n"
        learner.button("What I typed").click()
        learner.until(lambda: "mine = 3" in file.read_text(), "the answer")
        learner.until(lambda: not problem.is_visible(), "no question any more")
    finally:
        lab.close()


def test_a_lab_that_slept_takes_over_what_the_browser_has(tmp_path: Path, context: Any) -> None:
    lab = Lab(tmp_path)
    learner = Learner(context.new_page())
    file = tmp_path / "fundamentals.py"
    try:
        learner.open(lab.address)
        learner.write("import torch\nfor i in range(3):\n    print(i)\n")
        learner.until(file.exists, "the saved file")
        os.kill(lab.process.pid, signal.SIGSTOP)
        learner.write("asleep = 1\n")
        offline = learner.page.locator(".lab-offline")
        learner.until(offline.is_visible, "the word about the connection")
        learner.page.keyboard.insert_text("more = 2\n")
        os.kill(lab.process.pid, signal.SIGCONT)
        learner.until(lambda: "more = 2" in file.read_text(), "what was typed meanwhile")
        learner.until(lambda: not offline.is_visible(), "the connection")
        learner.page.wait_for_timeout(1500)
        assert file.read_text() == "asleep = 1\nmore = 2\n"
    finally:
        os.kill(lab.process.pid, signal.SIGCONT)
        lab.close()
