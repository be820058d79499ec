"""A class's name says of what it is: no two classes share one, but where PyTorch's do."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import antorcha

PYTORCHS = {
    "Attribute", "AuxRequest", "Event", "GradScaler", "Identity", "Node", "Stream", "StreamContext",
    "Transformer", "autocast", "profile",
}  # fmt: skip
"""Names that PyTorch has twice: of a layer and of a parametrization, of a device and of all."""
ONE_IS_PUBLIC = {
    "Backend",
    "CheckpointError",
    "Function",
    "Generator",
    "Pool",
    "Unfold",
    "Unsupported",
}
"""Names that PyTorch gives one of the two."""


def shared() -> dict[str, list[str]]:
    """The names of several classes, and the files that they are in."""
    root = Path(antorcha.__file__).parent
    found = defaultdict(list)
    for file in sorted(root.rglob("*.py")):
        for each in ast.parse(file.read_text()).body:
            if isinstance(each, ast.ClassDef):
                found[each.name].append(str(file.relative_to(root)))
    return {name: files for name, files in found.items() if len(files) > 1}


def test_no_class_name_twice() -> None:
    allowed = PYTORCHS | ONE_IS_PUBLIC
    again = {name: files for name, files in shared().items() if name not in allowed}
    assert not again, f"say of what each is: {again}"


def test_what_is_allowed_is_shared() -> None:
    gone = (PYTORCHS | ONE_IS_PUBLIC) - set(shared())
    assert not gone, f"strike them out here: {gone}"
