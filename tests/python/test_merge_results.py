"""`plumb merge` and `plumb msprobe merge_result`: chosen calls of all ranks side by side. Against
the real upstream: tests/compat/test_ranks_upstream.py.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import openpyxl
import pytest
from rank_dumps import Entry, forward, tensor, write_step
from recording import PLUMB

SUMMARY = ["NPU Name", "Bench Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape",
           "Bench Tensor Shape", "Max diff", "Min diff", "Mean diff", "L2norm diff",
           "MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr", "NPU max",
           "NPU min", "NPU mean", "NPU l2norm", "Bench max", "Bench min", "Bench mean",
           "Bench l2norm", "Result", "Err_message"]
STAMP = "20260131120000"


def plumb(*words: object) -> subprocess.CompletedProcess[str]:
    """Runs the program."""
    return subprocess.run([PLUMB, *map(str, words)], text=True, capture_output=True, check=False,
                          timeout=60)


def write_config(directory: Path, text: str = "api:\n- Distributed.all_reduce\n") -> Path:
    """The YAML file of a merge."""
    path = directory / "merge.yaml"
    path.write_text(text)
    return path


def table(rows: list[tuple[str, object, object, object]]) -> list[list[object]]:
    """A statistics table: name, Max diff, NPU max and Bench max of each row."""
    lines: list[list[object]] = [list(SUMMARY)]
    for name, difference, maximum, golden in rows:
        line: list[object] = [name, name] + ["x"] * 4 + [difference] * 8 + [maximum] * 4
        lines.append(line + [golden] * 4 + ["", ""])
    return lines


def write_xlsx(path: Path, lines: list[list[object]]) -> None:
    """A workbook with one sheet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    book = openpyxl.Workbook()
    for line in lines:
        book.active.append(line)
    book.save(path)


