"""Training stops half-way and resumes from a file, as if it had never stopped.

    antorcha run examples/resume_training.py

A convolutional network learns handwritten digits. The checkpoint holds all that training depends
on: parameters, the optimizer's state, the schedule and the random numbers. Resumed training is then
the same as training that never stopped, to the last bit; the last line says whether it was.
"""

import os
import tempfile

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

EPOCHS = 6
BATCH = 64


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.second = nn.Conv2d(16, 32, 3, padding=1)
        self.out = nn.Linear(32 * 2 * 2, 10)

    def forward(self, x):  # (B, 1, 8, 8)
        x = F.max_pool2d(F.relu(self.norm(self.first(x))), 2)  # (B, 16, 4, 4)
        x = F.max_pool2d(F.relu(self.second(x)), 2)  # (B, 32, 2, 2)
        return self.out(x.flatten(1))  # (B, 10)


class Training:
    """A model with all that its training depends on."""

    def __init__(self):
        self.model = Reader()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=2, gamma=0.5)
        self.epoch = 0

    def one_epoch(self, images, labels):
        self.model.train()
        for batch in torch.randperm(len(images)).split(BATCH):
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(images[batch]), labels[batch])
            loss.backward()
            self.optimizer.step()
        self.schedule.step()
        self.epoch += 1
        return loss.item()

    def save(self, path):
        torch.save(
            {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "schedule": self.schedule.state_dict(),
                "epoch": self.epoch,
                "random": torch.get_rng_state(),
            },
            path,
        )

    def load(self, path):
        saved = torch.load(path)
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.schedule.load_state_dict(saved["schedule"])
        self.epoch = saved["epoch"]
        torch.set_rng_state(saved["random"])


def main():
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16  # (1797, 1, 8, 8)
    labels = torch.tensor(digits.target)
    test_images, test_labels = images[1400:], labels[1400:]
    images, labels = images[:1400], labels[:1400]

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "half_way.pt")
        torch.manual_seed(0)
        first = Training()
        while first.epoch < EPOCHS:
            if first.epoch == EPOCHS // 2:
                first.save(path)
                print(f"saved after epoch {first.epoch}: {sorted(torch.load(path))}")
            loss = first.one_epoch(images, labels)
            print(f"epoch {first.epoch}  loss of the last batch {loss:.4f}")

        torch.manual_seed(123)  # anything: what matters is in the file
        second = Training()
        second.load(path)
        while second.epoch < EPOCHS:
            loss = second.one_epoch(images, labels)
            print(f"resumed, epoch {second.epoch}  loss of the last batch {loss:.4f}")

    model = second.model.eval()
    with torch.no_grad():
        accuracy = (model(test_images).argmax(1) == test_labels).float().mean().item()
    pairs = zip(first.model.parameters(), second.model.parameters())
    same = all(torch.equal(a, b) for a, b in pairs)
    print(f"test accuracy: {accuracy:.3f}; resumed training is the same: {same}")


if __name__ == "__main__":
    main()
