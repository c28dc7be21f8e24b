"""Writes tests/data/debug_mode: logs of torch's DebugMode and dumps of numerics as torchtitan has
them, of one training step of a small transformer with random weights.

    python make_debug_mode_logs.py OUT

torch from 2.10 on writes what debug_string() returns, torch from 2.14 on save_logs(). The form of
dump_tensor_hashes() and that of torchtitan (rank_0_activations.log) are written here from the calls
that DebugMode recorded, as docs/formats/debug_mode_log.md describes them: the first is in no
release, the second in no package. Tests import this file.
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._debug_mode import DebugMode, _OpCall, _TritonKernelCall

WIDTH, TOKENS, VOCABULARY = 8, 4, 12
NOT_CAPTURED = {"detach", "view", "_unsafe_view", "t", "transpose", "expand", "empty", "empty_like",
                "clone", "copy_", "ones_like", "zeros_like", "select", "slice", "split"}


class Block(torch.nn.Module):
    def __init__(self, eps: float) -> None:
        super().__init__()
        self.attention_norm = torch.nn.LayerNorm(WIDTH, eps=eps)
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.out = torch.nn.Linear(WIDTH, WIDTH)
        self.mlp_norm = torch.nn.LayerNorm(WIDTH)
        self.up = torch.nn.Linear(WIDTH, 2 * WIDTH)
        self.down = torch.nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor, insert: Callable[[torch.Tensor], torch.Tensor]
                ) -> torch.Tensor:
        q, k, v = self.qkv(self.attention_norm(x)).chunk(3, -1)
        weights = (q @ k.transpose(-2, -1) / WIDTH**0.5).softmax(-1)
        x = x + self.out(insert(weights @ v))
        return x + self.down(torch.nn.functional.gelu(self.up(self.mlp_norm(x))))


class Transformer(torch.nn.Module):
    def __init__(self, layers: int, eps: float) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.layers = torch.nn.ModuleList(
            [Block(eps if i == layers - 1 else 1e-5) for i in range(layers)])
        self.head = torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: torch.Tensor, insert: Callable[[torch.Tensor], torch.Tensor]
                ) -> torch.Tensor:
        x = self.embedding(tokens)
        for i, layer in enumerate(self.layers):
            x = layer(x, insert if i + 1 == len(self.layers) else lambda y: y)
        return self.head(x)


def train(layers: int = 2, eps: float = 1e-5, change: Callable[[Transformer], None] | None = None,
          insert: Callable[[torch.Tensor], torch.Tensor] = lambda y: y,
          **options: Any) -> DebugMode:
    """One training step under DebugMode. `eps`: of the last block's first norm; `insert`: done to
    what its attention gives; `options`: of DebugMode and of log_tensor_hashes(), and `hashes`."""
    torch.manual_seed(0)
    model = Transformer(layers, eps)
    if change is not None:
        change(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    tokens = torch.randint(0, VOCABULARY, (2, TOKENS))
    hook = DebugMode.log_tensor_hashes(hash_fn=options.pop("hash_fn", "norm"),
                                       hash_inputs=options.pop("hash_inputs", True))
    if not options.pop("hashes", True):
        hook = contextlib.nullcontext()
    with DebugMode(**options) as mode, hook:
        logits = model(tokens, insert).view(-1, VOCABULARY)
        torch.nn.functional.cross_entropy(logits, tokens.view(-1)).backward()
        optimizer.step()
    return mode


def twice_halved(x: torch.Tensor) -> torch.Tensor:
    """Calls that leave the values alone."""
    return x * 2 * 0.5


# --- forms ------------------------------------------------------------------------------------


def _calls(mode: DebugMode) -> Iterator[tuple[int, Any, str]]:
    """Index, call and the path of the module around it."""
    modules: list[tuple[int, str]] = []
    for index, call in enumerate(mode.operators):
        while modules and modules[-1][0] >= call.call_depth:
            modules.pop()
        if isinstance(call, (_OpCall, _TritonKernelCall)):
            yield index, call, modules[-1][1] if modules else "<none>"
        elif str(getattr(call, "header", "")).startswith("nn.Mod"):
            modules.append((call.call_depth, str(call.tag)))


def _json_number(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return json.dumps(list(value))
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps("NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity")
    return json.dumps(value)


def dump_tensor_hashes(mode: DebugMode, path: Path) -> None:
    """The form of DebugMode.dump_tensor_hashes()."""
    def of_tree(tree: Any) -> str:
        leaves = pytree.tree_flatten_with_path(tree)[0]
        return ", ".join(f"{pytree.keystr(key) or '<root>'}={_json_number(value)}"
                         for key, value in leaves if value is not None)

    blocks, counters = [], {}
    for index, call, module in _calls(mode):
        is_kernel = isinstance(call, _TritonKernelCall)
        log = call.log or {}
        if is_kernel:
            lines = [", ".join(f"{k}={_json_number(v)}" for k, v in (hashes or {}).items())
                     for hashes in (call.pre_hashes, call.post_hashes)]
            name = call.kernel_name
        else:
            lines = [of_tree(log.get("input_hash")), of_tree(log.get("hash"))]
            name = str(call.op.__qualname__ if hasattr(call.op, "__qualname__") else call.op)
        if not any(lines):
            continue
        number = counters[module] = counters.get(module, -1) + 1
        block = [f"[{module}/op_{number}_{name}]",
                 f"  Call type: {'triton kernel' if is_kernel else 'torch op'}",
                 f"  Call index: {index}", f"  Call depth: {call.call_depth}"]
        block += [f"  {what} hashes: {line}"
                  for what, line in zip(("Input", "Output"), lines, strict=True) if line]
        blocks.append("\n".join(block) + "\n\n")
    head = f"Total captured tensor hash ops: {len(blocks)}\n" + "=" * 80 + "\n\n"
    path.write_text(head + "".join(blocks))


def dump_activations(path: Path, least: int = 1, **options: Any) -> DebugMode:
    """A training step, and rank_0_activations.log of it in torchtitan's form."""
    def describe(func: Any, types: Any, args: Any, kwargs: Any, result: Any) -> dict[str, Any]:
        found = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)
                 and leaf.is_floating_point() and leaf.numel() >= least]
        lines = []
        if found and func._schema.name.split("::")[-1] not in NOT_CAPTURED:
            tensor = found[0]
            wide = tensor.double()
            lines = [f"Shape: {tensor.shape}, Dtype: {tensor.dtype}",
                     f"L2 norm: {wide.norm().item():.6e}", f"Min: {wide.min().item():.6e}",
                     f"Max: {wide.max().item():.6e}", f"Mean: {wide.mean().item():.6e}"]
        backward = torch._C._current_autograd_node() is not None
        return {"lines": lines, "backward": backward}

    with DebugMode.dispatch_hooks(record_hook=describe):
        mode = train(record_nn_module=True, **options)
    blocks, counters, excluded = [], {}, set()
    for _, call, module in _calls(mode):
        name = call.op._schema.name.split("::")[-1]
        if name in NOT_CAPTURED:
            excluded.add(name)
        if not call.record or not call.record["lines"]:
            continue
        module = module.partition(".")[2] or "<none>"
        number = counters[module] = counters.get(module, -1) + 1
        lines = list(call.record["lines"])
        for what, tree in (("Output hash", "hash"), ("Input hashes", "input_hash")):
            leaves = [leaf for leaf in pytree.tree_leaves((call.log or {}).get(tree))
                      if leaf is not None]
            if leaves:
                lines.append(f"{what}: " + ", ".join(f"{leaf:.6e}" for leaf in leaves))
        lines.append("Location: model/transformer.py:12")
        if call.record["backward"]:
            lines.append("Phase: backward")
        blocks.append(f"[{module}/op_{number}_{name}]\n"
                      + "".join(f"  {line}\n" for line in lines) + "\n")
    path.write_text(f"Total captured activations: {len(blocks)}\n"
                    f"Excluded ops dispatched: {', '.join(sorted(excluded))}\n"
                    + "=" * 80 + "\n\n" + "".join(blocks))
    return mode


