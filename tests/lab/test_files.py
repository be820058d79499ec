"""The learner's files: written whole or not at all, and nobody's work overwritten."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from antorcha.lab.files import NAME, FileProblem, WorkFile, find_problem, programs


def kind_of(work: WorkFile, **how: bool) -> str:
    with pytest.raises(FileProblem) as caught:
        work.save(**how)
    return caught.value.kind


def test_an_untouched_beginning_writes_nothing(tmp_path: Path) -> None:
    work = WorkFile(tmp_path / "one.py", "start\n")
    work.save()
    assert work.is_saved
    assert list(tmp_path.iterdir()) == []


def test_work_is_found_again(tmp_path: Path) -> None:
    work = WorkFile(tmp_path / "deep" / "one.py", "start\n")
    work.text = "mine = 'ñ'\n"
    assert not work.is_saved
    work.save()
    assert work.is_saved
    assert WorkFile(work.path, "start\n").text == "mine = 'ñ'\n"
    assert [path.name for path in work.path.parent.iterdir()] == ["one.py"]


def test_an_emptied_file_is_work_too(tmp_path: Path) -> None:
    work = WorkFile(tmp_path / "one.py", "start\n")
    work.text = ""
    work.save()
    assert WorkFile(work.path, "start\n").text == ""


def test_what_somebody_else_wrote_is_not_overwritten_unasked(tmp_path: Path) -> None:
    work = WorkFile(tmp_path / "one.py")
    work.text = "mine\n"
    work.save()
    work.path.write_text("theirs\n")
    work.text = "mine, more\n"
    assert kind_of(work) == "changed"
    assert work.path.read_text() == "theirs\n"
    assert work.text == "mine, more\n"
    work.save(anyway=True)
    assert work.path.read_text() == "mine, more\n"
    work.path.write_text("theirs again\n")
    work.load()
    assert work.text == "theirs again\n"


def test_a_file_that_appears_or_goes_is_a_change(tmp_path: Path) -> None:
    work = WorkFile(tmp_path / "one.py", "start\n")
    (tmp_path / "one.py").write_text("theirs\n")
    work.text = "mine\n"
    assert kind_of(work) == "changed"
    work.save(anyway=True)
    work.path.unlink()
    work.text = "more\n"
    assert kind_of(work) == "changed"


def test_line_ends_and_permissions_stay(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_bytes(b"a\r\nb\r\n")
    path.chmod(0o600)
    work = WorkFile(path)
    assert work.text == "a\nb\n"
    work.text = "a\nc\n"
    work.save()
    assert path.read_bytes() == b"a\r\nc\r\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.py").write_text("old\n")
    (tmp_path / "link.py").symlink_to(tmp_path / "real.py")
    work = WorkFile(tmp_path / "link.py")
    work.text = "new\n"
    work.save()
    assert (tmp_path / "link.py").is_symlink()
    assert (tmp_path / "real.py").read_text() == "new\n"


@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*args: Any, **kwargs: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    work = WorkFile(tmp_path / "one.py")
    work.text = "old\n"
    work.save()
    work.text = "new\n"
    monkeypatch.setattr(f"antorcha.core.files.os.{step}", full)
    assert kind_of(work) == "full"
    monkeypatch.undo()
    assert find_problem(tmp_path) is None
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("one.py", "old\n")]
    assert work.text == "new\n"
    work.save()
    assert work.path.read_text() == "new\n"


def test_a_folder_that_cannot_be_written_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*args: Any, **kwargs: Any) -> Any:
        raise PermissionError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("antorcha.core.files.os.open", denied)
    monkeypatch.setattr("antorcha.lab.files.tempfile.TemporaryFile", denied)
    work = WorkFile(tmp_path / "one.py")
    work.text = "x"
    assert kind_of(work) == "denied"
    problem = find_problem(tmp_path)
    assert problem is not None
    assert problem.kind == "denied"


def test_a_folder_that_is_a_file_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("")
    problem = find_problem(tmp_path / "folder" / "deeper")
    assert problem is not None
    assert problem.kind == "gone"


def test_what_is_no_text_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileProblem, match="not UTF-8"):
        WorkFile(path)


def test_moving_keeps_the_text_and_what_is_there(tmp_path: Path) -> None:
    work = WorkFile(tmp_path / "one.py", "start\n")
    work.text = "mine\n"
    other = tmp_path / "other"
    other.mkdir()
    (other / "one.py").write_text("theirs\n")
    work.move(other)
    assert kind_of(work) == "changed"
    (other / "one.py").unlink()
    work.save()
    assert (other / "one.py").read_text() == "mine\n"


@pytest.mark.parametrize("name", ["../a.py", "a/b.py", ".a.py", "a.txt", "", "a.py\n", "/a.py"])
def test_names_that_lead_elsewhere_are_none(name: str) -> None:
    assert not NAME.fullmatch(name)


def test_programs_are_listed(tmp_path: Path) -> None:
    for name in ("b.py", "año 2.py", ".hidden.py", "notes.txt"):
        (tmp_path / name).write_text("")
    (tmp_path / "folder.py").mkdir()
    assert programs(tmp_path) == ["año 2.py", "b.py"]
    assert programs(tmp_path / "missing") == []


def test_a_text_is_kept_aside_once_and_never_overwritten(tmp_path: Path) -> None:
    file = WorkFile(tmp_path / "mine.py", "start\n")
    assert file.put_aside("start\n") == ""  # nothing of the learner's
    file.text = "first\n"
    assert file.put_aside("start\n") == "mine_1.py"
    assert file.put_aside("start\n") == "mine_1.py"
    file.text = "second\n"
    (tmp_path / "mine_7.py").write_text("somebody else's\n")
    (tmp_path / "mine_x.py").write_text("")
    assert file.put_aside("start\n") == "mine_8.py"
    assert [path.name for path in file.aside()] == ["mine_1.py", "mine_7.py", "mine_8.py"]
    assert (tmp_path / "mine_1.py").read_text() == "first\n"
    assert (tmp_path / "mine_7.py").read_text() == "somebody else's\n"


def test_what_cannot_be_kept_aside_is_not_given_up(tmp_path: Path) -> None:
    from antorcha.lab.kernel import Limits
    from antorcha.lab.session import Session

    folder = tmp_path / "a file"
    folder.write_text("")
    session = Session("", folder, WorkFile(folder / "mine.py", "start\n"), Limits())
    session.file.text = "precious\n"
    assert session.begin_again() == ""
    assert session.file.text == "precious\n"
    assert session.problem is not None


def test_another_language_s_beginning_is_taken_only_by_who_has_written_nothing(
    tmp_path: Path,
) -> None:
    file = WorkFile(tmp_path / "mine.py", "start\n")
    file.begin_with("comienzo\n")
    assert file.text == "comienzo\n"
    file.text = "mine\n"
    file.begin_with("start\n")
    assert (file.text, file.start) == ("mine\n", "start\n")
