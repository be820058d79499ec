"""How functions are named and called in a graph, as PyTorch names and calls them.

PyTorch's ``nn.functional`` and ``torch.functional`` hand a call on to ``__torch_function__`` with
arguments that have no default by position and all others by name, so that is how they stand in its
graphs. The signatures are PyTorch 2.13's (torch/nn/functional.py, torch/functional.py).
"""

from __future__ import annotations

import builtins
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

import antorcha
from antorcha.errors import GraphError
from antorcha.nn import functional as F
from antorcha.ops.kinds.record import NAMESPACES, InPlace, Op
from antorcha.runtime.tensor import Tensor

_IN_C = {
    "avg_pool2d": "avg_pool2d", "avg_pool3d": "avg_pool3d", "elu_": "elu_", "gelu": "gelu",
    "hardtanh_": "hardtanh_", "leaky_relu_": "leaky_relu_", "linear": "linear",
    "logsigmoid": "log_sigmoid", "one_hot": "one_hot", "softplus": "softplus",
    "scaled_dot_product_attention": "scaled_dot_product_attention", "softshrink": "softshrink",
}  # fmt: skip
"""Functions of ``nn.functional`` that PyTorch shows as ``torch._C._nn.<name>``."""

_IN_FUNCTIONAL = frozenset(
    "align_tensors atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors "
    "cartesian_prod cdist chain_matmul einsum istft lu meshgrid norm split stft tensordot unique "
    "unique_consecutive unravel_index".split()
)
"""Functions of ``torch`` that PyTorch shows as ``torch.functional.<name>``."""

