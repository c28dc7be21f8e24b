"""The page of `plumb trend`, as a browser draws it."""

from __future__ import annotations

import html
import subprocess
from pathlib import Path

from browser import drawn, needs_browser
from recording import PLUMB


def write(root: Path) -> Path:
    """Two ranks, two kinds of files, one NaN, one alert."""
    for rank in range(2):
        folder = root / f"Dec03_21-34-4{rank}-rank{rank}-3f9c1a2b"
        folder.mkdir(parents=True)
        rows = ["vpp_stage,name,step,norm,max,nans"]
        for step in range(12):
            norm = "nan" if (rank, step) == (1, 9) else f"{step + rank + 1}.5"
            rows.append(f"0,fc.weight,{step},{norm},2,{int(norm == 'nan')}")
            rows.append(f"0,fc.bias,{step},0.5,-1,0")
        (folder / "grad_reduced_0-11.csv").write_text("\n".join(rows) + "\n")
    alerts = root / "anomaly_detected" / "rank0"
    alerts.mkdir(parents=True)
    (alerts / "anomaly.json").write_text(
        '{"a": {"tag_name": "0:fc.bias/rank0/post_grad", "step": 4, "message": "large"}}')
    return root


def test_the_answer_is_the_first_line(tmp_path: Path) -> None:
    done = subprocess.run([PLUMB, "trend", write(tmp_path / "in")], text=True, capture_output=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "first NaN or infinity: step 9, rank 1, grad_reduced fc.weight: 1 NaN",
        "  2 tensors, 12 steps (0 to 11), 2 ranks",
        "  largest jump: grad_reduced fc.weight at step 11, rank 0: 12.5 after 6.5 (1.92 times)",
        f"  written: {tmp_path}/in/trend.html"]


@needs_browser
def test_the_page_is_drawn(tmp_path: Path) -> None:
    page = tmp_path / "curves.html"
    subprocess.run([PLUMB, "trend", write(tmp_path / "in"), "-o", page], check=True,
                   capture_output=True)
    document = html.unescape(drawn(page, tmp_path))
    assert "NaN or Inf from step 9" in document and "1 alert from step 4" in document
    # The list has a small curve for each tensor, the chosen one is drawn large with its band.
    assert document.count('class="spark"') == 2
    assert document.count('class="band"') >= 2 and document.count('class="bad"') >= 2
    assert "2 of 2 tensors" in document


def test_without_a_monitor_there_is_no_page(tmp_path: Path) -> None:
    done = subprocess.run([PLUMB, "trend", tmp_path], text=True, capture_output=True, check=False)
    assert done.returncode == 3 and "no directory of a monitor" in done.stderr
    assert not (tmp_path / "trend.html").exists()
