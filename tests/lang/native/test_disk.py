"""The cache on disk, the key, and many users at once: threads, processes, forks."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

from antorcha import config, errors
from antorcha.lang.native import NoDescription, cache, f32, i64, inline, native, ptr, void
from antorcha.lang.native.digest import digest_of, dotted_names
from tests.patience import PATIENCE

PROGRAM = """
from __future__ import annotations
import sys
from antorcha.lang.native import *

@inline
def scaled(x, k):
    return x * k

@native
def work(n: i64) -> i64:
    total = 0
    for i in range(n):
        total += scaled(i, {factor})
    return total

@native(export=True)
def shared(n: i64) -> i64:
    return work(n) + 1

@native
def linked(n: i64) -> i64:
    return shared(n) * 2

if __name__ == "__main__":
    print(work(10), linked(4), "antorcha.lang.native.lower" in sys.modules)
    print(sorted(work.spec().stats), target().vector_bits)
"""


# runs a program with the language alone: the rest of antorcha compiles functions of its own
ALONE = """
import runpy, sys, types
antorcha = sys.modules["antorcha"] = types.ModuleType("antorcha")
antorcha.__path__ = [sys.argv[1]]
runpy.run_path(sys.argv[2], run_name="__main__")
"""
HOME = str(Path(errors.__file__).parent)


def command(path: Path) -> list[str]:
    return [sys.executable, "-c", ALONE, HOME, str(path)]


def run(path: Path, folder: Path, **env: str) -> list[str]:
    done = subprocess.run(
        command(path), capture_output=True, text=True, timeout=PATIENCE, check=False,
        env={**os.environ, "ANTORCHA_CACHE": str(folder), "PYTHONDONTWRITEBYTECODE": "1",
             "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **env},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(factor=3))
    return path


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.o"))


def test_warm_start_and_damaged_files(program, tmp_path):
    folder = tmp_path / "cache"
    cold = run(program, folder)
    assert cold[0] == "135 38 True"
    assert len(files(folder)) == 3
    warm = run(program, folder)
    assert warm[0] == "135 38 False", "a warm start must not load the compiler"
    assert "compile_ms" not in warm[1]
    for k, path in enumerate(files(folder)):
        whole = path.read_bytes()
        path.write_bytes([whole[:-40], whole[:100] + b"x" + whole[101:], b""][k])
    assert run(program, folder)[0] == "135 38 True"
    assert run(program, folder)[0] == "135 38 False"


def test_an_edit_of_the_program_changes_the_key(program, tmp_path):
    folder = tmp_path / "cache"
    run(program, folder)
    program.write_text(PROGRAM.format(factor=5))
    assert run(program, folder)[0] == "225 62 True"
    assert len(files(folder)) == 6


def test_folders_that_cannot_be_written(program, tmp_path):
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "native").write_text("a file where the folder should be")
    assert run(program, blocked)[0] == "135 38 True"
    if os.geteuid():
        blocked.chmod(0o500)
        assert run(program, blocked)[0] == "135 38 True"
    assert run(program, Path("/proc/antorcha-no-such-place"))[0] == "135 38 True"


def test_an_unreadable_entry_is_compiled_again(program, tmp_path):
    folder = tmp_path / "cache"
    run(program, folder)
    for path in files(folder):
        path.unlink()
        path.mkdir()
    assert run(program, folder)[0] == "135 38 True"


@pytest.mark.parametrize(("name", "bits"), [("avx2", "256"), ("sse2", "128")])
def test_other_targets_have_their_own_entries(program, tmp_path, name, bits):
    folder = tmp_path / "cache"
    run(program, folder)
    found = run(program, folder, ANTORCHA_TARGET=name)
    assert found[0] == "135 38 True"
    assert found[1].endswith(bits)


@pytest.mark.parametrize(
    ("name", "which"), [("avx2", "operator and (f16 or u64) or bools"), ("sse2", "half")]
)
def test_operators_on_other_targets(name, which):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", which,
         str(Path(__file__).with_name("test_operators.py"))],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
        env={**os.environ, "ANTORCHA_TARGET": name,
             "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_processes_that_write_one_cache(program, tmp_path):
    folder = tmp_path / "cache"
    env = {**os.environ, "ANTORCHA_CACHE": str(folder),
           "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}  # fmt: skip
    running = [
        subprocess.Popen(command(program), stdout=subprocess.PIPE, text=True, env=env)
        for _ in range(6)
    ]
    assert all(p.communicate(timeout=PATIENCE)[0].startswith("135 38 ") for p in running)
    assert len(files(folder)) == 3
    assert not [p for p in folder.rglob("*") if p.is_file() and p.suffix != ".o"]


# ---- the key
def make(text: str, name: str = "f", **names):
    space = {"i64": i64, "ptr": ptr, "f32": f32, **names}
    exec(textwrap.dedent(text), space)
    return native(space[name])


BASE = "def f(a: i64, b: 'i64') -> i64:\n    return a + K * G(b)\n"


def test_what_is_in_the_key():
    def key(text=BASE, **names):
        return make(text, **{"K": 2, "G": abs, **names}).spec().key

    base = key()
    assert key() == base
    assert key(K=3) != base
    assert key(K=2.0) != base
    assert key(K=True) != key(K=1)
    assert key(G=inline(lambda x: x)) != base
    assert key(G=inline(lambda x: x)) != key(G=inline(lambda x: x + 1))
    assert key(BASE.replace("'i64'", "'f32'")) != base
    assert key(BASE.replace("a + K", "a - K")) != base
    assert key(BASE.replace("a + K", "b + K")) != base


def test_functions_of_one_name_keep_their_roles():
    def pair():
        def one(x):
            return x + 1

        return inline(one)

    def other():
        def one(x):
            return x * 2

        return inline(one)

    text = "def f(a: i64) -> i64:\n    return p(a) - q(a)\n"
    p, q = pair(), other()
    p.fn.__qualname__ = q.fn.__qualname__ = "one"
    keys = {make(text, p=x, q=y).spec().key for x, y in [(p, q), (q, p), (p, p), (q, q)]}
    assert len(keys) == 4


class Described:
    def __init__(self, text: str) -> None:
        self.text = text

    def __native_key__(self) -> str:
        return self.text


def test_values_without_an_exact_description_are_refused():
    text = "def f(a: i64) -> i64:\n    return a + K\n"
    for value in (np.zeros(3), lambda: 3, object(), sys, iter([])):
        with pytest.raises(NoDescription, match="'K' has no exact description"):
            _ = make(text, K=value).spec().key
    keys = {make(text, K=Described(t)).spec().key for t in ("a", "b", "a")}
    assert len(keys) == 2
    with pytest.raises(NoDescription):
        _ = make("def f(a: i64, *, E) -> i64:\n    return a\n").spec(E=object()).key


def test_a_changed_global_is_seen():
    f = make("def f(a: i64) -> i64:\n    return a + K\n", K=1)
    before = f.spec().key
    f.fn.__globals__["K"] = 2
    f.specs.clear()
    assert f.spec().key != before


def test_names_are_read_from_bytecode():
    def f():
        return np.float32.x + os.path.join(NAME) + local_name.attr + [k.q for k in OTHER]  # noqa: F821

    found = set(dotted_names(f.__code__))
    assert ("np", "float32", "x") in found
    assert ("os", "path", "join") in found
    assert ("NAME",) in found
    assert ("OTHER",) in found


# ---- at once
@native
def threaded(x: ptr[f32], n: i64, *, k) -> void:
    for i in range(n):
        x[i] = x[i] * f32(k) + 1.0


def test_threads_compile_at_once():
    failures: list[BaseException] = []
    cache_name = os.urandom(4).hex()  # unknown to the disk, so that all of them compile

    def work(offset: int) -> None:
        try:
            for k in range(6):
                x = np.ones(5, np.float32)
                threaded(x, 5, k=f"{cache_name}"[:0] or (k + offset % 2))
                assert x[0] == k + offset % 2 + 1
        except BaseException as err:
            failures.append(err)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


FORK = """
from __future__ import annotations
import os, sys, threading, warnings
warnings.simplefilter("ignore")
from antorcha.lang.native import *

