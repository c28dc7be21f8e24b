import assert from "node:assert/strict";
import { test } from "node:test";
import { makeFake } from "../../dev/fake";
import type { ChildrenQuestion } from "../api";
import { LocalApi } from "../local_api";
import { success } from "../result";
import { Tree } from "../tree";
import type { NodeRow } from "../types";
import { cellBox, contains, GraphLayout } from "./graph_layout";
import { OutlineRows } from "./outline_rows";

const FILTER = { ms: -1, q: "", base: "" };

async function openTree(api = new LocalApi(makeFake({ layers: 150, modules: 4, calls: 3, ranks: 1, steps: 1 }))): Promise<Tree> {
  const path = await api.path("0", 0);
  assert.ok(path.ok);
  const root = path.value.rows[0];
  assert.ok(root);
  const tree = new Tree(api, "0", root, FILTER, { changed: () => undefined, failed: (error) => assert.fail(error.message) });
  tree.want(root.id, 0, Infinity);
  await tree.settled();
  return tree;
}

// Opens nodes at random, so that sums of rows are not regular.
async function openSome(tree: Tree): Promise<void> {
  let seed = 5;
  for (let round = 0; round < 3; round++) {
    for (const row of [...tree.visible()]) {
      seed = (seed * 48271) % 2147483647;
      if (row.children > 0 && seed % 3 === 0 && row.id !== tree.root.id) tree.open(row);
    }
    await tree.settled();
  }
}

function expected(tree: Tree): NodeRow[] {
  return [...tree.visible()].slice(1);
}

test("rows of the outline are the visible nodes in order, before and after closing", async () => {
  const tree = await openTree();
  const rows = new OutlineRows(tree);
  assert.equal(rows.count, 151);
  await openSome(tree);
  for (const close of [0, 1]) {
    const want = expected(tree);
    assert.equal(rows.count, want.length);
    want.forEach((row, i) => {
      assert.equal(rows.at(i)?.row?.id, row.id);
      assert.equal(rows.indexOf(row.id), i);
    });
    const first = want.find((row) => tree.isOpen(row.id));
    assert.ok(first);
    if (close === 0) tree.close(first);
  }
  assert.equal(rows.at(rows.count), null);
  assert.equal(rows.at(-1), null);
});

test("boxes lie within their parents, apart from each other, and are found where they are", async () => {
  const tree = await openTree();
  await openSome(tree);
  const layout = new GraphLayout(tree);
  for (const row of expected(tree)) {
    const box = layout.boxOf(row.id);
    const outer = layout.boxOf(row.parent);
    assert.ok(box && outer);
    assert.ok(box.x >= outer.x && box.y >= outer.y);
    assert.ok(box.x + box.width <= outer.x + outer.width && box.y + box.height <= outer.y + outer.height);
    assert.equal(layout.at(box.x + 3, box.y + 3)?.row?.id, row.id);
  }
  const { segments } = layout.frame(tree.root.id);
  segments.forEach((a, i) => segments.slice(i + 1).forEach((b) => {
    assert.ok(!contains(a, b.x + 1, b.y + 1) && !contains(b, a.x + 1, a.y + 1));
  }));
  const run = segments.find((segment) => segment.open === null && segment.to - segment.from > 1);
  assert.ok(run);
  assert.ok(cellBox(run, run.from + 1).x > cellBox(run, run.from).x);
});

test("a node deep in the second page of a list is revealed by its path", async () => {
  const tree = await openTree();
  const api = new LocalApi(makeFake({ layers: 150, modules: 4, calls: 3, ranks: 1, steps: 1 }));
  const found = await api.find("0", { q: "\"layers.140.self_attn.k_proj\"", place: 0, side: "target" });
  assert.ok(found.ok && found.value.rows[0]);
  const path = await api.path("0", found.value.rows[0].id);
  assert.ok(path.ok);
  tree.closeAll();
  // Without its position it is found by halving the pages.
  const row = await tree.reveal(path.value.rows.map((each) => ({ ...each, index: -1 })));
  assert.equal(row?.id, found.value.rows[0].id);
  assert.ok(tree.isVisible(row.id));
});

test("what an answer leaves out to stay short is asked for until all is there", async () => {
  class ShortApi extends LocalApi {
    override async children(dataset: string, question: ChildrenQuestion) {
      const answer = await super.children(dataset, question);
      let room = 7;
      return answer.ok ? success(answer.value.map((list) => {
        const rows = list.rows.slice(0, room);
        room -= rows.length;
        return { ...list, rows };
      })) : answer;
    }
  }
  const api = new ShortApi(makeFake({ layers: 150, modules: 4, calls: 3, ranks: 1, steps: 1 }));
  const tree = await openTree(api);
  for (const row of [...tree.visible()]) if (row.children > 0) tree.open(row);
  await tree.settled();
  const all = [...tree.visible()].filter((row) => tree.isOpen(row.id));
  assert.ok(all.length > 100);
  for (const { id } of all) assert.equal(tree.branch(id)?.rows.filter((row) => row !== undefined).length, tree.branch(id)?.total);
});
