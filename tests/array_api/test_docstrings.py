"""The examples of the array API's functions print what is written below them."""

from __future__ import annotations

import doctest
import io

import antorcha
from antorcha import array_api


def test_every_function_does_what_its_example_shows() -> None:
    parser, failed, ran = doctest.DocTestParser(), [], 0
    names = {"torch": antorcha, "xp": array_api}
    for name in array_api.__all__:
        doc = getattr(array_api, name).__doc__ or ""
        example = parser.get_doctest(doc, names, name, None, 0)
        if example.examples:
            ran += 1
            text = io.StringIO()
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            doctest.DocTestRunner(optionflags=flags, verbose=False).run(example, out=text.write)
            failed += [text.getvalue()] if text.getvalue() else []
    assert not failed, "\n".join(failed)
    assert ran > 25
