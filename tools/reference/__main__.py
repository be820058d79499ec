"""Builds the site and checks it: ``python -m tools.reference [FOLDER]``."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tools.reference import check
from tools.reference.names import ROOT
from tools.reference.site import ReferenceSite


def main(words: list[str]) -> int:
    """Builds into the folder that is named, else into ``build/docs``; gives the exit code."""
    out = Path(words[0]).resolve() if words else ROOT / "build" / "docs"
    started = time.perf_counter()
    ReferenceSite(out, ROOT / "build" / "docs-work").build()
    wrong = [*check.lost_links(out), *check.machine_paths(out), *check.outside(out)]
    for line in wrong:
        print(line, file=sys.stderr)
    took = time.perf_counter() - started
    print(f"{len(check.pages(out))} pages in {took:.0f} seconds: {out / 'index.html'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
