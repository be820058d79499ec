"""Draws docs/img/flame_graph.svg: a profile of some training steps of a small network.

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
    prof.export_flame_graph(str(Path(__file__).parents[1] / "docs" / "img" / "flame_graph.svg"))


if __name__ == "__main__":
    main()
