"""Work of many ranks as tasks of a Ray cluster: `plumb compare ... --engine ray` and others.

Each task runs the program `plumb` on a part of the work, on a node that sees its files under the
paths of the command; only what the command leaves with --shard comes back. `plumb merge` makes of
all parts what one run without Ray gives. Ray is imported when there is work.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline import objects
from plumbline.rank_comparison import RanksResult

# A part is compared again on another worker when its worker or node dies; so often, then no more:
# what kills every worker is no accident.
RETRIES = 20
# Parts per CPU: small enough that the last ones end together, large enough that starting a program
# for each is no cost.
PARTS_PER_CPU = 8
FEWEST_CPUS, MOST_PARTS = 2, 4096
# A part whose result is stored starts a Python and lists the store first.
STORED_PARTS_PER_CPU = 2
# What Ray calls the devices of a pre-check; others by their own name in capitals.
RESOURCES = {"cpu": "", "cuda": "GPU", "xpu": "GPU"}
DEVICES_OF_ITS_OWN = ("NPU", "GPU")  # what "auto" takes, the first that there is
# So many parts at most share a device: what one of them computes on the CPU takes longer.
PARTS_PER_DEVICE = 8
WHOLE_DEVICES = ("HPU", "TPU")  # Ray gives out no part of one
# Kept of what a local cluster could take of the memory: parts are small.
OBJECT_STORE_BYTES = 80 << 20
NEEDS_RAY = ("--engine ray needs Ray in {python}. Install it with: "
             "pip install 'plumbline-numerics[cluster]'")
ANSWER_LIMIT_S = 10.0
UNSUPPORTED, IO_FAILED, INTERRUPTED = 4, 6, 130  # exit statuses of plumb


class ClusterError(RuntimeError):
    """What could not be done, in one line, and the exit status of `plumb` for it."""

    def __init__(self, message: str, status: int = IO_FAILED) -> None:
        super().__init__(message)
        self.status = status


class ProgramKilled(RuntimeError):
    """The program of a task was ended by a signal: the task runs again."""


@dataclass(frozen=True)
class Part:
    """One run of the program, and the file whose bytes are its result; none: what it prints. An
    object of a store stays there."""

    name: str  # "shard 3 of 64"
    words: list[str]
    result: str = ""


@dataclass(frozen=True)
class PartDone:
    """How a part ended on the worker that did it."""

    status: int
    out: str
    error: str
    result: bytes


@dataclass(frozen=True)
class Job:
    """What all parts have in common: the program, the directory that it runs in, and the kind of
    device that it uses ("cuda", "auto"; empty: none)."""

    program: str
    directory: str
    device: str = ""


@dataclass(frozen=True)
class Where:
    """Which cluster: its address, or of this machine alone with so many CPUs (0: all)."""

    address: str = ""
    threads: int = 0

    @property
    def is_here(self) -> bool:
        """Whether it is one of this machine alone."""
        return not (self.address or os.environ.get("RAY_ADDRESS"))

    @property
    def cpus_here(self) -> int:
        """CPUs of such a one."""
        return self.threads or len(os.sched_getaffinity(0))


def run_part(job: Job, part: Part) -> PartDone:
    """Runs one part in this process's place; it ends with this process.

    Raises:
        ProgramKilled: the program was ended by a signal.
    """
    beside = Path(sys.executable).with_name("plumb")
    found = next((str(path) for path in (Path(job.program), beside) if path.is_file()), "")
    found = found or shutil.which("plumb") or ""
    if not found:
        return PartDone(3, "", f"no program plumb on {os.uname().nodename}", b"")
    path, is_stored = Path(job.directory, part.result), objects.is_named_by(part.result)
    try:
        if part.result and not is_stored:
            path.unlink(missing_ok=True)  # of an earlier run
        done = subprocess.run([found, *part.words], cwd=job.directory, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="surrogateescape",
                              preexec_fn=objects.follower(signal.SIGKILL), check=False,
                              env=_environment(part.result))
    except OSError as error:  # the directory, on this node
        return PartDone(IO_FAILED, "", f"{os.uname().nodename}: {error}", b"")
    if done.returncode < 0:
        raise ProgramKilled(f"signal {-done.returncode}")
    if is_stored:
        did_store = done.returncode == 0 and f"file: {part.result}" in done.stdout.splitlines()
        result = part.result.encode() if did_store else b""
    else:
        result = path.read_bytes() if part.result and path.is_file() else b""
    return PartDone(done.returncode, done.stdout, done.stderr, result)


def _environment(result: str) -> dict[str, str]:
    """Of a program that leaves, or takes, such a result. What others stored meanwhile is not in a
    directory that stands for a store, so each program makes one of its own."""
    dropped = {objects.DIRECTORY, objects.LISTED} if objects.is_named_by(result) else set()
    return {name: value for name, value in os.environ.items() if name not in dropped}


def check_ray() -> None:
    """Raises ClusterError where there is no Ray."""
    if importlib.util.find_spec("ray") is None:
        raise ClusterError(NEEDS_RAY.format(python=sys.executable), UNSUPPORTED)


def _must_answer(address: str) -> None:
    """Ray would wait for minutes, and say so in many lines.

    Raises:
        ClusterError: nobody listens at HOST:PORT.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_LIMIT_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ClusterError(f"--address {address}: no Ray cluster answers there (expected "
                           f"HOST:PORT; {error})") from None


