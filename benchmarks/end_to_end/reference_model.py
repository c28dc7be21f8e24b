"""The reference model of the overhead tables: a small Llama, random weights, fixed seeds.

Every benchmark and the reference dumps use this one definition, so that figures of different tools
and releases are about the same work. transformers is imported here, before any recorder: upstream
patches torch functions in a way that breaks later imports of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM  # not lazily: see above

SEED = 1234
BATCH = 2
TOKENS = 128
VOCABULARY = 8000
THREADS = 2

# A wrong epsilon in one normalisation: the kind of defect that survives a port between devices.
DEFECT_MODULE = "model.layers.2.post_attention_layernorm"
DEFECT_EPSILON = 1e-4


@dataclass
class Training:
    """A model with its optimizer and its data; `batches` repeats for ever."""

    model: Any
    optimizer: torch.optim.Optimizer
    batches: list[torch.Tensor]

    def forward_backward(self, step: int) -> float:
        """Computes the loss and all gradients of one step and returns the loss."""
        tokens = self.batches[step % len(self.batches)]
        loss = self.model(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        return float(loss.detach())

    def update(self) -> None:
        """Applies the gradients and clears them."""
        self.optimizer.step()
        self.optimizer.zero_grad()


def build(defect: bool = False, layers: int = 4) -> Training:
    """Makes the reference model; `defect` sets a wrong epsilon in one norm of layer 2."""
    torch.set_num_threads(THREADS)
    torch.manual_seed(SEED)
    config = LlamaConfig(
        hidden_size=512,
        intermediate_size=1536,
        num_hidden_layers=layers,
        num_attention_heads=8,
        vocab_size=VOCABULARY,
        attn_implementation="eager",
    )
    model = LlamaForCausalLM(config)
    model.train()
    if defect:
        model.get_submodule(DEFECT_MODULE).variance_epsilon = DEFECT_EPSILON
    generator = torch.Generator().manual_seed(SEED)
    batches = [
        torch.randint(0, VOCABULARY, (BATCH, TOKENS), generator=generator) for _ in range(4)
    ]
    return Training(model, torch.optim.AdamW(model.parameters(), lr=1e-4), batches)
