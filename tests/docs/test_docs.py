"""The code in the pages runs, and prints what the pages say.

A page's blocks run in order, in one namespace. In a ``python`` block what follows ``# ->`` is what
it prints, line by line (a block without one may print anything); a ``pycon`` block is a session,
checked by doctest. A row ``| `code` | `Error: message` |`` says what is not there: the code must
raise it.
"""

from __future__ import annotations

import contextlib
import doctest
import functools
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import antorcha as torch
from antorcha.core import switches
from antorcha.runtime.call import native
from tests.docs.pages import PAGES, ROOT, Block, blocks, links, missing
from tests.patience import PATIENCE

NEEDS = {"lessons.md": "yaml"}  # pages about what is in an extra
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.fixture(autouse=True)
def _as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A page may write files, and set the number of threads and the seed."""
    monkeypatch.chdir(tmp_path)
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)
    torch.set_rng_state(state)


@pytest.fixture(autouse=True)
def _switches_as_before() -> Iterator[None]:
    """A guide may set switches that other tests rely on."""
    every = (switches.matmul, switches.cudnn, switches.libraries)
    before = [dict(vars(each)) for each in every]
    yield
    for each, values in zip(every, before, strict=True):
        for name, value in values.items():
            setattr(each, name, value)
        vars(each).update(values)


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_runs(page: Path) -> None:
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name], reason="needs antorcha[lab]")
    if page.name == "call_path.md" and not native.ACTIVE:
        pytest.skip("the page is about the native path: " + native.why_not())
    names: dict[str, Any] = {"__name__": page.stem}
    for block in blocks(page):
        if block.language == "python":
            _run(page, block, names)
        elif block.language == "pycon":
            _converse(page, block, names)


_PATH = re.compile(r"(?<![\w./-])((?:[a-z_0-9]+/)+[a-z_0-9]+\.py)\b")
_WORD = re.compile(r"^\| (\w+) \| (.+) \|$", re.MULTILINE)


def test_the_files_that_pages_and_comments_name_are_there() -> None:
    """Of other projects' files the repositories are named; those that remain are listed."""
    others = {"config/train_shakespeare_char.py"}
    files = [path for folder in ("src", "tests", "bench", "tools", "examples")
             for path in (ROOT / folder).rglob("*.py")]  # fmt: skip
    names = {path.relative_to(ROOT).as_posix() for path in files}
    ends = {name.split("/", k)[-1] for name in names for k in range(name.count("/") + 1)}
    gone = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in (*PAGES, ROOT / "CONTRIBUTING.md", *(ROOT / "src").rglob("*.py"))
        for name in _PATH.findall(page.read_text(encoding="utf-8"))
        if name not in ends and name not in others and not name.startswith(("torch/", "ipykernel"))
    ]
    assert not gone


def test_the_vocabulary_is_short_and_used() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    words = dict(_WORD.findall(page[page.index("## Vocabulary") :]))
    del words["word"]
    assert 15 < len(words) <= 25
    source = "".join([path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")])
    assert not [word for word in words if not re.search(rf"(?i)\b{word}s?\b", source)]


def _run(page: Path, block: Block, names: dict[str, Any]) -> None:
    # Blank lines before it: an error shows the line of the page.
    code = compile("\n" * (block.line - 1) + block.text, str(page), "exec", dont_inherit=True)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    said = block.outputs()
    if said:
        assert printed.getvalue().splitlines() == said, f"{page.name}, line {block.line}"


def _converse(page: Path, block: Block, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(
        block.text, names, page.name, str(page), block.line - 1
    )
    test.globs = names  # the parser made a copy, and later blocks need what this one defines
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    failed = runner.run(test, out=report.write, clear_globs=False).failed
    assert not failed, report.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    lost = [link for link in links(page) if not (page.parent / link).exists()]
    assert not lost


MISSING = [row for page in PAGES for row in missing(page)]


def test_the_table_of_what_is_missing_is_read() -> None:
    assert len(MISSING) > 5


# Runs what it reads from its first argument; prints, of each row, the classes and the text raised.
TRY_ALL = """
import json, sys
import torch, torch.nn as nn, torch.nn.functional as F, torch.utils.data as data

images = torch.ones(1, 3, 8, 8)
dataset = data.TensorDataset(torch.arange(4.0))
raised = []
for code in json.loads(sys.argv[1]):
    try:
        exec(code)
    except Exception as error:
        raised.append([[kind.__name__ for kind in type(error).__mro__], str(error)])
    else:
        raised.append(None)
print(json.dumps(raised))
"""


@functools.cache
def _raised() -> list[tuple[list[str], str] | None]:
    """What each row raises under ``antorcha run``, where the page's reader meets it."""
    done = run_program("-", json.dumps([row[0] for row in MISSING]), source=TRY_ALL)
    assert done.returncode == 0, done.stderr
    found: list[tuple[list[str], str] | None] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("k", range(len(MISSING)), ids=[row[0] for row in MISSING])
def test_what_is_missing_says_so(k: int) -> None:
    code, error, text = MISSING[k]
    raised = _raised()[k]
    assert raised, f"`{code}` works now: take its row out of the page"
    kinds, said = raised
    assert error in kinds
    assert " ".join(text.split()) in " ".join(said.split())


def run_program(*words: str, source: str = "") -> subprocess.CompletedProcess[str]:
    """``antorcha run *words`` in a child process; `source` is its standard input."""
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "antorcha", "run", *words],
        env={**os.environ, "PYTHONPATH": path},
        input=source,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
