"""ShapeProp: runs a graph, and notes each result's shape and dtype on its node."""

from __future__ import annotations

from typing import Any, NamedTuple

from antorcha.basics import channels_last, channels_last_3d, contiguous_format
from antorcha.errors import explain_missing
from antorcha.fx.interpreter import Interpreter
from antorcha.fx.node import Node, map_aggregate
from antorcha.runtime.tensor import Tensor

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What ``node.meta['tensor_meta']`` says of a tensor."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """The metadata of a tensor."""
    memory_format = None
    if include_contiguity:
        for each in (contiguous_format, channels_last, channels_last_3d):
            fits = each is contiguous_format or result.dim() == (4 if each is channels_last else 5)
            if fits and result.is_contiguous(memory_format=each):
                memory_format = each
                break
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(),
                          memory_format, False, {})  # fmt: skip


class ShapeProp(Interpreter):
    """Runs a graph on sample inputs and notes each result's shape and dtype.

    After ``propagate(*inputs)`` each node that gives tensors has ``meta['tensor_meta']``, a
    :class:`TensorMetadata` (or a tuple of them), and ``meta['type']``.

    >>> from antorcha.fx.passes.shape_prop import ShapeProp
    >>> gm = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(4, 2)))
    >>> _ = ShapeProp(gm).propagate(torch.zeros(3, 4))
    >>> [tuple(node.meta['tensor_meta'].shape) for node in gm.graph.nodes]
    [(3, 4), (3, 2), (3, 2)]
    """

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        found = False

        def note(value: Any) -> Any:
            nonlocal found
            if isinstance(value, Tensor):
                found = True
                return _extract_tensor_metadata(value)
            return value

        meta = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the graph on these inputs, and notes."""
        return super().run(*args)


explain_missing("torch.fx.passes.shape_prop", globals())
