// Over tests/data/page_data.txt, which the program wrote (tests/data/make_page_data.py): two steps of
// two ranks, of which rank 1 is wrong in step 1.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { FileApi } from "../file_api";
import { filtered } from "./row_table";
import { positionOf } from "./evidence_card";
import { rangeOf, ticksOf } from "./plot";

const TEXT = readFileSync(new URL("../../../../tests/data/page_data.txt", import.meta.url), "utf8");
const WRONG = "Torch.exp.0.forward";

async function opened(): Promise<FileApi> {
  const api = await FileApi.open(TEXT);
  assert.ok(api.ok, api.ok ? "" : api.error.message);
  return api.value;
}

test("meta has every rank of every step, and the answer over them", async () => {
  const meta = await (await opened()).meta("0");
  assert.ok(meta.ok);
  const { answer, first, places, steps, ranks, notes } = meta.value;
  assert.match(answer[0] ?? "", /^first wrong call: step 1 rank 1 Torch\.exp\.0\.forward/);
  assert.deepEqual([first?.name, first?.place, steps, ranks], [WRONG, 3, [0, 1], [0, 1]]);
  assert.deepEqual(places.map(({ step, rank, counts }) => [step, rank, counts.error, counts.unmatched_target]),
    [[0, 0, 0, 0], [0, 1, 0, 0], [1, 0, 3, 0], [1, 1, 4, 1]]);
  assert.ok(notes.every((note) => !note.includes("leaves out")));
});

test("ids follow each other over the places, the target before golden", async () => {
  const api = await opened();
  const meta = await api.meta("0");
  assert.ok(meta.ok);
  for (const place of meta.value.places) {
    assert.equal(place.golden_root, place.target_root + place.nodes);
    for (const [root, count] of [[place.target_root, place.nodes], [place.golden_root, place.golden_nodes]] as const) {
      const path = await api.path("0", root);
      assert.ok(path.ok);
      assert.deepEqual([path.value.rows[0]?.type, path.value.rows[0]?.size, path.value.rows[0]?.parent], ["root", count, -1]);
    }
  }
});

test("the first row of first divergence is the call that the answer names", async () => {
  const first = await (await opened()).first("0", -1);
  assert.ok(first.ok);
  const [row] = first.value.rows;
  assert.deepEqual([row?.name, row?.kind, row?.level], [WRONG, "first", "error"]);
  assert.match(row?.why ?? "", /relative error 2\.5/);
  const kinds = first.value.rows.map(({ kind }) => kind);
  assert.deepEqual(kinds, [...kinds].sort((a, b) => "fsmc".indexOf(a[0] ?? "") - "fsmc".indexOf(b[0] ?? "")));
  assert.ok(first.value.rows.some(({ kind, name }) => kind === "mismatch" && name === "Torch.abs.0.forward"));
});

test("a node has the numbers of both sides, exact ones of single precision", async () => {
  const api = await opened();
  const found = await api.find("0", { q: WRONG, place: 3, side: "target" });
  assert.ok(found.ok);
  const node = await api.node("0", found.value.rows[0]?.id ?? -1);
  assert.ok(node.ok);
  const output = node.value.values.find(({ name }) => name === "output.0");
  assert.deepEqual([output?.verdict, output?.target?.max, output?.golden?.max, output?.target?.shape], ["broken", 9, 4, [4]]);
  assert.equal(output?.metrics["max diff"], 5);
  assert.equal(node.value.values.find(({ name }) => name === "input.0")?.target?.min, 0.25);
  assert.deepEqual(node.value.path, ["DefaultModel", "Module.net.Net.forward.0", WRONG]);
  assert.match(node.value.stack[0] ?? "", /a\.py, line 1/);
  assert.deepEqual(node.value.partner_row?.name, WRONG);
});

test("what is wrong within a node is told on both sides", async () => {
  const api = await opened();
  const meta = await api.meta("0");
  assert.ok(meta.ok);
  const place = meta.value.places[3];
  for (const root of [place?.target_root ?? -1, place?.golden_root ?? -1]) {
    const children = await api.children("0", { nodes: [root] });
    assert.ok(children.ok);
    const module = children.value[0]?.rows[0];
    assert.deepEqual([module?.worst, module?.errors], ["error", 4], `root ${root}`);
  }
});

test("queries for dtypes and shapes unpack the rows", async () => {
  const api = await opened();
  for (const [q, expected] of [["dtype:float32 flag:first", 2], ["shape:[4] level:unmatched", 1], ["dtype:bf16", 0]] as const) {
    const found = await api.find("0", { q });
    assert.ok(found.ok && found.value.error === null);
    assert.equal(found.value.total, expected, q);
  }
});

test("a value over the steps is that of its rank", async () => {
  const api = await opened();
  const found = await api.find("0", { q: WRONG, place: 3, side: "target" });
  assert.ok(found.ok);
  const series = await api.overSteps("0", found.value.rows[0]?.id ?? -1, "output.0");
  assert.ok(series.ok);
  assert.deepEqual([series.value.steps, series.value.target.max, series.value.golden.max, series.value.error], [[0, 1], [4, 9], [4, 4], [0, 2.5]]);
});

test("rows are found by words of name, reason and form", async () => {
  const { data } = await opened();
  await data.loadRows(3);
  const part = data.parts[3];
  assert.ok(part);
  const rows = [...(part.rows?.values() ?? [])].flat();
  assert.equal(rows.length, part.end.row_total);
  const all = { words: "", role: -1, verdicts: [true, true, true, true, true] };
  assert.equal(filtered(rows, part, { ...all, words: "EXP.0.forward output" }).length, 1);
  assert.equal(filtered(rows, part, { ...all, role: 2, verdicts: [false, false, false, true, false] }).every((row) => row.verdict === 3 && row.role === 2), true);
  assert.equal(filtered(rows, part, { ...all, words: "nothing of this" }).length, 0);
});

test("plots: ticks are few and round, places have one index per dimension", () => {
  assert.deepEqual(ticksOf({ low: 0, high: 1 }), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(ticksOf({ low: -6, high: 1, isLog: true }), [-6, -5, -4, -3, -2, -1, 0, 1]);
  assert.deepEqual(rangeOf([], 0.1), { low: 0, high: 1 });
  assert.equal(positionOf(23, [2, 3, 4]), "[1, 2, 3]");
  assert.equal(positionOf(0, []), "[]");
});
