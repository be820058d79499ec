"""The examples in the documentation of ops: each prints what is written below it."""

from __future__ import annotations

import doctest
import io

import antorcha
from antorcha.ops.kinds.record import REGISTRY


def test_every_op_does_what_its_example_shows() -> None:
    parser = doctest.DocTestParser()
    failed: list[str] = []
    ran = 0
    for op in {id(op): op for op in REGISTRY.values()}.values():
        names = {"torch": antorcha, "antorcha": antorcha}
        example = parser.get_doctest(op.__doc__ or "", names, op.name, None, 0)
        if not example.examples:
            continue
        antorcha.manual_seed(0)
        ran += 1
        text = io.StringIO()
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        doctest.DocTestRunner(optionflags=flags, verbose=False).run(example, out=text.write)
        failed += [text.getvalue()] if text.getvalue() else []
    assert not failed, "\n".join(failed)
    assert ran > 400
