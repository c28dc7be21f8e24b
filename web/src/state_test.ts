import assert from "node:assert/strict";
import { test } from "node:test";
import { formatState, NO_STATE, parseState, type State } from "./state";

const FULL: State = {
  dataset: "a/b 1", view: "first", step: 0, rank: 3, ms: 1, side: "golden", node: "Module.<script>.层.0 & \"x\"", param: "output.0",
  q: "level:error \"a b\"", base: "2", colours: "overflow", cam: { x: -12.5, y: 1e5, zoom: 0.125 }, extra: { metric: "norm" },
};

test("a state survives its address", () => {
  assert.deepEqual(parseState(formatState(FULL)), FULL);
  assert.deepEqual(parseState(`/${formatState(FULL)}`), FULL);
  assert.deepEqual(parseState(formatState({ ...NO_STATE, dataset: "0" })), { ...NO_STATE, dataset: "0" });
});

test("what is as usual is left out of the address", () => {
  assert.equal(formatState(NO_STATE), "");
  assert.equal(formatState({ ...NO_STATE, dataset: "0" }), "g/0");
});

test("the documented form of a link is read", () => {
  const state = parseState("/g/llama?step=0&rank=3&ms=-1&side=n&node=Module.layers.3.mlp&view=value&param=output.0&q=level:error&cam=1,2,3");
  assert.equal(state.dataset, "llama");
  assert.deepEqual([state.step, state.rank, state.ms, state.side], [0, 3, -1, "target"]);
  assert.deepEqual([state.view, state.param, state.q], ["value", "output.0", "level:error"]);
  assert.deepEqual(state.cam, { x: 1, y: 2, zoom: 3 });
});

test("a hostile address becomes no state, not a failure", () => {
  for (const address of ["g/%E0%A4%A", "g/../x", "?step=1e99&cam=1,2", "g/0?cam=NaN,1,1&step=-5&rank=9999999999999", "//evil/g/0"]) {
    const state = parseState(address);
    assert.equal(state.cam, null);
    assert.equal(state.step, -1);
    assert.equal(state.rank, -1);
  }
});
