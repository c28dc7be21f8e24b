// Recordings that are large or odd: what is looked for stands far from the beginning.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { newContext, SIZES } from "./browser.mjs";
import { Server } from "./served.mjs";

const MODULE = "Module.big.Big.forward.0";
const CALLS = 900;
const WRONG = 600;
const RANKS = 60;
const WRONG_RANK = 47;
const call = (i) => `Torch.mul.${i}.forward`;

const tensor = (norm, shape = [2, 2]) => ({ type: "torch.Tensor", dtype: "torch.float32", shape, Max: norm / 2, Min: -norm / 2, Mean: norm / 8, Norm: norm, requires_grad: false });

function writeJson(path, value) {
  writeFileSync(path, JSON.stringify(value));
}

// One call per rank; those of one rank stand in a module, and are wrong from one on.
function record(directory, factor) {
  for (let rank = 0; rank < RANKS; rank++) {
    const isLong = rank === WRONG_RANK;
    const made = (i) => {
      const [before, after] = [i - 1, i].map((at) => (isLong && at >= WRONG ? factor : 1));
      return { input_args: [tensor(before), { type: "float", value: 1e-5 }], input_kwargs: {}, output: [tensor(after)] };
    };
    const names = Array.from({ length: isLong ? CALLS : 1 }, (_, i) => call(i));
    const data = Object.fromEntries(names.map((name, i) => [name, made(i)]));
    if (isLong) data[MODULE] = { input_args: [tensor(1)], input_kwargs: {}, output: [tensor(factor)] };
    const parents = Object.fromEntries(Object.keys(data).map((name) => [name, isLong && name !== MODULE ? MODULE : null]));
    const at = `${directory}/step0/rank${rank}`;
    mkdirSync(at, { recursive: true });
    writeJson(`${at}/dump.json`, { task: "statistics", level: "mix", framework: "pytorch", dump_data_dir: null, data });
    writeJson(`${at}/construct.json`, parents);
    writeJson(`${at}/stack.json`, {});
  }
}

// A comparison in the form of other viewers: calls of other shapes than golden's, the first of merged ranks.
function mergedGraphs(names) {
  const side = (other, columns) => {
    const node = (name, i) => ({
      id: name, node_type: 0, data: { precision_index: 0 }, upnode: "DefaultModel", subnodes: [], matched_node_link: [`${other}DefaultModel`, `${other}${name}`],
      suggestions: {}, stack_info: [], micro_step_id: "0", input_data: {},
      output_data: { [`${name}.output.0`]: { type: "torch.Tensor", dtype: "torch.float32", shape: [2, columns], Max: 1, Min: 0, Mean: 0.5, Norm: 1 } },
      ...(i === 0 && other === "B___" && { parallel_merge_info: ["Merged over tensor parallel ranks [0, 1]"] }),
    });
    const root = { ...node("DefaultModel"), upnode: "None", subnodes: names, matched_node_link: [`${other}DefaultModel`], output_data: {} };
    return { root: "DefaultModel", node: Object.fromEntries([["DefaultModel", root], ...names.map((name, i) => [name, node(name, i)])]) };
  };
  return { NPU: side("B___", 8), Bench: side("N___", 4), ToolTip: "{}", Colors: { "#FFFCF3": { value: [0, 0.5], description: "" }, "#FF704D": { value: [0.5, 1], description: "" } }, MicroSteps: 1, task: "summary" };
}

const isInside = (page, inner, outer) => page.waitForFunction(([a, b]) => {
  const [own, all] = [a, b].map((each) => document.querySelector(each)?.getBoundingClientRect());
  return own && all && own.left >= all.left && own.right <= all.right;
}, [inner, outer]);

