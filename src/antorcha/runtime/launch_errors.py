"""What a launch refuses, and how it says so. The native side names a complaint by its number."""

from __future__ import annotations

from typing import Any

from antorcha.errors import ArgumentError, NativeError, OutOfRange
from antorcha.runtime.cpython import complaint
from antorcha.runtime.launched import Owner


def _wrong_count(plan: Any, given: Any, fresh: int) -> BaseException:
    owner: Owner = plan.owner
    words = owner.words
    if fresh and owner.outs != 1:
        return ArgumentError(f"fresh needs a kernel with one output; this one has {owner.outs}")
    wanted = words[4] if fresh else words[5]
    return ArgumentError(f"this kernel takes {wanted} arguments, not {given}")


def _not_a_storage(plan: Any, given: Any, k: int) -> BaseException:
    return ArgumentError(f"{plan.owner.name(k)} must be a Storage, not {type(given).__name__}")


def _not_an_offset(plan: Any, given: Any, k: int) -> BaseException:
    return ArgumentError(
        f"{plan.owner.name(k)}: an offset must be an integer, not {type(given).__name__}"
    )


def _outside(plan: Any, pair: Any, k: int) -> BaseException:
    storage, offset = pair
    owner: Owner = plan.owner
    slot = owner.slots[k]
    assert not isinstance(slot, str)
    itemsize, low, high = slot
    if storage.ptr == 0 and storage.nbytes:
        return ArgumentError(f"{owner.name(k)} is a meta storage: it has a size and no data")
    return OutOfRange(
        f"{owner.name(k)} lies outside its storage: offset {offset} (elements of {itemsize} bytes) "
        f"reaches bytes {offset * itemsize + int(low)} to {offset * itemsize + int(high)} "
        f"of {storage.nbytes}"
    )


def _read_only(plan: Any, _given: Any, k: int) -> BaseException:
    return ArgumentError(f"{plan.owner.name(k)} is read-only memory; clone() it first")


def _left_out(plan: Any, _given: Any, k: int) -> BaseException:
    return NativeError(
        f"a kernel is about to run, and nobody has said where {plan.owner.name(k)} is"
    )


WRONG_COUNT = complaint(_wrong_count)
NOT_A_STORAGE = complaint(_not_a_storage)
NOT_AN_OFFSET = complaint(_not_an_offset)
OUTSIDE = complaint(_outside)
READ_ONLY = complaint(_read_only)
LEFT_OUT = complaint(_left_out)
"""Complaints about an operand; the number is the operand's, except WRONG_COUNT's (is it fresh?)."""
