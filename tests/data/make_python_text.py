"""Writes tests/data/python_text: numbers and strings as Python itself spells them.

The files are the truth for base/number_text and base/json. Run with any CPython 3; the seed is
fixed, so the output is always the same.
"""

import json
import math
import pathlib
import random
import struct
import zlib

OUT = pathlib.Path(__file__).parent / "python_text"
SEED = 20260103


def bits(value: float) -> str:
    return struct.pack(">d", value).hex()


def doubles(rng: random.Random) -> list[float]:
    values = [0.0, -0.0, 1e-5, 0.0001, 1e15, 1e16, 9999999999999998.0, 123456789012345680.0]
    values += [5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 9007199254740993.0, 1e23]
    values += [math.nan, math.inf, -math.inf, 0.1, 1 / 3, 2.5, 100.0, 123456789012345.6, 1e-7]
    values += [10.0**e for e in range(-30, 31)] + [2.0**e for e in range(-1074, 1024, 7)]
    values += [struct.unpack("<d", rng.randbytes(8))[0] for _ in range(1500)]
    values += [struct.unpack("<f", rng.randbytes(4))[0] for _ in range(700)]
    values += [struct.unpack("<e", rng.randbytes(2))[0] for _ in range(300)]
    values += [round(rng.uniform(-1000, 1000), rng.randrange(7)) for _ in range(300)]
    return values


def million_floats() -> list[int]:
    """CRC-32 of json.dumps, one a line, of 10 times 100,000 doubles of random bits (splitmix64)."""
    mask, state, crcs = 2**64 - 1, SEED, []
    for _ in range(10):
        crc = 0
        for _ in range(100_000):
            state = (state + 0x9E3779B97F4A7C15) & mask
            z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
            value = struct.unpack("<d", struct.pack("<Q", z ^ (z >> 31)))[0]
            crc = zlib.crc32((json.dumps(value) + "\n").encode(), crc)
        crcs.append(crc)
    return crcs


def strings(rng: random.Random) -> list[str]:
    texts = [chr(c) for c in range(0x300)] + ["", "\U0001f600", "\U00010000\U0010ffff"]
    texts += ["\ud800", "\udfff", "\ude00\ud83d", "a\ud83dz", "\uffff\u2028"]
    alphabet = [chr(c) for c in range(0x20, 0x7F)]
    alphabet += ["\n", "\\", '"', "\u00e9", "\u4e2d", "\U0001f40d"]
    texts += ["".join(rng.choices(alphabet, k=rng.randrange(40))) for _ in range(200)]
    return texts


def main() -> None:
    rng = random.Random(SEED)
    OUT.mkdir(exist_ok=True)
    lines = [f"{bits(v)} {v!r} {json.dumps(v)}\n" for v in doubles(rng)]
    (OUT / "floats.txt").write_text("".join(lines))
    (OUT / "million_floats.txt").write_text("".join(f"{crc:08x}\n" for crc in million_floats()))
    lines = [f"{t.encode('utf-8', 'surrogatepass').hex()} {json.dumps(t)}\n" for t in strings(rng)]
    (OUT / "strings.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
