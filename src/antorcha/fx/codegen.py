"""The Python source of a graph."""

from __future__ import annotations

import enum
import re
import sys
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

from antorcha._ops import OpOverload
from antorcha.core.device import Device
from antorcha.fx.functions import is_found, is_ours, qualified_name, type_name
from antorcha.fx.node import Node
from antorcha.runtime.tensor import Tensor

REFLECTABLE = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}",
    "truediv": "{} / {}", "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}",
    "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}",
    "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
MAGIC = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}",
    "ge": "{} >= {}", "pos": "+{}", "neg": "-{}", "invert": "~{}", **REFLECTABLE,
}  # fmt: skip
_INPLACE = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}",
    "imod": "{} %= {}", "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}",
    "ipow": "{} **= {}", "irshift": "{} >>= {}", "isub": "{} -= {}", "itruediv": "{} /= {}",
    "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip
_SHORT = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u", "complex": "c"}


class PythonCode:
    """The source of a function ``forward``, and the values of the names that it uses."""

    def __init__(self, src: str, globals: dict[str, Any]) -> None:  # (PyTorch's field names)
        self.src, self.globals = src, globals
        self._lineno_map: dict[int, int | None] = {}
        self._prologue_start = 4


def dtype_name(dtype: Any) -> str:
    """A dtype's short name: ``f32``.

    >>> import antorcha
    >>> dtype_name(antorcha.float32), dtype_name(antorcha.bool)
    ('f32', 'b8')
    """
    name = str(dtype).removeprefix("torch.")
    if name == "bool":
        return "b8"
    found = re.fullmatch(r"([a-z]+)(\d+)", name)
    return name if found is None else f"{_SHORT.get(found[1], found[1])}{found[2]}"


