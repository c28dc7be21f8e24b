"""The report page: its data against the machine form, and that it needs nothing but itself."""

from __future__ import annotations

import json
import math
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import torch
from browser import drawn, measured, needs_browser
from compare_cases import Dump

import plumbline

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "golden"))
import make_dumps  # noqa: E402

PAIRS = [
    ("sound", "sound"),
    ("wrong_scale", "sound"),
    ("other_shape", "sound"),
    ("missing_call", "extra_call"),
    ("odd_target", "odd_golden"),
    ("wrong_scale_md5", "sound_md5"),
    ("wrong_scale_tensor", "sound_tensor"),
    ("broken_files", "sound_tensor"),
]
ROLES = ["input", "parameter", "output", "parameter_grad"]
VERDICTS = ["same", "within noise", "suspicious", "broken", "not comparable"]
TENSOR_METRICS = ["cosine", "max_abs_error", "max_relative_error", "below_thousandth_ratio",
                  "below_five_thousandths_ratio", "relative_l2", "max_ulp", "mismatch_count",
                  "element_count"]
STATISTIC_METRICS = [f"{name}_{kind}" for kind in ("diff", "percent")
                     for name in ("max", "min", "mean", "norm")]


class Page(HTMLParser):
    """Collects scripts, and every attribute that could fetch something."""

    def __init__(self) -> None:
        super().__init__()
        self.fetches: list[tuple[str, str, str | None]] = []
        self.scripts: dict[str, str] = {}
        self._script: str | None = None
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetches += [(tag, key, value) for key, value in attrs
                         if key in ("src", "href", "action", "data", "poster", "srcset")]
        self._script = dict(attrs).get("id") or "code" if tag == "script" else None

    def handle_data(self, data: str) -> None:
        if self._script:
            self.scripts[self._script] = self.scripts.get(self._script, "") + data
        else:
            self.text += data

    def handle_endtag(self, tag: str) -> None:
        self._script = None


def report(target: str, golden: str, tmp_path: Path) -> tuple[Page, str, dict[str, Any]]:
    """The parsed page, its text, and the machine form of the same comparison."""
    for name in (target, golden):
        if not (tmp_path / name).exists():
            getattr(make_dumps, name)(str(tmp_path / name))
    result = plumbline.compare(tmp_path / target, tmp_path / golden, tmp_path / "out",
                               formats="html,json")
    files = {Path(file).suffix: Path(file) for file in result.files}
    text = files[".html"].read_text(encoding="ascii")
    page = Page()
    page.feed(text)
    return page, text, json.loads(files[".json"].read_text())


def metric_names(mode: str) -> list[str]:
    return {"tensor": TENSOR_METRICS, "statistics": STATISTIC_METRICS, "md5": []}[mode]


def without_nan(value: Any) -> Any:
    """The page has null where the machine form says "nan": such an error is none."""
    return None if value == "nan" else value


@pytest.mark.parametrize(("target", "golden"), PAIRS)
def test_page_holds_the_facts_of_the_machine_form(target: str, golden: str, tmp_path: Path) -> None:
    page, _, machine = report(target, golden, tmp_path)
    data = json.loads(page.scripts["data"])
    [part] = data["parts"]
    texts = [*part["texts"], ""]  # -1 is no text
    header = {key: value for key, value in machine.items() if key != "rows"}
    assert part["header"] == header
    assert part["row_total"] == len(part["rows"]) == len(machine["rows"])
    for row, truth in zip(part["rows"], machine["rows"], strict=True):
        target_name, golden_name = part["calls"][row[0]][:2]
        call = target_name or golden_name
        assert call == truth["call"]
        side = truth["target"] or truth["golden"]
        assert (call + row[1] if row[1].startswith(".") else row[1]) == side["name"]
        assert ROLES[row[2]] == truth["role"]
        assert VERDICTS[row[3]] == truth["verdict"]
        assert texts[row[4]] == truth["reason"]
        assert row[5] == without_nan(truth["error"])
        assert row[6] == without_nan(truth["explained_error"])
        assert texts[row[11]] == truth["result"]
        for at, name in enumerate(("target", "golden")):
            own = truth[name] or {}
            assert texts[row[7 + at]] == own.get("dtype", "")
            assert texts[row[9 + at]] == own.get("shape", "")
            stored = row[12] if at == 1 and row[13] == 1 else row[12 + at]
            statistics = [own[key] for key in ("max", "min", "mean", "norm")] if own else 0
            if own and not own.get("dtype", "").startswith("torch."):
                statistics = statistics[:1]  # an argument has a value
            assert stored == statistics
        source = truth.get("metrics", truth)
        for at, name in enumerate(metric_names(machine["mode"])):
            assert row[14][at] == source[name], name
        if machine["mode"] == "md5":
            assert row[14] == [truth["target"]["md5"], truth["golden"]["md5"]]
        notes = row[15] if len(row) > 15 else []
        assert [(texts[a], texts[b]) for a, b in notes] == [
            (note["code"], note["text"]) for note in truth["notes"]]


