"""Records one model as a training runs it and as an inference engine does: with fused modules.

python training_models.py DIRECTORY FAULT...

writes DIRECTORY/FAULT/train and DIRECTORY/FAULT/infer, dumps of level L0, for each of them. The
training's modules stand in FSDP's wrapper fields and its layers are checkpointed; the inference has
qkv_proj and gate_up_proj, no batch dimension, and hands the residual on beside what is still to be
added to it, as vLLM does. FAULT is what the inference does wrong: "none", "swapped" (gate and up),
"norm" (epsilon).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from plumbline.pytorch import PrecisionDebugger

WIDTH, HEADS, INNER, LAYERS, WORDS = 32, 4, 48, 2, 19


class Wrapper(nn.Module):
    """As FSDP's: the module inside is an attribute of this name."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._fsdp_wrapped_module = module

    def forward(self, *args: Any) -> Any:
        return self._fsdp_wrapped_module(*args)


class RMSNorm(nn.Module):
    def __init__(self, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(WIDTH) + 0.5)
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon) * self.weight


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention over the last but one dimension."""
    shape = (*q.shape[:-1], HEADS, WIDTH // HEADS)
    q, k, v = (x.view(shape).transpose(-2, -3) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(-2, -3).flatten(-2)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q_proj = nn.Linear(WIDTH, WIDTH)
        self.k_proj = nn.Linear(WIDTH, WIDTH)
        self.v_proj = nn.Linear(WIDTH, WIDTH)
        self.o_proj = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.o_proj(attend(self.q_proj(x), self.k_proj(x), self.v_proj(x)))


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(WIDTH, INNER, bias=False)
        self.up_proj = nn.Linear(WIDTH, INNER, bias=False)
        self.down_proj = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.self_attn, self.mlp = Attention(), MLP()
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(), RMSNorm()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Wrapper(DecoderLayer()) for _ in range(LAYERS))
        self.norm = RMSNorm()

    def forward(self, words: Tensor) -> Tensor:
        x = self.embed_tokens(words)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return self.norm(x)


class ForTraining(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.lm_head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: Tensor) -> Tensor:
        return self.lm_head(self.model(words))


class FusedNorm(nn.Module):
    def __init__(self, norm: RMSNorm, epsilon: float) -> None:
        super().__init__()
        self.norm = [norm, epsilon]
        self.weight = norm.weight

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Any:
        total = x if residual is None else x + residual
        size = total.pow(2).mean(-1, keepdim=True) + self.norm[1]
        out = total * torch.rsqrt(size) * self.weight
        return out if residual is None else (out, total)


FusedRMSNorm = type("RMSNorm", (FusedNorm,), {})


class QKVParallelLinear(nn.Module):
    """Fused weights; returns (result, None) as engines do."""

    def __init__(self, *parts: nn.Linear) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.cat([part.weight.data for part in parts]))
        biases = [part.bias.data for part in parts if part.bias is not None]
        self.bias = nn.Parameter(torch.cat(biases)) if biases else None

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        return F.linear(x, self.weight, self.bias), None


MergedColumnParallelLinear = type("MergedColumnParallelLinear", (QKVParallelLinear,), {})
RowParallelLinear = type("RowParallelLinear", (QKVParallelLinear,), {})


class FusedAttention(nn.Module):
    def __init__(self, attention: Attention) -> None:
        super().__init__()
        self.qkv_proj = QKVParallelLinear(attention.q_proj, attention.k_proj, attention.v_proj)
        self.o_proj = RowParallelLinear(attention.o_proj)

    def forward(self, positions: Tensor, x: Tensor) -> Tensor:
        q, k, v = self.qkv_proj(x)[0].chunk(3, -1)
        return self.o_proj(attend(q, k, v))[0]


class FusedMLP(nn.Module):
    def __init__(self, mlp: MLP, fault: str) -> None:
        super().__init__()
        parts = [mlp.gate_proj, mlp.up_proj]
        self.gate_up_proj = MergedColumnParallelLinear(*parts[:: -1 if fault == "swapped" else 1])
        self.down_proj = RowParallelLinear(mlp.down_proj)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up_proj(x)[0].chunk(2, -1)
        return self.down_proj(F.silu(gate) * up)[0]


class FusedLayer(nn.Module):
    def __init__(self, layer: DecoderLayer, fault: str) -> None:
        super().__init__()
        epsilon = 0.1 if fault == "norm" else 1e-6
        self.input_layernorm = FusedRMSNorm(layer.input_layernorm, 1e-6)
        self.self_attn = FusedAttention(layer.self_attn)
        self.post_attention_layernorm = FusedRMSNorm(layer.post_attention_layernorm, epsilon)
        self.mlp = FusedMLP(layer.mlp, fault)

    def forward(self, positions: Tensor, x: Tensor, residual: Tensor | None) -> Any:
        if residual is None:
            residual, x = x, self.input_layernorm(x)
        else:
            x, residual = self.input_layernorm(x, residual)
        x = self.self_attn(positions, x)
        x, residual = self.post_attention_layernorm(x, residual)
        return self.mlp(x), residual


DecoderLayerOfEngine = type("DecoderLayer", (FusedLayer,), {})


class FusedModel(nn.Module):
    def __init__(self, model: Model, fault: str) -> None:
        super().__init__()
        self.embed_tokens = model.embed_tokens
        layers = [wrapper._fsdp_wrapped_module for wrapper in model.layers]
        self.layers = nn.ModuleList(
            DecoderLayerOfEngine(layer, fault if i == 1 else "") for i, layer in enumerate(layers))
        self.norm = FusedRMSNorm(model.norm, 1e-6)

    def forward(self, words: Tensor) -> Tensor:
        x, residual = self.embed_tokens(words), None
        positions = torch.arange(len(words))
        for layer in self.layers:
            x, residual = layer(positions, x, residual)
        return self.norm(x, residual)[0]


class ForInference(nn.Module):
    def __init__(self, trained: ForTraining, fault: str) -> None:
        super().__init__()
        self.model = FusedModel(trained.model, fault)
        self.lm_head = trained.lm_head

    def forward(self, words: Tensor) -> Tensor:
        return self.lm_head(self.model(words))


def main() -> None:
    out, faults = Path(sys.argv[1]), sys.argv[2:]
    config = out / "config.json"
    config.write_text(json.dumps({"task": "tensor", "level": "L0", "dump_path": str(out / "all")}))
    torch.manual_seed(3)
    trained = Wrapper(ForTraining())
    words = torch.arange(11) * 7 % WORDS
    debugger = PrecisionDebugger(str(config))
    for i, fault in enumerate(faults):
        inference = ForInference(trained._fsdp_wrapped_module, fault)
        debugger.start(trained)
        trained(words[None]).sum().backward()
        debugger.stop()
        debugger.step()
        debugger.start(inference)
        with torch.no_grad():
            inference(words)
        debugger.stop()
        debugger.step()
        (out / fault).mkdir()
        (out / f"all/step{2 * i}").rename(out / fault / "train")
        (out / f"all/step{2 * i + 1}").rename(out / fault / "infer")


if __name__ == "__main__":
    main()
