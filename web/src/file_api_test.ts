import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";
import { FileApi } from "./file_api";

const line = (kind: string, value: unknown): string => `${kind} ${deflateRawSync(JSON.stringify(value)).toString("base64")}`;

const HEADER = {
  mode: "statistics", target: "/a", golden: "/b", complete: true, warnings: ["rank 3 is missing"], certainty: { level: "medium", text: "statistics" }, counts: {},
  first_wrong_call: { name: "Functional.relu.0.forward", what: "output.0 is wrong", item: "Functional.relu.0.forward.output.0", cause: "scale", cause_text: "doubled", confidence: "high", stack_line: "", stack: [], module_path: [] },
};
// root > module > (linear, relu, a call without a partner); the second call's output is wrong.
const TARGET = {
  names: ["Model", "Module.m.M.forward.0", "Functional.linear.0.forward", "Functional.relu.0.forward", "Functional.extra.0.forward"],
  types: [0, 0, 1, 1, 1], parents: [-1, 0, 1, 1, 1], orders: [4, 3, 0, 1, 2], micro_steps: [0, 0, 0, 0, 0], levels: [-1, 0, 0, 2, -1],
  partners: [0, 1, 2, 3, -1], flags: [0, 0, 0, 0, 0], hidden: [0, 2, 0, 0, 0], total: 7,
};
const GOLDEN = { ...TARGET, names: ["", "", "", ""], types: [0, 0, 1, 1], parents: [-1, 0, 1, 1], orders: [3, 2, 0, 1], micro_steps: [0, 0, 0, 0], levels: [-1, -1, -1, -1], partners: [0, 1, 2, 3], flags: [0, 0, 0, 0], hidden: [0, 0, 0, 0], total: 4 };
const CALLS = {
  numbers: [0, 1, 2], target: [2, 3, 4], golden: [2, 3, -1], verdicts: [0, 3, 4], flags: [0, 3, 0], rows: [1, 1, 0], errors: [0, "inf", null], explained: [0, 1e-6, null],
  input_errors: [0, 0, null], stacks: [0, -1, -1], unmatched: [[2, 0]], pairings: [], texts: ["only-target"], frames: ["File a.py, line 1, in f"], foreign: [], lists: [[0]], total: 3,
};
const ROWS = {
  texts: ["torch.float32", "[2, 3]", "", "nonfinite", "<class 'float'>"],
  rows: [
    [1, ".output.0", 2, 3, 3, "nan", 1e-6, 0, 0, 1, 1, 2, ["f", "nan", -0.1, 0.5, 2], [1, -1, 0.5, 2], ["nan", 0, 0, 0, "nan", 0, 0, 0], [[3, 3]]],
    [1, ".input.1", 0, 0, 2, 0, 0, 4, 4, 2, 2, 2, [1.03], [1], []],
    [0, ".input.0", 0, 0, 2, 0, 0, 0, 0, 1, 1, 2, [1, 2, 3, 4], 1, [0, 0, 0, 0, 0, 0, 0, 0]],
  ],
};

function data(change: (kind: string, value: Record<string, unknown>) => Record<string, unknown> = (_, value) => value): string {
  const parts: [string, Record<string, unknown>][] = [
    ["page", { format: "plumbline page", version: 2, overview: null, answer: ["first wrong call: relu"], parts: 1 }],
    ["part", { label: "", step: null, rank: null, answer: ["first wrong call: relu"], header: HEADER, next_config: "", foreign: [], growth: [[1, "nan", 1e-6, 3]], evidence: null, evidence_left_out: false, reasons: { nonfinite: "NaN on one side", "only-target": "golden has no such call" } }],
    ["tree", { micro_steps: 1, counts: { pass: 2, warning: 0, error: 1, none: 0, unmatched_target: 1, unmatched_golden: 0 }, notes: [], target: TARGET, golden: GOLDEN }],
    ["calls", CALLS], ["rows", ROWS],
    ["end", { rows: 2, row_total: 9, calls: 3, call_total: 5, nodes: 5, node_total: 7, golden_nodes: 4, golden_node_total: 4 }],
  ];
  return parts.map(([kind, value]) => line(kind, change(kind, value))).join("\n");
}

