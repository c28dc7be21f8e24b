// What all tasks share: the servers, the ids of their results, and what is true of them.
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { compare, Server } from "./served.mjs";
import { ask, Place } from "./truth.mjs";

const FORMATS = ["CSV", "XLSX", "HTML", "VIS", "VIS.DB"];

export class World {
  #places = new Map();
  #exported = null;
  mapping = null;

  static async start(plumb, recordings, scratch) {
    const world = new World();
    mkdirSync(scratch, { recursive: true });
    const at = (name) => `${recordings}/${name}`;
    Object.assign(world, { plumb, recordings, scratch, sidecar: `${scratch}/built.store.mpmatch.json` });
    const source = world.place("new").frame("Tensor.__mul__.5.forward", "make_recordings.py");
    world.server = await Server.start(plumb, [at("new"), at("good"), "--root", recordings, "--root", dirname(source.file), "--root", scratch, "--no-cache"]);
    // Pairs made by hand stand beside a store.
    world.second = await Server.start(plumb, [at("built"), at("good"), "--store", `${scratch}/built.store`]);
    const first = async (server) => (await server.ask("datasets")).datasets[0].id;
    const open = (path, golden) => world.server.open(at(path), golden ? at(golden) : "");
    world.ids = {
      new: await first(world.server), built: await first(world.second), older: await open("older", "good"), hot: await open("hot", "good"),
      trend: await open("trend/dump_data.trend.db"), trend_good: await open("trend_good/dump_data.trend.db"),
    };
    const answer = (name) => compare(plumb, at(name), at("good"), "-o", `${scratch}/${name}`, "--format", "csv,json");
    world.answers = { new: answer("new")[0], older: answer("older")[0] };
    world.ids.table = await world.server.open(`${scratch}/new`);
    world.unmatched = Number(/(\d+) unmatched target/.exec(answer("built").join("\n"))[1]);
    world.trend = { new: ask("trend", `${at("trend")}/dump_data.trend.db`, "forward", "max") };
    return world;
  }

  place(name, step = 0, rank = 0) {
    const key = `${name} ${step} ${rank}`;
    if (!this.#places.has(key)) this.#places.set(key, new Place(`${this.recordings}/${name}`, step, rank));
    return this.#places.get(key);
  }

  serverOf(name) {
    return name === "built" ? this.second : this.server;
  }

  async goto(name, parameters = {}) {
    await this.page.goto(`${this.serverOf(name).base}g/${this.ids[name]}?${new URLSearchParams(parameters)}`);
    await this.page.locator(".tabs").waitFor();
  }

  // Who has the token is let in.
  async enter(page) {
    for (const server of [this.server, this.second]) await page.goto(server.address);
  }

  // Every format once: what the page asks for is the same in all colours and sizes.
  async exports(page, hand, dialog) {
    if (this.#exported) return;
    const assert = (await import("node:assert/strict")).default;
    const files = {};
    for (const format of FORMATS) {
      const before = await dialog.locator(".jobs a").count();
      await hand.press(dialog.getByRole("button", { name: format, exact: true }));
      const link = dialog.locator(".jobs a").nth(before);
      await link.waitFor();
      const [file] = await Promise.all([page.waitForEvent("download"), hand.press(link)]);
      files[format] = `${this.scratch}/export.${format.toLowerCase()}`;
      await file.saveAs(files[format]);
    }
    const csv = readFileSync(files.CSV, "utf8");
    assert.match(csv, /Tensor\.__mul__\.5\.forward/);
    assert.match(readFileSync(files.HTML, "utf8"), /<html/);
    // One file for each rank and step.
    assert.equal(readFileSync(files.VIS, "latin1").match(/PK\x01\x02/g).length, 4);
    const counts = ask("opens", files.XLSX, files["VIS.DB"]);
    assert.ok(counts[files.XLSX] > 100 && counts[files["VIS.DB"]] > 600, JSON.stringify(counts));
    assert.ok(statSync(files.HTML).size > 100_000);
    this.#exported = files;
  }

  stop() {
    this.server?.stop();
    this.second?.stop();
  }
}
