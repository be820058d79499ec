"""GGUF files: written here by the specification, and by the package gguf where it is installed."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import antorcha
from antorcha.errors import AntorchaError
from antorcha.serialization import load_gguf

KINDS = {"B": 0, "b": 1, "H": 2, "h": 3, "I": 4, "i": 5, "f": 6, "?": 7, "Q": 10, "q": 11, "d": 12}


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def value(kind: str, what: Any) -> bytes:
    if kind == "s":
        return struct.pack("<I", 8) + text(what)
    if kind.startswith("["):
        inner = [value(kind[1:], each) for each in what]
        of = struct.unpack("<I", value(kind[1:], what[0])[:4])[0]
        return struct.pack("<IIQ", 9, of, len(what)) + b"".join(each[4:] for each in inner)
    return struct.pack("<I", KINDS[kind]) + struct.pack(f"<{kind}", what)


def written(
    metadata: dict[str, tuple[str, Any]], tensors: dict[str, tuple[tuple[int, ...], int, bytes]],
    version: int = 3, alignment: int = 32,
) -> bytes:  # fmt: skip
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    for name, entry in metadata.items():
        head += text(name) + value(*entry)
    content = b""
    for name, (shape, kind, data) in tensors.items():
        content += bytes(-len(content) % alignment)
        head += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q",
                                                                         *shape[::-1])  # fmt: skip
        head += struct.pack("<IQ", kind, len(content))
        content += data
    return head + bytes(-len(head) % alignment) + content


def example(version: int = 3, alignment: int = 32) -> tuple[bytes, dict[str, np.ndarray[Any, Any]]]:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((3, 64)).astype(np.float32)
    scales = np.array([0.5, -0.25, 2.0, 1.5, 0.125, 1.0], np.float16)
    small = rng.integers(0, 16, (6, 32))
    packed = (small[:, :16] | small[:, 16:] << 4).astype(np.uint8)
    four = b"".join(s.tobytes() + p.tobytes() for s, p in zip(scales, packed, strict=True))
    large = rng.integers(-128, 128, (6, 32)).astype(np.int8)
    eight = b"".join(s.tobytes() + p.tobytes() for s, p in zip(scales, large, strict=True))
    brain = (weights.view(np.uint32) >> 16).astype(np.uint16)
    wide = scales[:, None].astype(np.float32)
    expected = {
        "f32": weights, "f16": weights.astype(np.float16).astype(np.float32),
        "bf16": (brain.astype(np.uint32) << 16).view(np.float32),
        "q4": ((small - 8) * wide).astype(np.float32).reshape(3, 64),
        "q8": (large * wide).astype(np.float32).reshape(3, 64),
        "i32": np.arange(5, dtype=np.int32), "none": np.zeros((0, 4), np.float32),
    }  # fmt: skip
    tensors = {
        "f32": ((3, 64), 0, weights.tobytes()),
        "f16": ((3, 64), 1, weights.astype(np.float16).tobytes()),
        "bf16": ((3, 64), 30, brain.tobytes()), "q4": ((3, 64), 2, four),
        "q8": ((3, 64), 8, eight), "i32": ((5,), 26, np.arange(5, dtype=np.int32).tobytes()),
        "none": ((0, 4), 0, b""),
    }  # fmt: skip
    metadata = {
        "general.architecture": ("s", "llama"), "general.alignment": ("I", alignment),
        "numbers": ("[f", [0.5, 1.5]), "tokens": ("[s", ["a", "é"]), "yes": ("?", True),
        "nested": ("[[i", [[1, 2], [3]]), "far": ("q", -(1 << 40)), "double": ("d", 0.1),
    }  # fmt: skip
    return written(metadata, tensors, version, alignment), expected


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("alignment", [32, 64])
def test_tensors_and_metadata(version: int, alignment: int, tmp_path: Path) -> None:
    content, expected = example(version, alignment)
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    found = antorcha.serialization.load_gguf(path)
    assert list(found.tensors) == list(expected)
    for name, array in expected.items():
        assert found.tensors[name].shape == array.shape
        np.testing.assert_array_equal(found.tensors[name].float().numpy(), array.astype(np.float32))
    dtypes = [str(t.dtype).removeprefix("torch.") for t in found.tensors.values()]
    assert dtypes == ["float32", "float16", "bfloat16", "float32", "float32", "int32", "float32"]
    assert found.metadata == {
        "general.architecture": "llama", "general.alignment": alignment, "numbers": [0.5, 1.5],
        "tokens": ["a", "é"], "yes": True, "nested": [[1, 2], [3]], "far": -(1 << 40),
        "double": 0.1,
    }  # fmt: skip
    found.tensors["f32"].zero_()  # a copy of the page, not the file
    assert path.read_bytes() == content


def test_other_quantizations_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    for kind, name in ((12, "Q4_K"), (3, "Q4_1"), (99, "kind 99")):
        path.write_bytes(written({}, {"w": ((32,), kind, bytes(64))}))
        with pytest.raises(NotImplementedError, match=f"'w' is quantized as .*{name}"):
            load_gguf(path)
    path.write_bytes(b"GGUF" + struct.pack(">IQQ", 3, 0, 0))
    with pytest.raises(NotImplementedError, match="big-endian"):
        load_gguf(path)


def test_files_that_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + text("w")
    hostile = {
        "nothing": b"", "another": b"PK\3\4" + bytes(40), "short": b"GGUF\3",
        "counts": b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0),
        "entries": b"GGUF" + struct.pack("<IQQ", 3, 0, (1 << 64) - 1),
        "dims": head + struct.pack("<I", 1 << 31) + bytes(99),
        "sizes": head + struct.pack("<IQQIQ", 2, 1 << 62, 1 << 62, 0, 0) + bytes(99),
        "size": head + struct.pack("<IQIQ", 1, 1 << 40, 0, 0) + bytes(99),
        "offset": head + struct.pack("<IQIQ", 1, 4, 0, 1 << 63) + bytes(99),
        "unaligned": head + struct.pack("<IQIQ", 1, 4, 0, 7) + bytes(99),
        "blocks": head + struct.pack("<IQIQ", 1, 33, 8, 0) + bytes(99),
        "alignment": written({"general.alignment": ("I", 0)}, {}),
        "alignment's kind": written({"general.alignment": ("s", "x")}, {}),
        "deep": b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<I", 9)
        + struct.pack("<IQ", 9, 1) * 5000,
        "twice": b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + (text("k") + value("B", 1)) * 2,
    }  # fmt: skip
    for what, content in hostile.items():
        path.write_bytes(content)
        with pytest.raises(RuntimeError) as caught:
            load_gguf(path)
        assert isinstance(caught.value, AntorchaError), what
    whole, _ = example()
    rng = random.Random(0)
    for k in range(1500):
        damaged = bytearray(whole)
        if k % 3:
            for _ in range(rng.choice([1, 3, 20])):
                damaged[rng.randrange(900 if k % 2 else len(whole))] = rng.randrange(256)
        else:
            damaged = damaged[: rng.randrange(len(whole))]
        path.write_bytes(bytes(damaged))
        try:
            for tensor in load_gguf(path).tensors.values():
                tensor.float().sum().item()
        except RuntimeError as error:
            assert isinstance(error, AntorchaError)  # noqa: PT017


def test_files_of_the_package(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    path = tmp_path / "x.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_block_count(2)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(["a", "b"])
    weights = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32)
    writer.add_tensor("plain", weights)
    kinds = {name: gguf.GGMLQuantizationType[name] for name in ("F16", "BF16", "Q4_0", "Q8_0")}
    packed = {name: gguf.quants.quantize(weights, kind) for name, kind in kinds.items()}
    for name, array in packed.items():
        writer.add_tensor(name, array, raw_dtype=kinds[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = load_gguf(path)
    assert found.metadata["llama.block_count"] == 2
    assert found.metadata["tokenizer.ggml.tokens"] == ["a", "b"]
    np.testing.assert_array_equal(found.tensors["plain"].numpy(), weights)
    for name, array in packed.items():
        expected = gguf.quants.dequantize(array, kinds[name])
        np.testing.assert_array_equal(found.tensors[name].float().numpy(), expected)
