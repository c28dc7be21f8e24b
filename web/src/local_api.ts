// Answers questions from a dataset that is in the page's own memory: the data of a report, or a made
// one. The answers are the JSON that a program would send, and are checked like it.
import { Api, type EventKind, type Parameters } from "./api";
import { parseQuery, type ParsedQuery } from "./query";
import { failure, success, type Result } from "./result";
import { lowerBound } from "./tree";
import type { FirstRow, Meta, NodeDetails, NodeRow, OverSteps, Side } from "./types";

export type LocalDetails = Omit<NodeDetails, "row" | "partner_row" | "path">;

// Nodes by id: those of a place follow each other, in pre-order, so that the first child of `i` is
// `i + 1` and its next sibling `i + size`.
export interface LocalDataset {
  readonly meta: Meta;
  readonly nodeCount: number;
  row(id: number): NodeRow;
  name(id: number): string;
  // null: its details are not part of this page.
  details(id: number): Promise<LocalDetails | null>;
  dtypes(id: number): readonly string[];
  shapes(id: number): readonly string[];
  readonly first: readonly { readonly id: number; readonly kind: FirstRow["kind"]; readonly why: string }[];
  readonly firstOrder: string;
  overSteps(id: number, value: string): OverSteps | null;
}

const FIELDS: readonly (keyof NodeRow)[] = [
  "id", "parent", "partner", "name", "type", "children", "size", "depth", "index", "order", "level",
  "overflow", "worst", "errors", "warnings", "unmatched", "ms", "error", "input_error", "flags", "hits",
  "is_hit", "change",
];
const ID = "0";

interface PlaceRange {
  readonly index: number;
  readonly target: number;
  readonly golden: number;
  readonly end: number;
}

export class LocalApi extends Api {
  readonly isServed = false;
  readonly #data: LocalDataset;
  readonly #places: readonly PlaceRange[];
  readonly #hits = new Map<string, Uint32Array>();

