"""What notebooks show: cells by their numbers, printed text above every picture."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("IPython")

# Cells run in IPython's own shell; in a process of its own, since there is one shell in each. With
# "kernel" their code has the file names that ipykernel gives, else those of the terminal's IPython.
_PROGRAM = r"""
import contextlib, io, re, sys
from IPython.core.interactiveshell import InteractiveShell
if "kernel" in sys.argv:
    from ipykernel.compiler import XCachingCompiler
    InteractiveShell.compiler_class.default_value = XCachingCompiler
shell = InteractiveShell.instance(colors="nocolor")
assert ("kernel" in sys.argv) == (type(shell.compile).__name__ == "XCachingCompiler")


def cell(code):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        shell.run_cell(code, store_history=True)
    return printed.getvalue()


def shown(code):
    return shell.display_formatter.format(eval(code, shell.user_ns))[0]


cell("import antorcha as torch")
cell("def double(a):\n    return a @ a\n\ndef fails(fn, lang):\n"
     "    try:\n        fn()\n    except Exception as error:\n"
     "        print(torch.explain(error, lang=lang))")
text = cell("fails(lambda: double(torch.ones(3, 2)), 'en')")
assert "\n  cell 2, line 2, in double\n    return a @ a\n" in text, text
assert "\n  celda 2, línea 2, en double\n" in cell("fails(lambda: double(torch.ones(3, 2)), 'es')")
text = cell("x = torch.ones(3)\ntry:\n    x @ torch.ones(2)\nexcept Exception as error:\n"
            "    print(torch.explain(error))")
assert "\n  cell 5, line 3\n    x @ torch.ones(2)\n" in text, text
text = cell("fails(lambda: compile('(1,', '<here>', 'exec'), 'en')")
assert "\n  <here>, line 1\n" in text, text

cell("a = torch.ones(2, requires_grad=True)\nwith torch.graph.recording():\n    y = a.exp()\n"
     "    z = y.sum()")
text = cell("print(torch.graph(z))\nprint(torch.graph(z, lang='es'))")
assert "cell 7, line 3  y = a.exp()" in text, text
assert "celda 7, línea 3  y = a.exp()" in text, text
assert "cell 7, line 4" in cell("print(torch.graph(z).html())")
cell("y += 1")
text = cell("with torch.autograd.set_detect_anomaly(True):\n    y = a.exp()\n    y += 1\n"
            "    y.sum().backward()")
assert "Cell In[11], line 2, in <module>\n    y = a.exp()" in text, text
assert "in run_code" not in text.partition("It was called here:")[2], text

for code in ("torch.arange(10)", "torch.nn.Parameter(torch.ones(2, 2))", "torch.rand(3, 8, 8)"):
    found = shown(code)
    assert found["text/plain"] == repr(eval(code, shell.user_ns)) or "rand" in code
    printed = re.search(r"<pre[^>]*>(.*?)</pre>", found["text/html"], re.S)[1]
    assert printed == found["text/plain"].replace("<", "&lt;"), found
    assert found["text/html"].index("<pre") < re.search("<svg|<img", found["text/html"]).start()
print("done")
"""


@pytest.mark.parametrize("kind", ["terminal", "kernel"])
def test_cells_are_called_by_their_numbers(kind: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", _PROGRAM, kind]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stdout == "done\n", run.stderr
