"""``ANTORCHA_CALL=checked``: after each call that was served natively, all invariants are checked.

It is for tests, and for whoever suspects the native path: a call takes a hundred times as long, and
the first thing that is not as the files of this folder say raises ``Broken``, where it happened.
In the other modes the machine code is compiled without any of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from antorcha import config
from antorcha.lang.native import Global, local, native, raw
from antorcha.runtime.cpython import Py_DecRef, PyObject_Vectorcall

CHECKED = config.call_path == "checked"
checker = Global("antorcha_checker", raw)  # a function of the result


@native(noinline=True)
def checked(result: raw) -> raw:
    """A call's result, which is passed on; null with an exception where something is not right."""
    if result is None:
        return result
    args = local(raw)
    args[0] = result
    done = PyObject_Vectorcall(checker[0], args, 1, None)
    if done is None:
        Py_DecRef(result)
        return done
    Py_DecRef(done)
    return result


def install(check: Callable[[Any], None]) -> None:
    """Has `check` called with each result."""
    checker.refer_to(check)
