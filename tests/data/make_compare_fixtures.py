"""Makes tests/data/compare_1.2.2: upstream's cells for the pairs of tests/python/compare_cases.py.

    PYTHON_OF_UPSTREAM -W ignore make_compare_fixtures.py [CASE ...]

Needs an environment with mindstudio-probe 1.2.2 and torch. Each file holds the cells of one
workbook with value, type and fill. Messages are kept as the stable codes of plumbline's that mean
the same, and of the advisor only the place: wording is nobody's format.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))

import openpyxl  # noqa: E402
from compare_cases import CASES, FUZZY  # noqa: E402

from msprobe.pytorch import compare  # noqa: E402

# A few words of each sentence, and the code that means it. One line of a cell may hold several.
CODES = [
    ("check this api|check the tensor|[Nn]eed double check", "check"), ("[Ff]uzzy", "fuzzy"),
    ("No bench data", "no-bench"), ("[Bb]ench.* no? ?data file", "no-file"),
    ("not found", "unreadable"), ("empty", "empty"), ("0-d tensor", "scalar"),
    ("tensor of length 1", "one-element"), ("[Ss]hape.*(mismatch|inconsistent)", "shape"),
    ("unreadable|Unreadable", "unreadable"), ("[Pp]osition of", "naninf"),
    ("[Dd]type", "dtype"), ("Zero in npu", "zero"), ("Zero in bench", "golden-zero"),
    ("MaxRelativeError, the data contains nan", "naninf"),
    ("Cosine Similarity, the dump data has NaN", "naninf"),
    ("maximum or minimum is nan", "red-naninf"), ("exceeds? 1e\\+10", "red-huge"),
    ("ratio exceeds 0.9, while", "red-thousandth"), ("error exceeds 0.5", "red-max-relative"),
    ("order of magnitude|increases? (by )?(more than )?1?0? ?order", "yellow-magnitude"),
    ("ratio decreases by", "yellow-thousandth"), ("cosine decreases by", "yellow-cosine"),
    ("error exceeds 0.1, while|is below 0.01", "yellow-max-relative"),
]


def codes_of(message: str) -> list[str]:
    """The codes of a cell, each once; what nobody knows stays visible."""
    found: list[str] = []
    for line in message.splitlines():
        codes = [code for pattern, code in CODES if re.search(pattern, line)]
        found += codes or (["unknown: " + line] if line.strip() else [])
    return list(dict.fromkeys(found))


def cells(path: Path) -> dict[str, Any]:
    """Header, rows and the fill of each row."""
    sheet = openpyxl.load_workbook(path).active
    rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
    fills = []
    for row in sheet.iter_rows(min_row=2):
        colours = {cell.fill.fgColor.rgb[2:] if cell.fill.fill_type else None for cell in row}
        assert len(colours) == 1, f"{path}: a row of several colours"
        fills += colours
    if "Err_message" in rows[0]:
        column = rows[0].index("Err_message")
        for row in rows[1:]:
            row[column] = codes_of(row[column] or "")
    return {"header": rows[0], "rows": rows[1:], "fills": fills}


def place(path: Path) -> dict[str, str]:
    """Line and name that the advisor gives."""
    text = path.read_text()
    line, node = re.search(r"Line: (.*)", text), re.search(r"Suspect Nodes: (.*)", text)
    assert line and node, text
    return {"line": line.group(1).strip(), "node": node.group(1).strip()}


def main() -> int:
    out = HERE / "compare_1.2.2"
    out.mkdir(exist_ok=True)
    for name in sys.argv[1:] or CASES:
        with tempfile.TemporaryDirectory() as folder:
            target, golden = (side.write(Path(folder, key)) for side, key in
                              zip(CASES[name](), ("target", "golden"), strict=True))
            compare({"npu_json_path": str(target), "bench_json_path": str(golden),
                     "stack_json_path": str(target.with_name("stack.json")),
                     "is_print_compare_log": False}, output_path=str(Path(folder, "out")),
                    stack_mode=True, auto_analyze=True, fuzzy_match=name in FUZZY)
            [workbook] = Path(folder, "out").glob("*.xlsx")
            [advisor] = Path(folder, "out").glob("advisor*.txt")
            content = {**cells(workbook), "advisor": place(advisor)}
        # One row a line, for review.
        lines = [json.dumps(row) for row in content.pop("rows")]
        text = json.dumps(content)[:-1] + ', "rows": [\n' + ",\n".join(lines) + "]}\n"
        (out / f"{name}.json").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
