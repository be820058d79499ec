"""The page for who comes to the lab without its key: why nothing shows, and how to get in."""

from __future__ import annotations

import base64
import hashlib
import html

from antorcha.inspector.vocabulary import LANGUAGES, Vocabulary
from antorcha.lab import theme


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


STYLE = theme.rules() + (
    "body{margin:0;background:var(--ant-bg);color:var(--ant-fg);"
    "font:var(--type-text)/var(--line-text) var(--lab-sans)}"
    "main{max-width:62ch;margin:var(--space-40) auto;padding:0 var(--space-24)}"
    "p.brand{color:var(--ant-accent);font-weight:650;margin:0}"
    "h1{font-size:var(--type-title);line-height:var(--line-title);"
    "margin:var(--space-4) 0 var(--space-12)}"
    "h2{font-size:var(--type-part);line-height:var(--line-title);"
    "margin:var(--space-24) 0 var(--space-8)}"
    "ol{padding-left:var(--space-24)}li{margin:0 0 var(--space-12)}"
    "form{display:flex;flex-wrap:wrap;gap:var(--space-8);margin:var(--space-8) 0}"
    "input{flex:1 1 240px;font:var(--type-code)/var(--line-text) var(--lab-mono);"
    "padding:var(--space-8) var(--space-12);border:1px solid var(--ant-edge);"
    "border-radius:var(--corner-small);background:var(--ant-panel);color:var(--ant-fg)}"
    "button{font:600 var(--type-code)/var(--line-text) var(--lab-sans);"
    "padding:var(--space-8) var(--space-16);border:0;border-radius:var(--corner-small);"
    f"background:{theme.ACCENT};color:#fff;cursor:pointer}}.wrong{{color:var(--ant-bad)}}"
    "input:focus-visible,button:focus-visible{outline:2px solid var(--ant-accent);"
    "outline-offset:2px}"
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
