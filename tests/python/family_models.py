"""Two training steps of a small model of a well-known family, per configuration.

python family_models.py FAMILY CONFIG ... [FAMILY CONFIG ...] ...

What the models need is imported once; a child process, forked after that, trains each time.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers

Batch = Callable[[], dict[str, torch.Tensor]]

TEXT: dict[str, Any] = {
    "vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 32, "max_position_embeddings": 32,
}
PICTURE: dict[str, Any] = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32,
    "image_size": 16, "patch_size": 4,
}
EXPERTS: dict[str, Any] = {**TEXT, "num_key_value_heads": 2, "num_experts_per_tok": 2}


def ids(*shape: int) -> torch.Tensor:
    return torch.randint(5, 50, shape)


def labelled_text() -> dict[str, torch.Tensor]:
    text = ids(2, 8)
    return {"input_ids": text, "labels": text}


def pairs_of_text() -> dict[str, torch.Tensor]:
    return {"input_ids": ids(2, 8), "labels": ids(2, 6)}


def labelled_pictures() -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(3, 3, 16, 16), "labels": torch.randint(0, 5, (3,))}


def labelled_sound() -> dict[str, torch.Tensor]:
    return {"input_features": torch.randn(2, 8, 32), "labels": ids(2, 6)}


def pictures_with_text() -> dict[str, Any]:
    return {"input_ids": ids(3, 8), "pixel_values": torch.randn(3, 3, 16, 16), "return_loss": True}


def make(family: str) -> tuple[torch.nn.Module, Batch]:
    """A model with random weights, and what makes a batch for it."""
    t = transformers
    if family == "llama":
        return t.LlamaForCausalLM(t.LlamaConfig(**TEXT, num_key_value_heads=2)), labelled_text
    if family == "gpt2":
        sizes = {"n_positions": 16, "n_embd": 16, "n_layer": 2, "n_head": 2}
        return t.GPT2LMHeadModel(t.GPT2Config(vocab_size=50, **sizes)), labelled_text
    if family == "bert":
        return t.BertForMaskedLM(t.BertConfig(**TEXT)), labelled_text
    if family == "t5":
        sizes = {"d_model": 16, "d_kv": 4, "d_ff": 32, "num_layers": 2, "num_heads": 4}
        settings = t.T5Config(vocab_size=50, decoder_start_token_id=0, **sizes)
        return t.T5ForConditionalGeneration(settings), pairs_of_text
    if family == "vit":
        return t.ViTForImageClassification(t.ViTConfig(**PICTURE, num_labels=5)), labelled_pictures
    if family == "mixtral":
        return t.MixtralForCausalLM(t.MixtralConfig(**EXPERTS, num_local_experts=4)), labelled_text
    if family == "qwen2_moe":
        settings = t.Qwen2MoeConfig(
            **EXPERTS, num_experts=4, moe_intermediate_size=16, shared_expert_intermediate_size=16
        )
        return t.Qwen2MoeForCausalLM(settings), labelled_text
    if family == "mamba":
        settings = t.MambaConfig(vocab_size=50, hidden_size=16, state_size=4, num_hidden_layers=2)
        return t.MambaForCausalLM(settings), labelled_text
    if family == "whisper":
        parts = ("encoder", "decoder")
        settings = t.WhisperConfig(
            vocab_size=50, num_mel_bins=8, d_model=16, max_source_positions=16,
            max_target_positions=16, pad_token_id=0, bos_token_id=1, eos_token_id=2,
            decoder_start_token_id=1, **{f"{part}_layers": 2 for part in parts},
            **{f"{part}_attention_heads": 4 for part in parts},
            **{f"{part}_ffn_dim": 32 for part in parts},
        )
        return t.WhisperForConditionalGeneration(settings), labelled_sound
    assert family == "clip", family
    tokens = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    settings = t.CLIPConfig(
        text_config={**TEXT, **tokens}, vision_config=PICTURE, projection_dim=16
    )
    return t.CLIPModel(settings), pictures_with_text


def use_memory() -> None:
    """Memory that is given back now, and that later calls get unwritten, holds other numbers."""
    torch.manual_seed(os.getpid())
    for size in range(4, 16):
        del [torch.randn(1 << size) for _ in range(64)][:]


def train(family: str, config: str) -> None:
    from plumbline.pytorch import PrecisionDebugger

    use_memory()
    torch.set_num_threads(int(os.environ.get("FAMILY_THREADS", "1")))
    torch.manual_seed(3)
    model, batch = make(family)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    debugger = PrecisionDebugger(config)
    for _ in range(2):
        inputs = batch()
        debugger.start(model=model)
        model(**inputs).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        debugger.stop()
        debugger.step()


def main() -> int:
    importlib.import_module("torch._dynamo")  # as the first optimizer does
    jobs: list[tuple[str, str]] = []
    family = ""
    for word in sys.argv[1:]:
        if Path(word).suffix == ".json":
            jobs.append((family, word))
        else:
            family = word
    for family, _ in jobs:
        make(family)  # imports its modules
    gc.freeze()  # the children's last collections leave alone what is imported
    failures = 0
    for family, config in jobs:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            train(family, config)
            return 0
        failures += os.waitpid(child, 0)[1] != 0
    return failures


if __name__ == "__main__":
    sys.exit(main())
