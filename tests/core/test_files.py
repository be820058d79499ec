"""Files that are whole or not there."""

from __future__ import annotations

import errno
import gzip
import os
import re
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from antorcha.core import files
from antorcha.core.files import replacing, write_whole
from tests.patience import PATIENCE


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
        patch.setattr(f"antorcha.core.files.os.{step}", full)
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
    monkeypatch.setattr("antorcha.core.files.os.access", lambda *_: False)  # (root may do anything)
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


# ---- parts that killed processes leave
WRITER = """
import os, sys
from antorcha.core.files import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("begun", flush=True)
    sys.stdin.readline()
    file.write(b" and half")
print("done", flush=True)
"""


def _writer(path: Path) -> subprocess.Popen[str]:
    """A process in the middle of writing a file."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.skipif(not files._kernel(), reason="no telling whether a part was written here")
def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "one"
    for _ in range(3):
        process = _writer(path)
        process.kill()
        process.communicate(timeout=PATIENCE)
    assert len(_names(tmp_path)) == 1, "each has removed what the one before it left"
    write_whole(tmp_path / "other", "x")
    assert len(_names(tmp_path)) == 2, "and nobody what is another file's"
    write_whole(path, "whole")
    assert _names(tmp_path) == ["one", "other"]


def test_what_a_living_process_writes_is_never_removed(tmp_path: Path) -> None:
    path = tmp_path / "one"
    writers = [_writer(path) for _ in range(3)]
    for name in _names(tmp_path):
        os.utime(tmp_path / name, (0, 0))  # for however long nothing has come
    for k in range(5):
        write_whole(path, f"{k}")
        assert path.read_text() == f"{k}"
        assert len(_names(tmp_path)) == 4
    for process in writers:
        assert process.communicate("go on\n", timeout=PATIENCE)[0] == "done\n"
        assert path.read_text() == "half and half"
        write_whole(path, "again")
    assert _names(tmp_path) == ["one"]


def test_parts_of_elsewhere_stay_until_they_are_old(tmp_path: Path) -> None:
    """Of another machine, or of a version that marks none."""
    path = tmp_path / "one"
    parts = [f".one.{'0' * 12}.part", f".one.{'f' * 24}.part"]
    others = ["one.part", ".one.part", ".one.notes.part", f".two.{'0' * 12}.part",
              f".one.{'0' * 11}.part", f".one.two.{'0' * 12}.part"]  # fmt: skip
    for name in parts + others:
        (tmp_path / name).write_text("x")
        if name in others:
            os.utime(tmp_path / name, (0, 0))
    (tmp_path / f".one.{'1' * 12}.part").mkdir()
    os.utime(tmp_path / f".one.{'1' * 12}.part", (0, 0))
    write_whole(path, "whole")
    assert len(_names(tmp_path)) == len(parts + others) + 2
    for name in parts:
        os.utime(tmp_path / name, (0, 0))
    write_whole(path, "whole")
    assert len(_names(tmp_path)) == len(others) + 2


def test_many_at_once_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "one"
    failures: list[BaseException] = []

    def write(k: int) -> None:
        try:
            for _ in range(30):
                write_whole(path, f"{k}" * 1000)
                assert len(set(path.read_text())) == 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert _names(tmp_path) == ["one"]
