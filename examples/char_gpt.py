"""A GPT learns to write from five chapters of Don Quixote, one character at a time.

    python examples/char_gpt.py [--steps 1200] [--seed 0] [--out char_gpt.png]

A transformer reads 64 characters and says, at each, how likely every next one is (Radford and
others, "Language Models are Unsupervised Multitask Learners", 2019). Sampling from what it says
writes new text. The picture shows the loss on text it learns from and on text it never saw.
"""

import argparse
import textwrap
from pathlib import Path

import antorcha as torch

nn, F = torch.nn, torch.nn.functional
TEXT = Path(__file__).with_name("quixote.txt")  # Cervantes, 1605; John Ormsby's translation, 1885
CONTEXT = 64


class Attention(nn.Module):
    """Every character looks at those before it, in several ways ("heads") at once."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):  # (B, T, C)
        B, T, C = x.shape
        qkv = self.qkv(x).view(B, T, 3, self.heads, C // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # each (B, heads, T, C / heads)
        x = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(x.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):  # (B, T, C)
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, symbols, width=96, heads=4, layers=3):
        super().__init__()
        self.symbol = nn.Embedding(symbols, width)
        self.position = nn.Embedding(CONTEXT, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, symbols, bias=False)
        self.apply(self.initialize)

    def initialize(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, ids):  # (B, T), whole numbers
        x = self.symbol(ids) + self.position(torch.arange(ids.shape[1]))  # (B, T, C)
        return self.head(self.norm(self.blocks(x)))  # (B, T, symbols)

    def loss(self, windows):  # (B, CONTEXT + 1): each character is to be told from those before it
        logits = self(windows[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())

    @torch.no_grad()
    def write(self, ids, length, temperature=0.7):  # (1, T)
        for _ in range(length):
            logits = self(ids[:, -CONTEXT:])[:, -1]  # (1, symbols)
            odds = F.softmax(logits / temperature, dim=-1)
            ids = torch.cat([ids, torch.multinomial(odds, 1)], dim=1)
        return ids


def train(model, data, steps):
    windows = data.unfold(0, CONTEXT + 1, 1)  # (n, CONTEXT + 1): a view, no copy
    known, unseen = windows[: len(windows) * 9 // 10], windows[len(windows) * 9 // 10 :: 32]
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=3e-3, total_steps=steps, pct_start=0.1, cycle_momentum=False
    )  # up for a tenth of the steps (at full speed the first ones overshoot), then down
    losses, checks = [], []
    for step in range(1, steps + 1):
        loss = model.loss(known[torch.randint(len(known), (32,))])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 100 == 0 or step <= 5:
            with torch.no_grad():
                checks.append((step, model.loss(unseen).item()))
            print(f"step {step:4}  loss {losses[-1]:.4f}  on unseen text {checks[-1][1]:.4f}")
    return losses, checks


def draw(path, losses, checks, text):
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return print("no picture: matplotlib is not installed")
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(range(1, len(losses) + 1), losses, linewidth=0.6, label="text it learns from")
    left.plot(*zip(*checks), "o-", label="text it never saw")
    left.set(xlabel="step", ylabel="loss (nats per character)")
    left.legend()
    right.axis("off")
    right.text(0, 1, textwrap.fill(text, 60), va="top", family="monospace", fontsize=8)
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="char_gpt.png", help="where the picture goes")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    text = TEXT.read_text(encoding="utf-8")
    alphabet = sorted(set(text))
    number = {symbol: k for k, symbol in enumerate(alphabet)}
    model = GPT(len(alphabet))
    print(f"{len(text)} characters, {sum(p.numel() for p in model.parameters())} parameters")
    losses, checks = train(model, torch.tensor([number[s] for s in text]), options.steps)

    start = torch.tensor([[number[s] for s in "Don Quixote "]])
    written = "".join(alphabet[k] for k in model.write(start, 500)[0].tolist())
    print(written)
    draw(options.out, losses, checks, written)


if __name__ == "__main__":
    main()