class _Device:
    """In place of a device's interface: a kernel has ended when its launch returns."""

    @staticmethod
    def current_device() -> int:
        return 0

    @staticmethod
    def synchronize(_: int) -> None:
        return


def with_kernels(scale: float = 2.0) -> DebugMode:
    """Two launches as Inductor announces them, between operators; run by torch on the CPU."""
    torch.manual_seed(0)
    x, out = torch.randn(4, 4), torch.zeros(4, 4)
    with DebugMode() as mode, DebugMode.log_tensor_hashes(hash_inputs=True):
        y = x.relu()
        for number in range(2):
            call = mode.record_triton_kernel(
                f"triton_poi_fused_mul_{number}", {"in_ptr0": y, "out_ptr0": out, "xnumel": 16})
            out.data.numpy()[:] = y.numpy() * (scale if number == 1 else 2.0)
            call.finalize(_Device())
        out.sum()
    return mode


def with_dtensors() -> DebugMode:
    """A product of DTensors that have to be brought together first, on one rank."""
    from torch import distributed
    from torch.distributed import tensor

    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    mesh = distributed.init_device_mesh("cpu", (1,))
    torch.manual_seed(0)
    left = tensor.distribute_tensor(torch.randn(4, 4), mesh, [tensor.Shard(0)])
    right = tensor.distribute_tensor(torch.randn(4, 4), mesh, [tensor.Shard(0)])
    with DebugMode() as mode, DebugMode.log_tensor_hashes(hash_inputs=True):
        left @ right
    distributed.destroy_process_group()
    return mode


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    whole = {"layers": 1, "record_nn_module": True, "record_stack_trace": True}
    texts = {"sound": train(**whole), "wrong_eps": train(eps=1e-3, **whole),
             "longer": train(insert=twice_halved, **whole),
             "no_hashes": train(layers=1, hashes=False), "results_alone":
             train(layers=1, hash_inputs=False), "functions": train(
                 record_torchfunction=True, record_ids=True,
                 hash_fn=["norm", "hash_tensor"], **whole),
             "kernels": with_kernels(), "wrong_kernel": with_kernels(3.0),
             "dtensors": with_dtensors()}
    for name, mode in texts.items():
        (out / f"{name}.log").write_text(mode.debug_string())
    if hasattr(DebugMode, "save_logs"):
        DebugMode.save_logs(train(layers=1, record_nn_module=True).logs, out / "sound.json")
        DebugMode.save_logs(texts["kernels"].logs, out / "kernels.json")
    dump_tensor_hashes(texts["sound"], out / "sound_hashes.txt")
    dump_tensor_hashes(texts["wrong_eps"], out / "wrong_eps_hashes.txt")
    dump_activations(out / "rank_0_activations.log", layers=1)
    dump_activations(out / "wrong_eps_activations.log", layers=1, eps=1e-3)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
