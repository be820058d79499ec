"""``torch.backends``: which accelerators and libraries can be used, and their switches.

Kernels are antorcha's own. On NVIDIA's GPUs their libraries, where they are installed, compute
products, decompositions, convolutions and transforms, and `cuda` and `cudnn` choose whether and how
(``core.switches``, which the device reads). Any other switch keeps what it was set to, as in a
PyTorch on a machine without the library, and changes no result.

See https://docs.pytorch.org/docs/stable/backends.html.
"""

from __future__ import annotations

import contextlib
import platform
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from antorcha.core import switches
from antorcha.core.lazy import lazy
from antorcha.core.switches import Switches
from antorcha.errors import MissingFeature, ValueRangeError, explain_missing, warn
from antorcha.lang.native.machine import target

cuda_libraries = lazy("antorcha.devices.cuda.libraries")
mps_library = lazy("antorcha.devices.mps.library")

fp32_precision = "none"


class _Backend(ModuleType):
    """One backend's switches, as PyTorch names them. A module: programs import it by name."""

    def __init__(self, name: str, available: bool = False, **settings: object) -> None:
        super().__init__(f"{__name__}.{name}", f"``torch.backends.{name}``: its switches.")
        self.__path__: list[str] = []  # PyTorch's are packages
        self._available = available
        for setting, value in settings.items():
            setattr(self, setting, value)
        explain_missing(f"torch.backends.{name}", vars(self))
        sys.modules[self.__name__] = self

    def is_available(self) -> bool:
        """Can it be used here?"""
        return self._available

    def is_built(self) -> bool:
        """Is it part of this antorcha?"""
        return self._available

    def version(self) -> int | None:
        """The library's version: None without it."""
        return None

    @contextlib.contextmanager
    def flags(self, **settings: Any) -> Iterator[None]:
        """A context with other switches: ``flags(enabled=False)``."""
        unknown = settings.keys() - set(self._names())
        if unknown:
            raise TypeError(f"flags() got an unexpected keyword argument {min(unknown)!r}")
        before = {name: getattr(self, name) for name in settings}
        self._set({k: v for k, v in settings.items() if v is not None})
        try:
            yield
        finally:
            self._set(before)

    def _names(self) -> Iterable[str]:
        return vars(self)

    def _set(self, settings: dict[str, Any]) -> None:
        vars(self).update(settings)


class _CPU(_Backend):
    def get_cpu_capability(self) -> str:
        """The vector instructions that kernels are compiled for, as PyTorch names them."""
        return {512: "AVX512", 256: "AVX2"}.get(target().vector_bits, "DEFAULT")


def _shown(name: str) -> Any:
    """An attribute that is a switch of ``core.switches``."""

    def get(_: Any) -> Any:
        return getattr(switches.cudnn, name)

    def change(_: Any, value: Any) -> None:
        setattr(switches.cudnn, name, value)

    return property(get, change)


class _CuDNN(_Backend):
    enabled, benchmark, deterministic, allow_tf32, benchmark_limit, fp32_precision = map(
        _shown, "enabled benchmark deterministic allow_tf32 benchmark_limit fp32_precision".split()
    )

    def is_available(self) -> bool:
        """Is there a GPU, and is cuDNN installed?"""
        return self.version() is not None

    is_built = is_available

    def version(self) -> int | None:
        """cuDNN's version, 92000 being 9.20.0; None without it."""
        found: int | None = cuda_libraries.version_of("cudnn")
        return found

    def is_acceptable(self, tensor: Any) -> bool:
        """Could cuDNN compute on the tensor? It takes cuDNN, enabled, and a tensor on an NVIDIA GPU
        of float16, bfloat16, float32 or float64."""
        if not (self.enabled and tensor.is_cuda and self.is_available()):
            return False
        return tensor.dtype.is_floating_point and tensor.dtype.itemsize in (2, 4, 8)

    def _names(self) -> Iterable[str]:
        return vars(switches.cudnn)

    def _set(self, settings: dict[str, Any]) -> None:
        for name, value in settings.items():
            setattr(self, name, value)