@pytest.mark.parametrize(("target", "golden"), PAIRS[:2])
def test_page_fetches_nothing(target: str, golden: str, tmp_path: Path) -> None:
    page, text, _ = report(target, golden, tmp_path)
    assert page.fetches == []
    # The name of the SVG namespace is no address that a browser opens.
    assert re.findall(r"(?:https?:)?//(?!www\.w3\.org/2000/svg)[a-z0-9-]+\.[a-z]+/", text) == []
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|import\(", text)
    assert "default-src 'none'" in text


def test_plots_show_the_elements_of_the_tensor_files(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    page, _, machine = report("wrong_scale_tensor", "sound_tensor", tmp_path)
    [part] = json.loads(page.scripts["data"])["parts"]
    evidence = part["evidence"]
    assert evidence["item"] == machine["first_wrong_call"]["item"]
    row = next(row for row in machine["rows"]
               if (row["target"] or {}).get("name") == evidence["item"])
    sides = [torch.load(tmp_path / name / "dump_tensor_data" / row[side]["data_name"]).flatten()
             for name, side in (("wrong_scale_tensor", "target"), ("sound_tensor", "golden"))]
    assert evidence["count"] == sides[0].numel()
    assert evidence["pairs"]
    for index, target, golden in evidence["pairs"]:
        assert (target, golden) == (sides[0][index].item(), sides[1][index].item())
    difference = (sides[0].double() - sides[1].double()).abs()
    worst_index, target, golden = evidence["worst"][0]
    assert difference[worst_index] == difference.max()
    histogram = evidence["histogram"]
    assert histogram["total"] == sides[0].numel()
    assert histogram["equal"] == int((difference == 0).sum())
    assert sum(histogram["counts"]) + histogram["equal"] == histogram["total"]
    relative = (difference / sides[1].double().abs())[difference > 0]
    buckets = [0] * len(histogram["counts"])
    for value in relative.tolist():
        at = math.floor((math.log10(value) - histogram["low"]) / histogram["step"])
        buckets[min(max(at, 0), len(buckets) - 1)] += 1
    assert histogram["counts"] == buckets
    assert max(evidence["profile"]) == difference.max()


def test_text_of_a_recording_is_never_markup(tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)><!--"
    make_dumps.sound(str(tmp_path / "evil"))
    make_dumps.sound(str(tmp_path / "good"))
    for side in ("evil", "good"):
        path = tmp_path / side / "dump.json"
        data = json.loads(path.read_text())
        first = next(iter(data["data"]))
        data["data"] = {(evil + key if key == first else key): value
                        for key, value in data["data"].items()}
        path.write_text(json.dumps(data))
    result = plumbline.compare(tmp_path / "evil", tmp_path / "good", tmp_path / "out",
                               formats="html")
    text = Path(result.files[0]).read_text(encoding="ascii")
    page = Page()
    page.feed(text)
    assert page.fetches == []
    assert text.count("</script>") == 2
    [part] = json.loads(page.scripts["data"])["parts"]
    assert any(call[0].startswith(evil) for call in part["calls"])


@needs_browser
@pytest.mark.parametrize(("target", "golden"), PAIRS)
def test_page_draws_without_an_error(target: str, golden: str, tmp_path: Path) -> None:
    _, _, machine = report(target, golden, tmp_path)
    [file] = (tmp_path / "out").glob("*.html")
    document = drawn(file, tmp_path)
    answer = machine["first_wrong_call"]
    shown = re.search(r'<section id="answer".*?</section>', document, re.S)
    assert shown is not None
    if answer:
        assert answer["name"] in shown.group()
    assert f"of {len(machine['rows'])} rows shown" in document
    assert document.count('class="line') >= min(20, len(machine["rows"]))


@needs_browser
def test_culprit_of_one_side_shows_what_it_has(tmp_path: Path) -> None:
    """The target computes one call more, and its result differs where the next call takes it."""
    x = torch.arange(1.0, 7.0)
    for side in ("target", "golden"):
        dump = Dump()
        dump.forward("Torch.tanh.0.forward", [x / 9], [(x / 9).tanh()])
        value = (x / 9).tanh()
        if side == "target":
            dump.forward("Torch.exp.0.forward", [value], [value.exp()])
            value = value.exp()
        dump.forward("Torch.square.0.forward", [value], [value.square()])
        dump.write(tmp_path / side)
    result = plumbline.compare(tmp_path / "target", tmp_path / "golden", tmp_path / "out",
                               formats="html")
    assert result.first_wrong_call == "Torch.exp.0.forward"
    document = drawn(result.files[0], tmp_path)
    evidence = re.search(r'<section id="evidence".*?</section>', document, re.S)
    assert evidence is not None
    for said in ("What the target takes and returns here", "golden has no such call",
                 "Where its result is taken", "Torch.square.0.forward.input.0", "output.0"):
        assert said in evidence.group(), said
    assert "2.7181" not in evidence.group()  # numbers of the call, not of another
    assert f"{(x / 9).tanh().exp().max().item():.4f}"[:5] in evidence.group()


def test_words_tell_equal_from_missing(tmp_path: Path) -> None:
    """Two kinds of rows that cannot be compared: zero on both sides, and without counterpart."""
    x = torch.arange(1.0, 7.0)
    for side in ("target", "golden"):
        dump = Dump()
        dump.forward("Torch.relu.0.forward", [x], [torch.zeros(6)])
        if side == "target":
            dump.forward("Torch.exp.0.forward", [x], [x.exp()])
        dump.write(tmp_path / side)
    result = plumbline.compare(tmp_path / "target", tmp_path / "golden", tmp_path / "out",
                               formats="html")
    [line] = [line for line in result.summary.splitlines() if line.startswith("not comparable:")]
    assert "zero-both 1 (equal: " in line and "no-golden 2 (no counterpart: " in line
    page = Page()
    page.feed(Path(result.files[0]).read_text())
    reasons = json.loads(page.scripts["data"])["parts"][0]["reasons"]
    assert reasons["zero-both"].startswith("equal") and "counterpart" in reasons["no-golden"]


@needs_browser
def test_a_call_of_another_form_shows_each_side(tmp_path: Path) -> None:
    """The side that has no such value shows nothing, least of all zeros."""
    for side, size in (("target", 3), ("golden", 2)):
        dump = Dump()
        x = torch.arange(4.0 * size).reshape(size, 4) + 1
        dump.forward("Torch.exp.0.forward", [x], [x.exp()])
        dump.write(tmp_path / side)
    result = plumbline.compare(tmp_path / "target", tmp_path / "golden", tmp_path / "out",
                               formats="html")
    text = " ".join(re.sub(r"<[^>]+>", " ", re.sub(r"<(script|style).*?</\1>", "", drawn(
        result.files[0], tmp_path), flags=re.DOTALL)).split())
    takes, stack = text.split("What the target takes and returns here")[1].split(
        "What golden takes and returns here")
    assert "input.0 input [3, 4] torch.float32 12 1 6.5" in takes
    assert "input.0 input [2, 4] torch.float32 8 1 4.5" in stack
    detail = text.split("This call has no counterpart")[1]
    assert "max 12 min 1 mean 6.5 norm" in detail, detail
    assert "Where its result is taken" not in text
    said = text.split("Likely cause: structure")[1].split("Evidence")[0]
    assert said.count("target [3, 4], golden [2, 4]") == 1, said


def test_a_text_of_megabytes_is_cut(tmp_path: Path) -> None:
    """A prompt given as an argument; the cut is between characters."""
    prompt = "a" + "\u00e9" * 500_000
    for side in ("target", "golden"):
        dump = Dump()
        dump.forward("Torch.exp.0.forward", [torch.ones(2), prompt], [torch.ones(2)])
        dump.write(tmp_path / side)
    result = plumbline.compare(tmp_path / "target", tmp_path / "golden", tmp_path / "out",
                               formats="html")
    page = Page()
    page.feed(Path(result.files[0]).read_text(encoding="ascii"))
    assert Path(result.files[0]).stat().st_size < 200_000
    [part] = json.loads(page.scripts["data"])["parts"]
    shown = part["rows"][1][12][0]
    assert shown == prompt[:1000] + "... (1000001 bytes)"


@needs_browser
@pytest.mark.parametrize("kind", ["input", "nonfinite"])
def test_statistics_of_what_the_answer_names_are_shown(kind: str, tmp_path: Path) -> None:
    """An input that differs already, and a result whose error is no number."""
    x = torch.arange(1.0, 7.0)
    for side in ("target", "golden"):
        factor = 1.25 if side == "target" and kind == "input" else 1
        infinite = torch.tensor(math.inf if side == "target" and kind != "input" else 9.0)
        dump = Dump()
        y = torch.cat([x * factor, infinite[None]])
        dump.forward("Torch.mul.0.forward", [x * factor, x], [y])
        dump.write(tmp_path / side)
    result = plumbline.compare(tmp_path / "target", tmp_path / "golden", tmp_path / "out",
                               formats="html")
    document = drawn(result.files[0], tmp_path)
    text = " ".join(re.sub(r"<[^>]+>", " ", re.sub(r"<(script|style).*?</\1>", "", document,
                                                   flags=re.DOTALL)).split())
    went, shown = text.split("What went in and what came out")[1].split(
        "Statistics of what is wrong and of the outputs")
    shown = shown.split("Only statistics were recorded")[0]
    if kind == "input":
        assert "input.0 max 7.5 6 1.5 25 %" in shown, shown
        assert "no recorded call produced already differs" not in text
    else:
        assert "output.0 [7] torch.float32 broken not finite" in went, went
        assert "output.0 max inf 9 inf" in shown and "nan %" not in shown, shown


LONG = ("Module.model.layers.2.post_attention_layernorm.input_projection.attention."
        "LlamaRotaryEmbeddingWithAVeryLongName.forward.0")
FRAMES = ["File /v/site-packages/torch/nn/functional.py, line 2, in gelu, \n return f(x)",
          "File /v/site-packages/torch/nn/modules/module.py, line 9, in _call_impl, \n return g()",
          "File /home/user/model.py, line 21, in forward, \n x = self.act(x)",
          "File /v/site-packages/torch/nn/modules/module.py, line 9, in _call_impl, \n return g()",
          "File /home/user/train.py, line 3, in <module>, \n model(x)"]


def long_names(tmp_path: Path) -> str:
    """A page over twelve calls of long names, the first of which takes words."""
    x = torch.arange(1.0, 7.0)
    for side in ("target", "golden"):
        dump = Dump()
        y = x * (1.25 if side == "target" else 1)
        dump.forward(LONG, [x, "tanh", 0.5], [y])
        for i in range(12):
            dump.forward(LONG.replace("forward.0", f"forward.{i + 1}"), [y], [y])
        dump.write(tmp_path / side)
        (tmp_path / side / "stack.json").write_text(json.dumps({LONG: FRAMES}))
    [file] = plumbline.compare(tmp_path / "target", tmp_path / "golden", tmp_path / "out",
                               formats="html").files
    return file


LAYOUT = """(() => {
  const all = (places) => [...document.querySelectorAll(places)];
  const block = (node) => getComputedStyle(node).display !== "inline";
  const isCut = (node) => block(node) && (node.scrollWidth > node.clientWidth + 1
    || node.scrollHeight > node.clientHeight + 1);
  return {
    main: document.querySelector("#growth .cards").clientWidth,
    growth: all("#growth .card").map((card) => card.offsetWidth),
    plot: document.querySelector("#growth svg").getBoundingClientRect().width,
    evidence: all("#evidence .card").map((card) => [card.offsetTop, card.offsetHeight]),
    cut: all("#growth code, .line .name").filter(isCut).map((node) => node.textContent),
    names: all("#growth td:first-child").map((cell) => cell.innerText)};
})()"""
DETAILS = """(() => {
  const tables = [1, 2].map((at) => {
    pick(part.rows[at]);
    return document.querySelector("#detail table").innerText;
  });
  const stack = document.querySelector("#evidence .frames"), list = stack.querySelector("ol");
  return {tables, first: list.children[0].innerText, own: stack.querySelectorAll("li.own").length,
    inside: stack.querySelector("summary").innerText, shown: list.children.length};
})()"""


@needs_browser
@pytest.mark.parametrize("width", [1280, 1920])
def test_nothing_is_cut_or_left_empty(width: int, tmp_path: Path) -> None:
    boxes = measured(long_names(tmp_path), tmp_path, width, LAYOUT)
    # The plot and the table below it take the whole width.
    assert boxes["growth"] == [boxes["main"]] * 2
    assert boxes["plot"] > boxes["main"] - 40
    assert boxes["cut"] == []
    assert LONG in boxes["names"]
    # Cards beside each other end at the same height.
    assert boxes["evidence"][0] == boxes["evidence"][1]


@needs_browser
def test_words_are_one_value_and_a_stack_begins_at_the_users_code(tmp_path: Path) -> None:
    shown = measured(long_names(tmp_path), tmp_path, 1280, DETAILS)
    for table, value in zip(shown["tables"], ("tanh", "0.5"), strict=True):
        assert table.split() == ["target", "golden", "value", value, value]
    assert shown["first"].startswith("File /home/user/model.py, line 21")
    assert (shown["own"], shown["shown"]) == (1, 3)
    assert shown["inside"] == "2 frames inside it, innermost first"
