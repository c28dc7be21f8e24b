// The tests of the page in a browser.
//   node tests/page/tasks.mjs RECORDINGS PLUMB [--shots DIRECTORY] [--page DIST] [--only WORD] [--workers N]
// RECORDINGS: what make_recordings.py left. Ends with the counts in a line of its own.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { launch, newContext, SCHEMES, SIZES } from "./browser.mjs";
import { CASES } from "./cases.mjs";
import { fileTests } from "./files.mjs";
import { Keyboard, Mouse } from "./hands.mjs";
import { hostileTests } from "./hostile.mjs";
import { viewTests } from "./look.mjs";
import { oddTests } from "./odd.mjs";
import { Facts, World } from "./world.mjs";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { shots: { type: "string" }, page: { type: "string" }, only: { type: "string" }, workers: { type: "string", default: "2" } },
});
const [recordings, plumb] = positionals.map((path) => resolve(path));
const scratch = mkdtempSync(join(tmpdir(), "plumb-page-"));
if (options.shots) mkdirSync(options.shots, { recursive: true });

let passed = 0;
let failed = 0;

async function test(name, page, faults, body) {
  if (options.only && !name.includes(options.only)) return;
  const began = Date.now();
  faults.length = 0;
  try {
    await body();
    if (faults.length > 0) throw new Error([...new Set(faults)].join("\n"));
    passed++;
    console.log(`ok   ${name} (${Date.now() - began} ms)`);
  } catch (error) {
    failed++;
    console.log(`FAIL ${name} (${Date.now() - began} ms)\n${error.stack ?? error}\n  at ${page?.url()}\n  ${faults.join("\n  ")}`);
    if (options.shots) await page?.screenshot({ path: join(options.shots, `failed ${name.replace(/[^\w]+/g, "_")}.png`) }).catch(() => {});
  }
}

async function inOneLook(world, scheme, size) {
  const faults = [];
  const context = await newContext(browser, { scheme, size, dist: options.page, faults });
  const look = `${scheme} ${size.width}`;
  world.page = await context.newPage();
  await world.enter(world.page);
  for (const Hand of [Mouse, Keyboard]) {
    const hand = new Hand(world.page);
    for (const [name, body] of Object.entries(CASES)) {
      await test(`${name}, ${hand.name}, ${look}`, world.page, faults, () => body(world, hand));
    }
  }
  for (const [name, body] of viewTests(world, join(options.shots ?? scratch, look.replace(" ", "_")))) {
    await test(`${name}, ${look}`, world.page, faults, body);
  }
  await context.close();
}

async function ofPages(tests, more) {
  const faults = [];
  for (const [name, page, body] of await tests(browser, facts, { ...more, faults, atEnd })) await test(name, page, faults, body);
}

const browser = await launch();
const atEnd = [];
const facts = new Facts(plumb, recordings, scratch);
const jobs = [
  ...SCHEMES.flatMap((scheme) => SIZES.map((size) => (world) => inOneLook(world, scheme, size))),
  () => ofPages(hostileTests, { dist: options.page }),
  () => ofPages(oddTests, { dist: options.page }),
  () => ofPages(fileTests, {}),
];

// One task after another, as long as there are any.
async function work(number) {
  const world = await World.start(facts, `${scratch}/${number}`);
  try {
    for (let job = jobs.shift(); job; job = jobs.shift()) await job(world);
  } finally {
    world.stop();
  }
}

try {
  await Promise.all(Array.from({ length: Number(options.workers) }, (_, i) => work(i)));
} finally {
  for (const end of atEnd) end();
  await browser.close();
  rmSync(scratch, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
