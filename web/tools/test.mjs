// Runs the unit tests src/**/*_test.ts: each is made one file for Node.js, then `node --test` runs
// them all. Its last lines are those of TAP: "# pass N", "# fail N", "# skipped N".
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const web = fileURLToPath(new URL("..", import.meta.url));
const out = join(web, "../build/web/test");

function tests(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return tests(path);
    return /_test\.tsx?$/.test(entry.name) ? [path] : [];
  });
}

const sources = tests(join(web, "src"));
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
buildSync({
  entryPoints: sources, bundle: true, platform: "node", format: "esm", outdir: out, outbase: join(web, "src"),
  outExtension: { ".js": ".mjs" }, target: "node18", jsx: "automatic", jsxImportSource: "preact", logLevel: "warning",
  loader: { ".css": "empty" },
});
const files = readdirSync(out, { recursive: true }).map(String).filter((name) => name.endsWith(".mjs")).map((name) => join(out, name));
process.exit(spawnSync(process.execPath, ["--test", "--test-reporter=tap", ...files], { stdio: "inherit" }).status ?? 1);
