"""Writes tests/data/page_data.txt: the data of a page over two steps of two ranks, for the tests of
web/.

    .venv/bin/python tests/data/make_page_data.py

tests/python/test_ranks_page.py tells when it is to be written again.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "tests" / "data" / "page_data.txt"
sys.path.insert(0, str(ROOT / "tests" / "python"))
from rank_dumps import Entry, all_reduce, backward, fine, forward, tensor, write_step  # noqa: E402


def entries(own: float, total: float) -> list[Entry]:
    """One rank: a call of its own before a sum over ranks, and calls after it."""
    return [fine(0), forward("Torch.exp.0.forward", [tensor(0.5, 0.25)], [tensor(own, 0.5)]),
            all_reduce(0, own, total),
            forward("Torch.relu.0.forward", [tensor(total, 1)], [tensor(total, 2)]),
            backward("Torch.exp.0.backward", [tensor(total, 1)], [tensor(total, 3)])]


def data_lines(folder: Path, plumb: str) -> str:
    """Records in the new `folder`, compares, and returns the text of the page's data. Rank 1 is
    wrong in step 1, where it has one call more."""
    for step in (0, 1):
        right = {"rank0": entries(3, 9 + step), "rank1": entries(4, 9 + step)}
        write_step(folder / "golden" / f"step{step}", right)
        if step == 1:
            right = {"rank0": entries(3, 15), "rank1": [
                *entries(9, 15), forward("Torch.abs.0.forward", [tensor(1, 1)], [tensor(1, 1)])]}
        write_step(folder / "target" / f"step{step}", right)
    subprocess.run([plumb, "view", "target", "golden", "--html", "page.html"], cwd=folder,
                   check=True, stdout=subprocess.DEVNULL)
    text = (folder / "page.html").read_text("utf-8")
    found = re.search(r'id="data">\n(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return found.group(1)


if __name__ == "__main__":
    scratch = Path(tempfile.mkdtemp())
    FILE.write_text(data_lines(scratch, str(Path(sys.executable).with_name("plumb"))))
    shutil.rmtree(scratch)
