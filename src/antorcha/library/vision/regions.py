"""``torch.ops.torchvision.roi_align`` and its relatives, with their gradients, and ``nms``.

Sources: Girshick, "Fast R-CNN" (2015): ``roi_pool``; He et al., "Mask R-CNN" (2017): ``roi_align``;
Dai et al., "R-FCN" (2016): ``ps_roi_pool``; torchvision's reference documentation of each.
"""

from __future__ import annotations

from typing import Any

from antorcha.core.lazy import Array, np
from antorcha.errors import GraphError, MissingFeature, ShapeError, operand
from antorcha.library.custom import register_autograd
from antorcha.library.vision import kernels
from antorcha.library.vision.schemas import OPERATORS
from antorcha.ops.kinds.record import T
from antorcha.runtime.tensor import Tensor
from antorcha.tensor.interop import from_numpy


def elements(name: str, tensors: dict[str, Tensor]) -> list[Array]:
    """The tensors' elements in order; they must be of one dtype, float32 or float64."""
    kinds = {str(each.dtype).removeprefix("torch.") for each in tensors.values()}
    if len(kinds) > 1:
        shown = ", ".join([f"{key} of {each.dtype}" for key, each in tensors.items()])
        raise ShapeError(f"{name}: expected tensors of the same type, got {shown}")
    if not kinds <= kernels.TYPES.keys():
        raise MissingFeature(f'"{name}" not implemented for {kinds.pop()!r}; cast to float32')
    return [each.detach().contiguous().numpy() for each in tensors.values()]


# ------------------------------------------------------------------------------------------ regions
class _Regions:
    """One operator: its forward kernel, its backward kernel and how they are registered."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.by_position = name.startswith("ps_")
        self.samples = name.endswith("align")

    def _kind(self, aligned: bool) -> str:
        return f"{self.name}_aligned" if aligned else self.name

    def _run(
        self, image: Array, rois: Array, result: Array, which: Array | None, scale: float,
        ratio: int, aligned: bool, backward: bool,
    ) -> None:  # fmt: skip
        _, channels, height, width = image.shape
        count, out, ph, pw = result.shape
        batch = rois[:, 0] if count else np.zeros(1)
        if not (batch.min() >= 0 and batch.max() < image.shape[0]):
            raise ShapeError(
                f"{self.name}: rois name images up to {batch.max():g}, and from {batch.min():g}; "
                f"input has {image.shape[0]}"
            )
        if not result.size or not image.size:
            return
        kernels.regions(
            image, rois, result, which, channels, height, width, count, out, ph, pw,
            max(ratio, 0), scale, T=kernels.TYPES[image.dtype.name], KIND=self._kind(aligned),
            BACKWARD=backward,
        )  # fmt: skip

    def forward(
        self, input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int,
        pooled_width: int, sampling_ratio: int = 0, aligned: bool = False,
    ) -> Any:  # fmt: skip
        """The regions' bins; but for ``roi_align`` also which element or channel each came from."""
        if input.dim() != 4 or rois.dim() != 2 or rois.shape[1] != 5:
            raise ShapeError(
                f"{self.name}: input {operand(input.shape)} must be (N, C, H, W), and rois "
                f"{operand(rois.shape)} must have shape as Tensor[K, 5]"
            )
        bins, out = pooled_height * pooled_width, input.shape[1]
        if self.by_position:
            if out % bins:
                raise ShapeError(
                    f"{self.name}: input channels must be a multiple of pooling height * pooling "
                    f"width, got {out} and {pooled_height} * {pooled_width}"
                )
            out //= bins
        image, regions = elements(self.name, {"input": input, "rois": rois})
        shape = (len(regions), out, pooled_height, pooled_width)
        result = np.zeros(shape, image.dtype)
        which = None if self.name == "roi_align" else np.zeros(shape, np.int32)
        self._run(image, regions, result, which, spatial_scale, sampling_ratio, aligned, False)
        return from_numpy(result) if which is None else (from_numpy(result), from_numpy(which))

    def backward(
        self, grad: Tensor, rois: Tensor, which: Tensor | None, spatial_scale: float, ratio: int,
        aligned: bool, sizes: tuple[int, ...],
    ) -> Tensor:  # fmt: skip
        """The gradient of the input of those sizes."""
        given, regions = elements(f"_{self.name}_backward", {"grad": grad, "rois": rois})
        image = np.zeros(sizes, given.dtype)
        from_which = None if which is None else which.contiguous().numpy()
        self._run(image, regions, given, from_which, spatial_scale, ratio, aligned, True)
        return from_numpy(image)

    def register(self) -> None:
        """Gives the two operators their kernels and the first its derivative."""
        back = OPERATORS[f"_{self.name}_backward"]
        OPERATORS[self.name].kernels["cpu"] = self.forward
        back.kernels["cpu"] = self._take_backward
        register_autograd(OPERATORS[self.name], self._derive, self._setup)
        register_autograd(back, once(self.name), None)

    def _take_backward(self, grad: Tensor, rois: Tensor, *rest: Any) -> Tensor:
        """The arguments as the schema of the backward operator has them."""
        which, ratio, aligned = None, 0, False
        if self.name != "roi_align":
            which, *rest = rest  # type: ignore[assignment]
        scale, _, _, *rest = rest  # type: ignore[assignment]
        if self.name == "ps_roi_align":
            ratio, *rest = rest  # type: ignore[assignment]
        elif self.name == "roi_align":
            *rest, ratio, aligned = rest  # type: ignore[assignment]
        return self.backward(grad, rois, which, scale, ratio, aligned, tuple(rest))

    def _setup(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        input, rois, *ctx.options = inputs
        ctx.sizes = tuple(input.shape)
        kept = [rois] if self.name == "roi_align" else [rois, output[1]]
        if self.name != "roi_align":
            ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*kept)

    def _derive(self, ctx: Any, grad: Tensor, *_: Any) -> tuple[Any, ...]:
        rois, *which = ctx.saved_tensors
        scale, ph, pw, *rest = ctx.options
        tail = [*ctx.sizes, *rest] if self.name == "roi_align" else [*rest, *ctx.sizes]
        found = OPERATORS[f"_{self.name}_backward"](grad, rois, *which, scale, ph, pw, *tail)
        return found, *[None] * (1 + len(ctx.options))


