"""The recordings that the page is tried on: a small model trained by two processes, right, wrong
and otherwise built.

    python tests/page/make_recordings.py DIRECTORY

Leaves `good`, `new` (one normalisation scales wrongly), `older` (another one does, too),
`built` (a module is called otherwise, one call is another one and one is new) and `hot` (infinite
activations), each with step0 and step1 of rank0 and rank1, elements of all tensors, and the trend
databases of new and good: `trend/dump_data.trend.db` and `trend_good/dump_data.trend.db`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

STEPS, RANKS = 2, 2
WRONG_LAYER = 1  # of new
VARIANTS = ("good", "new", "older", "built", "hot")


def model(variant: str) -> Any:
    """A net of three layers, as the variant has it."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Norm(nn.Module):
        def __init__(self, factor: float = 1.0) -> None:
            super().__init__()
            self.weight, self.factor = nn.Parameter(torch.ones(16)), factor

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            scaled = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
            return scaled * self.weight * self.factor

    class Mlp(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            act = F.silu if variant == "built" else F.gelu
            hidden = act(self.up(x))
            if variant == "built":
                hidden = torch.clamp(hidden, max=1e4)
            return self.down(hidden)

    class Layer(nn.Module):
        def __init__(self, number: int) -> None:
            super().__init__()
            wrong = {"new": (WRONG_LAYER,), "older": (0, WRONG_LAYER)}.get(variant, ())
            self.norm = Norm(1.03 if number in wrong else 1.0)
            self.name = "ffn" if variant == "built" else "mlp"
            self.add_module(self.name, Mlp())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + getattr(self, self.name)(self.norm(x))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(64, 16)
            self.layers = nn.ModuleList(Layer(i) for i in range(3))
            self.head = nn.Linear(16, 64)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            x = self.embed(ids)
            if variant == "hot":
                x = x / torch.zeros(())
            for layer in self.layers:
                x = layer(x)
            return self.head(x)

    return Net()


def train(variant: str, rank: int, directory: Path, meeting: Path) -> None:
    """One rank of one variant."""
    import torch
    import torch.nn.functional as F
    from torch import distributed

    from plumbline.pytorch import PrecisionDebugger

    torch.manual_seed(3)
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank,
                                   world_size=RANKS)
    net = model(variant)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    settings = directory / f"{variant}-{rank}.json"
    settings.write_text(json.dumps({"task": "tensor", "level": "mix",
                                    "dump_path": str(directory / variant)}))
    debugger = PrecisionDebugger(config_path=str(settings))
    torch.manual_seed(10 + rank)
    for _ in range(STEPS):
        ids = torch.randint(0, 64, (2, 6))
        debugger.start(net)
        F.cross_entropy(net(ids).flatten(0, 1), ids.flatten()).backward()
        for parameter in net.parameters():
            distributed.all_reduce(parameter.grad)
            parameter.grad.div_(RANKS)
        debugger.stop()
        optimizer.step()
        optimizer.zero_grad()
        debugger.step()
    distributed.destroy_process_group()
    settings.unlink()


def train_all(rank: int, directory: Path, folder: Path) -> None:
    """One rank of all variants, each in a process of its own that need not import PyTorch again."""
    import plumbline.pytorch  # noqa: F401

    for variant in VARIANTS:
        child = os.fork()
        if child == 0:
            train(variant, rank, directory, folder / variant)
            sys.stdout.flush()
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            sys.exit(f"make_recordings: rank {rank} of {variant} failed")


def main(directory: Path) -> None:
    """Trains everything, then makes the trend database."""
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen([sys.executable, "-W", "ignore", __file__, str(directory),
                                   str(rank), folder], stdout=subprocess.DEVNULL)
                 for rank in range(RANKS)]
        if any([rank.wait() for rank in ranks]):
            sys.exit("make_recordings: a training failed")
    plumb = os.environ.get("PLUMB") or str(Path(sys.executable).parent / "plumb")
    for database, variant in (("trend", "new"), ("trend_good", "good")):
        subprocess.run([plumb, "data2db", "--db", directory / database, "--data",
                        directory / variant], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(Path(sys.argv[1]))
    else:
        train_all(int(sys.argv[2]), Path(sys.argv[1]), Path(sys.argv[3]))
