"""Every sentence of an explanation, in English and in Spanish."""

from __future__ import annotations

from antorcha.inspector.vocabulary import Vocabulary

# key: (English, Spanish); {} are filled in where it is said.
WORDS: dict[str, tuple[str, str]] = {
    "line": ("line {number}", "línea {number}"),
    "cell": ("cell {cell}", "celda {cell}"),
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
    "one dim": (
        "{op} takes vectors, and {label} has {ndim} dims.",
        "{op} toma vectores y {label} tiene {ndim} dimensiones.",
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
    # ---- losses and layers
    "class dtype": (
        "A class is told by its number: the targets must be int64, and these are {dtype}.",
        "Una clase se indica por su número: los objetivos deben ser int64 y estos son {dtype}.",
    ),
    "class shape": (
        "There is one class number for each row, shape {wanted}; or a probability for each class, "
        "as floats of the input's shape {shape}.",
        "Hay un número de clase por fila, forma {wanted}; o una probabilidad por clase, en coma "
        "flotante y con la forma {shape} de la entrada.",
    ),
    "same size": (
        "This loss compares element by element: both tensors must have one and the same shape.",
        "Esta pérdida compara elemento a elemento: ambos tensores deben tener la misma forma.",
    ),
    "probabilities": (
        "This loss takes probabilities, from 0 to 1. Scores as a layer gives them go to the form "
        "with logits, which is also more exact.",
        "Esta pérdida toma probabilidades, de 0 a 1. Las puntuaciones que da una capa van a la "
        "forma con logits, que además es más exacta.",
    ),
    "table": (
        "A table of {size} rows has rows 0 to {high}; {given} is none of them.",
        "Una tabla de {size} filas tiene las filas 0 a {high}; {given} no está.",
    ),
    "index dims": (
        "The index needs as many dims as the tensor, {ndim}; it has {given}.",
        "El índice necesita tantas dimensiones como el tensor, {ndim}; tiene {given}.",
    ),
    "letter": (
        "A letter stands for one size: {letter} is {one} in one operand and {two} in another.",
        "Una letra vale por un solo tamaño: {letter} es {one} en un operando y {two} en otro.",
    ),
    "last sizes": (
        "This layer normalises the last dims, which must have the sizes {wanted}.",
        "Esta capa normaliza las últimas dimensiones, que deben tener los tamaños {wanted}.",
    ),
    "one value": (
        "While training, batch normalisation needs several values for each channel: the variance "
        "of one is 0. Give larger batches, or use what was learnt: eval().",
        "Al entrenar, la normalización por lotes necesita varios valores por canal: la varianza de "
        "uno solo es 0. Usa lotes mayores, o lo aprendido: eval().",
    ),
    "norm dims": (
        "{kind} is for inputs of another number of dims: 1d takes (N, C) or (N, C, L), 2d takes "
        "(N, C, H, W), 3d takes (N, C, D, H, W).",
        "{kind} es para entradas con otro número de dimensiones: 1d toma (N, C) o (N, C, L), 2d "
        "toma (N, C, H, W), 3d toma (N, C, D, H, W).",
    ),
    "conv dims": (
        "A convolution takes one input {one}, or a batch {many}.",
        "Una convolución toma una entrada {one}, o un lote {many}.",
    ),
    "window": (
        "The window must fit into the input (with its padding).",
        "La ventana debe caber en la entrada (con su relleno).",
    ),
    # ---- optimizers, checkpoints, constructors
    "no parameters": (
        "An optimizer needs what it is to change: model.parameters(). Layers in a plain list are "
        "not found there; nn.ModuleList holds them.",
        "Un optimizador necesita lo que ha de cambiar: model.parameters(). Las capas en una lista "
        "común no aparecen ahí; nn.ModuleList las contiene.",
    ),
    "list of parameters": (
        "An optimizer takes several tensors: a list, or model.parameters().",
        "Un optimizador toma varios tensores: una lista, o model.parameters().",
    ),
    "computed parameter": (
        "{label} was computed: a step would be lost with the next computation. An optimizer "
        "changes leaves.",
        "{label} es resultado de un cálculo: un paso se perdería con el siguiente. Un optimizador "
        "cambia hojas.",
    ),
    "checkpoint names": (
        "The checkpoint has other names than the model: it was saved from another class, or from a "
        "part or a wrapper of it.",
        "El punto de control tiene otros nombres que el modelo: se guardó desde otra clase, o "
        "desde una parte o una envoltura suya.",
    ),
    "checkpoint sizes": (
        "The checkpoint has other sizes than the model: build the model with those it was saved "
        "with.",
        "El punto de control tiene otros tamaños que el modelo: construye el modelo con los que "
        "tenía al guardarse.",
    ),
    "super": (
        "A module must call super().__init__() before it gets layers or parameters.",
        "Un módulo debe llamar a super().__init__() antes de recibir capas o parámetros.",
    ),
    "forward": (
        "Calling a module runs its forward(self, x): the class has none (or it is indented "
        "wrongly, or misspelt).",
        "Llamar a un módulo ejecuta su forward(self, x): la clase no lo tiene (o está mal "
        "sangrado, o mal escrito).",
    ),
    "tensor wanted": (
        "A tensor is needed here, and this is a {kind}; it is not converted by itself.",
        "Aquí hace falta un tensor y esto es {kind}; no se convierte solo.",
    ),
    "ragged": (
        "A tensor is a full box of numbers: the lists of one depth must be equally long.",
        "Un tensor es una caja llena de números: las listas de un mismo nivel deben tener la misma "
        "longitud.",
    ),
    "size wanted": (
        "Sizes are whole numbers, not tensors.",
        "Los tamaños son números enteros, no tensores.",
    ),
    "backwards": (
        "A tensor cannot run backwards through memory; a copy lies in order.",
        "Un tensor no puede recorrer la memoria hacia atrás; una copia queda en orden.",
    ),
    "dimension out of range": (
        "A Sobol sequence has direction numbers for 1 to {most} coordinates.",
        "Una sucesión de Sobol tiene números de dirección para 1 a {most} coordenadas.",
    ),
    "not a power of 2": (
        "The points of a Sobol sequence are balanced when their number is a power of 2, counted "
        "from the first.",
        "Los puntos de una sucesión de Sobol están equilibrados cuando su número es una potencia "
        "de 2, contados desde el primero.",
    ),
    "no length": (
        "A tensor without dims is one number: it has no length, and nothing to loop over.",
        "Un tensor sin dimensiones es un solo número: no tiene longitud ni nada que recorrer.",
    ),
    "mask shape": (
        "A mask has the sizes of the dims that it stands for, from the first on.",
        "Una máscara tiene los tamaños de las dimensiones que representa, desde la primera.",
    ),
    "permute": (
        "permute() puts all dims in order: it takes {ndim} numbers, each dim once.",
        "permute() ordena todas las dimensiones: toma {ndim} números, cada dimensión una vez.",
    ),
    # ---- Python's own
    "not called": (
        "{name} is a method: it gives what is wanted when it is called, with parentheses.",
        "{name} es un método: da lo que se busca al llamarlo, con paréntesis.",
    ),
    "no call": (
        "{name} is a value, not a function: it takes no parentheses.",
        "{name} es un valor, no una función: no lleva paréntesis.",
    ),
    "text": (
        "A text can be joined with a text only: str() makes one, and so does an f-string.",
        "Un texto solo se une con otro texto: str() crea uno, y también una f-string.",
    ),
    "two results": (
        "Along a dim this gives two tensors, the values and their indices.",
        "A lo largo de una dimensión esto da dos tensores, los valores y sus índices.",
    ),
    "each element": (
        "and, or, not ask for one true or false; for each element by itself there are &, | and ~, "
        "with parentheses around comparisons.",
        "and, or, not piden un solo verdadero o falso; para cada elemento por separado están &, | "
        "y ~, con paréntesis alrededor de las comparaciones.",
    ),
    "bits": (
        "&, | and ^ are for integers and bools. They bind tighter than comparisons: write "
        "(x > 0) & (x < 2).",
        "&, | y ^ son para enteros y booleanos. Ligan más fuerte que las comparaciones: escribe "
        "(x > 0) & (x < 2).",
    ),
    "bool numbers": (
        "Truth values are not subtracted: ~ inverts a mask, ^ tells where two masks differ.",
        "Los valores de verdad no se restan: ~ invierte una máscara, ^ dice dónde difieren dos.",
    ),
    "keeps dtype": (
        "A write in place keeps the tensor's dtype, which cannot hold this result.",
        "Una escritura en el sitio conserva el dtype del tensor, que no admite este resultado.",
    ),
    "list of tensors": (
        "The tensors to join come as one list.",
        "Los tensores que se unen van en una sola lista.",
    ),
    "scale": (
        "@ multiplies matrices and vectors; a single number scales with *.",
        "@ multiplica matrices y vectores; un solo número escala con *.",
    ),
    "one -1": (
        "-1 stands for the one size that follows from the others: there can be only one.",
        "-1 vale por el único tamaño que se deduce de los demás: solo puede haber uno.",
    ),
    "dtype object": (
        "A dtype is an object such as torch.float32, not its name.",
        "Un dtype es un objeto como torch.float32, no su nombre.",
    ),
    "parameter wanted": (
        "A layer's parameter is replaced by a parameter only: nn.Parameter(tensor). To write new "
        "values into it: with torch.no_grad(): layer.weight.copy_(tensor).",
        "Un parámetro de una capa solo se reemplaza por otro: nn.Parameter(tensor). Para escribir "
        "valores nuevos en él: with torch.no_grad(): capa.weight.copy_(tensor).",
    ),
    "no array": (
        "NumPy has no {dtype}.",
        "NumPy no tiene {dtype}.",
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
    "class range": (
        "These go from {low} to {high}.",
        "Estos van de {low} a {high}.",
    ),
    "class outputs": (
        "The model must give {count} scores for each row.",
        "El modelo debe dar {count} puntuaciones por fila.",
    ),
    # ---- data, memory
    "dataset": (
        "Row i of every tensor belongs to sample i: all must have the same size in dim 0, and "
        "these have {counts}.",
        "La fila i de cada tensor es de la muestra i: todos deben tener el mismo tamaño en la "
        "dimensión 0 y estos tienen {counts}.",
    ),
    "samples": (
        "A batch stacks its samples: they must have one and the same shape. Cut or pad them to one "
        "length in the dataset, or give the loader a collate_fn (collate_fn=list leaves them as a "
        "list).",
        "Un lote apila sus muestras: deben tener todas la misma forma. Recórtalas o rellénalas "
        "hasta una misma longitud en el dataset, o da al cargador una collate_fn "
        "(collate_fn=list las deja en una lista).",
    ),
    "sample": ("sample {number}", "muestra {number}"),
    "memory": (
        "There is no memory left; tensors hold {held}.",
        "No queda memoria; los tensores ocupan {held}.",
    ),
    "memory asked": (
        "This asks for {asked} at once, and tensors hold {held} already.",
        "Esto pide {asked} de una vez y los tensores ya ocupan {held}.",
    ),
    "memory machine": (
        "The whole machine has {has}: no order of computing makes this fit; are the sizes meant?",
        "La máquina entera tiene {has}: no hay forma de que quepa; ¿son esos los tamaños?",
    ),
    "memory less": (
        "Smaller batches take less, as do {torch}.no_grad() where nothing is trained, and `del` of "
        "what is no longer needed.",
        "Ocupan menos unos lotes más pequeños, {torch}.no_grad() donde no se entrena y `del` de lo "
        "que ya no hace falta.",
    ),
    "largest": ("The largest tensors:", "Los tensores más grandes:"),
    "no name": ("(no name)", "(sin nombre)"),
    # ---- brackets
    "never closed": (
        "Every {open} needs its {close}: this one is never closed.",
        "Cada {open} necesita su {close}: este no se cierra nunca.",
    ),
    "wrong bracket": (
        "Brackets close in pairs, the last opened first: {close} cannot close {open}.",
        "Los paréntesis se cierran por parejas, primero el último que se abrió: {close} no puede "
        "cerrar {open}.",
    ),
    "unmatched": (
        "Nothing that is open can be closed by this {close}.",
        "No hay nada abierto que este {close} pueda cerrar.",
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
    "first call": (
        "It belongs into the first call, in line {number}.",
        "Va en la primera llamada, en la línea {number}.",
    ),
    "leaf": (
        "A leaf's gradient is with respect to the value it was made with: autograd lets nobody "
        "overwrite it, unless told not to look.",
        "El gradiente de una hoja es respecto al valor con que se creó: autograd no permite "
        "sobrescribirlo, salvo que se le diga que no mire.",
    ),
    "overwritten": (
        "A value that the graph keeps for backward was written to afterwards: y += 1 and y.add_(1) "
        "write, y = y + 1 makes a new tensor.",
        "Se escribió sobre un valor que el grafo guarda para backward: y += 1 e y.add_(1) "
        "escriben, y = y + 1 crea un tensor nuevo.",
    ),
    "no graph": (
        "Nothing that {label} was computed from has requires_grad=True, so there is no graph.",
        "Nada de lo que produjo {label} tiene requires_grad=True, así que no hay grafo.",
    ),
    "inference": (
        "What inference mode has made stays out of every graph; a clone made outside of it may "
        "take part.",
        "Lo hecho en modo de inferencia queda fuera de todo grafo; un clon hecho fuera de él sí "
        "puede participar.",
    ),
    "deep copy": (
        "A copy of what was computed would need a copy of its graph; the values alone can be "
        "copied.",
        "Copiar algo calculado exigiría copiar su grafo; los valores solos sí se pueden copiar.",
    ),
    "computed flag": (
        "What is computed from tensors with gradients has one, too; detach() gives the values "
        "without the graph.",
        "Lo que se calcula a partir de tensores con gradiente también lo tiene; detach() da los "
        "valores sin el grafo.",
    ),
    "gradient shape": (
        "The gradient that backward() starts with has the shape of the tensor itself.",
        "El gradiente con el que empieza backward() tiene la forma del propio tensor.",
    ),
    "grad not kept": (
        "{label} was computed, and its gradient is used up on the way: ask for it with "
        "retain_grad() before backward().",
        "{label} es resultado de un cálculo y su gradiente se consume por el camino: pídelo con "
        "retain_grad() antes de backward().",
    ),
    "grad unwanted": (
        "{label} has no requires_grad=True, so backward() leaves its .grad None.",
        "{label} no tiene requires_grad=True, así que backward() deja su .grad en None.",
    ),
    "grad not yet": (
        "{label}.grad is None until backward() has come there (zero_grad() makes it None again).",
        "{label}.grad es None hasta que backward() llega ahí (zero_grad() lo vuelve a dejar en "
        "None).",
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


class ExplainWords(Vocabulary):
    """The table in one language."""

    table = WORDS
    asked_by = "explain"


def say(lang: str, key: str, **values: object) -> str:
    """A sentence in a language."""
    return ExplainWords(lang)(key, **values)
