"""The package safetensors, unmodified, where antorcha is served as torch."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import antorcha.torch_alias as alias
alias.install(hide=True)
import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model

names = "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool uint16 uint32".split()
tensors = {name: torch.arange(6).view(2, 3).to(getattr(torch, name)) for name in names}
tensors |= {"scalar": torch.tensor(3.0), "none": torch.zeros(0, 2)}

def check(found):
    assert sorted(found) == sorted(tensors)
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype, name
        assert found[name].shape == tensor.shape, name
        assert torch.equal(found[name], tensor), name

save_file(tensors, "x.safetensors", metadata={"format": "pt"})
check(load_file("x.safetensors"))
check(load(save(tensors)))
check(torch.load("x.safetensors"))
with safe_open("x.safetensors", framework="pt", device="cpu") as file:
    assert file.metadata() == {"format": "pt"}
    part = file.get_slice("float32")
    assert part.get_shape() == [2, 3]
    assert part[:, 1:].tolist() == [[1, 2], [4, 5]]
    part[:].add_(1)  # a copy: the file is as it was
check(load_file("x.safetensors"))

class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Embedding(4, 3)
        self.b = torch.nn.Linear(3, 4, bias=False)
        self.b.weight = self.a.weight

one, two = Tied(), Tied()
save_model(one, "m.safetensors")
assert load_model(two, "m.safetensors") == (set(), [])
assert torch.equal(one.b.weight, two.b.weight)
for refused in ({"a": one.a.weight, "b": one.b.weight}, {"x": torch.ones(2, 2, device="meta")}):
    try:
        save_file(refused, "y.safetensors")
    except RuntimeError as error:
        print(str(error).split(";")[0].strip().split(",")[0])
"""


def test_the_package_works(tmp_path: Path) -> None:
    if importlib.util.find_spec("safetensors") is None:
        pytest.skip("safetensors is not installed")
    places = os.pathsep.join(os.path.abspath(p) for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": places},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "Some tensors share memory", "Cannot copy out of meta tensor",
    ]  # fmt: skip
