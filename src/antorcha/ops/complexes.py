"""Complex numbers: their parts, and making them. One record per op.

The parts of a complex tensor are views of it: ``x.real`` and ``view_as_real`` share its memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as _Any

from antorcha.core import dtypes, modes
from antorcha.errors import DtypeError, MissingFeature, ShapeError
from antorcha.lang import expr as E
from antorcha.ops.kinds.arguments import Arguments
from antorcha.ops.kinds.pointwise import UnsupportedDtype, pointwise
from antorcha.ops.kinds.record import Op, T, composite
from antorcha.ops.kinds.samples import of_shapes
from antorcha.ops.kinds.types import Tensor
from antorcha.runtime.call.node import attach
from antorcha.runtime.call.path import asked, join
from antorcha.runtime.call.plan import VIEW, Plan, make, remember
from antorcha.runtime.memory import layout as L
from antorcha.runtime.tensor import bare


class RecastView(Op):
    """A view of complex numbers as pairs of reals, or of pairs as complex numbers.

    The offset counts elements, so it is scaled by ``factor`` (2 or 1/2): these views do not go
    through the short ways that plain views have.
    """

    def __init__(self, fn: _Any, **options: _Any) -> None:
        super().__init__(fn, out=False, **options)

    def __call__(self, *args: _Any, **kwargs: _Any) -> _Any:
        if modes.batched or modes.duals:
            done = asked(self, args, kwargs)
            if done is not NotImplemented:
                return done
        key, operands, _, _, bound = self.bind(args, kwargs)
        plan = self.plans.get(key)
        if plan is None:
            plan = remember(self.plans, key, self.make_plan(bound, None))
        (source,) = operands
        doubled = plan.out.dtype.kind == "f"
        if not doubled and source._offset % 2:
            raise ShapeError(
                f"{self.name}: Tensor must have a storage_offset divisible by 2, got "
                f"{source._offset}; clone() it first."
            )
        offset = source._offset * 2 + plan.delta if doubled else source._offset // 2
        result = bare(plan.out, source._storage, offset)
        record = modes.grad_enabled()
        join(result, source, record)
        base = source._base
        if record and (source._rg or (base is not None and base._rg)):
            attach(plan, (source,), (), (result,))
        return result

    def plan(self, given: Arguments, outs: _Any) -> Plan:
        layout = given.seen[0]
        shape, strides, dtype, delta = self.fn(layout)
        out = L.layout(tuple(shape), tuple(strides), dtype, layout.device)
        return make(self, VIEW, (out,), delta=delta)


def recast(**options: _Any) -> Callable[[Callable[..., _Any]], RecastView]:
    """Decorates a function of a layout that gives (shape, strides, dtype, delta in the result)."""
    return lambda fn: RecastView(fn, **options)


@recast(method=False, batching="leading")
def view_as_real(input: Tensor):
    """A view of complex numbers as real ones, with a last dim of size 2.

    >>> torch.view_as_real(torch.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    if input.dtype.kind != "c":
        raise DtypeError("view_as_real: is only supported for complex tensors")
    strides = tuple([2 * s for s in input.strides])
    return (*input.shape, 2), (*strides, 1), input.dtype.to_real(), 0


view_as_real.derivative(lambda g: T.view_as_complex(T.contiguous(g)))


@recast(method=False, batching="leading")
def view_as_complex(input: Tensor):
    """A view of real numbers whose last dim, of size 2, holds real and imaginary parts.

    >>> torch.view_as_complex(torch.tensor([[1., 2.]]))
    tensor([1.+2.j])
    """
    if input.dtype.name == "float16":
        raise MissingFeature("view_as_complex: there is no complex32 yet; use x.float()")
    if input.dtype.name not in ("float32", "float64"):
        raise DtypeError(
            f"view_as_complex: is only supported for floating point tensors, but got {input.dtype}"
        )
    if not input.ndim or input.shape[-1] != 2:
        raise ShapeError("view_as_complex: Tensor must have a last dimension of size 2")
    if input.strides[-1] != 1:
        raise ShapeError("view_as_complex: Tensor must have a last dimension with stride 1")
    if any(s % 2 for s in input.strides[:-1]):
        raise ShapeError(
            "view_as_complex: Tensor must have a stride divisible by 2 for all but last dimension"
        )
    strides = tuple([s // 2 for s in input.strides[:-1]])
    return tuple(input.shape[:-1]), strides, input.dtype.to_complex(), 0


view_as_complex.derivative(lambda g: T.view_as_real(g))


@recast(function=False, method=False, node="select", batching="leading")
def real_part(input: Tensor):
    """The real parts of complex numbers, a view."""
    return input.shape, tuple([2 * s for s in input.strides]), input.dtype.to_real(), 0


real_part.derivative(lambda g, input_layout: T.to_dtype(g, input_layout.dtype))


@recast(function=False, method=False, node="select", batching="leading")
def imaginary_part(input: Tensor):
    """The imaginary parts of complex numbers, a view."""
    return input.shape, tuple([2 * s for s in input.strides]), input.dtype.to_real(), 1


imaginary_part.derivative(lambda g, input_layout: T.mul(T.to_dtype(g, input_layout.dtype), 1j))


@composite(method=False, out=False)
def real(input: Tensor):
    """The real parts: a view of a complex tensor, a real tensor itself.

    >>> torch.real(torch.tensor([1 + 2j]))
    tensor([1.])
    """
    return T.real_part(input) if input._layout.dtype.kind == "c" else input


@composite(method=False, out=False)
def imag(input: Tensor):
    """The imaginary parts of a complex tensor, a view.

    >>> torch.imag(torch.tensor([1 + 2j]))
    tensor([2.])
    """
    if input._layout.dtype.kind != "c":
        raise DtypeError("imag: imag is not implemented for tensors with non-complex dtypes.")
    return T.imaginary_part(input)


@pointwise(function=False, method=False, node="conj_physical")
def conjugate(input: Tensor):
    """The complex conjugate of each element."""
    return E.conj(input)


@composite()
def conj_physical(input: Tensor):
    """The complex conjugate of each element; a real tensor itself.

    >>> torch.conj_physical(torch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return T.conjugate(input) if input._layout.dtype.kind == "c" else input


@composite(name="conj_physical_", out=False)
def conj_physical_inplace(input: Tensor):
    """Conjugates each element of a tensor, and gives the tensor."""
    return T.copy_(input, T.conj(input))


@composite(out=False)
def conj(input: Tensor):
    """The complex conjugate of each element; a real tensor itself. (Computed, not a lazy view.)

    >>> torch.conj(torch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return T.conjugate(input) if input._layout.dtype.kind == "c" else input


@composite(out=False)
def adjoint(input: Tensor):
    """The conjugate transpose of a matrix or a stack of them; of real ones a view.

    >>> torch.adjoint(torch.tensor([[1 + 2j, 3j]]))
    tensor([[1.-2.j],
            [0.-3.j]])
    """
    ndim = input._layout.ndim
    if ndim == 1:
        raise ShapeError(
            "adjoint: tensor.adjoint() is only supported on matrices or batches of matrices. Got "
            "1-D tensor."
        )
    return T.conj(T.transpose(input, -2, -1) if ndim else input)


adjoint.samples(of_shapes((3, 4)))


@composite(out=False)
def resolve_conj(input: Tensor):
    """The tensor itself: no conjugation is ever pending.

    >>> torch.resolve_conj(torch.tensor([1.]))
    tensor([1.])
    """
    return input


@composite(out=False)
def resolve_neg(input: Tensor):
    """The tensor itself: no negation is ever pending.

    >>> torch.resolve_neg(torch.tensor([1.]))
    tensor([1.])
    """
    return input


@pointwise("own", row_major="c", samples=of_shapes((3, 4)))
def angle(input: Tensor):
    """The argument of complex numbers, in radians; 0 or pi for real ones.

    >>> torch.angle(torch.tensor([1j, -1.]))
    tensor([1.5708, 3.1416])
    """
    x = E.cast(input, dtypes.get_default_dtype()) if input.dtype.kind in "bui" else input
    return E.angle(x)


@pointwise("own", method=False, samples=of_shapes((3, 4), (4,)))
def complex(real: Tensor, imag: Tensor):
    """Complex numbers from their parts, both float32 or both float64.

    >>> torch.complex(torch.tensor([1.]), torch.tensor([2.]))
    tensor([1.+2.j])
    """
    return E.complex(real, imag)


@complex.accepts
def _(real, imag):
    _two_floats("complex", real, imag)


def _two_floats(name: str, a: Tensor, b: Tensor) -> None:
    one, two = a._layout.dtype, b._layout.dtype
    if one.name not in ("float32", "float64") or two.kind != "f":
        raise UnsupportedDtype(f"{name}: Expected float32 or float64 inputs but got {one}, {two}")
    if one is not two:
        raise DtypeError(
            f"{name}: Expected object of scalar type {one} but got scalar type {two} for second "
            "argument"
        )


@pointwise("own", method=False, samples=of_shapes((3, 4), (4,)))
def polar(abs: Tensor, angle: Tensor):
    """Complex numbers from magnitude and argument.

    >>> torch.polar(torch.tensor([1.]), torch.tensor([0.]))
    tensor([1.+0.j])
    """
    return E.complex(abs * E.cos(angle), abs * E.sin(angle))


@polar.accepts
def _(abs, angle):
    _two_floats("polar", abs, angle)