@dataclass(frozen=True)
class Room:
    """What Ray is asked for, for each part: a share of a device, so that the part runs where there
    is one and sees it. Of a task that asks for none that is left to chance, and many releases hide
    all devices from it."""

    resource: str = ""
    share: float = 0.0
    parts: int = 1  # that run at once

    @property
    def options(self) -> dict[str, Any]:
        """Of a task."""
        if not self.resource:
            return {}
        if self.resource == "GPU":
            return {"num_gpus": self.share}
        return {"resources": {self.resource: self.share}}


def room_for(device: str, there: dict[str, float]) -> Room:
    """For parts that use a device, in a cluster that has these resources.

    Raises:
        ClusterError: no node has such a device.
    """
    cpus = max(1.0, there.get("CPU", 1.0))
    if device == "auto":
        name = next((one for one in DEVICES_OF_ITS_OWN if there.get(one)), "")
    else:
        name = RESOURCES.get(device, device.upper())
    if not name:
        return Room(parts=int(cpus))
    if not there.get(name):
        raise ClusterError(f"--device_type {device}: no node of the cluster has a {name} (ray "
                           "status shows what they have)", UNSUPPORTED)
    share = 1.0
    if name not in WHOLE_DEVICES:
        share = min(1.0, max(there[name] / cpus, 1 / PARTS_PER_DEVICE))
        share = int(share * 10000) / 10000  # as fine as Ray counts
    return Room(name, share, max(1, int(min(cpus, there[name] / share))))


class Cluster:
    """A connection to a Ray cluster, or one of this machine alone, which ends with it."""

    def __init__(self, where: Where) -> None:
        check_ray()
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        self._ray = ray
        address = where.address or os.environ.get("RAY_ADDRESS") or "local"
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if address == "local":
            options |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES,
                        "num_cpus": where.cpus_here}
        elif address != "auto":
            _must_answer(address)
        self._owns = not ray.is_initialized()
        try:
            if self._owns:
                ray.init(address, **options)
            self._there: dict[str, float] = ray.cluster_resources()
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ClusterError(f"--address {address}: no Ray cluster ({text})") from None

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        if self._owns:
            self._ray.shutdown()

    def room(self, job: Job) -> Room:
        """For the parts of a job. Raises ClusterError as room_for()."""
        return room_for(job.device, self._there)

    def run(self, job: Job, parts: Sequence[Part],
            numbers: Sequence[int]) -> Iterator[tuple[int, PartDone]]:
        """Runs these parts; yields the number of each and how it ended, as they come in.

        Raises:
            ClusterError: a part was lost as often as it was tried.
        """
        ray = self._ray
        task = ray.remote(num_cpus=1, max_retries=RETRIES,
                          retry_exceptions=[ProgramKilled], **self.room(job).options)(run_part)
        waiting = {task.options(name=parts[number].name).remote(job, parts[number]): number
                   for number in numbers}
        while waiting:
            ready, _ = ray.wait(list(waiting), num_returns=1)
            number = waiting.pop(ready[0])
            try:
                done = ray.get(ready[0])
            except (ray.exceptions.RayError, ProgramKilled) as error:
                reason = str(error).strip().splitlines()[0] if str(error).strip() else ""
                raise ClusterError(f"{parts[number].name}: was lost more than {RETRIES} times "
                                   f"({type(error).__name__}: {reason})") from None
            yield number, done


