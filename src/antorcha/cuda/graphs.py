"""``torch.cuda.graphs``: the work of a block of code, run again as a whole.

See https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from antorcha.core.lazy import lazy
from antorcha.cuda.devices import gpu_of, index_of, is_available, synchronize
from antorcha.cuda.memory import empty_cache
from antorcha.cuda.streams import Stream, StreamContext
from antorcha.errors import GraphError, MissingFeature

captures = lazy("antorcha.devices.cuda.graphs")
_pools: weakref.WeakValueDictionary[tuple[int, int], Any] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


def graph_pool_handle() -> tuple[int, int]:
    """A name for memory that several graphs are to share: ``torch.cuda.graph(g, pool=...)``."""
    index_of()
    return 0, next(_numbers)


def is_current_stream_capturing() -> bool:
    """Is a graph captured from the current stream?"""
    return bool(is_available() and gpu_of().stream.capture is not None)


def make_graphed_callables(*args: Any, **kwargs: Any) -> Any:
    """Modules whose forward and backward passes are graphs: not available."""
    index_of()
    raise MissingFeature("make_graphed_callables: capture whole steps with torch.cuda.graph")


class CUDAGraph:
    """The work of a stream, noted by ``with torch.cuda.graph(g):`` and run by ``g.replay()``.

    A replay reads and writes the memory that the capture used: ``copy_`` new data into the tensors
    that it read; what it computed is in the tensors that the captured code made.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        index_of()
        self._capture: Any = None
        self._pool: Any = None
        self._handle: tuple[int, int] | None = None
        self._ready = False

    def capture_begin(
        self, pool: Any = None, capture_error_mode: str = "global",
        check_input_liveness: bool = False,
    ) -> None:  # fmt: skip
        """Notes the current stream's work from here on, instead of doing it."""
        if self._capture is not None:
            raise GraphError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, "
                "create a new instance."
            )
        gpu = gpu_of()
        self._handle = graph_pool_handle() if pool is None else tuple(pool)
        self._pool = _pools.get(self._handle)
        if self._pool is None:
            self._pool = _pools[self._handle] = captures.GraphPool(gpu)
        self._capture = captures.Capture(gpu.stream, self._pool, capture_error_mode)

    def capture_end(self, keep: bool = True) -> None:
        """Ends it; the graph can be replayed."""
        if self._capture is None or self._ready:
            raise GraphError("capture_end() without capture_begin()")
        try:
            self._capture.end(keep)
            self._ready = keep
        finally:
            if not self._ready:
                self.reset()

    def register_generator_state(self, generator: Any) -> None:
        """Nothing to do: whatever generator a graph draws from gives other numbers each replay."""

    def instantiate(self) -> None:
        """Makes it ready: ``capture_end`` has done so."""
        self._captured("instantiate")

    def replay(self) -> None:
        """Runs the graph in the current stream's order."""
        self._captured("replay").replay(gpu_of(self._capture.gpu.index).stream)

    def reset(self) -> None:
        """Gives the graph and its memory back, but for what tensors still hold."""
        self._capture = self._pool = self._handle = None
        self._ready = False

    def pool(self) -> tuple[int, int]:
        """The name of its memory, for a graph that is to share it."""
        self._captured("pool")
        assert self._handle is not None
        return self._handle

    def raw_cuda_graph(self) -> int:
        """The driver's ``CUgraph``."""
        return self._captured("raw_cuda_graph").graph  # type: ignore[no-any-return]

    def raw_cuda_graph_exec(self) -> int:
        """The driver's ``CUgraphExec``."""
        return self._captured("raw_cuda_graph_exec").runnable  # type: ignore[no-any-return]

    def enable_debug_mode(self) -> None:
        """For ``debug_dump``: not available."""
        raise MissingFeature("CUDAGraph.enable_debug_mode: not available yet")

    def debug_dump(self, debug_path: str) -> None:
        """The graph as a picture's text: not available."""
        raise MissingFeature("CUDAGraph.debug_dump: not available yet")

    def _captured(self, op: str) -> Any:
        if not self._ready:
            raise GraphError(f"CUDAGraph.{op}: called without a preceding successful capture.")
        return self._capture


class graph:
    """A block whose work on the GPU is noted in a :class:`CUDAGraph` instead of done.

    Run the same code once or twice before, on a side stream: what is made once (kernels, an
    optimizer's state) is not to be part of the graph. Inside, nothing may be read (``item()``,
    ``.cpu()``, printing), nothing be made from Python's numbers or NumPy's arrays, and no op may be
    one that is computed on the host.
    """

    default_capture_stream: Stream | None = None

    def __init__(
        self, cuda_graph: CUDAGraph, pool: Any = None, stream: Stream | None = None,
        capture_error_mode: str = "global", enable_annotations: bool = False,
        check_input_liveness: bool = False,
    ) -> None:  # fmt: skip
        gpu = gpu_of()
        if stream is None:
            stream = type(self).default_capture_stream
            if stream is None or stream._stream.gpu is not gpu:
                stream = type(self).default_capture_stream = Stream()
        self.cuda_graph, self.pool, self.mode = cuda_graph, pool, capture_error_mode
        self.capture_stream = stream
        self.stream_ctx = StreamContext(stream)

    def __enter__(self) -> None:
        synchronize()
        empty_cache()
        self.stream_ctx.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.mode)
        except BaseException:
            self.stream_ctx.__exit__()
            raise

    def __exit__(self, kind: Any, *_: object) -> None:
        try:
            self.cuda_graph.capture_end(keep=kind is None)
        finally:
            self.stream_ctx.__exit__()
