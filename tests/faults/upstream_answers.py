"""What an upstream release says about the cases that evaluate.py recorded.

    python evaluate.py WORK --pairs PAIRS.json
    UPSTREAM_PYTHON upstream_answers.py PAIRS.json RELEASE ANSWERS.json

Run by the interpreter that holds the release ("1.2.2" or "26.2.0"). A release names the call of the
first row it finds fault with: "No" in column `Accuracy Reached or Not` (1.2.2, tensors), "Warning"
in `Result` (1.2.2, statistics), "error" or "warning" in `Result` (26.2.0). Answers are appended to
ANSWERS.json one by one, so that a run that was stopped goes on.
"""

from __future__ import annotations

import contextlib
import csv
import json
import shutil
import sys
from pathlib import Path
from typing import Any

COLUMNS = {"1.2.2": ("Accuracy Reached or Not", "Result"), "26.2.0": ("Result",)}
BAD = {"1.2.2": {"No", "Warning"}, "26.2.0": {"error", "warning"}}


def compare(release: str, target: Path, golden: Path, out: Path) -> None:
    """Runs the release's own comparison."""
    if release == "1.2.2":
        from msprobe.pytorch import compare as compare_dumps

        compare_dumps({"npu_json_path": f"{target}/dump.json",
                       "bench_json_path": f"{golden}/dump.json", "is_print_compare_log": False},
                      output_path=str(out), stack_mode=False, auto_analyze=False)
        return
    from msprobe.msprobe import main as command

    sys.argv = ["msprobe", "compare", "-tp", f"{target}/dump.json", "-gp", f"{golden}/dump.json",
                "-o", str(out)]
    command()


def rows_of(out: Path) -> list[dict[str, Any]]:
    """The rows of the one table that was written, in its order."""
    tables = [*out.rglob("*.xlsx"), *out.rglob("*.csv")]
    if not tables:
        return []
    if tables[0].suffix == ".csv":
        with tables[0].open(newline="", encoding="utf-8-sig") as stream:
            return list(csv.DictReader(stream))
    import openpyxl

    sheet = openpyxl.load_workbook(tables[0], read_only=True).worksheets[0]
    header, *rows = sheet.iter_rows(values_only=True)
    return [dict(zip(header, row, strict=False)) for row in rows]


def named(release: str, rows: list[dict[str, Any]]) -> str:
    """The call of the first bad row; empty if there is none."""
    for row in rows:
        if any(str(row.get(column)).strip() in BAD[release] for column in COLUMNS[release]):
            item = next((str(row[key]) for key in ("NPU Name", "Bench Name", "Target Name", "Name")
                         if row.get(key) not in (None, "N/A")), "")
            for part in (".input", ".output", ".parameters", ".kwargs"):
                item = item.split(part)[0]
            return item
    return ""


def main() -> int:
    pairs, release, answers_path = json.loads(Path(sys.argv[1]).read_text()), *sys.argv[2:4]
    answers = json.loads(Path(answers_path).read_text()) if Path(answers_path).exists() else []
    done = {(answer["case"], answer["task"]) for answer in answers}
    for pair in pairs:
        if (pair["case"], pair["task"]) in done:
            continue
        out = Path(answers_path).parent / f"tables-{release}"
        shutil.rmtree(out, ignore_errors=True)
        failure = ""
        try:
            with contextlib.suppress(SystemExit):
                compare(release, Path(pair["target"]), Path(pair["golden"]), out)
        except Exception as error:  # its failure is its answer
            failure = f"{type(error).__name__}: {error}"[:200]
        answers.append({"case": pair["case"], "task": pair["task"], "failure": failure,
                        "named": named(release, rows_of(out)) if out.exists() else ""})
        Path(answers_path).write_text(json.dumps(answers, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
