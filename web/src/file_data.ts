// The data that stand in a report's page: lines of packed JSON, as src/report/html_report.h has them.
import { decode, flag, integer, list, nullable, number, optional, record, scalar, text, unknown, dictionary, type Decoder } from "./decode";
import type { LocalDataset, LocalDetails } from "./local_api";
import { SEVERITY, severity } from "./marks";
import { failure, success, type Result } from "./result";
import { FLAG, type FirstWrong, type Level, type Meta, type NodeRow, type NodeType, type Place, type Scalar, type ValuePair, type ValueRole, type ValueSide } from "./types";

const VERSION = 2;
const VERDICTS = ["same", "within noise", "suspicious", "broken", "not comparable"];
const LEVELS: readonly Level[] = ["pass", "warning", "error"];
const ROLES: readonly ValueRole[] = ["input", "parameter", "output", "gradient"];
const TYPES: ReadonlyMap<number, NodeType> = new Map([[0, "module"], [1, "api"], [8, "fused"], [9, "group"]]);
const METRICS: Readonly<Record<string, readonly string[]>> = {
  statistics: ["max difference", "min difference", "mean difference", "norm difference", "max %", "min %", "mean %", "norm %"],
  tensor: ["cosine", "max absolute error", "max relative error", "below 1/1000", "below 5/1000", "relative L2", "max ULP", "different elements", "elements"],
  md5: ["target digest", "golden digest"],
};

const pageLine = record<{ readonly format: string; readonly version: number; readonly overview: unknown; readonly answer: readonly string[]; readonly parts: number }>({
  format: text, version: integer, overview: unknown, answer: optional(list(text), []), parts: integer,
});

const sideColumns = {
  names: list(text), types: list(integer), parents: list(integer), orders: list(integer), micro_steps: list(integer),
  levels: list(integer), partners: list(integer), flags: optional(list(integer), []), hidden: list(integer), total: integer,
};
type SideColumns = { readonly [K in keyof typeof sideColumns]: ReturnType<(typeof sideColumns)[K]> };
const sideColumnsOf = record<SideColumns>(sideColumns);

const counts = record<Place["counts"]>({
  pass: integer, warning: integer, error: integer, none: integer, unmatched_target: integer, unmatched_golden: integer,
});
const treeColumns = { micro_steps: integer, counts, notes: list(text), target: sideColumnsOf, golden: sideColumnsOf };
type TreeColumns = { readonly [K in keyof typeof treeColumns]: ReturnType<(typeof treeColumns)[K]> };
const treeOf = record<TreeColumns>(treeColumns);

const callColumns = {
  numbers: list(integer), target: list(integer), golden: list(integer), verdicts: list(integer), flags: list(integer), rows: list(integer),
  errors: list(nullable(number)), explained: list(nullable(number)), input_errors: list(nullable(number)),
  stacks: list(integer), unmatched: list(list(integer)), pairings: list(list(integer)), texts: list(text), frames: list(text),
  lists: list(list(integer)), total: integer,
};
type CallColumns = { readonly [K in keyof typeof callColumns]: ReturnType<(typeof callColumns)[K]> };
const callsOf = record<CallColumns>(callColumns);

const rowsOf = record<{ readonly rows: readonly (readonly unknown[])[]; readonly texts: readonly string[] }>({
  rows: list(list(unknown)), texts: list(text),
});

const firstOf = record<Omit<FirstWrong, "id" | "place">>({
  name: text, what: text, item: text, cause: optional(text, ""), cause_text: optional(text, ""), confidence: optional(text, ""),
  stack_line: optional(text, ""), stack: optional(list(text), []), module_path: optional(list(text), []),
});
const headerFields = {
  mode: text, target: text, golden: text, complete: flag, first_wrong_call: nullable(firstOf), warnings: optional(list(text), []),
};
type Header = { readonly [K in keyof typeof headerFields]: ReturnType<(typeof headerFields)[K]> };
const partFields = {
  label: text, step: nullable(integer), rank: nullable(integer), answer: list(text), header: record<Header>(headerFields),
  reasons: dictionary(text),
};
type PartLine = { readonly [K in keyof typeof partFields]: ReturnType<(typeof partFields)[K]> };
const partOf = record<PartLine>(partFields);

interface RankFact {
  readonly step: number | null;
  readonly rank: number | null;
  readonly state: string;
  readonly error: string;
}
const overviewOf = record<{ readonly ranks: readonly RankFact[]; readonly notes: readonly string[] }>({
  ranks: list(record<RankFact>({ step: nullable(integer), rank: nullable(integer), state: optional(text, ""), error: optional(text, "") })),
  notes: optional(list(text), []),
});

