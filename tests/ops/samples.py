"""PyTorch's own samples of its operators and modules, held against antorcha.

PyTorch tests itself with lists of sample arguments, one entry an operator (``op_db``) or a module
(``module_db``). Here a sample's tensors are made once more as antorcha's, the call is made on both
sides, and values, dtypes, shapes, strides and gradients are compared.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.machinery
import itertools
import sys
import types
import unittest
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

import antorcha

TOLERANCE = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 2e-5, "float64": 1e-10,
             "complex64": 2e-5, "complex128": 1e-10}  # fmt: skip
WIDER = {"float16": "float64", "bfloat16": "float64", "float32": "float64",
         "complex64": "complex128"}  # fmt: skip


def database(module: str, name: str) -> list[Any]:
    """One of PyTorch's lists of samples."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import expecttest  # noqa: F401
        except ImportError:  # only the base class of PyTorch's own test cases comes from there
            stand_in: Any = types.ModuleType("expecttest")
            stand_in.TestCase, stand_in.ACCEPT = unittest.TestCase, False
            stand_in.__spec__ = importlib.machinery.ModuleSpec("expecttest", None)  # others look
            sys.modules["expecttest"] = stand_in
        _keep_no_stacks()
        listed: list[Any] = getattr(
            importlib.import_module(f"torch.testing._internal.{module}"), name
        )
    return listed


@functools.cache
def _keep_no_stacks() -> None:
    """PyTorch's lists look at the stack of calls for the unittest that asks, which there is not;
    and PyTorch keeps the stack that seeds, before each sample, a device that is not there. Within
    pytest, whose stacks are deep, that would take most of the time."""
    import torch
    from torch.testing._internal import common_utils
    from torch.testing._internal.opinfo import core

    @functools.wraps(torch.manual_seed)
    def manual_seed(seed: Any) -> Any:
        return torch.default_generator.manual_seed(int(seed))

    torch.manual_seed = manual_seed
    common_utils.extract_test_fn = core.extract_test_fn = lambda: None


def operators() -> list[Any]:
    return database("common_methods_invocations", "op_db")


def modules() -> list[Any]:
    return database("common_modules", "module_db")


def title(entry: Any) -> str:
    """``div.trunc_rounding``: an entry's name and variant."""
    variant = getattr(entry, "variant_test_name", "")
    return f"{entry.name}.{variant}" if variant else str(entry.name)


def named(name: str) -> Any:
    """What antorcha calls so: a function, a method, a method in place, or None."""
    for root, path in ((antorcha, name), (antorcha.Tensor, name), (antorcha.Tensor, f"{name}_")):
        with contextlib.suppress(AttributeError):
            return attrgetter(path)(root)
    return None


# --------------------------------------------------------------------------------- the same call
def on_antorcha(fn: Any) -> Any:
    """What ``fn`` of PyTorch is in antorcha: by its name, or its Python with antorcha for torch."""
    import torch

    if isinstance(fn, torch.nn.Module):
        made = getattr(antorcha.nn, type(fn).__name__)()
        made.__dict__.update({k: v for k, v in vars(fn).items() if not k.startswith("_")})
        return made
    home = getattr(fn, "__module__", None) or ""
    if not isinstance(fn, types.FunctionType) or home.startswith("torch.nn.functional"):
        return _by_name(fn)
    if not home.startswith("torch.testing"):  # Tensor.resize_as_ is a function of its own
        if fn.__qualname__.startswith(("Tensor.", "TensorBase.")):
            return getattr(antorcha.Tensor, fn.__name__)
        found = named(f"{home.removeprefix('torch.')}.{fn.__name__}") or named(fn.__name__)
        return found or _by_name(fn)
    return _translated(fn)


OURS = {"freeze_rng_state": antorcha.random.fork_rng}


