"""The records that TensorBoard reads (protocol buffers), one function for each kind."""

from __future__ import annotations

import io
import json
import struct
import tempfile
import wave
from typing import Any

from google.protobuf import struct_pb2
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.hparams import api_pb2, plugin_data_pb2
from tensorboard.plugins.hparams import metadata as hparams_names
from tensorboard.plugins.mesh import metadata as mesh_names
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

from antorcha.core.lazy import Array, np
from antorcha.errors import ArgumentError, ValueRangeError
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.utils.tensorboard.arrays import convert_to_HWC, frames_of, make_np

MOST_THRESHOLDS = 127  # a protocol buffer's byte


def _value(tag: str, **content: Any) -> Any:
    return Summary(value=[Summary.Value(tag=tag, **content)])


def _metadata(plugin: str, content: bytes = b"") -> Any:
    data = SummaryMetadata.PluginData(plugin_name=plugin, content=content)
    return SummaryMetadata(plugin_data=data)


def _shape(*sizes: int) -> Any:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in sizes])


# ----------------------------------------------------------------------------------------- numbers
def scalar(
    name: str, tensor: Any, collections: Any = None, new_style: bool = False,
    double_precision: bool = False,
) -> Any:  # fmt: skip
    """One number."""
    array = make_np(tensor).squeeze()
    if array.ndim != 0:
        raise AssertionError(
            "Tensor should contain one element (0 dimensions). Was given size: "
            f"{array.size} and {array.ndim} dimensions."
        )
    number = float(array)
    if not new_style:
        return _value(name, simple_value=number)
    if double_precision:
        proto = TensorProto(double_val=[number], dtype="DT_DOUBLE")
    else:
        proto = TensorProto(float_val=[number], dtype="DT_FLOAT")
    return _value(name, tensor=proto, metadata=_metadata("scalars"))


_FIELDS = {
    "float16": ("DT_HALF", "half_val"), "bfloat16": ("DT_BFLOAT16", "half_val"),
    "float32": ("DT_FLOAT", "float_val"), "float64": ("DT_DOUBLE", "double_val"),
    "int8": ("DT_INT8", "int_val"), "int16": ("DT_INT16", "int_val"),
    "int32": ("DT_INT32", "int_val"), "int64": ("DT_INT64", "int64_val"),
    "uint8": ("DT_UINT8", "uint32_val"), "bool": ("DT_BOOL", "bool_val"),
    "complex64": ("DT_COMPLEX64", "scomplex_val"),
    "complex128": ("DT_COMPLEX128", "dcomplex_val"),
}  # fmt: skip


def tensor_proto(tag: str, tensor: Tensor) -> Any:
    """A whole tensor."""
    layout = tensor._layout
    if layout.numel * layout.dtype.itemsize >= 1 << 31:
        raise ValueRangeError("tensor is bigger than protocol buffer's hard limit of 2GB in size")
    if layout.dtype.name not in _FIELDS:
        raise ValueRangeError(f"{tag} has unsupported tensor dtype {layout.dtype}")
    dtype, field = _FIELDS[layout.dtype.name]
    if layout.dtype.kind == "c":
        tensor = T.view_as_real(tensor)
    values = tensor.flatten().tolist()
    if field == "half_val":  # the bits of the float32
        values = [struct.unpack("i", struct.pack("f", value))[0] for value in values]
    proto = TensorProto(dtype=dtype, tensor_shape=_shape(*layout.shape), **{field: values})
    return _value(tag, metadata=_metadata("tensor"), tensor=proto)


# -------------------------------------------------------------------------------------- histograms
def histogram_raw(
    name: str, min: Any, max: Any, num: Any, sum: Any, sum_squares: Any, bucket_limits: Any,
    bucket_counts: Any,
) -> Any:  # fmt: skip
    """A histogram that was counted elsewhere."""
    histo = HistogramProto(
        min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits,
        bucket=bucket_counts,
    )  # fmt: skip
    return _value(name, histo=histo)


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """How many values lie in each bin."""
    return _value(name, histo=make_histogram(make_np(values).astype(float), bins, max_bins))


