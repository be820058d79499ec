"""GraphModule: a module whose ``forward`` is generated from a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
import os
import sys
import textwrap
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from antorcha.errors import explain_missing, warn
from antorcha.fx.codegen import PythonCode
from antorcha.fx.graph import _BUILTINS, Graph
from antorcha.nn.module import Module
from antorcha.nn.words import indented
from antorcha.runtime.tensor import Parameter, Tensor
from antorcha.serialization import save

__all__ = ["GraphModule", "reduce_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_count = itertools.count()


class _Source:
    """Has tracebacks show the lines of generated code."""

    def __init__(self, text: str) -> None:
        self.text = text

    def get_source(self, name: str) -> str:
        return self.text


def _forward_from_src(src: str, names: dict[str, Any]) -> Callable[..., Any]:
    """The function ``forward`` of a source."""
    file = f"<eval_with_key>.{next(_count)}"
    names = dict(names)
    shown = {**names, "__name__": file, "__file__": file, "__loader__": _Source(src)}
    linecache.lazycache(file, shown)
    names.setdefault("__name__", file)
    exec(compile(src, file, "exec", dont_inherit=True), names)
    forward: Callable[..., Any] = names["forward"]
    return forward


def reduce_graph_module(body: dict[str, Any], imports: dict[str, Any]) -> Module:
    """A pickled GraphModule again: its code is run on proxies to make the graph."""
    forward = _forward_from_src(body["_code"], {**_BUILTINS, **imports})
    return _deserialize_graph_module(forward, body)


class _CodeOnlyModule(Module):
    """A module of these attributes; its ``forward`` is set on the class."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _deserialize_graph_module(forward: Callable[..., Any], body: dict[str, Any]) -> Module:
    tracer_cls: Any = body.get("_tracer_cls") or sys.modules["antorcha.fx"].Tracer

    class KeepModules(tracer_cls):  # type: ignore[misc]
        def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
            return True

    class Code(_CodeOnlyModule):
        pass

    Code.forward = forward  # type: ignore[method-assign]
    root = Code(body)
    graph = KeepModules().trace(root, **body.get("_tracer_extras", {}))
    graph._tracer_cls = tracer_cls
    result = GraphModule(root, graph, class_name=body.get("_graphmodule_cls_name", "GraphModule"))
    for name, value in body.items():
        if not hasattr(result, name):
            setattr(result, name, value)
    return result


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Puts a module's attribute of that dotted name on another module."""
    *prefix, field = target.split(".")
    for item in prefix:
        source, place = getattr(from_module, item), getattr(to_module, item, None)
        if source is place:
            return
        if place is None:
            place = Module()
            setattr(to_module, item, place)
        from_module, to_module = source, place
    _set(to_module, field, getattr(from_module, field))


def _assign_attr(from_obj: Any, to_module: Module, target: str) -> None:
    """Puts a value on a module under that dotted name."""
    *prefix, field = target.split(".")
    for item in prefix:
        place = getattr(to_module, item, None)
        if place is None:
            place = Module()
            setattr(to_module, item, place)
        to_module = place
    _set(to_module, field, from_obj)


def _set(module: Module, field: str, value: Any) -> None:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        module.register_buffer(field, value)
    else:
        setattr(module, field, value)


