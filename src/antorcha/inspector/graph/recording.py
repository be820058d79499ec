"""``antorcha.graph.recording()``: inside, the graph remembers lines and modules."""

from __future__ import annotations

from antorcha.autograd import origin
from antorcha.core import modes
from antorcha.nn.module import Module


class recording:
    """Inside, each operation that autograd records remembers the line of the program that asked
    for it, and which modules were being called: ``antorcha.graph`` shows both, and errors of
    ``backward`` tell the line.

    It costs time and memory for each operation inside of the block and nothing elsewhere. It holds
    for the thread that enters it; entered twice it ends with the outer one.

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.graph.recording():
    ...     loss = (x * x).sum()
    >>> [operation.line.function for operation in torch.graph(loss).operations]
    ['<module>', '<module>']
    """

    def __enter__(self) -> recording:
        word = modes.state.word
        self._before = word & modes.ORIGINS
        origin.watch(Module.__call__.__code__)
        modes.set_word(word | modes.ORIGINS)
        return self

    def __exit__(self, *_: object) -> None:
        if not self._before:
            modes.set_word(modes.state.word & ~modes.ORIGINS)
        origin.unwatch()