def _translated(fn: types.FunctionType) -> Any:
    """The same code, with antorcha where it says torch."""
    import torch

    spaces = {torch: antorcha, torch.nn.functional: antorcha.nn.functional}
    known = {k: spaces[v] for k, v in fn.__globals__.items()
             if isinstance(v, types.ModuleType) and v in spaces}  # fmt: skip
    for name in fn.__code__.co_names:
        inner = fn.__globals__.get(name)
        if isinstance(inner, types.FunctionType) and inner.__module__.startswith("torch.testing"):
            known[name] = OURS.get(name) or _translated(inner)
    closure = tuple([types.CellType(_cell(cell.cell_contents)) for cell in fn.__closure__ or ()])
    made = types.FunctionType(
        fn.__code__, {**fn.__globals__, **known}, fn.__name__, fn.__defaults__, closure
    )
    made.__kwdefaults__ = fn.__kwdefaults__
    return made


def _cell(value: Any) -> Any:
    import torch

    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
        return on_antorcha(value)
    return converted(value) if isinstance(value, (torch.Tensor, torch.dtype)) else value


def _by_name(fn: Any) -> Any:
    name = getattr(fn, "__name__", "")
    owner = getattr(fn, "__objclass__", None)
    if owner is not None:  # a method
        return getattr(antorcha.Tensor, name)
    home = (getattr(fn, "__module__", None) or "torch").replace("torch._C._nn", "nn.functional")
    home = home.replace("torch._C._", "").removeprefix("torch").strip(".")
    for path in (f"{home}.{name}", name, name.replace("linalg_", "linalg.", 1),
                 name.replace("special_", "special.", 1)):  # fmt: skip
        found = named(path.strip("."))
        if found is not None:
            return found
    raise LookupError(f"antorcha has no {home}.{name}")


