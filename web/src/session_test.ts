import assert from "node:assert/strict";
import { test } from "node:test";
import type { Api, ChildrenQuestion } from "./api";
import { success } from "./result";
import { Session } from "./session";
import type { Meta, NodeRow } from "./types";

// root 0 > module 1 > call 2, of one recording.
const ROWS = [[-1, 1], [0, 1], [1, 0]].map(([parent, children], id) => ({
  id, parent, children, index: 0, depth: id, name: `node ${id}`, partner: -1,
}) as unknown as NodeRow);
const META = { kind: "graph", places: [{ step: 0, rank: 0, target_root: 0, golden_root: -1 }] } as unknown as Meta;

class FakeApi {
  // What answers to questions for the root wait for.
  root: Promise<void> = Promise.resolve();

  async path(_: string, id: number) {
    if (id === 0) await this.root;
    return success({ rows: ROWS.slice(0, id + 1), exact: true });
  }
  async children(_: string, question: ChildrenQuestion) {
    return success(question.nodes.map((node) => ({ node, offset: 0, total: 1, rows: ROWS.filter((row) => row.parent === node) })));
  }
  async node() {
    return success({ partner_row: null });
  }
}

test("what is chosen while other filters load is there when they have come", async () => {
  const api = new FakeApi();
  const session = new Session(api as unknown as Api, "0", META, { changed: () => undefined, failed: (error) => assert.fail(error.message) });
  await session.show(0, { ms: -1, q: "", base: "" });
  let release = (): void => undefined;
  api.root = new Promise((resolve) => { release = resolve; });
  const shown = session.show(0, { ms: -1, q: "", base: "older" });
  await session.select(ROWS[2] as NodeRow);
  const before = session.tree("target");
  release();
  await shown;
  assert.notEqual(session.tree("target"), before);
  assert.ok(session.tree("target")?.isVisible(2));
});

test("what is open stays open under other filters", async () => {
  const session = new Session(new FakeApi() as unknown as Api, "0", META, { changed: () => undefined, failed: (error) => assert.fail(error.message) });
  await session.show(0, { ms: -1, q: "", base: "" });
  await session.toggle(ROWS[1] as NodeRow, true);
  await session.show(0, { ms: -1, q: "name:a", base: "" });
  assert.ok(session.tree("target")?.isOpen(1));
});
