"""Which cell of a notebook a piece of code is from.

IPython compiles cells under file names such as ``<ipython-input-8-0eeeb05ea098>`` or
``ipykernel_11645/3647576811.py`` in the folder of temporary files, which tell a reader nothing.
"""

from __future__ import annotations

import re
import sys
from typing import Any

_OLD = re.compile(r"<ipython-input-(\d+)-\w+>")
_SAID = re.compile(r"In ?\[(\d+)\]")


def cell_of(file: str) -> int | None:
    """The number of the cell that code of this file name was compiled from; None of other files.

    >>> cell_of("<ipython-input-8-0eeeb05ea098>"), cell_of("train.py")
    (8, None)
    """
    found = _OLD.fullmatch(file) or _SAID.fullmatch(_said_by_shell(file))
    return int(found[1]) if found else None


def _said_by_shell(file: str) -> str:
    """IPython's own label of one of its cells, ``In[8]``; "" where it runs none of that name."""
    shells: Any = sys.modules.get("IPython.core.interactiveshell")
    try:
        compiler = shells.InteractiveShell._instance.compile
        said = compiler.format_code_name(file)
    except Exception:  # no IPython, or another version of it
        return ""
    return said[1] if type(said) is tuple and len(said) == 2 else ""