class _Verbose:
    """A context in which the library would tell of its calls: there is none to tell."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> _Verbose:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class _MKL(_Backend):
    VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2
    verbose = _Verbose

    def is_acl_available(self) -> bool:
        """Is the Arm Compute Library there? No."""
        return False


class _MPS(_Backend):
    def is_available(self) -> bool:
        """Can tensors be put on an Apple GPU? It takes a Mac with Apple silicon, and MLX."""
        return bool(mps_library.kind())

    def is_built(self) -> bool:
        """Is MLX installed, by which the device computes?"""
        return bool(mps_library.is_installed())

    def is_macos_or_newer(self, major: int, minor: int) -> bool:
        """Is this macOS of that version, or a newer one?"""
        version = platform.mac_ver()[0]
        return bool(version) and [int(n) for n in version.split(".")[:2]] >= [major, minor]

    def is_macos13_or_newer(self, minor: int = 0) -> bool:
        """Is this macOS 13 or newer?"""
        return self.is_macos_or_newer(13, minor)


class _MHA(_Backend):
    def get_fastpath_enabled(self) -> bool:
        """What `set_fastpath_enabled` was told; attention has one way here."""
        return bool(vars(self)["_fastpath"])

    def set_fastpath_enabled(self, value: bool) -> None:
        """Notes whether layers of attention should use the fused way."""
        vars(self)["_fastpath"] = value


class SDPAParams:
    """The operands of an attention, of which PyTorch asks which kernel could compute it."""

    def __init__(self, query: Any, key: Any, value: Any, attn_mask: Any, dropout: float,
                 is_causal: bool, enable_gqa: bool) -> None:  # fmt: skip
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = dropout, is_causal, enable_gqa


class _CUDA(_Backend):
    """The switches of attention: attention has one kernel here, and gives the same numbers."""

    SDPAParams = SDPAParams

    def flash_sdp_enabled(self) -> bool:
        """What `enable_flash_sdp` was told."""
        return bool(vars(self)["_flash"])

    def enable_flash_sdp(self, enabled: bool) -> None:
        """Notes whether flash attention may be used on a GPU."""
        vars(self)["_flash"] = enabled

    def mem_efficient_sdp_enabled(self) -> bool:
        """What `enable_mem_efficient_sdp` was told."""
        return bool(vars(self)["_efficient"])

    def enable_mem_efficient_sdp(self, enabled: bool) -> None:
        """Notes whether memory-efficient attention may be used on a GPU."""
        vars(self)["_efficient"] = enabled

    def math_sdp_enabled(self) -> bool:
        """What `enable_math_sdp` was told."""
        return bool(vars(self)["_math"])

    def enable_math_sdp(self, enabled: bool) -> None:
        """Notes whether attention in single ops may be used on a GPU."""
        vars(self)["_math"] = enabled

    def cudnn_sdp_enabled(self) -> bool:
        """What `enable_cudnn_sdp` was told."""
        return bool(vars(self)["_cudnn"])

    def enable_cudnn_sdp(self, enabled: bool) -> None:
        """Notes whether cuDNN's attention may be used on a GPU."""
        vars(self)["_cudnn"] = enabled

    def fp16_bf16_reduction_math_sdp_allowed(self) -> bool:
        """What `allow_fp16_bf16_reduction_math_sdp` was told."""
        return bool(vars(self)["_reduced"])

    def allow_fp16_bf16_reduction_math_sdp(self, enabled: bool) -> None:
        """Notes whether halves may be added as halves on a GPU."""
        vars(self)["_reduced"] = enabled

    def is_flash_attention_available(self) -> bool:
        """False: there is no GPU."""
        return False

    def can_use_flash_attention(self, params: Any, debug: bool = False) -> bool:
        """False: there is no GPU."""
        return False

    can_use_efficient_attention = can_use_cudnn_attention = can_use_flash_attention

    def is_ck_sdpa_available(self) -> bool:
        """False: there is no GPU."""
        return False

    @contextlib.contextmanager
    def sdp_kernel(
        self, enable_flash: bool = True, enable_math: bool = True,
        enable_mem_efficient: bool = True, enable_cudnn: bool = True,
    ) -> Iterator[None]:  # fmt: skip
        """The older form of ``torch.nn.attention.sdpa_kernel``: sets the four switches."""
        warn("`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context "
             "manager will be removed. Please see `torch.nn.attention.sdpa_kernel()` for the new "
             "context manager, with updated signature.", FutureWarning)  # fmt: skip
        before = dict(vars(self))
        vars(self).update(_flash=enable_flash, _math=enable_math, _efficient=enable_mem_efficient,
                          _cudnn=enable_cudnn)  # fmt: skip
        try:
            yield
        finally:
            vars(self).update({k: before[k] for k in ("_flash", "_math", "_efficient", "_cudnn")})

    def preferred_blas_library(self, backend: str | None = None) -> str:
        """Says who computes products on a GPU, and gives who does: ``"default"`` and ``"cublaslt"``
        are cuBLASLt where it is installed, ``"antorcha"`` are antorcha's own kernels."""
        return _preferred("blas", ("default", "cublas", "cublaslt", "antorcha"), backend)

    def preferred_linalg_library(self, backend: str | None = None) -> str:
        """Says who computes decompositions of a GPU's matrices, and gives who does: ``"default"``
        and ``"cusolver"`` are cuSOLVER where it is installed, ``"lapack"`` is LAPACK on the
        host."""
        return _preferred("linalg", ("default", "cusolver", "lapack"), backend)


