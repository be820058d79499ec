"""Every word of the lab's page, in English and in Spanish.

Nothing else in the lab holds text that a learner reads, but the lessons, the drawings of
`antorcha.inspect` and its kin, and Python's own messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from antorcha.inspector.vocabulary import Vocabulary, spoken

WORDS: dict[str, tuple[str, str]] = {
    # the page
    "title": ("antorcha lab", "antorcha lab"),
    "course": ("Course", "Curso"),
    "lesson": ("Lesson", "Lección"),
    "code": ("Code", "Código"),
    "inside": ("Inside", "Por dentro"),
    "files": ("Your files", "Tus archivos"),
    "new_file": ("New file", "Archivo nuevo"),
    "new_file_name": ("Name, such as try.py", "Nombre, por ejemplo prueba.py"),
    "bad_name": ("a name such as try.py: letters, digits, _ and -, and .py at the end",
                 "un nombre como prueba.py: letras, cifras, _ y -, y .py al final"),
    "minutes": ("{0} min", "{0} min"),
    "menu": ("Lessons and files", "Lecciones y archivos"),
    "theme": ("Light or dark", "Claro u oscuro"),
    "language": ("Language", "Idioma"),
    "about": (
        "Programs run on this computer with your rights, as if you had started them yourself. "
        "Only run code that you trust.",
        "Los programas se ejecutan en este ordenador con tus permisos, como si los lanzaras tú. "
        "Ejecuta solo código en el que confíes.",
    ),
    "no_lesson": ("There is no lesson of that name.", "No hay ninguna lección con ese nombre."),
    "no_file": ("There is no file of that name.", "No hay ningún archivo con ese nombre."),
    "lesson_broken": ("A lesson cannot be read:", "No se puede leer una lección:"),
    "next": ("Next: {0}", "Siguiente: {0}"),
    "lesson_of": ("Lesson {0} of {1}", "Lección {0} de {1}"),
    "course_left": ("{0} of {1} lessons done; about {2} left",
                    "{0} de {1} lecciones hechas; quedan unas {2}"),
    "here": ("You are here", "Estás aquí"),
    "begun": ("begun", "empezada"),
    "answered": ("{0} of {1} questions", "{0} de {1} preguntas"),
    "contents": ("Contents", "Contenido"),
    "maximise": ("Show this part in full", "Ver esta parte entera"),
    "restore": ("Show all parts", "Ver todas las partes"),
    "split_lesson": ("Width of the lesson", "Anchura de la lección"),
    "split_rows": ("Height of the editor", "Altura del editor"),
    "split_low": ("Width of the terminal", "Anchura de la terminal"),
    "split_hint": ("Drag, or use the arrow keys; a double click gives the usual size",
                   "Arrastra, o usa las flechas; con doble clic vuelve al tamaño habitual"),
    "too_long": ("This is too much text to be sent at once.",
                 "Es demasiado texto para enviarlo de una vez."),
    # home
    "home": ("Home", "Inicio"),
    "goal": ("A network that reads your digits", "Una red que lee tus cifras"),
    "goal_says": (
        "This is where the course leads. Draw a digit: the network reads it while you draw. You "
        "will build it yourself, in five stages along the lessons.",
        "A esto lleva el curso. Dibuja una cifra: la red la lee mientras dibujas. La construirás "
        "tú, en cinco etapas a lo largo de las lecciones.",
    ),
    "goal_wait": ("The network is learning, a moment…", "La red está aprendiendo, un momento…"),
    "goal_ready": ("Draw a digit here", "Dibuja aquí una cifra"),
    "goal_failed": ("The network could not be trained; the lessons work all the same.",
                    "No se pudo entrenar la red; las lecciones funcionan igual."),
    "stage_1": ("Pictures as tensors", "Imágenes como tensores"),
    "stage_2": ("Read by comparing with averages", "Leer comparando con medias"),
    "stage_3": ("A network that learns", "Una red que aprende"),
    "stage_4": ("A network with filters", "Una red con filtros"),
    "stage_5": ("Saved, loaded, and reading yours", "Guardada, cargada y leyendo las tuyas"),
    "stage_open": ("You have all that it takes", "Ya tienes todo lo que pide"),
    "stage_after": ("after “{0}”", "tras «{0}»"),
    "go_on": ("Go on: {0}. {1}", "Seguir: {0}. {1}"),
    "go_begin": ("Begin: {0}. {1}", "Empezar: {0}. {1}"),
    "redo": ("Answers to redo", "Respuestas por repetir"),
    "redo_says": ("Answered wrongly so far: {0}. Another try?",
                  "Mal respondidas hasta ahora: {0}. ¿Otro intento?"),
    # the editor
    "run": ("Run", "Ejecutar"),
    "run_hint": ("Run the program (Ctrl+Enter)", "Ejecutar el programa (Ctrl+Intro)"),
    "stop": ("Stop", "Parar"),
    "stop_hint": ("Stop the program", "Parar el programa"),
    "reset": ("Reset", "Reiniciar"),
    "reset_hint": ("Begin again: the process, or the text",
                   "Empezar de nuevo: el proceso o el texto"),
    "reset_process": ("New process", "Proceso nuevo"),
    "reset_process_hint": ("Empty terminal, no tensors; your text stays",
                           "Terminal vacía, sin tensores; tu texto se queda"),
    "reset_text": ("Starter code", "Código inicial"),
    "reset_text_hint": ("As the lesson gave it; your text is kept in a file of its own",
                        "Como lo dio la lección; tu texto se guarda en otro archivo"),
    "reset_back": ("Your text again", "Tu texto otra vez"),
    "reset_back_hint": ("What was kept when you last began again",
                        "Lo que se guardó la última vez que empezaste de nuevo"),
    "kept_as": ("What you wrote is kept in {0}.", "Lo que escribiste está guardado en {0}."),
    "editor": ("Editor: {0}. Escape and then Tab leaves it.",
               "Editor: {0}. Con Escape y luego Tab se sale."),
    "hints": ("Shapes beside lines (F2)", "Formas junto a las líneas (F2)"),
    "grip": ("Move the number", "Mover el número"),
    "grip_hint": ("Drag, or use the arrow keys: the program runs as the number moves",
                  "Arrastra, o usa las flechas: el programa se ejecuta mientras cambia el número"),
    "ended_refused": ("> Not run while the number moves.",
                      "> No se ejecuta mientras el número cambia."),
    "saved": ("Saved", "Guardado"),
    "unsaved": ("Not saved yet", "Sin guardar"),
    "save_again": ("Try again", "Intentarlo otra vez"),
    "save_to": ("Save to folder", "Guardar en la carpeta"),
    "folder": ("Folder", "Carpeta"),
    "try_it": ("Put in the editor", "Poner en el editor"),
    "cell_run": ("Run the lesson up to here", "Ejecutar la lección hasta aquí"),
    "cell_busy": ("Something else is running. Stop it first, or wait.",
                  "Hay otra cosa en marcha. Párala antes, o espera."),
    "cell_changed": ("Made or changed here", "Creado o cambiado aquí"),
    "cell_more": ("and {0} more", "y {0} más"),
    "predict": ("What will it print?", "¿Qué imprimirá?"),
    "predict_hint": ("Say it first; then it shows.", "Dilo antes; después se ve."),
    "predict_say": ("Say it", "Decirlo"),
    "predict_right": ("You said so. Right.", "Así lo dijiste. Correcto."),
    "predict_wrong": ("You said {0}; it prints this:", "Dijiste {0}; imprime esto:"),
    # the terminal
    "run_line": ("> python {0}", "> python {0}"),
    "run_measured": ("> python {0} (measured)", "> python {0} (midiendo)"),
    "exit_code": ("exit code {0}", "código de salida {0}"),
    "terminal": ("Terminal", "Terminal"),
    "ready": ('> Ready. Click "Run" to execute.', '> Listo. Pulsa "Ejecutar" para empezar.'),
    "input": ("The program waits for a line", "El programa espera una línea"),
    "send": ("Send", "Enviar"),
    "starting": ("Starting…", "Arrancando…"),
    "running": ("Running…", "En marcha…"),
    "stopping": ("Stopping…", "Parando…"),
    "checking": ("Checking…", "Comprobando…"),
    "ended_ok": ("> Done in {0}.", "> Hecho en {0}."),
    "ended_error": ("> It ended with an error after {0}.", "> Terminó con un error a los {0}."),
    "ended_exit": ("> The program ended itself.", "> El programa terminó por sí mismo."),
    "ended_stopped": ("> Stopped.", "> Parado."),
    "ended_reset": ("> Reset.", "> Reiniciado."),
    "ended_time": ("> Stopped: it took longer than a run may take.",
                   "> Parado: tardó más de lo que puede durar una ejecución."),
    "ended_memory": ("> Ended: it took more memory than a run may take.",
                     "> Terminado: ocupó más memoria de la que puede ocupar una ejecución."),
    "ended_killed": (
        "> Ended: the program did not react to Stop. The next run begins with a new process.",
        "> Terminado: el programa no reaccionó a Parar. La próxima vez empezará otro proceso.",
    ),
    "ended_crashed": (
        "> The process crashed ({0}). Your text is safe; the next run begins with a new one.",
        "> El proceso se cayó ({0}). Tu texto está a salvo; la próxima vez empezará otro.",
    ),
    "ended_failed": ("> The program could not be started: {0}",
                     "> No se pudo arrancar el programa: {0}"),
    "ended_untold": ("> It ran, but what it left cannot be shown: {0}",
                     "> Se ejecutó, pero lo que dejó no se puede mostrar: {0}"),
    "threads_left": (
        "> Threads that it started go on ({0}). Reset or the next run ends them.",
        "> Siguen en marcha hilos que empezó ({0}). Se terminan al reiniciar o volver a ejecutar.",
    ),
    # the inspector and its neighbours
    "inspector": ("Tensor inspector", "Inspector de tensores"),
    "tab_inspector": ("Inspector", "Inspector"),
    "tab_model": ("Model", "Modelo"),
    "tab_profiler": ("Profiler", "Perfil"),
    "run_program": ("Run the program", "Ejecutar el programa"),
    "empty_lesson": ("The lesson about it: {0}", "La lección que lo cuenta: {0}"),
    "no_pictures": ("What a program draws with matplotlib shows here.",
                    "Aquí se ve lo que un programa dibuje con matplotlib."),
    "live": ("Live", "En vivo"),
    "no_tensors": ("Run code to inspect active tensors",
                   "Ejecuta código para inspeccionar los tensores activos"),
    "many_tensors": ("The first {0} tensors of the program.",
                     "Los primeros {0} tensores del programa."),
    "none_left": ("The program left no tensors.", "El programa no dejó ningún tensor."),
    "open_tensor": ("Look inside {0}", "Mirar dentro de {0}"),
    "gone": ("{0} is not there any more.", "{0} ya no existe."),
    "cannot_show": ("This cannot be shown: {0}", "Esto no se puede mostrar: {0}"),
    "no_answer": ("no answer came", "no llegó respuesta"),
    "explanation": ("What went wrong: {0}", "Qué ha fallado: {0}"),
    "fix": ("Fix:", "Arreglo:"),
    "fix_gives": ("Fix (gives {0}):", "Arreglo (da {0}):"),
    "fix_or": ("Or:", "O bien:"),
    "fix_or_gives": ("Or (gives {0}):", "O bien (da {0}):"),
    "apply": ("Apply", "Aplicar"),
    "apply_code": ("Apply: {0}", "Aplicar: {0}"),
    "applied": ("Applied:", "Aplicado:"),
    "undo": ("Undo", "Deshacer"),
    "graph": ("Graph", "Grafo"),
    "no_graph": (
        "After a run, the graph of a tensor that was computed with requires_grad=True.",
        "Tras ejecutar, el grafo de un tensor calculado con requires_grad=True.",
    ),
    "graph_of": ("Graph of", "Grafo de"),
    "graph_lines": ("Run again, with lines and modules", "Ejecutar otra vez, con líneas y módulos"),
    "graph_lines_hint": ("Notes which line of the program made each operation; it runs slower",
                         "Anota qué línea del programa hizo cada operación; va más despacio"),
    "loss": ("Loss", "Pérdida"),
    "no_loss": (
        "While a program trains: the curve of every number that it calls loss.",
        "Mientras un programa entrena: la curva de cada número que llame loss.",
    ),
    "loss_curve": ("{0}: {1} steps, now {2}", "{0}: {1} pasos, ahora {2}"),
    "more_curves": ("not drawn: {0}", "sin dibujar: {0}"),
    "loss_gap": (" (NaN or infinite for the first time in step {0}: the training diverges)",
                 " (NaN o infinito por primera vez en el paso {0}: el entrenamiento diverge)"),
    "step": ("step", "paso"),
    "film": ("Film of the training", "Película del entrenamiento"),
    "film_step": ("after {0} of {1} steps", "tras {0} de {1} pasos"),
    "film_of": ("Parameter", "Parámetro"),
    "film_play": ("Play", "Reproducir"),
    "film_pause": ("Pause", "Pausa"),
    "film_weight": ("Values", "Valores"),
    "film_gradient": ("Gradient", "Gradiente"),
    "film_histogram": ("Histogram of the values", "Histograma de los valores"),
    "film_plane": ("The plane, as the network sees it", "El plano, como lo ve la red"),
    "pin": ("Pin this curve", "Fijar esta curva"),
    "unpin": ("Unpin the grey curve", "Soltar la curva gris"),
    "grey_before": ("grey: the run before", "en gris: la ejecución anterior"),
    "grey_pinned": ("grey: the pinned run", "en gris: la ejecución fijada"),
    "loss_axis": ("loss", "pérdida"),
    "loss_axis_log": ("loss (log scale)", "pérdida (escala log.)"),
    "profiler": ("Profiler", "Perfilador"),
    "profile_run": ("Run and measure", "Ejecutar y medir"),
    "no_profile": ("What every operation of the program takes, without the time of compiling.",
                   "Lo que tarda cada operación del programa, sin contar la compilación."),
    "profile_op": ("Operation", "Operación"),
    "profile_calls": ("Calls", "Llamadas"),
    "profile_own_time": ("Own time", "Tiempo propio"),
    "profile_share": ("Share", "Parte"),
    "profile_whole_time": ("With what it called", "Con lo que llamó"),
    "profile_mean_time": ("Per call", "Por llamada"),
    "profile_told": ("Own time is without that of the operations inside.",
                     "El tiempo propio no cuenta el de las operaciones que hay dentro."),
    "profile_more": ("{0} more are not shown.", "Hay {0} más, que no se muestran."),
    "pictures": ("Pictures", "Imágenes"),
    "picture": ("Picture {0} of the program", "Imagen {0} del programa"),
    "lit_element": ("element [{0}]: cell {1} of the memory",
                    "elemento [{0}]: celda {1} de la memoria"),
    "lit_cell": ("cell {1} of the memory: elements {0}", "celda {1} de la memoria: elementos {0}"),
    "lit_free": ("cell {0} of the memory: no element shown",
                 "celda {0} de la memoria: ningún elemento a la vista"),
    # pictures of one's own model
    "model": ("Your model", "Tu modelo"),
    "no_model": (
        "After a run, your network from inside: its layers, what it reads in your drawing, its "
        "plane, its attention.",
        "Tras ejecutar, tu red por dentro: sus capas, lo que lee en tu dibujo, su plano, su "
        "atención.",
    ),
    "model_of": ("Model", "Modelo"),
    "attention_of": ("Shares", "Pesos"),
    "view": ("Picture", "Imagen"),
    "view_flow": ("Layers", "Capas"),
    "view_pad": ("Pad", "Pizarra"),
    "view_plane": ("Plane", "Plano"),
    "view_attention": ("Attention", "Atención"),
    "view_open": ("Open this picture of your model", "Abrir esta imagen de tu modelo"),
    "view_says_flow": ("What each layer of your network makes of an example.",
                       "Lo que hace cada capa de tu red con un ejemplo."),
    "view_says_pad": ("Draw with the mouse or a finger: your network reads it on every move.",
                      "Dibuja con el ratón o el dedo: tu red lo lee a cada trazo."),
    "view_says_plane": ("What your network says of every point of the plane.",
                        "Lo que dice tu red de cada punto del plano."),
    "view_says_attention": ("Who looks at whom, and how much.", "Quién mira a quién, y cuánto."),
    "view_not_yet": (
        "This picture needs a model that fits it: run the program that makes one.",
        "Esta imagen necesita un modelo al que le encaje: ejecuta el programa que lo crea.",
    ),
    "flow_input": ("Input", "Entrada"),
    "flow_output": ("Output", "Salida"),
    "flow_of": ("Input from", "Entrada de"),
    "flow_random": ("random numbers", "números al azar"),
    "flow_example": ("Example", "Ejemplo"),
    "flow_example_is": ("example {0}: {1}", "ejemplo {0}: {1}"),
    "flow_parameters": ("{0} parameters", "{0} parámetros"),
    "flow_open": ("Show its weights; arrow keys lead to its sheets",
                  "Ver sus pesos; las flechas llevan a sus hojas"),
    "flow_sheets": ("What {0} makes: {1}", "Lo que hace {0}: {1}"),
    "flow_sheet": ("Sheet {0}: the weights that make it", "Hoja {0}: los pesos que la hacen"),
    "flow_more": ("The first {0} of {1} sheets.", "Las primeras {0} de {1} hojas."),
    "flow_no_input": (
        "No tensor of the program is an input that this model takes; give one a name.",
        "Ningún tensor del programa es una entrada que acepte este modelo; ponle nombre a una.",
    ),
    "pad": ("Drawing", "Dibujo"),
    "pad_hint": (
        "Draw with the mouse or a finger. With keys: the arrows move the pen, the space bar puts "
        "it down or lifts it, Backspace takes the last line back, Delete wipes the pad.",
        "Dibuja con el ratón o el dedo. Con teclas: las flechas mueven el lápiz, la barra "
        "espaciadora lo baja o lo levanta, Retroceso quita la última línea, Supr borra la pizarra.",
    ),
    "pad_clear": ("Wipe", "Borrar"),
    "pad_undo": ("Take the last line back", "Quitar la última línea"),
    "pad_seen": ("What it is given", "Lo que recibe"),
    "pad_read": ("It reads {0} ({1}\u00a0%)", "Lee {0} ({1}\u00a0%)"),
    "pad_empty": ("Nothing is drawn yet.", "Aún no hay nada dibujado."),
    "pad_none": ("The model's answer is no choice among classes.",
                 "La respuesta del modelo no es una elección entre clases."),
    "pad_layers": ("Show what each layer makes of it", "Ver lo que hace cada capa con él"),
    "attention_layer": ("Layer {0}", "Capa {0}"),
    "attention_head": ("Head {0}", "Cabeza {0}"),
    "attention_heads": ("Heads", "Cabezas"),
    "attention_layers": ("Layers", "Capas"),
    "attention_square": ("Shares: rows look at columns", "Pesos: las filas miran a las columnas"),
    "attention_rows": ("Row by row: who looks. Column by column: at whom.",
                       "Por filas: quién mira. Por columnas: a quién."),
    "attention_hover": ("Point at a token to see whom it looks at.",
                        "Señala un token para ver a quién mira."),
    "attention_looks": ("{0} looks at {1}", "{0} mira a {1}"),
    "attention_none": (
        "While it ran on its input, this model computed no square of shares.",
        "Al ejecutarse con su entrada, este modelo no calculó ningún cuadrado de pesos.",
    ),
    # quiz and challenge
    "question": ("Question {0}", "Pregunta {0}"),
    "right": ("Right.", "Correcto."),
    "wrong": ("No.", "No."),
    "challenge": ("Challenge: {0}", "Reto: {0}"),
    "begin": ("Open in the editor", "Abrir en el editor"),
    "check": ("Check", "Comprobar"),
    "challenge_step": ("Step {0}", "Paso {0}"),
    "hint": ("Hint", "Pista"),
    "hint_more": ("Another hint", "Otra pista"),
    "solution": ("A solution", "Una solución"),
    "passed": ("Challenge passed!", "¡Reto superado!"),
    "done": ("Done", "Hecho"),
    # what the command prints
    "cli_saved": ("Work is saved in {0}. Control-C ends the lab.",
                  "El trabajo se guarda en {0}. Control-C cierra el laboratorio."),
    "cli_open": (
        "The lab is open to the network, unencrypted: whoever has the address can run programs "
        "with your rights.",
        "El laboratorio está abierto a la red, sin cifrar: quien tenga la dirección puede ejecutar "
        "programas con tus permisos.",
    ),
    "cli_again": ("For another browser: {0}", "Para otro navegador: {0}"),
    "cli_knock": ("Somebody opened the page without its key; this address has it: {0}",
                  "Alguien abrió la página sin su llave; esta dirección la tiene: {0}"),
    # saving
    "problem_full": ("The disk is full: {0} is not saved. Your text stays here; make room, or save "
                     "to another folder.",
                     "El disco está lleno: {0} no se ha guardado. Tu texto sigue aquí; haz sitio o "
                     "guarda en otra carpeta."),
    "problem_denied": ("{0} cannot be written here (read-only, or no permission). Your text stays "
                       "here; save to another folder.",
                       "No se puede escribir {0} aquí (solo lectura, o sin permiso). Tu texto "
                       "sigue aquí; guarda en otra carpeta."),
    "problem_gone": ("The folder of {0} is not there. Your text stays here; save to another "
                     "folder.",
                     "La carpeta de {0} no existe. Tu texto sigue aquí; guarda en otra carpeta."),
    "problem_changed": ("{0} was changed by another program. Which text is right?",
                        "Otro programa ha cambiado {0}. ¿Qué texto vale?"),
    "problem_unreadable": ("{0} is not a text in UTF-8, and is left alone.",
                           "{0} no es un texto en UTF-8, y no se toca."),
    "problem_other": ("{0} is not saved: {1}", "{0} no se ha guardado: {1}"),
    "draft": ("What you typed in {0} without connection is not the text that the lab has. Which "
              "one is right?",
              "Lo que escribiste en {0} sin conexión no es el texto que tiene el laboratorio. "
              "¿Cuál vale?"),
    "keep_mine_draft": ("What I typed", "Lo que escribí"),
    "offline": (
        "No connection to the lab. If it has ended, start it again and open the address that its "
        "terminal shows. What you type meanwhile is kept in this tab; copy it if the new address "
        "has another port.",
        "No hay conexión con el laboratorio. Si se ha cerrado, arráncalo otra vez y abre la "
        "dirección que muestra su terminal. Lo que escribas mientras tanto se guarda en esta "
        "pestaña; cópialo si la dirección nueva tiene otro puerto.",
    ),
    "keep_mine": ("The one in the editor", "El del editor"),
    "take_theirs": ("The one on disk", "El del disco"),
}  # fmt: skip


HEADLINES: dict[str, tuple[str, str]] = {
    "ShapeError": ("shapes that do not fit", "las formas no encajan"),
    "DtypeError": ("dtypes that do not fit", "los tipos de datos no encajan"),
    "DeviceError": ("tensors on different devices", "los tensores están en dispositivos distintos"),
    "GraphError": ("the graph does not allow it", "el grafo no lo permite"),
    "OutOfMemoryError": ("the memory is not enough", "no hay memoria suficiente"),
    "MemoryError": ("the memory is not enough", "no hay memoria suficiente"),
    "SyntaxError": ("this is not Python", "esto no es Python"),
    "IndentationError": ("a wrong indentation", "la sangría no es correcta"),
    "UnboundLocalError": ("a name used before it has a value",
                          "se usa un nombre antes de darle valor"),
    "NameError": ("a name that is not there", "un nombre que no existe"),
    "AttributeError": ("it has nothing of that name", "no tiene nada con ese nombre"),
    "KeyError": ("a key that is not there", "una clave que no está"),
    "IndexError": ("an index out of range", "un índice fuera de rango"),
    "ZeroDivisionError": ("a division by zero", "una división entre cero"),
    "OverflowError": ("a number that is too large", "un número demasiado grande"),
    "ModuleNotFoundError": ("a module that is not installed", "un módulo que no está instalado"),
    "ImportError": ("an import that failed", "una importación que ha fallado"),
    "FileNotFoundError": ("a file that is not there", "un archivo que no existe"),
    "PermissionError": ("not allowed", "sin permiso"),
    "OSError": ("a file or the system refused", "lo impidió un archivo o el sistema"),
    "RecursionError": ("a function that calls itself without end",
                       "una función que se llama a sí misma sin fin"),
    "AssertionError": ("an assert that does not hold", "un assert que no se cumple"),
    "NotImplementedError": ("this is not available", "esto no está disponible"),
    "StopIteration": ("there is nothing more to take", "no queda nada que tomar"),
    "TypeError": ("an argument of a wrong kind", "un argumento de tipo equivocado"),
    "ValueError": ("a value that does not fit", "un valor que no vale"),
    "ZeroDivisor": ("a division by zero", "una división entre cero"),
    "NativeError": ("the kernel language has no word for it",
                    "el lenguaje de los kernels no lo permite"),
    "RuntimeError": ("it cannot be done like this", "así no se puede hacer"),
    "Exception": ("an error", "un error"),
}  # fmt: skip
"""What an error means, by the name of its class or of the nearest of its bases."""


class LabWords(Vocabulary):
    """The words of one language (English for one that we have not): ``words("question", 2)``.

    >>> LabWords("es")("question", 2)
    'Pregunta 2'
    """

    table = WORDS

    def __init__(self, lang: str) -> None:
        super().__init__(spoken(lang))

    def ending(self, result: dict[str, Any]) -> str:
        """The terminal's last line of a run."""
        ended = result["ended"]
        values: list[object] = []
        if ended in ("ok", "error"):
            values = [self.seconds(result.get("seconds", 0.0))]
        elif ended == "crashed":
            values = [self.death(result)]
        elif ended in ("failed", "untold"):
            values = [result.get("message", "?")]
        return self(f"ended_{ended}", *values)

    def death(self, result: dict[str, Any]) -> str:
        """What ended a process: a signal, or the code that it ended with."""
        return result.get("signal") or self("exit_code", result.get("code", "?"))

    def headline(self, kinds: Iterable[str]) -> str:
        """What an error means, in a few words; `kinds`: the names of its class and of its bases.

        >>> LabWords("es").headline(["ShapeError", "RuntimeError", "Exception"])
        'las formas no encajan (ShapeError)'
        """
        kinds = [*kinds]
        known = next((kind for kind in kinds if kind in HEADLINES), "Exception")
        said = HEADLINES[known][self._column]
        return f"{said} ({kinds[0]})" if kinds else said

    def span(self, minutes: int) -> str:
        """Hours and minutes.

        >>> LabWords("en").span(135), LabWords("en").span(40), LabWords("es").span(120)
        ('2 h 15 min', '40 min', '2 h')
        """
        hours, rest = divmod(minutes, 60)
        return " ".join([f"{hours} h"] * bool(hours) + [f"{rest} min"] * bool(rest or not hours))

    def number(self, text: str) -> str:
        """A number with the language's decimal sign."""
        return text.replace(".", ",") if self.lang == "es" else text

    def seconds(self, seconds: float) -> str:
        """A time span, as short as it can be said.

        >>> LabWords("en").seconds(0.00312), LabWords("es").seconds(2.5), LabWords("en").seconds(75)
        ('3.1 ms', '2,5 s', '75 s')
        >>> LabWords("en").seconds(4.2e-06)
        '4.2 µs'
        """
        if seconds < 0.000995:
            text = f"{seconds * 1e6:.3g} µs"
        elif seconds < 0.0995:
            text = f"{seconds * 1e3:.2g} ms"
        else:
            text = f"{seconds:.3g} s"
        return self.number(text)
