"""Records every case, compares every pair and counts the right answers.

    python evaluate.py WORK [--json FILE] [--only NAME ...]

WORK is a directory for the recordings; what is recorded there already is used again, and models of
which a case is missing are recorded anew. The program under test is $PLUMB, or `plumb` beside the
interpreter.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PLUMB = os.environ.get("PLUMB") or str(Path(sys.executable).with_name("plumb"))
LISTING_LIMIT_S = 280
COMPARE_LIMIT_S = 60
TASKS = ("tensor", "statistics")
PROCESSES = 2  # that record at once


@dataclass
class Pair:
    """Where a case was recorded, and what the suite knows about it."""

    name: str
    model: str
    culprits: tuple[str, ...]
    cause: str
    group: str
    target: Path
    golden: Path

    @property
    def is_fault(self) -> bool:
        """Whether a call must be named."""
        return bool(self.culprits)


@dataclass
class Answer:
    """What a comparison said about a case."""

    case: str
    task: str
    is_fault: bool
    group: str
    named: str  # empty: no wrong call
    distance: int | None  # in recorded calls, from the nearest true one
    cause: str
    true_cause: str
    detail: str

    @property
    def place(self) -> str:
        """What is named."""
        return self.named or "nothing"

    @property
    def exact(self) -> bool:
        """Whether a true culprit is named."""
        return self.distance == 0

    @property
    def near(self) -> bool:
        """Whether what is named is a true culprit or the call next to one."""
        return self.distance is not None and self.distance <= 1


def record(work: Path, only: list[str], without: tuple[str, ...] = ()) -> list[Pair]:
    """Records what is missing in `work`; returns all pairs but models and cases in `without`."""
    left_out = set(without)
    cases = [case for case in listing() if not {case["model"], case["name"]} & left_out]
    if only:
        cases = [case for case in cases if case["name"] in only or _group(case) in only]
    jobs: dict[str, list[dict[str, Any]]] = {}
    for case in cases:
        own = "".join("-" + value for pair in case["environment"] for value in pair)
        jobs.setdefault(case["model"] + own, []).append(case)
    missing = {job: members for job, members in jobs.items()
               if not _is_recorded(work / job, members)}
    for job in missing:
        if (work / job / "config.json").exists():
            shutil.rmtree(work / job)
    with ThreadPoolExecutor(PROCESSES) as pool:
        list(pool.map(lambda share: _record_jobs(work, share), _shares(missing)))
    pairs = []
    for job, members in jobs.items():
        steps = json.loads((work / job / "steps.json").read_text())
        for case in members:
            golden = work / case["model"]
            first = json.loads((golden / "steps.json").read_text())["golden"]
            pairs.append(Pair(case["name"], case["model"], tuple(case["culprits"]), case["cause"],
                              _group(case), work / job / steps[case["name"]], golden / first))
    return pairs


def _is_recorded(folder: Path, cases: list[dict[str, Any]]) -> bool:
    """Whether a recording holds all of these cases: one may have been added since."""
    steps = folder / "steps.json"
    return steps.exists() and {case["name"] for case in cases} <= set(json.loads(steps.read_text()))


@functools.cache
def listing() -> list[dict[str, Any]]:
    """What the suite knows about every case."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", _LIST], cwd=HERE, check=True,
                          capture_output=True, text=True, timeout=LISTING_LIMIT_S)
    return json.loads(done.stdout)


_LIST = """
import json
from dataclasses import asdict
from all_cases import CASES
print(json.dumps([{k: v for k, v in vars(case).items() if k != "change"} for case in CASES]))
"""


def _group(case: dict[str, Any]) -> str:
    """What a case is counted with."""
    return case["group"] or ("held out" if case["held_out"] else "in view")


Jobs = dict[str, list[dict[str, Any]]]  # cases that are recorded together, by their directory


def _shares(jobs: Jobs) -> list[Jobs]:
    """Jobs of one environment each; those without one in as many shares as processes run."""
    own: list[Jobs] = [{job: cases} for job, cases in jobs.items() if cases[0]["environment"]]
    plain: list[Jobs] = [{} for _ in range(PROCESSES)]
    for job, cases in sorted(jobs.items(), key=lambda item: -len(item[1])):
        if not cases[0]["environment"]:
            min(plain, key=lambda share: sum(map(len, share.values())))[job] = cases
    return [share for share in plain + own if share]