_SIGNATURES = dict(
    line.split(": ", 1)
    for line in """
adaptive_avg_pool2d: input, output_size
adaptive_avg_pool3d: input, output_size
adaptive_max_pool1d: input, output_size, return_indices=False
adaptive_max_pool1d_with_indices: input, output_size, return_indices=False
adaptive_max_pool2d: input, output_size, return_indices=False
adaptive_max_pool2d_with_indices: input, output_size, return_indices=False
adaptive_max_pool3d: input, output_size, return_indices=False
adaptive_max_pool3d_with_indices: input, output_size, return_indices=False
affine_grid: theta, size, align_corners=None
alpha_dropout: input, p=0.5, training=False, inplace=False
batch_norm: input, running_mean, running_var, weight=None, bias=None, training=False,
    momentum=0.1, eps=1e-05
binary_cross_entropy: input, target, weight=None, size_average=None, reduce=None,
    reduction='mean'
binary_cross_entropy_with_logits: input, target, weight=None, size_average=None, reduce=None,
    reduction='mean', pos_weight=None
celu: input, alpha=1.0, inplace=False
cosine_embedding_loss: input1, input2, target, margin=0, size_average=None, reduce=None,
    reduction='mean'
cross_entropy: input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
    reduction='mean', label_smoothing=0.0
ctc_loss: log_probs, targets, input_lengths, target_lengths, blank=0, reduction='mean',
    zero_infinity=False
dropout: input, p=0.5, training=True, inplace=False
dropout1d: input, p=0.5, training=True, inplace=False
dropout2d: input, p=0.5, training=True, inplace=False
dropout3d: input, p=0.5, training=True, inplace=False
elu: input, alpha=1.0, inplace=False
embedding: input, weight, padding_idx=None, max_norm=None, norm_type=2.0,
    scale_grad_by_freq=False, sparse=False
embedding_bag: input, weight, offsets=None, max_norm=None, norm_type=2,
    scale_grad_by_freq=False, mode='mean', sparse=False, per_sample_weights=None,
    include_last_offset=False, padding_idx=None
feature_alpha_dropout: input, p=0.5, training=False, inplace=False
fold: input, output_size, kernel_size, dilation=1, padding=0, stride=1
fractional_max_pool2d: input, kernel_size, output_size=None, output_ratio=None,
    return_indices=False, _random_samples=None
fractional_max_pool2d_with_indices: input, kernel_size, output_size=None, output_ratio=None,
    return_indices=False, _random_samples=None
fractional_max_pool3d: input, kernel_size, output_size=None, output_ratio=None,
    return_indices=False, _random_samples=None
fractional_max_pool3d_with_indices: input, kernel_size, output_size=None, output_ratio=None,
    return_indices=False, _random_samples=None
gaussian_nll_loss: input, target, var, full=False, eps=1e-06, reduction='mean'
glu: input, dim=-1
grid_sample: input, grid, mode='bilinear', padding_mode='zeros', align_corners=None
group_norm: input, num_groups, weight=None, bias=None, eps=1e-05
gumbel_softmax: logits, tau=1, hard=False, eps=1e-10, dim=-1
hardsigmoid: input, inplace=False
hardswish: input, inplace=False
hardtanh: input, min_val=-1.0, max_val=1.0, inplace=False
hinge_embedding_loss: input, target, margin=1.0, size_average=None, reduce=None,
    reduction='mean'
huber_loss: input, target, reduction='mean', delta=1.0, weight=None
instance_norm: input, running_mean=None, running_var=None, weight=None, bias=None,
    use_input_stats=True, momentum=0.1, eps=1e-05
interpolate: input, size=None, scale_factor=None, mode='nearest', align_corners=None,
    recompute_scale_factor=None, antialias=False
kl_div: input, target, size_average=None, reduce=None, reduction='mean', log_target=False
l1_loss: input, target, size_average=None, reduce=None, reduction='mean', weight=None
layer_norm: input, normalized_shape, weight=None, bias=None, eps=1e-05
leaky_relu: input, negative_slope=0.01, inplace=False
linear_cross_entropy: input, linear_weight, target, linear_bias=None, weight=None,
    reduction='mean', ignore_index=None, label_smoothing=0.0, options=None
local_response_norm: input, size, alpha=0.0001, beta=0.75, k=1.0
log_softmax: input, dim=None, _stacklevel=3, dtype=None
lp_pool1d: input, norm_type, kernel_size, stride=None, ceil_mode=False
lp_pool2d: input, norm_type, kernel_size, stride=None, ceil_mode=False
lp_pool3d: input, norm_type, kernel_size, stride=None, ceil_mode=False
margin_ranking_loss: input1, input2, target, margin=0, size_average=None, reduce=None,
    reduction='mean'
max_pool1d: input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
    return_indices=False
max_pool1d_with_indices: input, kernel_size, stride=None, padding=0, dilation=1,
    ceil_mode=False, return_indices=False
max_pool2d: input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
    return_indices=False
max_pool2d_with_indices: input, kernel_size, stride=None, padding=0, dilation=1,
    ceil_mode=False, return_indices=False
max_pool3d: input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
    return_indices=False
max_pool3d_with_indices: input, kernel_size, stride=None, padding=0, dilation=1,
    ceil_mode=False, return_indices=False
max_unpool1d: input, indices, kernel_size, stride=None, padding=0, output_size=None
max_unpool2d: input, indices, kernel_size, stride=None, padding=0, output_size=None
max_unpool3d: input, indices, kernel_size, stride=None, padding=0, output_size=None
mish: input, inplace=False
mse_loss: input, target, size_average=None, reduce=None, reduction='mean', weight=None
multi_head_attention_forward: query, key, value, embed_dim_to_check, num_heads, in_proj_weight,
    in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias,
    training=True, key_padding_mask=None, need_weights=True, attn_mask=None,
    use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None,
    static_k=None, static_v=None, average_attn_weights=True, is_causal=False
multi_margin_loss: input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None,
    reduction='mean'
multilabel_margin_loss: input, target, size_average=None, reduce=None, reduction='mean'
multilabel_soft_margin_loss: input, target, weight=None, size_average=None, reduce=None,
    reduction='mean'
nll_loss: input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
    reduction='mean'
normalize: input, p=2.0, dim=1, eps=1e-12, out=None
pad: input, pad, mode='constant', value=None
poisson_nll_loss: input, target, log_input=True, full=False, size_average=None, eps=1e-08,
    reduce=None, reduction='mean'
relu: input, inplace=False
relu6: input, inplace=False
rms_norm: input, normalized_shape, weight=None, eps=None
rrelu: input, lower=0.125, upper=0.3333333333333333, training=False, inplace=False
selu: input, inplace=False
silu: input, inplace=False
smooth_l1_loss: input, target, size_average=None, reduce=None, reduction='mean', beta=1.0
soft_margin_loss: input, target, size_average=None, reduce=None, reduction='mean'
softmax: input, dim=None, _stacklevel=3, dtype=None
softmin: input, dim=None, _stacklevel=3, dtype=None
softsign: input
tanhshrink: input
threshold: input, threshold, value, inplace=False
triplet_margin_loss: anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False,
    size_average=None, reduce=None, reduction='mean'
triplet_margin_with_distance_loss: anchor, positive, negative, distance_function=None,
    margin=1.0, swap=False, reduction='mean'
unfold: input, kernel_size, dilation=1, padding=0, stride=1
torch.cdist: x1, x2, p=2.0, compute_mode='use_mm_for_euclid_dist_if_necessary'
torch.lu: input, pivot=True, get_infos=False, out=None
torch.norm: input, p='fro', dim=None, keepdim=False, out=None, dtype=None
torch.split: tensor, split_size_or_sections, dim=0
torch.stft: input, n_fft, hop_length=None, win_length=None, window=None, center=True,
    pad_mode='reflect', normalized=False, onesided=None, return_complex=None,
    align_to_window=None
torch.tensordot: a, b, dims=2, out=None
torch.unique: input, sorted=True, return_inverse=False, return_counts=False, dim=None
torch.unique_consecutive: input, return_inverse=False, return_counts=False, dim=None
""".replace("\n    ", " ")
    .strip()
    .split("\n")
)


