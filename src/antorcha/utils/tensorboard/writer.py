"""``SummaryWriter``: reports numbers, pictures and more of a run to files that TensorBoard shows.

See https://docs.pytorch.org/docs/stable/tensorboard.html.
"""

from __future__ import annotations

import os
import socket
import time
from datetime import datetime
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from antorcha.errors import ArgumentError, MissingFeature, ValueRangeError, explain_missing
from antorcha.utils.tensorboard import embedding, summary
from antorcha.utils.tensorboard.arrays import figure_to_image, make_np

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """A file of events, written by the package tensorboard's own writer in a thread."""

    def __init__(
        self, log_dir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = ""
    ) -> None:
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The file's folder."""
        return self.event_writer.get_logdir()  # type: ignore[no-any-return]

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Adds an event, at a step and a time (now)."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(
        self, summary: Any, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Adds a record of `antorcha.utils.tensorboard.summary`."""
        self.add_event(Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Writes what is waiting."""
        self.event_writer.flush()

    def close(self) -> None:
        """Closes the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Goes on in another file of the same folder."""
        self.event_writer.reopen()


class SummaryWriter:
    """Writes what a run reports to a folder, ``runs/<date>_<host><comment>`` unless it is given.

    Args:
        log_dir (str): the folder
        comment (str): the end of the folder's name where ``log_dir`` is not given
        purge_step (int): events of this step and later ones, of a run that crashed, are not shown
        max_queue (int): how many events wait before they are written
        flush_secs (int): how many seconds they wait at most
        filename_suffix (str): the end of the file's name

    The methods take ``global_step``, and ``walltime`` for another time than now. Values are
    tensors, arrays or numbers.

    ``add_graph`` and ``add_onnx_graph`` are not supported: models are not traced.
    """

    def __init__(
        self, log_dir: Any = None, comment: str = "", purge_step: int | None = None,
        max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = "",
    ) -> None:  # fmt: skip
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir, self.purge_step = log_dir, purge_step
        self.max_queue, self.flush_secs = max_queue, flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()
        edges, edge = [], 1e-12
        while edge < 1e20:
            edges.append(edge)
            edge *= 1.1
        self.default_bins = [*[-each for each in reversed(edges)], 0, *edges]

    def _open(self, folder: str) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _get_file_writer(self) -> FileWriter:
        """The file, opened again after ``close``."""
        if self.all_writers is None or self.file_writer is None:
            self.file_writer = self._open(self.log_dir)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                step, self.purge_step = self.purge_step, None
                self.file_writer.add_event(Event(step=step, file_version="brain.Event:2"))
                start = SessionLog(status=SessionLog.START)
                self.file_writer.add_event(Event(step=step, session_log=start))
        return self.file_writer

    def _add(self, record: Any, global_step: Any = None, walltime: float | None = None) -> None:
        self._get_file_writer().add_summary(record, global_step, walltime)

    def get_logdir(self) -> Any:
        """The folder."""
        return self.log_dir

    # ---- numbers
    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: Any = None, walltime: float | None = None,
        new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """A number of the curve ``tag``."""
        record = summary.scalar(
            tag, scalar_value, new_style=new_style, double_precision=double_precision
        )
        self._add(record, global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: Any = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Several curves in one picture; each has a file in a folder of its own."""
        walltime = time.time() if walltime is None else walltime
        folder = self._get_file_writer().get_logdir()
        assert self.all_writers is not None
        for tag, value in tag_scalar_dict.items():
            name = f"{folder}/{main_tag.replace('/', '_')}_{tag}"
            if name not in self.all_writers:
                self.all_writers[name] = self._open(name)
            record = summary.scalar(main_tag, value)
            self.all_writers[name].add_summary(record, global_step, walltime)

    def add_tensor(
        self, tag: str, tensor: Any, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """All values of a tensor."""
        self._add(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(
        self, tag: str, values: Any, global_step: Any = None, bins: Any = "tensorflow",
        walltime: float | None = None, max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """How values are distributed; ``bins`` are the edges, or a rule of numpy.histogram."""
        if isinstance(bins, str) and bins == "tensorflow":
            bins = self.default_bins
        self._add(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self, tag: str, min: Any, max: Any, num: Any, sum: Any, sum_squares: Any,
        bucket_limits: Any, bucket_counts: Any, global_step: Any = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """A histogram that was counted elsewhere."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueRangeError("len(bucket_limits) != len(bucket_counts), see the document.")
        record = summary.histogram_raw(
            tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts
        )
        self._add(record, global_step, walltime)

    def add_pr_curve(
        self, tag: str, labels: Any, predictions: Any, global_step: Any = None,
        num_thresholds: int = 127, weights: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Precision and recall of predictions (0..1) of labels (0 or 1)."""
        record = summary.pr_curve(
            tag, make_np(labels), make_np(predictions), num_thresholds, weights
        )
        self._add(record, global_step, walltime)

    def add_pr_curve_raw(
        self, tag: str, true_positive_counts: Any, false_positive_counts: Any,
        true_negative_counts: Any, false_negative_counts: Any, precision: Any, recall: Any,
        global_step: Any = None, num_thresholds: int = 127, weights: Any = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Precision and recall that were counted elsewhere."""
        record = summary.pr_curve_raw(
            tag, true_positive_counts, false_positive_counts, true_negative_counts,
            false_negative_counts, precision, recall, num_thresholds, weights,
        )  # fmt: skip
        self._add(record, global_step, walltime)

    # ---- pictures, sound, text
    def add_image(
        self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:  # fmt: skip
        """An image, whose dims ``dataformats`` names."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(
        self, tag: str, img_tensor: Any, global_step: Any = None, walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:  # fmt: skip
        """Several images as one."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_image_with_boxes(
        self, tag: str, img_tensor: Any, box_tensor: Any, global_step: Any = None,
        walltime: float | None = None, rescale: float = 1, dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:  # fmt: skip
        """An image and boxes (left, top, right, bottom) in it, which may have labels."""
        labels = [labels] if isinstance(labels, str) else labels
        if labels is not None and len(labels) != box_tensor.shape[0]:
            labels = None
        record = summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._add(record, global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: Any = None, close: bool = True,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """A matplotlib figure, or several; ``close`` closes them."""
        dims = "NCHW" if isinstance(figure, list) else "CHW"
        self.add_image(tag, figure_to_image(figure, close), global_step, walltime, dims)

    def add_video(
        self, tag: str, vid_tensor: Any, global_step: Any = None, fps: float = 4,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Videos (N, time, channels, height, width), as a GIF."""
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(
        self, tag: str, snd_tensor: Any, global_step: Any = None, sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Sound: samples in -1..1."""
        self._add(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """A text."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_mesh(
        self, tag: str, vertices: Any, colors: Any = None, faces: Any = None,
        config_dict: Any = None, global_step: Any = None, walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Bodies or clouds of points (N, points, 3)."""
        record = summary.mesh(tag, vertices, colors, faces, config_dict)
        self._add(record, global_step, walltime)

    @staticmethod
    def _encode(rawstr: str) -> str:
        """A tag as a file's name."""
        for character in "%/\\":
            rawstr = rawstr.replace(character, f"%{ord(character):02x}")
        return rawstr

    def add_embedding(
        self, mat: Any, metadata: Any = None, label_img: Any = None, global_step: Any = None,
        tag: str = "default", metadata_header: Any = None,
    ) -> None:  # fmt: skip
        """Points (N, features) for the projector, with their labels and pictures."""
        points = make_np(mat)
        step = 0 if global_step is None else global_step
        subdir = f"{str(step).zfill(5)}/{self._encode(tag)}"
        logdir = self._get_file_writer().get_logdir()
        folder = os.path.join(logdir, subdir)
        embedding.make_folder(folder)
        if metadata is not None:
            if len(points) != len(metadata):
                raise AssertionError("#labels should equal with #data points")
            embedding.make_tsv(metadata, folder, metadata_header)
        if label_img is not None:
            if len(points) != label_img.shape[0]:
                raise AssertionError("#images should equal with #data points")
            embedding.make_sprite(label_img, folder)
        if points.ndim != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        embedding.make_mat(points, folder)
        if not hasattr(self, "_projector_config"):
            self._projector_config = ProjectorConfig()
        info = embedding.embedding_info(metadata, label_img, subdir, step, tag)
        self._projector_config.embeddings.extend([info])
        embedding.write_config(logdir, self._projector_config)

    # ---- experiments and layouts
    def add_hparams(
        self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None, run_name: str | None = None,
        global_step: Any = None,
    ) -> None:  # fmt: skip
        """An experiment's settings and results, in a folder of their own."""
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise ArgumentError("hparam_dict and metric_dict should be dictionary.")
        records = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = self._get_file_writer().get_logdir()
        with SummaryWriter(os.path.join(folder, run_name or str(time.time()))) as run:
            for record in records:
                run._add(record, global_step)
            for name, value in metric_dict.items():
                run.add_scalar(name, value, global_step)

    def add_custom_scalars(self, layout: dict[str, dict[str, Any]]) -> None:
        """Which curves are shown together: ``{category: {title: ["Multiline", tags]}}``."""
        self._add(summary.custom_scalars(layout))

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Curves in one picture."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """A curve between a lower and an upper one."""
        if len(tags) != 3:
            raise AssertionError(f"Expected 3 tags, got {len(tags)}.")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:  # fmt: skip
        """Not supported."""
        raise MissingFeature(
            "SummaryWriter.add_graph: a model is not traced into TensorBoard's graphs; "
            "torch.graph(output) shows the graph of a result"
        )

    def add_onnx_graph(self, prototxt: str) -> None:
        """Not supported."""
        raise MissingFeature("SummaryWriter.add_onnx_graph: ONNX files are not read")

    # ---- the files
    def flush(self) -> None:
        """Writes what is waiting."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Closes the files; another report opens new ones."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


explain_missing("torch.utils.tensorboard.writer", globals())
