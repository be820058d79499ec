"""Parts of PyTorch that are absent: their names are imported, and raise when they are used."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import antorcha as torch
from antorcha import errors
from antorcha.core import absent

PROGRAM = """
from antorcha import torch_alias
torch_alias.install(hide=True)
import torch, torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointImpl
import torch.distributed.checkpoint as dcp
from torch.distributed._tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
import torch.ao.quantization, torch.utils.cpp_extension, torch.export

class Wrapped(FSDP):
    pass

def reduce(x: DTensor | None, op=dist.ReduceOp.SUM, how=ShardingStrategy.FULL_SHARD): ...

model = torch.nn.Linear(2, 2)
assert not isinstance(model, (FSDP, DTensor, DistributedDataParallel))
assert not (dist.is_available() or dist.is_initialized() or dist.is_nccl_available())
assert dist.group.WORLD is None and dist.Backend("GLOO") == dist.Backend.GLOO == "gloo"
assert dist.distributed_c10d.ReduceOp is dist.ReduceOp
for use in (
    lambda: Wrapped(model), lambda: dist.init_process_group("gloo"), lambda: dist.get_rank(),
    lambda: DTensor.from_local(model.weight), lambda: dcp.save({}), lambda: torch.export.export(1),
    lambda: torch.onnx.export(model, (), "f"), lambda: DistributedDataParallel(model),
    lambda: torch.utils.cpp_extension.load("f"),
):
    try:
        use()
    except NotImplementedError as error:
        print(str(error).split(":")[0])
"""


def test_a_library_imports_them_and_raises_when_it_uses_them() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        "torch.distributed.fsdp.FullyShardedDataParallel", "torch.distributed.init_process_group",
        "torch.distributed.get_rank", "torch.distributed._tensor.DTensor.from_local",
        "torch.distributed.checkpoint.save", "torch.export.export", "torch.onnx.export",
        "DistributedDataParallel", "torch.utils.cpp_extension.load",
    ]  # fmt: skip


def test_every_module_of_an_absent_part_can_be_imported() -> None:
    parts = tuple(absent.REASONS)
    for module in [*errors.pytorch_names(), *absent.PRIVATE]:
        if module in parts or module.startswith(tuple([f"{part}." for part in parts])):
            found = importlib.import_module(f"antorcha{module.removeprefix('torch')}")
            for name in errors.pytorch_names().get(module, ()):
                assert hasattr(found, name), f"{module}.{name}"


def test_names_that_pytorch_lacks_are_lacking() -> None:
    with pytest.raises(AttributeError, match=r"module 'torch.distributed' has no attribute 'al_re"):
        torch.distributed.al_reduce
    with pytest.raises(ImportError, match="Did you mean 'all_reduce'"):
        from antorcha.distributed import all_reducee  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match=r"torch\.distributed\.zebra|zebra"):
        importlib.import_module("antorcha.distributed.zebra")
    assert absent.is_absent(torch.distributed.all_reduce)
    assert not absent.is_absent(torch.distributed.is_available)


def test_names_of_torch_itself_say_what_to_do_without_them() -> None:
    names = errors.pytorch_names()["torch"]
    assert set(absent.NAMES) <= names
    for name in absent.NAMES:
        assert absent.is_absent(getattr(torch, name))
    with pytest.raises(NotImplementedError, match=r"torch.quantize_per_tensor: .*no quantized"):
        torch.quantize_per_tensor(torch.zeros(2), 0.1, 0, torch.qint8)
    with pytest.raises(NotImplementedError, match=r"torch.miopen_rnn: .*the library's name"):
        torch.miopen_rnn()
    with pytest.raises(NotImplementedError, match=r"Tensor\.q_scale: there are no quantized"):
        torch.zeros(2).q_scale()
    assert torch.chalf is torch.complex32
    with pytest.raises(NotImplementedError, match=r"torch.complex32 .* not supported"):
        torch.zeros(2).chalf()


def test_exports_and_quantization_say_that_they_are_not_there() -> None:
    assert torch.onnx.is_in_onnx_export() is False
    assert torch.backends.quantized.supported_engines == ["none"]
    with pytest.raises(NotImplementedError, match="there is no quantization"):
        torch.ao.quantization.convert(torch.nn.Linear(1, 1))
    with pytest.raises(NotImplementedError, match="there is no quantization"):
        torch.backends.quantized.engine = "fbgemm"


def test_a_function_with_an_absent_decorator_is_absent() -> None:
    from antorcha.distributed.rpc import api

    def gather() -> int:
        return 1

    absent_one = api._require_initialized(gather)
    with pytest.raises(NotImplementedError, match=r"rpc\.api\._require_initialized\.gather"):
        absent_one()
