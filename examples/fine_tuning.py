"""Fine-tuning: what a network learnt on many digits helps it with new ones it saw five times each.

    python examples/fine_tuning.py [--steps 300] [--seed 0] [--out fine_tuning.png]

A network learns the digits 0 to 4 and is saved to a `.pt` file. Another one takes its body from the
file (`strict=False`: the file has no head for it), freezes it, and trains a new head on the digits
5 to 9, five images of each. A third learns the same 25 images from scratch. The data comes with
scikit-learn; the picture shows how often each of the two is right.
"""

import argparse
import os
import tempfile

import antorcha as torch
from sklearn.datasets import load_digits

nn, F = torch.nn, torch.nn.functional


class Reader(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(  # (B, 1, 8, 8)
            nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),  # (B, 32, 4, 4)
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.Flatten(),  # (B, 1024)
        )  # fmt: skip
        self.head = nn.Linear(64 * 4 * 4, classes)

    def forward(self, x):
        return self.head(self.body(x))  # (B, classes)


@torch.no_grad()
def accuracy(model, images, labels):
    return (model(images).argmax(1) == labels).float().mean().item()


def train(name, model, images, labels, steps, test):
    """Trains what is not frozen; the accuracy on the test images every ten steps."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    print(f"{name}: {sum(p.numel() for p in parameters)} parameters learn from {len(images)} images")
    optimizer = torch.optim.AdamW(parameters, lr=2e-3)
    curve = []
    for step in range(1, steps + 1):
        batch = torch.randint(len(images), (32,))
        loss = F.cross_entropy(model(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            curve.append((step, accuracy(model, *test)))
        if step % 100 == 0 or step <= 5:
            print(f"  step {step:3}  loss {loss.item():.4f}")
    return curve


def load_body(path, model):
    """The saved body for a model with another head."""
    saved = torch.load(path)  # tensors only: nothing in the file is executed
    body = {name: value for name, value in saved.items() if name.startswith("body.")}
    missing, unexpected = model.load_state_dict(body, strict=False)
    print(f"loaded {sorted(body)}; not in the file: {missing}")
    assert not unexpected
    model.body.requires_grad_(False)  # frozen: no gradients, and the optimizer never sees it


def draw(path, curves):
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return print("no picture: matplotlib is not installed")
    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    for name, curve in curves.items():
        axes.plot(*zip(*curve), label=name)
    axes.set(xlabel="step", ylabel="accuracy on unseen digits", ylim=(0, 1))
    axes.legend(loc="lower right")
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="fine_tuning.png", help="where the picture goes")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16  # (1797, 1, 8, 8)
    labels = torch.tensor(digits.target)
    old, new = labels < 5, labels >= 5
    old_images, old_labels = images[old], labels[old]
    new_images, new_labels = images[new], labels[new] - 5
    few = torch.cat([(new_labels == k).nonzero()[:5, 0] for k in range(5)])  # five of each
    rest = torch.ones(len(new_labels), dtype=torch.bool).index_fill(0, few, False)
    test = new_images[rest], new_labels[rest]

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "reader.pt")
        first = Reader(classes=5)
        train("0 to 4", first, old_images, old_labels, options.steps, (old_images, old_labels))
        torch.save(first.state_dict(), path)

        tuned = Reader(classes=5)
        load_body(path, tuned)
    before = [p.clone() for p in tuned.body.parameters()]
    scratch = Reader(classes=5)
    curves = {}
    for name, model in ("fine-tuned", tuned), ("from scratch", scratch):
        curves[name] = train(name, model, new_images[few], new_labels[few], options.steps, test)

    assert all(map(torch.equal, before, tuned.body.parameters()))
    draw(options.out, curves)
    ends = {name: accuracy(model, *test) for name, model in zip(curves, (tuned, scratch))}
    print(f"accuracy on 5 to 9 fine-tuned: {ends['fine-tuned']:.3f}; "
          f"from scratch: {ends['from scratch']:.3f}")  # fmt: skip


if __name__ == "__main__":
    main()