class Ahead:
    """Runs parts in this process's own children while the cluster of this machine starts, which
    takes longer than many a part. Takes them from the end of the list."""

    def __init__(self, job: Job, parts: Sequence[Part], threads: int) -> None:
        self._job, self._parts = job, parts
        self._left = list(range(len(parts)))
        self._done: list[tuple[int, PartDone]] = []
        self._lost: list[int] = []
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._left:
                    return
                number = self._left.pop()
            try:
                self._done.append((number, run_part(self._job, self._parts[number])))
            except (ProgramKilled, OSError):
                self._lost.append(number)

    def rest(self) -> list[int]:
        """The parts that were not begun, which nobody will begin here from now on."""
        with self._lock:
            rest, self._left = self._left, []
        return rest

    def results(self) -> tuple[list[tuple[int, PartDone]], list[int]]:
        """What was done, once all that was begun has ended, and what was lost."""
        for thread in self._threads:
            thread.join()
        return self._done, self._lost


def _answers(cluster: Cluster, job: Job, parts: Sequence[Part],
             ahead: Ahead | None) -> Iterator[tuple[int, PartDone]]:
    """The number of each part and how it ended."""
    yield from cluster.run(job, parts, ahead.rest() if ahead else list(range(len(parts))))
    if ahead:
        done, lost = ahead.results()
        yield from done
        yield from cluster.run(job, parts, lost)


def _run_all(where: Where, job: Job, parts_for: Callable[[int], list[Part]],
             told: Callable[[Part, PartDone], None]) -> list[Part]:
    """Runs the parts, as many as suit the cluster, tells of each as it ends, and shows on a
    terminal how many have."""
    ahead = None
    if where.is_here:
        check_ray()
        parts = parts_for(where.cpus_here)
        ahead = Ahead(job, parts, where.cpus_here)
    try:
        with Cluster(where) as cluster:
            if ahead is None:
                parts = parts_for(cluster.room(job).parts)
            for count, (number, done) in enumerate(_answers(cluster, job, parts, ahead), 1):
                told(parts[number], done)
                if sys.stderr.isatty():
                    end = "\n" if count == len(parts) else ""
                    print(f"\r{count} of {len(parts)} parts done", end=end, file=sys.stderr,
                          flush=True)
    finally:
        if ahead:
            ahead.rest()
    return parts


def _keep(directory: str, part: Part, done: PartDone) -> None:
    """Puts the result of a part where this machine finds it, if it is not there."""
    if objects.is_named_by(part.result):
        return
    path = Path(directory, part.result)
    if path.is_file() and path.read_bytes() == done.result:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.tmp")
    draft.write_bytes(done.result)
    draft.replace(path)


@dataclass(frozen=True)
class Work:
    """A command of `plumb` that takes --shard."""

    command: str  # "compare"
    words: Sequence[str]  # its options and paths
    stem: str  # of the shards: "result/compare_ranks"
    device: str = ""  # as of Job
    parts_per_cpu: int = PARTS_PER_CPU

    def part(self, index: int, count: int) -> Part:
        """One of `count`."""
        return Part(f"shard {index} of {count}",
                    [self.command, *self.words, "--threads", "1", "--shard", f"{index}/{count}"],
                    f"{self.stem}_{index}_of_{count}.shard")


def _remove(paths: Sequence[str], directory: Path | None) -> None:
    """Takes away shards, which nobody asked to see, and the directory if it was made for them."""
    stored = [path for path in paths if objects.is_named_by(path)]
    objects.remove(stored)
    for path in set(paths).difference(stored):
        Path(path).unlink(missing_ok=True)
    if directory:
        with contextlib.suppress(OSError):  # it holds results
            directory.rmdir()


def run(where: Where, program: str, work: Work,
        **options: Any) -> subprocess.CompletedProcess[str]:
    """The work in parts; how `plumb merge`, run with `options`, ended.

    Raises:
        ClusterError: a part cannot be done at all, or was lost.
    """
    job, home = Job(program, os.getcwd(), work.device), Path(work.stem).parent
    is_stored = objects.is_named_by(work.stem)
    made = None if is_stored or home.exists() else home
    shards: list[str] = []  # that may be there

    def parts_for(cpus: int) -> list[Part]:
        per_cpu = min(work.parts_per_cpu, STORED_PARTS_PER_CPU if is_stored else MOST_PARTS)
        count = min(per_cpu * max(FEWEST_CPUS, cpus), MOST_PARTS)
        parts = [work.part(index, count) for index in range(count)]
        if not is_stored:
            shards.extend(part.result for part in parts)
        return parts

    def told(part: Part, done: PartDone) -> None:
        if not done.result:  # wrong usage, a path that is missing: so for all parts
            lines = done.error.strip().splitlines()
            text = (lines[-1] if lines else
                    f"{part.name}: left no {part.result} (exit status {done.status})")
            raise ClusterError(text.removeprefix(f"plumb {work.command}: "),
                               done.status or IO_FAILED)
        _keep(job.directory, part, done)
        if is_stored:
            shards.append(part.result)

    try:
        results = [part.result for part in _run_all(where, job, parts_for, told)]
        done = subprocess.run([program, "merge", *results], text=True, check=False,
                              env=_environment(work.stem), **options)
    except BaseException:  # interrupted, too
        with contextlib.suppress(OSError, objects.StoreError):
            _remove(shards, made)
        raise
    if done.returncode == IO_FAILED:  # a full disk: what was computed is not lost
        pattern = shlex.quote(work.stem) + f"_*_of_{len(results)}.shard"
        print(f"plumb {work.command}: the parts are left. Go on with: plumb merge {pattern}",
              file=sys.stderr)
    else:
        _remove(shards, made)
    return done


