"""Anomaly detection: a failing backward says which line of the forward pass it belongs to.

While it is on, nodes remember the stack of the call that made them (``origin``) and a gradient
with a NaN in it is an error. The mode belongs to the thread.
"""

from __future__ import annotations

from typing import Any

from antorcha.autograd import (
    origin,  # noqa: F401  (gives nodes their stack)
)
from antorcha.core import modes
from antorcha.core.hooks import hooks
from antorcha.errors import GraphError, warn
from antorcha.ops.kinds.record import T
from antorcha.runtime.call.node import Node

_check_nan = True


def is_anomaly_enabled() -> bool:
    """Is anomaly detection on in this thread?"""
    return bool(modes.state.word & modes.ANOMALY)


def is_anomaly_check_nan_enabled() -> bool:
    """Are NaN gradients errors while anomaly detection is on?"""
    return _check_nan


def _set(mode: bool, check_nan: bool) -> tuple[bool, bool]:
    global _check_nan
    before = is_anomaly_enabled(), _check_nan
    word = modes.state.word
    modes.set_word(word | modes.ANOMALY if mode else word & ~modes.ANOMALY)
    _check_nan = check_nan
    return before


class set_detect_anomaly:
    """Turns anomaly detection on or off, at once or, as a context manager, inside the block.

    See https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.set_detect_anomaly.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = _set(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        _set(*self.before)


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """`set_detect_anomaly` as a function of ``torch``."""
    _set(mode, check_nan)


class detect_anomaly:
    """Inside, a failing backward tells the forward call that it belongs to, and NaN is a failure.

    See https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.detect_anomaly.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
        )

    def __enter__(self) -> None:
        self.before = _set(True, self.check_nan)

    def __exit__(self, *_: object) -> None:
        _set(*self.before)


def tell_origin(node: Node) -> None:
    """Warns where the node was recorded; the error itself follows."""
    if node.stack:
        text = (
            f"Error detected in {node.op.node_name}. Traceback of forward call that caused the "
            f"error:\n{node.stack}"
        )
    else:
        text = (
            f"Error detected in {node.op.node_name}. No forward pass information available. Enable "
            "detect anomaly during forward pass for more information."
        )
    warn(text)


def check_nan(node: Node, results: Any) -> None:
    """Refuses NaN among the gradients that a node has computed."""
    if not _check_nan:
        return
    for k, g in enumerate(results):
        if g is None or node.edges[k] is None or g._layout.dtype.kind not in "fc":
            continue
        if bool(T.any(T.ne(g, g))):
            tell_origin(node)
            raise GraphError(
                f"Function {node.op.node_name!r} returned nan values in its {k}th output."
            )


hooks.tell_origin = tell_origin
hooks.check_nan = check_nan
