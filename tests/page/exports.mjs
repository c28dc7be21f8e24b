// Files that the page writes, held to the recordings that they are made of.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { ask } from "./truth.mjs";

const CALL = "Tensor.__mul__.5.forward";

// One file out of the dialog that is open, by its button.
async function written({ page, scratch }, hand, dialog, format) {
  await hand.press(dialog.getByRole("button", { name: format, exact: true }));
  const link = dialog.locator(`.jobs a[download$=".${format.toLowerCase()}"]`);
  await link.waitFor();
  const [file] = await Promise.all([page.waitForEvent("download"), hand.press(link)]);
  const path = `${scratch}/export.${format.toLowerCase()}`;
  await file.saveAs(path);
  return path;
}

const cellsOf = (line) => [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].slice(0, -1).map(([, cell]) => cell.replace(/^"|"$/g, "").replaceAll('""', '"'));
const linesOf = (text) => text.trimEnd().split(/\r?\n/).map(cellsOf);

// What the query finds, no more and no less, each with its own error.
async function checkTables({ server, ids }, csv, xlsx, q) {
  const { rows: found, total } = await server.ask(`d/${ids.new}/find?${new URLSearchParams({ q, place: 0, limit: 1000 })}`);
  const name = found.fields.indexOf("name");
  const [head, ...rows] = linesOf(readFileSync(csv, "utf8").replace(/^\ufeff/, ""));
  const at = head.findIndex((title) => /name/i.test(title));
  assert.ok(at >= 0, `no column of names: ${head}`);
  assert.equal(rows.length, total);
  assert.deepEqual(rows.map((row) => row[at]), found.rows.map((row) => row[name]));
  const sheet = ask("sheet", xlsx);
  assert.deepEqual(sheet.map((row) => row[sheet[0].indexOf(head[at])]), [head[at], ...rows.map((row) => row[at])]);
}

// By side, step and rank the nodes of the recording, with levels and counterparts.
function checkGraph({ facts }, path) {
  const graph = ask("graph", path);
  for (const [side, name] of [["NPU", "new"], ["Bench", "good"]]) {
    for (const [step, rank] of [[0, 0], [0, 1], [1, 0], [1, 1]]) {
      const nodes = graph[`${side} ${step} ${rank}`];
      const { parents } = facts.place(name, step, rank);
      const missing = Object.keys(parents).filter((call) => !(call in nodes));
      assert.deepEqual(missing, [], `${side} ${step} ${rank}`);
    }
  }
  const { [CALL]: wrong, "Functional.embedding.0.forward": right } = graph["NPU 0 0"];
  assert.deepEqual([wrong.level, wrong.partner, right.level, right.partner], [1, CALL, 0, "Functional.embedding.0.forward"]);
  const [told] = Object.values(graph["NPU 0 0"][CALL].outputs);
  assert.equal(Number(told.Norm).toPrecision(6), facts.place("new").output(CALL).Norm.toPrecision(6));
}

function checkVis({ facts }, path) {
  const { NPU, Bench, MicroSteps, mp_meta: meta } = JSON.parse(readFileSync(path, "utf8"));
  for (const [side, name] of [[NPU, "new"], [Bench, "good"]]) {
    assert.deepEqual(Object.keys(facts.place(name).parents).filter((call) => !(call in side.node)), []);
  }
  assert.equal(Number(MicroSteps), 1);
  const { [CALL]: wrong } = NPU.node;
  assert.equal(wrong.data.precision_index, 1);
  assert.equal(wrong.matched_node_link.at(-1), CALL);
  assert.match(JSON.stringify(meta), new RegExp(CALL.replaceAll(".", "\\.")));
}

// The page in it gives the same answer, opened without a server.
async function checkPage({ page, answers }, path) {
  const other = await page.context().newPage();
  await other.goto(pathToFileURL(path).href);
  assert.equal(await other.locator(".answer .lead").innerText(), answers.new);
  await other.getByRole("tab", { name: "First divergence", exact: true }).click();
  await other.locator(`[role=row][title="${CALL}"]`).first().waitFor();
  await other.close();
}

export async function exportTask(world, hand, dialog) {
  const files = {};
  for (const format of ["CSV", "XLSX", "HTML", "VIS.DB"]) files[format] = await written(world, hand, dialog, format);
  // One file for each rank and step, in an archive.
  await hand.press(dialog.getByRole("button", { name: "VIS", exact: true }));
  await dialog.locator('.jobs a[download$=".vis.zip"]').waitFor();
  await checkTables(world, files.CSV, files.XLSX, new URL(world.page.url()).searchParams.get("q") ?? "");
  checkGraph(world, files["VIS.DB"]);
  await checkPage(world, files.HTML);
  await world.goto("one");
  await hand.press(world.page.getByRole("button", { name: "Export", exact: true }));
  checkVis(world, await written(world, hand, world.page.getByRole("dialog"), "VIS"));
}
