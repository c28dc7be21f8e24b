// What pages in one file answer to `first` and `meta`, by the code that runs in them:
//   node web/tools/first_rows.mjs FILE.html...
// prints a list with one {"row", "meta"} per file; "row" is null where there is no row.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const entry = fileURLToPath(new URL("../src/file_api.ts", import.meta.url));
const [made] = buildSync({ entryPoints: [entry], bundle: true, platform: "node", format: "esm", target: "node18", write: false }).outputFiles;
const { FileApi, FILE_DATASET } = await import(`data:text/javascript;base64,${Buffer.from(made.contents).toString("base64")}`);

function valueOf(result) {
  if (!result.ok) throw new Error(JSON.stringify(result.error));
  return result.value;
}

async function answersOf(path) {
  const data = /<script type="application\/octet-stream" id="data">\n([^]*?)<\/script>/.exec(readFileSync(path, "utf8"))?.[1] ?? "";
  const api = valueOf(await FileApi.open(data));
  const [row] = valueOf(await api.first(FILE_DATASET, -1)).rows;
  return { row: row ?? null, meta: valueOf(await api.meta(FILE_DATASET)) };
}

const answers = [];
for (const path of process.argv.slice(2)) answers.push(await answersOf(path));
console.log(JSON.stringify(answers));
