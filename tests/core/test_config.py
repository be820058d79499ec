"""Settings: what each variable gives, what is refused, and the CPU quota of a control group."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from antorcha import config
from antorcha.config import available_cpus, cgroup_cpu_quota, settings
from antorcha.errors import ArgumentError


def test_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    found = settings({})
    assert found.cache_dir == str(tmp_path / ".cache" / "antorcha")
    assert found.num_threads == available_cpus() >= 1
    assert found.call_path == "auto"
    assert found.target is None
    assert found.cache_size == 512 << 20
    assert (found.traceback, found.progress, found.libraries) == ("short", True, True)
    assert settings({"ANTORCHA_CACHE": " ", "OMP_NUM_THREADS": ""}) == found


def test_module_constants() -> None:
    found = settings(os.environ)
    assert tuple(getattr(config, name) for name in found._fields) == found


def test_values(tmp_path: Path) -> None:
    xdg = {"XDG_CACHE_HOME": str(tmp_path)}
    assert settings(xdg).cache_dir == str(tmp_path / "antorcha")
    assert settings({"XDG_CACHE_HOME": "relative"}).cache_dir.endswith("/.cache/antorcha")
    chosen = settings({**xdg, "ANTORCHA_CACHE": str(tmp_path / "c")})
    assert chosen.cache_dir == str(tmp_path / "c")
    assert settings({"OMP_NUM_THREADS": "3,2"}).num_threads == 3
    assert settings({"OMP_NUM_THREADS": "3", "ANTORCHA_NUM_THREADS": "5"}).num_threads == 5
    assert settings({"ANTORCHA_CALL": "Python"}).call_path == "python"
    assert settings({"ANTORCHA_TRACEBACK": "full"}).traceback == "full"
    assert settings({"ANTORCHA_PROGRESS": "off"}).progress is False
    assert settings({"ANTORCHA_LIBRARIES": "off"}).libraries is False
    assert settings({"ANTORCHA_TARGET": "x86-64-v3"}).target == "x86-64-v3"
    assert settings({"ANTORCHA_CACHE_SIZE": "3"}).cache_size == 3 << 20
    assert settings({"ANTORCHA_CACHE_SIZE": "0"}).cache_size == 0


def test_the_cache_folder_is_never_relative(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert settings({"ANTORCHA_CACHE": "a/../b"}).cache_dir == str(tmp_path / "b")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert settings({"ANTORCHA_CACHE": "~/c"}).cache_dir == str(tmp_path / "c")
    with pytest.raises(ArgumentError, match="home is not known"):
        settings({"ANTORCHA_CACHE": "~no-such-user/c"})
    for home in ("~", "relative", str(tmp_path / "nowhere")):
        monkeypatch.setenv("HOME", home)
        private = settings({"TMPDIR": str(tmp_path)}).cache_dir
        assert os.path.dirname(private) == str(tmp_path)
        assert os.path.basename(private).startswith("antorcha-")
        for nowhere in ("relative", "/no/such/folder"):
            found = settings({"TMPDIR": nowhere}).cache_dir
            assert not found or (os.path.isabs(found) and os.path.isdir(os.path.dirname(found)))
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(ArgumentError, match="no working directory"):
        settings({"ANTORCHA_CACHE": "c"})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ANTORCHA_NUM_THREADS", "0", "must be a whole number from 1"),
        ("ANTORCHA_CACHE_SIZE", "1.5", "must be a whole number of MiB"),
        ("ANTORCHA_CACHE_SIZE", "-1", "must be a whole number of MiB"),
        ("ANTORCHA_NUM_THREADS", "four", "ANTORCHA_NUM_THREADS='four'"),
        ("ANTORCHA_NUM_THREADS", "1e3", "must be a whole number"),
        ("ANTORCHA_NUM_THREADS", "99999", "must be a whole number"),
        ("OMP_NUM_THREADS", "-1", "OMP_NUM_THREADS='-1'"),
        ("ANTORCHA_TRACEBACK", "ful", "must be 'short' or 'full'. Did you mean 'full'?"),
        ("ANTORCHA_PROGRESS", "1", "must be 'on' or 'off'"),
        ("ANTORCHA_CALL", "pyhton", "'native', 'python' or 'checked'. Did you mean 'python'?"),
        ("ANTORCHA_TARGET", "x86; rm", "LLVM CPU name"),
        ("ANTORCHA_CACHE", __file__, "is a file"),
    ],
)
def test_nonsense(name: str, value: str, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        settings({name: value})
    assert message in str(caught.value)


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_cgroup_version_2(tmp_path: Path) -> None:
    root = str(tmp_path)
    assert cgroup_cpu_quota(root) is None
    write(tmp_path, proc__self__cgroup="0::/jobs/mine\n")
    write(tmp_path, sys__fs__cgroup__jobs__mine__cpu_DOT_max="max 100000\n")
    assert cgroup_cpu_quota(root) is None
    write(tmp_path, sys__fs__cgroup__jobs__cpu_DOT_max="150000 100000\n")
    assert cgroup_cpu_quota(root) == 1.5
    assert available_cpus(root) == min(2, available_cpus())
    write(tmp_path, sys__fs__cgroup__jobs__mine__cpu_DOT_max="20000 100000\n")
    assert available_cpus(root) == 1


def test_cgroup_version_1(tmp_path: Path) -> None:
    write(tmp_path, proc__self__cgroup="5:memory:/x\n4:cpu,cpuacct:/docker/abc\n")
    base = tmp_path / "sys/fs/cgroup/cpu,cpuacct"
    base.mkdir(parents=True)
    (base / "cpu.cfs_period_us").write_text("100000\n")
    (base / "cpu.cfs_quota_us").write_text("-1\n")
    assert cgroup_cpu_quota(str(tmp_path)) is None
    # In a container the group's path is the host's; the quota stands at the mount.
    (base / "cpu.cfs_quota_us").write_text("400000\n")
    assert cgroup_cpu_quota(str(tmp_path)) == 4.0


def test_a_bad_setting_is_an_error_at_import() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import antorcha; print('imported')"],
        env={**os.environ, "ANTORCHA_NUM_THREADS": "0"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert not done.stdout
    assert "ANTORCHA_NUM_THREADS='0' must be a whole number from 1" in done.stderr
