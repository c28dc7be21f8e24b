"""`plumb overflow`: the first NaN or Inf over all ranks, on synthetic dumps with known answers
(rank_dumps.py).
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from rank_dumps import (
    INF,
    NAN,
    WORLD,
    all_reduce,
    backward,
    fine,
    forward,
    log,
    number,
    passes,
    scenarios,
    tensor,
    write_rank,
    write_step,
)
from recording import PLUMB


def overflow(*words: object) -> subprocess.CompletedProcess[str]:
    """Runs `plumb overflow`."""
    return subprocess.run([PLUMB, "overflow", *map(str, words)], text=True, capture_output=True,
                          check=False, timeout=60)


def answer(done: subprocess.CompletedProcess[str]) -> str:
    """First line of the output."""
    return done.stdout.splitlines()[0]


def reported(directory: Path) -> list[tuple[str, str]]:
    """What the only anomaly_analyze file in `directory` names."""
    files = list(directory.glob("anomaly_analyze_*.json")) if directory.exists() else []
    assert len(files) <= 1
    if not files:
        return []
    nodes = json.loads(files[0].read_text())
    assert files[0].with_name(files[0].name.replace("anomaly_analyze", "overflow_trace")).exists()
    return [(rank, node["op_name"]) for rank, found in nodes.items() for node in found]


@pytest.mark.parametrize("name", scenarios())
def test_scenario_gives_the_known_answer_every_time(tmp_path, name):
    ranks, expected = scenarios()[name]
    step = write_step(tmp_path / "step0", ranks)
    outputs = set()
    for run in range(5):  # the 50 repetitions are done in C++: FirstOverflow.FiftyRunsAreEqual
        done = overflow(step, "-o", tmp_path / f"out{run}", "--jobs", 1 + run)
        assert done.returncode == 0, done.stderr
        assert reported(tmp_path / f"out{run}") == expected
        outputs.add("\n".join(line for line in done.stdout.splitlines() if "written" not in line))
    assert len(outputs) == 1
    first = outputs.pop().splitlines()[0]
    if not expected:
        assert first == "no NaN/Inf: 6 entries of 2 ranks in 1 step examined"
        assert not (tmp_path / "out0").exists()
    else:
        rank, entry = expected[0]
        assert first.startswith(f"first NaN/Inf: {rank.replace('_', ' ')} {entry}, ")


def test_answer_says_where_and_why(tmp_path):
    step = write_step(tmp_path / "step0", scenarios()["between_two_collectives"][0])
    done = overflow(step, "-o", tmp_path / "out")
    lines = done.stdout.splitlines()
    assert lines[0] == ("first NaN/Inf: rank 0 Torch.log.0.forward, output.0 is NaN "
                        "(inputs finite)")
    assert "  module: Module.net.Net.forward.0" in lines
    assert "    File a.py, line 1, in f,   y = g(x)" in lines
    [node] = json.loads(next((tmp_path / "out").glob("anomaly*")).read_text())["rank_0"]
    assert list(node)[:4] == ["op_name", "data_info", "construct_info", "stack_info"]
    assert node["construct_info"] == ["Module.net.Net.forward.0", "Torch.log.0.forward"]
    assert node["stack_info"][0].startswith("File a.py")
    assert list(node["data_info"]) == ["input_args", "input_kwargs", "output"]
    trace = json.loads(next((tmp_path / "out").glob("overflow_trace*")).read_text())
    [transfer] = trace["transfers"]
    assert [end["rank"] for end in transfer["from"]] == ["rank_0"]
    assert [end["rank"] for end in transfer["to"]] == ["rank_0", "rank_1"]


@pytest.mark.parametrize("flat", [True, False])
def test_both_forms_of_stack_give_the_frames(tmp_path, flat):
    write_step(tmp_path / "step0", {"rank0": [log()]}, flat_stack=flat)
    result = json.loads(overflow(tmp_path / "step0", "-o", tmp_path / "o", "--json").stdout)
    assert result["first"]["stack_info"][0].startswith("File a.py, line 1")


@pytest.mark.parametrize("missing", ["dump.json", "construct.json", "stack.json"])
def test_missing_file_is_an_error_that_names_it(tmp_path, missing):
    step = write_step(tmp_path / "step0", {"rank1": [fine(0)]})
    (step / "rank1" / missing).unlink()
    done = overflow(step)
    assert done.returncode == 2 and done.stdout == ""
    assert str(step / "rank1" / missing) in done.stderr


def test_directory_without_ranks_is_an_error(tmp_path):
    assert overflow(tmp_path).returncode == 2
    assert overflow(tmp_path / "nothing").returncode == 2
    assert overflow().returncode == 2


def test_upstream_spelling_and_exit_codes(tmp_path):
    step = write_step(tmp_path / "step0", {"rank0": [log()]})
    for words in (["overflow_check"], ["-f", "pytorch", "nan_analyze"]):
        done = subprocess.run([PLUMB, *words, "-i", step, "-o", tmp_path / "out"], text=True,
                              capture_output=True, check=False, timeout=60)
        assert done.returncode == 0 and answer(done).startswith("first NaN/Inf: rank 0 ")
    assert overflow(step, "-o", tmp_path / "out", "--fail-on-anomaly").returncode == 3
    clean = write_step(tmp_path / "step1", {"rank0": [fine(0)]})
    assert overflow(clean, "--fail-on-anomaly").returncode == 0


def test_first_step_with_a_finding_is_the_answer(tmp_path):
    write_step(tmp_path / "step9", {"rank": [fine(0)]})
    write_step(tmp_path / "step10", {"rank": [log()]})
    write_step(tmp_path / "step11", {"rank": [log(NAN, 5)]})
    result = json.loads(overflow(tmp_path, "-o", tmp_path / "o", "--json").stdout)
    assert result["step"].endswith("step10") and result["steps"] == 2
    assert result["first"]["op_name"] == "Torch.log.0.forward"


def test_single_rank_and_process_directories(tmp_path):
    for name, label in (("rank", "rank 0"), ("proc77", "rank 0"), ("rank5", "rank 5")):
        step = tmp_path / name / "step0"
        rank = write_rank(step / name, [log()])
        for path in (step, rank):
            done = overflow(path, "-o", tmp_path / "o")
            assert answer(done).startswith(f"first NaN/Inf: {label} "), (path, done)


# ---- nothing that could not be judged is called good


def test_md5_only_dump_is_not_called_good(tmp_path):
    bare = tensor(md5="12345678")
    for key in ("Max", "Min", "Mean", "Norm"):
        bare[key] = None
    step = write_step(tmp_path / "step0", {"rank0": [forward("Torch.a.0.forward", [bare], [bare])]})
    done = overflow(step)
    assert done.returncode == 4
    assert answer(done).startswith("no NaN/Inf found, but not everything could be judged")
    assert "2 of 2 tensors have no Max and Min" in done.stdout
    assert overflow(step, "--allow-partial").returncode == 0


def test_integers_and_empty_tensors_need_no_statistics(tmp_path):
    none = dict.fromkeys(("Max", "Min", "Mean", "Norm"))
    integer = tensor() | none | {"dtype": "torch.int64"}
    empty = tensor() | none | {"shape": [0, 3]}
    entry = forward("Torch.a.0.forward", [integer, empty], [integer])
    assert overflow(write_step(tmp_path / "step0", {"rank0": [entry]})).returncode == 0


def test_truncated_dump_says_so_whether_or_not_something_was_found(tmp_path):
    step = write_step(tmp_path / "step0", {"rank0": [log(), fine(0)], "rank1": [fine(0), fine(1)]})
    path = step / "rank1" / "dump.json"
    text = path.read_text()
    path.write_text(text[:text.index("Torch.add.1") + 40])
    done = overflow(step, "-o", tmp_path / "o")
    assert done.returncode == 4 and answer(done).startswith("first NaN/Inf: rank 0")
    assert f"{path}: cut or damaged at byte" in done.stderr and "1 complete entries" in done.stderr
    shutil.rmtree(step / "rank0")
    done = overflow(step)
    assert done.returncode == 4 and "not everything could be judged" in answer(done)


def test_missing_rank_and_incomplete_call_are_said(tmp_path):
    started = forward("Distributed.all_reduce.0.forward", [tensor()], [], group=WORLD)
    del started[1]["output"]
    step = write_step(tmp_path / "step0", {"rank0": [started]})
    done = overflow(step)
    assert done.returncode == 4
    assert "no directory for 1 of the ranks that process groups name: 1" in done.stderr
    assert "1 communication calls without their counterparts" in done.stderr
    assert "1 communication calls were not complete" in done.stderr


def test_bad_values_that_no_call_produced_are_found(tmp_path):
    entries = [fine(0), passes("Functional.linear.0.forward", NAN), log()]
    done = overflow(write_step(tmp_path / "step0", {"rank0": entries}), "-o", tmp_path / "o")
    assert answer(done) == (
        "first NaN/Inf: rank 0 Functional.linear.0.forward, input_args.0 is NaN (an input "
        "already; no recorded call before it on this rank put it out)")


@pytest.mark.parametrize("bad", ["nan", "NaN", "inf", "-inf", "Infinity", "nan\t", "1e400"])
def test_statistics_written_as_text(tmp_path, bad):
    entry = forward("Torch.log.0.forward", [tensor()], [tensor() | {"Max": bad, "Min": "-3.5"}])
    done = overflow(write_step(tmp_path / "step0", {"rank0": [entry]}), "-o", tmp_path / "o")
    assert answer(done).startswith("first NaN/Inf: rank 0 Torch.log.0.forward, output.0 is ")


# ---- which one is first


def test_masks_come_after_everything_else(tmp_path):
    mask = forward("Tensor.masked_fill.0.forward", [tensor(), tensor(), number(-INF)],
                   [tensor(1.0, -INF)])
    other = forward("Torch.softmax.0.forward", [tensor(1.0, -INF)], [tensor()])
    step = write_step(tmp_path / "step0", {"rank0": [mask, other, log()]})
    assert answer(overflow(step, "-o", tmp_path / "o")).startswith(
        "first NaN/Inf: rank 0 Torch.log.0.forward")
    step = write_step(tmp_path / "step1", {"rank0": [mask, other]})
    assert answer(overflow(step, "-o", tmp_path / "o")) == (
        "first NaN/Inf: rank 0 Tensor.masked_fill.0.forward, output.0 is -Inf (inputs finite; "
        "input_args.2 is the number -Inf, as for a mask)")


def test_masked_softmax_that_makes_nan_is_named(tmp_path):
    """-Inf of a mask goes in, NaN comes out: not the mask but the softmax is to blame."""
    mask = forward("Tensor.masked_fill.0.forward", [tensor(), tensor(), number(-INF)],
                   [tensor(-INF)])
    softmax = forward("Functional.softmax.0.forward", [tensor(-INF)], [tensor(NAN)])
    step = write_step(tmp_path / "step0", {
        "rank0": [mask, softmax, passes("Torch.a.0.forward", NAN)]})
    assert answer(overflow(step, "-o", tmp_path / "o")) == (
        "first NaN/Inf: rank 0 Functional.softmax.0.forward, output.0 is NaN (inputs hold nothing "
        "worse than -Inf)")


def test_inputs_without_effect_hide_nothing(tmp_path):
    """Memory that is filled in place, then weights that are NaN from the start."""
    filled = forward("Tensor.normal_.0.forward", [tensor(NAN)], [tensor()])
    step = write_step(tmp_path / "step0", {"rank0": [
        filled, filled, passes("Functional.linear.0.forward", NAN)]})
    assert answer(overflow(step, "-o", tmp_path / "o")).startswith(
        "first NaN/Inf: rank 0 Functional.linear.0.forward, input_args.0 is NaN (an input already")
    step = write_step(tmp_path / "step1", {"rank0": [filled, fine(0)]})
    assert answer(overflow(step, "-o", tmp_path / "o")).startswith(
        "first NaN/Inf: rank 0 Tensor.normal_.0.forward, input_args.0 is NaN (an input already")


def test_uninitialised_memory_is_ignored(tmp_path):
    empty = forward("Torch.empty.0.forward", [number(4)], [tensor(NAN)])
    assert overflow(write_step(tmp_path / "step0", {"rank0": [empty, fine(0)]})).returncode == 0
    used = passes("Torch.mul.0.forward", NAN)
    step = write_step(tmp_path / "step1", {"rank0": [empty, fine(0), used]})
    assert answer(overflow(step, "-o", tmp_path / "o")).startswith(
        "first NaN/Inf: rank 0 Torch.mul.0.forward, input_args.0 is NaN (an input already")


def test_module_around_the_origin_is_not_a_second_one(tmp_path):
    entries = [log(), ("Module.net.Net.forward.0", log()[1])]
    step = write_step(tmp_path / "step0", {"rank0": entries})
    result = json.loads(overflow(step, "-o", tmp_path / "o", "--json").stdout)
    assert [origin["op_name"] for origin in result["origins"]] == ["Torch.log.0.forward"]


def test_received_value_is_followed_to_its_sender(tmp_path):
    """irecv and batches pair with send; the receiver's own output is not an origin."""
    send = forward("Distributed.send.0.forward", [tensor(INF), number(1)], [tensor(INF), number(1)])
    batch = forward("Distributed.batch_isend_irecv.0.forward",
                    [[{"class_type": "torch.distributed.P2POp", "tensor": None, "op": "irecv",
                       "peer": 0, "tag": 0, "group_id": "1"}]], [[{"tensor": tensor(INF)}]])
    step = write_step(tmp_path / "step0", {"rank0": [fine(0), log(INF), send],
                                           "rank1": [batch, passes("Torch.mul.0.forward", INF)]})
    result = json.loads(overflow(step, "-o", tmp_path / "o", "--json").stdout)
    assert [origin["op_name"] for origin in result["origins"]] == ["Torch.log.0.forward"]
    assert result["not_judged"] == []