  constructor(data: LocalDataset) {
    super();
    this.#data = data;
    this.#places = data.meta.places.map((place, index) => ({
      index,
      target: place.target_root,
      golden: place.golden_root < 0 ? place.target_root + place.nodes : place.golden_root,
      end: Math.max(place.target_root + place.nodes, place.golden_root + place.golden_nodes),
    }));
  }

  override watch(_kind: EventKind, _changed: () => void): () => void {
    return () => undefined;
  }
  override jobFile(): string {
    return "";
  }
  protected override post(): Promise<Result<unknown>> {
    return Promise.resolve(onlyServed());
  }
  protected override remove(): Promise<Result<unknown>> {
    return Promise.resolve(onlyServed());
  }

  protected override get(path: string, parameters: Parameters): Promise<Result<unknown>> {
    const question = path === "datasets" || path === "jobs" ? path : path.replace(/^d\/[^/]*\//, "");
    const p = (name: string): string => String(parameters[name] ?? "");
    return this.#answer(question, p);
  }

  async #answer(question: string, p: (name: string) => string): Promise<Result<unknown>> {
    const node = p("node") === "" ? -1 : Number(p("node").split(",")[0]);
    switch (question) {
      case "datasets":
        return success(this.#datasets());
      case "jobs":
        return success({ jobs: [] });
      case "meta":
        return success(this.#data.meta);
      case "children":
        return this.#children(p);
      case "path":
        return node >= 0 ? this.#path(node) : this.#pathOf(p("name"), number(p("place"), 0), side(p("side")));
      case "node":
        return this.#node(node);
      case "find":
        return this.#find(p);
      case "first":
        return this.#first(p);
      case "flow":
        return this.#isNode(node) ? success({ rows: this.#table(this.#inOrder(node)) }) : noNode(node);
      case "over_steps":
        return this.#overSteps(node, p("value"));
      case "matches":
        return success({ pairs: [], can_undo: false });
      default:
        return onlyServed();
    }
  }

  #datasets(): unknown {
    const { target, golden, etag } = this.#data.meta;
    const title = golden === "" ? target : `${target} · ${golden}`;
    const dataset = {
      id: ID, kind: "graph", state: "ready", title, target, golden, progress: 1, error: "", etag,
    };
    return { datasets: [dataset], read_only: true, roots: [] };
  }

  #isNode(id: number): boolean {
    return Number.isInteger(id) && id >= 0 && id < this.#data.nodeCount;
  }

  *#childIds(id: number): Generator<number> {
    const count = this.#data.row(id).children;
    let child = id + 1;
    for (let i = 0; i < count; i++) {
      yield child;
      child += this.#data.row(child).size;
    }
  }

  #inOrder(id: number): readonly number[] {
    return [...this.#childIds(id)].sort((a, b) => this.#data.row(a).order - this.#data.row(b).order);
  }

  #table(ids: readonly number[], hits?: Uint32Array): unknown {
    const rows = ids.map((id) => {
      const row = this.#data.row(id);
      const inside = hits ? countInside(hits, id, id + row.size) : -1;
      const own = hits !== undefined && countInside(hits, id, id + 1) > 0;
      return FIELDS.map((field) =>
        field === "hits" ? inside : field === "is_hit" ? own : asJson(row[field]));
    });
    return { fields: FIELDS, rows };
  }

  #children(p: (name: string) => string): Result<unknown> {
    const ids = p("node").split(",").map(Number);
    const offset = number(p("offset"), 0);
    const limit = number(p("limit"), 100);
    const ms = number(p("ms"), -1);
    const hits = p("q") === "" ? undefined : this.#hitIds(p("q"));
    const lists = [];
    for (const id of ids) {
      if (!this.#isNode(id)) return noNode(id);
      const children = [...this.#childIds(id)].filter((child) => ms < 0 || this.#data.row(child).ms === ms);
      const rows = this.#table(children.slice(offset, offset + limit), hits);
      lists.push({ node: id, total: children.length, offset, rows });
    }
    return success({ lists });
  }

  #pathIds(id: number): number[] {
    const path = [];
    for (let at = id; at >= 0; at = this.#data.row(at).parent) path.unshift(at);
    return path;
  }

  #path(id: number): Result<unknown> {
    return this.#isNode(id) ? success({ exact: true, rows: this.#table(this.#pathIds(id)) }) : noNode(id);
  }

  #pathOf(name: string, place: number, of: Side): Result<unknown> {
    const range = this.#places[place];
    if (!range) return failure("not-found", `There is no place ${place}.`);
    const [from, to] = of === "golden" ? [range.golden, range.end] : [range.target, range.golden];
    if (from >= to) return failure("not-found", "There is no golden recording here.");
    const parts = name.split(".");
    for (let keep = parts.length; keep > 0; keep--) {
      const wanted = parts.slice(0, keep).join(".");
      const isWhole = keep === parts.length;
      for (let id = from; id < to; id++) {
        const found = this.#data.name(id);
        if (found === wanted || (!isWhole && this.#data.row(id).children > 0 && found.startsWith(`${wanted}.`))) {
          return success({ exact: isWhole, rows: this.#table(this.#pathIds(id)) });
        }
      }
    }
    return success({ exact: false, rows: this.#table([from]) });
  }

  async #node(id: number): Promise<Result<unknown>> {
    if (!this.#isNode(id)) return noNode(id);
    const details = await this.#data.details(id);
    if (!details) {
      return failure("left-out", "The numbers of this call were left out of the file to keep it small; open the recordings with \"plumb view\" to see them.");
    }
    const { partner } = this.#data.row(id);
    return success({
      ...(jsonNumbers(details) as object),
      row: this.#table([id]),
      partner_row: partner >= 0 ? this.#table([partner]) : null,
      path: this.#pathIds(id).map((at) => this.#data.name(at)),
    });
  }

  #matching(parsed: ParsedQuery, range: PlaceRange): number[] {
    const place = this.#data.meta.places[range.index];
    const out: number[] = [];
    for (let id = range.target; id < range.end; id++) {
      const node = {
        row: this.#data.row(id),
        side: id < range.golden ? ("target" as const) : ("golden" as const),
        step: place?.step ?? 0,
        rank: place?.rank ?? 0,
        dtypes: this.#data.dtypes(id),
        shapes: this.#data.shapes(id),
      };
      if (parsed.matches(node)) out.push(id);
    }
    return out;
  }

  // Ids of all hits, ascending; the last queries are kept, as every list of children asks for them.
  #hitIds(q: string): Uint32Array {
    const known = this.#hits.get(q);
    if (known) return known;
    const parsed = parseQuery(q);
    const ids = Uint32Array.from(this.#places.flatMap((range) => this.#matching(parsed, range)));
    if (this.#hits.size > 8) this.#hits.clear();
    this.#hits.set(q, ids);
    return ids;
  }

  #find(p: (name: string) => string): Result<unknown> {
    const parsed = parseQuery(p("q"));
    if (parsed.error) {
      return success({ total: 0, rows: this.#table([]), cursor: "", error: parsed.error });
    }
    const place = number(p("place"), -1);
    const range = this.#places[place];
    const of = p("side");
    let ids = [...this.#hitIds(p("q"))].filter((id) => {
      if (range && (id < range.target || id >= range.end)) return false;
      if (of === "") return true;
      const own = range ?? this.#places.find((r) => id >= r.target && id < r.end);
      return own !== undefined && (id < own.golden) === (of === "target");
    });
    if (p("order") === "name") ids = ids.sort((a, b) => (this.#data.name(a) < this.#data.name(b) ? -1 : 1));
    else if (p("order") === "error") ids = ids.sort((a, b) => size(this.#data.row(b)) - size(this.#data.row(a)));
    const from = number(p("cursor"), 0);
    const limit = number(p("limit"), 100);
    const cursor = from + limit < ids.length ? String(from + limit) : "";
    return success({ total: ids.length, rows: this.#table(ids.slice(from, from + limit)), cursor, error: null });
  }

  #first(p: (name: string) => string): Result<unknown> {
    const range = this.#places[number(p("place"), -1)];
    const offset = number(p("offset"), 0);
    const own = this.#data.first.filter(({ id }) => !range || (id >= range.target && id < range.end));
    const rows = own.slice(offset, offset + number(p("limit"), 100)).map(({ id, kind, why }) => {
      const row = this.#data.row(id);
      return [...FIELDS.map((field) => asJson(row[field])), kind, why];
    });
    return success({
      rows: { fields: [...FIELDS, "kind", "why"], rows }, total: own.length, ordered_by: this.#data.firstOrder,
    });
  }

  #overSteps(id: number, value: string): Result<unknown> {
    const series = this.#isNode(id) ? this.#data.overSteps(id, value) : null;
    return series ? success(jsonNumbers(series)) : failure("not-found", "There is one step only.");
  }
}

const number = (text: string, missing: number): number => (text === "" ? missing : Number(text));
const side = (text: string): Side => (text === "golden" ? "golden" : "target");
const size = (row: NodeRow): number => (row.error === null ? -1 : Number.isNaN(row.error) ? Infinity : row.error);

function onlyServed(): Result<never> {
  return failure("only-served", "This page stands in a file. Open the recordings with \"plumb view\" for this.");
}

function noNode(id: number): Result<never> {
  return failure("not-found", `There is no node ${id}; reload the page.`);
}

function asJson(value: unknown): unknown {
  if (typeof value !== "number" || Number.isFinite(value)) return value;
  return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

function jsonNumbers(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(jsonNumbers);
  if (typeof value !== "object" || value === null) return asJson(value);
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, jsonNumbers(entry)]));
}

// How many of the ascending `ids` lie in [from, to).
function countInside(ids: Uint32Array, from: number, to: number): number {
  return lowerBound(ids, to) - lowerBound(ids, from);
}
