import assert from "node:assert/strict";
import { test } from "node:test";
import { failure, success } from "../result";
import { Pages } from "./pages";

const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

function listOf(total: number): { pages: Pages<number>; asked: number[] } {
  const asked: number[] = [];
  const pages = new Pages<number>((offset, limit) => {
    asked.push(offset);
    return Promise.resolve(success({ total, rows: Array.from({ length: Math.min(limit, total - offset) }, (_, i) => offset + i) }));
  }, 10, () => undefined);
  return { pages, asked };
}

test("only the pages in sight are asked for, each once", async () => {
  const { pages, asked } = listOf(1000);
  pages.want(0, 1);
  await settled();
  pages.want(495, 512);
  pages.want(495, 512);
  await settled();
  assert.deepEqual(asked, [0, 490, 500, 510]);
  assert.equal(pages.row(507), 507);
  assert.equal(pages.row(600), undefined);
});

test("nothing is asked for behind the end", async () => {
  const { pages, asked } = listOf(12);
  pages.want(0, 1);
  await settled();
  pages.want(0, 500);
  await settled();
  assert.deepEqual(asked, [0, 10]);
  assert.equal(pages.row(11), 11);
  assert.equal(pages.row(12), undefined);
});

test("a failure is told, not shown as an empty list", async () => {
  const pages = new Pages<number>(() => Promise.resolve(failure("no-answer", "gone")), 10, () => undefined);
  pages.want(0, 1);
  await settled();
  assert.equal(pages.failure?.message, "gone");
  assert.equal(pages.total, -1);
});

test("an answer that is cut short is asked for to its end", async () => {
  const asked: number[] = [];
  const pages = new Pages<number>((offset, limit) => {
    asked.push(offset);
    return Promise.resolve(success({ total: 25, rows: Array.from({ length: Math.min(limit, 4, 25 - offset) }, (_, i) => offset + i) }));
  }, 10, () => undefined);
  pages.want(0, 25);
  await settled();
  pages.want(0, 25);
  await settled();
  assert.deepEqual([...pages.known()].map(([i, row]) => [i, row]), Array.from({ length: 25 }, (_, i) => [i, i]));
  assert.equal(new Set(asked).size, asked.length);
});
