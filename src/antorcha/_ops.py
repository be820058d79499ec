"""``torch.ops``: operators by namespace, name and overload: ``torch.ops.aten.add.Tensor``.

Programs add operators through ``torch.library``; those of the namespace ``aten`` are antorcha's own
records. PyTorch's module of this name holds the same classes.
"""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

from antorcha.core import dtypes, modes
from antorcha.core.hooks import hooks
from antorcha.core.lazy import lazy
from antorcha.errors import MissingFeature
from antorcha.ops.kinds.record import NAMESPACES, REGISTRY, Op, T
from antorcha.runtime.tensor import Tensor

if TYPE_CHECKING:
    from antorcha import sparse
    from antorcha.library.schema import FunctionSchema
    from antorcha.profiler import autograd_profiler
    from antorcha.profiler.autograd_profiler import record_function
else:
    sparse = lazy("antorcha.sparse")
    autograd_profiler = lazy("antorcha.profiler.autograd_profiler")

asserts = lazy("antorcha.library.asserts")

SERVED: Final = {
    "torchvision": ("antorcha.library.vision", ("_C", "_C_stable")),
    "image": ("antorcha.library.vision", ("image", "image_stable")),
}
"""Namespaces whose compiled operators antorcha has: the module that defines them, and the names of
the libraries that do in the package itself."""

# The overloads that PyTorch gives names; which of them an op has is not told apart here.
_OVERLOADS = frozenset(
    "List Scalar ScalarList ScalarList_out ScalarOpt_dim ScalarOpt_dim_dtype ScalarOther "
    "ScalarSelf Scalar_Scalar Scalar_Tensor Scalar_Tensor_out Scalar_mode Scalar_out Tensor "
    "Tensor_Scalar Tensor_Scalar_out Tensor_Tensor Tensor_Tensor_out Tensor_float Tensor_mode "
    "Tensor_mode_out Tensor_out array bool complex correction correction_out decimals default "
    "device dim dim_DimnameList dim_IntList dim_dtype dim_dtype_out dim_max dim_min dim_out "
    "dim_values dimname dims dims_out dtype dtype_layout dtype_out enum float float_Tensor "
    "from generator generator_out grad_input hacked_twin indices input int low_generator "
    "memory_format msg n_scalar n_scalar_out names other other_scalar other_scalar_out out "
    "out_mode output p padding periodic reduce result scalar scalar_out self self_out "
    "self_scalar sizes source_Storage source_Storage_storage_offset source_Tensor sparse_dim "
    "split src stable start start_step tensors tensors_out this to two unary_out value "
    "value_reduce values values_stable vec vec_out x x_scalar".split()
)


class OpOverload:
    """One overload of an operator: callable, named ``ns.op.overload``."""

    def __init__(self, packet: OpOverloadPacket, overload: str, fn: Any = None) -> None:
        self._packet, self._overloadname, self._op = packet, overload, fn
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__qualname__, self.__module__ = self.__name__, packet.__module__
        self.__doc__ = getattr(fn, "__doc__", None)
        self.tags: list[Any] = []

    @property
    def _schema(self) -> FunctionSchema:
        raise MissingFeature(f"{self}: the schemas of antorcha's own operators are not written out")

    @property
    def namespace(self) -> str:
        """``"aten"`` of ``aten.add.Tensor``."""
        return self._packet._qualified_op_name.partition("::")[0]

    _namespace = namespace

    @property
    def _opname(self) -> str:
        return self._packet.__name__

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """The operator with all its overloads."""
        return self._packet

    @property
    def op(self) -> Any:
        """What computes it."""
        return self._op

    def name(self) -> str:
        """``"aten::add.Tensor"``; the overload ``default`` is not named."""
        tail = "" if self._overloadname == "default" else f".{self._overloadname}"
        return self._packet._qualified_op_name + tail

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._op(*args, **kwargs)

    def __str__(self) -> str:
        return f"{self._packet}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self._packet}', overload='{self._overloadname}')>"

    def __deepcopy__(self, memo: Any = None) -> OpOverload:
        return self

    def __reduce__(self) -> Any:
        return _find, (self._packet._qualified_op_name, self._overloadname)


