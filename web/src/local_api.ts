// Answers questions from a dataset that is in the page's own memory: the data of a report, or a made
// one.
import { Api, type ChildrenQuestion, type EventKind, type FindQuestion } from "./api";
import { parseQuery } from "./query";
import { failure, success, type Result } from "./result";
import { lowerBound } from "./tree";
import type { FirstRow, Meta, NodeDetails, NodeRow, OverSteps, Side } from "./types";

export type LocalDetails = Omit<NodeDetails, "row" | "partner_row" | "path">;

// Nodes by id: those of a place follow each other, in pre-order, so that the first child of `i` is
// `i + 1` and its next sibling `i + size`.
export interface LocalDataset {
  readonly meta: Meta;
  readonly nodeCount: number;
  // Makes the values of a node, or of all, ready to be asked for.
  load(id: number | "all"): Promise<Result<unknown>>;
  row(id: number): NodeRow;
  name(id: number): string;
  // null: its details are not part of this page.
  details(id: number): LocalDetails | null;
  dtypes(id: number): readonly string[];
  shapes(id: number): readonly string[];
  readonly first: readonly { readonly id: number; readonly kind: FirstRow["kind"]; readonly why: string }[];
  readonly firstOrder: string;
  overSteps(id: number, value: string): OverSteps | null;
}

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
  // Everything that is not answered below.
  protected override async get(): Promise<Result<unknown>> {
    return failure("only-served", "This page stands in a file. Open the recordings with \"plumb view\" for this.");
  }
  protected override post(): Promise<Result<unknown>> {
    return this.get();
  }
  protected override remove(): Promise<Result<unknown>> {
    return this.get();
  }

  override async datasets() {
    const { target, golden, etag } = this.#data.meta;
    const title = golden === "" ? target : `${target} · ${golden}`;
    const dataset = { id: ID, kind: "graph", state: "ready", title, target, golden, progress: 1, error: "", etag } as const;
    return success({ datasets: [dataset], read_only: true, roots: [] });
  }

  override async jobs() {
    return success([]);
  }

  override async matches() {
    return success({ pairs: [], can_undo: false });
  }

  override async meta(_: string) {
    return success(this.#data.meta);
  }

  override async children(_: string, { nodes, offset = 0, limit = 100, ms = -1, q = "" }: ChildrenQuestion) {
    const hits = q === "" ? undefined : await this.#hitIds(q);
    const lists = [];
    for (const node of nodes) {
      if (!this.#isNode(node)) return noNode(node);
      const children = this.#childRows(node).filter((child) => ms < 0 || child.ms === ms);
      const rows = children.slice(offset, offset + limit).map((row) => (hits ? withHits(row, hits) : row));
      lists.push({ node, total: children.length, offset, rows });
    }
    return success(lists);
  }

  override async path(_: string, node: number) {
    return this.#isNode(node) ? success({ exact: true, rows: this.#pathRows(node) }) : noNode(node);
  }

  override async pathOf(_: string, name: string, place: number, of: Side) {
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
          return success({ exact: isWhole, rows: this.#pathRows(id) });
        }
      }
    }
    return success({ exact: false, rows: [this.#data.row(from)] });
  }

  override async node(_: string, id: number) {
    if (!this.#isNode(id)) return noNode(id);
    const loaded = await this.#data.load(id);
    if (!loaded.ok) return loaded;
    const details = this.#data.details(id);
    if (!details) {
      return failure("left-out", "The numbers of this call were left out of the file to keep it small; open the recordings with \"plumb view\" to see them.");
    }
    const row = this.#data.row(id);
    return success({
      ...details, row, partner_row: row.partner >= 0 ? this.#data.row(row.partner) : null, path: this.#pathRows(id).map(({ name }) => name),
    });
  }

  override async find(_: string, question: FindQuestion) {
    const { q, place = -1, side, cursor = "", limit = 100, order } = question;
    const { error } = parseQuery(q);
    if (error) return success({ total: 0, rows: [], cursor: "", error });
    const range = this.#places[place];
    const rows = [...(await this.#hitIds(q))].filter((id) => {
      if (range && (id < range.target || id >= range.end)) return false;
      const own = range ?? this.#places.find((each) => id >= each.target && id < each.end);
      return side === undefined || (own !== undefined && (id < own.golden) === (side === "target"));
    }).map((id) => this.#data.row(id));
    if (order === "name") rows.sort((a, b) => (a.name < b.name ? -1 : 1));
    else if (order === "error") rows.sort((a, b) => size(b) - size(a));
    const from = Number(cursor);
    const next = from + limit < rows.length ? String(from + limit) : "";
    return success({ total: rows.length, rows: rows.slice(from, from + limit), cursor: next, error: null });
  }

  override async first(_: string, place: number, offset = 0, limit = 100) {
    const range = this.#places[place];
    const own = this.#data.first.filter(({ id }) => !range || (id >= range.target && id < range.end));
    const rows = own.slice(offset, offset + limit).map(({ id, kind, why }) => ({ ...this.#data.row(id), kind, why }));
    return success({ rows, total: own.length, ordered_by: this.#data.firstOrder });
  }

  override async flow(_: string, node: number, offset: number, limit: number) {
    if (!this.#isNode(node)) return noNode(node);
    const rows = this.#childRows(node).sort((a, b) => a.order - b.order);
    return success({ total: rows.length, rows: rows.slice(offset, offset + limit) });
  }

  override async overSteps(_: string, node: number, value: string) {
    const loaded = await this.#data.load("all");
    if (!loaded.ok) return loaded;
    const series = this.#isNode(node) ? this.#data.overSteps(node, value) : null;
    return series ? success(series) : failure("not-found", "There is one step only.");
  }

  #isNode(id: number): boolean {
    return Number.isInteger(id) && id >= 0 && id < this.#data.nodeCount;
  }

  #childRows(id: number): NodeRow[] {
    const rows: NodeRow[] = [];
    for (let child = id + 1; rows.length < this.#data.row(id).children;) {
      const row = this.#data.row(child);
      rows.push(row);
      child += row.size;
    }
    return rows;
  }

  #pathRows(id: number): NodeRow[] {
    const rows: NodeRow[] = [];
    for (let at = id; at >= 0; at = rows[0]?.parent ?? -1) rows.unshift(this.#data.row(at));
    return rows;
  }

  // Ids of all hits, ascending; the last queries are kept, as every list of children asks for them.
  async #hitIds(q: string): Promise<Uint32Array> {
    const known = this.#hits.get(q);
    if (known) return known;
    if (/\b(dtype|shape):/i.test(q)) await this.#data.load("all");
    const { matches } = parseQuery(q);
    const ids: number[] = [];
    for (const range of this.#places) {
      const { step = 0, rank = 0 } = this.#data.meta.places[range.index] ?? {};
      for (let id = range.target; id < range.end; id++) {
        const side = id < range.golden ? "target" : "golden";
        if (matches({ row: this.#data.row(id), side, step, rank, dtypes: this.#data.dtypes(id), shapes: this.#data.shapes(id) })) ids.push(id);
      }
    }
    if (this.#hits.size > 8) this.#hits.clear();
    const found = Uint32Array.from(ids);
    this.#hits.set(q, found);
    return found;
  }
}

const size = (row: NodeRow): number => (row.error === null ? -1 : Number.isNaN(row.error) ? Infinity : row.error);

function noNode(id: number): Result<never> {
  return failure("not-found", `There is no node ${id}; reload the page.`);
}

// How many of the ascending `hits` lie in a node, and whether it is one of them.
function withHits(row: NodeRow, hits: Uint32Array): NodeRow {
  const first = lowerBound(hits, row.id);
  return { ...row, hits: lowerBound(hits, row.id + row.size) - first, is_hit: hits[first] === row.id };
}
