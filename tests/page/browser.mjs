// One browser over the page that a program serves; what must never happen is counted on every page.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const SIZES = [{ width: 1280, height: 800 }, { width: 1920, height: 1080 }];
export const SCHEMES = ["light", "dark"];
// Nothing here takes a second; a machine that does much else, or stands still, may need some.
export const PATIENCE_MS = Number(process.env.PATIENCE_MS ?? 60_000);

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu"],
  });
}

// `dist`: a folder whose page is tried instead of the one within the program.
export async function newContext(browser, { scheme, size, dist, faults }) {
  const context = await browser.newContext({
    colorScheme: scheme, viewport: size, locale: "en-GB", reducedMotion: "reduce", acceptDownloads: true,
    permissions: ["clipboard-read", "clipboard-write"],
  });
  context.setDefaultTimeout(PATIENCE_MS);
  context.on("console", (message) => {
    if (message.type() !== "error") return;
    if (dist && message.text().includes("favicon.ico")) return;  // its page is another one's
    faults.push(`console: ${message.text()}`);
  });
  context.on("weberror", (error) => faults.push(`error: ${error.error().message}`));
  context.on("requestfailed", (request) => {
    // A page that is left or told to look elsewhere drops its questions.
    if (request.failure()?.errorText !== "net::ERR_ABORTED") faults.push(`failed: ${request.url()}`);
  });
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) =>
      console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`));
  });
  if (dist) {
    for (const [name, type] of [["page.js", "text/javascript"], ["page.css", "text/css"]]) {
      await context.route(`**/${name}`, (route) => route.fulfill({ body: readFileSync(`${dist}/${name}`), contentType: type }));
    }
  }
  return context;
}

// Serious and critical faults of what is shown, each as one line.
export async function axeFaults(page) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.html.slice(0, 140)} (${node.any[0]?.message ?? node.failureSummary})`).join(" | ")}`);
}
