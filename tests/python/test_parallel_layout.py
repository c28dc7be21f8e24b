"""`plumb layout` and plumbline.plot_model_parallelism against layers that are dealt out here."""

from __future__ import annotations

import itertools
import re
import struct
import subprocess
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pytest
from recording import PLUMB

import plumbline

SVG = "{http://www.w3.org/2000/svg}"


def dealt(world: tuple[int, int, int], layers: int, parts: int, order: str,
          has_embedding_stage: bool) -> list[tuple[list[int], int, list[str]]]:
    """Ranks, copy of the model and cells of each row, layer by layer."""
    ranks, tp, pp = world
    sizes = {"tp": tp, "pp": pp, "dp": ranks // tp // pp}
    names = [name for name in order.split("-") if name in sizes]
    places = {}
    for rank, place in enumerate(itertools.product(*(range(sizes[n]) for n in reversed(names)))):
        places[rank] = dict(zip(reversed(names), place, strict=True))
    stages = range(1 if has_embedding_stage else 0, pp)
    held: dict[tuple[int, int], list[int]] = {}
    layer = itertools.count(1)
    for part, stage in itertools.product(range(parts), stages):
        held[part, stage] = [next(layer) for _ in range(layers // len(stages) // parts)]
    rows: dict[tuple[int, int], list[int]] = {}
    for rank, place in places.items():
        rows.setdefault((place["dp"], place["pp"]), []).append(rank)
    found = []
    for (copy, stage), members in rows.items():
        cells = []
        for part in range(parts):
            words = ["Embed"] if (part, stage) == (0, 0) else []
            if own := held.get((part, stage)):
                words.append(f"L{own[0]}-{own[-1]}")
            if (part, stage) == (parts - 1, pp - 1):
                words.append("Out")
            cells.append("+".join(words))
        found.append((members, copy, cells))
    return sorted(found)


@pytest.mark.parametrize("order", ["tp-cp-ep-dp-pp", "tp-pp-dp", "dp-pp-tp", "pp-tp-dp"])
@pytest.mark.parametrize(("ranks", "layers", "tp", "pp", "of_part", "alone"), [
    (1, 1, 1, 1, None, False), (8, 16, 2, 2, None, False), (8, 16, 2, 2, 2, False),
    (16, 12, 2, 4, 1, True), (24, 12, 3, 2, 3, False), (6, 4, 6, 1, None, False)])
def test_every_rank_holds_its_layers(ranks: int, layers: int, tp: int, pp: int,
                                     of_part: int | None, alone: bool, order: str) -> None:
    config = plumbline.ParallelConfig(ranks, layers, tp, pp, of_part, order, alone)
    stages = pp - 1 if alone else pp
    parts = layers // stages // of_part if of_part else 1
    expected = dealt((ranks, tp, pp), layers, parts, order, alone)
    assert sorted((row[0], row[2], row[3]) for row in config.grid) == expected
    assert config.virtual_pipeline_parallel_size == parts
    assert config.data_parallel_size == ranks // tp // pp
    assert config.transformer_pipeline_parallel_size == stages


def test_names_are_upstreams(tmp_path: Path) -> None:
    config = plumbline.ParallelConfig(8, 16, tensor_parallel_size=2, pipeline_parallel_size=2,
                                      num_layers_per_virtual_pipeline_stage=2,
                                      output_path=str(tmp_path / "new"))
    path = tmp_path / "new" / "ws8_ln16_tp2_pp2_vpp4.png"
    assert config.output_path == str(path) and not path.exists()
    assert plumbline.plot_model_parallelism(config) == str(path)
    assert path.is_file()
    assert [row[1] for row in config.grid][:2] == ["Group0: Ranks0-1", "Group1: Ranks2-3"]
    assert [row[1] for row in plumbline.ParallelConfig(2, 1).grid] == ["Rank0", "Rank1"]


def picture(path: Path) -> list[bytes]:
    """Rows of pixels of a PNG, after every checksum was looked at."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, size = 8, b"", (0, 0)
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(
            kind + body)
        size = struct.unpack(">II", body[:8]) if kind == b"IHDR" else size
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    width, height = size
    raw = zlib.decompress(packed)
    assert len(raw) == height * (1 + 3 * width)
    return [raw[y * (1 + 3 * width) + 1:(y + 1) * (1 + 3 * width)] for y in range(height)]


def test_picture_has_a_colour_for_each_copy(tmp_path: Path) -> None:
    config = plumbline.ParallelConfig(12, 4, 2, 2, output_path=str(tmp_path / "x.png"))
    rows = picture(Path(plumbline.plot_model_parallelism(config)))
    colours = {row[i:i + 3] for row in rows for i in range(0, len(row), 3)}
    assert len(colours) == 2 + 3  # paper, ink, three copies of the model


def test_svg_says_what_the_cells_hold(tmp_path: Path) -> None:
    command = [PLUMB, "layout", "--world-size", "8", "--num-layers", "8", "--tp", "2", "--pp", "2",
               "-o", tmp_path / "x.svg"]
    done = subprocess.run(command, text=True, capture_output=True, check=True)
    assert done.stdout == f"{tmp_path / 'x.svg'}: 8 ranks, Layers: 8 | DP=2 | TP=2 | PP=2 | VPP=1\n"
    root = ElementTree.parse(tmp_path / "x.svg").getroot()
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert texts.count("Embed+L1-4") == texts.count("L5-8+Out") == 2
    fills = [element.get("fill") for element in root.iter(f"{SVG}rect")][1:5]
    assert fills[0] == fills[2] != fills[1] == fills[3]


@pytest.mark.parametrize(("change", "message"), [
    ({"world_size": 0}, "world_size: expected a whole number above 0, got 0"),
    ({"world_size": True}, "world_size: expected a whole number above 0, got True"),
    ({"num_layers": "8"}, "num_layers: expected a whole number above 0, got '8'"),
    ({"tensor_parallel_size": -1}, "tensor_parallel_size: expected a whole number above 0"),
    ({"num_layers_per_virtual_pipeline_stage": 0}, "num_layers_per_virtual_pipeline_stage:"),
    ({"world_size": 1028}, "world_size: expected at most 1024, got 1028"),
    ({"num_layers": 258}, "num_layers: expected at most 256, got 258"),
    ({"world_size": 6}, "world_size: 6 ranks cannot be shared out over tensor_parallel_size 2 times"
                        " pipeline_parallel_size 2"),
    ({"num_layers": 7}, "num_layers: 7 layers cannot be shared out over 2 stages"),
    ({"pipeline_parallel_size": 4, "standalone_embedding_stage": True},
     "num_layers: 8 layers cannot be shared out over 3 stages"),
    ({"pipeline_parallel_size": 1, "standalone_embedding_stage": True}, "at least 2 are needed"),
    ({"num_layers_per_virtual_pipeline_stage": 3}, "4 layers of a stage cannot be shared out over"),
    ({"pipeline_parallel_size": 1, "num_layers_per_virtual_pipeline_stage": 2},
     "virtual stages need at least 2 stages"),
    ({"standalone_embedding_stage": 1}, "standalone_embedding_stage: expected True or False"),
    ({"order": "tp-pp"}, "does not name dp"), ({"order": "tp-xx"}, 'unknown dimension "xx"'),
    ({"order": "ep-tp-dp-pp"}, "ep must stand beside dp")])
def test_what_cannot_be_shared_out(change: dict[str, object], message: str) -> None:
    sizes: dict[str, object] = {"world_size": 8, "num_layers": 8, "tensor_parallel_size": 2,
                                "pipeline_parallel_size": 2}
    with pytest.raises(ValueError, match=re.escape(message)):
        plumbline.ParallelConfig(**{**sizes, **change})  # type: ignore[arg-type]


def test_bad_command_lines(tmp_path: Path) -> None:
    for words, message in ((["--world-size", "8"], "--num-layers"),
                           (["--world-size", "-1", "--num-layers", "1"], "is no number"),
                           (["--world-size", "3", "--num-layers", "1", "--tp", "2"],
                            "world_size: 3"),
                           (["--world-size", "1024", "--num-layers", "256", "--pp", "2",
                             "--num-layers-per-virtual-pipeline-stage", "1"], "Write a .svg")):
        done = subprocess.run([PLUMB, "layout", *words, "-o", tmp_path / "x.png"], text=True,
                              capture_output=True, check=False)
        assert done.returncode == 2 and message in done.stderr
    assert not list(tmp_path.iterdir())
