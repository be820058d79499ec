"""``gradcheck``: are the gradients what finite differences say?

Complex tensors: of an output, the real and the imaginary part are two functions; with respect to an
input ``x + iy`` of a real function f the gradient is ``df/dx + i df/dy``, as backward gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from antorcha.core.lazy import Array, lazy, np
from antorcha.core.shapes import may_overlap
from antorcha.errors import (
    AntorchaError,
    ArgumentError,
    ValueRangeError,
    explain_missing,
    warn,
)
from antorcha.runtime.call.node import edge_of
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.convert import to_array
from antorcha.tensor.interop import from_numpy

antorcha_autograd = lazy("antorcha.autograd")
forward_ad = lazy("antorcha.autograd.forward_ad")

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(AntorchaError, RuntimeError):
    """The gradients are not those of finite differences."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compares the gradients of ``func(*inputs)`` with finite differences.

    Checks every input that requires a gradient; they should be float64, with eps' default. Gives
    True, or raises GradcheckError (gives False, with ``raise_exception=False``). ``fast_mode``
    compares one random projection instead of the whole Jacobian. ``check_forward_ad`` checks the
    tangents of forward mode, too.
    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html.

    >>> x = torch.tensor([1., 2.], dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradcheck(lambda x: x * x, (x,))
    True
    """
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    try:
        _check_inputs(given)
        check = _Check(func, given, eps, atol, rtol, nondet_tol, check_grad_dtypes)
        if check_backward_ad:
            check.projection() if fast_mode else check.jacobians()
        if check_forward_ad:
            check.forward()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """``gradcheck`` of the gradients: their own gradients, by ``inputs`` and by ``grad_outputs``.

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradgradcheck.html.
    """
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if grad_outputs is None:
        seeds = tuple([_random_like(out, k) for k, out in enumerate(outputs_of(func, given))])
    else:
        seeds = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)

    def gradients(*both: Any) -> tuple[Tensor, ...]:
        args, grads = both[: len(given)], both[len(given) :]
        wanted = [a for a in args if isinstance(a, Tensor) and edge_of(a) is not None]
        found = antorcha_autograd.grad(
            outputs_of(func, args), wanted, grads, create_graph=True, allow_unused=True
        )
        return tuple([g for g in found if g is not None])

    return gradcheck(
        gradients, (*given, *seeds), eps=eps, atol=atol, rtol=rtol,
        raise_exception=raise_exception, nondet_tol=nondet_tol, fast_mode=fast_mode,
        check_grad_dtypes=check_grad_dtypes, check_forward_ad=check_fwd_over_rev,
    )  # fmt: skip


def outputs_of(func: Callable[..., Any], args: Sequence[Any]) -> tuple[Tensor, ...]:
    """The outputs that have a gradient."""
    return tuple([o for o in _tensors(func(*args)) if edge_of(o) is not None])


def _tensors(outputs: Any) -> list[Tensor]:
    listed = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    for each in listed:
        if not isinstance(each, Tensor):
            raise ArgumentError(
                f"gradcheck: func must give tensors, not {type(each).__name__}: wrap it"
            )
    return listed


def _random_like(out: Tensor, seed: int) -> Tensor:
    generator = np.random.default_rng(seed)
    layout = out._layout
    values = generator.uniform(-1, 1, tuple(layout.shape))
    if layout.dtype.kind == "c":
        values = values + 1j * generator.uniform(-1, 1, tuple(layout.shape))
    result = from_numpy(np.array(values, dtype=layout.dtype.np)).to(layout.device)
    return result.requires_grad_()


def _check_inputs(inputs: Sequence[Any]) -> None:
    wanted = [a for a in inputs if isinstance(a, Tensor) and edge_of(a) is not None]
    if not wanted:
        raise ValueRangeError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them "
            "have requires_grad=True."
        )
    for k, each in enumerate(inputs):
        if not isinstance(each, Tensor) or edge_of(each) is None:
            continue
        layout = each._layout
        if layout.dtype.name not in ("float64", "complex128"):
            warn(
                f"Input #{k} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex.",
            )
        if may_overlap(layout.shape, layout.strides):
            raise GradcheckError(
                f"The {k}th input has a dimension with stride 0. gradcheck only supports inputs "
                "that are non-overlapping to be able to compute the numerical gradients correctly. "
                "You should call .contiguous on the input before passing it to gradcheck."
            )


class _Check:
    """One function at one point."""

    def __init__(
        self, func: Callable[..., Any], inputs: Sequence[Any], eps: float, atol: float,
        rtol: float, nondet_tol: float, dtypes: bool,
    ) -> None:  # fmt: skip
        self.func, self.inputs, self.eps = func, inputs, eps
        self.atol, self.rtol, self.nondet_tol, self.dtypes = atol, rtol, nondet_tol, dtypes
        self.wanted = [
            (k, a) for k, a in enumerate(inputs) if isinstance(a, Tensor) and edge_of(a) is not None
        ]

    def values(self) -> list[Array]:
        """The outputs now, each as reals: (numel,) or, of complex ones, (2 numel,)."""
        return [as_reals(_array(o).copy()) for o in _tensors(self.func(*self.inputs))]

    # ------------------------------------------------------------------------ the whole Jacobian
    def jacobians(self) -> None:
        for k, x in self.wanted:
            numerical = self.numerical(x)
            for o, theirs in enumerate(numerical):
                ours = self.analytical(o, x, theirs.shape)
                again = self.analytical(o, x, theirs.shape)
                if not np.allclose(ours, again, rtol=0, atol=self.nondet_tol, equal_nan=True):
                    raise GradcheckError(
                        "Backward is not reentrant, i.e., running backward with same input and "
                        "grad_output multiple times gives different values, although analytical "
                        "gradient matches numerical gradient. The tolerance for nondeterminism was "
                        f"{self.nondet_tol}."
                    )
                if not np.allclose(ours, theirs, rtol=self.rtol, atol=self.atol, equal_nan=True):
                    raise GradcheckError(
                        f"Jacobian mismatch for output {o} with respect to input {k},\n"
                        f"numerical:{theirs.T}\nanalytical:{ours.T}\n"
                    )

    def numerical(self, x: Tensor) -> list[Array]:
        """For each output: (its reals, the input's reals), by central differences."""
        places = _array(x)
        columns: list[list[Array]] = []
        for index in np.ndindex(places.shape):
            for step in (self.eps, 1j * self.eps)[: 1 + (places.dtype.kind == "c")]:
                old = places[index]
                places[index] = old + step
                after = self.values()
                places[index] = old - step
                before = self.values()
                places[index] = old
                columns.append(
                    [(a - b) / (2 * self.eps) for a, b in zip(after, before, strict=True)]
                )
        if not columns:
            return [np.zeros((v.size, 0)) for v in self.values()]
        return [np.stack(each, axis=1) for each in zip(*columns, strict=True)]

    def analytical(self, o: int, x: Tensor, shape: tuple[int, ...]) -> Array:
        """The same, by backward: one row a pass."""
        out = _tensors(self.func(*self.inputs))[o]
        rows = np.zeros(shape)
        if edge_of(out) is None:
            return rows
        is_complex = out._layout.dtype.kind == "c"
        for row in range(shape[0]):
            seed = np.zeros(tuple(out._layout.shape), out._layout.dtype.np)
            place, part = divmod(row, 2) if is_complex else (row, 0)
            seed.reshape(-1)[place] = 1j if part else 1
            found = self.vjp([out], [seed], x)
            if found is not None:
                rows[row] = as_reals(found)
        return rows

    def vjp(self, outs: list[Tensor], seeds: list[Array], x: Tensor) -> Array | None:
        device = x._layout.device
        given = [from_numpy(s).to(device) for s in seeds]
        (found,) = antorcha_autograd.grad(outs, x, given, retain_graph=True, allow_unused=True)
        if found is None:
            return None
        if self.dtypes and found.dtype is not x._layout.dtype:
            raise GradcheckError(
                f"gradient has dtype {found.dtype} for an input of {x._layout.dtype}"
            )
        if found._layout.shape != x._layout.shape:
            raise GradcheckError(
                f"grad is incorrect size: {tuple(found._layout.shape)} for an input of "
                f"{tuple(x._layout.shape)}"
            )
        return _array(found.detach()).copy()

    # ------------------------------------------------------------------------------- forward mode
    def forward(self) -> None:
        """The tangents, along each direction of each input."""
        for k, x in self.wanted:
            numerical = self.numerical(x)
            columns = numerical[0].shape[1] if numerical else 0
            is_complex = x._layout.dtype.kind == "c"
            for column in range(columns):
                direction = np.zeros(tuple(x._layout.shape), x._layout.dtype.np)
                place, part = divmod(column, 2) if is_complex else (column, 0)
                direction.reshape(-1)[place] = 1j if part else 1
                found = self.tangents(k, x, direction)
                for o, (ours, theirs) in enumerate(zip(found, numerical, strict=True)):
                    if not np.allclose(
                        ours, theirs[:, column], rtol=self.rtol, atol=self.atol, equal_nan=True
                    ):
                        raise GradcheckError(
                            f"Jacobian computed with forward mode mismatch for output {o} with "
                            f"respect to input {k},\nnumerical:{theirs[:, column]}\n"
                            f"analytical:{ours}\n"
                        )

    def tangents(self, k: int, x: Tensor, direction: Array) -> list[Array]:
        """The outputs' tangents where that of the k-th input is ``direction``, as reals."""
        with forward_ad.dual_level():
            given = list(self.inputs)
            tangent = from_numpy(direction).to(x._layout.device)
            given[k] = forward_ad.make_dual(x.detach(), tangent)
            outputs = [forward_ad.unpack_dual(each) for each in _tensors(self.func(*given))]
        return [
            as_reals(np.zeros_like(_array(primal)) if t is None else _array(t.detach()))
            for primal, t in outputs
        ]

    # ---------------------------------------------------------------------- one random projection
    def projection(self) -> None:
        generator = np.random.default_rng(0)
        outs = [o for o in _tensors(self.func(*self.inputs)) if edge_of(o) is not None]
        numbers = [k for k, o in enumerate(_tensors(self.func(*self.inputs)))
                   if edge_of(o) is not None]  # fmt: skip
        seeds = [_random(generator, o) for o in outs]
        for k, x in self.wanted:
            places, direction = _array(x), _random(generator, x)
            old = places.copy()
            places[...] = old + self.eps * direction
            after = self.values()
            places[...] = old - self.eps * direction
            before = self.values()
            places[...] = old
            theirs = sum(
                [((after[n] - before[n]) / (2 * self.eps)) @ as_reals(s)
                 for n, s in zip(numbers, seeds, strict=True)]
            )  # fmt: skip
            found = self.vjp(outs, seeds, x) if outs else None
            ours = 0.0 if found is None else as_reals(found) @ as_reals(direction)
            if not np.allclose(ours, theirs, rtol=self.rtol, atol=self.atol, equal_nan=True):
                raise GradcheckError(
                    f"Jacobian mismatch with respect to input {k}, on a random projection:\n"
                    f"numerical:{theirs}\nanalytical:{ours}\n"
                    "The same check without fast_mode shows where."
                )


def _random(generator: Any, like: Tensor) -> Array:
    shape = tuple(like._layout.shape)
    values = generator.uniform(-1, 1, shape)
    if like._layout.dtype.kind == "c":
        values = values + 1j * generator.uniform(-1, 1, shape)
    return np.array(values, dtype=like._layout.dtype.np)


def as_reals(values: Array) -> Array:
    """Numbers in a row; complex ones as pairs."""
    flat = np.ascontiguousarray(values).reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _array(tensor: Tensor) -> Array:
    """The tensor's own memory as an array."""
    return to_array(tensor)


explain_missing("torch.autograd.gradcheck", globals())