test("a report's data become nodes, verdicts and values", async () => {
  const opened = await FileApi.open(data());
  assert.ok(opened.ok);
  const api = opened.value;
  const meta = await api.meta("0");
  assert.ok(meta.ok);
  assert.equal(meta.value.first?.id, 3);
  assert.match(meta.value.notes.join(), /leaves out 2 of 11 nodes/);
  assert.match(meta.value.notes.join(), /rank 3 is missing/);
  const children = await api.children("0", { nodes: [1, 0] });
  assert.ok(children.ok);
  const rows = children.value[0]?.rows ?? [];
  assert.deepEqual(rows.map((row) => [row.name, row.level, row.partner]), [
    ["Functional.linear.0.forward", "pass", 7], ["Functional.relu.0.forward", "error", 8], ["Functional.extra.0.forward", "unmatched", -1]]);
  assert.equal(rows[1]?.error, Infinity);
  const flow = await api.flow("0", 1, 1, 1);
  assert.ok(flow.ok);
  assert.deepEqual([flow.value.total, flow.value.rows.map(({ id }) => id)], [3, [3]]);
  assert.deepEqual([children.value[1]?.rows[0]?.worst, children.value[1]?.rows[0]?.errors, children.value[1]?.rows[0]?.unmatched], ["error", 1, 1]);
});

test("details have both sides, equal ones too, and say what was left out", async () => {
  const opened = await FileApi.open(data());
  assert.ok(opened.ok);
  const api = opened.value;
  const wrong = await api.node("0", 3);
  assert.ok(wrong.ok);
  const [value] = wrong.value.values;
  assert.deepEqual([value?.name, value?.verdict, value?.reason_text, value?.golden?.max, value?.target?.shape], ["output.0", "broken", "NaN on one side", 1, [2, 3]]);
  assert.ok(Number.isNaN(value?.target?.max));
  assert.equal(value?.target?.min, Math.fround(-0.1));
  assert.deepEqual(value?.notes, ["[nonfinite] nonfinite"]);
  const argument = wrong.value.values[1]?.golden;
  assert.deepEqual([argument?.type, argument?.value], ["float", 1]);
  const good = await api.node("0", 2);
  assert.ok(good.ok);
  assert.deepEqual(good.value.values[0]?.golden, good.value.values[0]?.target);
  assert.deepEqual(good.value.stack, ["File a.py, line 1, in f"]);
  const alone = await api.node("0", 4);
  assert.ok(alone.ok);
  assert.equal(alone.value.reason_text, "golden has no such call");
  const module = await api.node("0", 1);
  assert.ok(module.ok);
  assert.match(module.value.merge.join(), /2 calls within were left out/);
});

test("first is what the command names; queries and names find nodes", async () => {
  const opened = await FileApi.open(data());
  assert.ok(opened.ok);
  const api = opened.value;
  const first = await api.first("0", -1);
  assert.ok(first.ok);
  assert.deepEqual(first.value.rows.map((row) => [row.name, row.kind, row.why]), [
    ["Functional.relu.0.forward", "first", "output.0 is wrong"], ["Functional.extra.0.forward", "mismatch", "golden has no such call"]]);
  const found = await api.find("0", { q: "error>100", side: "target" });
  assert.ok(found.ok && found.value.total === 1);
  const path = await api.pathOf("0", "Functional.relu.0.forward.more", 0, "golden");
  assert.ok(path.ok);
  assert.equal(path.value.exact, false);
  assert.equal(path.value.rows.at(-1)?.name, "Functional.relu.0.forward");
  const missing = await api.structure("0", { place: 0 });
  assert.ok(!missing.ok && /plumb view/.test(missing.error.message));
});

test("damaged data are said to be damaged", async () => {
  for (const bad of ["", "page !!!", "nothing here", data().slice(0, 900), data((kind, value) => (kind === "tree" ? { ...value, target: { ...TARGET, parents: "x" } } : value)), data((kind, value) => (kind === "page" ? { ...value, version: 9 } : value))]) {
    const read = await FileApi.open(bad);
    assert.equal(read.ok, false, bad.slice(0, 40));
  }
});
