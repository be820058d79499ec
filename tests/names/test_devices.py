"""What programs ask of devices before they work: the answers are a CPU-only PyTorch's."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest

import antorcha as torch

QUESTIONS = """
cuda.is_available() cuda.is_initialized() cuda.device_count() cuda.is_bf16_supported()
cuda.memory_allocated() cuda.max_memory_allocated() cuda.memory_reserved() cuda.get_rng_state_all()
cuda.get_arch_list() cuda.empty_cache() cuda.manual_seed(0) cuda.manual_seed_all(0) cuda.seed_all()
cuda.default_generators cuda.set_rng_state_all([]) cuda.memory_stats() cuda.get_gencode_flags()
accelerator.is_available() accelerator.device_count() accelerator.current_accelerator()
xpu.is_available() xpu.device_count() xpu.is_bf16_supported() xpu.memory_allocated()
mps.is_available() mps.device_count() mps.manual_seed(0) mtia.is_available() mtia.device_count()
cpu.is_available() cpu.device_count() cpu.current_device() cpu.synchronize()
backends.cuda.is_built() backends.cudnn.is_available() backends.cudnn.enabled
backends.cudnn.benchmark backends.cudnn.deterministic backends.cudnn.allow_tf32
backends.cudnn.version() backends.mps.is_available() backends.mps.is_built()
backends.cuda.matmul.allow_tf32 backends.cuda.flash_sdp_enabled() backends.cuda.math_sdp_enabled()
backends.cuda.is_flash_attention_available() backends.opt_einsum.strategy
backends.mkldnn.enabled backends.mha.get_fastpath_enabled() is_vulkan_available()
is_deterministic_algorithms_warn_only_enabled() get_deterministic_debug_mode()
is_warn_always_enabled() distributed.is_torchelastic_launched() onnx.is_in_onnx_export()
jit.is_tracing() jit.is_scripting() compiler.is_compiling() _C._get_privateuse1_backend_name()
_C._get_tracing_state() _C._log_api_usage_once("x") _C._get_default_device()
ones(2,3).is_xpu ones(2).is_mkldnn ones(2).is_distributed() ones(2).is_conj() ones(2,3).dim_order()
scalar_tensor(3) sym_max(2,3.0) sym_int(2.5) sym_ite(True,1,2) sym_not(True) sym_sum([1,2])
_utils._element_size(torch.int16) _shape_as_tensor(torch.ones(2,3))
"""
REFUSED = """
cuda.current_device() cuda.get_device_name() cuda.get_device_capability() cuda.synchronize()
cuda.get_device_properties(0) cuda.mem_get_info() cuda.current_stream() cuda.init()
cuda.get_rng_state() accelerator.current_device_index() accelerator.synchronize()
accelerator.memory_allocated() accelerator.set_device_index(0) accelerator.current_stream()
xpu.synchronize() xpu.current_device() mps.synchronize() mtia.current_device()
cuda.nvtx.range_push("a") ones(2).xpu() backends.opt_einsum.set_flags(_strategy="worst")
"""


def _value(torch: Any, question: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(f"torch.{question}", {"torch": torch})


@pytest.mark.oracle
def test_questions_are_answered_as_on_a_cpu() -> None:
    theirs = pytest.importorskip("torch")
    importlib.import_module("torch.onnx")
    for question in QUESTIONS.split():
        assert repr(_value(torch, question)) == repr(_value(theirs, question)), question


@pytest.mark.oracle
def test_what_needs_a_device_raises_pytorchs_class() -> None:
    theirs = pytest.importorskip("torch")
    for question in REFUSED.split()[:-1]:
        with pytest.raises(Exception) as expected:
            _value(theirs, question)
        with pytest.raises(expected.type):
            _value(torch, question)


def test_contexts_of_no_device_change_nothing() -> None:
    with torch.cuda.device(None), torch.cuda.device(-1), torch.cuda.stream(None):
        pass
    with torch.cuda.device_of(torch.ones(1)), torch.accelerator.device_index(None):
        pass
    with pytest.raises(AssertionError), torch.cuda.device(0):
        pass
    with pytest.raises(AssertionError):
        torch.cuda.Event()
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor)
    assert torch.cuda.memory.max_memory_allocated() == 0
    assert torch.cuda.random.get_rng_state_all() == []


def test_switches_keep_what_they_are_set_to() -> None:
    switches = torch.backends.cudnn
    with switches.flags(enabled=False, deterministic=True):
        assert (switches.enabled, switches.deterministic) == (False, True)
    assert (switches.enabled, switches.deterministic) == (True, False)
    with (
        pytest.raises(TypeError, match="unexpected keyword argument 'fast'"),
        switches.flags(fast=True),
    ):
        pass
    cuda = torch.backends.cuda
    with pytest.warns(FutureWarning, match="sdpa_kernel"), cuda.sdp_kernel(enable_flash=False):
        assert not cuda.flash_sdp_enabled()
    assert cuda.flash_sdp_enabled()
    with pytest.raises(ValueError, match="`strategy` must be one of"):
        torch.backends.opt_einsum.strategy = "worst"


def test_algorithms_are_deterministic_by_any_name() -> None:
    torch.set_deterministic_debug_mode("warn")
    assert torch.is_deterministic_algorithms_warn_only_enabled()
    assert torch.get_deterministic_debug_mode() == 1
    torch.set_deterministic_debug_mode(2)
    assert torch.are_deterministic_algorithms_enabled()
    torch.set_deterministic_debug_mode("default")
    assert not torch.are_deterministic_algorithms_enabled()
    with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
        torch.set_deterministic_debug_mode(3)
