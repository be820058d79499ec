"""The files of TensorBoard's projector: points, their labels and pictures, and what belongs to
what."""

from __future__ import annotations

import io
import os
from math import ceil
from typing import Any

from google.protobuf import text_format
from tensorboard.compat import tf
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo

from antorcha.core.lazy import Array, np
from antorcha.utils.tensorboard.arrays import make_grid, make_np


def make_folder(path: str) -> None:
    """Makes the folder of an embedding."""
    files = tf.io.gfile
    if not files.exists(path):
        files.makedirs(path)
    elif files.isdir(path):
        print("warning: Embedding dir exists, did you set global_step for add_embedding()?")
    else:
        raise NotADirectoryError(f"Path: `{path}` exists, but is a file. Cannot proceed.")


def _write(folder: str, name: str, content: bytes) -> None:
    with tf.io.gfile.GFile(os.path.join(folder, name), "wb") as file:
        file.write(content)


def make_tsv(metadata: Any, folder: str, header: Any = None) -> None:
    """One label a line; with a header, several in columns."""
    lines = [str(each) for each in metadata]
    if header:
        if len(header) != len(metadata[0]):
            raise AssertionError("len of header must be equal to the number of columns in metadata")
        lines = ["\t".join([str(each) for each in line]) for line in [header, *metadata]]
    _write(folder, "metadata.tsv", ("\n".join(lines) + "\n").encode())


def make_sprite(label_img: Any, folder: str) -> None:
    """The points' pictures as one, with as many rows as columns."""
    from PIL import Image

    images = make_np(label_img)
    grid = make_grid(images, ncols=ceil(len(images) ** 0.5)).transpose(1, 2, 0)
    square = np.zeros((grid.shape[1], grid.shape[1], 3))
    square[: len(grid)] = grid
    file = io.BytesIO()
    Image.fromarray(np.uint8((square * 255).clip(0, 255))).save(file, format="PNG")
    _write(folder, "sprite.png", file.getvalue())


def make_mat(points: Array, folder: str) -> None:
    """The points' coordinates, a point a line."""
    lines = ["\t".join([str(x.item()) for x in point]) + "\n" for point in points]
    _write(folder, "tensors.tsv", "".join(lines).encode())


def embedding_info(metadata: Any, label_img: Any, subdir: str, step: int, tag: str) -> Any:
    """What belongs to one embedding."""
    info = EmbeddingInfo()
    info.tensor_name = f"{tag}:{str(step).zfill(5)}"
    info.tensor_path = os.path.join(subdir, "tensors.tsv")
    if metadata is not None:
        info.metadata_path = os.path.join(subdir, "metadata.tsv")
    if label_img is not None:
        info.sprite.image_path = os.path.join(subdir, "sprite.png")
        info.sprite.single_image_dim.extend([label_img.shape[3], label_img.shape[2]])
    return info


def write_config(folder: str, config: Any) -> None:
    """What belongs to all embeddings."""
    _write(folder, "projector_config.pbtxt", text_format.MessageToString(config).encode())
