"""The frame around a table, a picture or an explanation as HTML: its rules of style."""

from __future__ import annotations

from antorcha.inspector import theme
from antorcha.inspector.forms import escaped

_RULES = f"""
.ant-block{{font-size:14px;line-height:1.5;padding:10px 12px;border:1px solid var(--ant-line);
border-radius:6px;max-width:100%;box-sizing:border-box}}
.ant-block *{{box-sizing:border-box}}
.ant-block .wide{{overflow-x:auto}}
.ant-block table{{border-collapse:collapse;font:13px/1.6 {theme.MONO};width:auto;margin:0;
color:inherit}}
.ant.ant-block .wide tr{{background:none}}
.ant.ant-block .wide :is(th,td){{padding:1px 14px 1px 0;white-space:nowrap;text-align:right;
border:0;background:none;color:inherit}}
.ant.ant-block .wide tr>:nth-child(-n+2){{text-align:left}}
.ant.ant-block .wide tbody th{{font-weight:400}}
.ant.ant-block .wide thead th{{border-bottom:1px solid var(--ant-line);font-weight:600}}
.ant-block .tree{{color:var(--ant-muted);opacity:.6;white-space:pre}}
.ant-block .foot{{margin-top:8px;font:12.5px/1.6 {theme.MONO};color:var(--ant-muted);
white-space:pre-wrap}}
.ant-block pre{{font:13px/1.5 {theme.MONO};color:inherit;margin:6px 0;padding:8px 10px;
background:var(--ant-panel);border-radius:4px;overflow-x:auto}}
.ant.ant-block pre code{{font:inherit;background:none;padding:0;border:0}}
.ant-block details{{margin:6px 0}}
.ant-block summary{{cursor:pointer}}
.ant-block h3{{font-size:15px;margin:0 0 6px;line-height:1.35;overflow-wrap:anywhere}}
.ant-block p{{margin:6px 0;overflow-wrap:anywhere}}
""".replace("\n", "")


def block(body: str, label: str, *rules: str, lang: str = "en") -> str:
    """A ``<div>`` with its own style around HTML: readable in both themes, from 360 px wide."""
    style = theme.style(_RULES, *rules)
    return (
        f'<div class="ant ant-block" role="group" aria-label="{escaped(label)}" lang="{lang}">'
        f"{style}{body}</div>"
    )
