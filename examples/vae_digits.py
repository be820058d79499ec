"""A variational autoencoder lays handwritten digits out on a plane and draws new ones.

    python examples/vae_digits.py [--steps 1500] [--seed 0] [--out vae_digits.png]

The encoder gives each image a small cloud of points in the plane, the decoder an image for each
point (Kingma and Welling, "Auto-Encoding Variational Bayes", 2013). The data, 1797 images of 8 by
8 pixels, comes with scikit-learn. The picture shows where the digits lie, and what lies where.
"""

import argparse

from sklearn.datasets import load_digits

import antorcha as torch

nn, F = torch.nn, torch.nn.functional
DataLoader, TensorDataset = torch.utils.data.DataLoader, torch.utils.data.TensorDataset


class VAE(nn.Module):
    def __init__(self, hidden=128, latent=2):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.mean = nn.Linear(hidden, latent)
        self.log_variance = nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, 64),
        )  # fmt: skip

    def encode(self, x):  # (B, 64)
        h = self.encoder(x)
        return self.mean(h), self.log_variance(h)  # each (B, latent)

    def forward(self, x):  # (B, 64)
        mean, log_variance = self.encode(x)
        noise = torch.randn_like(mean)
        z = mean + torch.exp(log_variance / 2) * noise  # a point of the cloud, differentiable
        return self.decoder(z), mean, log_variance


def loss_of(x, logits, mean, log_variance):
    """The negative of the evidence's lower bound, per image: see appendix B of the paper."""
    reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
    return (reconstruction + divergence) / len(x)


def train(model, loader, steps):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    step, recent = 0, []
    while True:
        for (images,) in loader:
            loss = loss_of(images, *model(images))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            recent.append(loss.item())
            if step % 250 == 0 or step <= 5:
                print(f"step {step:4}  loss {recent[-1]:.3f}")
            if step == steps:
                return sum(recent[-50:]) / len(recent[-50:])


@torch.no_grad()
def draw(path, model, images, labels, side=12):
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return print("no picture: matplotlib is not installed")
    mean, _ = model.encode(images)  # (n, 2)
    # A grid of which each square is equally likely: the quantiles of the normal distribution.
    quantiles = torch.distributions.Normal(0.0, 1.0).icdf((torch.arange(side) + 0.5) / side)
    points = torch.cartesian_prod(-quantiles, quantiles).flip(1)  # (side * side, 2), from the top
    tiles = F.pad(torch.sigmoid(model.decoder(points)).view(-1, 8, 8), (1, 1, 1, 1))
    sheet = tiles.view(side, side, 10, 10).permute(0, 2, 1, 3).reshape(side * 10, side * 10)

    figure = Figure(figsize=(8, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    dots = left.scatter(*mean.T.tolist(), c=labels, cmap="tab10", s=3)
    figure.colorbar(dots, ax=left, ticks=range(10))
    left.set(title="where the encoder puts the digits", xlim=(-3, 3), ylim=(-3, 3), aspect="equal")
    right.imshow(sheet.numpy(), cmap="gray_r")
    right.set_title("what the decoder draws there")
    right.axis("off")
    figure.savefig(path, dpi=75)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="vae_digits.png", help="where the picture goes")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16  # (1797, 64), from 0 to 1
    model = VAE()
    loader = DataLoader(TensorDataset(images), batch_size=64, shuffle=True)
    loss = train(model, loader, options.steps)
    draw(options.out, model, images, digits.target.tolist())
    print(f"mean loss of the last steps: {loss:.1f}")


if __name__ == "__main__":
    main()
