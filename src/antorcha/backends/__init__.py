"""``torch.backends``: which accelerators and libraries can be used."""

from __future__ import annotations


class _Backend:
    """One backend's switches, as PyTorch names them."""

    def __init__(self, available: bool = False, **settings: object) -> None:
        self._available = available
        for name, value in settings.items():
            setattr(self, name, value)

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


cpu = _CPU(True)
cuda = _Backend(matmul=_Backend(allow_tf32=False))
cudnn = _Backend(enabled=False, benchmark=False, deterministic=False, allow_tf32=False)
mps = _Backend()
mkl = _Backend()
mkldnn = _Backend(enabled=False)
openmp = _Backend()
