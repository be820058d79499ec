"""Every sentence of an explanation, in English and in Spanish."""

from __future__ import annotations

LANGUAGES = ("en", "es")

# key: (English, Spanish); {} are filled in where it is said.
WORDS: dict[str, tuple[str, str]] = {
    "line": ("line {number}", "línea {number}"),
    "in": ("in {function}", "en {function}"),
    "rule": ("Rule", "Regla"),
    "fix": ("Fix", "Arreglo"),
    "gives": ("gives {shape}", "da {shape}"),
    "or": ("or: {fix}", "o bien: {fix}"),
    "names": ("On that line", "En esa línea"),
    "layer": ("It happened in the layer {name}: {kind}", "Ocurrió en la capa {name}: {kind}"),
    "did you mean": ("Did you mean {name!r}?", "¿Querías decir {name!r}?"),
    "cause": ("It was caused by {error}", "Su causa fue {error}"),
    "context": (
        "It came up while this was handled: {error}",
        "Surgió mientras se trataba: {error}",
    ),
    "group": ("{count} errors together:", "{count} errores juntos:"),
    "no text": ("(its text cannot be shown)", "(su texto no se puede mostrar)"),
    "no error": ("{kind} is no exception", "{kind} no es una excepción"),
    "source unknown": ("the source is not known", "no se conoce el código fuente"),
    "on": ("{dtype} on {device}", "{dtype} en {device}"),
    # ---- shapes
    "matmul": (
        "In a @ b the last size of a must equal the second last size of b (its only one, where b "
        "is a vector).",
        "En a @ b el último tamaño de a debe ser igual al penúltimo de b (al único, si b es un "
        "vector).",
    ),
    "batch dims": (
        "The sizes before the last two are broadcast: each pair must be equal, or one of them 1.",
        "Los tamaños anteriores a los dos últimos se difunden: cada par debe ser igual, o uno de "
        "ellos 1.",
    ),
    "vectors": (
        "Two vectors can be multiplied when they have the same number of elements.",
        "Dos vectores se multiplican si tienen el mismo número de elementos.",
    ),
    "two dims": (
        "{op} takes matrices of {wanted} dims, and {label} has {ndim}.",
        "{op} toma matrices de {wanted} dimensiones y {label} tiene {ndim}.",
    ),
    "linear": (
        "A linear layer takes inputs whose last size is its in_features, {wanted}; this input has "
        "{got}.",
        "Una capa lineal toma entradas cuyo último tamaño es su in_features, {wanted}; esta "
        "entrada tiene {got}.",
    ),
    "broadcast": (
        "Sizes are compared from the right: each pair must be equal, or one of them 1.",
        "Los tamaños se comparan desde la derecha: cada par debe ser igual, o uno de ellos 1.",
    ),
    "same shape needed": (
        "No size of 1 can be stretched here: make the marked sizes equal.",
        "Aquí no hay un tamaño 1 que se pueda estirar: iguala los tamaños marcados.",
    ),
    "expand": (
        "expand() stretches sizes of 1 only; all others must stay as they are.",
        "expand() solo estira tamaños 1; los demás deben quedar como están.",
    ),
    "count": (
        "A new shape must have as many elements as the old one: {old} = {have}, {new} = {want}.",
        "La forma nueva debe tener tantos elementos como la anterior: {old} = {have}, "
        "{new} = {want}.",
    ),
    "contiguous": (
        "view() only renames memory as it lies. {label} has strides {strides}, not those of a "
        "contiguous tensor, {wanted}, and its elements are not in order; reshape() copies them "
        "where it must.",
        "view() solo reinterpreta la memoria tal como está. {label} tiene strides {strides}, no "
        "los de un tensor contiguo, {wanted}, y sus elementos no están en orden; reshape() los "
        "copia si hace falta.",
    ),
    "cat": (
        "Tensors that are joined along dim {dim} must agree in all other sizes.",
        "Los tensores que se unen por la dimensión {dim} deben coincidir en los demás tamaños.",
    ),
    "same dims": (
        "Tensors that are joined must have the same number of dims.",
        "Los tensores que se unen deben tener el mismo número de dimensiones.",
    ),
    "square": (
        "The last two sizes must be equal: a square matrix.",
        "Los dos últimos tamaños deben ser iguales: una matriz cuadrada.",
    ),
    "stack": (
        "stack() makes a new dim: all its tensors must have one and the same shape.",
        "stack() crea una dimensión nueva: todos sus tensores deben tener la misma forma.",
    ),
    "channels": (
        "This convolution takes {wanted} channels; in {layout} the input has {got}.",
        "Esta convolución toma {wanted} canales; en {layout} la entrada tiene {got}.",
    ),
    "batch": (
        "An input of N rows needs N targets: {rows} rows, {targets} targets.",
        "Una entrada de N filas necesita N objetivos: {rows} filas, {targets} objetivos.",
    ),
    # ---- devices and dtypes
    "device": (
        "An operation runs on one device, with all its tensors there; nothing is moved by itself.",
        "Una operación se ejecuta en un solo dispositivo, con todos sus tensores en él; nada se "
        "mueve por sí solo.",
    ),
    "meta": (
        "A tensor on meta has a shape and no elements: nothing can be moved from there.",
        "Un tensor en meta tiene forma pero no elementos: de ahí no se puede mover nada.",
    ),
    "no device": (
        "This machine, or this version of antorcha, has no such device.",
        "Esta máquina, o esta versión de antorcha, no tiene ese dispositivo.",
    ),
    "dtype": (
        "This operation wants one dtype for all its operands; none is converted by itself.",
        "Esta operación quiere un mismo dtype en todos sus operandos; ninguno se convierte solo.",
    ),
    "index dtype": (
        "An index counts elements: its dtype must be an integer (or bool, for a mask).",
        "Un índice cuenta elementos: su dtype debe ser entero (o bool, si es una máscara).",
    ),
    "integer index": (
        "This index must be an int32 or int64 tensor.",
        "Este índice debe ser un tensor int32 o int64.",
    ),
    "needs float": (
        "This computes with real numbers, and {label} holds {dtype}.",
        "Esto calcula con números reales y {label} contiene {dtype}.",
    ),
    "needs mask": (
        "A mask says yes or no for each element: its dtype must be bool.",
        "Una máscara dice sí o no para cada elemento: su dtype debe ser bool.",
    ),
    "int grad": (
        "Only floating point (or complex) numbers change smoothly, so only they have a gradient.",
        "Solo los números de coma flotante (o complejos) varían de forma continua: solo ellos "
        "tienen gradiente.",
    ),
    # ---- dims and indices
    "dim": (
        "A tensor of {ndim} dims has dims {low} to {high}; {given} is none of them.",
        "Un tensor de {ndim} dimensiones tiene las dimensiones {low} a {high}; {given} no está.",
    ),
    "index": (
        "A dim of size {size} has indices {low} to {high}; {given} is none of them.",
        "Una dimensión de tamaño {size} tiene índices de {low} a {high}; {given} no está.",
    ),
    "too many": (
        "There can be one index for each dim: {given} indices for {ndim}.",
        "Puede haber un índice por dimensión: {given} índices para {ndim}.",
    ),
    "class": (
        "Classes are numbered from 0: with {count} of them a target is 0 to {high}.",
        "Las clases se numeran desde 0: con {count}, un objetivo va de 0 a {high}.",
    ),
    # ---- autograd
    "scalar": (
        "backward() starts at a single number; {label} has {count}.",
        "backward() parte de un solo número; {label} tiene {count}.",
    ),
    "second": (
        "backward() gives back what the graph had kept. A second pass needs retain_graph=True in "
        "the first, or, in a loop, the graph built anew in every turn.",
        "backward() libera lo que el grafo guardaba. Una segunda pasada necesita "
        "retain_graph=True en la primera o, en un bucle, construir el grafo en cada vuelta.",
    ),
    "leaf": (
        "A leaf's gradient is with respect to the value it was made with: autograd lets nobody "
        "overwrite it, unless told not to look.",
        "El gradiente de una hoja es respecto al valor con que se creó: autograd no permite "
        "sobrescribirlo, salvo que se le diga que no mire.",
    ),
    "overwritten": (
        "A value that the graph keeps for backward was written to afterwards.",
        "Se escribió sobre un valor que el grafo guarda para backward.",
    ),
    "no graph": (
        "Nothing that {label} was computed from has requires_grad=True, so there is no graph.",
        "Nada de lo que produjo {label} tiene requires_grad=True, así que no hay grafo.",
    ),
    "numpy": (
        "NumPy records no gradients: take the values out of the graph first.",
        "NumPy no registra gradientes: primero hay que sacar los valores del grafo.",
    ),
    "item": (
        "item() is for one element; {label} has {count}.",
        "item() es para un solo elemento; {label} tiene {count}.",
    ),
    "truth": (
        "One true or false cannot stand for {count} elements: ask whether all, or any, are true.",
        "Un solo verdadero o falso no vale por {count} elementos: pregunta si todos o alguno lo "
        "son.",
    ),
}


def say(lang: str, key: str, **values: object) -> str:
    """A sentence in a language."""
    return WORDS[key][LANGUAGES.index(lang)].format(**values)
