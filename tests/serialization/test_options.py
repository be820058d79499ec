"""Mapped files, places of storages, byte order, sums, skipped data; formats beside PyTorch's."""

from __future__ import annotations

import io
import mmap
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest

import antorcha
from antorcha import serialization
from antorcha.serialization.archive import Archive
from antorcha.utils.serialization import config


def value(library: Any) -> dict[str, Any]:
    base = library.arange(12.0).view(3, 4)
    half = library.arange(6.0).to(library.bfloat16)
    return {"a": base, "view": base[1:, ::2], "t": base.t(), "half": half, "none": library.ones(0),
            "b": library.tensor([True, False]), "c": library.ones(2) * 1j, "one": library.tensor(3),
            "wide": library.ones(3).expand(2, 3), "u": library.ones(2).to(library.uint32),
            "conj": (library.ones(2) * 1j).conj()}  # fmt: skip


def check(loaded: Any, expected: Any) -> None:
    assert list(loaded) == list(expected)
    for name, tensor in expected.items():
        assert loaded[name].tolist() == tensor.tolist(), name
        assert str(loaded[name].dtype) == str(tensor.dtype), name
        assert loaded[name].stride() == tensor.stride(), name
    address = loaded["a"].untyped_storage().data_ptr()
    assert loaded["view"].untyped_storage().data_ptr() == address
    assert loaded["t"].untyped_storage().data_ptr() == address


