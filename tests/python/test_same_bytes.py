"""Every result file has the same bytes whatever the number of threads and the CPU target.

Each pair of dumps is compared by fresh processes: with 1, 2 and 8 threads, and forced to every
instruction set that this CPU has. Times of day (names, the dates inside a workbook) do not count.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import page_data
import pytest
import torch
from recording import PLUMB

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "golden"))
import make_dumps  # noqa: E402

FORMATS = "xlsx,csv,json,jsonl,html,sqlite,junit,sarif"
EXTENSIONS = {".xlsx", ".csv", ".json", ".jsonl", ".html", ".db", ".xml", ".sarif"}
# (threads, CPU target); the first is what the others must equal. None: the best target.
WAYS = [("1", None), ("2", None), ("8", None), ("1", "baseline"), ("8", "avx2"), ("2", "avx512")]
NAN, INF = float("nan"), float("inf")
# Of a rank's stored outcome, the digest counts the times of the result files.
STAMP = re.compile(rb'(?<="results": ")[0-9a-f]{32}|\d{14}(_\d+)?'
                   rb"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")


def usable(target: str) -> bool:
    """Whether this CPU can be forced to `target` (the unit tests do not skip what it lacks)."""
    flags = Path("/proc/cpuinfo").read_text()
    return {"baseline": True, "avx2": " avx2" in flags, "avx512": " avx512bw" in flags}[target]


def values(seed: int) -> list[torch.Tensor]:
    """Of many dtypes and sizes, odd ones among them; one has several blocks of work."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(300_001, generator=torch.Generator().manual_seed(1))
    found = [noise + 1e-6 * torch.randn(noise.shape, generator=generator)]
    for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.float32):
        found.append(torch.randn(7, 1013, generator=torch.Generator().manual_seed(2)).to(dtype))
        found[-1][3] += 0.01 * seed
    found.append(torch.randint(0, 100, (333,), generator=generator))
    found.append(torch.randint(0, 2, (65,), generator=generator).bool())
    found.append(torch.randn(129, dtype=torch.complex64, generator=generator))
    odd = torch.randn(1025, generator=torch.Generator().manual_seed(3))
    odd[[5, 900]] = torch.tensor([NAN, INF if seed else -INF])
    found += [odd, torch.tensor(0.5 + seed), torch.zeros(0, 3), torch.zeros(17)]
    found.append(torch.full((64,), NAN))
    found.append(torch.randn(40, 50, generator=torch.Generator().manual_seed(4)).t())
    return found


def record(directory: Path, task: str, seed: int, md5: bool = False) -> Path:
    """A dump of one call per value, written without plumbline."""
    out = make_dumps.Recording(str(directory), task, md5)
    for index, value in enumerate(values(seed)):
        name = f"Torch.f{index}.0.forward"
        out.data[name] = {"input_args": [entry(out, value, f"{name}.input.0", task, md5)],
                          "input_kwargs": {},
                          "output": [entry(out, value * 1, f"{name}.output.0", task, md5)]}
        out.stack[name] = [f"File a.py, line {index}, in f, \n x"]
        out.construct[name] = None
    out.write()
    return directory


def entry(out: Any, value: torch.Tensor, name: str, task: str, md5: bool) -> dict[str, Any]:
    found = {"type": "torch.Tensor", "dtype": str(value.dtype), "shape": list(value.shape),
             "Max": None, "Min": None, "Mean": None, "Norm": None, "requires_grad": False}
    if value.numel() and not value.is_complex():
        wide = value.double()
        found |= {"Max": wide.max().item(), "Min": wide.min().item(),
                  "Mean": wide.mean().item(), "Norm": wide.norm().item()}
    if md5:
        content = value.reshape(-1).contiguous().view(torch.uint8).numpy().tobytes()
        found["md5"] = f"{zlib.crc32(content):08x}"
    if task == "tensor":
        found["data_name"] = name + ".pt"
        torch.save(value, Path(out.directory, "dump_tensor_data", name + ".pt"))
    return found


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Target and golden of every mode, and of a step with several ranks."""
    root = tmp_path_factory.mktemp("pairs")
    found = {}
    for mode, task, md5 in (("tensor", "tensor", False), ("statistics", "statistics", False),
                            ("md5", "statistics", True)):
        found[mode] = tuple(record(root / f"{mode}{seed}", task, seed, md5) for seed in (1, 0))
    for name in ("wrong_rank", "sound_ranks"):
        getattr(make_dumps, name)(str(root / name))
    found["ranks"] = root / "wrong_rank", root / "sound_ranks"
    return found


def members(path: Path) -> dict[str, bytes]:
    """The parts of a workbook; the date it was made stands in one of them."""
    with zipfile.ZipFile(path) as archive:
        return {name: STAMP.sub(b"<time>", archive.read(name)) for name in archive.namelist()}


def unpacked(path: Path) -> bytes:
    """A page with its data as text: the names of the files that were written stand there, too."""
    content = path.read_bytes()
    lines = [f"{kind} {json.dumps(data)}" for kind, data in page_data.lines_of(path)]
    return content[: content.index(b'id="data">')] + "\n".join(lines).encode()


def results(pair: tuple[Path, Path], folder: Path, threads: str, target: str | None,
            words: tuple[str, ...] = ("--format", FORMATS)) -> dict[str, Any]:
    """What one run writes and prints; names without their time."""
    folder.mkdir(parents=True)
    environment = {key: value for key, value in os.environ.items()
                   if key != "PLUMBLINE_CPU_TARGET"}
    if target is not None:
        environment["PLUMBLINE_CPU_TARGET"] = target
    done = subprocess.run([PLUMB, "compare", *map(str, pair), "-o", "out", *words,
                           "--threads", threads],
                          cwd=folder, env=environment, capture_output=True, timeout=120,
                          check=False)
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, Any] = {"stdout": STAMP.sub(b"<time>", done.stdout), "stderr": done.stderr}
    for path in sorted(folder.joinpath("out").rglob("*")):
        if path.is_file():
            read = {".xlsx": members, ".html": unpacked}.get(path.suffix, Path.read_bytes)
            content = read(path)
            name = STAMP.sub(b"<time>", str(path.relative_to(folder)).encode()).decode()
            found[name] = content if isinstance(content, dict) else STAMP.sub(b"<time>", content)
    return found


@pytest.mark.parametrize("mode", ["tensor", "statistics", "md5", "ranks"])
def test_threads_and_instruction_sets(
    mode: str, pairs: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    expected: dict[str, Any] = {}
    for number, (threads, target) in enumerate(WAYS):
        if target is not None and not usable(target):
            continue
        found = results(pairs[mode], tmp_path / str(number), threads, target)
        if not expected:
            expected = found
            assert {Path(name).suffix for name in found if "/" in name} >= EXTENSIONS
            assert len(found["stdout"]) > 50
        assert list(found) == list(expected), (threads, target)
        for name, content in found.items():
            assert content == expected[name], (name, threads, target)
    assert number == len(WAYS) - 1


def test_another_pair_gives_other_bytes(
    pairs: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    """The comparison above can fail: another pair gives other bytes in every file."""
    golden = pairs["statistics"][1]
    one = results(pairs["statistics"], tmp_path / "one", "1", None)
    two = results((golden, golden), tmp_path / "two", "1", None)
    same = [name for name in one if one[name] == two.get(name)]
    assert same == ["stderr"]
