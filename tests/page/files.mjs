// The page in one file: opened from disk it asks for nothing and gives the same answer.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { axeFaults, newContext, SCHEMES, SIZES } from "./browser.mjs";

export async function fileTests(browser, world, { faults }) {
  const at = (name) => `${world.recordings}/${name}`;
  const run = (...parameters) => execFileSync(world.plumb, parameters, { stdio: ["ignore", "pipe", "pipe"] });
  const viewed = `${world.scratch}/viewed.html`;
  run("view", at("new"), at("good"), "--html", viewed);
  const folder = `${world.scratch}/reports`;
  run("compare", at("new"), at("good"), "-o", folder, "--format", "html");
  const compared = `${folder}/${readdirSync(folder).find((name) => name.endsWith(".html"))}`;
  const tests = [];
  for (const scheme of SCHEMES) {
    const context = await newContext(browser, { scheme, size: SIZES[0], faults });
    const page = await context.newPage();
    const asked = [];
    page.on("request", (request) => asked.push(request.url()));
    for (const [name, file] of [["view --html", viewed], ["compare --format html", compared]]) {
      tests.push([`page of ${name}, ${scheme}`, page, async () => {
        const url = pathToFileURL(file).href;
        asked.length = 0;
        await page.goto(url);
        await page.locator(".tabs").waitFor();
        assert.equal(await page.locator(".answer .lead").innerText(), world.answers.new);
        assert.deepEqual(await axeFaults(page), []);
        await page.getByRole("tab", { name: "First divergence", exact: true }).click();
        const first = page.locator("[role=row][aria-rowindex='2']").first();
        await first.waitFor();
        assert.equal(await first.getAttribute("title"), /(\S+)$/.exec(world.answers.new)[1]);
        assert.deepEqual(asked.filter((each) => each.split("#")[0] !== url && !/^(data|blob):/.test(each)), []);
      }]);
    }
  }
  return tests;
}