@pytest.mark.oracle
@pytest.mark.parametrize("mapped", [False, True], ids=["read", "mapped"])
def test_every_way_of_a_file(mapped: bool, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    for writer, reader in ((torch, antorcha), (antorcha, torch), (antorcha, antorcha)):
        for trust in (True, False):
            path = tmp_path / "model.pt"
            writer.save(value(writer), path)
            check(reader.load(path, mmap=mapped, weights_only=not trust), value(reader))
            check(reader.load(str(path), "cpu", mmap=mapped), value(reader))
        if not mapped:
            file = io.BytesIO()
            old = {k: v for k, v in value(writer).items() if k != "u"}
            writer.save(old, file, _use_new_zipfile_serialization=False)
            wanted = {k: v for k, v in value(reader).items() if k != "u"}
            for where in (None, "cpu", lambda storage, place: storage):
                file.seek(0)
                check(reader.load(file, map_location=where), wanted)
            file.seek(0)
            path.write_bytes(file.getvalue())
            check(reader.load(path), wanted)


@pytest.mark.oracle
def test_pytorch_maps_ours_by_every_way(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "x.pt"
    antorcha.save(value(antorcha), path)
    from torch.utils.serialization import config as theirs

    theirs.load.calculate_storage_offsets = True
    try:
        check(torch.load(path, mmap=True), value(torch))
        assert torch.load(path, map_location="meta")["view"].shape == (2, 2)
    finally:
        theirs.load.calculate_storage_offsets = False


def test_mapped_files(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    antorcha.save({"x": antorcha.ones(5000), "y": antorcha.zeros(3)}, path)
    content = path.read_bytes()
    loaded = antorcha.load(path, mmap=True)
    loaded["x"] += 1  # a copy of the page
    assert loaded["x"].sum().item() == 10000
    assert path.read_bytes() == content
    assert antorcha.load(path, mmap=True)["x"].sum().item() == 5000
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        shared = antorcha.load(path, mmap=True)
        shared["y"].fill_(7)
        del shared
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    assert antorcha.load(path)["y"].tolist() == [7, 7, 7]
    os.unlink(path)
    assert loaded["y"].tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="file path in order to use the mmap"):
        antorcha.load(io.BytesIO(content), mmap=True)
    antorcha.save(antorcha.ones(1), path, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        antorcha.load(path, mmap=True)
    with pytest.raises(ValueError, match=r"expected mmap\.MAP_PRIVATE"):
        serialization.set_default_mmap_options(12345)
    config.load.mmap = True
    try:
        antorcha.save(antorcha.ones(2), path)
        assert not antorcha.load(path).untyped_storage().resizable()
    finally:
        config.load.mmap = False


def test_every_form_of_map_location() -> None:
    file = io.BytesIO()
    antorcha.save({"x": antorcha.ones(2)}, file)
    raw = file.getvalue()

    def load(where: Any) -> Any:
        return antorcha.load(io.BytesIO(raw), map_location=where)["x"]

    for where in ("cpu", antorcha.device("cpu"), {"cpu": "cpu"}, {}, lambda s, place: None,
                  lambda s, place: s, None):  # fmt: skip
        assert load(where).tolist() == [1, 1]
    for where in ("meta", antorcha.device("meta"), {"cpu": "meta"}):
        assert load(where).is_meta
    other = antorcha.arange(2.0)
    assert load(lambda s, place: other.untyped_storage()).tolist() == [0, 1]
    for where in ("cuda", "cuda:1", {"cpu": "cuda"}):
        with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA"):
            load(where)
    with pytest.raises(RuntimeError, match="don't know how to restore data location"):
        load("nowhere")


def test_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serialization.options, "packages", [])
    seen = []

    def bring(storage: Any, place: str) -> Any:
        seen.append(place)
        return storage if place == "far" else None

    serialization.register_package(5, lambda storage: "far", bring)
    file = io.BytesIO()
    antorcha.save(antorcha.ones(2), file)
    assert b"far" in file.getvalue()
    assert antorcha.load(io.BytesIO(file.getvalue())).tolist() == [1, 1]
    assert seen == ["far"]
    storage = antorcha.ones(2).untyped_storage()
    assert serialization.location_tag(storage) == "far"
    assert serialization.default_restore_location(storage, "far") == storage


@pytest.mark.oracle
def test_skipped_data() -> None:
    torch = pytest.importorskip("torch")
    for writer, reader in ((torch, antorcha), (antorcha, torch), (antorcha, antorcha)):
        file = io.BytesIO()
        with writer.serialization.skip_data():
            writer.save([writer.ones(3), writer.ones(2)], file)
        assert [t.tolist() for t in reader.load(io.BytesIO(file.getvalue()))] == [[0] * 3, [0] * 2]
        raw = bytearray(file.getvalue())  # the data are filled in later
        with zipfile.ZipFile(io.BytesIO(bytes(raw))) as archive:
            entry = next(i for i in archive.infolist() if i.filename.endswith("data/0"))
        at = entry.header_offset
        start = at + 30 + sum(struct.unpack_from("<HH", raw, at + 26))
        raw[start : start + 12] = struct.pack("<3f", 1, 2, 3)
        assert reader.load(io.BytesIO(bytes(raw)))[0].tolist() == [1, 2, 3]
        with reader.serialization.skip_data():
            assert reader.load(io.BytesIO(bytes(raw)))[0].shape == (3,)
    with serialization.skip_data(), pytest.raises(RuntimeError, match="skip_data=True"):
        antorcha.save(antorcha.ones(1), io.BytesIO(), _use_new_zipfile_serialization=False)


@pytest.mark.oracle
def test_sums_are_left_out() -> None:
    torch = pytest.importorskip("torch")
    for writer, reader in ((torch, antorcha), (antorcha, torch), (antorcha, antorcha)):
        assert writer.serialization.get_crc32_options()
        writer.serialization.set_crc32_options(False)
        try:
            file = io.BytesIO()
            writer.save(writer.ones(3), file)
        finally:
            writer.serialization.set_crc32_options(True)
        with zipfile.ZipFile(file) as archive:
            assert {info.CRC for info in archive.infolist()} == {0}
        assert reader.load(io.BytesIO(file.getvalue())).tolist() == [1, 1, 1]
    with zipfile.ZipFile(io.BytesIO(saved(antorcha.ones(3)))) as archive:
        assert archive.testzip() is None


def saved(what: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    antorcha.save(what, file, **options)
    return file.getvalue()


def test_byte_order() -> None:
    what = {"x": antorcha.arange(3.0), "i": antorcha.arange(3), "c": antorcha.ones(2) * 1j}
    raw = saved(what)
    plain = saved(what, _disable_byteorder_record=True)
    with zipfile.ZipFile(io.BytesIO(plain)) as archive:
        assert "archive/byteorder" not in archive.namelist()
    assert antorcha.load(io.BytesIO(plain))["i"].tolist() == [0, 1, 2]
    swapped = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as archive, zipfile.ZipFile(swapped, "w") as target:
        for info in archive.infolist():
            content = archive.read(info)
            widths = {"archive/data/0": 4, "archive/data/1": 8, "archive/data/2": 4}
            width = widths.get(info.filename, 0)
            if width:
                content = b"".join(content[k : k + width][::-1]
                                   for k in range(0, len(content), width))  # fmt: skip
            if not info.filename.endswith("byteorder"):
                target.writestr(info.filename, content)
    LoadEndianness = serialization.LoadEndianness
    assert serialization.get_default_load_endianness() is None
    serialization.set_default_load_endianness(LoadEndianness.BIG)
    try:
        found = antorcha.load(io.BytesIO(swapped.getvalue()))
    finally:
        serialization.set_default_load_endianness(None)
    for name, tensor in what.items():
        assert found[name].tolist() == tensor.tolist()
    with pytest.raises(TypeError, match="set_default_load_endianness"):
        serialization.set_default_load_endianness("big")  # type: ignore[arg-type]


class Grudging(io.RawIOBase):
    """A file that cannot seek, and takes a few bytes at a time."""

    def __init__(self) -> None:
        self.content = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, part: Any) -> int:
        taken = bytes(part[:1000])
        self.content += taken
        return len(taken)


@pytest.mark.oracle
def test_files_that_only_write(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    for old in (False, True):
        file = Grudging()
        antorcha.save([antorcha.arange(5000.0), "x"], file, _use_new_zipfile_serialization=not old)
        for library in (torch, antorcha):
            assert library.load(io.BytesIO(bytes(file.content)))[0].sum().item() == 12497500
    with open(tmp_path / "two.pt", "wb") as both:
        both.write(b"before")
        antorcha.save(antorcha.ones(1), both)


def test_records_beyond_4_gb_have_zip64_headers() -> None:
    class Far(io.BytesIO):
        """Forgets the zeros in the middle."""

        def write(self, part: Any) -> int:
            if len(part) == 1 << 24:
                self.left = getattr(self, "left", 0) + len(part)
                return len(part)
            return super().write(part)

    file = Far()
    archive = Archive(file, "a")
    archive.leave("large", 5 << 30)
    at = archive.at
    archive.add("after", b"xyz")
    archive.close()
    assert at > 5 << 30
    raw = file.getvalue()
    end, entry = raw.rindex(b"PK\x05\x06"), raw.index(b"PK\x01\x02")
    length = len(raw) - entry - 22 - 20 - 56  # the directory's, without the records of its end
    assert struct.unpack_from("<HHHHII", raw, end + 4)[4:] == (length, 0xFFFFFFFF)
    moved = entry + file.left
    record = struct.unpack_from("<QHHIIQQQQ", raw, raw.rindex(b"PK\x06\x06") + 4)
    assert record[5:7] == (2, 2)
    assert record[8] == moved
    sizes = struct.unpack_from("<HHQQ", raw, entry + 46 + len("a/large"))
    assert sizes == (1, 16, 5 << 30, 5 << 30)


def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = saved(antorcha.nn.ReLU())
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    assert type(antorcha.load(io.BytesIO(raw))) is antorcha.nn.ReLU
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="Only one of"):
        antorcha.load(io.BytesIO(raw))
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    with pytest.raises(Exception, match="Weights only load failed"):
        antorcha.load(io.BytesIO(raw), weights_only=False)


def test_storages(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(struct.pack("<4f", 1, 2, 3, 4))
    storage = antorcha.UntypedStorage.from_file(path, False, 16)
    assert storage.filename == str(path)
    x = antorcha.asarray(storage[4:12], dtype=antorcha.uint8).view(antorcha.float32)
    assert x.tolist() == [2, 3]
    x += 1
    assert storage.float().tolist()[4:8] == list(struct.pack("<f", 3))
    assert antorcha.FloatStorage is not None
    assert path.read_bytes() == struct.pack("<4f", 1, 2, 3, 4)
    shared = antorcha.UntypedStorage.from_file(str(path), shared=True, nbytes=16)
    shared.fill_(0)
    assert path.read_bytes() == bytes(16)
    longer = antorcha.UntypedStorage.from_file(str(tmp_path / "new"), True, 10)
    assert longer.tolist() == [0] * 10
    with pytest.raises(RuntimeError, match="size <16> is smaller"):
        antorcha.UntypedStorage.from_file(path, False, 17)
    with pytest.raises(RuntimeError, match="unable to open file"):
        antorcha.UntypedStorage.from_file(tmp_path / "no", False, 1)
    typed = antorcha.storage.TypedStorage([1, 2, 3], dtype=antorcha.int16)
    typed.untyped().byteswap(antorcha.int16)
    assert typed.tolist() == [256, 512, 768]
    assert typed.double().tolist() == [256, 512, 768]
    assert typed.type() == "torch.ShortStorage"
    assert typed.resizable()
    assert typed.get_device() == -1
    assert typed.to(device="meta").device.type == "meta"
