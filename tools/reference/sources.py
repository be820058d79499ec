"""Pages that show source files, each line with a number and an anchor.

They are plain pages with the site's style sheets: the theme's side bar on hundreds of them would
take longer to make than all the rest.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer, TextLexer

from tools.reference.guides import source_page

_FORMATTER = HtmlFormatter(linenos="inline", lineanchors="line", wrapcode=True)
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{file} - antorcha</title>
<link rel="stylesheet" href="{up}_static/pygments.css">
<link rel="stylesheet" href="{up}_static/styles/furo.css">
<link rel="stylesheet" href="{up}_static/reference.css">
</head>
<body class="ref-source">
<script>document.body.dataset.theme = localStorage.getItem("theme") || "auto";</script>
<p><a href="{up}index.html">antorcha</a> / {file}</p>
{code}
</body>
</html>
"""


def write(root: Path, files: set[str], out: Path) -> None:
    """The pages of these files below `root`, in the finished site `out`."""
    for file in sorted(files):
        text = (root / file).read_text(encoding="utf-8")
        lexer = PythonLexer() if file.endswith(".py") else TextLexer()
        name = source_page(file)
        page = out / f"{name}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        code = highlight(text, lexer, _FORMATTER)
        shown = _PAGE.format(file=escape(file), up="../" * name.count("/"), code=code)
        page.write_text(shown, encoding="utf-8")
