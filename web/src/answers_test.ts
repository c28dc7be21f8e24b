import assert from "node:assert/strict";
import { test } from "node:test";
import { decode } from "./decode";
import { heat, nodeName, seriesOf, trendMeta } from "./trend_answers";
import type { StructureRow } from "./types";
import { slice, worstElements } from "./value_answers";
import { distinctPairs } from "./views/structure";
import { joined } from "./views/trend";

const target = { id: 1, name: "Module.a.Linear.output.0", vppStage: 0, microStep: 2 };

test("cells keep NaN, infinities and gaps apart", () => {
  const axis = { kind: "step", total: 4, offset: 0, labels: [0, 1, 2, 3] };
  const got = decode(heat, { x: axis, y: { ...axis, kind: "module", total: 1, labels: [[1, "a", 0, 0]] }, cells: [["nan", "inf", null, 0]], min: 0, max: 0, mean: 0, deviation: 0 }, "heat");
  assert.ok(got.ok);
  assert.deepEqual(got.value.cells, [[NaN, Infinity, null, 0]]);
  assert.deepEqual(got.value.y.labels, [{ id: 1, name: "a", vppStage: 0, microStep: 0 }]);
});

test("a database without a metric is no fault of the page", () => {
  const got = decode(trendMeta, { metrics: [], ranks: [], steps: [], exact_steps: true, metric: null }, "meta");
  assert.equal(got.ok && got.value.metric, "");
});

test("elements keep all digits of an integer and both parts of a complex number", () => {
  const form = { dtype: "int64", shape: [2] };
  const worst = [{ index: [1], target: "9007199254740993", golden: [1, -2.5], difference: 1, relative: "inf" }];
  const got = decode(worstElements, { target: form, golden: form, worst }, "topk");
  assert.ok(got.ok);
  assert.deepEqual(got.value.worst[0], { index: [1], target: "9007199254740993", golden: "1 + −2.5i", difference: 1, relative: Infinity });
});

test("an answer of another form says where it is wrong", () => {
  const got = decode(slice, { target: null, golden: null, axes: [0, "1"] }, "values");
  assert.match(got.ok ? "" : got.error.message, /^values\.axes\[1\]: expected a whole number/);
});

test("the node of a series is found again", () => {
  assert.equal(nodeName(target, "forward"), "Module.a.Linear.forward.2");
  assert.equal(nodeName(target, "backward"), "Module.a.Linear.backward.2");
  assert.equal(nodeName({ ...target, name: "Module.a.Linear.parameters.weight" }, "recompute"), "Module.a.Linear.forward.2");
  assert.equal(nodeName({ ...target, name: "Functional.relu.output.0" }, "backward"), "Functional.relu.2.backward");
  assert.equal(nodeName({ ...target, name: "Module.a.Linear.weight" }, "parameters_grad"), "Module.a.Linear.parameters_grad");
});

test("a call is looked for among the series", () => {
  assert.deepEqual(seriesOf("Module.a.Linear.forward.0"), { metric: "forward", q: "Module.a.Linear" });
  assert.deepEqual(seriesOf("Functional.relu.3.backward"), { metric: "backward", q: "Functional.relu" });
});

test("lines of other steps share one axis with gaps, never 0", () => {
  const series = (values: number[], side: "target" | "against") => ({ target, rank: 3, side, values });
  const { x, lines } = joined([
    { x: [0, 2], series: [series([1, 3], "target"), series([5, 7], "against")], notes: [] },
    { x: [1, 2], series: [series([8, 9], "target")], notes: [] },
  ], "other");
  assert.deepEqual(x, [0, 1, 2]);
  assert.deepEqual(lines.map((line) => line.values), [[1, null, 3], [5, null, 7], [null, 8, 9]]);
  assert.deepEqual(lines.map((line) => line.isDashed), [false, true, false]);
});

test("a call that is suggested twice is paired once", () => {
  const named = (name: string) => ({ name }) as StructureRow["target"];
  const suggestion = (name: string) => ({ id: 1, name, score: 0.9, why: "" });
  const pairs = distinctPairs([
    { target: named("a"), golden: null, depth: 1, suggestion: suggestion("x") },
    { target: named("b"), golden: null, depth: 1, suggestion: suggestion("x") },
    { target: null, golden: named("y"), depth: 1, suggestion: suggestion("c") },
    { target: named("c"), golden: null, depth: 1, suggestion: suggestion("y") },
    { target: named("d"), golden: null, depth: 1, suggestion: null },
  ]);
  assert.deepEqual(pairs, [["a", "x"], ["c", "y"]]);
});
