import assert from "node:assert/strict";
import { test } from "node:test";
import { decode, integer, list, nullable, number, record, table, text } from "./decode";
import { nodeRow } from "./decoders";

test("numbers that JSON lacks come as texts", () => {
  for (const [given, want] of [["nan", NaN], ["inf", Infinity], ["-inf", -Infinity], [1.5, 1.5]] as const) {
    const got = decode(number, given, "x");
    assert.ok(got.ok);
    assert.ok(Object.is(got.value, want));
  }
  assert.equal(decode(number, "1.5", "x").ok, false);
});

test("a wrong field is named with where it stands and what was there", () => {
  const point = record<{ readonly x: number; readonly names: readonly string[] }>({ x: integer, names: list(text) });
  const got = decode(point, { x: 1, names: ["a", 3] }, "answer");
  assert.equal(got.ok, false);
  if (!got.ok) assert.match(got.error.message, /^answer\.names\[1\]: expected a text, got 3/);
  assert.equal(decode(point, null, "answer").ok, false);
  assert.equal(decode(point, { x: 1.5, names: [] }, "answer").ok, false);
});

test("rows by columns become objects, whatever the order of the columns", () => {
  const row = record<{ readonly a: number; readonly b: string | null }>({ a: integer, b: nullable(text) });
  const got = decode(table(row), { fields: ["b", "more", "a"], rows: [["x", 0, 1], [null, 0, 2]] }, "t");
  assert.deepEqual(got, { ok: true, value: [{ a: 1, b: "x" }, { a: 2, b: null }] });
  assert.equal(decode(table(row), { fields: ["a"], rows: [["x"]] }, "t").ok, false);
});

test("a node with an unknown level is refused, not shown as good", () => {
  const row = {
    id: 1, parent: 0, partner: -1, name: "n", type: "api", children: 0, size: 1, depth: 1, order: 0, level: "fine",
    overflow: "", worst: "none", errors: 0, warnings: 0, unmatched: 0, ms: 0, error: null, input_error: null, flags: 0,
  };
  assert.equal(decode(nodeRow, row, "r").ok, false);
  assert.equal(decode(nodeRow, { ...row, level: "pass" }, "r").ok, true);
});
