"""The rank directory of recordings that begin before a process group exists."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ranks import PROLOGUE, dump_of, run_ranks
from recording import config

from plumbline import launch

VARIABLES = ("RANK WORLD_SIZE RANK_ID RANK_SIZE OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMI_RANK "
             "PMI_SIZE SLURM_PROCID SLURM_NTASKS LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK "
             "GROUP_RANK").split()


@pytest.mark.parametrize(("environment", "rank"), [
    ("", None),
    ("RANK=3", 3),
    ("RANK=3 WORLD_SIZE=4 SLURM_PROCID=1 SLURM_NTASKS=2", 3),
    ("RANK=0 WORLD_SIZE=1", None),  # as without a launcher
    ("RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1", None),
    ("RANK_ID=5 RANK_SIZE=8", 5),
    ("OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4", 2),
    ("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1", None),
    ("PMI_RANK=1 PMI_SIZE=2", 1),
    ("SLURM_PROCID=7 SLURM_NTASKS=8", 7),
    ("SLURM_PROCID=0 SLURM_NTASKS=1", None),
    ("SLURM_PROCID=0", None),
    ("SLURM_PROCID=0 SLURM_NTASKS=1 LOCAL_RANK=1", 1),  # torchrun's function form in a batch script
    ("LOCAL_RANK=1", 1),
    ("LOCAL_RANK=1 NODE_RANK=0", 1),
    ("LOCAL_RANK=1 NODE_RANK=2", None),  # how many ranks a node has is not known
    ("LOCAL_RANK=1 NODE_RANK=2 LOCAL_WORLD_SIZE=8", 17),
    ("LOCAL_RANK=1 GROUP_RANK=1 LOCAL_WORLD_SIZE=4", 5),
    ("LOCAL_RANK=1 NODE_RANK=999999999 LOCAL_WORLD_SIZE=9", None),
    ("RANK=-1", None),
    ("RANK=two", None),
    ("RANK=99999999999", None),
    ("RANK=\u0663", None),
])
def test_rank_of_an_environment(environment: str, rank: int | None,
                                monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    for assignment in environment.split():
        monkeypatch.setenv(*assignment.split("="))
    assert launch.launched_rank() == rank


EARLY = """
import sys
import torch
import torch.distributed as dist
from plumbline.pytorch import PrecisionDebugger

debugger = PrecisionDebugger(sys.argv[1])
debugger.start()
torch.relu(torch.tensor([-1.0, float(sys.argv[2] if len(sys.argv) > 2 else 0)]))
if dist.is_torchelastic_launched():
    dist.init_process_group("gloo")
    dist.all_reduce(torch.full((1,), dist.get_rank() + 5.0))  # of the same step
debugger.stop(); debugger.step()
debugger.start()
torch.relu(torch.ones(1))
debugger.stop(); debugger.step()
if dist.is_initialized():
    dist.barrier()
    dist.destroy_process_group()
"""


def launched(words: list[str], **environment: str) -> str:
    """What a program printed to both streams; only `environment` tells of launchers."""
    kept = {name: text for name, text in os.environ.items() if name not in VARIABLES}
    done = subprocess.run(
        [sys.executable, *words], text=True, timeout=300, check=False, stderr=subprocess.STDOUT,
        stdout=subprocess.PIPE,
        env=dict(kept, PLUMBLINE_LOG_LEVEL="2", GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1",
                 **environment))
    assert done.returncode == 0, done.stdout
    return done.stdout


def directories(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root / "out")) for path in root.glob("out/*/*"))


@pytest.mark.parametrize("world", [1, 2])
def test_torchrun_before_the_group(tmp_path: Path, world: int) -> None:
    script = tmp_path / "train.py"
    script.write_text(EARLY)
    printed = launched(["-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
                        str(world), str(script), str(config(tmp_path))])
    assert "another process is recording into it" not in printed and "by the env" not in printed
    if world == 1:  # a world of one has no number before it has a group
        assert directories(tmp_path) == ["step0/rank", "step1/rank0"]
        return
    assert directories(tmp_path) == [f"step{s}/rank{r}" for s in (0, 1) for r in (0, 1)]
    for rank in range(2):
        first = dump_of(tmp_path, rank)
        assert next(iter(first)) == "Torch.relu.0.forward"
        sent = first["Distributed.all_reduce.0.forward"]
        assert (sent["input_args"][0]["Max"], sent["output"][0]["Max"]) == (rank + 5.0, 11.0)


@pytest.mark.parametrize("environment", [
    {"OMPI_COMM_WORLD_RANK": "{}", "OMPI_COMM_WORLD_SIZE": "2"},
    {"SLURM_PROCID": "{}", "SLURM_NTASKS": "2"},
])
def test_other_launchers_without_a_group(tmp_path: Path, environment: dict[str, str]) -> None:
    path = config(tmp_path, rank=[1], task="tensor")
    for rank in range(2):
        launched(["-c", EARLY, str(path), str(rank)],
                 **{name: text.format(rank) for name, text in environment.items()})
    # The filter knows the rank, too.
    assert directories(tmp_path) == ["step0/rank1", "step1/rank1"]
    assert dump_of(tmp_path, 1)["Torch.relu.0.forward"]["input_args"][0]["Max"] == 1.0


def test_gradients_before_the_group(tmp_path: Path) -> None:
    code = """
