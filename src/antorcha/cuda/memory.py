"""``torch.cuda.memory``: how much memory of a GPU is used, and by whom.

The driver's own pool keeps what tensors give back (PyTorch's ``backend:cudaMallocAsync``).
See https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from antorcha.core.lazy import lazy
from antorcha.cuda.devices import gpu_of, index_of, is_initialized
from antorcha.cuda.streams import StreamContext
from antorcha.errors import ArgumentError, MissingFeature, ValueRangeError

pinned_memory = lazy("antorcha.devices.cuda.memory")
_held: dict[int, Any] = {}  # by `caching_allocator_alloc`
_COUNTERS = ("active", "allocation", "inactive_split", "segment")
_POOLS = ("all", "large_pool", "small_pool")
_NONE = {"current": 0, "peak": 0, "allocated": 0, "freed": 0}


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors hold on a GPU; 0 without one."""
    return gpu_of(device).memory.bytes.current if is_initialized() else 0


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors have held on a GPU, since ``reset_peak_memory_stats``."""
    return gpu_of(device).memory.bytes.peak if is_initialized() else 0


def memory_reserved(device: Any = None) -> int:
    """Bytes that the pool has of the system: what tensors hold, and what is kept for the next."""
    return gpu_of(device).memory.reserved() if is_initialized() else 0


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the pool has had of the system."""
    return gpu_of(device).memory.reserved(most=True) if is_initialized() else 0


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes of a GPU that nobody uses, and all of them."""
    return gpu_of(device).memory.free_and_total()  # type: ignore[no-any-return]


def device_memory_used(device: Any = None) -> int:
    """Bytes of a GPU that are in use, by any process."""
    free, total = mem_get_info(device)
    return total - free


def empty_cache() -> None:
    """Gives memory that no tensor uses back to the system, pinned memory too."""
    if is_initialized():
        gpu_of().memory.empty_cache()
        pinned_memory.pinned.empty_cache()


def reset_peak_memory_stats(device: Any = None) -> None:
    """The most is counted from now on."""
    gpu_of(device).memory.reset_peaks()


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """What was taken and given back is counted from now on."""
    gpu_of(device).memory.reset_totals()


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Bounds what tensors of this process may hold: more is an OutOfMemoryError."""
    if isinstance(fraction, bool) or not isinstance(fraction, float):
        raise ArgumentError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueRangeError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    gpu = gpu_of(device)
    gpu.memory.limit = int(fraction * gpu.properties.total_memory)


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The bound as a part of the GPU's memory."""
    gpu = gpu_of(device)
    limit = gpu.memory.limit
    return 1.0 if limit is None else limit / gpu.properties.total_memory


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Counts of bytes and blocks, as PyTorch names them; pools are not told apart."""
    if not is_initialized():
        return {}
    memory = gpu_of(device).memory
    reserved, most = memory.reserved(), memory.reserved(most=True)
    held, blocks = memory.bytes.as_dict(), memory.blocks.as_dict()
    kept = {**_NONE, "current": reserved, "peak": most}
    found: dict[str, Any] = {name: dict.fromkeys(_POOLS, _NONE) for name in _COUNTERS}
    found |= {f"{name}_bytes": dict.fromkeys(_POOLS, _NONE) for name in ("active", "allocated")}
    found |= {
        f"{name}_bytes": dict.fromkeys(_POOLS, _NONE)
        for name in ("inactive_split", "requested", "reserved")
    }
    for name, value in (
        ("active", blocks), ("allocation", blocks), ("active_bytes", held),
        ("allocated_bytes", held), ("requested_bytes", held), ("reserved_bytes", kept),
    ):  # fmt: skip
        found[name] = {**found[name], "all": value}
    found["oversize_allocations"] = found["oversize_segments"] = _NONE
    return found | {
        "max_split_size": -1, "num_alloc_retries": memory.retries, "num_ooms": memory.failures,
        "num_device_alloc": 0, "num_device_free": 0, "num_sync_all_streams": 0,
    }  # fmt: skip


def memory_stats(device: Any = None) -> OrderedDict[str, int]:
    """The same in one dict: ``allocated_bytes.all.peak`` and its like."""
    flat: dict[str, int] = {}

    def add(prefix: str, value: Any) -> None:
        if not isinstance(value, dict):
            flat[prefix] = value
            return
        for name, each in value.items():
            add(f"{prefix}.{name}" if prefix else name, each)

    add("", memory_stats_as_nested_dict(device))
    return OrderedDict(sorted(flat.items()))


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The counts as a table to print."""
    gpu = gpu_of(device)
    stats, words = memory_stats(gpu.index), pinned_memory.in_words
    lines = [f"{'CUDA memory of cuda:' + str(gpu.index):<28}{'now':>14}{'most':>14}"]
    for text, key in (
        ("tensors", "allocated_bytes"), ("reserved by the pool", "reserved_bytes"),
    ):  # fmt: skip
        now, most = (words(stats[f"{key}.all.{which}"]) for which in ("current", "peak"))
        lines.append(f"{text:<28}{now:>14}{most:>14}")
    now, most = (stats[f"allocation.all.{which}"] for which in ("current", "peak"))
    lines.append(f"{'blocks':<28}{now:>14}{most:>14}")
    if not abbreviated:
        free, total = gpu.memory.free_and_total()
        lines += [
            f"{'free on the GPU':<28}{words(free):>14}",
            f"{'the GPU has':<28}{words(total):>14}",
            f"{'pinned memory of the host':<28}{words(pinned_memory.pinned.held):>14}",
            f"{'out of memory':<28}{stats['num_ooms']:>14}",
        ]
    return "\n".join(lines)


def memory_snapshot(*args: Any, **kwargs: Any) -> Any:
    """Each allocation: the driver's pool does not tell them."""
    index_of()
    raise MissingFeature("memory_snapshot: the driver's pool does not list its blocks")


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """Memory for another library: its address, which ``caching_allocator_delete`` takes back."""
    gpu = gpu_of(device)
    with StreamContext(stream):
        block = gpu.memory.allocate(size)
    _held[block.address] = block
    return block.address  # type: ignore[no-any-return]


def caching_allocator_delete(mem_ptr: int) -> None:
    """Takes such memory back."""
    index_of()
    del _held[mem_ptr]


def get_allocator_backend() -> str:
    """The driver's pool, by PyTorch's name."""
    return "cudaMallocAsync"
