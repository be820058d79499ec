"""A program for PyTorch that uses torchvision and timm; ``test_vision`` runs it."""

import timm
import torch
import torchvision
from torchvision import tv_tensors
from torchvision.models.feature_extraction import create_feature_extractor
from torchvision.transforms import v2

torch.manual_seed(0)
data = torchvision.datasets.FakeData(8, (3, 48, 48), 4, v2.Compose(
    [v2.RandomCrop(32), v2.RandomHorizontalFlip(), v2.ToImage(), v2.ToDtype(torch.float32, True)]
))  # fmt: skip
loader = torch.utils.data.DataLoader(data, batch_size=4)
model = torchvision.models.resnet18(num_classes=4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for images, labels in loader:
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("resnet18 trained", torch.isfinite(loss).item())

features = create_feature_extractor(model.eval(), {"layer2": "middle"})(images)
assert features["middle"].shape == (4, 128, 4, 4)
picture = tv_tensors.Image(torch.zeros(3, 4, 4, dtype=torch.uint8))
assert type(picture.clone()) is tv_tensors.Image
assert type(picture + 1) is torch.Tensor
kept = torchvision.ops.nms(torch.tensor([[0.0, 0, 1, 1], [0, 0, 1, 0.9]]), torch.ones(2), 0.5)
assert kept.tolist() == [0]

small = timm.create_model("vit_tiny_patch16_224", num_classes=3, img_size=32)
small(torch.rand(1, 3, 32, 32)).sum().backward()
print("timm vit_tiny_patch16_224 ran")
