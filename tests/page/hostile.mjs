// Names that try to be more than names.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { newContext, SIZES } from "./browser.mjs";
import { Server } from "./served.mjs";

const NAMES = {
  markup: "Module.<script>window.hurt=1</script><img src=x onerror=window.hurt=1>.\"quoted'&amp;.forward.0",
  long: `Module.${"deep_".repeat(818)}.Linear.forward.0`,
  bidi: "Module.\u202eevil\u2066\u200f.שלום.Linear.forward.0",
  emoji: "Module.🧪👩‍👩‍👧.层.Linear.forward.0",
};

function record(directory, factor) {
  mkdirSync(directory, { recursive: true });
  const tensor = (norm) => ({ type: "torch.Tensor", dtype: "torch.float32", shape: [2, 2], Max: norm, Min: -norm, Mean: 0.5 * norm, Norm: norm, requires_grad: false });
  const names = Object.values(NAMES);
  const data = Object.fromEntries(names.map((name, i) => [name, { input_args: [tensor(i + 1)], input_kwargs: {}, output: [tensor((i + 2) * factor)] }]));
  const write = (name, value) => writeFileSync(`${directory}/${name}`, JSON.stringify(value));
  write("dump.json", { task: "statistics", level: "L0", framework: "pytorch", dump_data_dir: null, data });
  write("construct.json", Object.fromEntries(names.map((name) => [name, null])));
  write("stack.json", Object.fromEntries(names.map((name) => [name, ["File \"<b>/a.py\", line 1, in <i>, \n </pre><script>window.hurt=1</script>"]])));
}

// Shown as they are, in a tree, in the list of hits and below, and nothing of them ran.
async function isShown(page, server, id, name) {
  await page.goto(`${server.base}g/${id}?${new URLSearchParams({ view: "outline", node: name, q: "is:leaf" })}`);
  const more = page.locator(".details .full-name .plain");
  const item = page.locator("[role=treeitem][aria-selected=true]").first();
  await item.waitFor();
  assert.equal(await item.getAttribute("title"), name);
  if (name.length > 200) await more.click();
  await page.waitForFunction((wanted) => document.querySelector(".details .full-name .name")?.textContent === wanted, name);
  await page.locator(`.hit`).first().waitFor();
  assert.ok((await page.locator(".hit").evaluateAll((hits) => hits.map((hit) => hit.title))).includes(name));
  for (const view of ["Graph", "List", "First divergence", "Structure", "Summary"]) {
    await page.getByRole("tab", { name: view, exact: true }).click();
    await page.locator("[role=tab][aria-selected=true]", { hasText: view }).first().waitFor();
  }
  assert.equal(await page.evaluate(() => window.hurt), undefined);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
}

export async function hostileTests(browser, world, { dist, faults, atEnd }) {
  const [bad, good] = ["bad", "good"].map((name) => `${world.scratch}/hostile/${name}`);
  record(`${bad}/step0/rank0`, 1.5);
  record(`${good}/step0/rank0`, 1);
  const server = await Server.start(world.plumb, [bad, good, "--no-cache"]);
  const context = await newContext(browser, { scheme: "light", size: SIZES[0], dist, faults });
  const page = await context.newPage();
  await page.goto(server.address);
  const { datasets } = await server.ask("datasets");
  atEnd.push(() => server.stop());
  return Object.entries(NAMES).map(([kind, name]) => [`hostile name: ${kind}`, page, () => isShown(page, server, datasets[0].id, name)]);
}
