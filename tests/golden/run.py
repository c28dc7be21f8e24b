"""Runs the golden cases: a command line, and every file, line and status it must produce.

    run.py [--plumb PROGRAM] [--update] [CASE ...]

A case is a folder below tests/golden/<area>/ with a case.json:

    make       names of dump builders in make_dumps.py, run before the command: {"target": "sound"}
    files      other inputs: {"name": "text"}
    command    words after `plumb`; {dir} is the case's working folder
    exit       expected exit status
    stdout     file with the expected text ({dir} and time stamps are normalised)
    stderr     list of texts, each of which must occur; an empty list demands silence
    produced   {"name in {dir}": "file with its expected text"}
    table      file with the expected workbook as CSV, read back with openpyxl (value|fill)

--update rewrites the expected files; review the difference like code.
"""

import argparse
import csv
import difflib
import glob
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import make_dumps

HERE = os.path.dirname(os.path.abspath(__file__))


def normalised(text, folder):
    text = text.replace(folder, "{dir}").replace(folder.replace("/", "%2F"), "{dir}")
    return re.sub(r"_\d{14}(_\d+)?\.", "_<time>.", text)


def workbook_text(folder):
    """Cells and fills of the one workbook below folder, as CSV."""
    import openpyxl

    (path,) = glob.glob(os.path.join(folder, "**", "compare_result_*.xlsx"), recursive=True)
    if os.stat(path).st_mode & 0o777 != 0o640:
        raise AssertionError(f"{path}: mode {os.stat(path).st_mode & 0o777:o}, expected 640")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in openpyxl.load_workbook(path).active.iter_rows():
        fills = {cell.fill.fgColor.rgb[2:] if cell.fill.fill_type else "" for cell in row}
        writer.writerow(["+".join(sorted(fills))] + [kind(cell) for cell in row])
    return out.getvalue()


def kind(cell):
    if cell.data_type == "f":
        raise AssertionError(f"{cell.coordinate}: a text became a formula")
    if cell.value is None:
        return ""
    return repr(cell.value) if isinstance(cell.value, (int, float)) else f"'{cell.value}"


def check_json(folder):
    """The machine form must be strict JSON and agree with the CSV in its number of rows."""
    def refuse(token):
        raise AssertionError(f"{token} is not JSON")

    for path in glob.glob(os.path.join(folder, "**", "compare_result_*.json"), recursive=True):
        with open(path, encoding="ascii") as file:
            rows = json.load(file, parse_constant=refuse)["rows"]
        with open(path[:-5] + ".csv", encoding="utf-8", newline="") as file:
            lines = list(csv.reader(file))
        if len(lines) != len(rows) + 1:
            raise AssertionError(f"{path}: {len(rows)} rows, CSV has {len(lines) - 1}")


def expect(case, key, actual, update, problems):
    path = os.path.join(case, key)
    if update:
        with open(path, "w", encoding="utf-8") as file:
            file.write(actual)
        return
    with open(path, encoding="utf-8", newline="") as file:
        wanted = file.read()
    if wanted != actual:
        problems.append(f"{key} differs:\n" + "\n".join(difflib.unified_diff(
            wanted.splitlines(), actual.splitlines(), "expected", "got", lineterm="", n=0)))


def run_case(case, plumb, update):
    with open(os.path.join(case, "case.json"), encoding="utf-8") as file:
        spec = json.load(file)
    folder = tempfile.mkdtemp(prefix="plumb_golden_")
    problems = []
    try:
        for name, builder in spec.get("make", {}).items():
            getattr(make_dumps, builder)(os.path.join(folder, name))
        for name, text in spec.get("files", {}).items():
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text.replace("{dir}", folder))
        before = set(os.listdir(folder))
        command = [plumb] + [word.replace("{dir}", folder) for word in spec["command"]]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
        if done.returncode != spec["exit"]:
            problems.append(f"exit {done.returncode}, expected {spec['exit']}: {done.stderr}")
        for text in spec.get("stderr", []):
            if text.replace("{dir}", folder) not in done.stderr:
                problems.append(f"stderr lacks {text!r}: {done.stderr}")
        if done.stderr.count("\n") > 1 and spec["exit"] != 0:
            problems.append(f"more than one line on stderr: {done.stderr}")
        if not spec.get("stderr") and done.stderr:
            problems.append(f"unexpected stderr: {done.stderr}")
        if spec["exit"] not in (0, 1) and set(os.listdir(folder)) - before - {"out"}:
            problems.append(f"left behind: {set(os.listdir(folder)) - before}")
        if glob.glob(os.path.join(folder, "**", "executed"), recursive=True):
            problems.append("code in a pickle was executed")
        if spec.get("stdout"):
            expect(case, spec["stdout"], normalised(done.stdout, folder), update, problems)
        for name, expected in spec.get("produced", {}).items():
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                expect(case, expected, normalised(file.read(), folder), update, problems)
        if spec.get("table"):
            expect(case, spec["table"], normalised(workbook_text(folder), folder), update, problems)
            check_json(folder)
    finally:
        shutil.rmtree(folder)
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plumb", default=os.environ.get("PLUMB") or shutil.which("plumb"))
    parser.add_argument("--update", action="store_true")
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    if not arguments.plumb:
        parser.error("plumb is not on PATH: use --plumb")
    plumb = os.path.abspath(arguments.plumb)
    cases = arguments.cases or sorted(
        os.path.dirname(path) for path in glob.glob(os.path.join(HERE, "*", "*", "case.json")))
    failed = 0
    for case in cases:
        problems = run_case(case, plumb, arguments.update)
        failed += bool(problems)
        for problem in problems:
            print(f"{os.path.relpath(case, HERE)}: {problem}")
    print(f"{len(cases) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
