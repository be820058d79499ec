"""Which Python functions a call runs."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any


def functions_run(run: Callable[[], Any]) -> list[tuple[str, str]]:
    """The files and names of the Python functions, in order."""
    found: list[tuple[str, str]] = []

    def watch(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            found.append((frame.f_code.co_filename, frame.f_code.co_name))

    collects = gc.isenabled()
    gc.disable()  # what a collection calls is not the call's
    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
        if collects:
            gc.enable()
    return found
