import assert from "node:assert/strict";
import { test } from "node:test";
import { GAP, NAN_COLOUR, numberColour, rampColour } from "./colours";
import { scaleOf, symmetric, ticksOf } from "./scale";

test("a scale and its inverse agree at every place", () => {
  for (const [kind, low, high] of [["linear", -3, 9], ["log", 1e-6, 1e3], ["symlog", -40, 7]] as const) {
    const scale = scaleOf(kind, low, high);
    for (const at of [0, 0.01, 0.25, 0.5, 0.99, 1]) {
      assert.ok(Math.abs(scale.at(scale.value(at)) - at) < 1e-9, `${kind} at ${at}`);
    }
  }
});

test("decades are evenly spaced on a logarithm", () => {
  const scale = scaleOf("log", 1e-3, 1e3);
  assert.ok(Math.abs(scale.at(1) - 0.5) < 1e-12);
  assert.ok(Math.abs(scale.at(0.1) - 1 / 3) < 1e-12);
});

test("zero is the middle of a symmetric logarithm of a symmetric range", () => {
  const scale = scaleOf("symlog", -5, 5);
  assert.equal(scale.at(0), 0.5);
  assert.ok(Math.abs(scale.at(1e-3) + scale.at(-1e-3) - 1) < 1e-12);
});

test("a logarithm of a range with zero is a symmetric one", () => assert.equal(scaleOf("log", 0, 5).kind, "symlog"));

test("what lies outside stands at the ends, NaN nowhere", () => {
  const scale = scaleOf("linear", 0, 1);
  assert.deepEqual([scale.at(-9), scale.at(Infinity)], [0, 1]);
  assert.ok(Number.isNaN(scale.at(NaN)));
});

test("a range of one value has one mark and no division by zero", () => {
  const scale = scaleOf("linear", 4, 4);
  assert.deepEqual(ticksOf(scale, 5), [4]);
  assert.equal(scale.at(4), 0);
});

test("marks are round numbers within the range", () => {
  assert.deepEqual(ticksOf(scaleOf("linear", 0.1, 0.9), 4), [0.2, 0.4, 0.6, 0.8]);
  const ticks = ticksOf(scaleOf("log", 0.001, 1000), 6);
  assert.equal(ticks[0], 0.001);
  assert.equal(ticks.at(-1), 1000);
});

test("differences have 0 in their middle", () => assert.deepEqual(symmetric({ low: -1, high: 4 }), { low: -4, high: 4 }));

test("a gap, NaN and numbers have different colours", () => {
  const scale = scaleOf("linear", 0, 1);
  assert.equal(numberColour(null, scale, "sequential"), GAP);
  assert.equal(numberColour(NaN, scale, "sequential"), NAN_COLOUR);
  assert.equal(numberColour(0, scale, "sequential"), 0x440154);
  assert.equal(numberColour(1, scale, "sequential"), 0xfde725);
  assert.equal(rampColour("diverging", 0.5), 0xf7f7f7);
});
