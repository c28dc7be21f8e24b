// What all tasks share: the servers, the ids of their results, and what is true of them.
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { exportTask } from "./exports.mjs";
import { compare, Server } from "./served.mjs";
import { ask, Place } from "./truth.mjs";

// What is true of the recordings, however the page is looked at.
export class Facts {
  #places = new Map();
  #lock = Promise.resolve();
  mapping = null;
  exported = null;

  constructor(plumb, recordings, scratch) {
    const at = (name) => `${recordings}/${name}`;
    const answer = (name) => compare(plumb, at(name), at("good"), "-o", `${scratch}/${name}`, "--format", "csv,json");
    Object.assign(this, { plumb, recordings, scratch });
    this.answers = { new: answer("new")[0], older: answer("older")[0] };
    this.unmatched = Number(/(\d+) unmatched target/.exec(answer("built").join("\n"))[1]);
    this.trend = { new: ask("trend", `${at("trend")}/dump_data.trend.db`, "forward", "max") };
  }

  place(name, step = 0, rank = 0) {
    const key = `${name} ${step} ${rank}`;
    if (!this.#places.has(key)) this.#places.set(key, new Place(`${this.recordings}/${name}`, step, rank));
    return this.#places.get(key);
  }

  // Runs what must not run beside itself.
  alone(work) {
    const done = this.#lock.then(work);
    this.#lock = done.catch(() => undefined);
    return done;
  }
}

// Servers of its own, since tasks leave pairs made by hand; one page at a time.
export class World {
  page = null;

  constructor(facts, scratch) {
    this.facts = facts;
    this.scratch = scratch;
    this.sidecar = `${scratch}/built.store.mpmatch.json`;
  }

  static async start(facts, scratch) {
    const world = new World(facts, scratch);
    mkdirSync(scratch, { recursive: true });
    const at = (name) => `${facts.recordings}/${name}`;
    const source = facts.place("new").frame("Tensor.__mul__.5.forward", "make_recordings.py");
    // Pairs made by hand stand beside a store.
    [world.server, world.second] = await Promise.all([
      Server.start(facts.plumb, [at("new"), at("good"), "--root", facts.recordings, "--root", dirname(source.file), "--root", `${facts.scratch}/new`, "--no-cache"]),
      Server.start(facts.plumb, [at("built"), at("good"), "--store", `${scratch}/built.store`]),
    ]);
    const first = async (server) => (await server.ask("datasets")).datasets[0].id;
    const open = (path, golden) => world.server.open(at(path), golden ? at(golden) : "");
    world.ids = {
      new: await first(world.server), built: await first(world.second), older: await open("older", "good"), hot: await open("hot", "good"),
      one: await open("new/step0/rank0", "good/step0/rank0"),
      trend: await open("trend/dump_data.trend.db"), trend_good: await open("trend_good/dump_data.trend.db"),
    };
    world.ids.table = await world.server.open(`${facts.scratch}/new`);
    return world;
  }

  get plumb() { return this.facts.plumb; }
  get recordings() { return this.facts.recordings; }
  get answers() { return this.facts.answers; }
  get unmatched() { return this.facts.unmatched; }
  get trend() { return this.facts.trend; }
  get mapping() { return this.facts.mapping; }
  set mapping(count) { this.facts.mapping = count; }

  place(...which) {
    return this.facts.place(...which);
  }

  alone(work) {
    return this.facts.alone(work);
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
  async exports(hand, dialog) {
    this.facts.exported ??= exportTask(this, hand, dialog);
    await this.facts.exported;
  }

  stop() {
    this.server?.stop();
    this.second?.stop();
  }
}
