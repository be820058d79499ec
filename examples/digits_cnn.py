"""A convolutional network reads handwritten digits: loaders, a training loop, a test accuracy.

    python examples/digits_cnn.py [--steps 400] [--seed 0] [--out digits_cnn.png]

The data, 1797 images of 8 by 8 pixels, comes with scikit-learn. The picture shows the loss, the
first layer's filters, and the digits that the network misreads.
"""

import argparse

from sklearn.datasets import load_digits

import antorcha as torch

nn, F = torch.nn, torch.nn.functional
DataLoader, TensorDataset = torch.utils.data.DataLoader, torch.utils.data.TensorDataset


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(32)
        self.dropout = nn.Dropout(0.2)
        self.out = nn.Linear(32 * 2 * 2, 10)

    def forward(self, x):  # (B, 1, 8, 8)
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)  # (B, 16, 4, 4)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)  # (B, 32, 2, 2)
        return self.out(self.dropout(x.flatten(1)))  # (B, 10)


def load_data():
    """The digits, in an order of their own: 1437 to learn from, 360 to test with."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16  # (1797, 1, 8, 8)
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(images))
    train, test = order[:1437], order[1437:]
    return TensorDataset(images[train], labels[train]), TensorDataset(images[test], labels[test])


def endless(loader):
    """The loader's batches, epoch after epoch."""
    while True:
        yield from loader


@torch.no_grad()
def predict(model, images):
    model.eval()  # no dropout, and the batch norm's running averages
    return model(images).argmax(1)


def train(model, loader, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=steps)
    model.train()
    losses = []
    for step, (images, labels) in zip(range(1, steps + 1), endless(loader)):
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 50 == 0 or step <= 5:
            print(f"step {step:3}  loss {losses[-1]:.4f}")
    return losses


def draw(path, losses, filters, images, labels, read):
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return print("no picture: matplotlib is not installed")
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    left, middle, right = figure.subfigures(1, 3, width_ratios=[2, 1, 2])
    left.suptitle("loss")
    left.subplots().semilogy(losses, linewidth=0.8)
    middle.suptitle("filters of the first layer")
    for axes, weight in zip(middle.subplots(4, 4).flat, filters):
        axes.imshow(weight[0], cmap="RdBu", vmin=-0.6, vmax=0.6)
        axes.axis("off")
    right.suptitle("misread: truth → answer")
    wrong = (read != labels).nonzero().flatten().tolist()
    for k, axes in enumerate(right.subplots(2, 4).flat):
        axes.axis("off")
        if k < len(wrong):
            axes.imshow(images[wrong[k], 0], cmap="gray_r")
            axes.set_title(f"{labels[wrong[k]]} → {read[wrong[k]]}", fontsize=9)
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="digits_cnn.png", help="where the picture goes")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    training, test = load_data()
    model = Reader()
    print(model)
    losses = train(model, DataLoader(training, batch_size=64, shuffle=True), options.steps)

    images, labels = test.tensors
    read = predict(model, images)
    filters = model.conv1.weight.detach().numpy()
    draw(options.out, losses, filters, images.numpy(), labels, read)
    print(f"test accuracy: {(read == labels).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
