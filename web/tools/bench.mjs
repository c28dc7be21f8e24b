// Drives Chromium over the built page and prints one JSON object of measures; view_page.py reads it.
//   node web/tools/bench.mjs made QUERY      the page over made data of build/web/made
//   node web/tools/bench.mjs served URL      a page that a program serves
//   node web/tools/bench.mjs file PATH       a page with its data inside, opened from disk
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const [, , kind, argument] = process.argv;
const made = fileURLToPath(new URL("../../build/web/made/", import.meta.url));
const TYPES = { html: "text/html", js: "text/javascript", css: "text/css" };
const FRAMES = 120;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--enable-precise-memory-info"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
const faults = [];
page.on("pageerror", (error) => faults.push(error.message));
if (kind === "made") {
  await page.route("http://made/**", (route) => {
    const name = new URL(route.request().url()).pathname.split("/").pop() || "index.html";
    const extension = name.split(".").pop() ?? "";
    const file = extension === "html" ? `${made}dev/index.html` : made + name;
    return TYPES[extension] ? route.fulfill({ body: readFileSync(file), contentType: TYPES[extension] }) : route.fulfill({ status: 404 });
  });
}

// The times between frames while the wheel turns.
const turn = (zoom) => page.evaluate(async ({ isZoom, frames }) => {
  const pane = document.querySelector(".pane");
  const box = pane.getBoundingClientRect();
  const times = [];
  let last = await new Promise(requestAnimationFrame);
  for (let i = 0; i < frames; i++) {
    const back = i >= frames / 2 ? -1 : 1;
    const move = isZoom ? { deltaY: -24 * back, ctrlKey: true } : { deltaX: 5 * back, deltaY: 14 * back };
    pane.dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true, clientX: box.left + 200, clientY: box.top + 150, ...move }));
    const now = await new Promise(requestAnimationFrame);
    times.push(now - last);
    last = now;
  }
  times.sort((a, b) => a - b);
  return { p50: times[Math.floor(frames * 0.5)], p95: times[Math.floor(frames * 0.95)] };
}, { isZoom: zoom, frames: FRAMES });

const heap = () => page.evaluate(() => performance.memory.usedJSHeapSize);
const out = {};
if (kind === "made") {
  await page.goto(`http://made/dev/index.html?${argument}`);
  await page.waitForFunction(() => window.made?.firstPaintMs > 0, null, { timeout: 120000 });
  out.first_paint_ms = await page.evaluate(() => window.made.firstPaintMs);
  await page.selectOption(".tab-tools select", "6");
  let before = -1;
  for (let rows = 0; rows !== before; rows = await page.evaluate(() => window.made.rows)) {
    before = rows;
    await page.waitForTimeout(1500);
  }
  await page.keyboard.press("0");
  await page.waitForTimeout(1500);
  out.boxes = await page.evaluate(() => window.made.rows);
  out.pan = await turn(false);
  out.zoom = await turn(true);
  out.heap_bytes = (await heap()) - (await page.evaluate(() => window.made.heapBefore));
} else if (kind === "file") {
  // The answer is there once the data but the rows are read; the table once they are, too.
  await page.addInitScript(() => {
    const seen = (window.seen = {});
    new MutationObserver(() => {
      if (!seen.answer && document.querySelector(".report-answer")) requestAnimationFrame(() => (seen.answer ??= performance.now()));
      if (!seen.rows && document.querySelector("#report-rows .report-line:not(.head)")) requestAnimationFrame(() => (seen.rows ??= performance.now()));
    }).observe(document, { childList: true, subtree: true });
  });
  await page.goto(`file://${argument}`);
  await page.waitForFunction(() => window.seen.answer && window.seen.rows, null, { timeout: 120000 });
  out.first_paint_ms = await page.evaluate(() => window.seen.answer);
  out.rows_ms = await page.evaluate(() => window.seen.rows);
  out.answer = await page.textContent(".answer .lead");
  out.heap_bytes = await heap();
} else {
  await page.goto(argument);
  await page.waitForSelector(".pane canvas", { timeout: 60000 });
  out.first_paint_ms = await page.evaluate(async () => {
    const loaded = performance.getEntriesByType("resource").find((entry) => entry.name.endsWith("/page.js"))?.responseEnd ?? 0;
    await new Promise(requestAnimationFrame);
    return performance.now() - loaded;
  });
  out.pan = await turn(false);
  out.heap_bytes = await heap();
}
out.faults = faults;
console.log(JSON.stringify(out));
await browser.close();