class GraphModule(Module):
    """A module whose ``forward`` is generated from a graph.

    Args:
        root (Module or dict): has the parameters, buffers and modules that the graph names; a dict
            has them by dotted name
        graph (Graph): what it computes
        class_name (str): the class's name in texts. Default: ``"GraphModule"``

    After changing ``graph`` in place call :meth:`recompile`; assigning it does that.
    See https://docs.pytorch.org/docs/stable/fx.html#torch.fx.GraphModule.

    >>> gm = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 1)))
    >>> print(gm.graph)
    graph():
        %input_1 : [num_users=1] = placeholder[target=input]
        %_0 : [num_users=1] = call_module[target=0](args = (%input_1,), kwargs = {})
        return _0
    """

    _code: str
    _graph: Graph

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # Each has a class of its own, which gets its forward.
        own = next(c for c in cls.__mro__ if c.__qualname__.split(".")[-1] != "GraphModuleImpl")

        class GraphModuleImpl(own):  # type: ignore[misc, valid-type]
            pass

        GraphModuleImpl.__module__ = own.__module__
        return super().__new__(GraphModuleImpl)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        targets = [n.target for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = getattr(root, "training", True)
            if isinstance(root, _CodeOnlyModule):
                targets += [*root._modules, *root._buffers, *root._parameters]
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not "
                        "provided in ``root``!"
                    )
            for target in sorted(targets, key=lambda name: name.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        cls = graph._tracer_cls
        self._tracer_cls = None if cls is None or "<locals>" in cls.__qualname__ else cls
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}

    @property
    def graph(self) -> Graph:
        """What it computes."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(graph)}")
        self._graph = graph
        graph.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source of ``forward``."""
        if "_code" not in self.__dict__:
            raise RuntimeError("Code has not been generated! Please report a bug to antorcha")
        return self._code

    def recompile(self) -> PythonCode:
        """Generates ``forward`` anew from the graph."""
        result = self._graph.python_code(root_module="self")
        self._code = result.src
        cls: Any = type(self)
        cls.forward = _forward_from_src(result.src, result.globals)
        if "_plain_call" not in vars(cls):
            cls._plain_call = cls.__call__
            cls.__call__ = _call_and_explain
        for child in self.children():
            if isinstance(child, GraphModule):
                child.recompile()
        return result

    # ------------------------------------------------------------------------------------ modules
    def add_submodule(self, target: str, m: Module) -> bool:
        """Puts a module under a dotted name; says whether that was possible."""
        *prefix, field = target.split(".")
        module: Any = self
        for item in prefix:
            found = getattr(module, item, None)
            if found is None:
                found = Module()
                setattr(module, item, found)
            if not isinstance(found, Module):
                return False
            module = found
        module.add_module(field, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Takes away the module of a dotted name; says whether there was one."""
        *path, field = target.split(".")
        module: Any = self
        for item in path:
            module = getattr(module, item, None)
            if not isinstance(module, Module):
                return False
        if not isinstance(getattr(module, field, None), Module):
            return False
        delattr(module, field)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Takes away the modules that the graph does not name."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                used.update(itertools.accumulate(node.target.split("."), "{}.{}".format))
                if node.op == "call_module":
                    inner = self.get_submodule(node.target).named_modules()
                    used.update([f"{node.target}.{name}" for name, _ in inner if name])
        for name in [name for name, _ in self.named_modules() if name not in used]:
            self.delete_submodule(name)

    # ------------------------------------------------------------------------------ copies, files
    def __deepcopy__(self, memo: Any) -> GraphModule:
        result: GraphModule = type(self).__new__(type(self))
        memo[id(self)] = result
        body = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        GraphModule.__init__(result, body, body.__dict__["_graph"])
        for name in ("_state_dict_hooks", "_load_state_dict_pre_hooks",
                     "_load_state_dict_post_hooks"):  # fmt: skip
            setattr(result, name, body.__dict__[name])
        result.meta = copy.deepcopy(getattr(self, "meta", {}), memo)
        for name, value in result.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(result, name, value)
        return result

    def __copy__(self) -> GraphModule:
        result = GraphModule(self, self.graph)
        result.meta = getattr(self, "meta", {})
        return result

    def __reduce__(self) -> Any:
        """Pickles hold the code, not the graph."""
        result = self.recompile()
        body = self.__dict__.copy()
        del body["_graph"]
        names = {name: value for name, value in result.globals.items() if name not in _BUILTINS}
        return reduce_graph_module, (body, names)

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Writes the module as a package: ``from <folder> import <module_name>``."""
        folder = Path(folder)
        folder.mkdir(exist_ok=True)
        save(self.state_dict(), folder / "state_dict.pt")
        lines, pickled = [], []
        for name, module in self.named_children():
            kind = type(module).__name__
            if kind in ("Linear", "Conv1d", "Conv2d", "Conv3d", "BatchNorm1d", "BatchNorm2d",
                        "BatchNorm3d"):  # fmt: skip
                lines.append(f"setattr(self, {name!r}, {module!r})")
                continue
            file = folder / f"{name}.pt"
            save(module, file)
            pickled.append(name)
            load = f"torch.load(r'{file}', weights_only=False)"
            lines.append(f"setattr(self, {name!r}, {load}) # {' '.join(repr(module).split())}")
        for name, value in {**self._buffers, **self._parameters}.items():
            if value is not None:
                empty = f"torch.empty({list(value.shape)}, dtype={value.dtype})"
                is_buffer = name in self._buffers
                lines.append(
                    f"self.register_buffer({name!r}, {empty})" if is_buffer
                    else f"setattr(self, {name!r}, torch.nn.Parameter({empty}))"
                )  # fmt: skip
        lines.append(f"self.load_state_dict(torch.load(r'{folder}/state_dict.pt'))")
        body = "\n".join([f"        {line}" for line in lines])
        text = (
            "\nimport torch\nfrom math import inf\nfrom math import nan\nNoneType = type(None)\n"
            f"from torch import device\n\nfrom torch.nn import *\nclass {module_name}(torch.nn."
            f"Module):\n    def __init__(self):\n        super().__init__()\n{body}\n"
            f"{indented(self.code, 4)}\n"
        )
        (folder / "module.py").write_text(text)
        (folder / "__init__.py").write_text("from .module import *")
        if pickled:
            warn(
                "Was not able to save the following children modules as reprs -saved as pickled "
                f"files instead: {pickled}"
            )

    # ---------------------------------------------------------------------------------------- text
    def print_readable(
        self, print_output: bool = True, include_stride: bool = False,
        include_device: bool = False, colored: bool = False, **_: Any,
    ) -> str:  # fmt: skip
        """Prints, and gives, the code as a class, with shapes where the nodes know them."""
        text = _readable(self, self._get_name(), include_stride, include_device)
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        return "\n".join([
            super().__str__(), self._code,
            "# To see more debug info, please use `graph_module.print_readable()`",
        ])  # fmt: skip

    def _replicate_for_data_parallel(self) -> Any:
        result = self.__copy__()
        result._is_replica = True
        return result


def _readable(module: GraphModule, name: str, stride: bool, device: bool) -> str:
    result = module.graph.python_code(
        "self", verbose=True, include_stride=stride, include_device=device
    )
    text = f"class {name}(torch.nn.Module):\n{result.src.lstrip()}"
    text = "\n".join([line if line.strip() else "" for line in text.split("\n")])
    head = textwrap.indent(text, "    ").removeprefix("    ")
    inner = [
        _readable(child, child_name, stride, device)
        for child_name, child in module.named_children() if isinstance(child, GraphModule)
    ]  # fmt: skip
    return head + textwrap.indent("\n".join(["", *inner]), "    ")


def _call_and_explain(self: Any, *args: Any, **kwargs: Any) -> Any:
    """A call; an error in generated code is shown with the lines around it."""
    try:
        return self._plain_call(*args, **kwargs)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        if "eval_with_key" not in last.filename or last.lineno is None:
            raise
        lines = linecache.getlines(last.filename)
        before = "".join(lines[max(last.lineno - 2, 0) : last.lineno])
        after = "\n".join(lines[last.lineno : last.lineno + 2])
        print(
            f"{traceback.format_exc()}\nCall using an FX-traced Module, line {last.lineno} of the "
            f"traced Module's generated forward function:\n{before}\n"
            f"{'~' * len(last.line or '')}~~~ <--- HERE\n{after}",
            file=sys.stderr,
        )
        raise


explain_missing("torch.fx.graph_module", globals())
