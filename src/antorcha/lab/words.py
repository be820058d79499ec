"""Every word of the lab's page, in English and in Spanish.

Nothing else in the lab holds text that a learner reads, but the lessons, the drawings of
`antorcha.inspect` and its kin, and Python's own messages.
"""

from __future__ import annotations

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
    # the editor
    "run": ("Run", "Ejecutar"),
    "run_hint": ("Run the program (Ctrl+Enter)", "Ejecutar el programa (Ctrl+Intro)"),
    "stop": ("Stop", "Parar"),
    "stop_hint": ("Stop the program", "Parar el programa"),
    "reset": ("Reset", "Reiniciar"),
    "reset_hint": ("New process, empty terminal; your text stays",
                   "Proceso nuevo, terminal vacía; tu texto se queda"),
    "editor": ("Editor: {0}. Escape and then Tab leaves it.",
               "Editor: {0}. Con Escape y luego Tab se sale."),
    "saved": ("Saved", "Guardado"),
    "unsaved": ("Not saved yet", "Sin guardar"),
    "save_again": ("Try again", "Intentarlo otra vez"),
    "save_to": ("Save to folder", "Guardar en la carpeta"),
    "folder": ("Folder", "Carpeta"),
    "try_it": ("Put in the editor", "Poner en el editor"),
    # the terminal
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
    "inspector": ("Tensor inspector", "Inspector"),
    "live": ("Live", "En vivo"),
    "no_tensors": ("Run code to inspect active tensors",
                   "Ejecuta código para inspeccionar los tensores activos"),
    "many_tensors": ("The first {0} tensors of the program.",
                     "Los primeros {0} tensores del programa."),
    "none_left": ("The program left no tensors.", "El programa no dejó ningún tensor."),
    "open_tensor": ("Look inside {0}", "Mirar dentro de {0}"),
    "gone": ("{0} is not there any more.", "{0} ya no existe."),
    "cannot_show": ("This cannot be shown: {0}", "Esto no se puede mostrar: {0}"),
    "explanation": ("What went wrong", "Qué ha fallado"),
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
    "profiler": ("Profiler", "Perfil"),
    "profile_run": ("Run and measure", "Ejecutar y medir"),
    "no_profile": ("Runs the program and measures what every operation takes.",
                   "Ejecuta el programa y mide lo que tarda cada operación."),
    "pictures": ("Pictures", "Imágenes"),
    "picture": ("Picture {0} of the program", "Imagen {0} del programa"),
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


class Words(Vocabulary):
    """The words of one language (English for one that we have not): ``words("question", 2)``.

    >>> Words("es")("question", 2)
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
            values = [result.get("signal", "?")]
        elif ended in ("failed", "untold"):
            values = [result.get("message", "?")]
        return self(f"ended_{ended}", *values)

    def seconds(self, seconds: float) -> str:
        """A time span, as short as it can be said.

        >>> Words("en").seconds(0.00312), Words("es").seconds(2.5), Words("en").seconds(75)
        ('3.1 ms', '2,5 s', '75 s')
        """
        text = f"{seconds * 1e3:.2g} ms" if seconds < 0.0995 else f"{seconds:.3g} s"
        return text.replace(".", ",") if self.lang == "es" else text
