"""Twenty training steps of a small model, per configuration; prints hashes of losses and weights.

python neutral_models.py MODEL none|CONFIG|black_box:DIRECTORY|monitor:CONFIG ...

What a model needs is imported once; a child process, forked after that, trains each time.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import os
import sys
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


def language_model(name: str) -> nn.Module:
    import transformers

    if name == "gpt2":
        settings = transformers.GPT2Config(
            vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2, attn_pdrop=0.1,
        )
        return transformers.GPT2LMHeadModel(settings)
    settings = transformers.LlamaConfig(
        vocab_size=50, hidden_size=16, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32,
    )
    return transformers.LlamaForCausalLM(settings)


class Convolutions(nn.Module):
    """Batch norm, in-place activations, a skip connection."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(True))
        self.second = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8))
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        y = self.second(x)
        y += x
        y = F.max_pool2d(F.relu(y, inplace=True), 2)
        return self.head(F.dropout(y.mean((2, 3)), 0.1, self.training))


class Checkpointed(nn.Module):
    """Both kinds of activation checkpointing around blocks with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(16, 2, 32, dropout=0.2, batch_first=True) for _ in range(3)
        )
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for index, block in enumerate(self.blocks):
            x = checkpoint(block, x, use_reentrant=index == 1)
        return self.head(x.mean(1))


def make(name: str) -> tuple[nn.Module, Any]:
    """The model, and a function that gives the loss of one step."""
    if name in ("gpt2", "llama"):
        model = language_model(name)

        def text_loss() -> torch.Tensor:
            ids = torch.randint(0, 50, (2, 8))
            return model(input_ids=ids, labels=ids).loss

        return model, text_loss
    model, shape = Convolutions(), (4, 3, 8, 8)
    if name == "checkpoint":
        model, shape = Checkpointed(), (2, 6, 16)

    def class_loss() -> torch.Tensor:
        return F.cross_entropy(model(torch.randn(shape)), torch.randint(0, 5, (shape[0],)))

    return model, class_loss


def train(config: str, name: str) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(3)
    model, loss_of_step = make(name)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    debugger: Any = None
    kind, _, path = config.partition(":")
    if kind == "black_box":
        from plumbline.pytorch import black_box

        black_box(model, optimizer, path, budget=None)
    elif kind == "monitor":
        from plumbline.pytorch import TrainerMon

        os.environ["MONITOR_OUTPUT_DIR"] = path + ".out"
        TrainerMon(path).set_monitor(model, optimizer=optimizer)
    elif config != "none":
        from plumbline.pytorch import PrecisionDebugger

        debugger = PrecisionDebugger(config)
    digest = hashlib.sha256()
    for _ in range(20):
        if debugger is not None:
            debugger.start(model=model)
        loss = loss_of_step()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if debugger is not None:
            debugger.stop()
            debugger.step()
        digest.update(f"{loss.item().hex()} {norm.item().hex()}\n".encode())
    for tensor in [*model.parameters(), *model.buffers()]:
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    print("result", digest.hexdigest())


def main() -> int:
    name, *configs = sys.argv[1:]
    if name in ("gpt2", "llama"):
        make(name)
    importlib.import_module("torch._dynamo")  # as the first optimizer does
    gc.freeze()  # the children's last collections leave alone what is imported
    failures = 0
    for config in configs:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            train(config, name)
            return 0
        failures += os.waitpid(child, 0)[1] != 0
    return failures


if __name__ == "__main__":
    sys.exit(main())