def test_overlapping_groups_pair_by_group(tmp_path):
    """Two groups of the same ranks: the NaN of one does not explain that of the other."""
    other = WORLD | {"group_id": "0badc0de"}
    first = [forward(f"Distributed.all_reduce.{n}.forward", [tensor(given)], [tensor(result)],
                     group=group)
             for n, (given, result, group) in enumerate([(NAN, NAN, WORLD), (1.0, 1.0, other)])]
    second = [forward(f"Distributed.all_reduce.{n}.forward", [tensor(1.0)], [tensor(result)],
                      group=group)
              for n, (result, group) in enumerate([(NAN, other), (NAN, WORLD)])]
    step = write_step(tmp_path / "step0", {"rank0": [log(NAN), *first], "rank1": second})
    result = json.loads(overflow(step, "-o", tmp_path / "o", "--json").stdout)
    assert [(o["rank"], o["op_name"]) for o in result["origins"]] == [
        ("rank_0", "Torch.log.0.forward"), ("rank_1", "Distributed.all_reduce.0.forward")]


def test_broadcast_comes_from_its_root(tmp_path):
    def broadcast(given: float, result: float) -> tuple:
        return forward("Distributed.broadcast.0.forward", [tensor(given), number(1)],
                       [tensor(result), number(1)])
    step = write_step(tmp_path / "step0", {"rank0": [broadcast(1.0, NAN)],
                                           "rank1": [log(NAN), broadcast(NAN, NAN)]})
    result = json.loads(overflow(step, "-o", tmp_path / "o", "--json").stdout)
    assert [(o["rank"], o["op_name"]) for o in result["origins"]] == [
        ("rank_1", "Torch.log.0.forward")]


