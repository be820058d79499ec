"""Settings from the environment, read once: when antorcha is imported, if any is set.

Nothing on the path of an op reads the environment. Other modules use the constants of this module
(``config.num_threads``); ``settings(environ)`` builds the same record from any mapping, for tests.

=====================  =========================================================================
ANTORCHA_CACHE         folder for compiled kernels; default ``antorcha`` in ``$XDG_CACHE_HOME``,
                       else in ``~/.cache``; where there is no home, ``antorcha-<user id>`` in
                       ``$TMPDIR`` or ``/tmp``
ANTORCHA_CACHE_SIZE    MiB of compiled kernels that are kept there, those used last; default 512,
                       0 for no bound
ANTORCHA_NUM_THREADS   threads of the CPU pool; default ``OMP_NUM_THREADS``, else the CPUs that
                       this process may use (affinity mask and CPU quota of its cgroup)
ANTORCHA_CALL          which implementation of an op's call runs: ``auto`` (default), the native one
                       as soon as it is compiled, which happens in the background; ``native``, from
                       the first call on; ``python``, the readable one; ``checked``: native, all its
                       invariants checked at each call (slow)
ANTORCHA_TARGET        CPU to compile for, an LLVM name such as ``x86-64-v3``; default: this one
ANTORCHA_TRACEBACK     ``short`` (default): an error shows the program's lines; ``full``: antorcha's
                       own, too
ANTORCHA_PROGRESS      ``on`` (default): a terminal shows when kernels are compiled for more than
                       half a second; ``off``: it does not
ANTORCHA_SYNC          ``1``: each call waits for the GPU, so that an error comes at the line that
                       is wrong (slow); ``0`` (default): it comes when the GPU is next waited for
ANTORCHA_LIBRARIES     ``on`` (default): the device ``cuda`` uses NVIDIA's libraries where they are
                       installed; ``off``: antorcha's own kernels do all
=====================  =========================================================================
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from antorcha.errors import ArgumentError, did_you_mean, listed

CALL_PATHS: Final = ("auto", "native", "python", "checked")  # (the first of such is the default)
TRACEBACKS: Final = ("short", "full")
MAX_THREADS: Final = 4096
CACHE_MIB: Final = 512


class Settings(NamedTuple):
    """What the environment asks for; `target` is None for "the machine we run on", `cache_size` is
    in bytes (0: no bound)."""

    cache_dir: str
    num_threads: int
    call_path: str
    target: str | None
    cache_size: int
    traceback: str
    progress: bool
    sync: bool
    libraries: bool


def settings(environ: Mapping[str, str], *, root: str = "/") -> Settings:
    """Read the settings from `environ`; `root` is where ``/proc`` and ``/sys`` are found."""
    return Settings(
        cache_dir=_cache_dir(environ),
        num_threads=_num_threads(environ, root),
        call_path=_one_of(environ, "ANTORCHA_CALL", CALL_PATHS),
        target=_target(environ),
        cache_size=_cache_size(environ),
        traceback=_one_of(environ, "ANTORCHA_TRACEBACK", TRACEBACKS),
        progress=_one_of(environ, "ANTORCHA_PROGRESS", ("on", "off")) == "on",
        sync=_one_of(environ, "ANTORCHA_SYNC", ("0", "1")) == "1",
        libraries=_one_of(environ, "ANTORCHA_LIBRARIES", ("on", "off")) == "on",
    )


def _cache_dir(environ: Mapping[str, str]) -> str:
    """The folder; empty where there is no place for one. Always absolute: it holds code, which is
    not to be loaded from wherever a program happens to run."""
    chosen = environ.get("ANTORCHA_CACHE", "").strip()
    if chosen:
        return _named_folder(chosen)
    base = environ.get("XDG_CACHE_HOME", "").strip()
    if os.path.isabs(base):  # the XDG standard: a relative path is ignored
        return os.path.join(base, "antorcha")
    home = os.path.expanduser("~")
    if os.path.isabs(home) and os.path.isdir(home):
        return os.path.join(home, ".cache", "antorcha")
    return _temporary_folder(environ)


def _named_folder(chosen: str) -> str:
    path = os.path.expanduser(chosen)
    if path.startswith("~"):
        raise ArgumentError(
            f"ANTORCHA_CACHE={chosen!r}: that home is not known; give the folder's whole path"
        )
    try:
        path = os.path.abspath(path)
    except OSError as error:  # the working directory is gone
        raise ArgumentError(
            f"ANTORCHA_CACHE={chosen!r} is relative, and there is no working directory ({error}); "
            "give the folder's whole path"
        ) from None
    if os.path.exists(path) and not os.path.isdir(path):
        raise ArgumentError(f"ANTORCHA_CACHE={chosen!r} is a file; it must name a folder")
    return path


def _temporary_folder(environ: Mapping[str, str]) -> str:
    """A folder of this user in the system's folder for temporary files. The cache refuses it if
    somebody else has made it."""
    user = os.getuid() if hasattr(os, "getuid") else environ.get("USERNAME", "")
    for place in (*[environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP")], "/tmp"):
        if os.path.isabs(place) and os.path.isdir(place):
            return os.path.join(place, f"antorcha-{user}")
    return ""


def _cache_size(environ: Mapping[str, str]) -> int:
    text = environ.get("ANTORCHA_CACHE_SIZE", "").strip() or str(CACHE_MIB)
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise ArgumentError(
            f"ANTORCHA_CACHE_SIZE={text!r} must be a whole number of MiB, or 0 for no bound"
        )
    return int(text) << 20


def _num_threads(environ: Mapping[str, str], root: str) -> int:
    for name in ("ANTORCHA_NUM_THREADS", "OMP_NUM_THREADS"):
        text = environ.get(name, "").strip()
        if not text:
            continue
        # OpenMP allows a list, one number per nesting level; the outermost is ours.
        outermost = text.split(",")[0].strip() if name == "OMP_NUM_THREADS" else text
        if outermost.isascii() and outermost.isdigit() and 1 <= int(outermost) <= MAX_THREADS:
            return int(outermost)
        raise ArgumentError(f"{name}={text!r} must be a whole number from 1 to {MAX_THREADS}")
    return available_cpus(root)


def _one_of(environ: Mapping[str, str], name: str, choices: Sequence[str]) -> str:
    chosen = environ.get(name, "").strip().lower()
    if chosen and chosen not in choices:
        wanted = listed([repr(each) for each in choices], "or")
        hint = did_you_mean(chosen, choices)
        raise ArgumentError(f"{name}={chosen!r} must be {wanted}.{hint}")
    return chosen or choices[0]


def _target(environ: Mapping[str, str]) -> str | None:
    chosen = environ.get("ANTORCHA_TARGET", "").strip()
    if not chosen:
        return None
    if not chosen.isascii() or not all(c.isalnum() or c in "-_.+," for c in chosen):
        raise ArgumentError(
            f"ANTORCHA_TARGET={chosen!r} must be an LLVM CPU name such as 'x86-64-v3' or 'znver4'"
        )
    return chosen


def available_cpus(root: str = "/") -> int:
    """How many CPUs this process may keep busy: its affinity mask, capped by its cgroup's quota."""
    if hasattr(os, "sched_getaffinity"):
        cpus = len(os.sched_getaffinity(0))
    else:
        cpus = os.cpu_count() or 1
    quota = cgroup_cpu_quota(root)
    if quota is not None:
        cpus = min(cpus, int(-(-quota // 1)))  # half a CPU still needs one thread
    return max(cpus, 1)


def cgroup_cpu_quota(root: str = "/") -> float | None:
    """Return the CPU quota of this process's control group in CPUs, or None when there is none.

    A quota may stand on any group above the process's own, so the least one on the way up counts.
    """
    quotas = [
        quota
        for folder in _cgroup_folders(root)
        if (quota := _quota_v2(folder) or _quota_v1(folder)) is not None
    ]
    return min(quotas, default=None)


def _cgroup_folders(root: str) -> list[str]:
    """Folders, innermost first, that may hold a CPU quota: the groups and their parents."""
    mount = os.path.join(root, "sys/fs/cgroup")
    folders: list[str] = []
    for line in _read(os.path.join(root, "proc/self/cgroup")).splitlines():
        _, _, controllers_path = line.partition(":")
        controllers, _, path = controllers_path.partition(":")
        if not controllers:  # version 2: one hierarchy for all controllers
            bases = [mount, os.path.join(mount, "unified")]
        elif "cpu" in controllers.split(","):
            bases = [os.path.join(mount, name) for name in (controllers, "cpu")]
        else:
            continue
        parts = [part for part in path.split("/") if part]
        # Inside a container the path may be the host's; the climb still ends at the mount itself.
        for base in bases:
            folders += [os.path.join(base, *parts[:n]) for n in range(len(parts), -1, -1)]
    return folders


def _quota_v2(folder: str) -> float | None:
    words = _read(os.path.join(folder, "cpu.max")).split()
    return _ratio(words[0], words[1]) if len(words) == 2 else None


def _quota_v1(folder: str) -> float | None:
    return _ratio(
        _read(os.path.join(folder, "cpu.cfs_quota_us")).strip(),
        _read(os.path.join(folder, "cpu.cfs_period_us")).strip(),
    )


def _ratio(quota: str, period: str) -> float | None:
    """The quota in CPUs; None for version 2's "max" and version 1's -1, both "no limit"."""
    if not (quota.isdigit() and period.isdigit()) or int(quota) == 0 or int(period) == 0:
        return None
    return int(quota) / int(period)


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


(
    cache_dir, num_threads, call_path, target, cache_size, traceback, progress, sync, libraries,
) = settings(os.environ)  # fmt: skip
