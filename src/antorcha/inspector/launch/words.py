"""Every word that is said of a launch, in English and in Spanish, in one table."""

from __future__ import annotations

from antorcha.inspector.vocabulary import Vocabulary

# key: (English, Spanish); {} are filled in where it is said.
WORDS: dict[str, tuple[str, str]] = {
    # ---- facts
    "Launch": ("Launch", "Lanzamiento"),
    "kernel": ("kernel", "kernel"),
    "grid": ("grid", "cuadrícula"),
    "shared": ("shared", "compartida"),
    "accesses": ("accesses", "accesos"),
    "one block": ("1 block of {threads} threads", "1 bloque de {threads} hilos"),
    "blocks": (
        "{blocks} blocks of {threads} threads: {all} threads",
        "{blocks} bloques de {threads} hilos: {all} hilos",
    ),
    "busy": (
        "{busy} touched the operands, {idle} had nothing to do",
        "{busy} tocaron los operandos, {idle} no tenían nada que hacer",
    ),
    "all busy": ("all of them touched the operands", "todos tocaron los operandos"),
    "busy at least": (
        "{busy} touched the operands in the accesses that were noted",
        "{busy} tocaron los operandos en los accesos anotados",
    ),
    "shared of block": (
        "memory that the threads of a block have in common",
        "memoria común de los hilos de un bloque",
    ),
    "no shared": (
        "none in common for the threads of a block",
        "ninguna en común para los hilos de un bloque",
    ),
    "noted": ("noted", "anotados"),
    "noted first": (
        "the first ones; {left} are left out of all that follows",
        "los primeros; {left} quedan fuera de todo lo que sigue",
    ),
    "elsewhere": ("{count} to memory of no operand", "{count} a memoria de ningún operando"),
    "read": ("{count} elements read", "{count} elementos leídos"),
    "read one": ("1 element read", "1 elemento leído"),
    "written": ("{count} elements written", "{count} elementos escritos"),
    "written one": ("1 element written", "1 elemento escrito"),
    "in accesses": (" (in {count} accesses)", " (en {count} accesos)"),
    "reads": ("{count} reads", "{count} lecturas"),
    "reads one": ("1 read", "1 lectura"),
    "writes": ("{count} writes", "{count} escrituras"),
    "writes one": ("1 write", "1 escritura"),
    "untouched": ("not touched", "sin tocar"),
    "same as": (
        "the same memory as {name}: counted there",
        "la misma memoria que {name}: se cuenta allí",
    ),
    # ---- the warp
    "Warp": ("The first warp of block {block}", "El primer warp del bloque {block}"),
    "warp text": (
        "Threads {first} to {last} run in step. What they read at once comes from memory in "
        "segments of 128 bytes; of each thread's first access this is so:",
        "Los hilos {first} a {last} avanzan a la vez. Lo que leen juntos llega de la memoria "
        "en segmentos de 128 bytes; en el primer acceso de cada hilo es así:",
    ),
    "no warp": (
        "None of the threads {first} to {last} touched an operand.",
        "Ninguno de los hilos {first} a {last} tocó un operando.",
    ),
    "no warp noted": (
        "None of the accesses of threads {first} to {last} was noted.",
        "No se anotó ningún acceso de los hilos {first} a {last}.",
    ),
    "is read": ("{name} read", "{name} leído"),
    "is written": ("{name} written", "{name} escrito"),
    "segments": (
        "{lanes} lanes, {count} segments: {pattern}",
        "{lanes} carriles, {count} segmentos: {pattern}",
    ),
    "one segment": (
        "{lanes} lanes, 1 segment: {pattern}",
        "{lanes} carriles, 1 segmento: {pattern}",
    ),
    "one lane": ("1 lane alone", "1 solo carril"),
    "together": ("together", "juntos"),
    "same": ("all at the same element", "todos en el mismo elemento"),
    "partly": ("partly together", "juntos en parte"),
    "scattered": ("scattered", "dispersos"),
    "Threads": ("Which thread touches which element", "Qué hilo toca qué elemento"),
    "thread": ("thread", "hilo"),
    "idle": (
        "{count} of these {lanes} threads touched none of them.",
        "{count} de estos {lanes} hilos no tocaron ninguno.",
    ),
    "and more": (" and {count} more", " y {count} más"),
    # ---- the picture
    "map text": (
        "A box is an element, a frame a segment of 128 bytes, the number in a box the thread. "
        "Strong colours are of each thread's first access; lines that nobody touched are left "
        "out.",
        "Una casilla es un elemento, un marco un segmento de 128 bytes, el número de la "
        "casilla el hilo. Los colores fuertes son del primer acceso de cada hilo; las líneas "
        "que nadie tocó se omiten.",
    ),
    "map label": (
        "Which thread touches which element of {name}",
        "Qué hilo toca qué elemento de {name}",
    ),
    "by thread": ("element {element}: thread {threads}", "elemento {element}: hilo {threads}"),
    "by threads": (
        "element {element}: threads {threads}",
        "elemento {element}: hilos {threads}",
    ),
    "its number": (", its element number {number}", ", su elemento número {number}"),
    "cut": (
        "{elements} more elements in {segments} segments are not drawn.",
        "Otros {elements} elementos en {segments} segmentos no se dibujan.",
    ),
    "cut threads": (
        "{elements} further elements of these threads are counted only.",
        "Otros {elements} elementos de estos hilos solo se cuentan.",
    ),
}


class LaunchWords(Vocabulary):
    """The table in one language: ``words("reads", count=3)``."""

    table = WORDS
    asked_by = "inspect"
