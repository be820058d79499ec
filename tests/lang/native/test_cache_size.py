"""The bound on the disk cache: what goes first, and who may be reading or writing meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from antorcha import config
from antorcha.lang.native import cache
from tests.patience import PATIENCE

CODE = bytes(range(256)) * 4


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(config, "cache_dir", str(tmp_path))
    return tmp_path / "native" / "0"  # where all symbols of this file go


def fill(count: int) -> int:
    """Files k00.o, k10.o, ... used `count` hours ago, ...; gives the size of one."""
    for k in range(count):
        cache.write(f"k{k}0", ["malloc"], CODE)
        path = os.path.join(cache.shard("0"), f"k{k}0.o")
        used = time.time() - 3600 * (count - k) - 60
        os.utime(path, (used, used))
    return os.path.getsize(path)


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_what_was_unused_for_longest_goes_first(folder: Path) -> None:
    size = fill(8)
    cache.trim(str(folder), 8 * size)
    assert len(names(folder)) == 8, "no more than the bound: nothing goes"
    assert cache.read("k00") == (["malloc"], CODE)  # it is the last one used now
    cache.trim(str(folder), 8 * size - 1)
    assert names(folder) == ["k00.o", "k40.o", "k50.o", "k60.o", "k70.o"]
    assert cache.read("k10") is None
    assert cache.read("k70") == (["malloc"], CODE)
    cache.trim(str(folder), 0)
    assert len(names(folder)) == 5, "0 is no bound"
    cache.trim(str(folder), 1)
    assert names(folder) == []


def test_reading_marks_a_file_once_an_hour(folder: Path) -> None:
    fill(1)
    path = folder / "k00.o"
    used = path.stat().st_mtime  # an hour ago
    cache.read("k00")
    marked = path.stat().st_mtime
    assert marked > used + 3600
    os.utime(path, (marked - 60, marked - 60))
    before = path.stat().st_mtime_ns
    cache.read("k00")
    assert path.stat().st_mtime_ns == before


def test_what_dead_writers_left_goes(folder: Path) -> None:
    fill(1)
    (folder / "k9.abandoned").write_bytes(CODE)
    (folder / "k9.in_use").write_bytes(CODE)
    long_ago = time.time() - 90000
    os.utime(folder / "k9.abandoned", (long_ago, long_ago))
    cache.trim(str(folder), 1 << 20)
    assert names(folder) == ["k00.o", "k9.in_use"]


def test_damaged_files_count_and_are_refused(folder: Path) -> None:
    size = fill(4)
    (folder / "k10.o").write_bytes((folder / "k10.o").read_bytes()[:-7])
    whole = (folder / "k20.o").read_bytes()
    (folder / "k20.o").write_bytes(whole[:-7] + b"\0" + whole[-6:])
    (folder / "k30.o").write_bytes(b"")
    assert [cache.read(f"k{k}0") is None for k in range(4)] == [False, True, True, True]
    cache.trim(str(folder), 2 * size)
    assert sum(used for _, used, _ in cache.contents(str(folder))) <= 2 * size


def test_a_file_that_vanishes_while_it_is_counted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = fill(4)
    listed = cache.contents(str(folder))
    (folder / "k00.o").unlink()
    monkeypatch.setattr(cache, "contents", lambda _: listed)
    cache.trim(str(folder), 4 * size - 1)
    assert names(folder) == ["k20.o", "k30.o"], "what another process deleted counts as room"
    assert cache.read("k00") is None


def test_no_folder_and_a_folder_that_cannot_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.trim(str(folder), 1)
    assert cache.contents(str(folder)) == []
    fill(3)

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "unlink", refuse)
    monkeypatch.setattr(os, "utime", refuse)
    cache.trim(str(folder), 1)
    assert len(names(folder)) == 3
    assert cache.read("k00") == (["malloc"], CODE)


def test_stores_look_at_the_size_now_and_then(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[tuple[str, int]] = []
    monkeypatch.setattr(cache, "trim", lambda *given: looks.append(given))
    monkeypatch.setattr(cache, "_SELDOM", 16)
    for k in range(256):
        cache.write("same0", [], str(k).encode())
    assert 4 <= len(looks) <= 64
    assert set(looks) == {(str(folder), config.cache_size // 16)}


CROWD = """
import random, sys
from antorcha import config
from antorcha.lang.native import cache
config.cache_dir = sys.argv[1]
dice = random.Random(int(sys.argv[2]))
for turn in range(200):
    name = f"k{dice.randrange(60)}0"
    code = name.encode() * dice.randrange(1, 400)
    if dice.random() < 0.5:
        cache.write(name, [name], code)
    else:
        found = cache.read(name)
        assert found is None or (found[0] == [name] and found[1].startswith(name.encode()))
    if turn % 5 == 0:
        cache.trim(cache.shard("0"), 20000)
print("well")
"""


def test_processes_that_write_and_trim_at_once(folder: Path) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", CROWD, str(folder.parent.parent), str(seed)], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        for seed in range(2)
    ]  # fmt: skip
    for each in running:
        out, err = each.communicate(timeout=PATIENCE)
        assert out == "well\n", err
    cache.trim(str(folder), 20000)
    assert sum(size for _, size, _ in cache.contents(str(folder))) <= 20000
    assert all(name.endswith(".o") for name in names(folder))