def write_shared(path: Path, lines: list[list[object]], shift: int = 0) -> None:
    """A workbook as Excel saves it: texts in a table of their own, rich texts, blank cells left
    out. `shift` is added to the index of every text.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    texts: dict[str, int] = {}
    rows = ""
    for number, line in enumerate(lines, 1):
        cells = ""
        for column, value in enumerate(line):
            reference = f"{chr(65 + column)}{number}"
            if isinstance(value, str) and value:
                index = texts.setdefault(value, len(texts)) + shift
                cells += f'<c r="{reference}" s="1" t="s"><v>{index}</v></c>'
            elif value != "":
                cells += f'<c r="{reference}"><v>{value}</v></c>'
        rows += f'<row r="{number}">{cells}</row>'
    items = "".join(f'<si><r><rPr/><t xml:space="preserve">{escape(text[:3])}</t></r><r><t>'
                    f'{escape(text[3:])}</t></r><rPh sb="0"><t>no</t></rPh></si>'
                    for text in texts)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", f"<sst>{items}</sst>")
        archive.writestr("xl/worksheets/sheet1.xml",
                         f"<worksheet><cols><col/></cols><sheetData>{rows}</sheetData></worksheet>")


def make_results(directory: Path, ranks: int = 3) -> Path:
    """Workbooks as upstream names them; rank 2 has a call more."""
    for rank in range(ranks):
        rows: list[tuple[str, object, object, object]] = [
            ("Torch.add.0.forward.output.0", 0.5, 1.0, 1.5),
            ("Distributed.all_reduce.0.forward.input.0", rank / 4, 1.25, 1.0),
            ("Distributed.all_reduce.0.forward.input.group", "N/A", "[0, 1]", "[0, 1]"),
            ("Distributed.all_reduce.0.forward.output.0", "Nan", 3, 1e-05),
        ]
        if rank == 2:
            rows.append(("Distributed.all_reduce.1.forward.output.0", 7, 1, 2))
        write_xlsx(directory / f"compare_result_rank{rank}-rank{rank}_{STAMP}.xlsx", table(rows))
    return directory


def sheets(directory: Path) -> dict[str, list[list[Any]]]:
    """The only merged workbook."""
    [path] = directory.glob("multi_ranks_compare_merge_*.xlsx")
    return {sheet.title: [list(row) for row in sheet.iter_rows(values_only=True)]
            for sheet in openpyxl.load_workbook(path)}


def test_ranks_stand_side_by_side(tmp_path):
    source = make_results(tmp_path / "in")
    done = plumb("merge", source, "-o", tmp_path / "out", "--config", write_config(
        tmp_path, "api: [Distributed.all_reduce]\ncompare_index:\n- L2norm diff\n- Max diff\n"))
    assert done.returncode == 0, done.stderr
    merged = sheets(tmp_path / "out")
    assert list(merged) == ["L2norm diff", "Max diff"]
    assert merged["Max diff"] == [
        ["NPU Name", "rank0", "rank1", "rank2"],
        ["Distributed.all_reduce.0.forward.input.0", 0, 0.25, 0.5],
        ["Distributed.all_reduce.0.forward.input.group"] + ["NPU:[0, 1]  Bench:[0, 1]"] * 3,
        ["Distributed.all_reduce.0.forward.output.0"] + ["NPU:3  Bench:1e-05"] * 3,
        ["Distributed.all_reduce.1.forward.output.0", None, None, 7]]


def test_default_metrics_and_upstream_spelling(tmp_path):
    source = make_results(tmp_path / "in")
    config = write_config(tmp_path, "api:\n- Distributed\ncompare_index:\n")
    done = plumb("msprobe", "-f", "pytorch", "merge_result", "-i", source, "-o", tmp_path / "out",
                 "-config", config)
    assert done.returncode == 0, done.stderr
    assert list(sheets(tmp_path / "out")) == SUMMARY[6:14]


@pytest.mark.parametrize(("api", "rows"), [
    ("Distributed", 4), ("Distributed.all_reduce", 4), ("Distributed.all_reduce.1", 1),
    ("Distributed.all_reduce.1.forward", 1), ("Distributed.all_reduce.1.backward", 0),
    ("all_reduce", 0), ("Distributed.all", 0)])
def test_names_are_anchored(tmp_path, api, rows):
    source = make_results(tmp_path / "in")
    done = plumb("merge", source, "-o", tmp_path / "out", "--config",
                 write_config(tmp_path, f"api: [{api}]\ncompare_index: [Max diff]\n"))
    if rows == 0:
        assert done.returncode == 2 and "nothing to merge" in done.stderr
        assert not (tmp_path / "out").exists()
    else:
        assert len(sheets(tmp_path / "out")["Max diff"]) == rows + 1


def test_second_run_into_the_same_directory(tmp_path):
    source = make_results(tmp_path / "in")
    for count in (1, 2):
        done = plumb("merge", source, "-o", source, "--config", write_config(tmp_path))
        assert done.returncode == 0, done.stderr
        assert len(list(source.glob("multi_ranks*"))) == count


def test_unequal_ranks_are_labelled_by_the_target(tmp_path):
    source = make_results(tmp_path / "in")
    (source / f"compare_result_rank2-rank2_{STAMP}.xlsx").rename(
        source / f"compare_result_rank2-rank9_{STAMP}.xlsx")
    plumb("merge", source, "-o", tmp_path / "out", "--config", write_config(tmp_path))
    assert sheets(tmp_path / "out")["Max diff"][0] == ["NPU Name", "rank0", "rank1", "rank2"]


def test_older_results_of_a_rank_are_left_out(tmp_path):
    source = make_results(tmp_path / "in", ranks=2)
    late = table([("Distributed.all_reduce.0.forward.output.0", 42, 1, 1)])
    write_xlsx(source / "compare_result_rank1-rank1_20260201000000.xlsx", late)
    write_xlsx(source / "compare_result_rank1-rank1_20260201000000_1.xlsx",
               table([("Distributed.all_reduce.0.forward.output.0", 43, 1, 1)]))
    done = plumb("merge", source, "-o", tmp_path / "out", "--config", write_config(
        tmp_path, "api: [Distributed.all_reduce.0.forward]\n"))
    assert done.stdout.count("an older result of rank 1; left out") == 2
    rows = {row[0]: row[2] for row in sheets(tmp_path / "out")["Max diff"]}
    assert rows["Distributed.all_reduce.0.forward.output.0"] == 43


def test_tables_that_do_not_fit_are_left_out(tmp_path):
    source = make_results(tmp_path / "in")
    md5 = [["NPU Name", "Bench Name", "NPU MD5", "BENCH MD5", "Result"], ["a", "a", "1", "2", ""]]
    write_xlsx(source / f"compare_result_rank3-rank3_{STAMP}.xlsx", md5)
    write_xlsx(source / f"compare_result_rank4-rank4_{STAMP}.xlsx", [["a", "b"], [1, 2]])
    write_xlsx(source / f"compare_result_rank5-rank5_{STAMP}.xlsx", table([]))
    write_xlsx(source / f"compare_result_rank-rank_{STAMP}.xlsx", table([]))
    done = plumb("merge", source, "-o", tmp_path / "out", "--config", write_config(tmp_path))
    assert done.returncode == 1, done.stderr
    for text in ("rank3-rank3", "rank4-rank4", "rank5-rank5", "rank-rank"):
        assert sum(f"{text}_{STAMP}.xlsx: " in line and line.startswith("warning: ")
                   and line.endswith("left out") for line in done.stdout.splitlines()) == 1
    assert sheets(tmp_path / "out")["Max diff"][0] == ["NPU Name", "rank0", "rank1", "rank2"]


def with_prefix(path: Path) -> None:
    """Writes the workbook as .NET libraries do: every element of a table with a prefix."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name).decode() for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            if "worksheets/" in name or "sharedStrings" in name:
                text = re.sub(r"<(/?)([a-zA-Z])", r"<\1x:\2", text).replace("xmlns=", "xmlns:x=")
            archive.writestr(name, text)