def test_result_that_cannot_be_written(tmp_path):
    step = write_step(tmp_path / "step0", {"rank0": [log()]})
    (tmp_path / "out").write_text("a file")
    done = overflow(step, "-o", tmp_path / "out")
    assert done.returncode == 6 and "out" in done.stderr


def test_more_collectives_on_one_rank_are_said(tmp_path):
    step = write_step(tmp_path / "step0", {"rank0": [all_reduce(0, 1, 1), all_reduce(1, 1, 1)],
                                           "rank1": [all_reduce(0, 1, 1)]})
    done = overflow(step)
    assert done.returncode == 4
    assert "first Distributed.all_reduce.1.forward of rank 0" in done.stderr


def test_damaged_text_never_crashes_nor_passes(tmp_path):
    """One byte of one rank's files replaced, at places drawn with a fixed seed."""
    step = write_step(tmp_path / "step0", scenarios()["polluted_second_send"][0])
    files = [step / f"rank{rank}" / name for rank in range(2)
             for name in ("dump.json", "stack.json", "construct.json")]
    draw = random.Random(7)
    for _ in range(60):
        path = draw.choice(files)
        text = path.read_bytes()
        place = draw.randrange(len(text))
        path.write_bytes(text[:place] + bytes([draw.randrange(256)]) + text[place + 1:])
        done = overflow(step, "-o", tmp_path / "o")
        path.write_bytes(text)
        assert done.returncode in (0, 2, 4), (path, place, done)
        assert done.returncode != 0 or answer(done).startswith("first NaN/Inf: "), (path, place)