def once(name: str) -> Any:
    """The derivative of a backward operator: there is none."""

    def refuse(ctx: Any, *grads: Any) -> Any:
        raise GraphError(f"double backwards on {name} not supported")

    return refuse


for _name in ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool"):
    _Regions(_name).register()


# ---------------------------------------------------------------------------------------------- nms
def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The boxes (N, 4) to keep, int64, by falling score: none overlaps a kept one by more."""
    if dets.dim() != 2 or dets.shape[1] != 4:
        raise ShapeError(f"nms: boxes should be (N, 4), got {operand(dets.shape)}")
    if scores.dim() != 1 or scores.shape[0] != dets.shape[0]:
        raise ShapeError(
            f"nms: scores {operand(scores.shape)} should be a 1d tensor with as many elements as "
            f"there are boxes, {dets.shape[0]}"
        )
    boxes, _ = elements("nms", {"dets": dets, "scores": scores})
    order = T.argsort(scores.detach(), dim=0, descending=True, stable=True).contiguous().numpy()
    n = len(boxes)
    keep, gone = np.zeros(n, np.int64), np.zeros(n, np.uint8)
    areas = np.zeros(n, boxes.dtype)
    kept = kernels.suppress(
        boxes, order, areas, gone, keep, n, iou_threshold, T=kernels.TYPES[boxes.dtype.name]
    )
    return from_numpy(keep[:kept].copy())


OPERATORS["nms"].kernels["cpu"] = nms


def _quantized(*args: Any, **kwargs: Any) -> Any:
    raise MissingFeature("torch.ops.torchvision.q*: there are no quantized tensors in antorcha")


for _name in ("qnms", "qroi_align"):
    OPERATORS[_name].kernels["default"] = _quantized