def test_every_namespace_prefix_is_read(tmp_path):
    """A rank whose workbook has prefixes is not left out, nor read as a table without rows."""
    expected = make_results(tmp_path / "plain")
    source = make_results(tmp_path / "in")
    with_prefix(source / f"compare_result_rank1-rank1_{STAMP}.xlsx")
    [sheet] = [name for name in zipfile.ZipFile(
        source / f"compare_result_rank1-rank1_{STAMP}.xlsx").namelist() if "worksheets/" in name]
    with zipfile.ZipFile(source / f"compare_result_rank1-rank1_{STAMP}.xlsx") as archive:
        assert b"<x:row" in archive.read(sheet)
    for directory in (expected, source):
        done = plumb("merge", directory, "-o", tmp_path / f"{directory.name}-out", "--config",
                     write_config(tmp_path))
        assert done.returncode == 0 and "warning" not in done.stdout, done
    assert sheets(tmp_path / "in-out") == sheets(tmp_path / "plain-out")


def test_texts_of_a_workbook_that_excel_saved(tmp_path):
    source = make_results(tmp_path / "in", ranks=1)
    name = "Distributed.all_reduce.0.forward.input.<a & \u00e9>"
    write_shared(source / f"compare_result_rank1-rank1_{STAMP}.xlsx",
                 table([(name, "N/A", "x<&>", 2.5)]))
    done = plumb("merge", source, "-o", tmp_path / "out", "--config", write_config(tmp_path))
    assert done.returncode == 0, done.stderr
    assert sheets(tmp_path / "out")["Max diff"][-1] == [name, None, "NPU:x<&>  Bench:2.5"]


# ---- what `plumb compare` writes


def entries(rank: int, fault: float = 1.0) -> list[Entry]:
    """A collective call."""
    return [forward("Distributed.all_reduce.0.forward", [tensor(1.0 + rank)],
                    [tensor(3.0 * fault)])]


@pytest.mark.parametrize("kind", ["xlsx", "csv", "xlsx,csv,json"])
def test_result_of_compare(tmp_path, kind):
    """The workbook and the CSV file say the same."""
    for name, fault in (("target", 1.5), ("golden", 1.0)):
        write_step(tmp_path / name, {f"rank{r}": entries(r, fault) for r in range(12)})
    done = plumb("compare", tmp_path / "target", tmp_path / "golden", "-o", tmp_path / "out",
                 "--format", kind)
    assert done.returncode == 0, done.stderr
    done = plumb("merge", tmp_path / "out", "-o", tmp_path / "merged", "--config",
                 write_config(tmp_path))
    assert done.returncode == 0, done.stderr
    merged = sheets(tmp_path / "merged")
    assert merged["Max diff"][0] == ["NPU Name"] + [f"rank{r}" for r in range(12)]
    assert merged["Max diff"][2] == ["Distributed.all_reduce.0.forward.output.0"] + [1.5] * 12
    assert merged["MaxRelativeErr"][2][1:] == ["50.0%"] * 12


