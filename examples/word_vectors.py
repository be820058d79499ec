"""Word vectors from a corpus made on the spot: skip-grams with negative sampling (word2vec).

    antorcha run examples/word_vectors.py

Words that stand in the same places get near vectors (Mikolov and others, 2013). The corpus is made
of four patterns, so what is near what is known: animals, foods, cities, colours.
"""

import torch
import torch.nn.functional as F
from torch import nn

KINDS = {
    "animals": ["cat", "dog", "horse", "cow", "sheep"],
    "foods": ["bread", "rice", "soup", "cheese", "apples"],
    "cities": ["madrid", "lima", "quito", "bogota", "havana"],
    "colours": ["red", "green", "blue", "white", "black"],
}
PATTERNS = [
    ("the", "animals", "sleeps", "and", "eats", "foods"),
    ("we", "cook", "foods", "in", "cities"),
    ("trains", "leave", "cities", "for", "cities", "today"),
    ("paint", "it", "colours", "or", "colours", "again"),
]
WINDOW = 2
NEGATIVES = 5


def pick(choices):
    return choices[torch.randint(len(choices), ()).item()]


def make_corpus(sentences):
    for _ in range(sentences):
        yield [pick(KINDS[word]) if word in KINDS else word for word in pick(PATTERNS)]


def main():
    torch.manual_seed(0)
    corpus = list(make_corpus(1500))
    words = sorted({word for sentence in corpus for word in sentence})
    number = {word: k for k, word in enumerate(words)}
    pairs = torch.tensor(
        [
            (number[sentence[i]], number[sentence[j]])
            for sentence in corpus
            for i in range(len(sentence))
            for j in range(max(0, i - WINDOW), min(len(sentence), i + WINDOW + 1))
            if i != j
        ]
    )  # (n, 2)
    print(f"{len(words)} words, {len(pairs)} pairs")

    # A word has one vector as the middle of a window, another as a neighbour in it.
    middle = nn.Embedding(len(words), 12)
    beside = nn.Embedding(len(words), 12)
    optimizer = torch.optim.Adam([*middle.parameters(), *beside.parameters()], lr=0.01)
    for epoch in range(1, 9):
        total = 0.0
        batches = torch.randperm(len(pairs)).split(512)
        for batch in batches:
            centre, near = pairs[batch].unbind(1)  # (B,)
            far = torch.randint(len(words), (len(batch), NEGATIVES))
            m = middle(centre)  # (B, 12)
            agree = (m * beside(near)).sum(1)  # (B,)
            differ = torch.einsum("bd,bnd->bn", m, beside(far))  # (B, NEGATIVES)
            loss = -(F.logsigmoid(agree).mean() + F.logsigmoid(-differ).sum(1).mean())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}  loss {total / len(batches):.4f}")

    vectors = F.normalize(middle.weight.detach(), dim=1)
    kind_of = {word: kind for kind, members in KINDS.items() for word in members}
    named = [word for word in words if word in kind_of]
    chosen = vectors[[number[word] for word in named]]
    alike = chosen @ chosen.T - 2 * torch.eye(len(named))  # cosines; no word is its own neighbour
    nearest = [named[k] for k in alike.argmax(1).tolist()]
    for members in KINDS.values():
        word = members[0]
        print(f"nearest to {word}: {nearest[named.index(word)]}")
    right = sum(kind_of[a] == kind_of[b] for a, b in zip(named, nearest))
    print(f"nearest neighbour of the same kind: {right} of {len(named)}")


if __name__ == "__main__":
    main()
