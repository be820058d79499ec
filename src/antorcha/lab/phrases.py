"""The editor's own phrases (its search, its folds) in the page's language."""

from __future__ import annotations

import json

SPANISH = {
    "Find": "Buscar",
    "Replace": "Reemplazar",
    "next": "siguiente",
    "previous": "anterior",
    "all": "todas",
    "match case": "mayúsculas",
    "regexp": "exp. regular",
    "by word": "palabra entera",
    "replace": "reemplazar",
    "replace all": "reemplazar todas",
    "close": "cerrar",
    "current match": "coincidencia actual",
    "on line": "en la línea",
    "replaced match on line $": "reemplazada en la línea $",
    "replaced $ matches": "$ reemplazadas",
    "Go to line": "Ir a la línea",
    "go": "ir",
    "Completions": "Sugerencias",
    "Fold line": "Plegar",
    "Unfold line": "Desplegar",
    "folded code": "código plegado",
    "unfold": "desplegar",
    "to": "a",
    "Folded lines": "Líneas plegadas",
    "Unfolded lines": "Líneas desplegadas",
    "Control character": "Carácter de control",
    "Selection deleted": "Selección borrada",
    "Diagnostics": "Diagnósticos",
    "No diagnostics": "Sin diagnósticos",
}


def script(editor: int, lang: str) -> str:
    """JavaScript that tells the phrases to the editor of that element number."""
    phrases = SPANISH if lang == "es" else {}
    return f"""
const CM = await import("nicegui-codemirror");
const component = getElement({editor});
const view = component.editor || await component.editorPromise;
view.dispatch({{effects: CM.StateEffect.appendConfig.of(
  CM.EditorState.phrases.of({json.dumps(phrases)}))}});
"""
