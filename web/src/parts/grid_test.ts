import assert from "node:assert/strict";
import { test } from "node:test";
import { labelled, moveCursor, parallelPlace, windowOf, zoomed } from "./grid";

test("cells that fit are all shown, as large as they may be", () => {
  assert.deepEqual(windowOf(10, 200, 5, 30, 0, -1), { from: 0, to: 10, size: 20 });
  assert.deepEqual(windowOf(10, 900, 5, 30, 0, -1), { from: 0, to: 10, size: 30 });
});

test("the window follows the cursor past either end", () => {
  assert.deepEqual(windowOf(1000, 100, 10, 50, 0, 42), { from: 33, to: 43, size: 10 });
  assert.deepEqual(windowOf(1000, 100, 10, 50, 500, 7), { from: 7, to: 17, size: 10 });
  assert.deepEqual(windowOf(1000, 100, 10, 50, 5000, -1), { from: 990, to: 1000, size: 10 });
});

test("an empty grid and a place without pixels show nothing", () => {
  assert.deepEqual(windowOf(0, 100, 10, 50, 0, -1), { from: 0, to: 0, size: 10 });
  assert.deepEqual(windowOf(5, 0, 10, 50, 0, -1), { from: 0, to: 0, size: 10 });
});

test("labels keep their distance", () => assert.deepEqual(labelled({ from: 3, to: 10, size: 10 }, 25), [3, 6, 9]));

test("keys move the cursor and stop at the ends", () => {
  assert.equal(moveCursor("ArrowDown", 4, 5, 10), 4);
  assert.equal(moveCursor("PageUp", 12, 50, 10), 2);
  assert.equal(moveCursor("End", 0, 50, 10), 49);
  assert.equal(moveCursor("Home", 30, 50, 10), 0);
  assert.equal(moveCursor("x", 0, 50, 10), null);
  assert.equal(moveCursor("ArrowDown", 0, 0, 10), null);
});

test("zooming keeps the point where it is, inside the whole", () => {
  assert.deepEqual(zoomed({ from: 0, to: 100 }, 50, 0.5, 100), { from: 25, to: 75 });
  assert.deepEqual(zoomed({ from: 0, to: 100 }, 0, 0.5, 100), { from: 0, to: 50 });
  assert.deepEqual(zoomed({ from: 90, to: 100 }, 95, 2, 100), { from: 80, to: 100 });
  assert.deepEqual(zoomed({ from: 7, to: 8 }, 7, 0.5, 100), { from: 7, to: 8 });
  assert.deepEqual(zoomed({ from: 10, to: 90 }, 50, 4, 100), { from: 0, to: 100 });
});

test("ranks are numbered by tensor, data and pipeline part", () => {
  assert.deepEqual(parallelPlace(5, 8, 2, 2), { tp: 1, dp: 0, pp: 1 });
  assert.deepEqual(parallelPlace(3, 8, 2, 2), { tp: 1, dp: 1, pp: 0 });
  assert.equal(parallelPlace(0, 8, 3, 1), null);
  assert.equal(parallelPlace(0, 8, 0, 2), null);
});