# ---- ranks that are missing or cannot be read


def not_judged(done: subprocess.CompletedProcess[str], *reasons: str) -> None:
    """Status 4 and a first line that says so; every reason on stderr."""
    assert done.returncode == 4, done
    assert answer(done).startswith(("no NaN/Inf found, but not everything", "nothing to judge: "))
    for reason in reasons:
        assert reason in done.stderr, done.stderr


@pytest.mark.parametrize(("names", "text"), [
    (["rank0", "rank2"], "no directory for 1 of the ranks up to 2: 1"),
    (["rank1", "rank2"], "no directory for 1 of the ranks up to 2: 0"),
    (["rank0", "rank9223372036854775807"],
     "no directory for 9223372036854775806 of the ranks up to 9223372036854775807: 1, 2, "),
])
def test_gap_in_the_numbers_of_the_ranks(tmp_path, names, text):
    step = write_step(tmp_path / "step0", {name: [fine(0)] for name in names})
    done = overflow(step)
    not_judged(done, text)
    assert text in answer(done)
    assert overflow(step / names[1]).returncode == 0  # whoever asks about one rank gets it
    assert overflow(step, "--allow-partial").returncode == 0


def test_rank_of_another_step_is_missed(tmp_path):
    write_step(tmp_path / "step0", {"rank0": [fine(0)], "rank1": [fine(0)]})
    write_step(tmp_path / "step1", {"rank0": [fine(0)]})
    not_judged(overflow(tmp_path), "step1: no directory for 1 of the ranks up to 1: 1")


