"""A small Llama: loads a checkpoint as Hugging Face names it, and writes with a key-value cache.

    python examples/llama.py [--steps 300] [--seed 0] [--out llama.png]
    python examples/llama.py --model FOLDER [--prompt TEXT]

Without a folder, a tiny model of bytes learns from Don Quixote and is saved; the one that writes is
loaded from that file. A folder holds a real one (Llama 2, TinyLlama): config.json,
*.safetensors, and tokenizer.json, which needs the package tokenizers. The picture shows what the
model holds likely after the prompt.
"""

import argparse
import json
import tempfile
from pathlib import Path

import antorcha as torch

nn, F = torch.nn, torch.nn.functional
TEXT = Path(__file__).with_name("quixote.txt")  # Cervantes, 1605; John Ormsby's translation, 1885
CONTEXT = 128  # what the tiny model learns from; it makes no sense of positions beyond
TINY = {"vocab_size": 256, "hidden_size": 96, "intermediate_size": 256, "num_hidden_layers": 3,
        "num_attention_heads": 6, "num_key_value_heads": 2, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0}  # fmt: skip


def rotate(x, positions, theta):
    """Rotary position embedding (Su and others, 2021): pairs of x turn by an angle per position."""
    a, b = x.chunk(2, dim=-1)  # (B, heads, T, half): the pairs, as Hugging Face has them
    speeds = theta ** (-torch.arange(a.shape[-1]) / a.shape[-1])
    angles = positions[:, None] * speeds  # (T, half)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads, self.kv_heads = c["num_attention_heads"], c["num_key_value_heads"]
        self.size, self.theta = c["hidden_size"] // self.heads, c["rope_theta"]
        self.q_proj = nn.Linear(c["hidden_size"], self.heads * self.size, bias=False)
        self.k_proj = nn.Linear(c["hidden_size"], self.kv_heads * self.size, bias=False)
        self.v_proj = nn.Linear(c["hidden_size"], self.kv_heads * self.size, bias=False)
        self.o_proj = nn.Linear(self.heads * self.size, c["hidden_size"], bias=False)

    def forward(self, x, cache):  # (B, T, C); the keys and values of what came before, or None
        B, T, _ = x.shape
        q, k, v = (
            p(x).view(B, T, -1, self.size).transpose(1, 2)  # (B, heads or kv_heads, T, size)
            for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        before = 0 if cache is None else cache[0].shape[2]
        positions = torch.arange(before, before + T)
        q, k = rotate(q, positions, self.theta), rotate(k, positions, self.theta)
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
        # Grouped queries (Ainslie and others, 2023): several heads share a key and a value. After
        # the first call one position comes at a time, and sees all there is.
        first = cache is None
        x = F.scaled_dot_product_attention(q, k, v, is_causal=first, enable_gqa=True)
        return self.o_proj(x.transpose(1, 2).reshape(B, T, -1)), (k, v)


class MLP(nn.Module):  # SwiGLU (Shazeer, 2020)
    def __init__(self, c):
        super().__init__()
        self.gate_proj = nn.Linear(c["hidden_size"], c["intermediate_size"], bias=False)
        self.up_proj = nn.Linear(c["hidden_size"], c["intermediate_size"], bias=False)
        self.down_proj = nn.Linear(c["intermediate_size"], c["hidden_size"], bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm = nn.RMSNorm(c["hidden_size"], eps=c["rms_norm_eps"])
        self.self_attn = Attention(c)
        self.post_attention_layernorm = nn.RMSNorm(c["hidden_size"], eps=c["rms_norm_eps"])
        self.mlp = MLP(c)

    def forward(self, x, cache):
        attended, cache = self.self_attn(self.input_layernorm(x), cache)
        x = x + attended
        return x + self.mlp(self.post_attention_layernorm(x)), cache


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.model = nn.Module()  # only so that the parameters are named model.layers.0...
        self.model.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.model.layers = nn.ModuleList([Layer(c) for _ in range(c["num_hidden_layers"])])
        self.model.norm = nn.RMSNorm(c["hidden_size"], eps=c["rms_norm_eps"])
        self.lm_head = nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)
        if c.get("tie_word_embeddings"):
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, ids, caches=None):  # (B, T)
        x = self.model.embed_tokens(ids)  # (B, T, C)
        new = []
        for layer, cache in zip(self.model.layers, caches or [None] * len(self.model.layers)):
            x, cache = layer(x, cache)
            new.append(cache)
        return self.lm_head(self.model.norm(x)), new  # (B, T, vocabulary), a cache per layer

    @torch.no_grad()
    def write(self, ids, length, temperature=0.7):
        """`ids` and `length` more; with the caches, each costs one position, not all of them."""
        new, caches = torch.tensor([ids]), None
        for _ in range(length):
            logits, caches = self(new, caches)
            new = torch.multinomial(F.softmax(logits[:, -1] / temperature, dim=-1), 1)
            ids = [*ids, new.item()]
        return ids


