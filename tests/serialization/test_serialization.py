"""Checkpoints: to PyTorch and back, shared storages, damage, and files that want to run code."""

from __future__ import annotations

import collections
import contextlib
import io
import os
import pickle
import random
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import antorcha
from antorcha.errors import AntorchaError
from antorcha.serialization.reader import MAGIC
from tests.patience import PATIENCE
from tests.serialization import damage

DTYPES = "bool uint8 int8 int16 int32 int64 float16 float64 complex64 complex128 bfloat16".split()


def contents(library: Any) -> dict[str, Any]:
    library.manual_seed(0)
    x = library.arange(6.0).view(2, 3)
    net = library.nn.Linear(2, 1)
    optimizer = library.optim.Adam(net.parameters())
    net(library.ones(1, 2)).sum().backward()
    optimizer.step()
    marked = library.ones(2)
    marked.foo = 3
    return {
        "a": x, "view": x[:, 1], "transposed": x.t(), "parameter": library.nn.Parameter(x.clone()),
        "state": net.state_dict(), "optimizer": optimizer.state_dict(), "size": x.shape,
        "dtype": library.float32, "device": library.device("cpu"), "complex": 1 + 2j,
        "set": {1}, "unsigned": library.zeros(2, dtype=library.uint16), "marked": marked,
        "bytes": b"ab", "all": [library.tensor([1, 0, 1]).to(getattr(library, d)) for d in DTYPES],
        "long": 10**30, "negative": -5, "float": 1.5, "tuple": (1, (2,)), "none": None,
        "text": "é", "counter": collections.Counter("aab"), "empty": library.zeros(0, 3),
        "scalar": library.tensor(3.0), "wants": library.ones(2, requires_grad=True),
        "meta": library.empty(2, 3, device="meta"), "many": list(range(1000)),
    }  # fmt: skip


def same(a: Any, b: Any, where: str = "") -> None:
    if hasattr(b, "stride"):
        assert tuple(a.shape) == tuple(b.shape), where
        assert str(a.dtype) == str(b.dtype), where
        assert tuple(a.stride()) == tuple(b.stride()), where
        assert a.requires_grad == b.requires_grad, where
        assert a.storage_offset() == b.storage_offset(), where
        if a.device.type != "meta":
            assert a.tolist() == b.tolist(), where
    elif isinstance(b, dict):
        assert list(a) == list(b), where
        for key in b:
            same(a[key], b[key], f"{where}.{key}")
    elif type(b) in (list, tuple):
        assert len(a) == len(b), where
        for k, (p, q) in enumerate(zip(a, b, strict=True)):
            same(p, q, f"{where}[{k}]")
    else:
        assert str(a) == str(b), where


