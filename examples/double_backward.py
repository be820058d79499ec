"""A gradient penalty: the loss contains a gradient, so training takes second derivatives.

    antorcha run examples/double_backward.py

A network learns a distance on the plane: 0 on the unit circle, and a slope of length 1 everywhere
else (the eikonal equation |grad f| = 1). Nobody tells it a distance off the circle: the penalty on
its slope finds them.
"""

import math

import torch
from torch import nn


def slope(f, points, create_graph):
    """The gradient of f at each of the points, (n, 2)."""
    # Each value depends on its own point only, so the gradient of the sum holds each one's.
    (found,) = torch.autograd.grad(f(points).sum(), points, create_graph=create_graph)
    return found


def main():
    torch.manual_seed(0)
    f = nn.Sequential(nn.Linear(2, 32), nn.Softplus(5), nn.Linear(32, 32), nn.Softplus(5),
                      nn.Linear(32, 1))  # fmt: skip
    optimizer = torch.optim.Adam(f.parameters(), lr=5e-3)
    for step in range(601):
        angles = torch.rand(64) * 2 * math.pi
        circle = torch.stack([angles.cos(), angles.sin()], dim=1)  # (64, 2)
        anywhere = (torch.rand(128, 2) * 4 - 2).requires_grad_()
        # create_graph: the gradient is itself a graph, for loss.backward() to go through.
        steepness = slope(f, anywhere, create_graph=True).norm(dim=1)
        # The sign would be free otherwise: the middle is inside, a corner outside.
        sign = torch.relu(f(torch.zeros(1, 2))) + torch.relu(-f(torch.full((1, 2), 2.0)))
        loss = f(circle).pow(2).mean() + 0.1 * (steepness - 1).pow(2).mean() + sign.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step:3}  loss {loss.item():.5f}")

    radii = torch.tensor([0.5, 0.75, 1.0, 1.25, 1.5, 1.75])
    points = torch.stack([radii * math.cos(1.0), radii * math.sin(1.0)], dim=1)
    with torch.no_grad():
        values = f(points)[:, 0]
    for radius, value in zip(radii.tolist(), values.tolist()):
        print(f"radius {radius:.2f}: distance {radius - 1:+.2f}, learnt {value:+.3f}")
    print(f"largest error of the learnt distance: {(values - (radii - 1)).abs().max().item():.3f}")


if __name__ == "__main__":
    main()