// Ranks that could not be compared, and what else was not judged.
function overviewNotes(overview: unknown): readonly string[] {
  const got = decode(nullable(overviewOf), overview, "overview");
  if (!got.ok || got.value === null) return [];
  const lost = got.value.ranks.filter((each) => each.state === "missing" || each.state === "failed").map((each) => {
    const where = `${each.step === null ? "" : `step ${each.step} `}rank ${each.rank ?? "?"}`;
    return each.state === "missing" ? `${where}: not on both sides, not compared` : `${where}: not compared: ${each.error}`;
  });
  return [...lost, ...got.value.notes];
}

const heldFields = { rows: integer, row_total: integer, calls: integer, call_total: integer, nodes: integer, node_total: integer, golden_nodes: integer, golden_node_total: integer };
type Held = { readonly [K in keyof typeof heldFields]: number };
const heldOf = record<Held>(heldFields);

async function unpack<T>(letters: string, decoder: Decoder<T>, at: string): Promise<Result<T>> {
  try {
    const bytes = Uint8Array.from(atob(letters), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return decode(decoder, JSON.parse(await new Response(stream).text()), at);
  } catch {
    return failure("damaged", "The data in this file are damaged or cut. Write the report again with \"plumb compare --format html\".");
  }
}

// The rows of one part, packed: unpacked one after the other while the page is looked at, and again
// when a call's details are asked for, as all of them at once would fill the memory.
class Rows {
  readonly #lines: readonly string[];
  readonly #chunkOf = new Map<number, number>();
  readonly #dtypes = new Map<number, ReadonlySet<string>>();
  readonly #shapes = new Map<number, ReadonlySet<string>>();
  #open: { readonly at: number; readonly rows: ReturnType<typeof rowsOf> } | null = null;
  #scanned = 0;
  #scan: Promise<void> | null = null;

  constructor(lines: readonly string[]) {
    this.#lines = lines;
  }

  async of(call: number): Promise<ReturnType<typeof rowsOf> | null> {
    while (!this.#chunkOf.has(call) && this.#scanned < this.#lines.length) await this.scanNext();
    const at = this.#chunkOf.get(call);
    if (at === undefined) return null;
    const chunk = await this.#chunk(at);
    return chunk && { texts: chunk.texts, rows: chunk.rows.filter((row) => row[0] === call) };
  }

  get isScanned(): boolean {
    return this.#scanned >= this.#lines.length;
  }

  scanNext(): Promise<void> {
    this.#scan ??= this.#scanOne().finally(() => (this.#scan = null));
    return this.#scan;
  }

  async #scanOne(): Promise<void> {
    const at = this.#scanned;
    const chunk = await this.#chunk(at);
    this.#scanned = at + 1;
    if (!chunk) return;
    const sets = new Map<string, ReadonlySet<string>>();
    const add = (to: Map<number, ReadonlySet<string>>, call: number, indexes: readonly unknown[]): void => {
      const all = new Set(to.get(call) ?? []);
      for (const index of indexes) {
        const known = chunk.texts[Number(index)];
        if (known) all.add(known);
      }
      // Most calls share a few sets.
      const key = [...all].join("\n");
      const shared = sets.get(key) ?? all;
      sets.set(key, shared);
      to.set(call, shared);
    };
    for (const row of chunk.rows) {
      const call = Number(row[0]);
      this.#chunkOf.set(call, at);
      add(this.#dtypes, call, row.slice(7, 9));
      add(this.#shapes, call, row.slice(9, 11));
    }
  }

  async #chunk(at: number): Promise<ReturnType<typeof rowsOf> | null> {
    if (this.#open?.at === at) return this.#open.rows;
    const got = await unpack(this.#lines[at] ?? "", rowsOf, "rows");
    if (!got.ok) return null;
    this.#open = { at, rows: got.value };
    return got.value;
  }

  dtypes(call: number): readonly string[] {
    return [...(this.#dtypes.get(call) ?? [])];
  }
  shapes(call: number): readonly string[] {
    return [...(this.#shapes.get(call) ?? [])].map((shape) => shape.replace(/\s/g, ""));
  }
}

interface Part {
  readonly line: PartLine;
  readonly facts: unknown;
  readonly tree: TreeColumns;
  readonly calls: CallColumns;
  readonly rows: Rows;
  readonly target: number;
  readonly golden: number;
  readonly end: number;
}

// Reads all but the rows. `data`: the text of the data element.
export async function readFileData(data: string): Promise<Result<LocalDataset>> {
  const lines = data.split("\n").map((line) => line.split(" ", 2)).filter(([kind]) => kind);
  const [kind, letters] = lines[0] ?? [];
  if (kind !== "page" || !letters) return failure("damaged", "There are no data in this file. Write the report again.");
  const page = await unpack(letters, pageLine, "page");
  if (!page.ok) return page;
  if (page.value.version !== VERSION) return failure("version", `The data of this file are of version ${page.value.version}, the page reads ${VERSION}.`);
  const parts: Part[] = [];
  let held: Held | null = null;
  let at = 1;
  let base = 0;
  while (lines[at]?.[0] === "part") {
    let to = at + 1;
    while (to < lines.length && lines[to]?.[0] !== "part") to++;
    const part = await readPart(lines.slice(at, to), base);
    if (!part.ok) return part;
    parts.push(part.value.part);
    held = part.value.held ? sum(held, part.value.held) : held;
    base = part.value.part.end;
    at = to;
  }
  if (parts.length === 0) return failure("damaged", "There is no comparison in this file. Write the report again.");
  return success(new FileDataset(page.value, parts, held));
}

const sum = (a: Held | null, b: Held): Held =>
  a === null ? b : (Object.fromEntries(Object.keys(heldFields).map((key) => [key, a[key as keyof Held] + b[key as keyof Held]])) as Held);

async function readPart(lines: readonly (readonly string[])[], base: number): Promise<Result<{ readonly part: Part; readonly held: Held | null }>> {
  const letters = (kind: string): string => lines.find((line) => line[0] === kind)?.[1] ?? "";
  const [line, facts, tree, calls, held] = await Promise.all([
    unpack(letters("part"), partOf, "part"), unpack(letters("part"), unknown, "part"), unpack(letters("tree"), treeOf, "tree"),
    unpack(letters("calls"), callsOf, "calls"), unpack(letters("end"), heldOf, "end"),
  ]);
  if (!line.ok) return line;
  if (!facts.ok) return facts;
  if (!tree.ok) return tree;
  if (!calls.ok) return calls;
  const golden = base + tree.value.target.names.length;
  const rows = new Rows(lines.filter((each) => each[0] === "rows").map((each) => each[1] ?? ""));
  return success({
    part: { line: line.value, facts: facts.value, tree: tree.value, calls: calls.value, rows, target: base, golden, end: golden + tree.value.golden.names.length },
    held: held.ok ? held.value : null,
  });
}



// Columns of all nodes of all parts, by id.
class Columns {
  readonly parent: Int32Array;
  readonly partner: Int32Array;
  readonly children: Uint32Array;
  readonly size: Uint32Array;
  readonly depth: Uint16Array;
  readonly index: Uint32Array;
  readonly level: Uint8Array;
  readonly worst: Uint8Array;
  readonly errors: Uint32Array;
  readonly warnings: Uint32Array;
  readonly unmatched: Uint32Array;
  readonly call: Int32Array;

  constructor(count: number) {
    this.parent = new Int32Array(count).fill(-1);
    this.partner = new Int32Array(count).fill(-1);
    this.children = new Uint32Array(count);
    this.size = new Uint32Array(count).fill(1);
    this.depth = new Uint16Array(count);
    this.index = new Uint32Array(count);
    this.level = new Uint8Array(count);
    this.worst = new Uint8Array(count);
    this.errors = new Uint32Array(count);
    this.warnings = new Uint32Array(count);
    this.unmatched = new Uint32Array(count);
    this.call = new Int32Array(count).fill(-1);
  }

  addPart(part: Part): void {
    const { target, golden } = part.tree;
    const sides = [[target, part.target, part.golden], [golden, part.golden, part.target]] as const;
    for (const [columns, base, other] of sides) {
      columns.parents.forEach((parent, i) => {
        const id = base + i;
        if (parent >= 0) this.#link(id, base + parent);
        const partner = columns.partners[i] ?? -1;
        if (partner >= 0) this.partner[id] = other + partner;
        const ofTarget = base === part.target ? columns.levels[i] : partner >= 0 ? target.levels[partner] : -1;
        const own = partner === -1 && parent >= 0 ? "unmatched" : (LEVELS[ofTarget ?? -1] ?? "none");
        this.level[id] = severity(own);
      });
      this.#rollUp(base, base + columns.names.length);
    }
    part.calls.target.forEach((node, i) => node >= 0 && (this.call[part.target + node] = i));
    part.calls.golden.forEach((node, i) => node >= 0 && (this.call[part.golden + node] = i));
  }

  #link(id: number, parent: number): void {
    this.parent[id] = parent;
    this.depth[id] = (this.depth[parent] ?? 0) + 1;
    this.index[id] = this.children[parent] ?? 0;
    this.children[parent] = (this.children[parent] ?? 0) + 1;
  }

  #rollUp(from: number, to: number): void {
    const [error, warning, unmatched] = [severity("error"), severity("warning"), severity("unmatched")];
    const add = (column: Uint32Array | Uint8Array, at: number, value: number): void => void (column[at] = (column[at] ?? 0) + value);
    for (let id = to - 1; id >= from; id--) {
      const parent = this.parent[id] ?? -1;
      if (parent < 0) continue;
      const level = this.level[id] ?? 0;
      add(this.size, parent, this.size[id] ?? 1);
      add(this.errors, parent, (this.errors[id] ?? 0) + (level === error ? 1 : 0));
      add(this.warnings, parent, (this.warnings[id] ?? 0) + (level === warning ? 1 : 0));
      add(this.unmatched, parent, (this.unmatched[id] ?? 0) + (level === unmatched ? 1 : 0));
      this.worst[parent] = Math.max(this.worst[parent] ?? 0, this.worst[id] ?? 0, level);
    }
  }
}

class FileDataset implements LocalDataset {
  readonly meta: Meta;
  readonly nodeCount: number;
  readonly first: LocalDataset["first"];
  readonly firstOrder = "step, rank, call";
  readonly #parts: readonly Part[];
  readonly #columns: Columns;

  constructor(page: ReturnType<typeof pageLine>, parts: readonly Part[], held: Held | null) {
    this.#parts = parts;
    this.nodeCount = parts.at(-1)?.end ?? 0;
    this.#columns = new Columns(this.nodeCount);
    for (const part of parts) this.#columns.addPart(part);
    this.first = parts.flatMap((part) => this.#firstOf(part));
    this.meta = this.#metaOf(page, held);
    void this.#scanAll();
  }

  // So that queries for dtypes and shapes know all there is; leaves time for everything else.
  async #scanAll(): Promise<void> {
    for (const { rows } of this.#parts) {
      while (!rows.isScanned) {
        await new Promise((done) => setTimeout(done, 50));
        await rows.scanNext();
      }
    }
  }

  #partOf(id: number): Part {
    const found = this.#parts.find((part) => id < part.end) ?? this.#parts[0];
    if (!found) throw new Error("a page has a part");
    return found;
  }

  #metaOf(page: ReturnType<typeof pageLine>, held: Held | null): Meta {
    const [part] = this.#parts;
    const answer = page.answer.length > 0 ? page.answer : (part?.line.answer ?? []);
    const at = this.#parts.findIndex((each) => each.line.header.first_wrong_call !== null);
    const distinct = (of: (each: Part) => number): number[] => [...new Set(this.#parts.map(of))].sort((a, b) => a - b);
    const notes = [...overviewNotes(page.overview), ...new Set(this.#parts.flatMap((each) => [...each.line.header.warnings, ...each.tree.notes]))];
    if (held && held.nodes + held.golden_nodes < held.node_total + held.golden_node_total) {
      notes.unshift(`This file holds ${held.nodes} of ${held.node_total} calls of the target, ${held.rows} of ${held.row_total} values: the rest was left out to keep it small. "plumb view" shows all.`);
    } else if (held && held.rows < held.row_total) {
      notes.unshift(`This file holds ${held.rows} of ${held.row_total} values, the worst first: the rest was left out to keep it small. "plumb view" shows all.`);
    }
    const mode = part?.line.header.mode ?? "";
    return {
      etag: "file", kind: "compare", mode: mode === "statistics" || mode === "md5" || mode === "tensor" || mode === "structure" ? mode : "",
      target: part?.line.header.target ?? "", golden: part?.line.header.golden ?? "", answer,
      complete: this.#parts.every((each) => each.line.header.complete), source: "plumbline", first: this.#firstWrong(at),
      steps: distinct((each) => each.line.step ?? 0), ranks: distinct((each) => rankOf(each, this.#parts)),
      micro_steps: Math.max(1, ...this.#parts.map((each) => each.tree.micro_steps)), overflow_check: false, has_tensors: false,
      places: this.#parts.map((each) => this.#placeOf(each)), notes,
      facts: { overview: page.overview, parts: this.#parts.map((each) => each.facts) },
    };
  }

  #firstWrong(at: number): FirstWrong | null {
    const part = this.#parts[at];
    const told = part?.line.header.first_wrong_call;
    if (!part || !told) return null;
    const id = this.first.find((each) => each.kind === "first" && each.id >= part.target && each.id < part.end)?.id ?? part.target;
    return { ...told, id, place: at };
  }

  #placeOf(part: Part): Place {
    return {
      step: part.line.step ?? 0, rank: rankOf(part, this.#parts), target_root: part.target, golden_root: part.golden < part.end ? part.golden : -1,
      nodes: part.golden - part.target, golden_nodes: part.end - part.golden, micro_steps: part.tree.micro_steps, counts: part.tree.counts,
      overflows: { medium: 0, high: 0, critical: 0 }, answer: part.line.answer[0] ?? "", first: part.line.header.first_wrong_call?.name ?? "",
    };
  }

  #nodeOfCall(part: Part, call: number): number {
    const node = part.calls.target[call] ?? -1;
    return node >= 0 ? part.target + node : part.golden + (part.calls.golden[call] ?? 0);
  }

  #firstOf(part: Part): { id: number; kind: "first" | "source" | "carrier"; why: string }[] {
    const out: { id: number; kind: "first" | "source" | "carrier"; why: string }[] = [];
    const known = part.line.header.first_wrong_call;
    part.calls.flags.forEach((flags, call) => {
      const kind = flags & FLAG.first ? "first" : flags & FLAG.source ? "source" : flags & FLAG.carrier ? "carrier" : null;
      if (kind) out.push({ id: this.#nodeOfCall(part, call), kind, why: kind === "first" && known ? known.what : why(part, call) });
    });
    const rank = { first: 0, source: 1, carrier: 2 };
    return out.sort((a, b) => rank[a.kind] - rank[b.kind]);
  }

  name(id: number): string {
    const part = this.#partOf(id);
    if (id < part.golden) return part.tree.target.names[id - part.target] ?? "";
    const own = part.tree.golden.names[id - part.golden] ?? "";
    const partner = part.tree.golden.partners[id - part.golden] ?? -1;
    return own === "" && partner >= 0 ? (part.tree.target.names[partner] ?? "") : own;
  }

  row(id: number): NodeRow {
    const part = this.#partOf(id);
    const isGolden = id >= part.golden;
    const columns = isGolden ? part.tree.golden : part.tree.target;
    const i = id - (isGolden ? part.golden : part.target);
    const c = this.#columns;
    const call = c.call[id] ?? -1;
    return {
      id, parent: c.parent[id] ?? -1, partner: c.partner[id] ?? -1, name: this.name(id),
      type: c.parent[id] === -1 ? "root" : (TYPES.get(columns.types[i] ?? 0) ?? "api"), children: c.children[id] ?? 0, size: c.size[id] ?? 1,
      depth: c.depth[id] ?? 0, index: c.index[id] ?? 0, order: columns.orders[i] ?? 0, level: SEVERITY[c.level[id] ?? 0] ?? "none",
      overflow: "", worst: SEVERITY[c.worst[id] ?? 0] ?? "none", errors: c.errors[id] ?? 0, warnings: c.warnings[id] ?? 0,
      unmatched: c.unmatched[id] ?? 0, ms: columns.micro_steps[i] ?? 0, error: part.calls.errors[call] ?? null,
      input_error: part.calls.input_errors[call] ?? null, flags: (columns.flags[i] ?? 0) | (isGolden ? 0 : (part.calls.flags[call] ?? 0)),
      hits: -1, is_hit: false, change: "",
    };
  }

  dtypes(id: number): readonly string[] {
    return this.#partOf(id).rows.dtypes(this.#columns.call[id] ?? -1);
  }
  shapes(id: number): readonly string[] {
    return this.#partOf(id).rows.shapes(this.#columns.call[id] ?? -1);
  }
  overSteps(): null {
    return null;
  }

  async details(id: number): Promise<LocalDetails | null> {
    const part = this.#partOf(id);
    const call = this.#columns.call[id] ?? -1;
    const { calls } = part;
    const hidden = (id < part.golden ? part.tree.target.hidden[id - part.target] : part.tree.golden.hidden[id - part.golden]) ?? 0;
    const merge = hidden > 0 ? [`${hidden} calls within were left out of this file`] : [];
    if (call < 0) return { stack: [], golden_stack: [], pairing: "", verdict: "", reason: "", reason_text: "", merge, values: [] };
    const chunk = (calls.rows[call] ?? 0) > 0 ? await part.rows.of(call) : { rows: [], texts: [] };
    if (!chunk) return null;
    const textOf = (pairs: readonly (readonly number[])[]): string => calls.texts[pairs.find(([at]) => at === call)?.[1] ?? -1] ?? "";
    const values = chunk.rows.map((row) => valueOf(row, chunk.texts, part));
    const unmatched = textOf(calls.unmatched);
    const worst = values.reduce<ValuePair | null>((a, b) => (a === null || VERDICTS.indexOf(b.verdict) % 4 > VERDICTS.indexOf(a.verdict) % 4 ? b : a), null);
    const stack = (calls.lists[calls.stacks[call] ?? -1] ?? []).map((frame) => calls.frames[frame] ?? "");
    return {
      stack, golden_stack: [], pairing: textOf(calls.pairings), verdict: VERDICTS[calls.verdicts[call] ?? -1] ?? "", reason: unmatched,
      reason_text: unmatched !== "" ? (part.line.reasons[unmatched] ?? unmatched) : worst ? `${worst.name}: ${worst.reason_text || worst.verdict}` : "",
      merge, values,
    };
  }
}

// Places differ in step or rank; parts without either are counted.
function rankOf(part: Part, parts: readonly Part[]): number {
  return part.line.rank ?? (part.line.step === null ? parts.indexOf(part) : 0);
}

function why(part: Part, call: number): string {
  const show = (value: number | null | undefined): string => (value === null || value === undefined ? "?" : String(Number(value.toPrecision(3))));
  const { errors, explained, input_errors: inputs } = part.calls;
  return `error ${show(errors[call])}, explained ${show(explained[call])}, of its inputs ${show(inputs[call])}`;
}

function valueOf(row: readonly unknown[], texts: readonly string[], part: Part): ValuePair {
  const [, item, role, verdict, reason, error, explained, targetType, goldenType, targetShape, goldenShape, , target, golden, metrics, notes] = row;
  const textAt = (index: unknown): string => texts[Number(index)] ?? "";
  const code = textAt(reason);
  const names = METRICS[part.line.header.mode] ?? [];
  const given: readonly unknown[] = Array.isArray(metrics) ? metrics : [];
  const known = names.flatMap((name, i) => {
    const value = decode(scalar, given[i], name);
    return value.ok ? [[name, value.value] as const] : [];
  });
  return {
    name: String(item).replace(/^\./, ""), role: ROLES[Number(role)] ?? "input",
    target: sideOf(target, textAt(targetType), textAt(targetShape), given[0], part), golden: sideOf(golden === 1 ? target : golden, textAt(goldenType), textAt(goldenShape), given[1], part),
    verdict: VERDICTS[Number(verdict)] ?? "", reason: code, reason_text: part.line.reasons[code] ?? code, error: numberOf(error), explained: numberOf(explained),
    metrics: Object.fromEntries(known), notes: Array.isArray(notes) ? notes.map((note: unknown) => (Array.isArray(note) ? textAt(note[1]) : "")) : [],
  };
}

function numberOf(value: unknown): number | null {
  const got = decode(nullable(number), value, "");
  return got.ok ? got.value : null;
}

function scalarOf(value: unknown): Scalar | null {
  const got = decode(nullable(scalar), value, "");
  return got.ok ? got.value : null;
}

function sideOf(given: unknown, dtype: string, shape: string, digest: unknown, part: Part): ValueSide | null {
  if (!Array.isArray(given)) return null;
  // Numbers of single precision have the digits that tell them apart, which is what people want to see.
  const values = given.slice(given[0] === "f" ? 1 : 0).map(scalarOf);
  const isTensor = values.length > 1;
  const sizes = /^[[(][\d, ]*[\])]$/.test(shape) ? shape.replace(/[[\]() ]/g, "").split(",").filter((size) => size !== "").map(Number) : null;
  const [max = null, min = null, mean = null, norm = null] = isTensor ? values : [];
  return {
    type: isTensor ? "torch.Tensor" : dtype, dtype: isTensor ? dtype : "", shape: isTensor ? sizes : null, max, min, mean, norm,
    value: isTensor ? null : (values[0] ?? null), md5: part.line.header.mode === "md5" && typeof digest === "string" ? digest : "",
    requires_grad: null, data_name: "",
  };
}
