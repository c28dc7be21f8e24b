"""Records training with Megatron-Core: tensor parallel over two processes, then data parallel.

torchrun --nproc-per-node 2 examples/record_megatron.py DIRECTORY|none
"""

from __future__ import annotations

import hashlib
import sys
from typing import Any

import torch
from megatron.core import parallel_state
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
from megatron.core.tensor_parallel import (
    ColumnParallelLinear,
    RowParallelLinear,
    VocabParallelEmbedding,
    vocab_parallel_cross_entropy,
)
from megatron.core.transformer.transformer_config import TransformerConfig
from torch.nn import functional

HAS_CUDA = torch.cuda.is_available()
if not HAS_CUDA:
    # Where Megatron-Core puts its buffers.
    torch.cuda.current_device = lambda: torch.device("cpu")


class Net(torch.nn.Module):
    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        common = {"config": config, "init_method": torch.nn.init.xavier_normal_}
        self.words = VocabParallelEmbedding(32, 8, **common)
        self.up = ColumnParallelLinear(8, 16, gather_output=False, **common)
        self.down = RowParallelLinear(16, 8, bias=True, input_is_parallel=True,
                                      skip_bias_add=False, **common)
        self.head = ColumnParallelLinear(8, 32, gather_output=False, bias=False, **common)

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens)
        x = x + self.down(functional.gelu(self.up(x)[0]))[0]
        return vocab_parallel_cross_entropy(self.head(x)[0], labels).mean()


def train(tensor_parallel: int, debugger: Any) -> None:
    parallel_state.initialize_model_parallel(tensor_parallel, create_gloo_process_groups=False)
    config = TransformerConfig(
        num_layers=1, hidden_size=8, num_attention_heads=2, gradient_accumulation_fusion=False,
        tensor_model_parallel_size=tensor_parallel, use_cpu_initialization=True)
    torch.manual_seed(1)
    net = Net(config)
    model = DistributedDataParallel(
        config, DistributedDataParallelConfig(grad_reduce_in_fp32=True),
        net.cuda() if HAS_CUDA else net)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    # Ranks that share a model see the same texts.
    texts = torch.Generator().manual_seed(parallel_state.get_data_parallel_rank())
    for _ in range(2):
        if debugger is not None:
            debugger.start(model=model)
        model.zero_grad_buffer()
        for _ in range(2):
            tokens = torch.randint(0, 32, (2, 7), generator=texts)
            tokens = tokens.cuda() if HAS_CUDA else tokens
            loss = model(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
            (loss / 2).backward()
        model.finish_grad_sync()
        for parameter in model.parameters():
            parameter.grad = parameter.main_grad
        optimizer.step()
        optimizer.zero_grad()
        if debugger is not None:
            debugger.stop()
            debugger.step()
        print("loss", tensor_parallel, float(loss.detach()).hex())
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    print("weights", tensor_parallel, digest.hexdigest()[:16])
    parallel_state.destroy_model_parallel()


def main() -> None:
    debugger = None
    if sys.argv[1] != "none":
        from plumbline.pytorch import PrecisionDebugger

        debugger = PrecisionDebugger(task="statistics", level="mix", dump_path=sys.argv[1])
    torch.distributed.init_process_group("nccl" if HAS_CUDA else "gloo")
    if HAS_CUDA:
        torch.cuda.set_device(torch.distributed.get_rank())
    for tensor_parallel in (2, 1):
        train(tensor_parallel, debugger)


if __name__ == "__main__":
    main()
