"""The operands of what failed: each part of the expression with the tensor that it was.

What names, fields and constants say is looked up. What was only computed on the way (``relu(x)`` in
``relu(x) @ w``) is found where it ended up: in the frames of antorcha that the exception passed.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from antorcha.inspector.explain.site import Site
from antorcha.inspector.explain.values import UNKNOWN, Fact, Names, fact_of, value_of
from antorcha.inspector.naming import is_tensor, module_fields, named_in_module
from antorcha.runtime.tensor import Tensor

_MOST = 50  # operands


@dataclass
class NamedOperand:
    """A tensor that took part: how the program calls it, what it is, where it stands."""

    label: str
    fact: Fact
    node: ast.AST | None = None


@dataclass
class Failed:
    """What failed: the op's name where one is known, its operands in the op's own order, the value
    that each part of the expression has, and the layer of a model that it happened in."""

    op: str
    operands: list[NamedOperand]
    parts: dict[ast.AST, Any]
    layer: Any = None
    layer_name: str = ""
    layer_args: list[Any] = field(default_factory=list)
    tensors: list[Any] = field(default_factory=list)  # of the operands, while a rule looks


def gather(site: Site, names: Names, op: str) -> Failed:
    """What is known of the operands at a site, of an op that the error itself may name."""
    parts = {node: value_of(node, names) for node in _parts(site.node)}
    outer = _first_tensors(site.inner)
    if not _writes_to_part(site.node):
        _fill_in(parts, outer)
    innermost, tensors, parameters = _innermost(site.inner)
    op = innermost or op
    labels = _labels(site, parts)
    layer, layer_args = _layer(site.inner)
    failed = Failed(op, [], parts, layer, layer_args=layer_args)
    if layer is not None:
        failed.layer_name = _path_of(layer, names)
    for k, tensor in enumerate((tensors or outer)[:_MOST]):
        fact = fact_of(tensor)
        if fact is None:
            continue
        label, node = _next(labels.get(id(tensor), []))
        if not label and k < len(parts) and _writes_to_part(site.node):
            node = list(parts)[k]
            label = site.text_of(node)
        label = label or _name_of(tensor, failed, names, parameters, k)
        failed.operands.append(NamedOperand(label, fact, node))
        failed.tensors.append(tensor)
    alone = len(failed.operands) == 1 and failed.operands[0].node is None and layer is None
    if alone and site.expression:
        failed.operands[0].label = site.expression.partition("\n")[0]  # it was made here
    if not failed.operands:
        for node, value in parts.items():
            fact = fact_of(value)
            if fact is not None:
                failed.operands.append(NamedOperand(site.text_of(node), fact, node))
                failed.tensors.append(value)
    return failed


def _writes_to_part(node: ast.AST | None) -> bool:
    """Is it ``x[i] = y``, or ``x[i] += y``? The op's first operand is then ``x[i]``."""
    return (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)) or (
        isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript)
    )


def _parts(node: ast.AST | None) -> list[ast.AST]:
    """The operands of an expression, as it is written."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        return [node.target] + ([node.value] if node.value is not None else [])
    if isinstance(node, ast.Assign):
        return [*node.targets, node.value]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.Subscript):
        index = node.slice
        return [node.value, *(index.elts if isinstance(index, ast.Tuple) else [index])]
    if isinstance(node, ast.Attribute):
        return [node.value]
    if not isinstance(node, ast.Call):
        return []
    found: list[ast.AST] = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    for each in [*node.args, *[keyword.value for keyword in node.keywords]]:
        found += each.elts if isinstance(each, (ast.List, ast.Tuple)) else [each]
    return found


def _fill_in(parts: dict[ast.AST, Any], tensors: list[Tensor]) -> None:
    """Gives parts that are not known the tensors that remain, where it is sure which is which."""
    known = {id(value) for value in parts.values() if is_tensor(value)}
    rest = [tensor for tensor in tensors if id(tensor) not in known]
    computed = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Attribute, ast.Compare,
                ast.IfExp)  # fmt: skip
    empty = [
        node for node, value in parts.items()
        if (value is UNKNOWN or type(value) is Fact) and isinstance(node, computed)
    ]  # fmt: skip
    if len(empty) == len(rest):
        parts.update(zip(empty, rest, strict=True))


_Label = tuple[str, ast.AST | None]


def _labels(site: Site, parts: dict[ast.AST, Any]) -> dict[int, list[_Label]]:
    """How the program calls each tensor that it gave, as often as it gave it."""
    found: dict[int, list[_Label]] = {}
    for node, value in parts.items():
        if is_tensor(value):
            found.setdefault(id(value), []).append((site.text_of(node), node))
        elif type(value) in (list, tuple):  # a list that has a name
            for k, each in enumerate(value):
                if is_tensor(each):
                    label = f"{site.text_of(node)}[{k}]"
                    found.setdefault(id(each), []).append((label, node))
    return found


def _next(labels: list[_Label]) -> _Label:
    """The first label, which the last of several operands keeps."""
    if not labels:
        return "", None
    return labels.pop(0) if len(labels) > 1 else labels[0]


def _name_of(
    tensor: Tensor, failed: Failed, names: Names, parameters: list[str], k: int
) -> str:  # fmt: skip
    """The name of a tensor that the program's line does not show: its variable's, the layer's, or
    the op's."""
    for name, value in list(names.known.items())[:5000]:
        if value is tensor and type(name) is str and not name.startswith("_"):
            return name
    if failed.layer is not None:
        for name, value in named_in_module("", failed.layer):
            if value is tensor:
                return f"{failed.layer_name}.{name}" if failed.layer_name else name
    return parameters[k] if k < len(parameters) else f"operand {k + 1}"


