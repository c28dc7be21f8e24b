import assert from "node:assert/strict";
import { test } from "node:test";
import { operatorOf, parseQuery, type QueryNode } from "./query";
import type { NodeRow } from "./types";

const ROW: NodeRow = {
  id: 7, parent: 3, partner: 107, name: "Module.layers.3.self_attn.q_proj.Linear.forward.0", type: "module",
  children: 2, size: 3, depth: 2, index: 0, order: 5, level: "error", overflow: "high", worst: "warning",
  errors: 0, warnings: 1, unmatched: 0, ms: 1, error: 0.25, input_error: null, flags: 2 | 8, hits: -1, is_hit: false, change: "",
};

function node(change: Partial<NodeRow> = {}): QueryNode {
  return { row: { ...ROW, ...change }, side: "target", step: 2, rank: 3, dtypes: ["torch.bfloat16"], shapes: ["[2,8]"] };
}

const YES = [
  "", "level:error", "level:error,warning", "LEVEL:Error", "worst:warning", "overflow:high", "type:module", "op:linear",
  "dir:forward", "rank:3", "step:2", "ms:1", "dtype:bf16", "dtype:bfloat16", "shape:[2,8]", "side:target", "flag:source",
  "error>0.1", "error>=0.25", "error<0.3", "size>2", "Q_PROJ", "\"layers.3\"", "-level:pass", "-rank:1 -dtype:fp32",
  "level:error op:linear rank:3 dtype:bf16 error>0.1",
];
const NO = [
  "level:pass", "-level:error", "worst:error", "type:api", "op:q_proj", "dir:backward", "rank:1", "dtype:fp32", "shape:[8,2]",
  "side:golden", "flag:carrier", "is:leaf", "error>0.25", "input_error>0", "k_proj", "-\"layers.3\"",
];

test("queries hold of a node, or do not", () => {
  for (const query of YES) assert.equal(parseQuery(query).matches(node()), true, query);
  for (const query of NO) assert.equal(parseQuery(query).matches(node()), false, query);
});

test("an error that is no number is beyond every limit", () => {
  assert.equal(parseQuery("error>1000").matches(node({ error: NaN })), true);
  assert.equal(parseQuery("error<1000").matches(node({ error: NaN })), false);
  assert.equal(parseQuery("error>1000").matches(node({ error: Infinity })), true);
});

test("a faulty query says where and matches nothing", () => {
  const cases: readonly (readonly [string, number, RegExp])[] = [
    ["level:bad", 0, /expected none.*|expected pass/],
    ["q_proj nothing:1", 7, /'nothing:' is not known/],
    ["error>x", 0, /expected a number, got 'x'/],
    ["\"open", 0, /not closed/],
    ["rank:a", 0, /whole numbers/],
  ];
  for (const [query, at, message] of cases) {
    const { error, matches } = parseQuery(query);
    assert.equal(error?.at, at, query);
    assert.match(error?.message ?? "", message);
    assert.equal(matches(node()), false);
  }
});

test("the operator is the last part before the direction, without its number", () => {
  assert.equal(operatorOf("Functional.linear.3.forward"), "linear");
  assert.equal(operatorOf("Module.a.b.Linear.backward.0"), "linear");
  assert.equal(operatorOf("Tensor.__add__.0.forward"), "__add__");
});
