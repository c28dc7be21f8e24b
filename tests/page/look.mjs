// Every view once: nothing that keeps a person from reading it, and a picture for those who look.
import assert from "node:assert/strict";
import { axeFaults } from "./browser.mjs";

const CALL = { node: "Tensor.__mul__.5.forward", param: "output.0" };
const TITLES = { errors: "Errors", slice: "Heat map", worst: "Worst elements", channels: "Channels" };

// Name -> result, what stands in the address, and what must have come.
const VIEWS = {
  open: ["", {}, ".datasets"],
  graph: ["new", { view: "graph" }, ".pane canvas"],
  outline: ["new", { view: "outline", ...CALL }, ".tree-row.chosen"],
  list: ["new", { view: "list", q: "level:error", ...CALL }, "[role=row][aria-rowindex]"],
  first: ["new", { view: "first" }, "[role=row][aria-rowindex]"],
  value: ["new", { view: "value", ...CALL }, ".fact-table"],
  ...Object.fromEntries(Object.keys(TITLES).map((show) => [`value_${show}`, ["new", { view: "value", "x.show": show, ...CALL }, `.section[aria-label="${TITLES[show]}"] :is(canvas, [role=grid])`]])),
  structure: ["built", { view: "structure" }, "[role=row][aria-rowindex]"],
  timeline: ["new", { view: "timeline", node: "Distributed.all_reduce.0.forward" }, ".heat canvas"],
  ranks: ["new", { view: "ranks" }, "canvas"],
  layout: ["new", { view: "ranks", "x.tp": 1, "x.pp": 2, "x.layers": 4 }, ".layout-picture"],
  table: ["table", { "x.part": 1 }, ".whole-row dl"],
  overflow: ["hot", { view: "overflow" }, "[role=row][aria-rowindex]"],
  node_trend: ["new", { view: "trend", ...CALL }, ".uplot"],
  trend: ["trend", {}, ".heat canvas"],
  alerts: ["trend", { "x.show": "alerts" }, ".section [role=grid]"],
  baseline: ["new", { view: "baseline" }, "[role=row][aria-rowindex]"],
  summary: ["new", { view: "summary" }, "[role=row][aria-rowindex]"],
};

async function check(world, name, shots) {
  const [result, parameters, there] = VIEWS[name];
  const { page } = world;
  const base = name === "baseline" ? { base: world.ids.older } : {};
  if (result === "") await page.goto(`${world.server.base}g/`).catch(() => {});
  if (result === "") await showList(world);
  else await world.goto(result, { ...parameters, ...base });
  await page.locator(there).first().waitFor();
  await page.waitForFunction(() => document.querySelector("[aria-busy=true]") === null);
  await page.screenshot({ path: `${shots}_${name}.png` });
  const cut = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth +
    [...document.querySelectorAll(".tab-tools > *, .tools > *, .chips > *")].filter((each) => each.getBoundingClientRect().right > innerWidth).length);
  assert.ok(cut <= 0, "something is cut off at the right");
  assert.deepEqual(await axeFaults(page), []);
}

async function showList(world) {
  await world.goto("new");
  await world.page.locator(".brand").click();
}

async function dialogs({ page }, world) {
  await world.goto("new");
  for (const key of ["?", "g"]) {
    await page.keyboard.press(key);
    await page.getByRole("dialog").waitFor();
    assert.deepEqual(await axeFaults(page), []);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
  }
}

export function viewTests(world, shots) {
  return [
    ...Object.keys(VIEWS).map((name) => [`view ${name}`, () => check(world, name, shots)]),
    ["view dialogs", () => dialogs(world, world)],
  ];
}