def test_file_named_like_a_rank(tmp_path):
    step = write_step(tmp_path / "step0", {"rank0": [fine(0)]})
    (step / "rank1").write_text("")
    not_judged(overflow(step), f"{step / 'rank1'}: not a directory")


def spoil(rank: Path, how: str) -> None:
    """Makes the files of a rank unreadable."""
    if how == "empty dump.json":
        (rank / "dump.json").write_text("")
    elif how == "text Max":
        text = (rank / "dump.json").read_text()
        (rank / "dump.json").write_text(text.replace('"Max": 1.0', '"Max": "much"'))
    else:
        (rank / how).unlink()


@pytest.mark.parametrize("how", ["empty dump.json", "dump.json", "construct.json", "text Max"])
def test_bad_rank_does_not_stop_the_others(tmp_path, how):
    step = write_step(tmp_path / "step0", {"rank0": [fine(0)], "rank1": [fine(0)],
                                           "rank2": [fine(0)]})
    spoil(step / "rank1", how)
    done = overflow(step)
    not_judged(done, f"rank 1 is not judged: {step / 'rank1'}")
    assert "2 entries of 2 ranks in 1 step examined; rank 1 is not judged" in answer(done)
    result = json.loads(overflow(step, "--json").stdout)
    assert (result["ranks"], result["ranks_not_judged"]) == (2, 1)
    (step / "rank2" / "dump.json").write_text(json.dumps({"task": "statistics",
                                                          "data": dict([log()])}))
    done = overflow(step, "-o", tmp_path / "o")
    assert answer(done).startswith("first NaN/Inf: rank 2 Torch.log.0.forward")
    assert answer(done).endswith("(inputs finite); not judged: 1 rank")
    assert "rank 1 is not judged" in done.stderr
    assert done.returncode == 4, "rank 1 may have been the first one"
    assert overflow(step, "-o", tmp_path / "o", "--allow-partial").returncode == 0
    for rank in (0, 2):
        spoil(step / f"rank{rank}", "dump.json")
    assert overflow(step).returncode == 2


