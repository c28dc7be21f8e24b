"""Records one request of a server that computes the tokens of several requests in one batch.

python examples/record_continuous_batching.py DIRECTORY|none
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import small_llama
import torch
from torch.nn.functional import softmax
from transformers import AttentionInterface

RECORDED = "b"
# Request: the step in which it arrives, its prompt, how many tokens it wants.
REQUESTS = {"a": (0, [1, 5, 9, 12], 4), "b": (1, [1, 33, 7], 3), "c": (2, [1, 60], 4)}


class PackedAttention:
    """Attention over a batch [tokens, heads, size]: each token sees earlier ones of its request."""

    def __init__(self) -> None:
        self.owners = torch.empty(0, dtype=torch.long)  # of the tokens of this step
        self.positions = torch.empty(0, dtype=torch.long)
        # Of each layer: owners, positions, keys and values of all tokens so far.
        self.cache: dict[int, tuple[torch.Tensor, ...]] = {}

    def __call__(self, module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                 *_: Any, scaling: float, **__: Any) -> tuple[torch.Tensor, None]:
        query, key, value = (x[0].transpose(0, 1) for x in (query, key, value))
        new = (self.owners, self.positions, key, value)
        old = self.cache.get(module.layer_idx)
        seen = new if old is None else tuple(map(torch.cat, zip(old, new, strict=True)))
        self.cache[module.layer_idx] = seen
        owners, positions, keys, values = seen
        is_seen = (self.owners[:, None] == owners) & (self.positions[:, None] >= positions)
        keys, values = (x.repeat_interleave(module.num_key_value_groups, 1) for x in (keys, values))
        scores = torch.einsum("thd,nhd->thn", query, keys) * scaling
        weights = softmax(scores.masked_fill(~is_seen[:, None], float("-inf")), dim=-1)
        return torch.einsum("thn,nhd->thd", weights, values)[None], None


def main() -> None:
    debugger = None
    if sys.argv[1] != "none":
        from plumbline.pytorch import PrecisionDebugger

        config = Path(sys.argv[1]).with_suffix(".json")
        config.write_text(json.dumps({
            "task": "statistics", "level": "mix", "dump_path": sys.argv[1],
            "statistics": {"request_id": RECORDED},
        }))
        debugger = PrecisionDebugger(config_path=str(config))
    attention = PackedAttention()
    AttentionInterface.register("packed", attention)
    model = small_llama.make().eval()
    model.set_attn_implementation("packed")
    tokens = {name: list(prompt) for name, (_, prompt, _) in REQUESTS.items()}
    done = dict.fromkeys(REQUESTS, 0)  # tokens that the model has read
    for step in range(7):
        ready = [name for name, (arrival, prompt, wanted) in REQUESTS.items()
                 if arrival <= step and len(tokens[name]) < len(prompt) + wanted]
        batch = {name: len(tokens[name]) - done[name] for name in ready}
        if not batch:
            break
        ids = [token for name in batch for token in tokens[name][done[name] :]]
        attention.owners = torch.tensor(
            [index for index, name in enumerate(REQUESTS) for _ in range(batch.get(name, 0))])
        attention.positions = torch.tensor(
            [place for name in batch for place in range(done[name], len(tokens[name]))])
        if debugger is not None:
            debugger.start(model=model, scheduled_tokens=batch)
        with torch.inference_mode():
            logits = model(input_ids=torch.tensor([ids]), use_cache=False,
                           position_ids=attention.positions[None]).logits[0]
        if debugger is not None:
            debugger.stop()
            debugger.step()
        end = 0
        for name, count in batch.items():
            end += count
            done[name] += count
            tokens[name].append(int(logits[end - 1].argmax()))
    print("tokens", tokens)


if __name__ == "__main__":
    main()
