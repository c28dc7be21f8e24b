"""Details files of a pre-check, as tests write and read them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path

DETAILS = ("API Name", "Bench Dtype", "DEVICE Dtype", "Shape", "余弦相似度", "最大绝对误差",
           "双百指标", "双千指标", "双万指标", "二进制一致错误率", "误差均衡性", "均方根误差",
           "小值域错误占比", "相对误差最大值", "相对误差平均值", "inf/nan错误率", "相对误差错误率",
           "绝对误差错误率", "ULP误差最大值", "ULP误差平均值", "ULP误差大于阈值占比", "Status",
           "Message")


def cell_text(value: object) -> str:
    return f"{value:.14f}" if isinstance(value, float) else str(value)


def write_details(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Cells that a row does not have are blank."""
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(DETAILS)
        for row in rows:
            writer.writerow([cell_text(row.get(name, " ")) for name in DETAILS])


def read_csv(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.reader(stream))
