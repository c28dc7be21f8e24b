import assert from "node:assert/strict";
import { test } from "node:test";
import { barHeight, flowFrom, largestJump } from "./panels/flow";
import { formatBytes, formatError, formatNumber, formatRecorded, shortName } from "./format";
import { speaker } from "./texts";
import { fitted } from "./views/graph_pen";

test("numbers", () => {
  assert.equal(formatNumber(NaN), "NaN");
  assert.equal(formatNumber(-Infinity), "−Inf");
  assert.equal(formatNumber(-3), "−3");
  assert.equal(formatNumber(0.1234567), "0.123457");
  assert.equal(formatNumber(1.5e-9), "1.5000e−9");
  assert.equal(formatNumber(null), "");
  assert.equal(formatError(0.31), "0.31");
  assert.equal(formatError(1.5e-7), "1.5e−7");
  assert.equal(formatBytes(3 * 1024 * 1024), "3.0 MiB");
});

test("recorded arguments stand as Python writes them", () => {
  const written = (value: unknown, type = "float") => formatRecorded(value, type);
  assert.deepEqual([1e-5, 1.03, 1, -2.5e-7, 1e16, 1e-10, 0.0001, 0].map((value) => written(value)),
    ["1e-05", "1.03", "1.0", "-2.5e-07", "1e+16", "1e-10", "0.0001", "0.0"]);
  assert.deepEqual([written(1, "int"), written(1e16, "int"), written(true, "bool"), written(null, "NoneType"), written("nan"), written([1, 1e-5], "list")],
    ["1", "10000000000000000", "true", "null", "nan", "[1, 1e-05]"]);
});

test("names keep what tells them from their siblings", () => {
  assert.equal(shortName("Module.model.layers.3.mlp.down_proj.Linear.forward.0", "module"), "down_proj.Linear.forward.0");
  assert.equal(shortName("Module.model.layers.3.LlamaDecoderLayer.forward.0", "module"), "layers.3.LlamaDecoderLayer.forward.0");
  assert.equal(shortName("Functional.linear.12.forward", "api"), "linear.12.forward");
  assert.equal(shortName("model.layers.3.mlp.weight", "fused"), "layers.3.mlp.weight");
  assert.equal(shortName("", "root"), "model");
});

test("labels are cut to their room and cannot turn their surroundings around", () => {
  assert.equal(fitted("abcdef", 100, 10), "abcdef");
  assert.equal(fitted("abcdefghij", 31, 10), "abcd…");
  assert.equal(fitted("abc", 5, 10), "");
  const turned = fitted("a\u202eb", 100, 10);
  assert.ok(turned.startsWith("\u2068") && turned.endsWith("\u2069"));
});

test("the flow shows a child with others on both sides", () => {
  assert.deepEqual([-1, 0, 199, 200, 399, 400, 1500].map(flowFrom), [0, 0, 0, 100, 100, 300, 1300]);
});

test("the flow marks where the error is made", () => {
  const row = (input: number | null, output: number | null) => ({ input_error: input, error: output }) as Parameters<typeof largestJump>[0][number];
  assert.equal(largestJump([row(0, 1e-7), row(1e-7, 0.3), row(0.3, 0.5)]), 1);
  assert.equal(largestJump([row(0.3, 0.31), row(0.3, 0.3)]), -1);
  assert.equal(largestJump([row(1e-7, NaN)]), 0);
  assert.equal(barHeight(NaN), 1);
  assert.equal(barHeight(null), 0);
});

test("both languages have every text, and arguments stand where they belong", () => {
  assert.equal(speaker("en")("hits.count", 3, "10"), "3 of 10");
  assert.equal(speaker("zh")("level.error"), "错误");
});
