"""Files that are whole or not there."""

from __future__ import annotations

import errno
import gzip
import os
import re
import stat
import threading
from pathlib import Path

import pytest

from antorcha.files import replacing, write_whole


def test_a_text_is_written_as_it_is(tmp_path: Path) -> None:
    write_whole(tmp_path / "one", "ñ\r\nx\n")
    assert (tmp_path / "one").read_bytes() == "ñ\r\nx\n".encode()
    write_whole(str(tmp_path / "one.gz"), "ñ\n")
    assert gzip.decompress((tmp_path / "one.gz").read_bytes()) == "ñ\n".encode()
    write_whole(tmp_path / ("n" * 255), "long")
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, ValueError])
def test_what_fails_in_its_middle_leaves_the_old_file_alone(
    tmp_path: Path, error: type[BaseException]
) -> None:
    path = tmp_path / "one"
    path.write_text("old")
    with pytest.raises(error), replacing(path) as file:  # noqa: PT012
        file.write(b"half")
        raise error
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("one", "old")]


@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "one"
    path.write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr(f"antorcha.files.os.{step}", full)
        with pytest.raises(OSError, match="No space left"):
            write_whole(path, "new")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("one", "old")]


def test_the_error_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "one"
    with pytest.raises(FileNotFoundError, match=re.escape(f"'{path}'")):
        write_whole(path, "x")


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "one", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == 0o640
    (tmp_path / "one").chmod(0o604)
    (tmp_path / "link").symlink_to("one")
    write_whole(tmp_path / "link", "y")
    assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == 0o604
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "one").read_text() == "y"


def test_a_read_only_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").write_text("old")
    monkeypatch.setattr("antorcha.files.os.access", lambda *_: False)  # (root may do anything)
    with pytest.raises(PermissionError):
        write_whole(tmp_path / "one", "new")
    assert (tmp_path / "one").read_text() == "old"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    write_whole(path, "through")
    reader.join(10)
    assert read == [b"through"]
    assert stat.S_ISFIFO(path.stat().st_mode)
    write_whole(os.devnull, "gone")