# --------------------------------------------------------------------------- frames of antorcha
def _arguments(frame: FrameType) -> list[Any]:
    """What a function was called with, in order."""
    code, names = frame.f_code, frame.f_locals
    if type(names) is not dict and type(names).__name__ != "FrameLocalsProxy":
        return []
    count = code.co_argcount + code.co_kwonlyargcount
    found = [names.get(name) for name in code.co_varnames[:count]]
    rest = code.co_varnames[count : count + 2]
    if code.co_flags & 0x04:  # *args
        found += list(names.get(rest[0]) or ())
        rest = rest[1:]
    if code.co_flags & 0x08 and rest:  # **kwargs
        found += list((names.get(rest[0]) or {}).values())
    return found


def _tensors(values: list[Any]) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if is_tensor(value):
            found.append(value)
        elif type(value) in (tuple, list):
            for each in value[:_MOST]:
                if is_tensor(each):
                    found.append(each)
                elif type(each) in (tuple, list):
                    found += [inner for inner in each[:_MOST] if is_tensor(inner)]
        elif type(value) is dict:
            found += [each for each in value.values() if is_tensor(each)]
    return found


def _first_tensors(frames: list[FrameType]) -> list[Tensor]:
    """What the program gave antorcha."""
    for frame in frames:
        found = _tensors(_arguments(frame))
        if found:
            return found
    return []


def _innermost(frames: list[FrameType]) -> tuple[str, list[Tensor], list[str]]:
    """The op that refused: its name, its tensors, and the names of its tensor parameters."""
    for frame in reversed(frames):
        if frame.f_code.co_name not in ("call", "run_inplace", "call_inplace", "call_out", "run"):
            continue
        names = frame.f_locals
        op: Any = names.get("op", names.get("self"))
        signature = getattr(op, "signature", None)
        args = names.get("args")
        if signature is None or type(args) is not tuple:
            continue
        found = _tensors([*args, *(names.get("kwargs") or {}).values()])
        kinds = [p.name for p in signature.params if p.code < 3]
        return str(op.name), found, kinds if len(found) <= len(kinds) else []
    return "", [], []


def _layer(frames: list[FrameType]) -> tuple[Any, list[Any]]:
    """The innermost module whose forward was running inside antorcha, and what it was given."""
    for frame in reversed(frames):
        if frame.f_code.co_name == "forward":
            module = frame.f_locals.get("self")
            if module_fields(module) is not None:
                return module, _arguments(frame)[1:]
    return None, []


def _path_of(module: Any, names: Names) -> str:
    """How the program calls a module: by a variable, or as a part of one."""
    for name, value in list(names.known.items())[:5000]:
        if type(name) is not str or name.startswith("_"):
            continue
        waiting, seen = [(name, value)], 0
        while waiting and seen < 1000:
            label, each = waiting.pop()
            seen += 1
            if each is module:
                return label
            fields = module_fields(each)
            if fields is not None:
                for key, part in fields["_modules"].items():
                    waiting.append((f"{label}[{key}]" if key.isdigit() else f"{label}.{key}", part))
    return ""
