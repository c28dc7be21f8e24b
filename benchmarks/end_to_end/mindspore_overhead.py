"""What recording costs a MindSpore step on a CPU, against the same step without recorder.

    build/mindspore/bin/python benchmarks/end_to_end/mindspore_overhead.py [STEPS]

One JSON line for each of: the closed window, levels L0, L1 and mix at statistics, and the
recorder's own time for one recorded call that runs no kernel, so that nothing has to be waited
for. `ratio` is the median of the ratios of neighbouring steps by the clock; `cpu_ratio` that of
the processors' seconds, which other programs on the machine disturb less, and `best_ratio` that
of the shortest steps. Results are checked: the loss must be the same bits.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "mindspore"))

from ms_recording import new_debugger

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


def timed_step(net: Net, gradients_of: Any, x: Tensor,
               debugger: Any) -> tuple[float, float, bytes]:
    """Seconds by the clock and by the processors, and the loss."""
    began, cpu_began = time.perf_counter(), time.process_time()
    if debugger:
        debugger.start(net)
    loss, gradients = gradients_of(x)
    for gradient in gradients:
        gradient.data_ptr()  # waits for it
    if debugger:
        debugger.stop()
        debugger.step()
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    return seconds, cpu_seconds, loss.asnumpy().tobytes()


def steps(directory: Path, count: int) -> None:
    net = Net()
    x = Tensor(np.random.default_rng(0).standard_normal((WIDTH, WIDTH)).astype(np.float32))
    gradients_of = ms.value_and_grad(net, None, net.trainable_params())
    for case in ("closed", "L0", "L1", "mix"):
        (directory / case).mkdir()
        options = {"level": "mix", "step": [10**6]} if case == "closed" else {"level": case}
        debugger = new_debugger(directory / case, **options)
        pairs = []
        for turn in range(count + 1):
            without = timed_step(net, gradients_of, x, None)
            recorded = timed_step(net, gradients_of, x, debugger)
            assert recorded[2] == without[2], f"{case}: the loss has changed"
            if turn > 0:  # the first one warms up
                pairs.append((recorded, without))
        best = [min(step[0] for step in steps) for steps in zip(*pairs, strict=True)]
        middle = statistics.median
        print(json.dumps({
            "case": case, "step_ms": round(middle(bare[0] for _, bare in pairs) * 1e3, 1),
            "ratio": round(middle(one[0] / bare[0] for one, bare in pairs), 3),
            "cpu_ratio": round(middle(one[1] / bare[1] for one, bare in pairs), 3),
            "best_ratio": round(best[0] / best[1], 3)}), flush=True)


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
