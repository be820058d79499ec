"""The machine that code is generated for, and the LLVM objects that generate it.

``ANTORCHA_TARGET`` chooses: ``native`` (the default: this CPU), ``avx2`` (Haswell's features, so
that the AVX2 form of a kernel runs on an AVX-512 machine), ``sse2`` (any x86-64), or an LLVM CPU
name. llvmlite is imported when a target is first wanted, not before.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from antorcha import config
from antorcha.core.lazy import imported
from antorcha.errors import NativeError
from antorcha.lang.native.digest import compiler_hash

_ALIASES = {"avx2": "haswell", "sse2": "x86-64"}
_AVX512 = ("avx512f", "avx512bw", "avx512dq", "avx512vl")
# features of the CPUs that may be asked for by name (LLVM's own tables are not readable from here)
_HASWELL = ("avx", "avx2", "f16c", "fma", "bmi", "bmi2", "lzcnt", "popcnt", "sse4.1", "sse4.2")
_NAMED: dict[str, tuple[str, ...]] = {
    "x86-64": (),
    "x86-64-v2": ("popcnt", "sse4.1", "sse4.2"),
    "x86-64-v3": _HASWELL,
    "haswell": _HASWELL,
    "x86-64-v4": _HASWELL + _AVX512,
    "skylake-avx512": _HASWELL + _AVX512,
}


@dataclass(frozen=True)
class Target:
    """The machine: ``arch`` (x86_64, aarch64, ...), LLVM's CPU name, its features, vector width."""

    arch: str
    triple: str
    cpu: str
    features: frozenset[str] = field(repr=False)
    feature_text: str = field(repr=False)  # as LLVM wants it
    vector_bits: int  # 512, 256 or 128: the width that kernels should use
    key: str = field(repr=False)  # hash text: compiler, LLVM, CPU and its whole feature string
    grid: str = ""  # what runs a kernel's threads: "" nothing (a CPU), "sim", "ptx", "spirv"
    access: Any = field(default=None, repr=False)  # sim: the Spec that finds what a pointer names

    def has(self, feature: str) -> bool:
        return feature in self.features

    def lanes(self, ty: Any) -> int:
        """Elements of that scalar type in one vector register."""
        return int(self.vector_bits // (8 * ty.size))

    @property
    def converts_f16(self) -> bool:
        """Are there instructions between f16 and f32?"""
        return "f16c" in self.features or self.arch in ("aarch64", "nvptx64")


@cache
def binding() -> Any:
    """llvmlite's binding, its targets set up."""
    llvm = imported("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()  # without it inline assembly aborts the process
    return llvm


@cache
def target() -> Target:
    """The machine that code is generated for."""
    llvm = binding()
    triple = llvm.get_process_triple()
    arch = {"amd64": "x86_64", "arm64": "aarch64"}.get(triple.split("-")[0], triple.split("-")[0])
    chosen = config.target
    if chosen in (None, "native"):
        found = llvm.get_host_cpu_features()
        cpu, text = llvm.get_host_cpu_name(), found.flatten()
        features = frozenset(name for name, on in found.items() if on)
    else:
        cpu = _ALIASES.get(chosen, chosen)
        text = ""
        if arch == "x86_64" and cpu not in _NAMED:
            raise NativeError(
                f"ANTORCHA_TARGET={chosen!r} is not known; use native, avx2, sse2, "
                + ", ".join(_NAMED)
            )
        features = frozenset(_NAMED.get(cpu, ()))
    key = f"{compiler_hash()}|{llvm.llvm_version_info}|{triple}|{cpu}|{text}|{sys.version_info[:2]}"
    return Target(arch, triple, cpu, features, text, _vector_bits(arch, features), key)


def simulated(access: Any) -> Target:
    """This CPU as a GPU: a kernel's threads are run by ``devices/sim``, and what a pointer names is
    found, and checked, by ``access``."""
    host = target()
    return replace(host, key=f"{host.key}|sim|{access.symbol}", grid="sim", access=access)


@cache
def nvptx(sm: int, alone: bool = False) -> Target:
    """An NVIDIA GPU of compute capability ``sm`` (80, 90, ...) or newer; ``alone``: of no other,
    with the instructions that newer ones have not."""
    features = f"+ptx{max(PTX_VERSIONS.get(sm, 83), OWN_PTX if alone else 0)}"
    cpu = f"sm_{sm}{'a' if alone else ''}"
    key = f"{compiler_hash()}|{binding().llvm_version_info}|nvptx64|{cpu}|{features}"
    return Target(
        "nvptx64", "nvptx64-nvidia-cuda", cpu, frozenset(), features, 128, key, grid="ptx"
    )


@cache
def spirv() -> Target:
    """Any device of OpenCL that takes SPIR-V 1.4 and has sub-groups of 32."""
    triple = "spirv64v1.4-unknown-unknown"
    key = f"{compiler_hash()}|{binding().llvm_version_info}|{triple}"
    return Target("spirv64", triple, "", frozenset(), "", 128, key, grid="spirv")


PTX_VERSIONS = {75: 63, 80: 70, 86: 71, 89: 78, 90: 78, 100: 86, 120: 87}
"""The first PTX version that knows a compute capability: a driver of that time takes it."""
OWN_PTX = 83
"""The first PTX version with a capability's own instructions (sm_90a)."""


def _vector_bits(arch: str, features: frozenset[str]) -> int:
    if arch == "x86_64":
        if all(name in features for name in _AVX512):
            return 512
        return 256 if "avx2" in features else 128
    return 128


@cache
def machine(level: int = 2) -> Any:
    """LLVM's code generator at this level (0 to 3)."""
    llvm, to = binding(), target()
    return llvm.Target.from_triple(to.triple).create_target_machine(
        cpu=to.cpu, features=to.feature_text, opt=level, jit=True
    )


def optimise(module: Any, level: str) -> Any:
    """Runs a level's passes over a module; gives the code generator to use for it."""
    passes, _, rest = level.partition(".")
    generator = machine(int(rest or 2))
    if passes == "none":
        return generator
    builder = _pass_builder(passes, generator)
    if passes == "small":
        manager = binding().create_new_module_pass_manager()
        manager.add_simplify_cfg_pass()
        manager.add_instruction_combine_pass()
        manager.add_simplify_cfg_pass()
    else:
        manager = builder.getModulePassManager()
    manager.run(module, builder)  # (a manager runs once)
    return generator


@cache
def _pass_builder(passes: str, generator: Any) -> Any:
    llvm = binding()
    speed = {"O0": 0, "O1": 1, "O2": 2, "O3": 3}.get(passes, 1)
    options = llvm.create_pipeline_tuning_options(speed_level=speed)
    options.loop_vectorization = options.slp_vectorization = passes == "O3"
    return llvm.create_pass_builder(generator, options)
