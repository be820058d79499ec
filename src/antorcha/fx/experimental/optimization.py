"""Optimisation of graphs for inference."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from antorcha.errors import explain_missing
from antorcha.fx._symbolic_trace import symbolic_trace
from antorcha.fx.graph_module import GraphModule
from antorcha.fx.node import Node
from antorcha.nn.conv import Conv1d, Conv2d, Conv3d
from antorcha.nn.dropout import Dropout, Dropout2d, Dropout3d
from antorcha.nn.linear import Identity
from antorcha.nn.module import Module
from antorcha.nn.norm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from antorcha.nn.utils.fusion import fuse_conv_bn_eval

__all__ = ["fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]


def _parent_name(target: str) -> tuple[str, str]:
    """``"a.b.c"`` as ``("a.b", "c")``."""
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Is a node the call of a module of the second class on the result of one of the first?"""
    if not node.args or not isinstance(node.args[0], Node):
        return False
    for expected, each in zip(pattern, (node.args[0], node), strict=True):
        if each.op != "call_module" or type(modules.get(each.target)) is not expected:
            return False
    return True


def replace_node_module(node: Node, modules: dict[str, Any], new_module: Module) -> None:
    """Puts another module in the place of the one that a node calls."""
    parent, name = _parent_name(node.target)
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> Module:
    """A copy of a model in which batch normalisations are folded into the convolutions before them.

    Args:
        model (Module): in evaluation mode: the running statistics become part of the weights
        inplace (bool): change the model itself. Default: False
        no_trace (bool): it is a GraphModule already. Default: False

    See https://docs.pytorch.org/tutorials/intermediate/fx_conv_bn_fuser.html.

    >>> from antorcha.fx.experimental.optimization import fuse
    >>> net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2)).eval()
    >>> [type(layer).__name__ for layer in fuse(net).children()]
    ['Conv2d']
    """
    patterns = [(Conv1d, BatchNorm1d), (Conv2d, BatchNorm2d), (Conv3d, BatchNorm3d)]
    if not inplace:
        model = copy.deepcopy(model)
    traced: Any = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for pattern in patterns:
        for node in graph.nodes:
            if not matches_module_pattern(pattern, node, modules):
                continue
            if len(node.args[0].users) > 1:
                continue
            norm = modules[node.target]
            if not norm.track_running_stats:
                continue
            fused = fuse_conv_bn_eval(modules[node.args[0].target], norm)
            replace_node_module(node.args[0], modules, fused)
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    return GraphModule(traced, graph)


def remove_dropout(model: Module) -> Module:
    """A copy of a model without its dropout layers."""
    traced = symbolic_trace(model)
    modules = dict(traced.named_modules())
    for node in traced.graph.nodes:
        is_call = node.op == "call_module"
        if is_call and isinstance(modules[node.target], (Dropout, Dropout2d, Dropout3d)):
            replace_node_module(node, modules, Identity())
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    return GraphModule(traced, traced.graph)


explain_missing("torch.fx.experimental.optimization", globals())
