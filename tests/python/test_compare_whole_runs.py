"""`plumbline.compare()` by what the two paths hold: one rank, whole runs, or something else."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import atb_dumps
import pytest
from rank_dumps import forward, tensor, write_step
from recording import PLUMB

import plumbline

EVIL = "<img src=x onerror=alert(1)>"


def make_run(directory: Path, fault: float = 1.0, name: str = "exp") -> Path:
    """Two steps of two ranks; rank 1 is wrong in step 1."""
    for step in range(2):
        write_step(directory / f"step{step}", {f"rank{rank}": [
            forward(f"Torch.{name}.0.forward", [tensor(1.0)],
                    [tensor(2.0 * (fault if (step, rank) == (1, 1) else 1.0))])]
            for rank in range(2)})
    return directory


def test_whole_runs_are_compared_over_all_steps_and_ranks(tmp_path: Path) -> None:
    sides = make_run(tmp_path / "target", 1.5), make_run(tmp_path / "golden")
    before = sorted(tmp_path.rglob("*"))
    result = plumbline.compare(*sides)
    assert isinstance(result, plumbline.RanksResult)
    assert sorted(tmp_path.rglob("*")) == before and result.files == []
    done = subprocess.run([PLUMB, "compare", *sides, "-o", tmp_path / "out", "--json"], text=True,
                          capture_output=True, check=True, timeout=60)
    facts = json.loads(done.stdout)
    assert result.answer == facts["answer"] == (
        "first wrong call: step 1 rank 1 Torch.exp.0.forward")
    assert result.details == result.first_wrong_call == facts["first_wrong_call"]
    assert result.counts == facts["counts"]
    assert [rank["files"] for rank in result.ranks] == [[]] * 4
    assert result.exit_code == 1 and not result.ok
    assert repr(result) == f"<RanksResult: {result.answer} (4 ranks and steps)>"
    # A step directory holds several ranks as well; a directory of one rank does not.
    step = plumbline.compare(sides[0] / "step0", sides[1] / "step0")
    assert isinstance(step, plumbline.RanksResult) and step.ok
    one = plumbline.compare(sides[0] / "step1" / "rank1", sides[1] / "step1" / "rank1")
    assert isinstance(one, plumbline.ComparisonResult)
    assert one.first_wrong_call == "Torch.exp.0.forward"


def test_files_of_every_rank_are_written_where_asked(tmp_path: Path) -> None:
    sides = make_run(tmp_path / "target", 1.5), make_run(tmp_path / "golden")
    result = plumbline.compare(*sides, tmp_path / "out", formats="csv", fail_on="unmatched",
                               noise=sides[1], threads=2)
    assert result.ok
    names = sorted(re.sub(r"_\d{14}", "", str(path.relative_to(tmp_path / "out")))
                   for path in (tmp_path / "out").rglob("*.csv"))
    assert names == [f"step{step}/compare_result_rank{rank}-rank{rank}.csv"
                     for step in range(2) for rank in range(2)]


@pytest.mark.parametrize("words", [{"suffix": "_mine"}, {"stack_path": "stack.json"}])
def test_what_is_for_one_rank_is_refused(tmp_path: Path, words: dict[str, str]) -> None:
    sides = make_run(tmp_path / "target"), make_run(tmp_path / "golden")
    with pytest.raises(ValueError, match=f"^{next(iter(words))}: is for one rank, and "):
        plumbline.compare(*sides, **words)


def test_other_dumps_are_refused_with_what_to_use(tmp_path: Path) -> None:
    sides = [atb_dumps.write(tmp_path / side, False, False) for side in ("target", "golden")]
    with pytest.raises(ValueError, match=r": holds dumps of ATB \(expected recordings, "
                                         r"arrays or checkpoints\).*`plumb compare`"):
        plumbline.compare(*sides)
    run = make_run(tmp_path / "run")
    with pytest.raises(ValueError, match=r"several ranks or steps.*compare_ranks\(..., backend"):
        plumbline.compare_training(run, run, backend="fsdp")


def test_notebooks_show_the_answer(tmp_path: Path) -> None:
    """As text: no name of a recording becomes markup."""
    good = make_run(tmp_path / "golden", name=EVIL)
    wrong = make_run(tmp_path / "target", 1.5, name=EVIL)
    whole = plumbline.compare(wrong, good)._repr_html_()
    one = plumbline.compare(wrong / "step1/rank1", good / "step1/rank1")._repr_html_()
    for page in (whole, one):
        assert "<img" not in page and "&lt;img src=x" in page
        assert page.startswith("<div") and page.endswith("</div>")
        assert "first wrong call: " in page and "<th" in page
    assert whole.count("<tr>") == 2 + 1 + 4  # counts, then a line for every rank and step