def converted(value: Any, grad: bool = True) -> Any:
    """The same argument for antorcha: tensors with the same strides, dtypes, functions, devices."""
    import torch

    if isinstance(value, torch.Tensor):
        return _tensor(value, grad)
    if isinstance(value, torch.Size):
        return antorcha.Size(value)
    if isinstance(value, (tuple, list)):
        parts = [converted(each, grad) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {key: converted(each, grad) for key, each in value.items()}
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return getattr(antorcha, str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return antorcha.device(str(value))
    if isinstance(value, torch.nn.TransformerEncoderLayer):
        return _encoder_layer(value)
    if callable(value) and not isinstance(value, type):
        return on_antorcha(value)
    return value


def _encoder_layer(layer: Any) -> Any:
    """The same layer; its parameters come with those of the module that it is for."""
    attention = layer.self_attn
    return antorcha.nn.TransformerEncoderLayer(
        attention.embed_dim, attention.num_heads, layer.linear1.out_features, layer.dropout.p,
        on_antorcha(layer.activation), layer.norm1.eps, attention.batch_first, layer.norm_first,
        layer.linear1.bias is not None, dtype=converted(layer.linear1.weight.dtype),
    )  # fmt: skip


def _tensor(tensor: Any, grad: bool) -> Any:
    """The same storage, offset and strides."""
    import torch

    plain = tensor.detach().resolve_conj().resolve_neg()
    raw = plain.untyped_storage()
    dtype = getattr(antorcha, str(plain.dtype).removeprefix("torch."))
    whole = raw.nbytes() // dtype.itemsize * dtype.itemsize
    if not whole:
        made = antorcha.empty(0, dtype=dtype)
    else:
        data = torch.empty(0, dtype=torch.uint8).set_(raw, 0, (whole,), (1,))
        made = antorcha.from_numpy(data.numpy().copy()).view(dtype)
    made = made.as_strided(tuple(plain.shape), plain.stride(), plain.storage_offset()).detach()
    return made.requires_grad_(grad and tensor.requires_grad)


def copied(value: Any) -> Any:
    """The argument again, so that a call that writes leaves the sample as it was."""
    import torch

    if isinstance(value, torch.Tensor):
        again = torch.empty(0, dtype=value.dtype).set_(
            value.detach().untyped_storage().clone(), value.storage_offset(), value.shape,
            value.stride()
        )  # fmt: skip
        if value.is_conj():
            again = again.conj()
        return again.requires_grad_(value.requires_grad)
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        parts = [copied(each) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}
    return value


def widened(value: Any) -> Any:
    """The argument with PyTorch's widest numbers: the truth that both sides are measured by."""
    import torch

    if isinstance(value, torch.Tensor):
        name = WIDER.get(str(value.dtype)[6:])
        wide = value.detach().to(getattr(torch, name)) if name else value.detach().clone()
        return wide.requires_grad_(value.requires_grad)
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        parts = [widened(each) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {key: widened(each) for key, each in value.items()}
    if isinstance(value, torch.dtype):
        return getattr(torch, WIDER.get(str(value)[6:], str(value)[6:]))
    return value


# --------------------------------------------------------------------------------------- comparing
def tensors_in(value: Any, kind: type) -> Iterator[Any]:
    if isinstance(value, kind):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from tensors_in(each, kind)
    elif isinstance(value, dict):
        for each in value.values():
            yield from tensors_in(each, kind)


def array(tensor: Any) -> Any:
    tensor = tensor.detach()
    if hasattr(tensor, "resolve_conj"):
        tensor = tensor.resolve_conj()
        tensor = tensor.resolve_neg() if hasattr(tensor, "resolve_neg") else tensor
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy(force=True)


def differ(
    ours: Any, theirs: Any, wide: Any, what: str, strides: bool, scale: float = 1.0,
    sums: bool = False,
) -> str:  # fmt: skip
    """Where two results differ, or the empty string.

    ``wide`` is the same result from wider arguments: where the two differ, ours must be as near to
    it as PyTorch's, element by element or, of ``sums``, measured by the greatest.
    """
    import torch

    if isinstance(theirs, (tuple, list)) and not isinstance(theirs, torch.Size):
        if not isinstance(ours, (tuple, list)) or len(ours) != len(theirs):
            return f"{what}: {type(ours).__name__} of {len(ours)} for {type(theirs).__name__}"
        for k, each in enumerate(theirs):
            of_wide = wide[k] if wide is not None else None
            found = differ(ours[k], each, of_wide, f"{what}[{k}]", strides, scale, sums)
            if found:
                return found
        return ""
    if not isinstance(theirs, torch.Tensor):
        if isinstance(theirs, float):
            return "" if np.isclose(ours, theirs, equal_nan=True) else f"{what}: {ours}, {theirs}"
        same = type(ours).__name__ == type(theirs).__name__
        same = same and (str(ours) == str(theirs) or ours == theirs)
        return "" if same else f"{what}: {ours!r} for {theirs!r}"
    if not isinstance(ours, antorcha.Tensor):
        return f"{what}: {type(ours).__name__} for a Tensor"
    if theirs.layout != torch.strided:
        return ""
    if str(ours.dtype) != str(theirs.dtype):
        return f"{what}: dtype {ours.dtype} for {theirs.dtype}"
    if tuple(ours.shape) != tuple(theirs.shape):
        return f"{what}: shape {tuple(ours.shape)} for {tuple(theirs.shape)}"
    if strides and _steps(ours) != _steps(theirs):
        return f"{what}: strides {ours.stride()} for {theirs.stride()} of {tuple(ours.shape)}"
    return _values(array(ours), array(theirs), wide, what, str(theirs.dtype)[6:], scale, sums)


def _steps(tensor: Any) -> list[int]:
    """The strides of the dims in which there is anywhere to go."""
    if not tensor.numel():
        return []
    return [s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1]


def _values(
    mine: Any, other: Any, wide: Any, what: str, dtype: str, scale: float, sums: bool
) -> str:
    tolerance = TOLERANCE.get(dtype, 0) * scale
    with np.errstate(all="ignore"):
        if np.allclose(mine, other, tolerance, tolerance, equal_nan=True):
            return ""
        bad = ~np.isclose(mine, other, tolerance, tolerance, equal_nan=True)
        if wide is not None:
            truth = array(wide)
            if truth.shape == mine.shape:
                bad &= ~_overflow(mine, other, truth, 4 * tolerance)
                errors = [np.abs(x - truth) for x in (mine, other)]
                size = np.abs(truth).max(initial=0) if sums else np.abs(truth)
                allowed = 2 * errors[1].max(where=bad, initial=0) + tolerance * size
                if (errors[0] <= allowed)[bad].all():
                    return ""  # PyTorch's is no nearer to the truth
    where = tuple([int(i) for i in np.argwhere(bad)[0]])
    return f"{what}: {mine[where]} for {other[where]} at {where} ({bad.sum()} of {bad.size})"


def _overflow(mine: Any, other: Any, truth: Any, tolerance: float) -> Any:
    """Where PyTorch's numbers became too large on their way to what ours are: the truth."""
    with np.errstate(all="ignore"):
        rounded = truth.astype(mine.dtype)
        right = np.isclose(mine, rounded, tolerance, tolerance, equal_nan=True)
    return right & ~np.isfinite(other)


def weighted(lib: Any, results: Any) -> Any:
    """A real number that depends on every part of the results that requires a gradient."""
    total: Any = None
    for k, each in enumerate(tensors_in(results, lib.Tensor)):
        if each.requires_grad:
            weight = np.cos(np.arange(each.numel()) + k).reshape(tuple(each.shape))
            factor = lib.from_numpy(np.ascontiguousarray(weight)).to(each.dtype)
            if each.is_complex():
                factor = factor * (1 - 0.5j)
            part = (each * factor).sum()
            part = lib.real(part) if each.is_complex() else part
            total = part if total is None else total + part.to(total.dtype)
    return total


# ------------------------------------------------------------------------------------- one sample
def both(entry: Any, grad: bool) -> tuple[Any, Any]:
    """An entry's function in PyTorch and in antorcha; for gradients, of what makes inputs valid."""
    theirs = entry.op
    try:
        ours = on_antorcha(theirs)
    except LookupError:  # a function of PyTorch's interior
        ours = named(entry.name)
    if not grad:
        return theirs, ours
    wrap = entry.gradcheck_wrapper
    wrapped = on_antorcha(wrap)
    return partial(wrap, theirs), partial(wrapped, ours)


def elementwise(entry: Any) -> bool:
    """Does each element of the result come from one of each operand?"""
    return type(entry).__name__ in ("UnaryUfuncInfo", "BinaryUfuncInfo")


def spread(items: Any, most: int) -> Iterator[tuple[int, Any]]:
    """At most so many of the items, from all over, with their numbers."""
    if most == 1:  # the others need not be made
        items = itertools.islice(items, 1)
    found = list(items)
    step = max(1, -(-len(found) // most))
    yield from list(enumerate(found))[::step]


class Side:
    """A call on one of the libraries: its results and the gradients of its arguments."""

    def __init__(self, lib: Any, call: Callable[..., Any], process: Any, args: Any, kwargs: Any):
        own = [p for _, p in call.named_parameters()] if hasattr(call, "named_parameters") else []
        tensors = tensors_in([args, kwargs, own], lib.Tensor)
        self.lib, self.inputs = lib, [t for t in tensors if t.requires_grad]
        lib.manual_seed(5)
        self.results = call(*args, **kwargs)
        if process is not None:
            self.results = process(self.results)

    def tensors(self) -> list[Any]:
        return list(tensors_in(self.results, self.lib.Tensor))

    def gradients(self) -> list[Any] | None:
        total = weighted(self.lib, self.results)
        if total is None or not self.inputs:
            return None
        found = self.lib.autograd.grad(total, self.inputs, allow_unused=True)
        return [
            self.lib.zeros_like(x.detach()) if g is None else g
            for g, x in zip(found, self.inputs, strict=True)
        ]


REFUSED = (RuntimeError, NotImplementedError, ValueError, TypeError, IndexError)


def compare(
    call: Any, ours: Any, sample: Any, *, grad: bool, process: Any = None, strides: bool = True,
    indices: bool = True, values: bool = True, sums: bool = True, scale: float = 1,
) -> str:  # fmt: skip
    """How antorcha differs from PyTorch for this sample, or the empty string.

    What PyTorch itself refuses is nothing to compare. ``indices=False`` compares only results of
    the first one's dtype, ``values=False`` only dtypes, shapes and strides.
    """
    import torch

    first = [sample.input] if hasattr(sample, "input") else []
    arguments = ([*first, *sample.args], sample.kwargs)
    mine = converted(copied(arguments))
    try:
        theirs = Side(torch, call, process, *copied(arguments))
        wanted = theirs.gradients() if grad else None
    except REFUSED:
        return ""
    try:
        found = Side(antorcha, ours, process and on_antorcha(process), *mine)
        gradients = None if wanted is None else found.gradients()
    except NotImplementedError as error:
        return f"lacks: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    pairs = list(zip(found.tensors(), theirs.tensors(), strict=True))
    if not values:
        return "".join([_kind(a, b) for a, b in pairs])
    truth = Truth(call, process, arguments, grad)
    if not indices:
        kind = theirs.tensors()[0].dtype
        for k, (a, b) in enumerate(pairs):
            if b.dtype is kind and not (kind is torch.int64 and (k or len(pairs) == 1)):
                message = differ(a, b, None, f"result[{k}]", strides, scale)
                if message:
                    return message
        return ""
    message = _compared(found.results, theirs.results, truth, 0, "result", strides, scale, sums)
    if message or not grad:
        return message
    for a, b in pairs:
        if a.requires_grad != b.requires_grad:
            return f"requires_grad is {a.requires_grad} for {b.requires_grad}"
    if wanted is None:
        return ""
    return _compared(gradients, wanted, truth, 1, "gradient", False, scale, True)


def _kind(ours: Any, theirs: Any) -> str:
    mine = (str(ours.dtype), tuple(ours.shape), _steps(ours))
    other = (str(theirs.dtype), tuple(theirs.shape), _steps(theirs))
    return "" if mine == other else f"{mine} for {other}"


class Truth:
    """PyTorch's results and gradients in the widest dtype, computed when first asked for."""

    def __init__(self, call: Any, process: Any, arguments: Any, grad: bool):
        self.call, self.process, self.arguments, self.grad = call, process, arguments, grad
        self.parts: Any = None

    def __getitem__(self, part: int) -> Any:
        import torch

        if self.parts is None:
            self.parts = (None, None)
            tensors = tensors_in(list(self.arguments), torch.Tensor)
            if not any([str(t.dtype)[6:] in WIDER for t in tensors]):
                return None  # there is nothing wider
            with contextlib.suppress(Exception):
                side = Side(torch, self.call, self.process, *widened(self.arguments))
                self.parts = side.results, side.gradients() if self.grad else None
        return self.parts[part]


def _compared(
    mine: Any, other: Any, truth: Truth, part: int, what: str, strides: bool, scale: float,
    sums: bool,
) -> str:  # fmt: skip
    scale *= 1 + 9 * part  # gradients are sums of more terms
    message = differ(mine, other, None, what, strides, scale)
    if message:
        message = differ(mine, other, truth[part], what, strides, scale, sums)
    return message


def twins(info: Any, given: Any, dtype: Any, training: bool) -> tuple[Any, Any]:
    """A module of PyTorch's list with these arguments, and antorcha's with the same parameters."""
    args, kwargs = given.constructor_input.args, given.constructor_input.kwargs
    theirs = info.module_cls(*args, **kwargs).to(dtype).train(training)
    made = attrgetter(info.name)(antorcha)(*converted(args), **converted(kwargs))
    made = made.to(converted(dtype)).train(training)
    if type(theirs).__name__.startswith("Lazy"):  # their first input tells them their sizes
        inputs = given.forward_input
        theirs(*inputs.args, **inputs.kwargs)
        made(*converted(inputs.args, False), **converted(inputs.kwargs, False))
    made.load_state_dict({key: converted(value) for key, value in theirs.state_dict().items()})
    return theirs, made
