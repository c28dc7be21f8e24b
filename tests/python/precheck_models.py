"""One training step of a small model, recorded for the pre-check.

    python precheck_models.py RECORDER MODEL DTYPE CONFIG [MODEL DTYPE CONFIG ...]

RECORDER is the module that has PrecisionDebugger: plumbline.pytorch or upstream's msprobe.pytorch.
What the models need is imported once; a child process, forked after that, trains each.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers  # before upstream's recorder, which replaces what it imports
from torch import nn

TEXT: dict[str, Any] = {
    "vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 48, "max_position_embeddings": 32, "num_key_value_heads": 2,
    "attn_implementation": "eager",  # products and softmax as calls of their own
}


FAMILIES = {"llama": "LlamaForCausalLM", "mixtral": "MixtralForCausalLM"}


class ResidualNet(nn.Module):
    """A residual network of two blocks, as ResNet is built."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
                          nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8))
            for _ in range(2))
        self.head = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.max_pool2d(self.stem(x), 2)
        for block in self.blocks:
            x = nn.functional.relu(x + block(x))
        return self.head(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


class Recurrent(nn.Module):
    """An embedding, two layers of LSTM, a projection."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 12)
        self.layers = nn.LSTM(12, 16, num_layers=2, batch_first=True)
        self.head = nn.Linear(16, 30)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.words(x))[0])


def loss_of(name: str, dtype: torch.dtype) -> tuple[nn.Module, Any]:
    """A model, and what computes its loss."""
    if name in ("llama", "mixtral"):
        if name == "llama":
            model: nn.Module = transformers.LlamaForCausalLM(transformers.LlamaConfig(**TEXT))
        else:
            settings = transformers.MixtralConfig(**TEXT, num_local_experts=4,
                                                  num_experts_per_tok=2)
            model = transformers.MixtralForCausalLM(settings)
        text = torch.randint(5, 50, (2, 8))
        return model.to(dtype), lambda: model(input_ids=text, labels=text).loss
    if name == "resnet":
        model = ResidualNet().to(dtype)
        pictures = torch.randn(4, 3, 12, 12, dtype=dtype)
        labels = torch.randint(0, 5, (4,))
        return model, lambda: nn.functional.cross_entropy(model(pictures).float(), labels)
    assert name == "lstm", name
    model = Recurrent().to(dtype)
    words = torch.randint(0, 30, (3, 6))
    return model, lambda: nn.functional.cross_entropy(model(words).float().flatten(0, 1),
                                                      words.flatten())


def train(recorder: str, name: str, dtype: str, config: str) -> None:
    """Records one step."""
    debuggers = importlib.import_module(recorder)
    torch.manual_seed(3)
    model, loss = loss_of(name, getattr(torch, dtype))
    debugger = debuggers.PrecisionDebugger(config)
    debugger.start(model)
    loss().backward()
    debugger.stop()
    debugger.step()


def main() -> int:
    recorder, *words = sys.argv[1:]
    failures = 0
    # Modules that transformers would import when they are first asked for, in each child.
    for name in set(words[::3]) & FAMILIES.keys():
        getattr(transformers, FAMILIES[name])
    if recorder == "plumbline.pytorch":  # upstream's changes what it finds
        importlib.import_module(recorder)
    gc.freeze()
    for name, dtype, config in zip(*[iter(words)] * 3, strict=True):
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            torch.set_num_threads(1)
            train(recorder, name, dtype, config)
            sys.stdout.flush()
            # Upstream writes its files when the interpreter ends.
            sys.exit(0)
        failures += os.waitpid(child, 0)[1] != 0
    return failures


if __name__ == "__main__":
    sys.exit(main())
