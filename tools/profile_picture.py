"""Draws docs/img/flame_graph.svg and memory_timeline.svg: a profile of some training steps of a
small network.

python tools/profile_picture.py
"""

from __future__ import annotations

from pathlib import Path

import antorcha as torch
from antorcha.profiler import profile, record_function


def main() -> None:
    """Trains, profiles, draws."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)
    )
    optimizer = torch.optim.Adam(model.parameters())
    loss_of = torch.nn.CrossEntropyLoss()
    data = torch.utils.data.TensorDataset(torch.randn(640, 256), torch.randint(0, 10, (640,)))
    loader = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True)

    def epoch() -> None:
        for x, labels in loader:
            with record_function("forward"):
                loss = loss_of(model(x), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    epoch()  # plans and compiles
    with profile(with_stack=True) as prof:
        epoch()
    pictures = Path(__file__).parents[1] / "docs" / "img"
    prof.export_flame_graph(str(pictures / "flame_graph.svg"))

    images, labels = torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(16 * 14 * 14, 128), torch.nn.ReLU(),
        torch.nn.Linear(128, 10),
    )  # fmt: skip
    adam = torch.optim.Adam(net.parameters())

    def step() -> None:
        with record_function("forward"):
            loss = loss_of(net(images), labels)
        adam.zero_grad()
        loss.backward()
        adam.step()

    for _ in range(4):
        step()
    with profile(profile_memory=True) as held:
        for _ in range(3):
            step()
    held.export_memory_timeline(str(pictures / "memory_timeline.svg"))


if __name__ == "__main__":
    main()
