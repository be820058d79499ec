"""A learner with a browser: what the tests of the lab's page share."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import antorcha
from antorcha.lab.session import TWICE

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# (Containers have little of the shared memory that it would take without being told.)
SWITCHES = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-sync", "--disable-background-networking",
            "--disable-component-update"]  # fmt: skip
SLOWER = int(os.environ.get("ANTORCHA_LAB_SLOWER", "1"))  # times, the browser's processor
FOCUS = "document.hasFocus() ? document.activeElement.className : 'nothing'"
# Of the editor's lines: what stands beside them.
HINTS = """lines => lines.map(line => {
  const shown = getComputedStyle(line, "::after");
  return shown.display === "none" ? "" : line.dataset.shape ?? "";
})"""
PATIENCE = 180.0  # seconds until something must have happened, on a machine with other work
# As Playwright's own runner does in CI: a browser on a machine with other work loses a key or a
# picture now and then. What failed and passed when tried again is listed in the run's summary.
AGAIN = pytest.mark.flaky(reruns=2, reruns_delay=2)
# The lab, but patient as we are with a child that takes long to stop: that is no wrong answer here.
LAB = f"""
import sys
from antorcha.cli import main
from antorcha.lab import kernel
kernel.STARTING = kernel.GRACE = kernel.LATE = {PATIENCE / 3}
sys.exit(main(sys.argv[1:]))
"""


def find_browser() -> str:
    """The path of a browser; the test is skipped where there is none."""
    paths = [path for name in BROWSERS if (path := shutil.which(name))]
    for path in paths:  # Ubuntu has a chromium-browser that only says what to install
        if subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
            return path
    pytest.skip("no Chromium is installed (Debian, Ubuntu: apt install chromium)")


class Lab:
    """A running `antorcha lab` on a folder, of that lesson; "" for what it opens by itself. Its
    process runs `before` at first."""

    def __init__(self, folder: Path, what: str = "fundamentals", before: str = "") -> None:
        self.folder = folder
        root = Path(antorcha.__file__).parents[1]
        command = [sys.executable, "-c", f"{before}\n{LAB}", "lab", *[what] * bool(what),
                   "--no-browser", "--lang", "en", "--folder", str(folder)]  # fmt: skip
        paths = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        self.lines: list[str] = []
        self.address = self.read(r"http://\S+token=\S+")

    def read(self, pattern: str) -> str:
        """The next of what it prints that looks like that."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            self.lines.append(line)
            if found := re.search(pattern, line):
                return found[0]
        raise AssertionError("the lab ended: " + "".join(self.lines))

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
        if self.process.stdout is not None:
            self.process.stdout.close()


class Learner:
    """One page of the lab, and what a learner does with it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        if SLOWER > 1:  # what a test reads too early is still to come on a slow machine
            browser = page.context.new_cdp_session(page)
            browser.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
        self.problems: list[str] = []
        self.requests: list[str] = []
        page.set_default_timeout(PATIENCE * 1000)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", self._note)
        page.on("request", lambda request: self.requests.append(request.url))

    def _note(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def open(self, address: str) -> None:
        self.page.goto(address)
        self.page.wait_for_selector(".cm-content")
        self.until(lambda: self.terminal() != "", "the terminal's first words")

    def until(self, holds: Callable[[], Any], what: str) -> Any:
        """Wait for something; `what` names it where it does not come."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if found := holds():
                return found
            self.page.wait_for_timeout(50)
        seen = f"{self.page.evaluate(FOCUS)!r} has the focus; the page's problems: {self.problems}"
        shown = f"the terminal shows:\n{self.terminal()}\nthe editor:\n{self.text()}"
        raise AssertionError(f"{what} did not come; {seen}; {shown}")

    # ---- the editor and its buttons -------------------------------------------------------------

    def write(self, text: str) -> None:
        self.page.click(".cm-content")
        self.page.keyboard.press("Control+A")
        self.page.keyboard.insert_text(text)

    def text(self) -> str:
        return "\n".join(self.page.locator(".cm-line").all_text_contents())

    def hints(self) -> dict[int, str]:
        """The shapes beside the editor's lines, by line."""
        found = self.page.locator(".cm-line").evaluate_all(HINTS)
        return {number: text for number, text in enumerate(found, 1) if text}

    def button(self, name: str) -> Any:
        return self.page.get_by_role("button", name=name, exact=True)

    def run(self, text: str, ends: str = "Done in") -> None:
        """Run a program, and wait for how it ends."""
        self.write(text)
        self.press_run()
        self.until(lambda: self.ended(ends), f"{ends!r}")

    def rest(self) -> None:
        """A run asked for too soon after the last is taken for the same one, and not begun."""
        self.page.wait_for_timeout(1000 * TWICE)

    def press_run(self) -> None:
        """Start the program, and wait until the terminal says so."""
        self.until(lambda: not self.page.inner_text(".lab-state"), "the end of the last run")
        self.rest()
        before = self.terminal()
        self.page.keyboard.press("Control+Enter")
        self.until(lambda: self.terminal() != before, "the beginning of the run")

    def ended(self, how: str) -> bool:
        """Did the last run end like that?"""
        return how in self.terminal().rpartition("> python ")[2]

    def reset(self, what: str) -> None:
        """Choose from what Reset offers."""
        self.button("Reset").click()
        self.page.locator(".lab-resets").get_by_text(what, exact=True).click()
        self.page.locator(".lab-resets").wait_for(state="hidden")

    # ---- what shows -----------------------------------------------------------------------------

    def terminal(self) -> str:
        """The terminal's visible text."""
        rows = self.page.locator(".lab-terminal .xterm-rows > div").all_inner_texts()
        return "\n".join([row.rstrip().replace("\xa0", " ") for row in rows]).strip()

    def rows(self) -> dict[str, str]:
        """The inspector's rows."""
        read = "rows => rows.map(row => [row.querySelector('b').textContent, row.innerText])"
        return dict(self.page.eval_on_selector_all(".lab-row", read))

    def marked(self) -> list[str]:
        """What is underlined in the editor, as the place of an error."""
        return list(self.page.locator(".lab-error").all_inner_texts())

    def row(self, name: str) -> str:
        """One of the inspector's rows, once it is there."""
        return str(self.until(lambda: self.rows().get(name), f"the row of {name}"))

    def tab(self, name: str) -> None:
        self.page.get_by_role("tab", name=name, exact=True).click()


@contextmanager
def browser(folder: Path, **how: Any) -> Iterator[Any]:
    """A browser with a new, empty profile; gives its context."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = find_browser()
    with sync_api.sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            str(folder), executable_path=path, headless=True, args=SWITCHES,
            timeout=PATIENCE * 1000, **how,
        )  # fmt: skip
        try:
            yield context
        finally:
            context.close()