def make_histogram(values: Array, bins: Any, max_bins: int | None = None) -> Any:
    """The bins from the first to the last that is not empty, with an empty one before them."""
    if values.size == 0:
        raise ValueRangeError("The input has no element.")
    values = values.reshape(-1)
    counts, limits = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        counts, limits = _joined(counts, limits, len(counts) // max_bins)
    filled = np.flatnonzero(counts)
    if not filled.size:
        raise ValueRangeError("The histogram is empty, please file a bug report.")
    start, end = int(filled[0]), int(filled[-1]) + 1
    before = counts[start - 1 : start] if start else np.zeros(1, counts.dtype)
    return HistogramProto(
        min=values.min(), max=values.max(), num=len(values), sum=values.sum(),
        sum_squares=values.dot(values), bucket_limit=limits[start : end + 1].tolist(),
        bucket=[*before.tolist(), *counts[start:end].tolist()],
    )  # fmt: skip


def _joined(counts: Array, limits: Array, many: int) -> tuple[Array, Array]:
    """Every ``many`` bins as one."""
    if rest := len(counts) % many:
        counts = np.pad(counts, (0, many - rest))
    return counts.reshape(-1, many).sum(-1), np.append(limits[:-1:many], limits[-1])


def pr_curve(
    tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None
) -> Any:
    """Precision and recall at each threshold of the predictions, which lie in 0..1."""
    num_thresholds = min(num_thresholds, MOST_THRESHOLDS)
    counted = compute_curve(labels, predictions, num_thresholds, weights)
    return _pr_curve(tag, counted, num_thresholds)


def pr_curve_raw(
    tag: str, tp: Any, fp: Any, tn: Any, fn: Any, precision: Any, recall: Any,
    num_thresholds: int = 127, weights: Any = None,
) -> Any:  # fmt: skip
    """The same, counted elsewhere."""
    data = np.stack((tp, fp, tn, fn, precision, recall))
    return _pr_curve(tag, data, min(num_thresholds, MOST_THRESHOLDS))


def _pr_curve(tag: str, data: Array, num_thresholds: int) -> Any:
    about = PrCurvePluginData(version=0, num_thresholds=num_thresholds).SerializeToString()
    proto = TensorProto(
        dtype="DT_FLOAT", float_val=data.reshape(-1).tolist(), tensor_shape=_shape(*data.shape)
    )
    return _value(tag, metadata=_metadata("pr_curves", about), tensor=proto)


def compute_curve(labels: Array, predictions: Array, num_thresholds: int, weights: Any) -> Array:
    """(6, thresholds): true and false positives, true and false negatives, precision, recall."""
    weights = 1.0 if weights is None else weights
    bins = np.int32(np.floor(predictions * (num_thresholds - 1)))
    truth = labels.astype(np.float64)

    def at_least(each: Any) -> Array:
        span = (0, num_thresholds - 1)
        counts, _ = np.histogram(bins, bins=num_thresholds, range=span, weights=each)
        return np.cumsum(counts[::-1])[::-1]

    tp, fp = at_least(truth * weights), at_least((1.0 - truth) * weights)
    tn, fn = fp[0] - fp, tp[0] - tp
    precision, recall = tp / np.maximum(1e-7, tp + fp), tp / np.maximum(1e-7, tp + fn)
    return np.stack((tp, fp, tn, fn, precision, recall))


# --------------------------------------------------------------------------- images, sound and text
def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Any:
    """Pixels, in 0..255 where they are bytes and in 0..1 else, as a PNG."""
    return _value(tag, image=make_image(_pixels(tensor, dataformats), rescale))


def image_boxes(
    tag: str, tensor_image: Any, tensor_boxes: Any, rescale: float = 1, dataformats: str = "CHW",
    labels: Any = None,
) -> Any:  # fmt: skip
    """The same with boxes (left, top, right, bottom) drawn in it."""
    pixels = _pixels(tensor_image, dataformats)
    return _value(tag, image=make_image(pixels, rescale, make_np(tensor_boxes), labels))


def _pixels(tensor: Any, dataformats: str) -> Array:
    return _bytes(convert_to_HWC(make_np(tensor), dataformats))


def _bytes(array: Array) -> Array:
    scale = 1 if array.dtype == np.uint8 else 255
    return (array.astype(np.float32) * scale).clip(0, 255).astype(np.uint8)


def make_image(
    pixels: Array, rescale: float = 1, rois: Array | None = None, labels: Any = None
) -> Any:
    """(height, width, channels) of bytes as an image record."""
    from PIL import Image

    height, width, channels = pixels.shape
    picture = Image.fromarray(pixels)
    for k, box in enumerate([] if rois is None else rois):
        _draw_box(picture, box, None if labels is None else labels[k])
    sizes = int(width * rescale), int(height * rescale)
    picture = picture.resize(sizes, Image.Resampling.LANCZOS)
    file = io.BytesIO()
    picture.save(file, format="PNG")
    return Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=file.getvalue()
    )


