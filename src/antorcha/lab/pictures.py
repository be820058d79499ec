"""Matplotlib's pictures in the lab: a backend that publishes figures instead of opening windows.

``plt.show()`` sends every open figure to the page and closes it, as it does in a script once the
windows are closed; what a program leaves open is shown when it ends.
"""

from __future__ import annotations

import base64
import io
import sys
from typing import Any

from ipykernel.kernelbase import Kernel
from matplotlib.backends.backend_agg import FigureCanvasAgg


class FigureCanvas(FigureCanvasAgg):
    """A canvas that paints in memory."""


def show(*args: Any, **kwargs: Any) -> None:
    """Send all open figures to the page."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        if figure.get_axes() or figure.texts or figure.images:
            with io.BytesIO() as file:
                figure.savefig(file, format="png", bbox_inches="tight", dpi=100)
                data = base64.b64encode(file.getvalue()).decode()
            kernel: Any = Kernel.instance()  # a LabKernel
            kernel.publish_picture("image/png", data)
    pyplot.close("all")
