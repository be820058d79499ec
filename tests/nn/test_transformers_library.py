"""Hugging Face transformers, unmodified, where it is installed: models train, generate, are saved.

The library asks ``torch``, so the program runs in a child that ``antorcha run`` serves.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

small = dict(vocab_size=50, bos_token_id=0, eos_token_id=1, pad_token_id=0)
for model_class, config in (
    (GPT2LMHeadModel, GPT2Config(n_layer=2, n_embd=32, n_head=4, n_positions=32, **small)),
    (LlamaForCausalLM, LlamaConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=64, **small)),
):
    torch.manual_seed(0)
    model = model_class(config)
    tokens = torch.randint(2, 50, (2, 12))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(5):
        loss = model(input_ids=tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"loss {loss.item():.4f}")
    model.eval()
    prompt = dict(inputs=tokens[:, :4], attention_mask=torch.ones(2, 4), max_new_tokens=8)
    for how in ({}, {"do_sample": True, "top_k": 20, "top_p": 0.9}, {"num_beams": 3}):
        torch.manual_seed(1)
        print("tokens", model.generate(**prompt, **how).tolist())
    model.save_pretrained(sys.argv[1], max_shard_size="20KB")
    again = model_class.from_pretrained(sys.argv[1]).eval()
    assert torch.equal(again(tokens).logits, model(tokens).logits)
"""


def _run(folder: Path, *command: str) -> list[str]:
    script = folder / "program.py"
    script.write_text(PROGRAM)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    result = subprocess.run(
        [sys.executable, *command, str(script), str(folder / "model")],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return [line for line in result.stdout.splitlines() if line.startswith(("loss", "tokens"))]


needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)


@needs_transformers
def test_models_train_generate_and_are_saved(tmp_path: Path) -> None:
    lines = _run(tmp_path, "-m", "antorcha", "run")
    assert len(lines) == 16
    for losses in (lines[:5], lines[8:13]):
        assert float(losses[-1].split()[1]) < float(losses[0].split()[1])


@needs_transformers
@pytest.mark.oracle
def test_losses_and_tokens_are_those_of_pytorch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    for ours, theirs in zip(_run(tmp_path, "-m", "antorcha", "run"), _run(tmp_path), strict=True):
        if ours.startswith("loss"):
            assert float(ours.split()[1]) == pytest.approx(float(theirs.split()[1]), abs=2e-4)
        else:
            assert ours == theirs
