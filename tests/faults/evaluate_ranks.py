"""Records every case of several ranks, compares all ranks of every pair, counts right answers.

    python evaluate_ranks.py WORK [--json FILE] [--only NAME ...]

As evaluate.py; the rank must be right too.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluate import (
    COMPARE_LIMIT_S,
    HERE,
    PLUMB,
    TASKS,
    Answer,
    calls_of,
    summary,
    write_statistics,
)
from rank_cases import CASES, RankCase

RECORDING_LIMIT_S = 200


@dataclass
class RankAnswer(Answer):
    """What a comparison of all ranks said about a case; on another rank there is no distance."""

    rank: int | None = None

    @property
    def place(self) -> str:
        """What is named, and on which rank."""
        return f"rank {self.rank} {self.named}" if self.named else "nothing"


def answer_of(case: RankCase, task: str, rank: int | None, named: str, step: Path) -> RankAnswer:
    """An answer, measured; without cause and detail."""
    far = distance(step, case, rank, named) if case.is_fault and rank is not None else None
    return RankAnswer(case.name, task, case.is_fault, "held out" if case.held_out else "in view",
                      named, far, "", " ".join(case.causes), "", rank)


def record(work: Path, world: int) -> dict[str, int]:
    """Records the cases of one world unless they are there; the step of each."""
    folder = work / f"world{world}"
    if not (folder / "steps.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _run_world(folder, world)
        for rank in sorted(folder.glob("dump/step*/rank*")):
            write_statistics(rank, folder / "statistics" / rank.parent.name / rank.name)
    steps: dict[str, int] = json.loads((folder / "steps.json").read_text())
    return steps


def _run_world(folder: Path, world: int) -> None:
    environment = os.environ | {"PLUMBLINE_LOG_LEVEL": "2", "GLOO_SOCKET_IFNAME": "lo"}
    store = folder / f"store{time.monotonic_ns()}"
    children, logs = [], []
    for rank in range(world):
        logs.append(folder / f"log{rank}")
        with logs[-1].open("w") as log:
            children.append(subprocess.Popen(
                [sys.executable, "-W", "ignore", HERE / "record_ranks.py", str(rank), str(world),
                 store, folder], env=environment, stdout=log, stderr=log, start_new_session=True))
    deadline = time.monotonic() + RECORDING_LIMIT_S
    try:
        for child in children:
            child.wait(max(1.0, deadline - time.monotonic()))
    finally:
        for child in children:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
    for child, log_path in zip(children, logs, strict=True):
        if child.returncode != 0:
            raise SystemExit(f"{log_path.name}: exit {child.returncode}\n"
                             f"{log_path.read_text()[-3000:]}")


def distance(step: Path, case: RankCase, rank: int, named: str) -> int | None:
    """How many calls of the named rank lie between what is named and the nearest true culprit."""
    order = {name: place for place, name in enumerate(calls_of(step / f"rank{rank}"))}
    true = [call for owner, call in case.culprits if owner in (None, rank)]
    if named in true:
        return 0
    if named not in order:
        return None
    return min((abs(order[named] - order[call]) for call in true if call in order), default=None)


def steps_of(work: Path, task: str, case: RankCase, steps: dict[str, int]) -> tuple[Path, Path]:
    """Where the target and the golden run of a case were recorded."""
    root = work / f"world{case.world}" / ("dump" if task == "tensor" else "statistics")
    return root / f"step{steps[case.name]}", root / f"step{steps['golden-' + case.training]}"


def pairs_of(work: Path, task: str) -> dict[str, tuple[Path, Path]]:
    """By the name of a case, of what evaluate() recorded."""
    steps = {world: record(work, world) for world in {case.world for case in CASES}}
    return {case.name: steps_of(work, task, case, steps[case.world]) for case in CASES}


def compare(work: Path, task: str, case: RankCase, steps: dict[str, int]) -> RankAnswer:
    """The answer of `plumb compare` over all ranks."""
    target, golden = steps_of(work, task, case, steps)
    done = subprocess.run([PLUMB, "compare", target, golden, "--json", "--no-resume", "-o",
                           target / "result", "--format", "json"],
                          check=False, capture_output=True, text=True, timeout=COMPARE_LIMIT_S)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{case.name}: {done.stderr}")
    first: dict[str, Any] = json.loads(done.stdout)["first_wrong_call"] or {}
    answer = answer_of(case, task, first.get("rank"), first.get("name", ""), target)
    answer.cause = first.get("cause") or ""
    answer.detail = f"{first.get('what', '')}; {first.get('cause_text', '')}"
    return answer


def evaluate(work: Path, only: list[str]) -> list[RankAnswer]:
    """Records, compares, answers."""
    cases = [case for case in CASES if not only or case.name in only]
    steps = {world: record(work, world) for world in sorted({case.world for case in cases})}
    jobs = [(work, task, case, steps[case.world]) for task in TASKS for case in cases]
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda job: compare(*job), jobs))


def pairs(work: Path) -> list[dict[str, str]]:
    """Every rank of every case, for upstream_answers.py; the name is CASE@RANK."""
    found = []
    for world in sorted({case.world for case in CASES}):
        steps = record(work, world)
        for task in TASKS:
            for case in (case for case in CASES if case.world == world):
                target, golden = steps_of(work, task, case, steps)
                found += [{"case": f"{case.name}@{rank}", "task": task,
                           "target": str(target / f"rank{rank}"),
                           "golden": str(golden / f"rank{rank}")} for rank in range(world)]
    return found


def upstream_answers(work: Path, path: Path, mark: str) -> list[RankAnswer]:
    """The answers of a release, measured like ours: the lowest rank that has a mark is its rank."""
    said: dict[tuple[str, str], dict[int, str]] = {}
    for line in path.read_text().splitlines():
        one = json.loads(line)
        case, _, rank = one["case"].partition("@")
        if rank:
            said.setdefault((case, one["task"]), {})[int(rank)] = one[mark]
    steps = {world: record(work, world) for world in sorted({case.world for case in CASES})}
    answers = []
    for (name, task), by_rank in said.items():
        case = next(case for case in CASES if case.name == name)
        rank = min((rank for rank, named in by_rank.items() if named), default=None)
        target, _ = steps_of(work, task, case, steps[case.world])
        answers.append(answer_of(case, task, rank, "" if rank is None else by_rank[rank], target))
    return answers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--json", type=Path, help="writes every answer")
    parser.add_argument("--pairs", type=Path, help="writes where every rank was recorded")
    parser.add_argument("--only", nargs="*", default=[], help="names of cases")
    args = parser.parse_args()
    answers = evaluate(args.work.resolve(), args.only)
    for answer in answers:
        good = answer.exact if answer.is_fault else not answer.named
        cause_good = not answer.true_cause or answer.cause in answer.true_cause.split()
        if not good or not cause_good:
            print(f"{answer.task:10} {answer.case:30} named {answer.place:47} "
                  f"distance {answer.distance} cause {answer.cause or '-'} of "
                  f"{answer.true_cause}\n           {answer.detail[:250]}")
    for task in TASKS:
        for group in ("in view", "held out"):
            print(task, group, summary([a for a in answers if (a.task, a.group) == (task, group)]))
    if args.pairs:
        args.pairs.write_text(json.dumps(pairs(args.work.resolve())))
    if args.json:
        args.json.write_text(json.dumps([asdict(answer) for answer in answers], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
