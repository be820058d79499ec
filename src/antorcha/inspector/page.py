"""The frame around a picture or a table: its colours in light and dark, its type."""

from __future__ import annotations

from antorcha.inspector.words import escaped

LIGHT = {
    "bg": "#ffffff", "fg": "#1b1f24", "dim": "#59636e", "line": "#c4cbd3", "soft": "#f3f5f8",
    "op": "#e8effb", "op-line": "#7a9ad0", "leaf": "#e6f4e7", "leaf-line": "#6aa873",
    "out": "#fdf0d9", "out-line": "#cf9a3c", "group": "#f6f3fb", "group-line": "#a58fce",
    "bad": "#c2262e", "bad-soft": "#fde4e3", "good": "#1a7f37", "accent": "#1f5fc4",
}  # fmt: skip
DARK = {
    "bg": "#16191d", "fg": "#e4e8ec", "dim": "#9aa4af", "line": "#454d57", "soft": "#20252b",
    "op": "#1d2b42", "op-line": "#5f86c6", "leaf": "#1b3121", "leaf-line": "#5a9c66",
    "out": "#3a2d12", "out-line": "#c3913a", "group": "#241f30", "group-line": "#7f6bab",
    "bad": "#ff7b72", "bad-soft": "#451c1d", "good": "#56d364", "accent": "#79a8ff",
}  # fmt: skip
SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif"
MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"


def variables(colours: dict[str, str]) -> str:
    """The colours as CSS custom properties."""
    return "".join([f"--an-{name}:{value};" for name, value in colours.items()])


def colours(selector: str) -> str:
    """CSS that gives a selector the theme: the reader's, unless the page has chosen one."""
    return (
        f"{selector}{{{variables(LIGHT)}color-scheme:light}}"
        f"@media(prefers-color-scheme:dark){{{selector}{{{variables(DARK)}color-scheme:dark}}}}"
        f"[data-theme=light] {selector}{{{variables(LIGHT)}color-scheme:light}}"
        f"[data-theme=dark] {selector}{{{variables(DARK)}color-scheme:dark}}"
    )


_RULES = f"""
.an-block{{background:var(--an-bg);color:var(--an-fg);font:14px/1.5 {SANS};padding:10px 12px;
border:1px solid var(--an-line);border-radius:8px;max-width:100%;box-sizing:border-box}}
.an-block *{{box-sizing:border-box}}
.an-block .wide{{overflow-x:auto}}
.an-block table{{border-collapse:collapse;font:13px/1.6 {MONO};width:auto;margin:0;color:inherit}}
.an-block tr{{background:none}}
.an-block th,.an-block td{{padding:1px 14px 1px 0;white-space:nowrap;text-align:right;border:0;
background:none;color:inherit}}
.an-block tr>:nth-child(-n+2){{text-align:left}}
.an-block tbody th{{font-weight:400}}
.an-block thead th{{border-bottom:1px solid var(--an-line);font-weight:600}}
.an-block .tree{{color:var(--an-line);white-space:pre}}
.an-block .dim{{color:var(--an-dim)}}
.an-block .foot{{margin-top:8px;font:12.5px/1.6 {MONO};color:var(--an-dim);white-space:pre-wrap}}
.an-block pre,.an-block code{{font:13px/1.5 {MONO};color:inherit;background:none}}
.an-block pre{{margin:6px 0;padding:8px 10px;background:var(--an-soft);border-radius:6px;
overflow-x:auto}}
.an-block details{{margin:6px 0}}
.an-block summary{{cursor:pointer}}
.an-block details details{{margin-left:14px}}
.an-block svg{{display:block;max-width:none}}
.an-block h3{{font-size:15px;margin:0 0 6px;line-height:1.35}}
.an-block p{{margin:6px 0}}
.an-block mark{{background:var(--an-bad-soft);color:var(--an-bad);font-weight:600;padding:0 1px}}
""".replace("\n", "")


def block(body: str, label: str) -> str:
    """A ``<div>`` with its own style around HTML: readable in both themes, from 360 px wide."""
    style = f"<style>{colours('.an-block')}{_RULES}</style>"
    return f'<div class="an-block" role="group" aria-label="{escaped(label)}">{style}{body}</div>'