def _draw_box(picture: Any, box: Any, text: str | None) -> None:
    from PIL import ImageDraw, ImageFont

    draw = ImageDraw.Draw(picture)
    left, top, right, bottom = box
    corners = [(left, top), (left, bottom), (right, bottom), (right, top), (left, top)]
    draw.line(corners, width=2, fill="Red")
    if text:
        font = ImageFont.load_default()
        x0, y0, x1, y1 = font.getbbox(text)
        margin = np.ceil(0.05 * (y1 - y0))
        high = bottom - (y1 - y0)
        draw.rectangle([(left, high - 2 * margin), (left + x1 - x0, bottom)], fill="Red")
        draw.text((left + margin, high - margin), text, fill="black", font=font)


def video(tag: str, tensor: Any, fps: float = 4) -> Any:
    """Frames as a GIF, written by pillow."""
    from PIL import Image

    frames = _bytes(frames_of(make_np(tensor)))
    _, height, width, channels = frames.shape
    if channels == 1:
        frames = np.concatenate([frames] * 3, 3)
    first, *rest = [Image.fromarray(frame) for frame in frames]
    with tempfile.TemporaryFile(suffix=".gif") as file:
        first.save(
            file, format="GIF", save_all=True, append_images=rest, duration=1000 / fps, loop=0
        )
        file.seek(0)
        encoded = file.read()
    result = Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=encoded
    )
    return _value(tag, image=result)


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Any:
    """Samples in -1..1 as a WAV of 16 bits."""
    array = make_np(tensor).squeeze()
    if abs(array).max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
        array = array.clip(-1, 1)
    if array.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    samples = (array * np.iinfo(np.int16).max).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as writing:
        writing.setnchannels(1)
        writing.setsampwidth(2)
        writing.setframerate(sample_rate)
        writing.writeframes(samples.data)
    result = Summary.Audio(
        sample_rate=sample_rate, num_channels=1, length_frames=len(samples),
        encoded_audio_string=file.getvalue(), content_type="audio/wav",
    )  # fmt: skip
    return _value(tag, audio=result)


def text(tag: str, text: str) -> Any:
    """A text, which TensorBoard shows as Markdown."""
    proto = TensorProto(
        dtype="DT_STRING", string_val=[text.encode(encoding="utf_8")], tensor_shape=_shape(1)
    )
    about = _metadata("text", TextPluginData(version=0).SerializeToString())
    return _value(f"{tag}/text_summary", metadata=about, tensor=proto)


# -------------------------------------------------------------------- layouts, meshes, experiments
def custom_scalars(layout: dict[str, dict[str, Any]]) -> Any:
    """Which curves are shown together: category -> title -> (``"Multiline"`` or ``"Margin"``,
    tags)."""
    categories = []
    for category, titles in layout.items():
        charts = []
        for title, (kind, tags, *_) in titles.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError("len(tags) != 3")
                series = layout_pb2.MarginChartContent.Series(
                    value=tags[0], lower=tags[1], upper=tags[2]
                )
                margin = layout_pb2.MarginChartContent(series=[series])
                charts.append(layout_pb2.Chart(title=title, margin=margin))
            else:
                lines = layout_pb2.MultilineChartContent(tag=tags)
                charts.append(layout_pb2.Chart(title=title, multiline=lines))
        categories.append(layout_pb2.Category(title=category, chart=charts))
    content = layout_pb2.Layout(category=categories).SerializeToString()
    proto = TensorProto(dtype="DT_STRING", string_val=[content], tensor_shape=_shape())
    return _value("custom_scalars__config__", tensor=proto, metadata=_metadata("custom_scalars"))


