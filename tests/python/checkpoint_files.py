"""Small checkpoints in the layouts of several frameworks, from fixed seeds."""

from __future__ import annotations

import argparse
import json
import struct
from pathlib import Path
from typing import Any

import torch

_DTYPES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16",
           torch.int64: "I64", torch.float64: "F64", torch.bool: "BOOL"}


def state(seed: int) -> dict[str, torch.Tensor]:
    """A state dict with several dtypes, a view and zeros."""
    random = torch.Generator().manual_seed(seed)
    return {
        "b.weight": torch.randn(8, 16, generator=random),
        "a.weight": torch.randn(16, 8, generator=random).t(),
        "half": torch.randn(5, generator=random).half(),
        "brain": torch.randn(3, 2, generator=random).bfloat16(),
        "double": torch.randn(4, generator=random).double(),
        "count": torch.tensor([3, 2**40], dtype=torch.int64),
        "zeros": torch.zeros(4),
        "a.b": torch.randn(64, generator=random)[10:20],
    }


def safetensors(path: Path, values: dict[str, torch.Tensor]) -> None:
    """Written by hand: the package is no dependency."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, value in values.items():
        raw = value.contiguous().view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": _DTYPES[value.dtype], "shape": list(value.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


LAYERS, HIDDEN, FFN, VOCABULARY, EXPERTS = 5, 8, 16, 32, 4


def _model() -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(1)
    shapes: dict[str, list[int]] = {
        "embedding.word_embeddings.weight": [VOCABULARY, HIDDEN],
        "output_layer.weight": [VOCABULARY, HIDDEN], "decoder.final_layernorm.weight": [HIDDEN]}
    for layer in range(LAYERS):
        prefix = f"decoder.layers.{layer}."
        shapes |= {
            prefix + "self_attention.linear_qkv.weight": [3 * HIDDEN, HIDDEN],
            prefix + "self_attention.linear_qkv.bias": [3 * HIDDEN],
            prefix + "self_attention.linear_proj.weight": [HIDDEN, HIDDEN],
            prefix + "self_attention.linear_proj.bias": [HIDDEN],
            prefix + "input_layernorm.weight": [HIDDEN],
            prefix + "mlp.linear_fc1.layer_norm_weight": [HIDDEN]}
        for expert in range(EXPERTS):
            shapes[prefix + f"mlp.experts.linear_fc1.weight{expert}"] = [2 * FFN, HIDDEN]
            shapes[prefix + f"mlp.experts.linear_fc2.weight{expert}"] = [HIDDEN, FFN]
    return {name: torch.randn(shape, generator=random) for name, shape in shapes.items()}


def _shard(name: str, value: torch.Tensor, size: int, rank: int) -> torch.Tensor:
    """What one tensor parallel rank has of a parameter; the MLP is gated."""
    if "norm" in name:
        return value
    if "linear_fc1" in name:
        return torch.cat([half.chunk(size)[rank] for half in value.chunk(2)])
    if any(part in name for part in ("linear_qkv", "embeddings.weight", "output_layer.weight")):
        return value.chunk(size)[rank].clone()
    if any(part in name for part in ("linear_fc2.weight", "linear_proj.weight")):
        return value.chunk(size, 1)[rank].clone()
    return value


def _stage(stage: tuple[int, int, list[int]], is_last: bool,
           ranks: tuple[int, int, int, int]) -> dict[str, Any]:
    chunk, pipeline_rank, layers = stage
    tensor_size, tensor_rank, expert_size, expert_rank = ranks
    values: dict[str, Any] = {}
    for name, value in _model().items():
        if name.startswith("embedding") and (chunk, pipeline_rank) != (0, 0):
            continue
        if name.startswith(("output", "decoder.final")) and not is_last:
            continue
        local = name
        if ".layers." in name:
            layer = int(name.split(".")[2])
            if layer not in layers:
                continue
            local = name.replace(f"layers.{layer}.", f"layers.{layer - layers[0]}.")
        if "experts" in local:
            stem, expert = local.split("weight")
            if int(expert) * expert_size // EXPERTS != expert_rank:
                continue
            local = f"{stem}weight{int(expert) % (EXPERTS // expert_size)}"
        values[local] = _shard(name, value, tensor_size, tensor_rank)
    values["decoder.layers.0.mlp._extra_state"] = torch.ones(3, dtype=torch.uint8)
    return values


def megatron(directory: Path, sizes: tuple[int, int, int],
             stages: list[tuple[int, int, list[int]]]) -> None:
    """`sizes`: tensor, pipeline and expert ranks. `stages`: virtual chunk, rank, layers."""
    tensor_size, pipeline_size, expert_size = sizes
    last = max((chunk, rank) for chunk, rank, _ in stages)
    args = argparse.Namespace(tensor_model_parallel_size=tensor_size, swiglu=True,
                              pipeline_model_parallel_size=pipeline_size,
                              expert_model_parallel_size=expert_size, num_experts=EXPERTS)
    for place in range(tensor_size * pipeline_size * expert_size):
        tensor_rank, rest = divmod(place, pipeline_size * expert_size)
        pipeline_rank, expert_rank = divmod(rest, expert_size)
        content: dict[str, Any] = {"args": args, "iteration": 100}
        for stage in stages:
            if stage[1] != pipeline_rank:
                continue
            key = f"model{stage[0]}" if last[0] > 0 else "model"
            content[key] = _stage(stage, (stage[0], stage[1]) == last,
                                  (tensor_size, tensor_rank, expert_size, expert_rank))
        name = f"mp_rank_{tensor_rank:02d}"
        name += f"_{pipeline_rank:03d}" if pipeline_size > 1 else ""
        name += f"_{expert_rank:03d}" if expert_size > 1 else ""
        folder = directory / "iter_0000100" / name
        folder.mkdir(parents=True)
        torch.save(content, folder / "model_optim_rng.pt")
    (directory / "latest_checkpointed_iteration.txt").write_text("100")
