"""Two networks play against each other until one draws handwritten digits: a GAN.

    python examples/gan_digits.py [--steps 1500] [--seed 0] [--out gan_digits.png]

The generator makes images of noise; the discriminator tells them from real ones, and each learns
from the other (Goodfellow and others, 2014; with convolutions, Radford and others, 2015). The data,
1797 images of 8 by 8 pixels, comes with scikit-learn. The picture shows drawn and real digits.
"""

import argparse

from sklearn.datasets import load_digits

import antorcha as torch

nn, F = torch.nn, torch.nn.functional
NOISE = 16
BATCH = 64


def make_generator():
    return nn.Sequential(  # (B, NOISE, 1, 1)
        nn.ConvTranspose2d(NOISE, 64, 2, bias=False), nn.BatchNorm2d(64), nn.ReLU(),  # 2 by 2
        nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(32), nn.ReLU(),  # 4 by 4
        nn.ConvTranspose2d(32, 1, 4, stride=2, padding=1), nn.Tanh(),  # (B, 1, 8, 8)
    )  # fmt: skip


def make_discriminator():
    return nn.Sequential(  # (B, 1, 8, 8)
        nn.Conv2d(1, 32, 4, stride=2, padding=1), nn.LeakyReLU(0.2), nn.Dropout(0.3),  # 4 by 4
        nn.Conv2d(32, 64, 4, stride=2, padding=1), nn.LeakyReLU(0.2), nn.Dropout(0.3),  # 2 by 2
        nn.Flatten(), nn.Linear(64 * 2 * 2, 1),
    )  # fmt: skip


def initialize(module):
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(module.weight, std=0.05)


def noise(count):
    return torch.randn(count, NOISE, 1, 1)


def train(generator, discriminator, images, steps):
    """Steps of both; the losses of each."""
    g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
    d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
    true, false = torch.full((BATCH, 1), 0.9), torch.zeros(BATCH, 1)  # 0.9: not too sure of itself
    loss_of = nn.BCEWithLogitsLoss()
    losses = []
    for step in range(1, steps + 1):
        real = images[torch.randint(len(images), (BATCH,))]
        fake = generator(noise(BATCH))

        # The discriminator; `detach` keeps its gradient out of the generator.
        d_loss = loss_of(discriminator(real), true) + loss_of(discriminator(fake.detach()), false)
        d_optimizer.zero_grad()
        d_loss.backward()
        d_optimizer.step()

        # The generator wants its images to pass for real ones.
        g_loss = loss_of(discriminator(fake), torch.ones(BATCH, 1))
        g_optimizer.zero_grad()
        g_loss.backward()
        g_optimizer.step()

        losses.append((d_loss.item(), g_loss.item()))
        if step % 250 == 0 or step <= 5:
            d, g = losses[-1]
            print(f"step {step:4}  loss of the discriminator {d:.4f}  of the generator {g:.4f}")
    return losses


def sheet(images, columns=10):  # (n, 1, 8, 8) -> one image: rows of images with gaps between them
    tiles = F.pad(images, (1, 1, 1, 1), value=-1).view(-1, columns, 10, 10)
    return tiles.permute(0, 2, 1, 3).reshape(-1, columns * 10).numpy()


def draw(path, drawn, real, losses):
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return print("no picture: matplotlib is not installed")
    figure = Figure(figsize=(11, 2.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for axes, title, images in ((left, "drawn", drawn), (middle, "real", real)):
        axes.imshow(sheet(images), cmap="gray_r")
        axes.set_title(title)
        axes.axis("off")
    right.plot(losses, linewidth=0.5, label=["discriminator", "generator"])
    right.set(xlabel="step", title="loss")
    right.legend()
    figure.savefig(path, dpi=80)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="gan_digits.png", help="where the picture goes")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 8 - 1  # from -1 to 1
    generator = make_generator().apply(initialize)
    discriminator = make_discriminator().apply(initialize)
    losses = train(generator, discriminator, images, options.steps)

    with torch.no_grad():
        drawn = generator.eval()(noise(60))  # (60, 1, 8, 8)
        d = discriminator.eval()
        odds = [torch.sigmoid(d(x)).mean().item() for x in (drawn, images)]
    draw(options.out, drawn, images[:60], losses)
    print(
        f"real, says the discriminator of drawn digits: {odds[0]:.2f}, of real ones: {odds[1]:.2f}"
    )


if __name__ == "__main__":
    main()