def mesh(
    tag: str, vertices: Any, colors: Any, faces: Any, config_dict: Any,
    display_name: str | None = None, description: str | None = None,
) -> Any:  # fmt: skip
    """Points (N, points, 3) of a body, with colors and faces."""
    settings = "{}" if config_dict is None else json.dumps(config_dict, sort_keys=True)
    given = [
        (each, kind)
        for each, kind in ((vertices, MeshPluginData.VERTEX), (faces, MeshPluginData.FACE),
                           (colors, MeshPluginData.COLOR))
        if each is not None
    ]  # fmt: skip
    parts = mesh_names.get_components_bitmask([kind for _, kind in given])
    values = []
    for each, kind in given:
        array = make_np(each)
        about = mesh_names.create_summary_metadata(
            tag, display_name, kind, parts, array.shape, description, json_config=settings
        )
        proto = TensorProto(
            dtype="DT_FLOAT", float_val=array.reshape(-1).tolist(),
            tensor_shape=_shape(*array.shape[:3]),
        )  # fmt: skip
        name = mesh_names.get_instance_name(tag, kind)
        values.append(Summary.Value(tag=name, tensor=proto, metadata=about))
    return Summary(value=values)


def hparams(
    hparam_dict: dict[str, Any], metric_dict: dict[str, Any],
    hparam_domain_discrete: dict[str, Any] | None = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """An experiment's settings and the names of its results: three records, for what there is, for
    the beginning and for the end of a run."""
    domains = hparam_domain_discrete or {}
    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict),
                        ("hparam_domain_discrete", domains)):  # fmt: skip
        if not isinstance(given, dict):
            raise ArgumentError(f"parameter: {name} should be a dictionary, nothing logged.")
    for name, values in domains.items():
        kind = type(hparam_dict.get(name))
        if name not in hparam_dict or not isinstance(values, list) or not all(
            [isinstance(value, kind) for value in values]
        ):  # fmt: skip
            raise ArgumentError(
                f"parameter: hparam_domain_discrete[{name}] should be a list of same type as "
                f"hparam_dict[{name}]."
            )
    begin = plugin_data_pb2.SessionStartInfo()
    infos = []
    for name, value in hparam_dict.items():
        if value is not None:
            infos.append(_setting(begin, name, value, domains))
    metrics = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=name)) for name in metric_dict]
    experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=metrics)
    done = api_pb2.Status.Value("STATUS_SUCCESS")
    end = plugin_data_pb2.SessionEndInfo(status=done)
    return (
        _hparams(hparams_names.EXPERIMENT_TAG, experiment=experiment),
        _hparams(hparams_names.SESSION_START_INFO_TAG, session_start_info=begin),
        _hparams(hparams_names.SESSION_END_INFO_TAG, session_end_info=end),
    )


def _setting(begin: Any, name: str, value: Any, domains: dict[str, Any]) -> Any:
    if isinstance(value, Tensor):
        value = make_np(value).reshape(-1)[0]
        domains = {}
        kind, field = "FLOAT64", "number_value"
    elif isinstance(value, (int, float)):  # a bool is a number here, as for PyTorch
        kind, field = "FLOAT64", "number_value"
    elif isinstance(value, str):
        kind, field = "STRING", "string_value"
    else:
        raise ValueRangeError("value should be one of int, float, str, bool, or torch.Tensor")
    setattr(begin.hparams[name], field, value)
    among = None
    if name in domains:
        values = [struct_pb2.Value(**{field: each}) for each in domains[name]]
        among = struct_pb2.ListValue(values=values)
    data_type = api_pb2.DataType.Value(f"DATA_TYPE_{kind}")
    return api_pb2.HParamInfo(name=name, type=data_type, domain_discrete=among)


def _hparams(tag: str, **content: Any) -> Any:
    data = plugin_data_pb2.HParamsPluginData(version=hparams_names.PLUGIN_DATA_VERSION, **content)
    about = _metadata(hparams_names.PLUGIN_NAME, data.SerializeToString())
    return _value(tag, metadata=about)