# Safetensors: the header's length (8 bytes), the header (JSON: dtype, shape, from where to where),
# the numbers. See https://huggingface.co/docs/safetensors.
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def load_safetensors(path):
    data = Path(path).read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        content = bytearray(data[start + first : start + last])  # a copy that may be written to
        tensor = torch.frombuffer(content, dtype=DTYPES[entry["dtype"]])
        tensors[name] = tensor.view(entry["shape"]).float()
    return tensors


def save_safetensors(tensors, path):
    header, content = {}, b""
    for name, tensor in tensors.items():
        span = [len(content), len(content) + 4 * tensor.numel()]
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": span}
        content += tensor.numpy().tobytes()
    text = json.dumps(header).encode()
    Path(path).write_bytes(len(text).to_bytes(8, "little") + text + content)


def load(folder):
    """The model that a folder holds."""
    config = json.loads(Path(folder, "config.json").read_text())
    config.setdefault("num_key_value_heads", config["num_attention_heads"])
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}  # by their age
    if rope.get("rope_type", rope.get("type", "default")) != "default":
        raise ValueError(f"this program does not scale positions: {rope}")
    tensors = {}
    for path in Path(folder).glob("*.safetensors"):
        tensors |= load_safetensors(path)
    if config.get("tie_word_embeddings"):
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
    model = Llama(TINY | config | rope)
    model.load_state_dict(tensors)
    return model


def make(folder, steps):
    """Trains a tiny model and saves it as the real ones are."""
    data = torch.tensor(list(TEXT.read_bytes()))
    windows = data.unfold(0, CONTEXT + 1, 1)  # (n, CONTEXT + 1): a view, no copy
    model = Llama(TINY)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95))
    for step in range(1, steps + 1):
        batch = windows[torch.randint(len(windows), (8,))]
        logits, _ = model(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step <= 5:
            print(f"step {step:3}  loss {loss.item():.4f}")
    Path(folder, "config.json").write_text(json.dumps(TINY))
    save_safetensors(model.state_dict(), Path(folder, "model.safetensors"))


def tokenizer_of(folder):
    """Text to numbers, and back."""
    if not Path(folder, "tokenizer.json").exists():
        return lambda text: list(text.encode()), lambda ids: bytes(ids).decode(errors="replace")
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(folder, "tokenizer.json")))
    return lambda text: tokenizer.encode(text).ids, tokenizer.decode


def draw(path, odds, words, title):
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return print("no picture: matplotlib is not installed")
    figure = Figure(figsize=(6, 3), layout="constrained")
    axes = figure.subplots()
    axes.bar([repr(word) for word in words], odds)
    axes.set(title=title, ylabel="probability")
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a folder with a checkpoint; without it, one is made")
    parser.add_argument("--prompt", default="The knight")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="llama.png", help="where the picture goes")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    with tempfile.TemporaryDirectory() as made:
        if options.model is None:
            make(made, options.steps)
        folder = options.model or made
        model = load(folder)
        encode, decode = tokenizer_of(folder)

    ids = encode(options.prompt)
    with torch.no_grad():
        odds, likeliest = F.softmax(model(torch.tensor([ids]))[0][0, -1], dim=-1).topk(10)
    words = [decode([k]) for k in likeliest.tolist()]
    draw(options.out, odds.tolist(), words, f"what comes after {options.prompt!r}")
    print(decode(model.write(ids, CONTEXT - len(ids))))


if __name__ == "__main__":
    main()
