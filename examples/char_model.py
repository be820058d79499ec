"""A language model of characters: an embedding, two layers, and text sampled from it.

    antorcha run examples/char_model.py

Given the last eight characters, the network says how likely each next one is (Bengio and others,
"A Neural Probabilistic Language Model", 2003). The text is below; it is learnt almost by heart.
"""

import torch
import torch.nn.functional as F
from torch import nn

TEXT = """\
Caminante, son tus huellas
el camino y nada más;
caminante, no hay camino,
se hace camino al andar.
Al andar se hace camino,
y al volver la vista atrás
se ve la senda que nunca
se ha de volver a pisar.
Caminante, no hay camino,
sino estelas en la mar.
"""  # Antonio Machado, "Proverbios y cantares", XXIX (1912)

CONTEXT = 8


class CharModel(nn.Module):
    def __init__(self, symbols, width=16, hidden=96):
        super().__init__()
        self.embedding = nn.Embedding(symbols, width)
        self.hidden = nn.Linear(CONTEXT * width, hidden)
        self.out = nn.Linear(hidden, symbols)

    def forward(self, x):  # (B, CONTEXT), whole numbers
        x = self.embedding(x).flatten(1)  # (B, CONTEXT * width)
        return self.out(torch.tanh(self.hidden(x)))  # (B, symbols)


@torch.no_grad()
def sample(model, start, length, generator, temperature):
    symbols = list(start)
    for _ in range(length):
        logits = model(torch.tensor([symbols[-CONTEXT:]]))[0]
        odds = F.softmax(logits / temperature, dim=0)
        symbols.append(torch.multinomial(odds, 1, generator=generator).item())
    return symbols


def main():
    alphabet = sorted(set(TEXT))
    number = {symbol: k for k, symbol in enumerate(alphabet)}
    data = torch.tensor([number[symbol] for symbol in TEXT])
    windows = data.unfold(0, CONTEXT + 1, 1)  # (n, CONTEXT + 1): a view, no copy
    contexts, wanted = windows[:, :-1], windows[:, -1]

    torch.manual_seed(0)
    model = CharModel(len(alphabet))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(301):
        batch = torch.randint(len(contexts), (64,))
        loss = F.cross_entropy(model(contexts[batch]), wanted[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step:3}  loss {loss.item():.4f}")

    # A generator of one's own: the same text every time, whatever else draws random numbers.
    start = data[:CONTEXT].tolist()
    texts = []
    for _ in range(2):
        generator = torch.Generator().manual_seed(7)
        symbols = sample(model, start, 200, generator, temperature=0.5)
        texts.append("".join(alphabet[k] for k in symbols))
    print(texts[0])
    known = set(TEXT.split())
    words = texts[0].split()[:-1]  # the last one may be cut off
    share = sum(word in known for word in words) / len(words)
    print(f"words from the poem: {share:.2f}; sampled twice alike: {texts[0] == texts[1]}")


if __name__ == "__main__":
    main()
