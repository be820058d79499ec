"""How this machine's memory wants to be used by kernels that do little else but move it.

A core waits for some tens of cache lines at a time. What gets the most out of them differs:

- Intel's servers: a core asks for few lines by itself, and a store to a line that is not there
  takes one of these places for as long as a load does. Asking ahead, lines to be written with the
  right to write, brings memory from a half to three quarters of what it can (`asks_ahead`).
- AMD's Zen: the hardware asks by itself, and more requests only delay those that are needed: a
  copy of 32 MB took 1.4 times as long with them. But writing past the caches saves reading the
  lines that are going to be written: 1.2 times as quick at 40 MB of operands and a third cache of
  32 MB, 1.4 at 64 MB, and whoever reads the result next gains as much (`streams_from`).
"""

from __future__ import annotations

from functools import cache

from antorcha.lang.native.machine import binding, target

MB = 1 << 20
USUAL_CACHE = 32 * MB


@cache
def asks_ahead() -> bool:
    """Do kernels ask for the lines of large operands before they need them?"""
    return target().arch == "x86_64" and not _is_zen()


@cache
def streams_from() -> int:
    """From this size of all operands on, in bytes, results are written past the caches.

    Where lines are asked for, that is as quick until much later: there it saves traffic only, and
    drives nothing out of the caches.
    """
    if asks_ahead():
        return max(8 * last_cache(), 256 * MB)
    return (last_cache() or USUAL_CACHE) * 5 // 4


@cache
def last_cache() -> int:
    """Bytes of the third cache; 0 where there is none, or the system does not say."""
    try:
        with open("/sys/devices/system/cpu/cpu0/cache/index3/size") as file:
            return int(file.read().strip().removesuffix("K")) << 10
    except (OSError, ValueError):
        return 0


def _is_zen() -> bool:
    """Of the CPU that is here, whichever code is made for."""
    return str(binding().get_host_cpu_name()).startswith("znver")
