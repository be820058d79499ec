"""Some eigenvalues of large symmetric matrices, by conjugate gradients on blocks of vectors.

- Knyazev, "Toward the optimal preconditioned eigensolver: locally optimal block preconditioned
  conjugate gradient method", 2001
- Stathopoulos and Wu, "A block orthogonalization procedure with constant synchronization
  requirements", 2002
- Duersch, Shao, Yang and Gu, "A robust and efficient implementation of LOBPCG", 2018

Only products with the matrices are computed, which may be sparse.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from antorcha.core import dtypes
from antorcha.errors import ShapeError, ValueRangeError
from antorcha.ops.kinds.custom_vjp import custom_vjp
from antorcha.ops.kinds.lapack import as_column, as_row, check_square, eye_like
from antorcha.ops.kinds.record import T, composite
from antorcha.ops.kinds.sampler import unrecorded
from antorcha.ops.kinds.types import Any, OptInt, OptTensor, Tensor
from antorcha.ops.spectra import of_eigh
from antorcha.runtime.call.tape import spoil
from antorcha.runtime.tensor import Tensor as TensorType

EPSILON = {"float32": 1.2e-07, "float64": 2.23e-16}


@composite(method=False, out=False)
def lobpcg(
    A: Tensor, k: OptInt = None, B: OptTensor = None, X: OptTensor = None, n: OptInt = None,
    iK: OptTensor = None, niter: OptInt = None, tol: Any = None, largest: Any = None,
    method: Any = None, tracker: Any = None, ortho_iparams: Any = None, ortho_fparams: Any = None,
    ortho_bparams: Any = None,
):  # fmt: skip
    """The ``k`` largest (or smallest) eigenvalues of ``A @ x = B @ x * e`` and their vectors, as
    (values, vectors), for a symmetric A and a positive definite B, by default the identity.

    ``X`` are vectors to begin with, else ``n`` random ones; ``iK`` is a preconditioner: near the
    inverse of A. It ends after ``niter`` steps (1000; -1: any number) or when the residuals are
    below ``tol``. ``method`` is "ortho" or the faster "basic", which may fail. ``tracker`` is
    called with the state, a `Lobpcg`, after each step.

    >>> _ = torch.manual_seed(0)
    >>> torch.lobpcg(torch.diag(torch.arange(1., 10.)), k=2)[0].round()
    tensor([9., 8.])
    """
    spoil("its steps depend on the elements")
    dtype = dtypes.float32 if A._layout.dtype.kind != "f" else A._layout.dtype
    rows = _checked_rows(A, B)
    if k is None:
        k = 1 if X is None else X._layout.shape[-1]
    if X is not None:
        n = X._layout.shape[-1]
    elif n is None:
        n = k
    if rows < 3 * n:
        raise ValueRangeError(
            f"lobpcg: LOBPCG algorithm is not applicable when the number of A rows (={rows}) is "
            f"smaller than 3 x the number of requested eigenpairs (={n})"
        )
    tol = EPSILON[dtype.name] ** 0.5 if tol is None else tol
    iparams = {"m": rows, "n": n, "k": k, "niter": 1000 if niter is None else niter,
               "ortho_i_max": 3, "ortho_j_max": 3, **(ortho_iparams or {})}  # fmt: skip
    fparams = {"tol": tol, "ortho_tol": tol, "ortho_tol_drop": tol, "ortho_tol_replace": tol,
               **(ortho_fparams or {})}  # fmt: skip
    bparams = {"largest": True if largest is None else largest, "ortho_use_drop": False,
               **(ortho_bparams or {})}  # fmt: skip

    def pairs(A: Any, B: Any, X: Any) -> tuple[Any, Any]:
        if X is None:
            X = T.randn((rows, n), dtype=dtype, device=A._layout.device)
        elif tuple(X._layout.shape) != (rows, n):
            raise ShapeError(f"lobpcg: X is {tuple(X._layout.shape)}, but must be {(rows, n)}")
        worker = Lobpcg(A, B, X, iK, iparams, fparams, bparams, method or "ortho", tracker)
        worker.run()
        return T.narrow(worker.E, 0, 0, k), T.narrow(worker.X, 1, 0, k)

    with unrecorded():
        values, vectors = _of_stacks(pairs, A, B, X, iparams)
    if A._rg or (B is not None and B._rg):
        halves = [None if x is None else (x + T.transpose(x, -2, -1)) * 0.5 for x in (A, B)]
        return tuple(T.eigenpairs(*halves, values, vectors))
    return values, vectors


def _checked_rows(A: TensorType, B: TensorType | None) -> int:
    """The size of the matrices, which must be square and alike."""
    check_square("lobpcg", A._layout)
    if B is not None and tuple(B._layout.shape) != tuple(A._layout.shape):
        raise ShapeError(
            f"lobpcg: A and B must have the same shape, got {tuple(A._layout.shape)} and "
            f"{tuple(B._layout.shape)}"
        )
    return A._layout.shape[-1]


def _of_stacks(
    pairs: Callable[..., tuple[Any, Any]], A: TensorType, B: Any, X: Any, iparams: dict[str, int]
) -> tuple[Any, Any]:
    """The eigenpairs of each matrix of a stack."""
    batch = tuple(A._layout.shape[:-2])
    if not batch:
        return pairs(A, B, X)
    stacks = [None if x is None else T.reshape(x, (-1, *x._layout.shape[-2:])) for x in (A, B, X)]
    found = []
    for at in range(math.prod(batch)):
        iparams["batch_index"] = at
        found.append(pairs(*[None if x is None else T.select(x, 0, at) for x in stacks]))
    values, vectors = [
        T.reshape(T.stack(parts), (*batch, *parts[0]._layout.shape)) for parts in zip(*found)
    ]
    return values, vectors


# -------------------------------------------------------------------------------------- gradient
@custom_vjp(function=False, method=False, node="LOBPCGAutogradFunctionBackward")
def eigenpairs(A: Tensor, B: OptTensor, values: Tensor, vectors: Tensor):
    """Eigenvalues and vectors that were found already, in the graph as functions of A."""
    return T.clone(values), T.clone(vectors)


@eigenpairs.derivative
def _(g, A, B_layout, out0, out1):
    if B_layout is not None:
        raise ValueRangeError("lobpcg: lobpcg.backward does not support backward with B != I yet.")
    of_values, of_vectors = g
    found = of_eigh(of_values, of_vectors, out0, out1)
    if of_vectors is None:
        return found, None, None, None
    # What leads out of the space of the vectors x_i is missing. The change of x_j there is
    # -(A - e_j)^+ dA x_j; to A - e_j is added what makes it the identity within.
    inside = T.matmul(T.transpose(out1, -2, -1), of_vectors)
    outside = T.transpose(of_vectors - T.matmul(out1, inside), -2, -1)
    V = T.unsqueeze(out1, -3)
    within = as_column(out0) - as_row(out0) + 1
    whole = T.matmul(V * as_row(within), T.transpose(V, -2, -1))
    shifted = T.unsqueeze(A, -3) - as_column(as_column(out0)) * eye_like(A) + whole
    moved = T.linalg_solve(shifted, as_column(outside))
    turned = T.transpose(T.squeeze(moved, -1), -2, -1)
    return found - T.matmul(turned, T.transpose(out1, -2, -1)), None, None, None


# ------------------------------------------------------------------------------------- iteration
def times(A: TensorType | None, X: TensorType) -> TensorType:
    """``A @ X``; None is the identity."""
    return X if A is None else T.matmul(A, X)


def form(A: TensorType | None, S: TensorType) -> TensorType:
    """The quadratic form ``S.T @ A @ S``."""
    return T.matmul(T.t(S), times(A, S))  # type: ignore[no-any-return]


def norm(x: TensorType) -> float:
    return float(T.linalg_vector_norm(x).item())


class Lobpcg:
    """The state of an iteration, which a tracker may read; it stops where the tracker sets
    ``bvars["force_stop"]``.

    ``iparams``, ``fparams``, ``bparams`` are what was asked for; ``ivars``, ``fvars``, ``bvars``
    and ``tvars`` what varies: numbers and tensors by name. ``X`` are the vectors found so far,
    ``E`` their values, ``R`` the residuals, ``S`` the basis that the next vectors are sought in.
    """

    def __init__(
        self, A: TensorType, B: TensorType | None, X: TensorType, iK: TensorType | None,
        iparams: dict[str, int], fparams: dict[str, float], bparams: dict[str, bool], method: str,
        tracker: Callable[[Lobpcg], Any] | None,
    ) -> None:  # fmt: skip
        self.A, self.B, self.iK = A, B, iK
        self.iparams, self.fparams, self.bparams = iparams, fparams, bparams
        self.method, self.tracker = method, tracker
        self.X = X
        self.E = T.zeros((iparams["n"],), dtype=X._layout.dtype, device=X._layout.device)
        self.R = T.zeros_like(X)
        self.S = X
        self.ivars: dict[str, int] = {"istep": 0, "iterations_left": iparams["niter"],
                                      "converged_count": 0, "converged_end": 0}  # fmt: skip
        self.fvars: dict[str, float] = {}
        self.bvars: dict[str, bool] = {}
        self.tvars: dict[str, TensorType] = {}

    def run(self) -> None:
        """Steps until enough pairs have converged."""
        while True:
            self.update()
            if self.tracker is not None:
                self.tracker(self)
            if (
                self.bvars.get("force_stop", False)
                or self.ivars["iterations_left"] == 0
                or self.ivars["converged_count"] >= self.iparams["k"]
            ):
                return

    def update(self) -> None:
        """One step."""
        first = self.ivars["istep"] == 0
        known = self._begin() if first else self._advance()
        self.update_residual()
        if first and self.method == "ortho":
            self.R = times(self.A, self.X)  # what PyTorch goes on with
        done = self.update_converged_count()
        R = self.R if first else T.narrow(self.R, 1, done, self.iparams["n"] - done)
        W = self._orthogonal(R, known) if self.method == "ortho" else times(self.iK, R)
        self.S = T.cat((known, W), 1)
        self.ivars["converged_end"] = self.S._layout.shape[1]
        self.ivars["iterations_left"] -= 1
        self.ivars["istep"] += 1

    def update_residual(self) -> None:
        """R, from A, B, X and E."""
        self.R = times(self.A, self.X) - times(self.B, self.X) * self.E

    def update_converged_count(self) -> int:
        """How many pairs have converged, from the first on: a backward stable criterion (Duersch et
        al., 4.3). Those behind one that has not are not counted, so that the order is kept."""
        lengths = [T.linalg_vector_norm(x, 2, (0,)) for x in (self.R, self.X)]
        scale = self.fvars["A_norm"] + T.abs(self.E) * self.fvars["B_norm"]
        self.tvars["rerr"] = errors = lengths[0] / (lengths[1] * scale)
        below = (errors < self.fparams["tol"]).tolist()
        count = below.index(False) if False in below else len(below)
        self.ivars["converged_count"] = count
        return count

    def _pairs(self, matrix: TensorType) -> tuple[TensorType, TensorType]:
        """Eigenvalues and vectors of a small matrix, those that are wanted first."""
        E, Z = T.linalg_eigh(matrix, "U")
        return (T.flip(E, (0,)), T.flip(Z, (1,))) if self.bparams["largest"] else (E, Z)

    def _begin(self) -> TensorType:
        """The best vectors in the space of the first ones (Rayleigh and Ritz)."""
        size = norm(self.X)
        self.fvars["X_norm"] = size
        self.fvars["A_norm"] = norm(times(self.A, self.X)) / size
        self.fvars["B_norm"] = norm(times(self.B, self.X)) / size
        R = self._normal_transform(self.X)
        self.E, Z = self._pairs(form(form(self.A, self.X), R))
        self.X = T.matmul(self.X, T.matmul(R, Z))
        return self.X

    def _advance(self) -> TensorType:
        """The best vectors in the space of S but for those that have converged; with them, the
        directions that led there."""
        done, n = self.ivars["converged_count"], self.iparams["n"]
        S = T.narrow(self.S, 1, done, self.S._layout.shape[1] - done)
        kept = n - done
        if self.method == "ortho":  # S is orthonormal already
            E, Z = self._pairs(form(self.A, S))
            new = T.matmul(S, T.narrow(Z, 1, 0, kept))
            others = T.narrow(Z, 1, kept, Z._layout.shape[1] - kept)
            turn = T.linalg_qr(T.t(T.narrow(others, 0, 0, kept)))[0]
            P = T.matmul(S, T.matmul(others, turn))
        else:
            R = self._normal_transform(S)
            E, Z = self._pairs(form(form(self.A, S), R))
            Z = T.matmul(R, Z)
            new = T.matmul(S, T.narrow(Z, 1, 0, kept))
            start = min(n, Z._layout.shape[1])
            P = T.matmul(S, T.narrow(Z, 1, start, min(kept, Z._layout.shape[1] - start)))
        self.X = T.cat((T.narrow(self.X, 1, 0, done), new), 1)
        self.E = T.cat((T.narrow(self.E, 0, 0, done), T.narrow(E, 0, 0, kept)))
        return T.cat((self.X, P), 1)  # type: ignore[no-any-return]

    def _normal_transform(self, S: TensorType) -> TensorType:
        """An upper triangular R for which the columns of ``S @ R`` are orthonormal in B."""
        inner = form(self.B, S)
        scale = T.rsqrt(T.diagonal(inner))
        R = T.linalg_cholesky((inner * scale) * as_column(scale), upper=True)
        return T.linalg_solve_triangular(  # type: ignore[no-any-return]
            R, T.diag_embed(scale), upper=True, left=False
        )

    def _svqb(self, U: TensorType, drop: bool, tau: float) -> TensorType:
        """The columns of U made orthonormal in B by their eigenvectors; with ``drop`` those that
        add little are left out (Stathopoulos and Wu, algorithm 4)."""
        U = self._without_zeros(U)
        if not U._layout.numel:
            return U
        inner = form(self.B, U)
        scale = T.rsqrt(T.diagonal(inner))
        E, Z = T.linalg_eigh((inner * as_column(scale)) * scale, "U")
        least = tau * float(T.amax(T.abs(E)).item())
        U = U * scale
        if drop:
            kept = T.squeeze(T.nonzero(T.gt(E, least)), 1)
            E, Z = T.index_select(E, 0, kept), T.index_select(Z, 1, kept)
        else:
            E = T.clamp(E, least)
        return T.matmul(U, Z * T.rsqrt(E))  # type: ignore[no-any-return]

    def _without_zeros(self, U: TensorType) -> TensorType:
        """U without columns of length zero, which cannot be scaled."""
        if not U._layout.numel:
            return U
        sizes = T.diagonal(form(self.B, U))
        if bool(T.all(sizes != 0).item()):
            return U
        return T.index_select(U, 1, T.squeeze(T.nonzero(sizes), 1))  # type: ignore[no-any-return]

    def _orthogonal(self, U: TensorType, V: TensorType) -> TensorType:
        """Columns that are orthonormal in B, and orthogonal to V, of the space of U and V (Duersch
        et al., algorithms 3 and 6)."""
        tolerance, use_drop = self.fparams["ortho_tol"], self.bparams["ortho_use_drop"]
        size = norm(times(self.B, V))
        BU = times(self.B, U)
        overlap = T.matmul(T.t(V), BU)
        for i in range(self.iparams["ortho_i_max"]):
            U = U - T.matmul(V, overlap)
            self.ivars["ortho_i"] = i
            for j in range(self.iparams["ortho_j_max"]):
                self.ivars["ortho_j"] = j
                name = "ortho_tol_drop" if use_drop and not j else "ortho_tol_replace"
                U = self._svqb(U, use_drop and j > 0, self.fparams[name])
                if not U._layout.numel:  # all of it lies within V
                    return U
                BU = times(self.B, U)
                inner = T.matmul(T.t(U), BU)
                error = norm(inner - eye_like(inner)) / (norm(BU) * norm(U))
                self.fvars[f"ortho_UBUmI_rerr[{i}, {j}]"] = error
                if error < tolerance:
                    break
            overlap = T.matmul(T.t(V), BU)
            error = norm(overlap) / (size * norm(U))
            self.fvars[f"ortho_VBU_rerr[{i}]"] = error
            if error < tolerance:
                break
            if self.iparams["m"] < U._layout.shape[1] + V._layout.shape[1]:
                raise ValueRangeError("lobpcg: Overdetermined shape of U: A has too few rows")
        return U
