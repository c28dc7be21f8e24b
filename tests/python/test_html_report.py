"""The report page: its data against the machine form, and that it needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import page_data
import pytest
import torch
from browser import drawn, measured, needs_browser, needs_page, text_of
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
ROLES = ["input", "parameter", "output", "buffer", "parameter_grad"]
VERDICTS = ["same", "within noise", "suspicious", "broken", "not comparable"]
TENSOR_METRICS = ["cosine", "max_abs_error", "max_relative_error", "below_thousandth_ratio",
                  "below_five_thousandths_ratio", "relative_l2", "max_ulp", "mismatch_count",
                  "element_count"]
STATISTIC_METRICS = [f"{name}_{kind}" for kind in ("diff", "percent")
                     for name in ("max", "min", "mean", "norm")]


class Page(HTMLParser):
    """Collects scripts, styles, and every attribute that could fetch something."""

    def __init__(self) -> None:
        super().__init__()
        self.fetches: list[tuple[str, str, str | None]] = []
        self.inline: dict[str, str] = {}
        self.policy = ""
        self.text = ""
        self._inside: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetches += [(tag, key, value) for key, value in attrs
                         if key in ("src", "href", "action", "data", "poster", "srcset")]
        given = dict(attrs)
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given.get("content") or ""
        self._inside = (given.get("id") or tag) if tag in ("script", "style") else None

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.inline[self._inside] = self.inline.get(self._inside, "") + data
        else:
            self.text += data

    def handle_endtag(self, tag: str) -> None:
        self._inside = None


def report(target: str, golden: str, tmp_path: Path) -> tuple[Page, str, dict[str, Any]]:
    """The parsed page, its text, and the machine form of the same comparison."""
    for name in (target, golden):
        if not (tmp_path / name).exists():
            getattr(make_dumps, name)(str(tmp_path / name))
    result = plumbline.compare(tmp_path / target, tmp_path / golden, tmp_path / "out",
                               formats="html,json")
    files = {Path(file).suffix: Path(file) for file in result.files}
    text = files[".html"].read_text("utf-8")
    page = Page()
    page.feed(text)
    return page, text, json.loads(files[".json"].read_text())


def page_of(tmp_path: Path) -> Path:
    """The page of the recordings `target` and `golden`."""
    [file] = plumbline.compare(tmp_path / "target", tmp_path / "golden", tmp_path / "out",
                               formats="html").files
    return Path(file)


def metric_names(mode: str) -> list[str]:
    return {"tensor": TENSOR_METRICS, "statistics": STATISTIC_METRICS, "md5": []}[mode]


def rounded(value: Any) -> Any:
    """As the page has errors and metrics: eight digits; it has null where an error is "nan"."""
    if value == "nan":
        return None
    return pytest.approx(value, rel=1e-7) if isinstance(value, float) else value


def check_row(row: list[Any], calls: list[tuple[str, str]], truth: dict[str, Any]) -> None:
    """A row of the page against that of the machine form."""
    call = calls[row[0]][0] or calls[row[0]][1]
    assert call == truth["call"]
    side = truth["target"] or truth["golden"]
    assert (call + row[1] if row[1].startswith(".") else row[1]) == side["name"]
    assert (ROLES[row[2]], VERDICTS[row[3]]) == (truth["role"], truth["verdict"])
    assert (row[4], row[11]) == (truth["reason"], truth["result"])
    assert row[5] == rounded(truth["error"])
    assert row[6] == rounded(truth["explained_error"])
    for at, name in enumerate(("target", "golden")):
        own = truth[name] or {}
        assert (row[7 + at], row[9 + at]) == (own.get("dtype", ""), own.get("shape", ""))
        statistics: Any = [own[key] for key in ("max", "min", "mean", "norm")] if own else 0
        if own and not own.get("dtype", "").startswith("torch."):
            statistics = statistics[:1]  # an argument has a value
        assert row[12 + at] == statistics
    assert row[15] == [(note["code"], note["text"]) for note in truth["notes"]]


@pytest.mark.parametrize(("target", "golden"), PAIRS)
def test_page_holds_the_facts_of_the_machine_form(target: str, golden: str, tmp_path: Path) -> None:
    _, text, machine = report(target, golden, tmp_path)
    [part] = page_data.read(text)["parts"]
    header = {key: value for key, value in machine.items() if key != "rows"}
    assert part["part"]["header"] == header
    assert part["end"]["row_total"] == part["end"]["rows"] == len(machine["rows"])
    calls = page_data.call_names(part)
    for row, truth in zip(part["rows"], machine["rows"], strict=True):
        check_row(row, calls, truth)
        source = truth.get("metrics", truth)
        for at, name in enumerate(metric_names(machine["mode"])):
            value = source[name]
            assert row[14][at] == (rounded(value) if isinstance(value, float) else value), name
        if machine["mode"] == "md5":
            assert row[14] == [truth["target"]["md5"], truth["golden"]["md5"]]


@pytest.mark.parametrize(("target", "golden"), PAIRS)
def test_tree_is_that_of_construct_json(target: str, golden: str, tmp_path: Path) -> None:
    _, text, machine = report(target, golden, tmp_path)
    [part] = page_data.read(text)["parts"]
    for side, name in (("target", target), ("golden", golden)):
        construct = json.loads((tmp_path / name / "construct.json").read_text())
        names = page_data.node_names(part, side)
        parents = part["tree"][side]["parents"]
        place = {name: i for i, name in enumerate(names)}
        assert len(place) == len(names) == part["tree"][side]["total"]
        # Parents stand before their children, and a subtree is in one piece.
        assert parents[0] == -1 and all(0 <= parent < i for i, parent in enumerate(parents) if i)
        for call, parent in construct.items():
            above = parents[place[call]]
            if parent is not None:
                assert above == place[parent], call
            elif names[above].startswith("Apis_Between_Modules."):
                assert parents[above] == 0
            else:
                assert above == 0
    # A call stands on its node, and the worst verdict of a call is the node's level.
    named = page_data.call_names(part)
    levels = part["tree"]["target"]["levels"]
    for call, node in enumerate(part["calls"]["target"]):
        if node >= 0 and part["calls"]["verdicts"][call] == 3 and all(named[call]):
            assert levels[node] == 2
    answer = machine["first_wrong_call"]
    first = [names for names, flags in zip(named, part["calls"]["flags"], strict=True) if flags & 1]
    assert [answer["name"]] if answer else [] == first
    if answer:
        assert answer["name"] in first[0]


@needs_page
@pytest.mark.parametrize(("target", "golden"), PAIRS[:2])
def test_page_fetches_nothing(target: str, golden: str, tmp_path: Path) -> None:
    page, _, _ = report(target, golden, tmp_path)
    assert page.fetches == []
    assert "default-src 'none'" in page.policy and "unsafe" not in page.policy
    # What runs and what it looks like is what the policy names, to the byte.
    for kind, directive in (("script", "script-src"), ("style", "style-src")):
        digest = hashlib.sha256(page.inline[kind].encode()).digest()
        assert f"{directive} 'sha256-{base64.b64encode(digest).decode()}'" in page.policy
    assert not re.search(r"@import|url\(", page.inline["style"])


def test_plots_show_the_elements_of_the_tensor_files(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    _, text, machine = report("wrong_scale_tensor", "sound_tensor", tmp_path)
    [part] = page_data.read(text)["parts"]
    evidence = part["part"]["evidence"]
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
    assert max(evidence["profile"]) == pytest.approx(difference.max().item(), rel=1e-7)


def test_text_of_a_recording_is_never_markup(tmp_path: Path) -> None:
    evil = "</script></pre><img src=x onerror=alert(1)><!--"
    make_dumps.sound(str(tmp_path / "target"))
    make_dumps.sound(str(tmp_path / "golden"))
    for side, factor in (("target", 2), ("golden", 1)):
        path = tmp_path / side / "dump.json"
        data = json.loads(path.read_text())
        first = next(iter(data["data"]))
        data["data"] = {(evil + key if key == first else key): value
                        for key, value in data["data"].items()}
        for value in data["data"][evil + first]["output"]:
            value.update({key: value[key] * factor for key in ("Max", "Min", "Mean", "Norm")})
        path.write_text(json.dumps(data))
    file = page_of(tmp_path)
    text = file.read_text("utf-8")
    page = Page()
    page.feed(text)
    assert page.fetches == []
    assert text.count("</script>") == 2
    [part] = page_data.read(text)["parts"]
    assert part["part"]["header"]["first_wrong_call"]["name"].startswith(evil)
    assert any(target.startswith(evil) for target, _ in page_data.call_names(part))
    assert evil in page.text  # for readers without scripts


def test_readers_without_scripts_have_the_answer(tmp_path: Path) -> None:
    _, text, machine = report("wrong_scale", "sound", tmp_path)
    plain = re.search(r"<noscript><pre>(.*?)</pre></noscript>|<pre>(.*?)</pre>", text, re.DOTALL)
    assert plain is not None
    assert f"first wrong call: {machine['first_wrong_call']['name']}" in plain.group()


@needs_page
@needs_browser
@pytest.mark.parametrize(("target", "golden"), PAIRS)
def test_page_draws_without_an_error(target: str, golden: str, tmp_path: Path) -> None:
    _, _, machine = report(target, golden, tmp_path)
    [file] = (tmp_path / "out").glob("*.html")
    document = drawn(file, tmp_path)
    answer = machine["first_wrong_call"]
    shown = re.search(r'<section class="report-answer.*?</section>', document, re.S)
    assert shown is not None
    if answer:
        assert answer["name"] in text_of(shown.group())
    assert f"of {len(machine['rows'])} rows shown" in document
    shown = document.split('id="report-rows"')[1]
    assert shown.count('role="row"') > min(12, len(machine["rows"]))


@needs_page
@needs_browser
@pytest.mark.parametrize("view", ["graph", "outline", "list", "first", "summary"])
def test_other_views_read_the_file(view: str, tmp_path: Path) -> None:
    """The same page as plumb view serves, over the data in the file."""
    _, _, machine = report("wrong_scale_tensor", "sound_tensor", tmp_path)
    [file] = (tmp_path / "out").glob("*.html")
    name = machine["first_wrong_call"]["name"]
    document = drawn(f"{file}#/g/0?view={view}&node={name}", tmp_path)
    text = text_of(document)
    assert f"first wrong call: {name}" in text
    if view != "summary":  # the numbers of the selected call, below
        assert "output.0 ✕ error broken" in text or "output.0" in text
        assert "0.902172" in text and "0.601448" in text


@needs_page
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
    document = text_of(drawn(page_of(tmp_path), tmp_path))
    evidence = document.split(" Evidence ")[1].split("Error along the call order")[0]
    for said in ("What target takes and returns here", "golden has no such call",
                 "Where its result is taken", "Torch.square.0.forward.input.0", "output.0"):
        assert said in evidence, said
    assert "2.7181" not in evidence  # numbers of the call, not of another
    assert f"{(x / 9).tanh().exp().max().item():.4f}"[:5] in evidence


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
    [part] = page_data.read(Path(result.files[0]))["parts"]
    reasons = part["part"]["reasons"]
    assert reasons["zero-both"].startswith("equal") and "counterpart" in reasons["no-golden"]


@needs_page
@needs_browser
def test_a_call_of_another_form_shows_each_side(tmp_path: Path) -> None:
    """The side that has no such value shows nothing, least of all zeros."""
    for side, size in (("target", 3), ("golden", 2)):
        dump = Dump()
        x = torch.arange(4.0 * size).reshape(size, 4) + 1
        dump.forward("Torch.exp.0.forward", [x], [x.exp()])
        dump.write(tmp_path / side)
    text = text_of(drawn(page_of(tmp_path), tmp_path))
    takes, other = text.split("What target takes and returns here")[1].split(
        "What golden takes and returns here")
    assert "input.0 input [3, 4] torch.float32 12 1 6.5" in takes
    assert "input.0 input [2, 4] torch.float32 8 1 4.5" in other
    detail = text.split("This call has no counterpart")[1]
    assert "max 12 min 1 mean 6.5 norm" in detail, detail
    assert "Where its result is taken" not in text
    said = text.split("Likely cause: structure")[1].split(" Evidence ")[0]
    assert said.count("target [3, 4], golden [2, 4]") == 1, said


def test_a_text_of_megabytes_is_cut(tmp_path: Path) -> None:
    """A prompt given as an argument; the cut is between characters."""
    prompt = "a" + "\u00e9" * 500_000
    for side in ("target", "golden"):
        dump = Dump()
        dump.forward("Torch.exp.0.forward", [torch.ones(2), prompt], [torch.ones(2)])
        dump.write(tmp_path / side)
    [part] = page_data.read(page_of(tmp_path))["parts"]
    shown = part["rows"][1][12][0]
    assert shown == prompt[:1000] + "... (1000001 bytes)"


@needs_page
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
    text = text_of(drawn(page_of(tmp_path), tmp_path))
    went, shown = text.split("What went in and what came out")[1].split(
        "Statistics of what is wrong and of the outputs")
    shown = shown.split("Only statistics were recorded")[0]
    if kind == "input":
        assert "input.0 max 7.5 6 1.5 25 %" in shown, shown
    else:
        assert "output.0 [7] torch.float32 ✕ broken not finite" in went, went
        assert "output.0 max +Inf 9 +Inf" in shown and "NaN %" not in shown, shown


LONG = ("Module.model.layers.2.post_attention_layernorm.input_projection.attention."
        "LlamaRotaryEmbeddingWithAVeryLongName.forward.0")
FRAMES = ["File /v/site-packages/torch/nn/functional.py, line 2, in gelu, \n return f(x)",
          "File /v/site-packages/torch/nn/modules/module.py, line 9, in _call_impl, \n return g()",
          "File /home/user/model.py, line 21, in forward, \n x = self.act(x)",
          "File /v/site-packages/torch/nn/modules/module.py, line 9, in _call_impl, \n return g()",
          "File /home/user/train.py, line 3, in <module>, \n model(x)"]


def long_names(tmp_path: Path) -> Path:
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
    return page_of(tmp_path)


LAYOUT = """(() => {
  const all = (places) => [...document.querySelectorAll(places)];
  const isCut = (node) => getComputedStyle(node).display !== "inline" &&
    (node.scrollWidth > node.clientWidth + 1 || node.scrollHeight > node.clientHeight + 1);
  const width = (node) => node.getBoundingClientRect().width;
  const growth = all(".report-section").find((section) => section.querySelector(".around"));
  return {
    main: width(growth),
    growth: [...growth.querySelectorAll(".report-card")].map(width),
    plot: width(growth.querySelector("svg")),
    evidence: all(".report-cards > .report-card").map((card) =>
      [card.offsetTop, card.offsetHeight]),
    cut: all(".around .mono, #report-rows .line > .cell:not(.number)").filter(isCut)
      .map((node) => node.textContent),
    names: all(".around td:first-child").map((cell) => cell.innerText)};
})()"""
DETAILS = """(async () => {
  const tables = [];
  for (const at of [1, 2]) {
    document.querySelectorAll("#report-rows .line:not(.head)")[at].click();
    await new Promise((done) => setTimeout(done, 200));
    tables.push(document.querySelector(".report-detail .sides").innerText);
  }
  const stack = document.querySelector(".report-cards .frames"), list = stack.querySelector("ol");
  return {tables, first: list.children[0].innerText, own: stack.querySelectorAll("li.own").length,
    inside: stack.querySelector("summary").innerText, shown: list.children.length};
})()"""


@needs_page
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


@needs_page
@needs_browser
def test_words_are_one_value_and_a_stack_begins_at_the_users_code(tmp_path: Path) -> None:
    shown = measured(long_names(tmp_path), tmp_path, 1280, DETAILS)
    for table, value in zip(shown["tables"], ("tanh", "0.5"), strict=True):
        assert table.split() == ["target", "golden", "value", value, value]
    assert shown["first"].startswith("File /home/user/model.py, line 21")
    assert (shown["own"], shown["shown"]) == (1, 3)
    assert shown["inside"] == "2 frames inside it, innermost first"


def many_calls(tmp_path: Path, calls: int) -> Path:
    """A page over recordings with far more than it may hold; one call in the middle is wrong."""
    for side in ("target", "golden"):
        values = torch.rand(calls, 8, dtype=torch.float64,
                            generator=torch.Generator().manual_seed(5)).tolist()
        construct: dict[str, str | None] = {"Module.model.Model.forward.0": None}
        data = {}
        for i, numbers in enumerate(values):
            name = f"Torch.exp.{i}.forward"
            layer = f"Module.model.layers.{i // 50}.Layer.forward.0"
            construct |= {name: layer, layer: "Module.model.Model.forward.0"}
            factor = 2 if side == "target" and i == calls // 2 else 1
            tensors = [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4],
                        "Max": scale * (1 + a), "Min": scale * a, "Mean": scale * b,
                        "Norm": scale * (2 + b), "requires_grad": False}
                       for scale, (a, b) in ((1, numbers[:2]), (factor, numbers[2:4]))]
            data[name] = {"input_args": tensors[:1], "input_kwargs": {}, "output": tensors[1:]}
        (tmp_path / side).mkdir()
        (tmp_path / side / "dump.json").write_text(json.dumps(
            {"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None,
             "data": data}))
        (tmp_path / side / "construct.json").write_text(json.dumps(construct))
        (tmp_path / side / "stack.json").write_text("{}")
    return page_of(tmp_path)


@needs_page
@needs_browser
def test_a_large_page_has_what_matters_and_says_what_it_lacks(tmp_path: Path) -> None:
    calls = 52_000  # of two rows each
    file = many_calls(tmp_path, calls)
    assert file.stat().st_size < 15_000_000
    [part] = page_data.read(file)["parts"]
    end = part["end"]
    assert end["row_total"] == 2 * calls
    assert end["rows"] == len(part["rows"]) < end["row_total"]
    wrong = f"Torch.exp.{calls // 2}.forward"
    names = [target for target, _ in page_data.call_names(part)]
    assert [row[1] for row in part["rows"] if names[row[0]] == wrong] == [".input.0", ".output.0"]
    # Calls of the page have all of their rows, or none.
    held = [names[row[0]] for row in part["rows"]]
    assert all(held.count(name) == 2 for name in (held[0], held[-1], wrong))
    text = text_of(drawn(file, tmp_path))
    assert wrong in text
    assert "The recording has 104 000 rows" in text, text[:3000]
