"""The small models that both tools record; everything seeded, one thread, no other randomness."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM  # before any recorder


class MixedCalls(nn.Module):
    """Dropout, in-place calls, many dtypes, scalars, keyword arguments, nested outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.first = nn.Linear(8, 16)
        self.dropout = nn.Dropout(0.5)
        self.norm = nn.LayerNorm(16)
        self.unused = nn.Linear(3, 3)
        self.pair = SplitInTwo()
        self.last = nn.Linear(16, 4, bias=False)

    def forward(self, tokens: torch.Tensor, *, scale: float) -> dict[str, torch.Tensor]:
        """Returns {"loss": ..., "choice": ...}."""
        hidden = self.first(self.embed(tokens))
        hidden = functional.relu(hidden, inplace=True)
        hidden = self.dropout(hidden)
        hidden = self.norm(hidden)
        low, high = self.pair(hidden, swap=True)
        hidden = torch.cat([low, high], dim=-1).to(torch.bfloat16)
        hidden = torch.mul(hidden, scale)
        hidden = hidden.transpose(0, 1).float()
        hidden = torch.clamp(hidden, min=-3.0, max=3.0)
        hidden = hidden.masked_fill(hidden > 2.5, float("inf"))
        hidden = torch.where(torch.isinf(hidden), torch.zeros_like(hidden), hidden)
        with torch.no_grad():
            wide = hidden.to(torch.float64).sum(dim=0)
            hidden.softmax(-1, dtype=torch.float64).cumsum(-1)
            half = torch.sqrt(hidden.abs().to(torch.float16))
            choice = torch.argmax(hidden, dim=-1)
            bits = torch.eq(choice, 3)
            counter = torch.zeros(3, dtype=torch.int32)
            counter.add_(1)
            counter += bits.sum().int()
            empty = torch.cat([wide[:0], wide[:0]])
            torch.topk(half.float(), k=2, dim=-1, largest=True)
            torch.mul(empty, 2)
            torch.ops.aten.gelu.default(torch.ops.aten.add(counter, 1).float(), approximate="tanh")
        return {"loss": self.last(hidden).pow(2).mean(), "choice": choice}


class SplitInTwo(nn.Module):
    """A module with a keyword argument and a tuple as output."""

    def forward(self, hidden: torch.Tensor, swap: bool = False) -> tuple[torch.Tensor, ...]:
        """The two halves of the last dimension."""
        low, high = torch.chunk(hidden, 2, dim=-1)
        return (high, low) if swap else (low, high)


def mixed_calls() -> tuple[nn.Module, list]:
    """The model and one function per step that computes its loss."""
    model = MixedCalls().train()
    tokens = torch.randint(0, 20, (3, 5))
    return model, [lambda: model(tokens, scale=1.5)["loss"]] * 2


def small_llama() -> tuple[nn.Module, list]:
    """Two layers; the second step sees other tokens."""
    config = LlamaConfig(hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                         num_attention_heads=4, num_key_value_heads=2, vocab_size=100,
                         attn_implementation="eager")
    model = LlamaForCausalLM(config).train()
    batches = [torch.randint(0, 100, (2, 12)) for _ in range(2)]
    return model, [lambda b=batch: model(input_ids=b, labels=b, use_cache=False).loss
                   for batch in batches]


class PositionalDType(nn.Module):
    """A dtype as positional argument, which upstream loses (differences.md, positional-dtype)."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """The sum of a softmax that is all but constant."""
        return values.softmax(-1, torch.float32).pow(2).sum()


def positional_dtype() -> tuple[nn.Module, list]:
    """The model and its two steps."""
    model = PositionalDType()
    values = torch.randn(3, 4, requires_grad=True)
    # A parameter for the optimizer, which accepts no empty list.
    model.unused = nn.Parameter(torch.zeros(1))
    return model, [lambda: model(values)] * 2


class DividesByZero(nn.Module):
    """Two linear layers and a division by zero between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 2)
        self.last = nn.Linear(2, 5)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Not finite."""
        hidden = self.first(values)
        hidden = torch.relu(hidden / (hidden - hidden))
        return functional.relu(self.last(hidden))


def overflow() -> tuple[nn.Module, list]:
    """The network of the observed overflow_check run; its weights are NaN from step 1 on."""
    model = DividesByZero()
    values = torch.randn(3, 4)
    return model, [lambda: model(values).sum()] * 2


MODELS = {"mixed": mixed_calls, "llama": small_llama, "positional": positional_dtype,
          "overflow": overflow}