import sys
import torch
from plumbline.pytorch import PrecisionDebugger
layer = torch.nn.Linear(2, 2)
PrecisionDebugger(sys.argv[1]); PrecisionDebugger.monitor(layer)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
layer(torch.ones(1, 2)).sum().backward(); optimizer.step()
"""
    path = config(tmp_path, task="grad_probe")
    for rank in range(2):
        launched(["-c", code, str(path)], RANK=str(rank), WORLD_SIZE="2")
    assert sorted(path.name for path in tmp_path.glob("out/*")) == ["rank0", "rank1"]


SWAPPED = PROLOGUE + """
import os
from plumbline.pytorch import PrecisionDebugger
os.environ.update(RANK=str(1 - rank), WORLD_SIZE="2")  # a launcher whose ranks the script changes
debugger = PrecisionDebugger(sys.argv[4])
debugger.start(); torch.relu(torch.full((1,), 1.0 + rank))
join(); dist.barrier()
debugger.stop()
debugger.start(); torch.relu(torch.full((1,), 1.0 + rank)); debugger.stop()
debugger.step()
debugger.start(); torch.relu(torch.full((1,), 1.0 + rank)); debugger.stop(); debugger.step()
leave()
"""


def test_a_group_with_other_ranks(tmp_path: Path) -> None:
    printed = run_ranks(tmp_path, SWAPPED, config(tmp_path))
    for rank in range(2):
        assert printed[rank].count(f"this process is rank {rank} of its process group, but rank "
                                   f"{1 - rank} by the environment") == 1
        # The step stays where it was opened, and no process writes into another's directory.
        for step, directory in ((0, 1 - rank), (1, rank)):
            data = dump_of(tmp_path, directory, step)
            values = {entry["input_args"][0]["Max"] for name, entry in data.items()
                      if "relu" in name}
            assert values == {1.0 + rank}
        assert "Torch.relu.1.forward" in dump_of(tmp_path, rank, 0)
    assert directories(tmp_path) == [f"step{s}/rank{r}" for s in (0, 1) for r in (0, 1)]


def test_processes_of_multiprocessing_do_not_inherit_a_rank(tmp_path: Path) -> None:
    script = tmp_path / "spawn.py"
    script.write_text("""
import sys
import torch
import torch.multiprocessing as mp

def train(number, path):
    from plumbline.pytorch import PrecisionDebugger
    debugger = PrecisionDebugger(path)
    if number == 0:
        debugger.start(); torch.relu(torch.ones(1)); debugger.stop()

if __name__ == "__main__":
    mp.spawn(train, (sys.argv[1],), nprocs=2)
""")
    launched([str(script), str(config(tmp_path))], SLURM_PROCID="1", SLURM_NTASKS="2")
    assert directories(tmp_path) == ["step0/rank"]
    mark = json.loads((tmp_path / "out" / "step0" / "rank" / ".run").read_text())
    assert mark["pid"] > 0
