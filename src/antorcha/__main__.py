"""``python -m antorcha``: the ``antorcha`` command."""

from __future__ import annotations

from antorcha.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
