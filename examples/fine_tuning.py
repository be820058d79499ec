"""Fine-tuning: what a network learnt from one task helps it with another, of few examples.

    python examples/fine_tuning.py [--steps 400] [--seed 0] [--out fine_tuning.png]

A network learns to read handwritten digits and is saved to a `.pt` file. Another one, that is to
say what a digit leaves when divided by five after seeing only thirty, takes its body from the file
(`strict=False`: the file has no head for it), freezes it, and trains a new head. A third learns the
same thirty images from scratch. The data comes with scikit-learn; the picture shows how often each
of the two is right on images it never saw. Not every task gains: odd or even hardly does.
"""

import argparse
import os
import tempfile

from sklearn.datasets import load_digits

import antorcha as torch

nn, F = torch.nn, torch.nn.functional


class Reader(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(  # (B, 1, 8, 8)
            nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),  # (B, 32, 4, 4)
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),  # (B, 64, 2, 2)
            nn.Flatten(), nn.Linear(256, 32), nn.ReLU(),  # (B, 32)
        )  # fmt: skip
        self.head = nn.Linear(32, classes)

    def forward(self, x):
        return self.head(self.body(x))  # (B, classes)


@torch.no_grad()
def accuracy(model, images, labels):
    return (model(images).argmax(1) == labels).float().mean().item()


def train(name, model, images, labels, steps, test):
    """Trains what is not frozen; the accuracy on the test images every ten steps."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    count = sum(p.numel() for p in parameters)
    print(f"{name}: {count} parameters learn from {len(images)} images")
    optimizer = torch.optim.AdamW(parameters, lr=3e-3)
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
    print(f"loaded {len(body)} tensors; not in the file: {missing}")
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
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="fine_tuning.png", help="where the picture goes")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16  # (1797, 1, 8, 8)
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(images))
    many, few, rest = order[:1000], order[1000:1030], order[1030:]
    remainders = labels % 5
    test = images[rest], remainders[rest]

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "reader.pt")
        reader = Reader(classes=10)
        digit_test = images[rest], labels[rest]
        train("reading digits", reader, images[many], labels[many], options.steps, digit_test)
        torch.save(reader.state_dict(), path)

        tuned = Reader(classes=5)
        load_body(path, tuned)
    models = {"fine-tuned": tuned, "from scratch": Reader(classes=5)}
    curves = {}
    for name, model in models.items():
        curves[name] = train(name, model, images[few], remainders[few], options.steps, test)

    assert all(map(torch.equal, tuned.body.parameters(), reader.body.parameters()))  # frozen
    draw(options.out, curves)
    ends = [accuracy(model, *test) for model in models.values()]
    print(f"remainders, fine-tuned: {ends[0]:.3f}; from scratch: {ends[1]:.3f}")


if __name__ == "__main__":
    main()
