"""Builds the site and checks it: ``python -m tools.reference [FOLDER [WORK]]``."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tools.reference import check
from tools.reference.names import ROOT
from tools.reference.site import ReferenceSite


def main(words: list[str]) -> int:
    """Builds into the folder that is named, else into ``build/docs``, by what is kept in the second
    one; gives the exit code."""
    folders = [ROOT / "build" / "docs", ROOT / "build" / "docs-work"]
    out, work = [*map(Path.resolve, map(Path, words)), *folders[len(words) :]]
    started = time.perf_counter()
    ReferenceSite(out, work).build()
    wrong = [*check.lost_links(out), *check.machine_paths(out), *check.outside(out)]
    for line in wrong:
        print(line, file=sys.stderr)
    took = time.perf_counter() - started
    print(f"{len(check.pages(out))} pages in {took:.0f} seconds: {out / 'index.html'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