class CodeGen:
    """Writes the function. Subclasses may write its head and its ``return`` in other ways."""

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The line ``def forward(self, ..):``."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any, *, repr_fn: Callable[[Any], str] = repr) -> str:
        """The line ``return ..``."""
        return f"return {repr_fn(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """The function's inputs as the placeholders take them."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The graph's outputs as the function gives them."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """More names for the code, with their values."""
        return []

    def _gen_python_code(
        self, nodes: Sequence[Node], root_module: str, namespace: Any, always: dict[str, Any], *,
        verbose: bool = False, include_stride: bool = False, include_device: bool = False,
    ) -> PythonCode:  # fmt: skip
        writer = _Writer(self, root_module, namespace, verbose, include_stride, include_device)
        for name, value in always.items():
            writer.globals[namespace.create_name(name, value)] = value
        last_uses = _last_uses(nodes)
        for node in nodes:
            writer.node(node, last_uses.get(node, []))
        if not writer.body:
            writer.body.append("pass\n")
        wraps = ""
        if writer.wrapped:
            name = writer.name_of("wrap", sys.modules["antorcha.fx"].wrap)
            wraps = "\n".join([f'{name}("{each}")' for each in writer.wrapped])
        body = (
            writer.body if self._body_transformer is None else self._body_transformer(writer.body)
        )
        for name, value in self.additional_globals():
            writer.name_of(name, value)
        head = self.gen_fn_def(writer.free_vars, writer.returned)
        code = "".join(body).lstrip("\n")
        code = "\n".join([f"    {line}" for line in code.split("\n")])
        return PythonCode(f"\n{wraps}\n\n{head}\n{code}", writer.globals)


def _last_uses(nodes: Sequence[Node]) -> dict[Node, list[Node]]:
    """For each node, the values that are used there for the last time: they are let go of."""
    seen: set[Node] = set()
    found: dict[Node, list[Node]] = {}
    for user in reversed(nodes):
        for used in user._input_nodes:
            if used not in seen:
                seen.add(used)
                found.setdefault(user, []).append(used)
    return found


class _Writer:
    """Writes one function's body, and collects the globals that it uses."""

    def __init__(
        self, codegen: CodeGen, root: str, namespace: Any, verbose: bool, stride: bool,
        device: bool,
    ) -> None:  # fmt: skip
        self.codegen, self.root, self.namespace = codegen, root, namespace
        self.verbose, self.stride, self.device = verbose, stride, device
        self.body: list[str] = []
        self.free_vars: list[str] = []
        self.globals: dict[str, Any] = {}
        self.wrapped: dict[str, None] = {}
        self.returned = ""
        self.summary = ""

    # ----------------------------------------------------------------------------------- the names
    def name_of(self, hint: str, obj: Any) -> str:
        """The name by which the code finds an object: its own under ``torch``, else a global."""
        if is_ours(obj) and obj is not Device:
            found = type_name(obj) if isinstance(obj, type) else qualified_name(obj)
            if is_found(found):
                return found
        name: str = self.namespace.create_name(hint, obj)
        self.globals[name] = obj
        return name

    def type_text(self, kind: Any) -> str:
        """A type annotation."""
        if kind == ():
            return "()"
        if isinstance(kind, types.UnionType):
            return "|".join([self.type_text(each) for each in typing.get_args(kind)])
        origin = getattr(kind, "__origin__", None)
        if origin is None:
            return self.name_of(type_name(kind), kind)
        if isinstance(kind, typing._GenericAlias):  # type: ignore[attr-defined]
            origin = {list: typing.List, dict: typing.Dict, set: typing.Set,  # noqa: UP006
                      frozenset: typing.FrozenSet, tuple: typing.Tuple}.get(origin, origin)  # noqa: UP006  # fmt: skip
        name = self.name_of(type_name(origin), origin)
        inner = [self.type_text(each) for each in typing.get_args(kind)]
        return f"{name}[{','.join(inner)}]" if inner else name

    def value(self, arg: Any) -> str:
        """An argument as source."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            return f"{self.name_of(qualified_name(type(arg)), type(arg))}{tuple(arg)!r}"
        if isinstance(arg, OpOverload):
            return self.name_of(qualified_name(arg), arg)
        if isinstance(arg, enum.Enum):
            return f"{self.name_of(type(arg).__name__, type(arg))}.{arg.name}"
        if isinstance(arg, Tensor):
            dtype = str(arg.dtype).split(".")[-1]
            return f"torch.Tensor(size={list(arg.size())}, dtype={dtype})"
        if isinstance(arg, tuple):
            inner = ", ".join([self.value(each) for each in arg])
            return f"({inner},)" if len(arg) == 1 else f"({inner})"
        if isinstance(arg, list):
            return f"[{', '.join([self.value(each) for each in arg])}]"
        if isinstance(arg, slice):
            parts = [self.value(each) for each in (arg.start, arg.stop, arg.step)]
            return f"slice({', '.join(parts)})"
        return repr(arg)

    def arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
        """What stands between a call's parentheses."""
        named = [f"{name} = {self.value(each)}" for name, each in kwargs.items()]
        return ", ".join([*[self.value(each) for each in args], *named])

    # ----------------------------------------------------------------------------------- the lines
    def node(self, node: Node, unused: list[Node]) -> None:
        """Writes a node, and lets go of what nobody uses afterwards."""
        if self.verbose and node.op not in ("placeholder", "output"):
            self._write_origin(node)
        if node.op == "placeholder":
            self._placeholder(node)
            return
        if node.op == "output":
            if node.type is not None:
                self.returned = f" -> {self.type_text(node.type)}"
            line = self.codegen.generate_output(node.args[0], repr_fn=self.value)
            self.body.append(f"{line}\n")
            return
        self.body.append(self._call(node))
        gone = [*unused, *([] if node.users else [node])]
        names = " = ".join([*[repr(each) for each in gone], "None"])
        self.body.append(f";  {names}\n" if gone else "\n")

    def _placeholder(self, node: Node) -> None:
        default = f" = {self.value(node.args[0])}" if node.args else ""
        self.free_vars.append(f"{node.target}{self._annotation(node)}{default}")
        name = node.target.replace("*", "")
        if name != repr(node):
            self.body.append(f"{node!r} = {name}\n")

    def _call(self, node: Node) -> str:
        """The statement of a node that computes."""
        start = f"{node!r}{self._annotation(node)} = "
        args, kwargs = node.args, node.kwargs
        if node.op == "get_attr":
            return start + _dotted(self.root, node.target)
        if node.op == "call_module":
            return f"{start}{_dotted(self.root, node.target)}({self.arguments(args, kwargs)})"
        if node.op == "call_method":
            method = _dotted(self.value(args[0]), node.target)
            return f"{start}{method}({self.arguments(args[1:], kwargs)})"
        name = getattr(node.target, "__name__", "")
        if getattr(node.target, "__module__", "") == "_operator":
            if name in MAGIC:
                return start + MAGIC[name].format(*[self.value(each) for each in args])
            if name in _INPLACE:
                done = _INPLACE[name].format(*[self.value(each) for each in args])
                return f"{done};  {start}{self.value(args[0])}"
        found = self.name_of(qualified_name(node.target), node.target)
        is_attribute = found == "getattr" and len(args) == 2 and isinstance(args[1], str)
        if is_attribute and args[1].isidentifier():
            return start + _dotted(self.value(args[0]), args[1])
        if node.meta.get("is_wrapped", False):
            self.wrapped[found] = None
        return f"{start}{found}({self.arguments(args, kwargs)})"

    def _annotation(self, node: Node) -> str:
        if self.verbose:
            meta = node.meta
            value: Any = meta.get("val", meta.get("tensor_meta", meta.get("example_value")))
            if hasattr(value, "shape") and hasattr(value, "dtype"):
                stride = (
                    _listed(value.stride()) if self.stride and isinstance(value, Tensor) else ""
                )
                device = str(value.device) if self.device and isinstance(value, Tensor) else ""
                return f': "{dtype_name(value.dtype)}{_listed(value.shape)}{stride}{device}"'
        return "" if node.type is None else f" : {self.type_text(node.type)}"

    def _write_origin(self, node: Node) -> None:
        """A comment says where in the traced program the next lines come from."""
        text = "No stacktrace found for following nodes"
        frames = re.findall(r'File "(.+)", line (\d+), in (\S+)\n\s*(.+)', node.stack_trace or "")
        if frames:
            file, line, function, code = frames[-1]
            text = f"File: {file}:{line} in {function}, code: {code.strip()}"
        summary = f"\n# {text}\n"
        if summary != self.summary:
            self.summary = summary
            self.body.append(summary)


def _listed(sizes: Sequence[int]) -> str:
    return f"[{', '.join([str(size) for size in sizes])}]"


def _dotted(base: str, target: str) -> str:
    for atom in target.split("."):
        base = f"{base}.{atom}" if atom.isidentifier() else f'getattr({base}, "{atom}")'
    return base