def _record_jobs(work: Path, jobs: Jobs) -> None:
    """Records jobs of one environment, one after the other."""
    first = next(iter(jobs))
    environment = os.environ | dict(jobs[first][0]["environment"]) | {"PLUMBLINE_LOG_LEVEL": "2"}
    wanted = [{"model": cases[0]["model"], "output": str(work / job),
               "cases": [case["name"] for case in cases]} for job, cases in jobs.items()]
    path = work / f"jobs-{first}.json"
    path.write_text(json.dumps(wanted))
    done = subprocess.run([sys.executable, "-W", "ignore", HERE / "record_cases.py", path],
                          env=environment, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{done.stdout[-2000:]}{done.stderr[-4000:]}")


def write_statistics(rank: Path, folder: Path) -> None:
    """From a recording of tensors, one of the statistics that it holds."""
    def without_files(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without_files(part) for key, part in value.items() if key != "data_name"}
        return [without_files(part) for part in value] if isinstance(value, list) else value

    content = json.loads((rank / "dump.json").read_text())
    content["task"] = "statistics"
    content["data"] = without_files(content["data"])
    folder.mkdir(parents=True)
    (folder / "dump.json").write_text(json.dumps(content))
    for name in (".run", "stack.json", "construct.json"):
        if (rank / name).exists():
            (folder / name).write_bytes((rank / name).read_bytes())


def folder_of(rank: Path, task: str) -> Path:
    """The recording for a task."""
    return rank if task == "tensor" else rank.parent / "statistics"


def calls_of(rank: Path) -> list[str]:
    """The names of a recording, in its order."""
    return list(json.loads((rank / "dump.json").read_text())["data"])


def distance(pair: Pair, named: str) -> int | None:
    """How many calls lie between what is named and the nearest true culprit; none: far away."""
    found = []
    for rank in (pair.target, pair.golden):
        order = {name: place for place, name in enumerate(calls_of(rank))}
        if named in order:
            found += [abs(order[named] - order[true]) for true in pair.culprits if true in order]
    return 0 if named in pair.culprits else min(found, default=None)


def compare(pair: Pair, task: str) -> Answer:
    """The answer of `plumb compare`."""
    done = subprocess.run([PLUMB, "compare", folder_of(pair.target, task),
                           folder_of(pair.golden, task), "--json", "-o", pair.target / "result",
                           "--format", "json"],
                          check=False, capture_output=True, text=True, timeout=COMPARE_LIMIT_S)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{pair.name}: {done.stderr}")
    first = json.loads(done.stdout)["first_wrong_call"] or {}
    named = first.get("name", "")
    cause = first.get("cause") or ""
    if isinstance(cause, dict):
        cause = cause.get("code") or cause.get("class") or ""
    return Answer(pair.name, task, pair.is_fault, pair.group, named,
                  distance(pair, named) if pair.is_fault and named else None, cause, pair.cause,
                  first.get("what", ""))


def summary(answers: Sequence[Answer]) -> dict[str, int]:
    """Counts of one group of answers."""
    faults = [answer for answer in answers if answer.is_fault]
    noise = [answer for answer in answers if not answer.is_fault]
    with_cause = [answer for answer in faults if answer.true_cause]
    return {"faults": len(faults), "exact": sum(answer.exact for answer in faults),
            "within_one": sum(answer.near for answer in faults), "noise": len(noise),
            "alarms": sum(bool(answer.named) for answer in noise), "with_cause": len(with_cause),
            "cause_right": sum(answer.cause in answer.true_cause.split() for answer in with_cause)}


def evaluate(work: Path, only: list[str], without: tuple[str, ...] = ()) -> list[Answer]:
    """Records, compares, answers; without some models and cases."""
    pairs = record(work, only, without)
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda job: compare(*job),
                             [(pair, task) for task in TASKS for pair in pairs]))


def upstream_answers(work: Path, path: Path, mark: str) -> list[Answer]:
    """The answers of a release by one kind of mark (upstream_answers.py), measured like ours."""
    pairs = {pair.name: pair for pair in record(work, [])}
    answers = []
    for said in map(json.loads, path.read_text().splitlines()):
        if said["case"] not in pairs:  # of several ranks
            continue
        pair, name = pairs[said["case"]], said[mark]
        answers.append(Answer(pair.name, said["task"], pair.is_fault, pair.group, name,
                              distance(pair, name) if pair.is_fault and name else None, "",
                              pair.cause, said["failure"]))
    return answers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--json", type=Path, help="writes every answer")
    parser.add_argument("--pairs", type=Path, help="writes where every pair was recorded")
    parser.add_argument("--only", nargs="*", default=[], help="names of cases or groups")
    args = parser.parse_args()
    answers = evaluate(args.work.resolve(), args.only)
    for answer in answers:
        good = answer.exact if answer.is_fault else not answer.named
        if not good:
            print(f"{answer.task:10} {answer.case:30} named {answer.named or 'nothing':40} "
                  f"distance {answer.distance}\n           {answer.detail[:200]}")
    for task in TASKS:
        for group in dict.fromkeys(answer.group for answer in answers):
            print(task, group, summary([a for a in answers if (a.task, a.group) == (task, group)]))
    if args.pairs:
        args.pairs.write_text(json.dumps(
            [{"case": pair.name, "task": task, "target": str(folder_of(pair.target, task)),
              "golden": str(folder_of(pair.golden, task))}
             for task in TASKS for pair in record(args.work.resolve(), args.only)]))
    if args.json:
        args.json.write_text(json.dumps([asdict(answer) for answer in answers], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