@native
def f(n: i64, *, k) -> i64:
    return n * k

stop = False
def compile_for_ever():
    k = 10
    while not stop:
        assert f(2, k=k) == 2 * k
        k += 1

t = threading.Thread(target=compile_for_ever)
f(1, k=1)
t.start()
for k in range(8):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if f(3, k=-k) == -3 * k and f(3, k=1000 + k) == 3000 + 3 * k else 1)
    assert os.waitpid(pid, 0)[1] == 0
stop = True
t.join()
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_while_another_thread_compiles(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(FORK)
    assert run(path, tmp_path / "cache")[0] == "done"


def test_importing_the_language_loads_no_compiler(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        "import sys\nimport antorcha.lang.native\n"
        "print(any(m.startswith('llvmlite') or '.lower' in m for m in sys.modules))\n"
    )
    assert run(path, tmp_path)[0] == "False"


def test_the_folder_is_the_configured_one():
    assert cache.folder().startswith(config.cache_dir)


# ---- what others have put there
def test_files_under_each_others_names(program, tmp_path):
    folder = tmp_path / "cache"
    run(program, folder)
    whole = files(folder)
    content = [path.read_bytes() for path in whole]
    for turn in (1, 2):
        for path, blob in zip(whole, content[turn:] + content[:turn], strict=True):
            path.write_bytes(blob)
        assert run(program, folder)[0] == "135 38 True"
        assert run(program, folder)[0] == "135 38 False", "what was wrong is replaced"


def test_code_that_does_not_link_is_compiled_again(program, tmp_path):
    """A header that says what is not true: the code is another function's, or none."""
    folder = tmp_path / "cache"
    run(program, folder)
    whole = files(folder)
    codes = [path.read_bytes().split(b"\n", 2)[2] for path in whole]
    heads = [path.read_bytes().split(b"\n", 2)[1] for path in whole]
    for wrong in (codes[1:] + codes[:1], codes[2:] + codes[:2], [b"", b"none", b"\x7fELF\x02\x01"]):
        for path, head, code in zip(whole, heads, wrong, strict=True):
            rest = head + b"\n" + code
            path.write_bytes(b"%s %s\n%s" % (cache._MAGIC, digest_of(rest).encode(), rest))
        assert run(program, folder)[0] == "135 38 True"


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """The path of a file in a cache of its own; its symbol is "k00"."""
    monkeypatch.setattr(config, "cache_dir", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_warned", False)
    cache.write("k00", ["malloc"], b"code" * 50)
    assert cache.read("k00") == (["malloc"], b"code" * 50)
    return Path(cache.shard("k00"), "k00.o")


def test_every_damage_is_seen(stored):
    whole = stored.read_bytes()
    damaged = [whole[:k] for k in range(len(whole))]
    damaged += [whole + b"x", b"\n", b"", b"\n\n\n", os.urandom(100), whole[1:]]
    for k in range(len(whole)):
        for bit in range(8):
            damaged.append(whole[:k] + bytes([whole[k] ^ (1 << bit)]) + whole[k + 1 :])
    for blob in damaged:
        stored.write_bytes(blob)
        assert cache.read("k00") is None, blob
    stored.write_bytes(whole)
    assert cache.read("k00") is not None
    assert cache.read("k10") is None
    stored.with_name("k10.o").write_bytes(whole)
    assert cache.read("k10") is None, "another function's file"


def test_no_file_is_anything_but_a_file(stored, tmp_path):
    whole = stored.read_bytes()
    for make in (
        stored.mkdir, lambda: os.mkfifo(stored), lambda: stored.symlink_to("/dev/zero"),
        lambda: stored.symlink_to(tmp_path / "nothing"), lambda: _sparse(stored, 1 << 40),
    ):  # fmt: skip
        stored.unlink() if not stored.is_dir() else stored.rmdir()
        make()
        assert cache.read("k00") is None
        cache.write("k00", [], b"code")  # (a folder stays)
    stored.unlink()
    (tmp_path / "elsewhere").write_bytes(whole)
    (tmp_path / "elsewhere").chmod(0o600)
    stored.symlink_to(tmp_path / "elsewhere")
    assert cache.read("k00") is not None, "ours, wherever it lies"


def _sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no users here")
@pytest.mark.parametrize("level", range(4))
def test_what_others_may_write_is_not_used(stored, level):
    """The file, and the three folders above it."""
    path = [stored, *stored.parents][level]
    before = path.stat().st_mode & 0o777
    for mode in (before | 0o020, before | 0o002):
        cache._warned = False
        path.chmod(mode)
        with pytest.warns(UserWarning, match="the cache of compiled kernels is not used") as caught:
            found = [cache.read("k00"), cache.read("k00")]
        assert found == [None, None]
        assert len(caught) == 1, "one warning"
        assert str(path) in str(caught[0].message)
        if level:
            cache.write("k20", [], b"code")
            assert not stored.with_name("k20.o").exists()
    if level:
        path.chmod(before | 0o1022)  # sticky: nobody else can replace what is in it
        assert cache.read("k00") is not None
    path.chmod(before)
    assert cache.read("k00") is not None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no users here")
def test_what_belongs_to_others_is_not_used(stored, monkeypatch):
    user = os.geteuid()
    if user:
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
        with pytest.warns(UserWarning, match="belongs to another user"):
            assert cache.read("k00") is None
        return
    for path in [stored, *stored.parents][:4]:
        cache._warned = False
        os.chown(path, 12345, -1)
        with pytest.warns(UserWarning, match="belongs to another user"):
            assert cache.read("k00") is None
        os.chown(path, 0, -1)
        assert cache.read("k00") is not None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no users here")
def test_folders_are_made_for_nobody_else(stored):
    before = os.umask(0)
    try:
        cache.write("k11", [], b"code")  # another shard
    finally:
        os.umask(before)
    made = Path(cache.shard("k11"))
    assert made.stat().st_mode & 0o777 == 0o700
    assert cache.read("k11") == ([], b"code")


def test_without_a_place_nothing_is_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(config, "cache_dir", "")
    monkeypatch.chdir(tmp_path)
    cache.write("k00", [], b"code")
    assert cache.read("k00") is None
    assert not list(tmp_path.iterdir())


def test_where_home_is_not_known_code_is_not_loaded_from_here(program, tmp_path):
    here, temporary = tmp_path / "here", tmp_path / "temporary"
    here.mkdir()
    temporary.mkdir()
    environment = {
        "ANTORCHA_CACHE": "",
        "XDG_CACHE_HOME": "",
        "HOME": "~",
        "TMPDIR": str(temporary),
    }
    environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    for warm in ("True", "False"):
        done = subprocess.run(
            command(program), capture_output=True, text=True, timeout=PATIENCE, check=True,
            cwd=here, env={**os.environ, **environment},
        )  # fmt: skip
        assert done.stdout.startswith(f"135 38 {warm}")
    assert not list(here.iterdir())
    assert [path.name for path in temporary.iterdir()] == [f"antorcha-{os.getuid()}"]
