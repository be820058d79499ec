"""A cart learns to balance a pole: reinforcement learning with an actor and a critic.

    python examples/cart_pole.py [--steps 300] [--seed 0] [--out cart_pole.png]

The actor says how likely to push left or right, the critic how long the pole will stay up. A push
after which it stays up longer than the critic said becomes likelier (Mnih and others, "Asynchronous
Methods for Deep Reinforcement Learning", 2016, here with carts in step). The picture shows how long
the pole stayed up as training went on, and one ride afterwards.
"""

import argparse
import math

import antorcha as torch

nn, F = torch.nn, torch.nn.functional
CARTS = 16
HORIZON = 32  # moves between two updates
LIMIT = 500  # moves after which a ride ends well
DISCOUNT = 0.99
SCALE = torch.tensor([1.0, 1.0, 10.0, 2.0])  # the angle is small beside the position


class CartPole:
    """The physics of Barto, Sutton and Anderson (1983): cart 1 kg, pole 1 m and 0.1 kg."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.moves = 0
        self.state = torch.empty(4).uniform_(-0.05, 0.05).tolist()

    def push(self, action):
        """A push of 10 N to the left (0) or the right (1), for 0.02 s. Whether the ride goes on."""
        x, speed, angle, turn = self.state
        sin, cos = math.sin(angle), math.cos(angle)
        force = (10.0 if action else -10.0) + 0.05 * turn**2 * sin
        turning = (9.8 * sin - cos * force / 1.1) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        acceleration = (force - 0.05 * turning * cos) / 1.1
        x, speed = x + 0.02 * speed, speed + 0.02 * acceleration
        angle, turn = angle + 0.02 * turn, turn + 0.02 * turning
        self.state = [x, speed, angle, turn]
        self.moves += 1
        return abs(x) < 2.4 and abs(angle) < math.radians(12)


class ActorCritic(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, 2))
        self.critic = nn.Sequential(nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, state):  # (..., 4)
        state = state * SCALE
        policy = torch.distributions.Categorical(logits=self.actor(state))
        return policy, self.critic(state)[..., 0]


@torch.no_grad()
def play(model, carts, lengths):
    """HORIZON moves of every cart: states, actions, and what each move turned out to be worth."""
    states, actions, going, ends = [], [], [], []
    for _ in range(HORIZON):
        states.append(torch.tensor([cart.state for cart in carts]))  # (CARTS, 4)
        actions.append(model(states[-1])[0].sample())  # (CARTS,)
        up = [cart.push(action) for cart, action in zip(carts, actions[-1].tolist())]
        after = model(torch.tensor([cart.state for cart in carts]))[1]  # what is to come
        done = [not u or cart.moves == LIMIT for cart, u in zip(carts, up)]
        going.append(torch.tensor(up).float())
        ends.append((torch.tensor(done), after))
        for cart, d in zip(carts, done):
            if d:
                lengths.append(cart.moves)
                cart.reset()
    # Backwards: the move's reward and what comes after it; all rewards of an endless ride make 1.
    # Where a ride ends, the critic's word stands for the rest, but if the pole fell all is 0.
    worth, value = [], ends[-1][1]
    for up, (done, after) in zip(reversed(going), reversed(ends)):
        rest = torch.where(done, after, value)
        value = up * (1 - DISCOUNT + DISCOUNT * rest)
        worth.append(value)
    return torch.stack(states), torch.stack(actions), torch.stack(worth[::-1])


def train(model, steps):
    carts = [CartPole() for _ in range(CARTS)]
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    lengths = []
    for step in range(1, steps + 1):
        states, actions, worth = play(model, carts, lengths)  # (HORIZON, CARTS, ...)
        policy, value = model(states)
        advantage = (worth - value).detach()
        advantage = (advantage - advantage.mean()) / advantage.std()
        actor_loss = -(policy.log_prob(actions) * advantage).mean()
        critic_loss = F.mse_loss(value, worth)
        loss = actor_loss + critic_loss - 0.01 * policy.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0 or step <= 5:
            mean = sum(lengths[-20:]) / max(len(lengths[-20:]), 1)
            print(f"step {step:3}  loss {loss.item():7.4f}  the last 20 rides: {mean:5.1f} moves")
    return lengths


@torch.no_grad()
def ride(model):
    """The positions and angles of one ride in which the likelier push is always given."""
    cart, path = CartPole(), []
    up = True
    while up and cart.moves < LIMIT:
        path.append((cart.state[0], math.degrees(cart.state[2])))
        up = cart.push(model(torch.tensor(cart.state))[0].logits.argmax().item())
    return path


def draw(path, lengths, trace):
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return print("no picture: matplotlib is not installed")
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(lengths, ".", markersize=3)
    left.set(xlabel="ride", ylabel="moves until the pole fell", ylim=(0, LIMIT * 1.05))
    right.plot(trace, label=["position (m)", "angle (degrees)"])
    right.set(xlabel="move", title="a ride after training")
    right.legend()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="cart_pole.png", help="where the picture goes")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    model = ActorCritic()
    lengths = train(model, options.steps)
    rides = [ride(model) for _ in range(10)]
    draw(options.out, lengths, rides[0])
    print(f"rides of {LIMIT} moves after training: {sum(len(r) == LIMIT for r in rides)} of 10")


if __name__ == "__main__":
    main()
