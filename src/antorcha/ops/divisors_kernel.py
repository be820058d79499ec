"""The kernel behind ``divisors``."""

# Native functions are in the kernel language, whose types are values: mypy cannot read them.
# mypy: disable-error-code="valid-type,index", no-warn-return-any
from __future__ import annotations

from antorcha.lang.native import i64, native, ptr, raw, u8


@native
def stop_if(bufs: ptr[raw], desc: ptr[i64]) -> i64:
    """A status other than 0 where the byte that it is given is not 0."""
    return i64(ptr[u8](bufs[1])[0])