def _preferred(of: str, choices: tuple[str, ...], chosen: str | None) -> str:
    if chosen is not None:
        if str(chosen).lower() not in choices:
            raise ValueRangeError(
                f"preferred_{of}_library({chosen!r}): the libraries are {', '.join(choices)}"
            )
        setattr(switches.libraries, of, str(chosen).lower())
    return str(getattr(switches.libraries, of))


class _Quantized(_Backend):
    def __setattr__(self, name: str, value: Any) -> None:
        if name == "engine" and value != "none":
            raise MissingFeature(
                f"torch.backends.quantized.engine = {value!r}: there is no quantization"
            )
        super().__setattr__(name, value)


class _OptEinsum(_Backend):
    def get_opt_einsum(self) -> None:
        """None: `einsum` finds its order of contractions itself."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "strategy" and value not in (None, "auto", "greedy", "optimal", "branch-all"):
            raise ValueRangeError(
                "`strategy` must be one of the following: ['auto', 'greedy', 'optimal', "
                f"'branch-all'] but is {value}"
            )
        super().__setattr__(name, value)


cpu = _CPU("cpu", True)
cuda = _CUDA(
    "cuda",
    matmul=switches.matmul,
    cufft_plan_cache=Switches(max_size=0, size=0),
    _flash=True, _efficient=True, _math=True, _cudnn=True, _reduced=False,
)  # fmt: skip
cudnn = _CuDNN("cudnn", conv=Switches(fp32_precision="none"), rnn=Switches(fp32_precision="none"))
cusparselt = _Backend("cusparselt")
kleidiai = _Backend("kleidiai")
mha = _MHA("mha", _fastpath=True)
miopen = _Backend("miopen", immediate=False)
mps = _MPS("mps")
mkl = _MKL("mkl")
mkldnn = _MKL("mkldnn", enabled=True, deterministic=False, allow_tf32=False, fp32_precision="none",
              matmul=Switches(fp32_precision="none"), conv=Switches(fp32_precision="none"),
              rnn=Switches(fp32_precision="none"))  # fmt: skip
nnpack = _Backend("nnpack", enabled=False)
openmp = _Backend("openmp")
opt_einsum = _OptEinsum("opt_einsum", enabled=False, strategy=None)
quantized = _Quantized("quantized", engine="none", supported_engines=["none"])


def flags_frozen() -> bool:
    """False: switches may be set anywhere."""
    return False


explain_missing("torch.backends", globals())
