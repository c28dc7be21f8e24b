"""Writes tests/data/npy: arrays saved by NumPy, with the truth in expected.txt.

One line per file: name, dtype, shape ("-" for none), row-major little-endian bytes in hex ("-" for
none), whether plumbline's own header equals NumPy's ("same" or "other"); or name, "error", code.
"""

import pathlib

import numpy as np
from numpy.lib import format as npy_format

OUT = pathlib.Path(__file__).parent / "npy"
SEED = 20260103
LINES = []


def save(name, array, version=None, same=False):
    with open(OUT / name, "wb") as file:
        npy_format.write_array(file, array, version=version, allow_pickle=True)
    plain = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))
    shape = ",".join(map(str, array.shape)) or "-"
    data = plain.tobytes().hex() or "-"
    LINES.append(f"{name} {array.dtype.name} {shape} {data} {'same' if same else 'other'}")


def refuse(name, array):
    with open(OUT / name, "wb") as file:
        npy_format.write_array(file, array, allow_pickle=True)
    LINES.append(f"{name} error unsupported")


def main():
    rng = np.random.default_rng(SEED)
    OUT.mkdir(exist_ok=True)
    for code in "? u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8 c8 c16".split():
        array = rng.integers(0, 2 if code == "?" else 50, (2, 3)).astype(code)
        save(f"{array.dtype.name}.npy", array, same=True)
        if array.dtype.itemsize > 1:
            save(f"{array.dtype.name}_big.npy", array.astype(array.dtype.newbyteorder(">")))
    base = rng.standard_normal((2, 3, 4)).astype("f4")
    for shape in [(), (0,), (5,), (0, 4), (2, 1, 3), (1,) * 20]:
        name = "x".join(map(str, shape[:3])) or "scalar"
        save(f"shape_{name}_{len(shape)}.npy", np.resize(base, shape), same=True)
    save("fortran.npy", np.asfortranarray(base))
    save("fortran_big.npy", np.asfortranarray(base.astype(">f4")))
    save("version2.npy", base, version=(2, 0))
    save("version3.npy", base, version=(3, 0))
    refuse("object.npy", np.array([1, "a", None], dtype=object))
    refuse("text.npy", np.array(["a", "bc"]))
    refuse("bytes.npy", np.array([b"a"]))
    refuse("date.npy", np.array(["2020-01-01"], dtype="M8[D]"))
    refuse("records.npy", np.zeros(2, dtype=[("a", "f4"), ("b", "i4")]))
    refuse("raw.npy", np.zeros(2, dtype="V2"))
    (OUT / "expected.txt").write_text("\n".join(LINES) + "\n")


if __name__ == "__main__":
    main()