@pytest.mark.parametrize("has_step", [False, True])
def test_tables_of_an_earlier_comparison_are_said(tmp_path, has_step):
    """Rank 1 has vanished and rank 2 is damaged when they are compared again."""
    below = "step0" if has_step else "."
    for name in ("target", "golden"):
        write_step(tmp_path / name / below, {f"rank{r}": entries(r) for r in range(4)})
    words = ["compare", tmp_path / "target", tmp_path / "golden", "-o", tmp_path / "out"]
    assert plumb(*words).returncode == 0
    results = tmp_path / "out" / below
    merge = ["merge", results, "-o", tmp_path / "merged", "--config", write_config(tmp_path)]
    assert "warning" not in plumb(*merge).stdout
    shutil.rmtree(tmp_path / "target" / below / "rank1")
    (tmp_path / "target" / below / "rank2" / "dump.json").write_text("{")
    assert plumb(*words).returncode != 0
    done = plumb(*merge)
    assert done.returncode == 0 and "merged: 4 ranks" in done.stdout, done
    warnings = [line for line in done.stdout.splitlines() if "earlier comparison" in line]
    assert len(warnings) == 2 and all(line.startswith("warning: ") for line in warnings)
    assert "in the newest one rank 1 is missing" in warnings[0]
    assert "in the newest one rank 2 is failed" in warnings[1]
    assert f"{results}/compare_result_rank1" in warnings[0]
    # Without its old table the missing rank is not in the workbook, and the status says so.
    for table_of_rank_1 in results.glob("compare_result_rank1-*"):
        table_of_rank_1.unlink()
    done = plumb(*merge)
    assert done.returncode == 1 and "merged: 3 ranks" in done.stdout, done
    assert "warning: rank 1: missing in the newest comparison (" in done.stdout
    # A summary that cannot be read tells nothing, and that is said.
    [newest] = sorted((tmp_path / "out").glob("compare_ranks_*.json"))[-1:]
    newest.write_text("{")
    assert f"warning: {newest}: cannot be read" in plumb(*merge).stdout


# ---- errors: one line, nothing written


BAD_CONFIGS = {
    "empty": ("", "is empty"), "comment": ("# nothing\n", "is empty"),
    "list": ("- a\n", "holds no keys"), "text": ("hello\n", "holds no keys"),
    "no_api": ("compare_index: [Max diff]\n", "key api is missing"),
    "null_api": ("api:\n", "key api is missing or empty"),
    "empty_api": ("api: []\n", "key api is an empty list"),
    "text_api": ("api: Distributed.all_reduce\n", "api is not a list"),
    "map_in_api": ("api: [{a: b}]\n", "an entry is not a text"),
    "text_index": ("api: [a]\ncompare_index: Max diff\n", "compare_index is not a list"),
    "not_yaml": ("api: [a\n", "not YAML"),
}


@pytest.mark.parametrize("name", BAD_CONFIGS)
def test_bad_configuration(tmp_path, name):
    text, message = BAD_CONFIGS[name]
    source = make_results(tmp_path / "in", ranks=2)
    done = plumb("merge", source, "-o", tmp_path / "out", "--config", write_config(tmp_path, text))
    assert done.returncode == (5 if name == "not_yaml" else 2), done
    assert message in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def refused(tmp_path: Path, source: Path, status: int, message: str) -> None:
    """A merge that fails with one line and writes nothing."""
    done = plumb("merge", source, "-o", tmp_path / "out", "--config", write_config(tmp_path))
    assert done.returncode == status, done
    assert message in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_bad_directories(tmp_path):
    refused(tmp_path, tmp_path / "nowhere", 3, "nowhere")
    (tmp_path / "empty").mkdir()
    refused(tmp_path, tmp_path / "empty", 2, "results of 0 ranks")
    refused(tmp_path, make_results(tmp_path / "one", ranks=1), 2, "results of 1 ranks")
    foreign = make_results(tmp_path / "foreign")
    shutil.copy(foreign / f"compare_result_rank0-rank0_{STAMP}.xlsx", foreign / "notes.xlsx")
    refused(tmp_path, foreign, 2, "notes.xlsx: not the result of a rank")


@pytest.mark.parametrize("damage", ["cut", "text", "empty", "no_sheet", "cut_xml", "wrong_shared"])
def test_damaged_workbook(tmp_path, damage):
    source = make_results(tmp_path / "in")
    path = source / f"compare_result_rank1-rank1_{STAMP}.xlsx"
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[:len(content) // 2])
    elif damage == "wrong_shared":
        write_shared(path, table([]), shift=1)
    elif damage in ("text", "empty"):
        path.write_text("hello" if damage == "text" else "")
    else:
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        sheet = members.pop("xl/worksheets/sheet1.xml")
        if damage == "cut_xml":
            members["xl/worksheets/sheet1.xml"] = sheet[:len(sheet) // 2]
        elif damage == "wrong_shared":
            members["xl/worksheets/sheet1.xml"] = sheet.replace(b"<v>1</v>", b"<v>99999</v>")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in members.items():
                archive.writestr(name, text)
    refused(tmp_path, source, 5, path.name)


def test_no_sheet_of_that_metric(tmp_path):
    source = make_results(tmp_path / "in")
    done = plumb("merge", source, "-o", tmp_path / "out", "--config",
                 write_config(tmp_path, "api: [Distributed]\ncompare_index: [Cosine]\n"))
    assert done.returncode == 2
    assert "nothing to merge" in done.stderr and "has no metric Cosine" in done.stderr