@pytest.mark.parametrize("name", ["stack.json", "construct.json"])
def test_finding_stands_without_its_surroundings(tmp_path, name):
    step = write_step(tmp_path / "step0", {"rank0": [log()]})
    (step / "rank0" / name).write_text("{")
    done = overflow(step, "-o", tmp_path / "o")
    assert done.returncode == 0 and answer(done).startswith("first NaN/Inf: rank 0 Torch.log")
    assert str(step / "rank0" / name) in done.stderr


# ---- entries and tensors that say nothing


@pytest.mark.parametrize("task", ["statistics", "structure"])
def test_nothing_to_judge_is_not_good(tmp_path, task):
    step = write_step(tmp_path / "step0", {"rank0": []}, task=task)
    not_judged(overflow(step), f"{step / 'rank0'}: no entries")
    assert answer(overflow(step)).startswith("nothing to judge: 0 entries of 1 rank")


def test_entries_without_values_are_not_good(tmp_path):
    bare = write_step(tmp_path / "step0", {"rank0": [("Torch.add.0.forward", {})]})
    not_judged(overflow(bare), "no tensors recorded")
    structure = write_step(tmp_path / "step1", {"rank0": [fine(0)]}, task="structure")
    not_judged(overflow(structure), "task structure")


def test_rank_without_entries_among_others(tmp_path):
    step = write_step(tmp_path / "step0", {"rank0": [fine(0)], "rank1": []})
    not_judged(overflow(step), f"{step / 'rank1'}: no entries")


def test_entries_without_output_are_counted(tmp_path):
    entries = [(name, {key: value for key, value in entry.items() if key != "output"})
               for name, entry in (fine(0), fine(1), backward("Torch.add.0.backward", [tensor()],
                                                              []))]
    gradients = ("Module.net.Net.parameters_grad", {"weight": [tensor()]})
    step = write_step(tmp_path / "step0", {"rank0": [*entries, gradients, fine(2)]})
    not_judged(overflow(step), "3 of 5 entries have inputs and no output")


@pytest.mark.parametrize("labels", [
    {"type": "Strange"}, {"type": None}, {"type": 5}, {"dtype": None}, {"dtype": "torch.odd"},
    {"type": "Strange", "dtype": None, "shape": None}])
