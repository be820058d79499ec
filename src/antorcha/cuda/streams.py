"""``torch.cuda.streams``: orders of work on a GPU, and points in them.

See https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-streams.
"""

from __future__ import annotations

import ctypes
from typing import Any

from antorcha.core.device import Device
from antorcha.core.lazy import lazy
from antorcha.cuda.devices import gpu_of, gpus, index_of
from antorcha.errors import GraphError, MissingFeature, ValueRangeError

__all__ = ["Event", "ExternalStream", "Stream"]

handles = lazy("antorcha.devices.cuda.streams")


class Stream:
    """An order of work on a GPU, independent of the other streams.

    Args:
        device: the GPU; by default the current one.
        priority: lower numbers go first; the range is the GPU's, numbers outside are moved into it.

    As a context (``with stream:``) it is the current stream, which what is called is given to.
    """

    _stream: Any

    def __new__(cls, device: Any = None, priority: int = 0, **kwargs: Any) -> Stream:
        gpu = gpu_of(device if device is not None else kwargs.get("device_index"))
        address = kwargs.get("stream_ptr", kwargs.get("stream_id"))
        stream = gpu.new_stream(priority) if address is None else gpu.stream_at(address)
        return cls._of(stream)

    @classmethod
    def _of(cls, stream: Any) -> Stream:
        result = object.__new__(cls)
        result._stream = stream
        result._outside = []
        return result

    _outside: list[Any]

    @property
    def device(self) -> Device:
        """The GPU."""
        return Device("cuda", self._stream.gpu.index)

    @property
    def device_index(self) -> int:
        """The GPU's number."""
        return self._stream.gpu.index  # type: ignore[no-any-return]

    device_type = 1  # as PyTorch numbers kinds of devices

    @property
    def cuda_stream(self) -> int:
        """The driver's stream, 0 for the default one."""
        return self._stream.handle  # type: ignore[no-any-return]

    stream_id = native_handle = cuda_stream

    @property
    def priority(self) -> int:
        """Lower numbers go first."""
        return self._stream.priority  # type: ignore[no-any-return]

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.cuda_stream)

    def __cuda_stream__(self) -> tuple[int, int]:
        """For other libraries: the version of this protocol, and the driver's stream."""
        return 0, self.cuda_stream

    def wait_event(self, event: Event) -> None:
        """What comes next in this stream waits for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """What comes next in this stream waits for what another was given so far."""
        self._stream.wait_for_stream(stream._stream)

    def record_event(self, event: Event | None = None) -> Event:
        """Marks the end of what the stream was given so far: by a new event, if none is given."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Is all its work done?"""
        return self._stream.done()  # type: ignore[no-any-return]

    def synchronize(self) -> None:
        """Waits for its work. Raises what its kernels found wrong, such as a bad index."""
        self._stream.synchronize()

    def is_capturing(self) -> bool:
        """Is a graph captured from it?"""
        return self._stream.capture is not None

    def __enter__(self) -> Stream:
        context = StreamContext(self)
        context.__enter__()
        self._outside.append(context)
        return self

    def __exit__(self, *_: object) -> None:
        self._outside.pop().__exit__()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self._stream is other._stream

    def __hash__(self) -> int:
        return hash((self.cuda_stream, self.device))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream of another library's, by the address of the driver's ``CUstream``."""

    def __new__(cls, stream_ptr: int, device: Any = None, **kwargs: Any) -> Any:
        return cls._of(gpu_of(device).stream_at(stream_ptr))


class Event:
    """A point in a stream.

    Args:
        enable_timing: can times between such events be asked for?
        blocking: does ``synchronize`` leave the processor to others meanwhile?
        interprocess: not available.
        external: accepted.
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False,
        external: bool = False,
    ) -> None:  # fmt: skip
        index_of()
        if interprocess:
            raise MissingFeature("torch.cuda.Event(interprocess=True): not available yet")
        self.timing = bool(enable_timing)
        self._event = handles.EventHandle(self.timing, bool(blocking))

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: Any) -> Event:
        """An event of another process: not available."""
        raise MissingFeature("torch.cuda.Event.from_ipc_handle: not available yet")

    def ipc_handle(self) -> Any:
        """For another process: not available."""
        raise MissingFeature("torch.cuda.Event.ipc_handle: not available yet")

    @property
    def device(self) -> Device | None:
        """The GPU that it was recorded on; None before."""
        gpu = self._event.gpu
        return None if gpu is None else Device("cuda", gpu.index)

    @property
    def cuda_event(self) -> int:
        """The driver's event; 0 before it is recorded."""
        return self._event.handle  # type: ignore[no-any-return]

    event_id = cuda_event

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.cuda_event)

    def record(self, stream: Stream | None = None) -> None:
        """Marks the end of what a stream, by default the current one, was given so far."""
        self._event.record((current_stream() if stream is None else stream)._stream)

    def wait(self, stream: Stream | None = None) -> None:
        """What comes next in a stream, by default the current one, waits for the event."""
        (current_stream() if stream is None else stream)._stream.wait_for(self._event)

    def query(self) -> bool:
        """Is the work before it done? True where it was never recorded."""
        return self._event.done()  # type: ignore[no-any-return]

    def synchronize(self) -> None:
        """Waits for the work before it."""
        self._event.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another; both are made with ``enable_timing=True``, and
        have been passed."""
        if not (self.timing and end_event.timing):
            raise ValueRangeError("Both events must be created with argument 'enable_timing=True'.")
        if not (self.cuda_event and end_event.cuda_event):
            raise ValueRangeError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise GraphError(
                "Both events must be completed before calculating elapsed time: "
                "end_event.synchronize() waits for it."
            )
        return self._event.milliseconds_to(end_event._event)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        where = f"{self.cuda_event:#x}" if self.cuda_event else "uninitialized"
        return f"<torch.cuda.Event {where}>"


class StreamContext:
    """Inside, a stream is the current one of its GPU, and its GPU the current one; None changes
    nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self.before: tuple[int, Any] = (0, None)

    def __enter__(self) -> None:
        if self.stream is not None:
            here, index = gpus.here, self.stream.device_index
            self.before = here.device, here.streams.get(index)
            here.device = index
            gpus.set_stream(index, self.stream._stream)

    def __exit__(self, *_: object) -> None:
        if self.stream is None:
            return
        here, index = gpus.here, self.stream.device_index
        here.device = self.before[0]
        gpus.set_stream(index, self.before[1])


def stream(stream: Stream | None) -> StreamContext:
    """A block inside which a stream is the current one."""
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """The stream that work on a GPU is given to, in this thread."""
    return Stream._of(gpu_of(device).stream)


def default_stream(device: Any = None) -> Stream:
    """A GPU's stream that is there from the beginning."""
    return Stream._of(gpu_of(device).default)


def set_stream(stream: Stream | None) -> None:
    """Makes a stream the current one, and its GPU."""
    if stream is not None:
        StreamContext(stream).__enter__()


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """A stream of another library's, by the address of the driver's ``CUstream``."""
    return Stream._of(gpu_of(device).stream_at(data_ptr))
