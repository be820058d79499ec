"""Every word that the inspector says, in English and in Spanish, in one table."""

from __future__ import annotations

from antorcha.inspector.vocabulary import Vocabulary

# key: (English, Spanish); {} are filled in where it is said.
WORDS: dict[str, tuple[str, str]] = {
    # ---- names of facts
    "shape": ("shape", "forma"),
    "dtype": ("dtype", "dtype"),
    "device": ("device", "dispositivo"),
    "strides": ("strides", "strides"),
    "offset": ("offset", "offset"),
    "layout": ("layout", "disposición"),
    "bytes": ("bytes", "bytes"),
    "memory of": ("memory of", "memoria de"),
    "version": ("version", "versión"),
    "shared with": ("shared with", "compartida con"),
    "requires_grad": ("requires_grad", "requires_grad"),
    "grad_fn": ("grad_fn", "grad_fn"),
    "grad": ("grad", "grad"),
    # ---- what is said of them
    "elements": ("{product}{count} elements", "{product}{count} elementos"),
    "one element": ("{product}1 element", "{product}1 elemento"),
    "0-dim": ("a number: no dims, 1 element", "un número: sin dimensiones, 1 elemento"),
    "each": ("{size} of memory for each element", "{size} de memoria por elemento"),
    "stride": ("dim {dim} steps {stride} cells", "dim {dim} avanza {stride} celdas"),
    "stride 1": ("dim {dim} steps 1 cell", "dim {dim} avanza 1 celda"),
    "stride 0": ("dim {dim} stays in its cell", "dim {dim} no avanza"),
    "no step": ("dim {dim} has one index: no step", "dim {dim} tiene un solo índice: sin paso"),
    "starts": ("its first element is in cell {cell}", "su primer elemento está en la celda {cell}"),
    "contiguous": (
        "one cell after the other, in order",
        "una celda tras otra, en orden",
    ),
    "channels_last": (
        "the channels of a pixel are neighbours (not contiguous)",
        "los canales de un píxel son vecinos (no es contiguo)",
    ),
    "permuted": (
        "every cell once, in another order (not contiguous)",
        "cada celda una vez, en otro orden (no es contiguo)",
    ),
    "strided": (
        "cells are left out in between (not contiguous)",
        "se salta celdas intermedias (no es contiguo)",
    ),
    "overlapping": (
        "several elements are in one cell: clone() it before writing to it",
        "varios elementos ocupan una misma celda: haz clone() antes de escribir",
    ),
    "storage size": (
        "of a storage of {size}: {cells} cells",
        "de un almacenamiento de {size}: {cells} celdas",
    ),
    "no memory": ("none of it in memory", "nada de ello en memoria"),
    "one cell": ("of a storage of {size}: 1 cell", "de un almacenamiento de {size}: 1 celda"),
    "rest": (", and {rest} more bytes", ", y {rest} bytes más"),
    "owner": ("{owner}", "{owner}"),
    "read-only": ("read-only", "solo lectura"),
    "borrowed": (
        "kept alive by this tensor; a write to one shows in the other",
        "este tensor la mantiene viva; lo escrito en uno se ve en el otro",
    ),
    "version 0": ("never written to in place", "nunca se ha escrito en su memoria"),
    "version 1": ("1 write in place so far", "1 escritura en su memoria hasta ahora"),
    "version n": (
        "{count} writes in place so far",
        "{count} escrituras en su memoria hasta ahora",
    ),
    "inference": (
        "made in inference mode: writes are not counted",
        "creado en modo de inferencia: no se cuentan las escrituras",
    ),
    "nobody": ("no other tensor found", "ningún otro tensor encontrado"),
    "no name": ("(no name)", "(sin nombre)"),
    "base": ("the base of this view", "la base de esta vista"),
    "view": ("cells {cells}", "celdas {cells}"),
    "alias": (
        "through .data or the like, with a version of its own",
        "a través de .data o similar, con su propia versión",
    ),
    "array": ("a NumPy array", "un array de NumPy"),
    "more": ("and {count} more", "y {count} más"),
    "saved 1": (
        "the graph keeps 1 value of it for backward",
        "el grafo guarda 1 valor suyo para backward",
    ),
    "saved n": (
        "the graph keeps {count} values of it for backward",
        "el grafo guarda {count} valores suyos para backward",
    ),
    "leaf": ("a leaf: no operation made it", "una hoja: no la hizo ninguna operación"),
    "leaf grad": (
        "a leaf: its gradient goes to .grad",
        "una hoja: su gradiente va a .grad",
    ),
    "made by": ("made by a recorded operation", "resultado de una operación registrada"),
    "retains": (
        "made by a recorded operation; it keeps its .grad",
        "resultado de una operación registrada; conserva su .grad",
    ),
    "no grad yet": ("no backward yet", "todavía sin backward"),
    "grad values": (
        "{dtype}: mean {mean}, std {std}, from {min} to {max}",
        "{dtype}: media {mean}, desv. {std}, de {min} a {max}",
    ),
    "grad bad": ("; {nan} NaN, {inf} infinite", "; {nan} NaN, {inf} infinitos"),
    # ---- why there is nothing to see
    "meta": (
        "A meta tensor has a shape and no memory: there are no values.",
        "Un tensor meta tiene forma y no tiene memoria: no hay valores.",
    ),
    "freed": (
        "The storage has {has}, the tensor needs {needs}: memory was given back (resize_), and the "
        "tensor cannot be read.",
        "El almacenamiento tiene {has} y el tensor necesita {needs}: se devolvió memoria (resize_) "
        "y el tensor no se puede leer.",
    ),
    "elsewhere": (
        "The device {device} cannot be reached from here: the values are not shown.",
        "El dispositivo {device} no es accesible desde aquí: no se muestran los valores.",
    ),
    "empty": (
        "There are no elements: a size is 0.",
        "No hay elementos: un tamaño es 0.",
    ),
    # ---- memory
    "Memory": ("Memory", "Memoria"),
    "Values": ("Values", "Valores"),
    "Image": ("As an image", "Como imagen"),
    "Histogram": ("Histogram", "Histograma"),
    "Place": ("Facts", "Datos"),
    "reads all": (
        "The storage is one row of {cells} cells; {name} reads all of them.",
        "El almacenamiento es una fila de {cells} celdas; {name} las lee todas.",
    ),
    "reads some": (
        "The storage is one row of {cells} cells; {name} reads {read} of them.",
        "El almacenamiento es una fila de {cells} celdas; {name} lee {read} de ellas.",
    ),
    "reads": (
        "The storage is one row of {cells} cells.",
        "El almacenamiento es una fila de {cells} celdas.",
    ),
    "reads one": (
        "The storage is one cell, and {name} reads it.",
        "El almacenamiento es una sola celda, y {name} la lee.",
    ),
    "no cells": ("The storage has no cells.", "El almacenamiento no tiene celdas."),
    "numbered": (
        "Those it reads are marked, with the order in which it reads them.",
        "Las que lee están marcadas, con el orden en que las lee.",
    ),
    "numbered all": (
        "The order in which it reads them stands with them.",
        "El orden en que las lee está junto a ellas.",
    ),
    "repeats": (
        "Its {elements} elements are in {read} cells: some are read more than once.",
        "Sus {elements} elementos están en {read} celdas: algunas se leen más de una vez.",
    ),
    "not shown": ("{count} cells not shown", "{count} celdas sin mostrar"),
    "cell": ("cell", "celda"),
    "value": ("value", "valor"),
    "order": ("order", "orden"),
    "times": ("times", "veces"),
    "cell title": ("cell {cell}", "celda {cell}"),
    "not read": ("{name} does not read it", "{name} no la lee"),
    "read as": ("element {index}, number {order} in order", "elemento {index}, número {order}"),
    "read times": ("; read {times} times", "; leída {times} veces"),
    "step": ("dim {dim}: +{stride}", "dim {dim}: +{stride}"),
    "steps": ("dims {dim}: +{stride}", "dims {dim}: +{stride}"),
    "memory label": (
        "The storage as memory cells; the cells that {name} reads are marked.",
        "El almacenamiento como celdas de memoria; las que lee {name} están marcadas.",
    ),
    # ---- values
    "this tensor": ("this tensor", "este tensor"),
    "only element": ("Of the only element.", "Del único elemento."),
    "all elements": ("Of all {count} elements.", "De los {count} elementos."),
    "sample": (
        "Of a sample: {looked} of {count} elements, evenly spread.",
        "De una muestra: {looked} de {count} elementos, repartidos por igual.",
    ),
    "magnitude": ("Of the magnitudes.", "De los módulos."),
    "min": ("min", "mín"),
    "max": ("max", "máx"),
    "mean": ("mean", "media"),
    "std": ("std", "desv."),
    "nan": ("NaN", "NaN"),
    "posinf": ("+inf", "+inf"),
    "neginf": ("-inf", "-inf"),
    "zeros": ("zeros", "ceros"),
    "matrix": ("{index} of {of} matrices", "{index} de {of} matrices"),
    "every": (
        "of every {rows} rows and {columns} columns one is shown",
        "de cada {rows} filas y {columns} columnas se muestra una",
    ),
    "every element": ("of every {step} elements one is shown", "de cada {step} elementos, uno"),
    "heat label": ("Heat map of the values", "Mapa de calor de los valores"),
    "histogram label": (
        "Histogram of the values from {low} to {high}",
        "Histograma de los valores de {low} a {high}",
    ),
    "bin": ("from {low} to {high}: {count}", "de {low} a {high}: {count}"),
    "bin one": ("{low}: {count}", "{low}: {count}"),
    "stretched": (
        "; from {low}, black, to {high}, white",
        "; de {low}, negro, a {high}, blanco",
    ),
    "image label": ("The tensor as an image", "El tensor como imagen"),
    "pixels": ("{width} x {height} pixels", "{width} x {height} píxeles"),
    "pixel step": (
        "; of every {step} x {step} pixels one is shown",
        "; de cada {step} x {step} píxeles se muestra uno",
    ),
    "of batch": ("; number {index} of the batch", "; el número {index} del lote"),
    # ---- axes
    "N": ("batch", "lote"),
    "B": ("batch", "lote"),
    "C": ("channels", "canales"),
    "D": ("depth", "profundidad"),
    "H": ("height", "alto"),
    "W": ("width", "ancho"),
    "T": ("time", "tiempo"),
    "L": ("length", "longitud"),
    "E": ("features", "características"),
}


class WordTable(Vocabulary):
    """The table in one language: ``words("starts", cell=3)``."""

    table = WORDS
    asked_by = "inspect"

    def axis(self, name: str) -> str:
        """An axis's name; of the letters of the field with what they stand for."""
        known = len(name) == 1 and name in self.table
        return f"{name} {self(name)}" if known else name