def test_tensor_of_unknown_type(tmp_path, labels):
    def step(number: int, **values: object) -> Path:
        entry = forward("Torch.log.0.forward", [tensor()], [tensor() | labels | values])
        return write_step(tmp_path / f"step{number}", {"rank0": [entry]})
    assert overflow(step(0)).returncode == 0
    for place, bad in enumerate((NAN, "nan", "-Infinity"), start=1):
        done = overflow(step(place, Max=bad), "-o", tmp_path / "o")
        assert answer(done).startswith("first NaN/Inf: rank 0 Torch.log.0.forward, output.0 is ")
    not_judged(overflow(step(4, Max=None, Min=None)), "1 of 2 tensors have no Max and Min")


def search_without_hits(step: Path, stack: object, construct: object) -> Path:
    write_step(step, {"rank0": []})
    path = step / "rank0" / "dump.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"task": "overflow_check"}))
    (step / "rank0" / "stack.json").write_text(json.dumps(stack))
    (step / "rank0" / "construct.json").write_text(json.dumps(construct))
    return step


def test_search_that_found_nothing_is_an_answer(tmp_path):
    """Task overflow_check lists hits alone in dump.json; the side files say what was examined."""
    calls = {"Torch.add.0.forward": ["File a.py"], "Torch.mul.0.forward": ["File a.py"]}
    for place, (stack, construct) in enumerate([(calls, {}), ({}, dict.fromkeys(calls))]):
        done = overflow(search_without_hits(tmp_path / f"step{place}", stack, construct))
        assert done.returncode == 0, done
        assert answer(done) == ("no NaN/Inf: task overflow_check found none in 2 calls of 1 rank "
                                "in 1 step")
    not_judged(overflow(search_without_hits(tmp_path / "step7", {}, {})), "no entries")
    damaged = search_without_hits(tmp_path / "step8", {}, {})
    (damaged / "rank0" / "stack.json").write_text("{")
    not_judged(overflow(damaged), "stack.json")


def test_steps_of_one_rank_are_called_steps(tmp_path):
    for step in range(3):
        write_step(tmp_path / f"step{step}", {"rank": [fine(0)]})
    assert answer(overflow(tmp_path)) == "no NaN/Inf: 3 entries of 3 steps examined"


# ---- grades of all calls


def test_calls_are_graded(tmp_path):
    """The table itself is tested in C++: OverflowGrade.*."""
    jump = forward("Torch.mul.7.forward", [tensor(1.0)], [tensor(500.0)])
    write_step(tmp_path / "d" / "step0", {
        "rank0": [fine(0), log(), passes("Torch.abs.0.forward", NAN)],
        "rank1": [forward("Torch.where.0.forward", [tensor(NAN)], [tensor()]), jump,
                  forward("Torch.empty.0.forward", [], [tensor(NAN)])]})
    write_step(tmp_path / "d" / "step1", {"rank0": [log()], "rank1": []})
    out = tmp_path / "o"
    done = overflow(tmp_path / "d" / "step0", "--grade", "-o", out)
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[:6] == [
        "overflow levels: 1 critical, 2 high, 1 medium of 6 entries of 2 ranks",
        "  rank 0: 1 critical, 1 high, 0 medium of 3 entries",
        "  rank 1: 0 critical, 1 high, 1 medium of 3 entries",
        "  critical: rank 0 Torch.log.0.forward (inputs clean, outputs not)",
        "  high: rank 0 Torch.abs.0.forward (inputs and outputs not clean)",
        "  high: rank 1 Torch.mul.7.forward (the outputs' Norm is more than 100 times the inputs')"]
    written = json.loads(next(out.glob("overflow_levels_*.json")).read_text())
    assert written["counts"] == {"critical": 1, "high": 2, "medium": 1}
    [step] = written["steps"]
    assert step["ranks"]["rank_1"] == {
        "entries": 3, "counts": {"critical": 0, "high": 1, "medium": 1},
        "overflow_level": {"Torch.where.0.forward": "medium", "Torch.mul.7.forward": "high"}}
    done = overflow(tmp_path / "d", "--grade", "-o", out, "--json")
    result = json.loads(done.stdout)
    assert result["counts"]["critical"] == 2 and len(result["steps"]) == 2
    assert done.returncode == 4 and "no tensors recorded" in done.stderr
    assert overflow(tmp_path / "d", "--grade", "-o", out, "--fail-on-anomaly").returncode == 3
    assert overflow(tmp_path / "d", "--grade", "-o", out, "--allow-partial").returncode == 0