const TESTS = {
  async "the flow shows the chosen call of a long module"({ page, address }) {
    for (const i of [WRONG - 150, CALLS - 1, 3]) {
      await page.goto(address({ rank: WRONG_RANK, node: call(i), view: "outline" }));
      await page.locator(`.flow-bar.chosen[title^="${call(i)}"]`).waitFor();
      await isInside(page, ".flow-bar.chosen", ".flow-bars");
    }
    // Of the module itself: where the error is made, though nothing of the tree is open.
    await page.goto(address({ rank: WRONG_RANK, node: MODULE, view: "outline" }));
    await page.locator(`.flow-bar.jump[title^="${call(WRONG)}"]`).waitFor();
    await isInside(page, ".flow-bar.jump", ".flow-bars");
    assert.match(await page.locator(".flow-part").innerText(), / of 900$/);
  },

  async "an argument stands as it was recorded, below a heading of its own"({ page, address }) {
    await page.goto(address({ rank: WRONG_RANK, node: call(3), view: "outline" }));
    const argument = page.locator("table.values tbody", { hasText: "input.1" }).locator("td.mono[colspan]");
    await argument.first().waitFor();
    assert.deepEqual(await argument.allInnerTexts(), ["1e-05", "1e-05"]);
    const left = (locator) => locator.evaluate((element) => element.getBoundingClientRect().left);
    assert.equal(await left(argument.first()), await left(page.locator("table.values thead th").getByText("Value", { exact: true })));
  },

  async "notes of a file are seen at once"({ page, address, server, folder }) {
    const node = (id, other) => ({ id, subnodes: [other], upnode: other });
    writeJson(`${folder}/circle.vis`, { root: "a", node: { a: node("a", "b"), b: node("b", "a") } });
    await page.goto(address({}, await server.open(`${folder}/circle.vis`)));
    await page.getByRole("button", { name: /^notes: 2/ }).click();
    await page.locator(".answer-rest", { hasText: "are below themselves" }).waitFor();
  },

  async "a query beyond all limits is not asked"({ page, address }) {
    await page.goto(address({ rank: WRONG_RANK, view: "outline" }));
    const box = page.locator("#query");
    await box.fill("x".repeat(8500));
    await page.getByText(/too long.* 8 KiB/).waitFor();
    await page.keyboard.press("Enter");
    await box.fill(`${call(WRONG)} side:target`);
    await page.getByText(/too long/).waitFor({ state: "hidden" });
    await page.keyboard.press("Enter");
    await page.locator(".hits [role=status]", { hasText: "of 1" }).waitFor();
    assert.equal(await page.locator(".notice, .bad").allInnerTexts().then((texts) => texts.join("")), "");
  },

  async "merged ranks have other shapes by right"({ page, address, server, folder }) {
    writeJson(`${folder}/merged.vis`, mergedGraphs(["Module.merged.A.forward.0", "Module.alone.B.forward.0"]));
    const id = await server.open(`${folder}/merged.vis`);
    for (const [name, painted] of [["Module.merged.A.forward.0", 0], ["Module.alone.B.forward.0", 2]]) {
      await page.goto(address({ node: name, view: "outline" }, id));
      await page.locator(".details .full-name").getByText(name).waitFor();
      await page.locator("table.values").getByText("[2, 4]").waitFor();
      assert.equal(await page.locator("table.values .differs", { hasText: "[2, " }).count(), painted, name);
    }
  },

  async "the grid of ranks begins at the first wrong rank"({ page, address }) {
    for (const map of ["steps", "ranks"]) {
      await page.goto(address({ view: "ranks", "x.map": map }));
      await page.locator(".heat .reading", { hasText: `rank ${WRONG_RANK} — ` }).waitFor();
    }
  },
};

export async function oddTests(browser, world, { dist, faults, atEnd }) {
  const [bad, good] = ["bad", "good"].map((name) => `${world.scratch}/odd/${name}`);
  record(bad, 1.5);
  record(good, 1);
  const server = await Server.start(world.plumb, [bad, good, "--root", `${world.scratch}/odd`, "--no-cache"]);
  atEnd.push(() => server.stop());
  const context = await newContext(browser, { scheme: "light", size: SIZES[0], dist, faults });
  const page = await context.newPage();
  await page.goto(server.address);
  const [{ id }] = (await server.ask("datasets")).datasets;
  const address = (parameters, dataset = id) => `${server.base}g/${dataset}?${new URLSearchParams(parameters)}`;
  return Object.entries(TESTS).map(([name, body]) => [`odd: ${name}`, page, () => body({ page, address, server, folder: `${world.scratch}/odd` })]);
}
