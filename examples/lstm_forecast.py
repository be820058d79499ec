"""An LSTM learns a chaotic series and forecasts it from its own forecasts.

    python examples/lstm_forecast.py [--steps 300] [--seed 0] [--out lstm_forecast.png]

The series is Mackey and Glass's model of how the number of blood cells swings ("Oscillation and
chaos in physiological control systems", 1977). The network sees it up to today and says tomorrow's
value; fed with its own answers it goes on alone. The picture shows where it loses the track.
"""

import argparse
import math

import antorcha as torch

nn, F = torch.nn, torch.nn.functional
LENGTH, AHEAD = 1000, 150
WINDOW = 64


def mackey_glass(length, delay=17, substeps=10):
    """x'(t) = 0.2 x(t - delay) / (1 + x(t - delay)**10) - 0.1 x(t), every third unit of time."""
    history = [1.2] * (delay * substeps + 1)
    for _ in range(3 * substeps * (length + 50)):
        past, x = history[-delay * substeps - 1], history[-1]
        history.append(x + (0.2 * past / (1 + past**10) - 0.1 * x) / substeps)
    return history[-3 * substeps * length :: 3 * substeps]


class Forecaster(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, num_layers=2, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x, state=None):  # (B, T)
        hidden, state = self.lstm(x[..., None], state)  # (B, T, hidden)
        return x + self.out(hidden)[..., 0], state  # (B, T): how much it changes, from here on

    @torch.no_grad()
    def forecast(self, past, steps):  # (T,)
        answers, state = self(past[None])
        values = [answers[:, -1:]]  # (1, 1)
        while len(values) < steps:
            answer, state = self(values[-1], state)
            values.append(answer)
        return torch.cat(values, dim=1)[0]  # (steps,)


def train(model, series, steps):
    windows = series.unfold(0, WINDOW + 1, 1)  # (n, WINDOW + 1): a view, no copy
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(1, steps + 1):
        batch = windows[torch.randint(len(windows), (32,))]
        answers, _ = model(batch[:, :-1])
        loss = F.mse_loss(answers, batch[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 0 or step <= 5:
            print(f"step {step:3}  loss {loss.item():.6f}")


def draw(path, past, truth, forecast):
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return print("no picture: matplotlib is not installed")
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.plot(range(-100, 0), past[-100:], color="gray", label="seen")
    axes.plot(range(len(truth)), truth, color="black", label="what came")
    axes.plot(range(len(truth)), forecast, color="tab:red", label="forecast")
    axes.set(xlabel="time from the last value seen", ylim=(-3, 3))
    axes.legend(loc="upper left", ncols=3)
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="lstm_forecast.png", help="where the picture goes")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    series = torch.tensor(mackey_glass(LENGTH + AHEAD))
    series = (series - series.mean()) / series.std()
    past, truth = series[:LENGTH], series[LENGTH:]
    model = Forecaster()
    train(model, past, options.steps)

    forecast = model.forecast(past, AHEAD)
    draw(options.out, past.tolist(), truth.tolist(), forecast.tolist())
    for ahead in (1, 10, 50):
        error = math.sqrt(F.mse_loss(forecast[:ahead], truth[:ahead]).item())
        print(f"error over the next {ahead:2} values: {error:.3f} of the standard deviation")


if __name__ == "__main__":
    main()