def test_nothing_to_grade(tmp_path):
    good = write_step(tmp_path / "step0", {"rank0": [fine(0)]})
    done = overflow(good, "--grade", "-o", tmp_path / "o", "--fail-on-anomaly")
    assert done.returncode == 0 and answer(done) == "no anomaly: 1 entry of 1 rank graded"
    assert not (tmp_path / "o").exists()
    bare = tensor(md5="12345678")
    for key in ("Max", "Min", "Mean", "Norm"):
        del bare[key]
    digests = write_step(tmp_path / "step1", {
        "rank0": [forward("Torch.abs.0.forward", [bare], [bare])]})
    done = overflow(digests, "--grade")
    assert done.returncode == 4
    assert answer(done).startswith("no anomaly found, but not everything could be judged: ")
    assert "2 of 2 tensors have no Max and Min" in done.stderr
    path = digests / "rank0" / "dump.json"
    path.write_text(path.read_text()[:-20])
    assert "cut or damaged at byte" in overflow(digests, "--grade").stderr
    path.unlink()
    assert overflow(digests, "--grade").returncode == 2
    for words in (["--replay"], ["-d", tmp_path]):
        done = overflow(good, "--grade", *words)
        assert done.returncode == 2 and "--grade looks at a whole recording" in done.stderr


def test_hints_of_a_recorded_search(tmp_path):
    half = {"dtype": "torch.float16"}
    name, entry = forward("Torch.mul.0.forward", [tensor(3e4, **half), number(4.0)],
                          [tensor(INF, **half)])
    step = write_step(tmp_path / "step0", {
        "rank0": [(name, {**entry, "overflow_origin": "origin"}),
                  ("Torch.abs.0.forward", {**passes("Torch.abs.0.forward", INF)[1],
                                           "overflow_origin": "propagated"}),
                  ("Torch.neg.0.forward", {**fine(0)[1], "overflow_origin": "origin"})]})
    path = step / "rank0" / "dump.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"task": "overflow_check"}))
    calls = ["Torch.a.0.forward", "Torch.b.0.forward", "Torch.c.0.forward", "Torch.d.0.forward",
             name, "Torch.e.0.forward"]
    (step / "rank0" / "stack.json").write_text(json.dumps({key: ["File a.py"] for key in calls}))
    done = overflow(step, "-o", tmp_path / "o")
    for line in ("before it: Torch.b.0.forward, Torch.c.0.forward, Torch.d.0.forward",
                 "recorded as: origin", "recorded hits: 1 origin, 1 propagated, 1 saturated",
                 "in bfloat16: stays finite (by the ranges of its operands)",
                 "operand: input_args.0: float16 in [30000, 30000], 2^1.12662 below the largest, "
                 "65504"):
        assert f"  {line}\n" in done.stdout, done.stdout
    result = json.loads(overflow(step, "-o", tmp_path / "o", "--json").stdout)
    assert result["recorded_hits"] == {"origin": 1, "propagated": 1, "unknown": 0, "saturated": 1}
    assert result["first"]["other_types"][0] == {"dtype": "bfloat16", "stays_finite": True,
                                                 "by": "ranges"}
    unknown = write_step(tmp_path / "step1", {"rank0": [log()]})
    assert "  in bfloat16 and float32: the ranges do not tell, and no inputs were saved" in \
        overflow(unknown, "-o", tmp_path / "o").stdout
