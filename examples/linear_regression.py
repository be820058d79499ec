"""Linear regression by gradient descent, written with autograd alone, beside its closed form.

    antorcha run examples/linear_regression.py

The data (442 patients, 10 measurements, how far their diabetes went) comes with scikit-learn.
"""

import torch
from sklearn.datasets import load_diabetes


def main():
    data = load_diabetes()
    x = torch.tensor(data.data)  # (442, 10), float64
    x = (x - x.mean(0)) / x.std(0)
    y = torch.tensor(data.target)  # (442,)

    # The closed form: the weights w and the bias that solve the normal equations A'A w = A'y.
    a = torch.cat([x, torch.ones(len(x), 1, dtype=x.dtype)], dim=1)  # (442, 11)
    exact = torch.linalg.solve(a.T @ a, a.T @ y)

    # Gradient descent with momentum: autograd finds the gradient of the mean squared error.
    weights = torch.zeros(10, dtype=x.dtype, requires_grad=True)
    bias = torch.zeros((), dtype=x.dtype, requires_grad=True)
    speed = [torch.zeros_like(p) for p in (weights, bias)]
    for step in range(2001):
        loss = ((x @ weights + bias - y) ** 2).mean()
        weights.grad = bias.grad = None  # backward adds to what is there
        loss.backward()
        with torch.no_grad():  # the update itself is not to be differentiated
            for p, v in zip((weights, bias), speed):
                v.mul_(0.95).add_(p.grad)
                p.sub_(0.02 * v)
        if step % 400 == 0:
            print(f"step {step:4}  mean squared error {loss.item():.4f}")

    # The gradient that autograd gives is the one of the book: 2/n A'(A w - y).
    by_hand = 2 / len(y) * x.T @ (x @ weights + bias - y)
    torch.testing.assert_close(weights.grad, by_hand.detach(), rtol=1e-6, atol=1e-6)

    found = torch.cat([weights.detach(), bias.detach()[None]])
    for name, one, other in zip([*data.feature_names, "bias"], found.tolist(), exact.tolist()):
        print(f"{name:5} descent {one:9.4f}   closed form {other:9.4f}")
    difference = (found - exact).abs().max().item()
    print(f"descent agrees with the closed form: {difference < 1e-3}")


if __name__ == "__main__":
    main()
