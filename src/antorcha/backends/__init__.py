"""``torch.backends``: which accelerators and libraries can be used."""

from __future__ import annotations

import sys
from types import ModuleType

from antorcha.errors import explain_missing


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


class _CPU(_Backend):
    def get_cpu_capability(self) -> str:
        """The vector instructions that kernels are compiled for, as PyTorch names them."""
        from antorcha.lang.native.machine import target

        return {512: "AVX512", 256: "AVX2"}.get(target().vector_bits, "DEFAULT")


class _Switches:
    """Some switches of one part of a backend."""

    def __init__(self, **settings: object) -> None:
        vars(self).update(settings)


cpu = _CPU("cpu", True)
cuda = _Backend("cuda", matmul=_Switches(allow_tf32=False))
cudnn = _Backend("cudnn", enabled=False, benchmark=False, deterministic=False, allow_tf32=False)
mps = _Backend("mps")
mkl = _Backend("mkl")
mkldnn = _Backend("mkldnn", enabled=False)
openmp = _Backend("openmp")

explain_missing("torch.backends", globals())
