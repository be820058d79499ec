"""Starting the lab: ports, addresses, what opens, and a clear word where something is missing."""

from __future__ import annotations

import importlib.util
import json
import socket
from pathlib import Path

import pytest

pytest.importorskip("nicegui", reason="needs antorcha[lab]")

from antorcha.cli import main
from antorcha.lab import app
from antorcha.lab.workplace import MEMORY


def test_a_free_port_is_found_on_this_machine_alone() -> None:
    with app.listen("127.0.0.1", 0) as sock:
        assert sock.getsockname()[0] == "127.0.0.1"
        assert sock.getsockname()[1] > 0


def test_a_port_already_taken_is_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["lab", "--port", str(port), "--no-browser"]) == 1
    said = f"port {port} is taken by another program; leave out --port to use a free one"
    assert capsys.readouterr().err == f"antorcha lab: {said}\n"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_all_addresses_at_once_are_refused(host: str) -> None:
    with pytest.raises(app.CannotStart, match="give the one address"):
        app.listen(host, 0)


def test_an_address_that_is_not_ours_is_told_of() -> None:
    with pytest.raises(app.CannotStart, match=r"cannot listen on 192\.0\.2\.1"):
        app.listen("192.0.2.1", 0)


def test_without_the_extra_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = importlib.util.find_spec
    hidden = lambda name, *rest: None if name == "nicegui" else find(name, *rest)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", hidden)
    assert main(["lab"]) == 1
    assert 'pip install "antorcha[lab]" (missing: nicegui)' in capsys.readouterr().err


def test_a_lesson_a_number_or_a_file_opens_first(tmp_path: Path) -> None:
    options = app.CommandOptions(folder=tmp_path)
    assert app.first_page(None, options).first == "/home"  # the very first time
    assert app.first_page("1", options).first == "/lesson/fundamentals"
    opened = app.first_page(str(tmp_path / "deep" / "mine.py"), options)
    assert (opened.first, opened.folder) == ("/file/mine.py", tmp_path / "deep")


def test_the_lab_opens_where_it_was_left(tmp_path: Path) -> None:
    options = app.CommandOptions(folder=tmp_path)
    memory = tmp_path / MEMORY
    (tmp_path / "mine.py").write_text("")
    for last, opened in {
        "/lesson/memory": "/lesson/memory", "/file/mine.py": "/file/mine.py",
        "/file/gone.py": "/home", "/lesson/gone": "/home",
        "/lesson/*": "/home", "//evil.example": "/home",
        "/file/../../x.py": "/home", "": "/home",
    }.items():  # fmt: skip
        memory.write_text(json.dumps({"last": last}))
        assert app.first_page(None, options).first == opened, last
        assert app.first_page("1", options).first == "/lesson/fundamentals"
    memory.write_text('{"last": 3}')
    assert app.first_page(None, options).first == "/home"


def test_an_unknown_lesson_is_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "fundamentls", "--lang", "en", "--no-browser"]) == 1
    assert "Did you mean 'fundamentals'?" in capsys.readouterr().err


def test_a_lesson_of_one_s_own_opens_by_its_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.md"
    path.write_text("---\ntitle: Mine\nminutes: 5\nfile: mine.py\n---\nHello\n")
    opened = app.first_page(str(path), app.CommandOptions(folder=tmp_path))
    assert opened.first == "/lesson/mine"
    assert opened.own == (path,)


def test_the_port_of_last_time_is_taken_again_if_it_is_free(tmp_path: Path) -> None:
    options = app.CommandOptions(folder=tmp_path)
    for _ in range(20):  # another program of the machine may take it in between
        with app._listen_again(options) as first:
            port = first.getsockname()[1]
        (tmp_path / MEMORY).write_text(f'{{"port": {port}}}')
        again = app._listen_again(options)
        if again.getsockname()[1] == port:
            break
        again.close()
    with again:
        assert again.getsockname()[1] == port
        with app._listen_again(options) as other:  # a second lab on the folder
            assert other.getsockname()[1] != port
    (tmp_path / MEMORY).write_text('{"port": "80; rm"}')
    with app._listen_again(options) as third:
        assert third.getsockname()[1] >= 1024
