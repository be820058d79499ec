"""The words of a graph's picture and of its text, in English and in Spanish."""

from __future__ import annotations

from antorcha.inspector.vocabulary import Vocabulary

WORDS: dict[str, tuple[str, str]] = {
    "graph": ("graph: {facts}", "grafo: {facts}"),
    "graph of": ("graph of {names}: {facts}", "grafo de {names}: {facts}"),
    "title": ("Autograd graph", "Grafo de autograd"),
    "operation": ("1 operation", "1 operación"),
    "operations": ("{count:,} operations", "{count:,} operaciones"),
    "leaf": ("1 leaf", "1 hoja"),
    "leaves": ("{count:,} leaves", "{count:,} hojas"),
    "more result": ("and 1 result more", "y 1 resultado más"),
    "more results": ("and {count:,} results more", "y {count:,} resultados más"),
    "more leaf": ("… and 1 leaf more", "… y 1 hoja más"),
    "more leaves": ("… and {count:,} leaves more", "… y {count:,} hojas más"),
    "more groups": ("and {count} more groups", "y {count} grupos más"),
    "all open": ("all groups opened", "todos los grupos abiertos"),
    "freed values": ("saved values freed by backward", "valores guardados liberados por backward"),
    "kept for": ("{size} kept for backward", "{size} guardados para backward"),
    "no operation": ("no operation leads to it: {why}", "ninguna operación lleva a él: {why}"),
    "is leaf": ("it is a leaf", "es una hoja"),
    "no gradient": ("it requires no gradient", "no requiere gradiente"),
    "only newest": (
        "only the newest {count:,} operations were read; there are older ones",
        "solo se leyeron las {count:,} operaciones más recientes; hay otras anteriores",
    ),
    "not recorded": (
        "lines and modules: not noted (build it inside `with antorcha.graph.recording():`)",
        "líneas y módulos: sin anotar (créalo dentro de `with antorcha.graph.recording():`)",
    ),
    "crowded": (
        "too much for one picture: boxes with … stand for many",
        "demasiado para un dibujo: las cajas con … representan muchas",
    ),
    "folded": ("not drawn one by one", "no se dibujan una a una"),
    "cell": ("cell {cell}, line {line}", "celda {cell}, línea {line}"),
    "keeps": ("keeps {what}", "guarda {what}"),
    "kept": ("kept {what}", "guardó {what}"),
    "was overwritten": ("{name} was overwritten since", "{name} se sobrescribió después"),
    "state packed": ("packed", "empaquetado"),
    "state overwritten": ("overwritten", "sobrescrito"),
    "state freed": ("freed", "liberado"),
    "result": ("result: {what}", "resultado: {what}"),
    "in": ("{place} in {function}", "{place} en {function}"),
    "a parameter": ("parameter {name}", "parámetro {name}"),
    "a leaf": ("leaf {name}", "hoja {name}"),
    "on": ("{what} on {device}", "{what} en {device}"),
    "no grad": ("no grad yet", "sin grad todavía"),
    "from outside": ("from outside: {what}", "desde fuera: {what}"),
    "to outside": ("to outside: {what}", "hacia fuera: {what}"),
    "leaves:": ("leaves", "hojas"),
    "operations:": ("operations, first to last", "operaciones, de la primera a la última"),
}
_MANY = {"operation": "operations", "leaf": "leaves", "more result": "more results",
         "more leaf": "more leaves"}  # fmt: skip


class GraphWords(Vocabulary):
    """The table in one language.

    >>> say = GraphWords("es")
    >>> say.count("leaf", 1), say.count("leaf", 3), say("keeps", what="input")
    ('1 hoja', '3 hojas', 'guarda input')
    """

    table = WORDS
    asked_by = "graph"

    def count(self, key: str, count: int) -> str:
        """A count with its noun."""
        return self(key) if count == 1 else self(_MANY[key], count=count)