def saved(library: Any, value: Any, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    library.save(value, file, **options)
    file.seek(0)
    return file


@pytest.mark.oracle
@pytest.mark.parametrize("old", [False, True])
def test_reads_pytorchs(old: bool) -> None:
    torch = pytest.importorskip("torch")
    wanted = contents(torch)
    if old:
        wanted = {k: v for k, v in wanted.items() if k not in ("unsigned", "meta")}
    loaded = antorcha.load(saved(torch, wanted, _use_new_zipfile_serialization=not old))
    same(loaded, wanted)
    assert loaded["view"].untyped_storage() == loaded["a"].untyped_storage()
    assert type(loaded["parameter"]) is antorcha.nn.Parameter
    assert loaded["marked"].foo == 3
    assert loaded["state"]._metadata == wanted["state"]._metadata


@pytest.mark.oracle
def test_pytorch_reads_ours(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    mine = contents(antorcha)
    loaded = torch.load(saved(antorcha, mine), weights_only=True)
    same(mine, loaded)
    assert isinstance(loaded["parameter"], torch.nn.Parameter)
    assert loaded["marked"].foo == 3
    assert loaded["view"].data_ptr() - loaded["a"].data_ptr() == 4
    path = tmp_path / "model.pt"
    antorcha.save(mine, path)
    same(mine, torch.load(path, mmap=True))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_round_trip(protocol: int, tmp_path: Path) -> None:
    mine = contents(antorcha)
    same(antorcha.load(saved(antorcha, mine, pickle_protocol=protocol)), mine)
    path = tmp_path / "x.pt"
    antorcha.save(mine, path, pickle_protocol=protocol)
    antorcha.save(mine, str(path), pickle_protocol=protocol)
    same(antorcha.load(path, weights_only=True), mine)
    assert os.listdir(tmp_path) == ["x.pt"]


def test_a_shared_storage_is_saved_once() -> None:
    big = antorcha.zeros(10_000)
    file = saved(antorcha, [big, big[:5], big.view(100, 100)])
    assert len(file.getvalue()) < 50_000
    a, b, c = antorcha.load(file)
    a[0] = 7
    assert b[0] == 7
    assert c[0, 0] == 7


def test_records_are_aligned() -> None:
    file = saved(antorcha, [antorcha.ones(3), antorcha.ones(5)])
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            file.seek(info.header_offset + 26)
            name, extra = (int.from_bytes(file.read(2), "little") for _ in range(2))
            assert (info.header_offset + 30 + name + extra) % 64 == 0


def test_map_location() -> None:
    x = antorcha.ones(2)
    asked = []
    loaded = antorcha.load(saved(antorcha, x), lambda s, where: asked.append(where))
    assert asked == ["cpu"]
    assert loaded.tolist() == [1, 1]
    assert antorcha.load(saved(antorcha, x), {"cpu": "meta"}).is_meta
    assert antorcha.load(saved(antorcha, x), "meta").shape == (2,)


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("false",)


def pickled(value: Any) -> io.BytesIO:
    """A checkpoint whose pickle Python's own pickler wrote."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(value, protocol=2))
    file.seek(0)
    return file


def test_code_is_never_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    monkeypatch.setattr(os, "system", lambda command: ran.append(command))
    evil = pickle.PicklingError  # any class that is not on the list
    for options in ({}, {"weights_only": True}, {"weights_only": False}):
        with pytest.raises(pickle.UnpicklingError, match="Unsupported global"):
            antorcha.load(pickled(evil), **options)
    code = b"\x80\x02cposix\nsystem\nX\x05\x00\x00\x00false\x85R."
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", code)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match=r"posix\.system.*never executes"):
        antorcha.load(file)
    assert ran == []


class Settings:
    def __init__(self, depth: int) -> None:
        self.depth = depth


def test_safe_globals() -> None:
    file = saved(antorcha, {"s": Settings(3)})
    with pytest.raises(pickle.UnpicklingError, match="Settings"):
        antorcha.load(file)
    file.seek(0)
    with antorcha.serialization.safe_globals([Settings]):
        assert antorcha.load(file)["s"].depth == 3
    assert antorcha.serialization.get_safe_globals() == []


def test_tensor_fields_cannot_be_set() -> None:
    """A file that says a tensor is larger than its storage, or sets its fields, is refused."""
    good = saved(antorcha, antorcha.ones(2))
    with zipfile.ZipFile(good) as archive:
        data = archive.read("archive/data.pkl")
        rest = {i.filename: archive.read(i) for i in archive.infolist()}
    at = data.index(b"K\x02\x85")  # the size: (2,)
    for changed in (
        data[:at] + b"K\x09\x85" + data[at + 3 :],
        data[:-1] + b"}X\x07\x00\x00\x00_offsetM\xff\x7fsb.",
        data[:-1] + b"N}X\x07\x00\x00\x00_offsetM\xff\x7fs\x86b.",
    ):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in rest.items():
                archive.writestr(name, changed if name.endswith("data.pkl") else content)
        file.seek(0)
        with pytest.raises(pickle.UnpicklingError):
            antorcha.load(file)


def test_damaged_files() -> None:
    raw = saved(antorcha, contents(antorcha)).getvalue()
    rng = random.Random(0)
    for k in range(150):
        damaged = bytearray(raw)
        if k % 2:
            damaged = damaged[: rng.randrange(len(raw))]
        else:
            for _ in range(rng.choice([1, 5, 20])):
                damaged[rng.randrange(len(raw))] = rng.randrange(256)
        with contextlib.suppress(RuntimeError, pickle.UnpicklingError, EOFError):
            antorcha.load(io.BytesIO(bytes(damaged)))
    with pytest.raises(RuntimeError, match="truncated or damaged"):
        antorcha.load(io.BytesIO(raw[: len(raw) // 2]))
    with pytest.raises(EOFError):
        antorcha.load(io.BytesIO())
    with pytest.raises(pickle.UnpicklingError, match="no checkpoint"):
        antorcha.load(io.BytesIO(b"hello world"))
    with pytest.raises(FileNotFoundError):
        antorcha.load("/does/not/exist.pt")


@pytest.mark.parametrize("old", [False, True], ids=["zip", "old"])
@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_every_damage_is_refused_or_harmless(old: bool, large: bool, tmp_path: Path) -> None:
    """Thousands of damaged files in a process that may not take much memory, and does not die."""
    x = antorcha.arange(6.0)
    value: Any = {"a": x, "b": [x[2:], antorcha.ones(2, 3), 1, "x"], "n": antorcha.nn.Parameter(x)}
    if large:
        value = {**value, "state": antorcha.nn.Linear(3, 2).state_dict(), "many": list(range(99)),
                 "set": {1}, "size": x.shape, "device": antorcha.device("cpu"), "c": 1 + 2j,
                 "bytes": b"ab", "float": 1.5, "counter": collections.Counter("aab")}  # fmt: skip
    path = tmp_path / "x.pt"
    path.write_bytes(saved(antorcha, value, _use_new_zipfile_serialization=not old).getvalue())
    done = subprocess.run(
        [sys.executable, damage.__file__, str(path), "1", "4000"],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {line.partition(" ")[2] for line in done.stdout.splitlines()}
    assert found <= {"refused", "loaded"}, done.stdout


def zipped(pickled: bytes, **records: bytes) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        for name, content in records.items():
            archive.writestr(f"archive/data/{name[1:]}", content)
    file.seek(0)
    return file


def rebuilt(
    size: tuple[int, ...], stride: tuple[int, ...], offset: int = 0, kind: str = "FloatStorage",
    numel: int = 4, metadata: Any = None, key: Any = "0",
) -> bytes:  # fmt: skip
    """A pickle of one tensor that says of itself what is not so."""
    made = pickle.PROTO + b"\x02" + b"ctorch._utils\n_rebuild_tensor_v2\n"
    made += pickle.MARK
    made += pickle.MARK + part("storage") + b"ctorch\n%s\n" % kind.encode()
    made += part(key) + part("cpu") + part(numel) + pickle.TUPLE + pickle.BINPERSID
    made += part(offset) + part(size) + part(stride) + pickle.NEWFALSE + part({})
    return made + part(metadata) + pickle.TUPLE + pickle.REDUCE + pickle.STOP


def part(value: Any) -> bytes:
    return pickle.dumps(value, protocol=2)[2:-1]


HUGE = 1 << 62
TENSORS = {
    "65 dims": rebuilt((1,) * 65, (1,) * 65),
    "more elements than can be counted": rebuilt((HUGE, HUGE), (0, 0)),
    "a size beyond int64": rebuilt((1 << 70,), (0,)),
    "a stride beyond int64": rebuilt((1,), (1 << 70,)),
    "an offset beyond int64": rebuilt((0,), (1,), 1 << 70),
    "a great stride": rebuilt((2,), (HUGE,)),
    "a great offset": rebuilt((1,), (1,), HUGE),
    "a great storage": rebuilt((1,), (1,), numel=HUGE),
    "a storage beyond int64": rebuilt((1,), (1,), numel=1 << 70),
    "a storage under another type": rebuilt((1,), (1,), kind="DoubleStorage"),
    "a key that is no name": rebuilt((1,), (1,), key=[["0"]]),
}


@pytest.mark.parametrize("what", TENSORS)
def test_tensors_that_cannot_be(what: str) -> None:
    with pytest.raises((RuntimeError, pickle.UnpicklingError)) as caught:
        antorcha.load(zipped(TENSORS[what], _0=bytes(16)))
    assert isinstance(caught.value, AntorchaError)
    fine = antorcha.load(zipped(rebuilt((1,) * 64, (1,) * 64), _0=bytes(16)))
    assert fine.ndim == 64


def test_a_conjugate_is_as_large_as_its_storage() -> None:
    wide = rebuilt((1 << 40, 2), (0, 1), kind="ComplexFloatStorage", metadata={"conj": True})
    loaded = antorcha.load(zipped(wide, _0=struct.pack("<8f", *range(8))))
    assert loaded.shape == (1 << 40, 2)
    assert loaded[7].tolist() == [0 - 1j, 2 - 3j]


def _ways(depth: int, width: int = 2) -> bytes:
    """A tuple of tuples with width ** depth ways through it, though it takes few bytes."""
    step = pickle.DUP * (width - 1) + {1: pickle.TUPLE1, 2: pickle.TUPLE2}[width]
    return pickle.NONE + step * depth


PICKLES = {
    "a key of many ways": b"}" + _ways(100) + b"Ns.",
    "a key that is deep": b"}" + _ways(1_000_000, 1) + b"Ns.",
    "keys": b"}(" + _ways(100) + b"Nu.",
    "a set": b"\x8f(" + _ways(100) + b"\x90.",
    "a frozenset": b"(" + _ways(100) + b"\x91.",
    "a dict": b"(" + _ways(100) + b"Nd.",
    "what a set is made of": b"c__builtin__\nset\n(" + _ways(100) + b"l\x85R.",
    "what is counted": b"ccollections\nCounter\n(" + _ways(100) + b"l\x85R.",
    "an ordered dict": b"ccollections\nOrderedDict\n(" + _ways(100) + b"N\x86l\x85R.",
    "so many zeros": b"c__builtin__\nbytearray\n" + part(1 << 45) + b"\x85R.",
    "no function": _ways(100) + b")R.",
    "no class": _ways(100) + b")\x81.",
    "no persistent id": _ways(100) + b"Q.",
    "a default of many ways": b"ccollections\ndefaultdict\n" + _ways(100) + b"\x85R.",
    "a mark": b"(.", "two marks": b"((.", "a mark in a tuple": b"(\x85.", "no mark": b"t.",
    "nothing": b".", "no end": b"N", "a popped mark": b"(00.", "a size of tuples":
    b"ctorch\nSize\n" + part(((1, 2),)) + b"\x85R.", "a number of many digits": b"L" + b"9" * 10**5,
    "a text of another length": b"X\xff\xff\xff\xff", "bytes": b"\x8e" + b"\xff" * 8,
    "a line without an end": b"cposix", "a memo that is empty": b"h\x05.", "a frame": b"\x95\x00",
}  # fmt: skip


@pytest.mark.parametrize("what", PICKLES)
def test_pickles_that_cannot_be(what: str) -> None:
    code = pickle.PROTO + b"\x02" + PICKLES[what]
    first = b"".join(pickle.dumps(each, protocol=2) for each in (MAGIC, 1001, {}))
    for file in (zipped(code), io.BytesIO(first + code)):
        with pytest.raises(pickle.UnpicklingError) as caught:
            antorcha.load(file)
        assert isinstance(caught.value, AntorchaError)
        assert len(str(caught.value)) < 1000


def test_a_file_does_not_take_more_memory_than_it_has_bytes() -> None:
    many = b"".join(rebuilt((1,), (1,), key=str(k))[2:-1] for k in range(100))
    file = zipped(
        pickle.PROTO + b"\x02(" + many + b"l.", **{f"_{k}": bytes(16) for k in range(100)}
    )
    assert len(antorcha.load(file)) == 100
    first = b"".join(pickle.dumps(each, protocol=2) for each in (MAGIC, 1001, {}))
    wide = many.replace(part(4) + b"tQ", part(len(many) // 8) + b"tQ")  # each half the file
    with pytest.raises(RuntimeError, match="no room for"):
        antorcha.load(io.BytesIO(first + pickle.PROTO + b"\x02(" + wide + b"l."))
    with pytest.raises(RuntimeError, match="not in it"):  # one storage, whose bytes are missing
        antorcha.load(io.BytesIO(first + rebuilt((1,), (1,)) + pickle.dumps([], protocol=2)))
    squeezed = io.BytesIO()
    with zipfile.ZipFile(squeezed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", rebuilt((4,), (1,)))
        archive.writestr("archive/data/0", bytes(16))
    assert antorcha.load(io.BytesIO(squeezed.getvalue())).tolist() == [0] * 4
    raw = squeezed.getvalue().replace(rebuilt((4,), (1,)), b"")
    at = raw.rindex(b"PK\x01\x02")  # the directory's entry of the storage: its size
    lie = raw[: at + 24] + struct.pack("<I", 1 << 31) + raw[at + 28 :]
    with zipfile.ZipFile(io.BytesIO(lie)) as archive:
        assert archive.getinfo("archive/data/0").file_size == 1 << 31
    with pytest.raises(RuntimeError, match="damaged"):
        antorcha.load(io.BytesIO(lie))


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    antorcha.save(antorcha.ones(2), path)
    with pytest.raises(Exception):  # noqa: B017
        antorcha.save([antorcha.ones(3), lambda: 1], path)
    assert antorcha.load(path).tolist() == [1, 1]
    assert os.listdir(tmp_path) == ["x.pt"]
    with pytest.raises(RuntimeError, match="does not exist"):
        antorcha.save(1, tmp_path / "no" / "x.pt")
