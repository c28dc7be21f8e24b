"""Dumps of ATB in the form that its recorder writes; two runs, of which one has a fault.

    python atb_dumps.py OUT

writes tests/data/atb: what release 26.2.0 says of them (needs torch and mindstudio-probe 26.2.0).
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

HEADER = ("Device and PID,Execution Count,Op Name,Op Type,Op Id,Input/Output,Tensor Index,"
          "Data Type,Format,Shape,Max,Min,Mean,Norm,Tensor Path")
CODES = {"float": 0, "float16": 1, "int8": 2, "int32": 3, "int64": 9, "bool": 12, "bf16": 27}
DTYPES = {"float": "f4", "float16": "f2", "int8": "i1", "int32": "i4", "int64": "i8", "bool": "?"}
# Operator, id, direction, index, type, shape. Results follow from what goes in.
TENSORS = [
    ("Decoder/Norm", "0_0", "input", 0, "float", (2, 3)),
    ("Decoder/Norm", "0_0", "output", 0, "float", (2, 3)),
    ("Decoder/Linear", "0_1", "input", 0, "float", (2, 3)),
    ("Decoder/Linear", "0_1", "input", 1, "bf16", (2, 3)),
    ("Decoder/Linear", "0_1", "output", 0, "float16", (2, 3)),
    ("Decoder/Mask", "0_2", "input", 0, "bool", (4,)),
    ("Decoder/Mask", "0_2", "output", 0, "int64", (4,)),
    ("Decoder/Scale", "0_3", "output", 0, "int32", (3,)),
    ("Decoder/Scale", "0_3", "output", 1, "int8", ()),
    ("Decoder/Empty", "0_4", "output", 0, "float", (0,)),
]
WRONG = ("Decoder/Linear", "output")  # and what follows from it
CULPRIT = "0_Decoder/1_Linear"


def bfloat16(values: np.ndarray) -> np.ndarray:
    """The upper halves of float32, cut."""
    return (values.astype("f4").view("u4") >> 16).astype("u2")


def bin_file(kind: str, values: np.ndarray) -> bytes:
    """One tensor file."""
    data = bfloat16(values) if kind == "bf16" else values.astype(DTYPES[kind])
    lines = [("$Version", "1.0"), ("$Object.Count", 1), ("$Object.Length", data.nbytes),
             ("format", 2), ("dtype", CODES[kind]), ("dims", ",".join(map(str, values.shape))),
             ("$Object.data", f"0,{data.nbytes}"), ("$End", 1)]
    return "".join(f"{name}={value}\n" for name, value in lines).encode() + data.tobytes()


def write(root: pathlib.Path, faulty: bool, tensors: bool) -> pathlib.Path:
    """Writes one dump into `root`."""
    random = np.random.default_rng(7)
    root.mkdir(parents=True)
    lines = [HEADER]
    broken = False
    for name, ids, io, index, kind, shape in TENSORS:
        values = random.standard_normal(shape) * (50 if "int" in kind else 1)
        broken = broken or (faulty and (name, io) == WRONG)
        if broken and name != "Decoder/Mask":
            values = values * 1.5
        if kind == "bool":
            values = values > 0
        exact = values.astype(DTYPES.get(kind, "f4")).astype("f8")
        stats = ["N/A"] * 4
        path = "N/A"
        if exact.size and shape and not tensors:
            stats = [f"{number:g}" for number in
                     (exact.max(), exact.min(), exact.mean(), np.sqrt((exact * exact).sum()))]
        if tensors:
            place = pathlib.Path("0_77", name.replace("/", "_"), f"{io}_{index}.bin")
            path = f"/somewhere/atb_dump_data/data/0/0_77/{place.relative_to('0_77')}"
            (root / place.relative_to("0_77")).parent.mkdir(exist_ok=True)
            (root / place.relative_to("0_77")).write_bytes(bin_file(kind, values))
        text = '"' + ",".join(map(str, shape)) + '"'
        lines.append(",".join(["0_77", "0", name, name.split("/")[-1], ids, io, str(index), kind,
                               "nd", text, *stats, path]))
    (root / "statistic.csv").write_text("\n".join(lines) + "\n")
    return root


def main() -> None:
    """Compares both kinds with the real program."""
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    msprobe = pathlib.Path(sys.executable).parent / "msprobe"
    for kind in ("stats", "tensor"):
        with tempfile.TemporaryDirectory() as work:
            target = write(pathlib.Path(work, "target"), True, kind == "tensor")
            golden = write(pathlib.Path(work, "golden"), False, kind == "tensor")
            subprocess.run([msprobe, "compare", "-m", "atb", "-tp", target, "-gp", golden, "-o",
                            f"{work}/out"], check=True, timeout=300)
            [found] = pathlib.Path(work, "out").glob(f"atb_{kind}_*.xlsx")
            shutil.copy(found, out / f"upstream_{kind}.xlsx")


if __name__ == "__main__":
    main()