class OpOverloadPacket:
    """An operator: its overloads are attributes, a call takes the one that fits."""

    def __init__(self, qualname: str, overloads: dict[str, OpOverload], fn: Any = None) -> None:
        namespace, _, name = qualname.partition("::")
        self._qualified_op_name, self.__name__ = qualname, name
        self.__qualname__, self.__module__ = name, f"torch.ops.{namespace}"
        self._found, self._fn = overloads, fn

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("_"):
            raise AttributeError(f"'{self}' can't have an overload name beginning with '_'")
        found = self._found.get(name)
        if found is None and self._fn is not None and name in _OVERLOADS:
            found = self._found[name] = OpOverload(self, name, self._fn)
        if found is None:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{name}'")
        return found

    def overloads(self) -> list[str]:
        """The names of the overloads; of antorcha's own operators, those used so far."""
        return list(self._found)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self._fn is not None:
            return self._fn(*args, **kwargs)
        return next(iter(self._found.values()))(*args, **kwargs)

    def __str__(self) -> str:
        return self._qualified_op_name.replace("::", ".")

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __deepcopy__(self, memo: Any = None) -> OpOverloadPacket:
        return self

    def __reduce__(self) -> Any:
        return _find, (self._qualified_op_name, None)


def _find(qualname: str, overload: str | None) -> Any:
    namespace, _, name = qualname.partition("::")
    packet = getattr(getattr(ops, namespace), name)
    return packet if overload is None else getattr(packet, overload)


class _OpNamespace(ModuleType):
    """``torch.ops.<namespace>``."""

    __file__ = "torch.ops"

    def __init__(self, name: str) -> None:
        super().__init__(f"torch.ops.{name}")
        self.name = name
        self._dir: list[str] = []

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.name in SERVED:
            importlib.import_module(SERVED[self.name][0])
            if name in self.__dict__:
                return cast(OpOverloadPacket, self.__dict__[name])
        own, kind = None, OpOverloadPacket
        if self.name == "aten":
            own = _own(name)
        elif self.name == "profiler":
            own, kind = _PROFILER.get(name), _PythonPacket
        if own is None:
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        packet = kind(f"{self.name}::{name}", {}, own)
        self._add(name, packet)
        return packet

    def _add(self, name: str, packet: OpOverloadPacket) -> None:
        setattr(self, name, packet)
        self._dir.append(name)

    def __iter__(self) -> Any:
        return iter(self._dir)


def _enter_block(name: str, args: str | None = None) -> record_function:
    return autograd_profiler.record_function(name, args).__enter__()


def _exit_block(block: record_function) -> None:
    block.__exit__()


_PROFILER = {
    "_record_function_enter": _enter_block,
    "_record_function_enter_new": _enter_block,
    "_record_function_exit": _exit_block,
}


class _PythonPacket(OpOverloadPacket):
    """An operator of plain Python, which has to look for arguments like torch.fx's proxies."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        for arg in (*args, *kwargs.values()):
            override = getattr(type(arg), "__torch_function__", None)
            if override is not None:
                return override(self, (type(arg),), args, kwargs)
        return super().__call__(*args, **kwargs)


def _own(name: str) -> Any:
    """What computes PyTorch's operator of that name, where antorcha has it as one op."""
    if name in REGISTRY:
        return REGISTRY[name]
    if name.endswith("_") and name[:-1] in REGISTRY and REGISTRY[name[:-1]].inplace is not None:
        return REGISTRY[name[:-1]].inplace
    for namespace in ("nn.functional", "linalg", "special"):
        short = name.removeprefix(f"{namespace}_")
        if short in NAMESPACES[namespace]:
            return NAMESPACES[namespace][short]
    return Tensor.__dict__.get(name) or _ATEN_ALONE.get(name) or asserts.OPERATORS.get(name)


