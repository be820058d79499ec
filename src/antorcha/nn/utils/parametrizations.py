"""``torch.nn.utils.parametrizations``: orthogonal, weight_norm, spectral_norm."""

from __future__ import annotations

from typing import Any

from antorcha.autograd import no_grad
from antorcha.core.dtypes import finfo
from antorcha.errors import MissingFeature, OutOfRange, ValueRangeError
from antorcha.nn import functional as F
from antorcha.nn.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from antorcha.nn.module import Module
from antorcha.nn.utils import parametrize
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


# -------------------------------------------------------------------------------------- orthogonal
def _positive_qr(a: Any) -> Any:
    """The Q of ``a = Q R`` whose R has a positive diagonal."""
    q, r = T.linalg_qr(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _reflections(a: Any) -> Any:
    """The product of the Householder reflections whose vectors lie below ``a``'s diagonal.

    Their product is ``I - V S^-1 V^T`` with ``S = triu(V^T V, 1) + diag(1 / tau)``: Joffrain et
    al., "Accumulating Householder transformations, revisited" (2006).
    """
    n, k = a.shape[-2:]
    below = a.tril(-1)
    eye = T.eye(n, k, dtype=a.dtype, device=a.device)
    v = below + eye
    scale = (1.0 + (below * below).sum(-2)) / 2.0  # 1 / tau
    s = (v.mT @ v).triu(1) + T.diag_embed(scale)
    return eye - v @ T.linalg_solve(s, v.mT[..., :k])


class _Orthogonal(Module):
    base: Any

    def __init__(self, weight: Any, orthogonal_map: str, *, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueRangeError(
                "The householder parametrization does not support complex tensors."
            )
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Any) -> Any:
        n, k = x.shape[-2:]
        wide = n < k
        if wide:
            x, n, k = x.mT, k, n
        if self.orthogonal_map == "householder":
            result = _reflections(x) * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            result = self._of_skew(x.tril(), n, k)
        if hasattr(self, "base"):
            result = self.base @ result
        return result.mT if wide else result

    def _of_skew(self, x: Any, n: int, k: int) -> Any:
        if n != k:
            none = T.zeros((*x.shape[:-2], n, n - k), dtype=x.dtype, device=x.device)
            x = T.cat([x, none], -1)
        a = x - x.mH
        if self.orthogonal_map == "matrix_exp":
            result = T.linalg_matrix_exp(a)
        else:
            eye = T.eye(n, dtype=a.dtype, device=a.device)
            result = T.linalg_solve(eye - a * 0.5, eye + a * 0.5)
        return result[..., :k] if n != k else result

    def right_inverse(self, q: Any) -> Any:
        if q.shape != self.shape:
            raise ValueRangeError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of "
                f"shape {q.shape}."
            )
        if not hasattr(self, "base"):
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley "
                    "parametrizations when use_trivialization=False."
                )
            raise MissingFeature(
                "orthogonal: the householder map with use_trivialization=False cannot take a "
                "value: torch.geqrf is not there; leave use_trivialization=True"
            )
        given = q
        with no_grad():
            n, k = q.shape[-2:]
            if n < k:
                q, n, k = q.mT, k, n
            if n != k:
                more = T.randn((*q.shape[:-2], n, n - k), dtype=q.dtype, device=q.device)
                q = _positive_qr(T.cat([q, more], -1))
            else:
                q = q.clone() if _is_orthogonal(q) else _positive_qr(q)
            self.base = q
            minus = T.zeros_like(given)
            minus.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return minus


def _is_orthogonal(q: Any) -> bool:
    n, k = q.shape[-2:]
    eye = T.eye(k, dtype=q.dtype, device=q.device)
    return bool(
        T.allclose(q.mH @ q, T.expand_as(eye, q.mH @ q), atol=10.0 * n * finfo(q.dtype).eps)
    )


