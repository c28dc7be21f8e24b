"""Writes tests/data/static_graph: two static-graph dumps and upstream's comparison of them.

    python make_graph_dumps.py OUT

needs mindspore 2.10.0 (CPU) and mindstudio-probe 1.2.2. One training step of a small network is
recorded twice; in target.zip the factor behind the activation is 1.5 instead of 1.1.
upstream_npy.xlsx and upstream_statistic.xlsx are what `msprobe -f mindspore compare` writes for
the two dumps, and for the same dumps as statistic.csv (tests/python/graph_dumps.py: MindSpore
refuses to write those on CPUs).
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "python"))


def train() -> None:
    import mindspore as ms
    import numpy as np
    from mindspore import Tensor, nn, ops

    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_seed(1)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Dense(8, 16)
            self.fc2 = nn.Dense(16, 4)
            self.relu = nn.ReLU()
            self.factor = Tensor(float(os.environ["FACTOR"]), ms.float32)

        def construct(self, x):
            return self.fc2(ops.mul(self.relu(self.fc1(x)), self.factor))

    net = Net()
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()),
                               nn.SGD(net.trainable_params(), 0.1))
    step.set_train()
    random = np.random.default_rng(0)
    step(Tensor(random.standard_normal((5, 8)).astype("f4")),
         Tensor(random.standard_normal((5, 4)).astype("f4")))


def record(root: pathlib.Path, factor: float) -> None:
    config = root.with_suffix(".json")
    config.write_text(json.dumps({
        "common_dump_settings": {
            "op_debug_mode": 0, "dump_mode": 0, "path": str(root), "net_name": "Net",
            "iteration": "0", "saved_data": "tensor", "input_output": 0, "kernels": [],
            "support_device": [0]},
        "e2e_dump_settings": {"enable": True, "trans_flag": True}}))
    subprocess.run([sys.executable, __file__, "train"], check=True, timeout=300, cwd=root.parent,
                   env=dict(os.environ, MINDSPORE_DUMP_CONFIG=str(config), FACTOR=str(factor)))


def compare_upstream(target: pathlib.Path, golden: pathlib.Path, out: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory() as work:
        request = pathlib.Path(work, "compare.json")
        request.write_text(json.dumps({"npu_path": str(target), "bench_path": str(golden),
                                       "rank_id": [0], "step_id": [0]}))
        request.chmod(0o640)
        msprobe = pathlib.Path(sys.executable).parent / "msprobe"
        subprocess.run([msprobe, "-f", "mindspore", "compare", "-i", request, "-o", work],
                       check=True, timeout=300)
        [found] = pathlib.Path(work).glob("compare_result_0_0_*.xlsx")
        out.write_bytes(found.read_bytes())


def main() -> None:
    from graph_dumps import write_statistics

    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        roots = {name: pathlib.Path(work, name) for name in ("golden", "target")}
        for (name, root), factor in zip(roots.items(), (1.1, 1.5), strict=True):
            record(root, factor)
            with zipfile.ZipFile(out / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                for path in sorted(root.rglob("*")):
                    if path.suffix in (".npy", ".csv"):
                        archive.write(path, path.relative_to(root))
        compare_upstream(roots["target"], roots["golden"], out / "upstream_npy.xlsx")
        tables = {name: write_statistics(root, pathlib.Path(work, f"{name}_table"))
                  for name, root in roots.items()}
        compare_upstream(tables["target"], tables["golden"], out / "upstream_statistic.xlsx")


if __name__ == "__main__":
    train() if sys.argv[1] == "train" else main()
