"""What recording costs a MindSpore step on a CPU, against the same step without recorder.

    build/mindspore/bin/python benchmarks/end_to_end/mindspore_overhead.py [STEPS]

One JSON line for each of: the closed window, levels L0, L1 and mix at statistics, and the
recorder's own time for one recorded call that runs no kernel, so that nothing has to be waited
for. A turn is three steps, each one first in every third turn: without recorder, recorded, and
without recorder but with a plain reading (numpy.max, one thread) of as many bytes of the step's
weights and gradients as the recorded one has tensors (`mib`): statistics of every tensor cannot
cost less than that. `ratio` is the median of the turns' ratios by the clock; `best_ratio` that of
the shortest steps; `cpu_ratio` that of all processors' seconds, without the turns with the most
and the least. Other programs disturb the first most and the last least. `reading_` is the same of
the third step. Results are checked: the loss must be the same bits.

What L0 costs is reading: of 94 tensors of 222 MiB here, at 10 GB/s. That cannot be shared out: the
threads of MindSpore's OpenMP spin between two tensors, which took a step from 0.4 to 1.0 processor
seconds, and threads that sleep are no faster on two processors (4 MiB in 0.32 ms instead of 0.29,
the fastest tenth) and late where other programs run (a tenth took over 8 ms, alone 0.5). Nor can
it be left out that a cell's input is what another returned: an operator that writes to a tensor
does not raise its `_version` in MindSpore 2.10, so that only reading tells that it has not changed.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "mindspore"))

from ms_recording import new_debugger, tensors

WIDTH = 512
CALLS = 5000


class Block(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Dense(WIDTH, 4 * WIDTH), nn.Dense(4 * WIDTH, WIDTH)
        self.relu = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        return x + self.down(self.relu(self.up(x))) * 0.1


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.CellList([Block() for _ in range(4)])

    def construct(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return ops.sum(x)


@dataclass
class Step:
    """Seconds by the clock and by the processors, and the loss."""

    seconds: float
    cpu_seconds: float
    loss: bytes


class Training:
    """Steps of one network, recorded or not."""

    def __init__(self) -> None:
        self.net = Net()
        values = np.random.default_rng(0).standard_normal((WIDTH, WIDTH)).astype(np.float32)
        self.x = Tensor(values)
        self.gradients_of = ms.value_and_grad(self.net, None, self.net.trainable_params())

    def step(self, debugger: Any = None, reading: int = 0) -> Step:
        """One step; afterwards `reading` bytes of weights and gradients are read."""
        began, cpu_began = time.perf_counter(), time.process_time()
        if debugger:
            debugger.start(self.net)
        loss, gradients = self.gradients_of(self.x)
        for gradient in gradients:
            gradient.data_ptr()  # waits for it
        if debugger:
            debugger.stop()
            debugger.step()
        if reading:
            self.read(gradients, reading)
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
        return Step(seconds, cpu_seconds, loss.asnumpy().tobytes())

    def read(self, gradients: Any, count: int) -> None:
        """Reads `count` bytes, tensor by tensor."""
        for tensor in itertools.cycle([*gradients, *self.net.trainable_params()]):
            values = tensor.asnumpy().ravel()[:count // 4]
            if values.size == 0:
                return
            values.max()
            count -= values.nbytes


def recorded_bytes(directory: Path) -> int:
    """What the tensors of the first recorded step hold; each was read once."""
    files = list(directory.glob("out/step0/*/dump.json"))
    data = json.loads(files[0].read_text())["data"] if files else {}
    return sum(4 * math.prod(tensor["shape"]) for tensor in tensors(data))


def ratios(steps: list[Step], bare: list[Step]) -> dict[str, float]:
    """Of steps to those without recorder of the same turns."""
    pairs = list(zip(steps, bare, strict=True))
    kept = sorted(pairs, key=lambda pair: pair[0].cpu_seconds / pair[1].cpu_seconds)[1:-1] or pairs
    cpu = [sum(step.cpu_seconds for step in side) for side in zip(*kept, strict=True)]
    best = [min(step.seconds for step in side) for side in (steps, bare)]
    return {"ratio": round(statistics.median(a.seconds / b.seconds for a, b in pairs), 3),
            "cpu_ratio": round(cpu[0] / cpu[1], 3), "best_ratio": round(best[0] / best[1], 3)}


def steps(directory: Path, count: int) -> None:
    training = Training()
    for case in ("closed", "L0", "L1", "mix"):
        (directory / case).mkdir()
        options = {"level": "mix", "step": [10**6]} if case == "closed" else {"level": case}
        debugger = new_debugger(directory / case, **options)
        training.step()  # warms up, as the next one does
        training.step(debugger)
        reading = recorded_bytes(directory / case)
        kinds: dict[str, dict[str, Any]] = {
            "bare": {}, "recorded": {"debugger": debugger}, "reading": {"reading": reading}}
        turns: dict[str, list[Step]] = {kind: [] for kind in kinds}
        for turn in range(count):
            for kind in [*kinds, *kinds][turn % 3:turn % 3 + 3]:
                turns[kind].append(training.step(**kinds[kind]))
            losses = {steps[-1].loss for steps in turns.values()}
            assert len(losses) == 1, f"{case}: the loss has changed"
        middle = statistics.median(step.seconds for step in turns["bare"])
        floor = ratios(turns["reading"], turns["bare"]).items() if reading else ()
        print(json.dumps({
            "case": case, "step_ms": round(middle * 1e3, 1),
            **ratios(turns["recorded"], turns["bare"]), "mib": round(reading / 2**20),
            **{f"reading_{name}": ratio for name, ratio in floor}}), flush=True)


def calls(directory: Path) -> None:
    (directory / "calls").mkdir()
    holder = type("holder", (), {"same": staticmethod(lambda x: x)})
    debugger = new_debugger(directory / "calls", level="L1")
    debugger.register_custom_api(holder, "same", "Custom")
    x = Tensor(np.ones((4, 4), np.float32))
    debugger.start()
    times, cpu_times = [], []
    for _ in range(5):
        began, cpu_began = time.perf_counter(), time.thread_time()
        for _ in range(CALLS):
            holder.same(x)
        times.append((time.perf_counter() - began) / CALLS * 1e6)
        cpu_times.append((time.thread_time() - cpu_began) / CALLS * 1e6)
    debugger.stop()
    print(json.dumps({"case": "call", "us": round(statistics.median(times), 2),
                      "cpu_us": round(statistics.median(cpu_times), 2)}), flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        calls(Path(folder))  # constructs the debugger before the first operator, as scripts should
        steps(Path(folder), int(sys.argv[1]) if len(sys.argv) > 1 else 20)