def _to_copy(
    self: Tensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A copy with another dtype, device or memory format."""
    if layout is not None and layout != self.layout:
        raise MissingFeature(f"aten::_to_copy: from {self.layout} to {layout} is not supported")
    found: Tensor = self.to(
        device or self.device,
        dtype or self.dtype,
        non_blocking,
        copy=True,
        memory_format=memory_format or "preserve",
    )
    return found


def _index(self: Tensor, indices: list[Tensor | None]) -> Tensor:
    """``self[i, j]`` by tensors; None stands for all of a dim."""
    found: Tensor = self[tuple(slice(None) if each is None else each for each in indices)]
    return found


def _sparse_addmm(
    self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """``beta * self + alpha * (mat1 @ mat2)`` for a sparse ``mat1``."""
    return sparse.addmm(self, mat1, mat2, beta=beta, alpha=alpha)


def _sparse_mm_reduce_impl(self: Tensor, other: Tensor, reduce: str) -> tuple[Tensor, Tensor]:
    """The product, and where each extreme came from; what needs no such index gets none."""
    if reduce in ("amax", "amin") and (self.requires_grad or other.requires_grad):
        raise MissingFeature("aten::_sparse_mm_reduce_impl: argument indices; use torch.sparse.mm")
    return sparse.mm(self, other, reduce), T.empty(0, dtype=dtypes.int64)


# What PyTorch has as an operator alone, and we as a method or an index.
_ATEN_ALONE: dict[str, Any] = {
    "_to_copy": _to_copy,
    "index": _index,
    "_sparse_addmm": _sparse_addmm,
    "_sparse_mm_reduce_impl": _sparse_mm_reduce_impl,
    "_pin_memory": lambda self, device=None: self.pin_memory(),
    "_local_scalar_dense": lambda self: self.item(),
}


class _Ops(ModuleType):
    """``torch.ops``."""

    __file__ = "_ops.py"

    def __init__(self) -> None:
        super().__init__("torch.ops")
        self.loaded_libraries: set[str] = set()

    def __getattr__(self, name: str) -> _OpNamespace:
        if name.startswith("__"):
            raise AttributeError(name)
        result = _OpNamespace(name)
        setattr(self, name, result)
        return result

    def load_library(self, path: str) -> None:
        """Compiled operators cannot be loaded: raises OSError, as PyTorch does for a missing file.

        Those of torchvision's wheel are antorcha's own (`SERVED`), and are there from now on.
        """
        folder, name = os.path.split(path)
        for package, libraries in SERVED.values():
            if os.path.basename(folder) == "torchvision" and name.split(".")[0] in libraries:
                importlib.import_module(package)
                self.loaded_libraries.add(os.path.realpath(path))
                return
        raise OSError(
            f"Could not load this library: {path} (compiled PyTorch extensions cannot be loaded "
            "by antorcha)"
        )

    def import_module(self, module: str) -> None:
        """Imports a module that adds operators."""
        importlib.import_module(module)


ops = _Ops()


# ------------------------------------------------------------------------- an op's name in PyTorch
_BINARY = frozenset(
    "add sub mul div pow remainder fmod floor_divide eq ne lt le gt ge bitwise_and bitwise_or "
    "bitwise_xor bitwise_left_shift bitwise_right_shift true_divide".split()
)
_OTHER_NAMES = {"max_all": "max", "min_all": "min", "full_layout": "full"}
_SCALAR_FORM = frozenset("eq ne lt le gt ge remainder fmod".split())


def overload_of(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OpOverload:
    """PyTorch's overload for a call of an op, what ``__torch_dispatch__`` is told."""
    name = _OTHER_NAMES.get(op.name, op.name)
    if name == "matmul" and len(args) == 2:
        name = {(2, 2): "mm", (3, 3): "bmm"}.get((args[0].dim(), args[1].dim()), name)
    base = name.removesuffix("_")
    overload = "default"
    if base in _BINARY and len(args) > 1:
        first, second = isinstance(args[0], Tensor), isinstance(args[1], Tensor)
        if base == "pow":
            overload = f"{'Tensor' if first else 'Scalar'}_{'Tensor' if second else 'Scalar'}"
            overload = {"Scalar_Tensor": "Scalar"}.get(overload, overload)
        elif not second and (base in _SCALAR_FORM or base.startswith("bitwise")):
            overload = "Scalar"
        else:
            overload = "Tensor"
        overload += "_mode" if kwargs.get("rounding_mode") is not None else ""
    elif base in ("sum", "mean", "prod", "any", "all") and ("dim" in kwargs or len(args) > 1):
        by_list = {"sum": "dim_IntList", "mean": "dim", "prod": "dim_int"}
        overload = by_list.get(base, "dim")
    elif base in ("max", "min", "median", "mode") and ("dim" in kwargs or len(args) > 1):
        overload = "other" if len(args) > 1 and isinstance(args[1], Tensor) else "dim"
    elif base in ("select", "transpose", "unbind", "softmax", "log_softmax", "squeeze", "chunk"):
        aten = {"softmax": "_softmax", "log_softmax": "_log_softmax"}
        name = aten.get(base, name)
        overload = "int" if base in ("select", "transpose", "unbind") else "default"
        overload = "dim" if base == "squeeze" and len(args) > 1 else overload
    elif base in ("slice", "where", "fill", "index_put", "masked_fill", "index"):
        tensors = len(args) > 1 and isinstance(args[-1], Tensor)
        overload = {
            "slice": "Tensor", "where": "self", "index": "Tensor",
            "fill": "Tensor" if tensors else "Scalar",
            "masked_fill": "Tensor" if tensors else "Scalar",
        }.get(base, "default")  # fmt: skip
    return _named(name, overload, op)


_made: dict[tuple[str, str], OpOverload] = {}


def _named(name: str, overload: str, op: Any) -> OpOverload:
    found = _made.get((name, overload))
    if found is None:
        packet = ops.aten.__dict__.get(name)
        if packet is None:
            packet = OpOverloadPacket(f"aten::{name}", {}, op)
            ops.aten._add(name, packet)
        found = packet._found.setdefault(overload, OpOverload(packet, overload, op))
        _made[name, overload] = found
    return found


def overridden(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What modes and the arguments' classes make of a call; NotImplemented where nobody cares."""
    if modes.subclasses:
        return hooks.override(op, args, kwargs)
    return NotImplemented
