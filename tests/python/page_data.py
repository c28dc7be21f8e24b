"""The data inside a report page, read without plumbline (src/report/html_report.h: their form)."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

STATISTICS = 12  # place in a row of those of the target; golden's stand behind them


def lines_of(page: str | Path) -> Iterator[tuple[str, Any]]:
    """(kind, JSON) of every line."""
    text = page.read_text("utf-8") if isinstance(page, Path) else page
    found = re.search(r'<script type="application/octet-stream" id="data">\n(.*?)</script>', text,
                      re.DOTALL)
    assert found is not None
    for line in found.group(1).splitlines():
        kind, letters = line.split(" ")
        yield kind, json.loads(zlib.decompress(base64.b64decode(letters, validate=True), -15))


def read(page: str | Path) -> dict[str, Any]:
    """The first line, and in its member "parts" a dictionary of the lines of each part by kind;
    "rows" has the rows of all blocks, in recorded order, with words for numbers of texts."""
    lines = lines_of(page)
    kind, data = next(lines)
    assert kind == "page" and data["format"] == "plumbline page" and data["version"] == 2
    count, data["parts"] = data["parts"], []
    for kind, content in lines:
        if kind == "part":
            data["parts"].append({"rows": []})
        part = data["parts"][-1]
        if kind == "rows":
            part["rows"] += [in_words(row, content["texts"]) for row in content["rows"]]
        else:
            assert kind not in part
            part[kind] = content
    assert len(data["parts"]) == count
    for part in data["parts"]:
        part["rows"].sort(key=lambda row: row[0])  # stable: a call's rows stand together
    return data


def in_words(row: list[Any], texts: list[str]) -> list[Any]:
    """A row with texts in place of their numbers, and whole numbers of single precision."""
    texts = [*texts, ""]  # -1 is no text
    row = [*row[:4], texts[row[4]], *row[5:7], *(texts[at] for at in row[7:12]), *row[12:]]
    for at in (STATISTICS, STATISTICS + 1):
        if isinstance(row[at], list) and row[at][:1] == ["f"]:
            row[at] = [float(np.float32(value)) for value in row[at][1:]]
    if row[STATISTICS + 1] == 1:
        row[STATISTICS + 1] = row[STATISTICS]
    notes = row[15] if len(row) > 15 else []
    return [*row[:15], [(texts[code], texts[text]) for code, text in notes]]


def node_names(part: dict[str, Any], side: str) -> list[str]:
    """Of the nodes of a side; golden ones may have their counterpart's."""
    tree = part["tree"]
    partners = tree[side]["partners"]
    return [name or tree["target"]["names"][partners[i]]
            for i, name in enumerate(tree[side]["names"])]


def call_names(part: dict[str, Any]) -> list[tuple[str, str]]:
    """(target, golden) of every call that the page holds; empty: not there."""
    names = {side: [*node_names(part, side), ""] for side in ("target", "golden")}
    return [(names["target"][target], names["golden"][golden])
            for target, golden in zip(part["calls"]["target"], part["calls"]["golden"],
                                      strict=True)]