@functools.cache
def _parameters(name: str) -> list[tuple[str, Any]]:
    """The parameters of a function, with their defaults."""
    result = eval(f"lambda {_SIGNATURES[name]}: None", {"__builtins__": {}})
    return [(p.name, p.default) for p in inspect.signature(result).parameters.values()]


def as_pytorch_calls(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call of ``nn.functional.<name>``, or of ``torch.functional.<name>``, whose
    name here is ``torch.<name>``, as they stand in PyTorch's graphs."""
    if name == "torch.meshgrid":
        return args, {"indexing": None, **kwargs}
    if name == "torch.unravel_index" and len(args) == 2:
        return args[:1], {"shape": args[1]}
    if name == "torch.einsum" and len(args) == 2 and isinstance(args[1], (list, tuple)):
        return (args[0], *args[1]), kwargs
    if name not in _SIGNATURES:
        return args, kwargs
    given = dict(zip([p for p, _ in _parameters(name)], args, strict=False)) | kwargs
    positional, named = [], {}
    for parameter, default in _parameters(name):
        if parameter in given:
            value = given[parameter]
        elif default is inspect.Parameter.empty:
            raise TypeError(f"{name}() missing required argument: {parameter!r}")
        else:
            value = default
        if default is inspect.Parameter.empty:
            positional.append(value)
        else:
            named[parameter] = value
    return tuple(positional), named


FUNCTIONAL: dict[str, Callable[..., Any]] = {
    name: value for name, value in vars(F).items()
    if (name in _SIGNATURES or name in _IN_C) and callable(value)
}  # fmt: skip
"""The functions of ``nn.functional`` that record themselves in a graph."""


class _Names:
    """Attributes that are looked up in a dict."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.__dict__.update(names)


_C = _Names({
    "_nn": _Names({_IN_C[name]: getattr(F, name) for name in _IN_C if hasattr(F, name)}),
    "_linalg": _Names({f"linalg_{name}": op for name, op in NAMESPACES["linalg"].items()}),
    "_special": _Names({f"special_{name}": op for name, op in NAMESPACES["special"].items()}),
})  # fmt: skip
"""Where PyTorch has functions of these namespaces, and its graphs call them."""


class TorchNames:
    """The ``torch`` of generated code: every name of antorcha's, and a few inner ones."""

    __name__ = "torch"
    _C = _C

    def __getattr__(self, name: str) -> Any:
        return self if name == "functional" else getattr(antorcha, name)

    def __deepcopy__(self, memo: Any) -> TorchNames:
        return self


TORCH: Any = TorchNames()


# ------------------------------------------------------------------------------------------- naming
def is_ours(obj: Any) -> bool:
    """Is it found under ``torch``?"""
    module = getattr(obj, "__module__", None)
    if module is None:
        return False
    return str(module).split(".")[0] in ("antorcha", "torch")


def _find_shown() -> dict[int, str]:
    found: dict[int, str] = {}
    for space in ("linalg", "special"):
        for name, value in NAMESPACES[space].items():
            if getattr(value, "namespace", "") == space:
                found.setdefault(id(value), f"torch._C._{space}.{space}_{name}")
    for name, value in FUNCTIONAL.items():
        shown = f"_C._nn.{_IN_C[name]}" if name in _IN_C else f"nn.functional.{name}"
        found[id(value)] = f"torch.{shown}"
    return found


_SHOWN = _find_shown()
"""What functions are called that are public in other places than ``torch``, by their ids."""


def qualified_name(func: Callable[..., Any]) -> str:
    """The name by which generated code finds a function: ``torch.nn.functional.relu``."""
    name = getattr(func, "__name__", None)
    if name is None:
        raise GraphError(f"{func!r} has no name by which a graph could call it")
    if getattr(builtins, name, None) is func:
        return str(name)
    if id(func) in _SHOWN:
        return _SHOWN[id(func)]
    if isinstance(func, (Op, InPlace)) and getattr(antorcha, name, None) is func:
        return f"torch.functional.{name}" if name in _IN_FUNCTIONAL else f"torch.{name}"
    if Tensor.__dict__.get(name) is func:
        return f"torch.Tensor.{name}"
    if name == "<lambda>":
        try:
            name = inspect.getsource(func).split("=")[0].strip()
        except Exception as error:
            raise RuntimeError("Unable to represent lambda") from error
    module = getattr(func, "__module__", None)
    if module is None:
        raise RuntimeError(f"cannot find module for {func}")
    if is_ours(func):
        return f"{_public(func, name, str(module))}.{name}"
    return f"{module}.{name}"


def _public(func: Any, name: str, module: str) -> str:
    """The module under ``torch`` that shows it: not the file where antorcha has it."""
    for shown in ("torch", "torch.nn.functional", "torch.nn", "torch.linalg"):
        place: Any = antorcha
        for part in shown.split(".")[1:]:
            place = getattr(place, part)
        if getattr(place, name, None) is func:
            return shown
    return module.replace("antorcha", "torch", 1)


def public_form(func: Any) -> Any:
    """The function of ``nn.functional`` behind which an op stands that is public only there."""
    if isinstance(func, Op) and getattr(antorcha, func.name, None) is not func:
        return FUNCTIONAL.get(func.name, func)
    return func


def is_found(name: str) -> bool:
    """Does generated code find something under this name?"""
    found: Any = TORCH
    for atom in name.split(".")[1:]:
        found = getattr(found, atom, None)
    return found is not None


def type_name(obj: Any) -> str:
    """A type as generated code writes it."""
    if isinstance(obj, types.GenericAlias):
        return repr(obj)  # (`list[int]` counts as a class)
    if isinstance(obj, type):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        if is_ours(obj):
            return f"{_public(obj, obj.__name__, obj.__module__)}.{obj.__qualname__}"
        return f"{obj.__module__}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return repr(obj)
