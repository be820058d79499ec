"""Launches of cuBLASLt in machine code: a product, asked of the library without the interpreter.

The kernel of the launch is `run_product`. It comes back with AGAIN for what Python has to do before
it can run: to make the GPU ready for the thread, or to ask the library how to compute a product
whose operands are aligned as none was before.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from antorcha.devices.cuda.libraries import cublaslt
from antorcha.devices.cuda.libraries.machine_code import (
    address_of,
    bytes_of,
    place_of,
    take_scratch,
)
from antorcha.devices.cuda.native_launch import NO_MEMORY, owner_of
from antorcha.devices.cuda.streams import name_number
from antorcha.lang.native import array, func, i32, i64, local, native, ptr, raw, struct
from antorcha.runtime.cpython import Py_DecRef
from antorcha.runtime.launch import AGAIN, make_launch
from antorcha.runtime.launched import slot_of
from antorcha.runtime.memory.device_memory import DeviceHome, DevicePool, is_ready, note_launch
from antorcha.runtime.memory.layout import Layout

if TYPE_CHECKING:
    from antorcha.devices.cuda.libraries.products import LtLaunch
    from antorcha.runtime.launched import LaunchWithOwner, Owner

MOST_BITS = 8
"""Addresses are told apart by up to so many last bits that are 0."""
multiply_t = func[
    i32, raw, raw, raw, raw, raw, raw, raw, raw, raw, raw, raw, raw, raw, raw, i64, raw
]
set_attribute_t = func[i32, raw, i32, ptr[raw], i64]


@struct
class LtProductWords:
    """The description of a launch: cuBLASLt's functions and its descriptions of the product, the
    numbers of the operands (``vector``: 0 where there is none), and, by how many last bits of the
    operands' addresses are 0, how to compute, and the size of the scratch memory."""

    prepare: raw  # a Python callable
    home: raw
    name: i64
    multiply: multiply_t
    set_attribute: set_attribute_t
    handle: raw
    job: raw
    alpha: raw
    beta: raw
    a_seen: raw
    b_seen: raw
    added_seen: raw
    out_seen: raw
    a: i64
    b: i64
    added: i64
    vector: i64
    wanted: i64  # the bits for which there is no way yet
    ways: array[raw, MOST_BITS + 1]
    rooms: array[i64, MOST_BITS + 1]


WORDS = LtProductWords.size // 8
WANTED, WAYS, ROOMS = (LtProductWords.fields[name][0] // 8 for name in ("wanted", "ways", "rooms"))


@native
def bits_of(address: i64) -> i64:
    """How many of the last bits are 0, up to 8."""
    k = i64(0)
    while k < MOST_BITS and (address >> k) & 1 == 0:
        k += 1
    return k


@native(level="O2")
def run_product(bufs: ptr[raw], desc: ptr[i64]) -> i64:
    p = ptr[LtProductWords](desc)
    home = ptr[DeviceHome](p.home)
    if not is_ready(home):
        return AGAIN
    out, a, b, added = bufs[0], bufs[p.a], bufs[p.b], bufs[p.added]
    together = i64(out) | i64(a) | i64(b) | i64(added)
    if p.vector > 0:
        together = together | i64(bufs[p.vector])
    k = bits_of(together)
    if p.ways[k] is None:
        p.wanted = k
        return AGAIN
    scratch = raw(0)
    if p.rooms[k] != 0:
        scratch = take_scratch(home, p.rooms[k])
        if scratch is None:
            return NO_MEMORY
    status = i32(0)
    if p.vector > 0:
        place = local(raw)
        place[0] = bufs[p.vector]
        status = p.set_attribute(p.job, i32(cublaslt.BIAS_POINTER), place, 8)
    pool = ptr[DevicePool](home.pool)
    if status == 0:
        status = p.multiply(
            p.handle, p.job, p.alpha, a, p.a_seen, b, p.b_seen, p.beta, added, p.added_seen, out,
            p.out_seen, p.ways[k], place_of(scratch), bytes_of(p.rooms[k]), pool.stream,
        )  # fmt: skip
    note_launch(pool, p.name)
    if scratch is not None:
        Py_DecRef(scratch)
    return i64(status)


class ProductBinding:
    """A product and its launch in machine code."""

    __slots__ = ("__weakref__", "owner", "prepare", "product")

    def __init__(self, product: LtLaunch) -> None:
        self.product = product
        self.prepare = functools.partial(_prepare, weakref.ref(self))  # (held by the launch)
        self.owner: Callable[[], Owner | None] = lambda: None

    def fail(self, code: int) -> BaseException:
        """What the library says of a launch."""
        return self.product.lt.error("cublasLtMatmul", code)

    def description(self) -> list[int]:
        """The words of a `LtProductWords`."""
        of, lt = self.product, self.product.lt
        seen = of.product
        a, b = (2, 1) if seen.turned else (1, 2)
        added, vector = 3 * (seen.bias == "matrix"), 3 * (seen.bias == "vector")
        return [
            id(self.prepare), of.device.gpu.home.address, name_number("MatMul"),
            address_of(lt.multiply), address_of(lt.functions["cublasLtMatmulDescSetAttribute"]),
            of.handle, of.job.handle, of.alpha, of.beta, of.a.handle, of.b.handle, of.added.handle,
            of.out.handle, a, b, added, vector, -1, *[0] * (2 * MOST_BITS + 2),
        ]  # fmt: skip


def _prepare(binding_of: Callable[[], ProductBinding | None]) -> None:
    """What a launch needs before it runs: the GPU, for this thread, and how to compute."""
    binding = binding_of()
    owner = None if binding is None else binding.owner()
    assert binding is not None
    assert owner is not None
    words, start, product = owner.words, owner.start, binding.product
    bits = words[start + WANTED]
    if bits >= 0:
        way = product.way(1 << bits if bits < MOST_BITS else 0)
        if way is None:
            raise product.lt.error("cublasLtMatmulAlgoGetHeuristic", cublaslt.NOT_SUPPORTED)
        words[start + ROOMS + bits] = way.workspace and way.workspace + product.device.room
        words[start + WAYS + bits] = ctypes.addressof(way)
        words[start + WANTED] = -1
    product.device.gpu.make_ready()


def bound(
    product: LtLaunch, what: Any, outs: Sequence[Layout], ins: Sequence[Layout]
) -> LaunchWithOwner:
    """A product as a launch in machine code."""
    binding = ProductBinding(product)
    slots = [slot_of(o) for o in outs], [slot_of(i) for i in ins]
    address, room = run_product.spec().addr, product.device.room
    made = make_launch(address, binding.description(), *slots, 0, binding.fail, what, room=room)
    binding.owner = owner_of(made)
    return made
