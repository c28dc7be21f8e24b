"""A tiny random Llama and random texts for the examples of frameworks; nothing is downloaded."""

from __future__ import annotations

import hashlib
import os

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def make() -> LlamaForCausalLM:
    """A model of two layers."""
    config = LlamaConfig(
        vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=64,
        pad_token_id=0, bos_token_id=1, eos_token_id=None, attn_implementation="eager",
    )
    torch.manual_seed(0)
    return LlamaForCausalLM(config)


class Texts(torch.utils.data.Dataset):
    """Sixteen texts of eight random tokens."""

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(index)
        ids = torch.randint(2, 64, (8,), generator=generator)
        return {"input_ids": ids, "labels": ids}


def fingerprint(model: torch.nn.Module) -> str:
    """A hash of all weights."""
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]
