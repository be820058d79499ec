"""What is reported as NumPy arrays: tensors, figures, images beside one another."""

from __future__ import annotations

from math import ceil
from typing import Any

from antorcha.core import dtypes
from antorcha.core.lazy import Array, np
from antorcha.errors import MissingFeature
from antorcha.runtime.tensor import Tensor


def make_np(x: Any) -> Array:
    """A tensor, an array or a number as an array; bfloat16 as float16."""
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if isinstance(x, Tensor):
        if x._layout.dtype is dtypes.bfloat16:
            x = x.to(dtypes.float16)
        return x.detach().cpu().numpy()  # type: ignore[no-any-return]
    raise MissingFeature(f"Got {type(x)}, but numpy array or torch tensor are expected.")


def figure_to_image(figures: Any, close: bool = True) -> Array:
    """A matplotlib figure as (3, height, width), a list of them with a first dim."""
    from matplotlib import pyplot
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    if isinstance(figures, list):
        return np.stack([figure_to_image(each, close) for each in figures])
    canvas: Any = FigureCanvasAgg(figures)
    canvas.draw()
    width, height = figures.canvas.get_width_height()
    pixels = np.frombuffer(canvas.buffer_rgba(), dtype=np.uint8).reshape(height, width, 4)
    if close:
        pyplot.close(figures)
    return np.moveaxis(pixels[:, :, :3], 2, 0)


def make_grid(images: Array, ncols: int = 8) -> Array:
    """(N, 1 or 3, H, W) as one image (3, rows * H, columns * W), filled row by row."""
    if images.shape[1] == 1:
        images = np.concatenate([images] * 3, 1)
    if images.ndim != 4 or images.shape[1] != 3:
        raise AssertionError("Input should be a 4D numpy array with 3 channels")
    count, _, height, width = images.shape
    ncols = min(count, ncols)
    canvas = np.zeros((3, height * ceil(count / ncols), width * ncols), images.dtype)
    for k, image in enumerate(images):
        y, x = height * (k // ncols), width * (k % ncols)
        canvas[:, y : y + height, x : x + width] = image
    return canvas


def convert_to_HWC(tensor: Array, input_format: str) -> Array:
    """An image, or several, whose dims ``input_format`` names, as (height, width, channels)."""
    if len(set(input_format)) != len(input_format):
        raise AssertionError(
            "You can not use the same dimension shorthand twice. input_format: " + input_format
        )
    if tensor.ndim != len(input_format):
        raise AssertionError(
            "size of input tensor and input format are different. tensor shape: "
            f"{tensor.shape}, input_format: {input_format}"
        )
    given = input_format.upper()
    if len(given) == 4:
        return make_grid(tensor.transpose([given.find(c) for c in "NCHW"])).transpose(1, 2, 0)
    if len(given) == 3:
        image = tensor.transpose([given.find(c) for c in "HWC"])
        return np.concatenate([image] * 3, 2) if image.shape[2] == 1 else image
    return np.stack([tensor.transpose([given.find(c) for c in "HW"])] * 3, 2)


def frames_of(video: Array) -> Array:
    """Videos (N, time, channels, height, width) as frames (time, height, width, channels) that show
    them beside one another; black ones make their number a power of 2."""
    count, time, channels, height, width = video.shape
    if video.dtype == np.uint8:
        video = video.astype(np.float32) / 255.0
    if count & (count - 1):
        more = 2 ** count.bit_length() - count
        video = np.concatenate((video, np.zeros((more, time, channels, height, width))), 0)
    rows = 2 ** ((count.bit_length() - 1) // 2)
    columns = len(video) // rows
    video = video.reshape(rows, columns, time, channels, height, width)
    return video.transpose(2, 0, 4, 1, 5, 3).reshape(time, rows * height, columns * width, channels)
