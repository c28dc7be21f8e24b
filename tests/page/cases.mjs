// The tasks of a person, T1 to T13, each done with whatever hand is given and held to files.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { compare } from "./served.mjs";
import * as truth from "./truth.mjs";

const FIRST_MODULE = "Module.layers.1.norm.Norm.forward.0";
const MOST = "all_reduce";

const row = (table, i) => table.locator(`[aria-rowindex="${i + 2}"]`);
const grid = (page, name) => page.getByRole("grid", { name, exact: true });
const chosen = (page) => page.locator(".details .full-name");
const parameter = (page, name) => new URL(page.url()).searchParams.get(name);

async function until(page, name, value) {
  await page.waitForURL((url) => url.searchParams.get(name) === value);
}

async function download(page, begin) {
  const [file] = await Promise.all([page.waitForEvent("download"), begin()]);
  return file.path();
}

export const CASES = {
  async "T1 first look"(w, hand) {
    const { page } = w;
    await page.goto(`${w.server.base}g/${w.ids.new}`);
    await page.locator(".tabs").waitFor();
    await hand.press(page.locator(".brand"));
    await page.locator(".datasets").waitFor();
    const root = page.locator(".where button", { hasText: new RegExp(`^${w.recordings}$`) });
    const entry = page.locator("tr", { has: page.locator("td", { hasText: /^older$/ }) });
    await root.or(entry).first().waitFor();
    if (await root.count()) await hand.press(root);
    await entry.first().waitFor();
    const told = await entry.locator("td").allInnerTexts();
    assert.deepEqual([told[1], told[3], told[4], told[5], told[6]], ["recording", "2", "2", "tensor", "mix"]);
    await hand.press(entry.getByRole("button", { name: "as target" }));
    await hand.press(page.locator("tr", { has: page.locator("td", { hasText: /^good$/ }) }).getByRole("button", { name: "as golden" }));
    await hand.press(page.getByRole("button", { name: "Compare", exact: true }));
    await page.locator(".pane canvas").first().waitFor();
    assert.equal(await page.locator(".answer .lead").innerText(), w.answers.older);
  },

  async "T2 where it goes wrong first"(w, hand) {
    const { page } = w;
    await w.goto("new");
    await hand.view("First divergence");
    const list = grid(page, "First divergence");
    const first = row(list, 0);
    await first.waitFor();
    const wanted = /(\S+)$/.exec(w.answers.new)[1];
    assert.equal(await first.getAttribute("title"), wanted);
    await list.locator("[aria-selected=true]").waitFor();
    assert.equal(await list.locator("[aria-selected=true]").getAttribute("title"), wanted);
    // Why, the module, the line and the numbers stand on the same screen.
    const frame = w.place("new").frame(wanted, "make_recordings.py");
    for (const text of [/input\.1 is 1\.03 \(golden 1\.0\)/, `line ${frame.line}`]) {
      await page.locator(".answer, .details").getByText(text).first().waitFor();
    }
    assert.match(await page.locator(".details .crumbs").innerText(), /norm\.Norm/);
    const values = await page.locator("table.values tbody", { hasText: "input.1" }).locator("td.mono[colspan]").allInnerTexts();
    const given = ["new", "good"].map((name) => w.place(name).values(wanted).inputs[1].value);
    assert.deepEqual(values.map(Number), given);
    assert.equal(await page.getByText("its inputs are already wrong").count(), 0);
    if (hand.name === "mouse") {
      await row(list, 1).click();
      await first.dblclick();
    } else {
      await page.keyboard.press("j");
      await until(page, "node", FIRST_MODULE);
      await page.keyboard.press("k");
      await until(page, "node", wanted);
      await page.keyboard.press("Enter");
    }
    for (const pane of [0, 1]) await page.locator(`.pane [aria-label*="${wanted}"], .pane[aria-label*="${wanted}"]`).nth(pane).waitFor();
  },

  async "T3 a module or its input"(w, hand) {
    const { page } = w;
    await page.addInitScript(() => {
      window.clicks = 0;
      document.addEventListener("pointerdown", () => window.clicks++, true);
    });
    await w.goto("new");
    await hand.select(FIRST_MODULE);
    await until(page, "node", FIRST_MODULE);
    const makers = w.place("new").makersOfDifference(FIRST_MODULE, w.place("good"));
    const jump = page.locator(".flow-bar.jump");
    await jump.waitFor();
    assert.equal((await jump.getAttribute("title")).split("\n")[0], makers[0]);
    await hand.press(jump);
    await until(page, "node", makers[0]);
    await chosen(page).getByText(makers[0]).waitFor();
    // Its wrong value stands there, in no more clicks than a person is promised (spec: three).
    const given = ["new", "good"].map((name) => w.place(name).values(makers[0]).inputs[1].value);
    const values = page.locator("table.values tbody", { hasText: "input.1" }).locator("td.mono[colspan]");
    await values.first().waitFor();
    assert.deepEqual((await values.allInnerTexts()).map(Number), given);
    const clicks = await page.evaluate(() => window.clicks);
    assert.ok(hand.name === "mouse" ? clicks > 0 && clicks <= 3 : clicks === 0, `${clicks} clicks`);
  },

  async "T4 values"(w, hand) {
    const { page } = w;
    const call = "Functional.linear.2.forward";
    await w.goto("new", { node: call, view: "outline" });
    await hand.press(page.locator("table.values").getByRole("button", { name: "output.0" }));
    await until(page, "param", "output.0");
    const asked = page.waitForResponse((answer) => answer.url().includes("what=histogram"));
    await hand.view("Values");
    const drawn = await (await asked).json();
    const file = `dump_tensor_data/${call}.output.0.pt`;
    const [target, golden] = ["new", "good"].map((name) => truth.ask("counts", `${w.place(name).directory}/${file}`, JSON.stringify(drawn.edges)));
    assert.equal(target.elements, truth.product(w.place("new").output(call).shape));
    for (const [name, side] of [["target", target], ["golden", golden]]) {
      assert.deepEqual(drawn[name].counts, side.bins, name);
      for (const special of ["nan", "inf", "minus_inf", "zero"]) assert.equal(drawn[name][special], side[special], special);
    }
    const told = async (label) => (await page.locator(".fact-table tr", { has: page.locator("td:first-child", { hasText: label }) }).first()
      .locator("td").allInnerTexts()).slice(1, 3);
    for (const [label, key] of [[/^Elements$/, "elements"], [/^NaN$/, "nan"], [/^0$/, "zero"], [/^Min$/, "min"], [/^Max$/, "max"], [/^Mean$/, "mean"], [/^Norm$/, "norm"]]) {
      assert.deepEqual(await told(label), [target, golden].map((side) => truth.shown(side[key])), key);
    }
    for (const [key, side] of [["d", "target"], ["b", "golden"], ["x", "difference"]]) {
      if (hand.name === "keyboard") await hand.act(null, key);
      else if (key === "d") await hand.press(page.getByRole("tab", { name: "Heat map" }));
      if (hand.name === "mouse") await hand.choose(page.getByLabel(/^Show/), side);
      await until(page, "x.side", side);
    }
    const section = page.getByRole("tab", { name: "Heat map" });
    if (hand.name === "mouse") await page.getByRole("tab", { name: "Worst elements" }).click();
    else {
      await hand.reach(section);
      await page.keyboard.press("ArrowRight");
    }
    const worst = grid(page, "Worst elements");
    await row(worst, 0).waitFor();
    const wanted = truth.ask("worst", `${w.place("new").directory}/${file}`, `${w.place("good").directory}/${file}`);
    const line = await row(worst, 0).locator("[role=gridcell]").allInnerTexts();
    const shape = w.place("new").output(call).shape;
    const at = shape.map((_, i) => Math.floor(wanted.at / truth.product(shape.slice(i + 1))) % shape[i]);
    assert.ok(line.some((text) => String(text.match(/\d+/g)?.map(Number)) === String(at)), `${line}: ${at}`);
    assert.ok(line.includes(truth.shown(wanted.target)) && line.includes(truth.shown(wanted.golden)), `${line}: ${JSON.stringify(wanted)}`);
  },

  async "T5 filter"(w, hand) {
    const { page } = w;
    await w.goto("new", { view: "outline" });
    await hand.type(page.locator("#query"), "side:target op:linear shape:[2,6,16]");
    await page.keyboard.press("Enter");
    const count = w.place("new").countOf("linear", "[2,6,16]");
    await page.locator(".hits [role=status]", { hasText: new RegExp(`of ${count}$`) }).waitFor();
    await page.locator(".tree-row.faded").first().waitFor();
    const first = page.locator(".hit").first();
    if (hand.name === "mouse") await first.click();
    else {
      await hand.leave();
      await page.keyboard.press("j");
    }
    await until(page, "node", await first.getAttribute("title"));
    assert.match(parameter(page, "node"), /[Ll]inear/);
    await hand.type(page.locator("#query"), " level:nonsense");
    await page.keyboard.press("Enter");
    await page.locator(".query.fault").waitFor();
  },

  async "T6 unmatched calls"(w, hand) {
    const { page } = w;
    await w.goto("built");
    await hand.view("Structure");
    const table = grid(page, "Structure");
    const first = row(table, 0);
    await first.getByText("Functional.silu.0.forward").waitFor();
    assert.match(await first.innerText(), /Functional\.gelu\.0\.forward/);
    const pairs = () => JSON.parse(readFileSync(w.sidecar, "utf8"));
    if (hand.name === "mouse") await first.getByRole("button", { name: "Accept" }).click();
    else {
      await hand.row(table, 0);
      await page.keyboard.press("a");
    }
    await first.getByText("matched by hand").waitFor();
    // The result is made anew with it.
    await first.locator("[role=gridcell]").nth(1).getByText("Functional.gelu.0.forward").waitFor();
    // Its backward goes with it.
    await page.getByText("2 pairs by hand").waitFor();
    assert.match(JSON.stringify(pairs()), /silu\.0\.forward.*gelu\.0\.forward/);
    await hand.press(page.getByRole("button", { name: /^Undo/ }));
    await page.getByText("0 pairs by hand").waitFor();
    await first.getByText("— nothing —").waitFor();
    await first.getByRole("button", { name: "Accept" }).waitFor();
    await hand.press(page.getByRole("button", { name: /^Accept all/ }));
    await page.getByText("6 pairs by hand").waitFor();
    assert.ok(pairs().pairs === undefined || pairs().pairs.length === 6);
    // Each goes to what it fits best, and stays so.
    await page.reload();
    await page.getByText("6 pairs by hand").waitFor();
    await first.getByText("matched by hand").waitFor();
    const made = (await w.second.ask(`d/${w.ids.built}/matches`)).pairs.map((pair) => pair.join(" "));
    const wanted = ["forward", "backward"].flatMap((way) => [0, 1, 2].map((i) => `Functional.silu.${i}.${way} Functional.gelu.${i}.${way}`));
    assert.deepEqual(made.sort(), wanted.sort());
  },

  // After T6, whose pairs it writes down and then takes back.
  async "T7 mapping of names"(w, hand) {
    const { page } = w;
    await w.goto("built", { view: "structure" });
    await page.getByText("6 pairs by hand").waitFor();
    await hand.press(page.getByRole("button", { name: "Make mapping" }));
    const file = await download(page, () => hand.press(page.getByRole("button", { name: /^Save/ })));
    const yaml = readFileSync(file, "utf8");
    assert.match(yaml, /silu/);
    const left = (lines) => Number(/(\d+) unmatched target/.exec(lines.join("\n"))[1]);
    w.mapping ??= left(compare(w.plumb, `${w.recordings}/built`, `${w.recordings}/good`, "-o", `${w.scratch}/mapped`, "--format", "json", "-lm", file));
    assert.ok(w.mapping < w.unmatched, `${w.mapping} with the mapping, ${w.unmatched} without`);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await hand.act(page.getByRole("button", { name: /^Undo/ }), "Control+z");
    await page.getByText("0 pairs by hand").waitFor();
    assert.deepEqual((await w.second.ask(`d/${w.ids.built}/matches`)).pairs, []);
    await row(grid(page, "Structure"), 0).getByRole("button", { name: "Accept" }).waitFor();
  },

  async "T8 data between ranks"(w, hand) {
    const { page } = w;
    const call = "Distributed.all_reduce.0.forward";
    await w.goto("new", { node: call, view: "outline" });
    await chosen(page).getByText(call).waitFor();
    await hand.view("Communication");
    const peers = grid(page, "Peers");
    await row(peers, 0).waitFor();
    const told = (await row(peers, 0).locator("[role=gridcell]").allInnerTexts());
    assert.deepEqual([told[0], told[3]], ["1", call]);
    const output = w.place("new", 0, 1).output(call);
    assert.deepEqual(told.slice(4, 8), [output.Max, output.Min, output.Mean, output.Norm].map(truth.shown));
    const calls = Object.keys(w.place("new").calls).filter((name) => name.includes(MOST)).length;
    await page.getByText(`Communication of step 0: ${calls} calls`).waitFor();
    await hand.openRow(peers, 0);
    await until(page, "rank", "1");
    await hand.leave?.();
    if (hand.name === "mouse") await page.goBack();
    else await page.keyboard.press("Backspace");
    await page.waitForURL((url) => (url.searchParams.get("rank") ?? "0") === "0");
  },

  async "T9 where an overflow begins"(w, hand) {
    const { page } = w;
    await w.goto("hot");
    await hand.view("Overflows");
    const table = grid(page, "Overflows");
    await row(table, 0).waitFor();
    const rows = await table.locator("[aria-rowindex]").evaluateAll((lines) => lines.map((line) => [...line.querySelectorAll("[role=gridcell]")].map((cell) => cell.textContent)));
    const grades = ["critical", "high", "medium"];
    const places = rows.map(([grade, order]) => grades.findIndex((each) => grade.includes(each)) * 1e6 + Number(order));
    assert.deepEqual(places, [...places].sort((a, b) => a - b));
    assert.deepEqual(rows.filter(([grade]) => grade.includes("critical")).map(([, , name]) => name), w.place("hot").beginnersOfOverflow());
    const spread = page.getByLabel("As it spreads");
    if (hand.name === "mouse") await spread.check();
    else {
      await hand.reach(spread);
      await page.keyboard.press("Space");
    }
    await page.getByText(/calls after it overflow as well/).waitFor();
    await hand.press(page.getByRole("button", { name: "Show in the graph" }));
    await until(page, "colours", "overflow");
    if (hand.name === "keyboard") {
      await hand.act(null, "o");
      await until(page, "colours", null);
    }
  },

  async "T10 trends"(w, hand) {
    const { page } = w;
    const database = w.trend;
    await page.goto(`${w.server.base}g/${w.ids.trend}`);
    await hand.choose(page.getByLabel("Statistic"), "max");
    await until(page, "x.stat", "max");
    const canvas = page.locator(".heat canvas");
    await canvas.waitFor();
    await page.locator(".heat .reading", { hasText: ": " }).waitFor();
    if (hand.name === "keyboard") await hand.cell(canvas, 0, 0, 5, 1);
    else await hand.cell(canvas, 400, 80);
    const reading = /^(.*), Rank (\d+), Step (\d+): (.*)$/;
    const [, name, rank, step, value] = reading.exec(await page.locator(".heat .reading").innerText());
    const wanted = database.new[`${name} ${rank} ${step}`];
    assert.equal(value, truth.shown(wanted), name);
    if (hand.name === "keyboard") await page.keyboard.press("Enter");
    else await page.getByRole("button", { name: /^Draw as a line/ }).click();
    const line = page.locator(".lines li").first();
    await line.waitFor();
    const other = page.getByLabel("Against");
    await hand.choose(other, w.ids.trend_good);
    await until(page, "x.against", w.ids.trend_good);
    await page.locator(".lines li").nth(1).waitFor();
    await hand.choose(other, "");
    await until(page, "x.against", null);
    await page.locator(".lines li").nth(1).waitFor({ state: "detached" });
    if (hand.name === "mouse") await page.locator(".uplot .u-over").hover({ position: { x: 3, y: 20 } });
    else {
      await hand.reach(page.locator(".plot"));
      await page.keyboard.press("ArrowLeft");
    }
    const [, at, drawn] = /\[(\d+)\] (.*)$/.exec(await page.locator(".lines li", { hasText: "[" }).first().innerText());
    assert.equal(drawn, truth.shown(database.new[`${name} ${rank} ${at}`]));
    if (hand.name === "mouse") await page.getByRole("button", { name: /^Open the call/ }).click();
    else {
      await hand.reach(canvas);
      await page.keyboard.press("n");
    }
    await page.waitForURL((url) => url.searchParams.has("node") && (url.searchParams.get("step") ?? "0") === step);
    const node = parameter(page, "node");
    assert.equal(node.replace(/\.\d+\.(forward|backward)$/, "").split(".")[1], name.split(".")[1]);
    await chosen(page).waitFor();
  },

  async "T11 sharing"(w, hand) {
    const { page } = w;
    await w.goto("new", { node: FIRST_MODULE, q: "level:error" });
    await page.locator(".hits [role=status]", { hasText: "of" }).waitFor();
    await hand.leave?.();
    if (hand.name === "mouse") await page.mouse.move(700, 250);
    if (hand.name === "mouse") await page.mouse.wheel(0, 60);
    else for (const key of ["w", "d"]) await page.keyboard.press(key);
    await page.waitForURL((url) => url.searchParams.has("cam"));
    // There is one clipboard for all pages.
    const link = await w.alone(async () => {
      await hand.act(page.getByRole("button", { name: "Copy link" }), "Control+l");
      await page.getByText("Link copied.").waitFor();
      return page.evaluate(() => navigator.clipboard.readText());
    });
    assert.equal(link, page.url());
    const other = await page.context().newPage();
    await other.goto(link);
    await chosen(other).getByText(FIRST_MODULE).waitFor();
    assert.equal(await other.locator("#query").inputValue(), "level:error");
    await other.locator(".hits [role=status]", { hasText: "of" }).waitFor();
    assert.equal(other.url(), link);
    await other.close();
    await hand.press(page.getByRole("button", { name: "Export", exact: true }));
    const dialog = page.getByRole("dialog");
    const file = (name) => download(page, () => hand.press(dialog.getByRole("button", { name, exact: true })));
    const png = readFileSync(await file("PNG"));
    assert.equal(png.subarray(1, 4).toString(), "PNG");
    assert.ok(png.readUInt32BE(16) > 500 && png.readUInt32BE(20) > 100);
    const svg = readFileSync(await file("SVG"), "utf8");
    assert.match(await page.evaluate((text) => new DOMParser().parseFromString(text, "image/svg+xml").documentElement.outerHTML, svg), /norm\.Norm/);
    await w.exports(hand, dialog);
  },

  async "tables"(w, hand) {
    const { page } = w;
    await page.goto(`${w.server.base}g/${w.ids.table}`);
    const table = grid(page, "Table");
    await row(table, 0).getByText("0").first().waitFor();
    await hand.choose(page.locator(".bar-of-fields select").first(), "1");
    await until(page, "x.part", "1");
    await page.getByText(/^[\d,]+ of [\d,]+ rows$/).waitFor();
    // The cursor stands on the first row that is wrong.
    const bad = table.locator("[aria-selected=true]");
    await bad.getByText("error").waitFor();
    const [, call] = /(\S+)$/.exec(w.answers.new);
    const words = `level:error ${call}.OUTPUT`;
    await hand.type(page.locator("#query"), words);
    await page.keyboard.press("Enter");
    await until(page, "x.find", words);
    await row(table, 0).getByText(`${call}.output.0`).first().waitFor();
    await hand.choose(page.getByLabel("Order"), "level");
    await until(page, "x.sort", "level");
    const link = page.url();
    await page.reload();
    await row(table, 0).getByText("error").waitFor();
    assert.equal(page.url(), link);
    await hand.openRow(table, 0);
    await until(page, "node", call);
    assert.equal(new URL(page.url()).pathname.split("/").at(-1), w.ids.new);
    await chosen(page).waitFor();
  },

  async "T12 after a fix"(w, hand) {
    const { page } = w;
    await w.goto("new");
    await hand.view("Baseline");
    await hand.choose(page.getByLabel("Older result"), w.ids.older);
    await until(page, "base", w.ids.older);
    const table = grid(page, "Baseline");
    await row(table, 0).waitFor();
    const call = "Tensor.__mul__.2.forward";
    const norms = ["new", "older", "good"].map((name) => w.place(name).output(call).Norm);
    assert.ok(norms[0] === norms[2] && norms[1] !== norms[2]);
    const line = table.locator("[aria-rowindex]", { hasText: call }).first();
    assert.match(await line.innerText(), /better/);
    await hand.openRow(table, Number(await line.getAttribute("aria-rowindex")) - 2);
    await until(page, "node", call);
    await hand.view("Outline");
    await page.locator(`[role=treeitem][title="${call}"] .change-better`).first().waitFor();
  },

  async "T13 source"(w, hand) {
    const { page } = w;
    const call = /(\S+)$/.exec(w.answers.new)[1];
    const frame = w.place("new").frame(call, "make_recordings.py");
    await w.goto("new", { node: call, view: "outline" });
    await hand.press(page.locator(".stack button", { hasText: `line ${frame.line}` }).first());
    const shown = page.getByRole("dialog").locator("li.chosen");
    await shown.waitFor();
    assert.equal((await shown.innerText()).trim(), readFileSync(frame.file, "utf8").split("\n")[frame.line - 1].trim());
    assert.match(await page.getByRole("dialog").getByRole("link").getAttribute("href"), new RegExp(`make_recordings.py:${frame.line}$`));
    await page.keyboard.press("Escape");
    await shown.waitFor({ state: "hidden" });
  },
};
