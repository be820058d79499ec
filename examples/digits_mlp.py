"""A small network reads handwritten digits: data loaders, a training loop, a test accuracy.

    antorcha run examples/digits_mlp.py [--optimizer sgd|adam] [--epochs N]

The data, 1797 images of 8 by 8 pixels, comes with scikit-learn.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def make_loaders(batch_size=64):
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16  # pixels are 0 to 16
    labels = torch.tensor(digits.target)
    training, test = random_split(
        TensorDataset(images, labels), [0.8, 0.2], generator=torch.Generator().manual_seed(0)
    )
    return DataLoader(training, batch_size, shuffle=True), DataLoader(test, batch_size)


def train_one_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for images, labels in loader:  # (B, 64), (B,)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
    return total / len(loader.dataset)


@torch.no_grad()
def accuracy(model, loader):
    model.eval()  # switches dropout off
    right = sum((model(images).argmax(1) == labels).sum().item() for images, labels in loader)
    return right / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--optimizer", choices=["sgd", "adam"], default="adam")
    parser.add_argument("--epochs", type=int, default=15)
    options = parser.parse_args()

    torch.manual_seed(0)
    training, test = make_loaders()
    model = nn.Sequential(
        nn.Linear(64, 64),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(64, 10),
    )
    if options.optimizer == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    print(model)
    for epoch in range(1, options.epochs + 1):
        loss = train_one_epoch(model, training, optimizer)
        print(f"epoch {epoch:2}  loss {loss:.4f}  test accuracy {accuracy(model, test):.3f}")
    print(f"final test accuracy: {accuracy(model, test):.3f}")


if __name__ == "__main__":
    main()