def orthogonal(
    module: Any, name: str = "weight", orthogonal_map: str | None = None, *,
    use_trivialization: bool = True,
) -> Any:  # fmt: skip
    """Keeps a matrix (or each of a batch) orthogonal, or its columns or rows orthonormal.

    Args:
        module (Module): whose parameter it is
        name (str): its name. Default: ``'weight'``
        orthogonal_map (str, optional): ``'matrix_exp'`` or ``'cayley'`` of a skew-symmetric matrix,
            or ``'householder'`` reflections. Default: ``'matrix_exp'`` for square or complex
            matrices, else ``'householder'``
        use_trivialization (bool): start from the matrix that is there (Lezcano-Casado,
            "Trivializations for gradient-based optimization on manifolds", 2019). Default: True

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrizations.orthogonal.html.

    >>> m = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(3, 3))
    >>> torch.allclose(m.weight @ m.weight.T, torch.eye(3), atol=1e-5)
    True
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueRangeError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueRangeError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    result = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, result, unsafe=True)
    return module


def _tensor_of(module: Any, name: str) -> Any:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueRangeError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


# ------------------------------------------------------------------------------------- weight norm
def norm_except(v: Any, dim: int) -> Any:
    """The norms of the slices along ``dim``; of everything for -1."""
    if dim == -1:
        return T.linalg_vector_norm(v)
    dims = tuple([d for d in range(v.dim()) if d != dim % v.dim()])
    return T.linalg_vector_norm(v, 2, dims, True) if dims else T.abs(v)


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        return norm_except(weight, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Splits a parameter into length and direction: ``w = g * v / |v|``.

    Salimans & Kingma, "Weight normalization" (2016).

    Args:
        module (Module): whose parameter it is
        name (str): its name. Default: ``'weight'``
        dim (int or None): a length for each slice along this dim; one for all with None

    ``g`` is ``parametrizations.<name>.original0``, ``v`` is ``original1``; states of
    :func:`torch.nn.utils.weight_norm` can be loaded. See
    https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrizations.weight_norm.html.

    >>> m = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(20, 40))
    >>> m.parametrizations.weight.original0.shape
    torch.Size([40, 1])
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def take_old_names(state_dict: Any, prefix: str, *_: Any) -> None:
        old = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if old[0] in state_dict and old[1] in state_dict:
            for k, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{k}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(take_old_names)
    return module


# ----------------------------------------------------------------------------------- spectral norm
def as_matrix(weight: Any, dim: int) -> Any:
    """``dim`` as rows, all other dims as columns."""
    if dim:
        weight = weight.permute(dim, *[d for d in range(weight.dim()) if d != dim])
    return weight.reshape(weight.size(0), -1)


def output_dim(module: Any, dim: int | None) -> int:
    """The dim of the weight that belongs to the outputs, where none is given."""
    if dim is not None:
        return dim
    return int(isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)))


def unit_noise(weight: Any, size: int, eps: float) -> Any:
    """A random vector of length 1."""
    drawn = T.empty((size,), dtype=weight.dtype, device=weight.device).normal_(0, 1)
    return F.normalize(drawn, dim=0, eps=eps)


class _SpectralNorm(Module):
    def __init__(
        self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise OutOfRange(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got "
                f"{dim})"
            )
        if n_power_iterations <= 0:
            raise ValueRangeError(
                "Expected n_power_iterations to be positive, but got n_power_iterations="
                f"{n_power_iterations}"
            )
        self.dim = dim % ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            with no_grad():
                matrix = as_matrix(weight, self.dim)
                u = unit_noise(weight, matrix.size(0), eps)
                self.register_buffer("_u", u)
                self.register_buffer("_v", unit_noise(weight, matrix.size(1), eps))
            self._power_method(matrix, 15)

    def _power_method(self, matrix: Any, steps: int) -> None:
        with no_grad():
            for _ in range(steps):
                self._u.copy_(F.normalize(T.mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(T.mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # the originals change with the next call
        return weight / T.vdot(u, T.mv(matrix, v))

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Divides a parameter, as a matrix, by its largest singular value.

    Miyato et al., "Spectral normalization for generative adversarial networks" (2018).

    Args:
        module (Module): whose parameter it is
        name (str): its name. Default: ``'weight'``
        n_power_iterations (int): steps of the power method at each use in training. Default: 1
        eps (float): keeps the method from dividing by zero. Default: 1e-12
        dim (int, optional): the outputs' dim. Default: 0, or 1 for transposed convolutions

    See
    https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.parametrizations.spectral_norm.html.

    >>> m = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(20, 40))
    >>> torch.linalg.matrix_norm(m.weight, 2).round(decimals=1) <= 1.1
    tensor(True)
    """
    weight = _tensor_of(module, name)
    result = _SpectralNorm(weight, n_power_iterations, output_dim(module, dim), eps)
    parametrize.register_parametrization(module, name, result)
    return module
