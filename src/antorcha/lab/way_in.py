"""The page for who comes to the lab without its key: why nothing shows, and how to get in."""

from __future__ import annotations

import base64
import hashlib
import html

from antorcha.inspector.theme import DARK, LIGHT
from antorcha.inspector.vocabulary import LANGUAGES, Vocabulary


class WayInWords(Vocabulary):
    """What the page says."""

    table = {  # noqa: RUF012
        "title": ("This page needs its key", "Esta página necesita su llave"),
        "why": (
            "antorcha lab runs programs on the computer that it was started on, so it opens only "
            "for who started it. Your browser has not shown the key yet: perhaps this is another "
            "browser or a private window, its cookies were cleared, or the lab was started again.",
            "antorcha lab ejecuta programas en el ordenador en el que se arrancó, así que solo se "
            "abre para quien lo arrancó. Tu navegador todavía no ha mostrado la llave: quizá es "
            "otro navegador o una ventana privada, se borraron sus cookies, o el laboratorio se "
            "arrancó otra vez.",
        ),
        "wrong": (
            "The key in that address is not valid any more: each works once.",
            "La llave de esa dirección ya no vale: cada una sirve una sola vez.",
        ),
        "how": ("How to get in", "Cómo entrar"),
        "terminal": (
            "Go to the terminal in which you started antorcha lab. Its last line has an address "
            "that ends in token=…: it was written there just now.",
            "Ve a la terminal en la que arrancaste antorcha lab. Su última línea tiene una "
            "dirección que acaba en token=…: se acaba de escribir ahí.",
        ),
        "open": (
            "Open that address in this browser, or paste it here:",
            "Abre esa dirección en este navegador, o pégala aquí:",
        ),
        "again": (
            "If there is no such terminal any more, start the lab again: antorcha lab",
            "Si esa terminal ya no está, arranca el laboratorio otra vez: antorcha lab",
        ),
        "address": ("Address", "Dirección"),
        "go": ("Open", "Abrir"),
    }


def _colours(colours: dict[str, str]) -> str:
    return "".join([f"--{name}:{value};" for name, value in colours.items()])


STYLE = (
    f":root{{{_colours(LIGHT)}color-scheme:light dark}}"
    f"@media(prefers-color-scheme:dark){{:root{{{_colours(DARK)}}}}}"
    "body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,-apple-system,"
    "'Segoe UI',Roboto,'Noto Sans',sans-serif}main{max-width:62ch;margin:8vh auto;padding:0 20px}"
    "p.brand{color:var(--accent);font-weight:650;margin:0}h1{font-size:26px;margin:4px 0 12px}"
    "h2{font-size:18px;margin:24px 0 4px}ol{padding-left:22px}li{margin:0 0 10px}"
    "form{display:flex;flex-wrap:wrap;gap:8px;margin:8px 0}"
    "input{flex:1 1 240px;font:15px ui-monospace,Menlo,Consolas,monospace;padding:8px 10px;"
    "border:1px solid var(--line);border-radius:6px;background:var(--panel);color:var(--fg)}"
    f"button{{font:600 15px system-ui,sans-serif;padding:8px 18px;border:0;border-radius:6px;"
    f"background:{LIGHT['accent']};color:#fff;cursor:pointer}}.wrong{{color:var(--bad)}}"
    "input:focus-visible,button:focus-visible{outline:2px solid var(--accent);outline-offset:2px}"
)
POLICY = (
    "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'; style-src "
    f"'sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}'"
)
"""What the page may load: its own style, nothing else."""


def page(lang: str, otherwise: str = "en", *, was_wrong: bool = False) -> tuple[str, str]:
    """The page in that language (in the other one, where there is no such), and its policy."""
    words = WayInWords(next(each for each in (lang, otherwise, "en") if each in LANGUAGES))

    def said(key: str) -> str:
        return html.escape(words(key))

    wrong = f'<p class="wrong">{said("wrong")}</p>' if was_wrong else ""
    text = (
        f'<!doctype html><html lang="{words.lang}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>antorcha lab: {said('title')}</title><style>{STYLE}</style></head><body><main>"
        f'<p class="brand">antorcha lab</p><h1>{said("title")}</h1>{wrong}<p>{said("why")}</p>'
        f"<h2>{said('how')}</h2><ol><li>{said('terminal')}</li><li>{said('open')}"
        f'<form action="/" method="get"><input name="token" type="text" autocomplete="off" '
        f'autofocus required aria-label="{said("address")}" '
        f'placeholder="http://…?token=…"><button>{said("go")}</button></form></li></ol>'
        f"<p>{said('again')}</p></main></body></html>"
    )
    return text, POLICY
