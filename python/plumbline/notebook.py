"""Results as notebooks show them."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping

_MARKS = {"first wrong call": "#c5283d", "no wrong call": "#1f8a5b"}  # by how the answer begins
_OTHER = "#6d5bd0"


def page(summary: str, counts: Mapping[str, int], lines: Iterable[Iterable[str]] = ()) -> str:
    """The lines of a summary, what was counted, and a table; nothing in them is markup."""
    answer, _, rest = summary.rstrip("\n").partition("\n")
    mark = next((color for word, color in _MARKS.items() if answer.startswith(word)), _OTHER)
    heading = f'<div style="font-weight:600;font-size:1.15em">{html.escape(answer)}</div>'
    told = f'<pre style="white-space:pre-wrap;margin:6px 0">{html.escape(rest)}</pre>'
    shown = {name: count for name, count in counts.items() if count}
    tables = _table([shown, map(str, shown.values())]) + _table(lines)
    return (f'<div style="border-left:5px solid {mark};padding:4px 14px">{heading}'
            f"{told if rest else ''}{tables}</div>")


def _table(lines: Iterable[Iterable[str]]) -> str:
    """The first line is the head."""
    rows = [[html.escape(cell) for cell in line] for line in lines]
    if not rows or not rows[0]:
        return ""
    cell = 'style="text-align:left;padding:2px 14px 2px 0"'
    head = "".join(f"<th {cell}>{name}</th>" for name in rows[0])
    body = "".join("<tr>" + "".join(f"<td {cell}>{text}</td>" for text in row) + "</tr>"
                   for row in rows[1:])
    return f"<table><tr>{head}</tr>{body}</table>"
