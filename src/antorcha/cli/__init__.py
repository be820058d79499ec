"""The ``antorcha`` command: ``run``, ``info``, ``demo``, ``lab``.

``antorcha run`` is sorted out here, before the command-line library is even imported: everything
after the script's name belongs to the script, nothing of ours may stand in its stack, and a script
should not wait for a library that it does not use. All else goes to `antorcha.cli.app`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from antorcha.core.lazy import lazy

_app = lazy("antorcha.cli.app", before_forks=False)
_runner = lazy("antorcha.cli.runner", before_forks=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (default: the process's own); return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["run"] and words[1:2] not in ([], ["--help"], ["-h"]):
        code: int = _runner.run(words[1:])
    else:
        code = _app.main(words)
    return code