def compare_ranks(target: str | os.PathLike[str], golden: str | os.PathLike[str],
                  output_dir: str | os.PathLike[str], *options: str,
                  address: str | None = None, program: str = "") -> RanksResult:
    """Compares two dumps rank by rank on a Ray cluster, as plumbline.compare_ranks() does here.

    Args:
        target, golden, output_dir: as of plumbline.compare_ranks(); every node sees them under
            these paths, which may be of an object store.
        options: further words of `plumb compare`, such as "--format=csv". Without a --fail-on
            any difference and anything that was not judged gives an exit_code, as there;
            it is the status of `plumb compare`.
        address: of a running cluster; None: $RAY_ADDRESS, else one of this machine alone.
        program: the program plumb; empty: beside the interpreter, else of PATH.

    Raises:
        ClusterError: Ray is missing or does not answer, a part was lost on every worker that took
            it, or the recordings cannot be compared at all.
    """
    program = program or program_of_here()
    sides = [os.fspath(target), os.fspath(golden)]
    if not any(word.startswith("--fail-on") for word in options):
        options = ("--fail-on=any", *options)
    output = os.fspath(output_dir)
    work = Work("compare", [f"--output={output}", *options, *sides],
                os.path.join(output, "compare_ranks"))
    done = run(Where(address or ""), program, work, capture_output=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("file: ")]
    if not lines:
        raise ClusterError(done.stderr.strip().removeprefix("plumb merge: "), done.returncode)
    facts = json.loads(objects.read(lines[-1].removeprefix("file: ")))
    told = ("answer", "first_wrong_call", "origins", "ranks", "counts", "complete", "certainty",
            "files")
    return RanksResult(summary=done.stdout, exit_code=done.returncode,
                       collectives=facts.get("collectives", []),
                       **{name: facts[name] for name in told})


def program_of_here() -> str:
    """The program plumb that belongs to this package."""
    beside = Path(sys.executable).with_name("plumb")
    return str(beside) if beside.is_file() else "plumb"


def main(words: Sequence[str] | None = None) -> int:
    """`python -m plumbline.cluster COMMAND --stem PATH -- WORDS`, as `plumb COMMAND --engine ray`
    calls it."""
    parser = argparse.ArgumentParser(prog="python -m plumbline.cluster",
                                     description=str(__doc__).splitlines()[0])
    parser.add_argument("command", help="of plumb, one that takes --shard")
    parser.add_argument("--program", default="", help="the program plumb")
    parser.add_argument("--stem", required=True, help="how the names of shards begin")
    parser.add_argument("--address", default="", help="of a running Ray cluster")
    parser.add_argument("--threads", type=int, default=0, help="CPUs of the one of this machine")
    parser.add_argument("--device", default="", help="kind of device that the command uses")
    parser.add_argument("--parts-per-cpu", type=int, default=PARTS_PER_CPU,
                        help="how small parts are")
    parser.add_argument("words", nargs="+", help="options and paths of plumb, behind --")
    chosen = parser.parse_args(words)
    program = chosen.program or program_of_here()
    try:
        # Ray prints there what it does about workers that died; the answer goes to the descriptor.
        with open(os.devnull, "w") as nobody, contextlib.redirect_stdout(nobody):
            where = Where(chosen.address, chosen.threads)
            work = Work(chosen.command, chosen.words, chosen.stem, chosen.device,
                        chosen.parts_per_cpu)
            return run(where, program, work).returncode
    except (ClusterError, objects.StoreError) as error:
        print(f"plumb {chosen.command}: {error}", file=sys.stderr)
        return error.status
    except KeyboardInterrupt:
        taken = ("; ranks that are done are taken over by the next run"
                 if chosen.command == "compare" else "")
        print(f"plumb {chosen.command}: interrupted{taken}", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
