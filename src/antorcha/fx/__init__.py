"""``torch.fx``: the graph of a program, as data that can be looked at, changed, and run again.

See https://docs.pytorch.org/docs/stable/fx.html.
"""

from __future__ import annotations

import importlib
from typing import Any

from antorcha.errors import no_such_name
from antorcha.fx import immutable_collections
from antorcha.fx._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from antorcha.fx.graph import CodeGen, Graph
from antorcha.fx.graph_module import GraphModule
from antorcha.fx.interpreter import Interpreter, Transformer
from antorcha.fx.node import Node, has_side_effect, map_arg
from antorcha.fx.proxy import Proxy
from antorcha.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "PH", "CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "ProxyableClassMeta",
    "Tracer", "Transformer", "has_side_effect", "map_arg", "replace_pattern", "symbolic_trace",
    "wrap",
]  # fmt: skip
_LAZY = ("experimental", "passes")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"antorcha.fx.{name}")
    raise no_such_name("torch.fx", name, globals())
