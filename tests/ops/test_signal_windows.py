"""``torch.signal.windows`` beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import antorcha

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "exponential": [{}, {"tau": 2.5}, {"center": 1.0, "sym": False}], "gaussian": [{}, {"std": 3}],
    "general_cosine": [{"a": [0.5, 0.25, 0.25]}, {"a": (1,)}], "kaiser": [{}, {"beta": 3.5}],
    "general_hamming": [{}, {"alpha": 0.6}],
}  # fmt: skip
REFUSED: dict[str, list[dict[str, Any]]] = {
    "exponential": [{"tau": 0}, {"center": 1.0}], "gaussian": [{"std": -1}],
    "general_cosine": [{"a": []}, {"a": 3}], "kaiser": [{"beta": -1}],
}  # fmt: skip


def outcome(lib: Any, name: str, M: int, options: dict[str, Any]) -> Any:
    try:
        found = getattr(lib.signal.windows, name)(M, **options)
    except (TypeError, ValueError) as error:
        return type(error).__mro__[-4:], str(error)
    return str(found.dtype), found.requires_grad, found.detach().numpy()


def about(refused: Any) -> str:
    """What an error says, but for the window: PyTorch names general_cosine for its kin."""
    text: str = refused[1]
    return text.split(maxsplit=1)[1] if "expects" in text or "requires" in text else text


@pytest.mark.oracle
def test_windows() -> None:
    torch = pytest.importorskip("torch")
    failures = []
    for name in torch.signal.windows.windows.__all__:
        base = OPTIONS.get(name, [{}])[0]
        cases = [(M, {"sym": sym, **options}) for M in (0, 1, 2, 5, 8) for sym in (True, False)
                 for options in OPTIONS.get(name, [{}])]  # fmt: skip
        cases += [(6, {**base, **options}) for options in REFUSED.get(name, [])]
        cases += [(-1, base), (4, {**base, "requires_grad": True})]
        for M, options in cases:
            ours, theirs = [outcome(lib, name, M, options) for lib in (antorcha, torch)]
            if len(theirs) == 2:
                same = len(ours) == 2 and about(ours) == about(theirs)
            else:
                same = ours[:2] == theirs[:2] and np.allclose(ours[2], theirs[2], atol=1e-6)
            if not same:
                failures.append(f"{name}({M}, {options}): {ours}, not {theirs}")
        for dtype in ("float64", "float16", "int64"):
            ours, theirs = [
                outcome(lib, name, 5, {**base, "dtype": getattr(lib, dtype)})
                for lib in (antorcha, torch)
            ]
            if ours[:2] != theirs[:2] if len(theirs) == 3 else about(ours) != about(theirs):
                failures.append(f"{name}, {dtype}: {ours}, not {theirs}")
    assert not failures, "\n".join(failures)
