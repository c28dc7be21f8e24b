// The data of a page that stands in a file as a dataset of nodes, and what only such a page shows: the
// answer over all ranks, plots of elements, rows.
import type { LocalDataset, LocalDetails } from "../local_api";
import { decode, type Decoder } from "../decode";
import { failure, success, type Result } from "../result";
import { VERDICTS } from "../marks";
import { lowerBound } from "../tree";
import { FLAG, type FirstRow, type FirstWrong, type Level, type Meta, type NodeRow, type NodeType, type OverSteps, type Place, type Scalar, type Side } from "../types";
import { linesOf, unpack, type PackedLine } from "./packed";
import { Part, type SideNodes } from "./part";
import { callData, endData, pageHead, partData, rowBlock, treeData, type FirstCall, type PageHead, type RankPlace } from "./report_data";
import { isTensor, pairOf, rowsOf, type ValueRow } from "./value_rows";

// Member of Meta.facts that tells that a page has a report.
export const REPORT_FACT = "report";
const NONE = -1;
const VERSION = 2;
// Of plumbline::vis::NodeType.
const TYPES: ReadonlyMap<number, NodeType> = new Map<number, NodeType>([[0, "module"], [1, "api"], [8, "fused"], [9, "group"]]);

interface PackedPart {
  readonly part: Part;
  readonly rows: readonly PackedLine[];
}

// A node by where it stands.
interface Where {
  readonly place: number;
  readonly part: Part;
  readonly side: Side;
  readonly nodes: SideNodes;
  readonly at: number;
}

export class FileDataset implements LocalDataset {
  readonly head: PageHead;
  readonly parts: readonly Part[];
  readonly meta: Meta;
  readonly nodeCount: number;
  readonly first: readonly { readonly id: number; readonly kind: FirstRow["kind"]; readonly why: string }[];
  readonly firstOrder = "what is named as communication between ranks tells, the rest by step, rank and call";
  readonly #packed: readonly PackedPart[];
  // The first id of each side: of the target of place p at 2p, of golden at 2p + 1.
  readonly #begins: readonly number[];
  readonly #loading: (Promise<Result<unknown>> | undefined)[] = [];

  private constructor(head: PageHead, packed: readonly PackedPart[]) {
    this.head = head;
    this.#packed = packed;
    this.parts = packed.map(({ part }) => part);
    const begins: number[] = [];
    let next = 0;
    for (const { target, golden } of this.parts) {
      begins.push(next, next + target.count);
      next += target.count + golden.count;
    }
    this.#begins = begins;
    this.nodeCount = next;
    this.meta = this.#makeMeta();
    this.first = this.#makeFirst();
  }

  // `text`: what stands in the element of the data.
  static async read(text: string): Promise<Result<FileDataset>> {
    const lines = linesOf(text);
    const ask = async <T>(line: PackedLine | undefined, decoder: Decoder<T>): Promise<Result<T>> => {
      const got = await unpack(line ?? { kind: "nothing", letters: "" });
      return got.ok ? decode(decoder, got.value, line?.kind ?? "") : got;
    };
    if (lines[0]?.kind !== "page") return failure("damaged", "There are no data in this file. Write the file again.");
    const head = await ask(lines[0], pageHead);
    if (!head.ok) return head;
    if (head.value.version !== VERSION) {
      return failure("version", `The data of this file are of version ${head.value.version}; the page reads version ${VERSION}.`);
    }
    const packed: PackedPart[] = [];
    for (const of of partsOf(lines.slice(1))) {
      const one = (kind: string): PackedLine | undefined => of.find((line) => line.kind === kind);
      const [part, tree, calls, end] = await Promise.all([
        ask(one("part"), partData), ask(one("tree"), treeData), ask(one("calls"), callData), ask(one("end"), endData),
      ]);
      for (const each of [part, tree, calls, end]) if (!each.ok) return each;
      if (!part.ok || !tree.ok || !calls.ok || !end.ok) continue;
      packed.push({ part: new Part(part.value, tree.value, calls.value, end.value), rows: of.filter((line) => line.kind === "rows") });
    }
    if (packed.length === 0 || packed.length !== head.value.parts) return failure("damaged", "The data of this file are cut. Write the file again.");
    return success(new FileDataset(head.value, packed));
  }

  // Unpacks the rows of a place, once.
  loadRows(place: number): Promise<Result<unknown>> {
    return (this.#loading[place] ??= this.#readRows(place));
  }

  async #readRows(place: number): Promise<Result<unknown>> {
    const packed = this.#packed[place];
    if (!packed) return success(null);
    const byCall = new Map<number, ValueRow[]>();
    for (const line of packed.rows) {
      const got = await unpack(line);
      const block = got.ok ? decode(rowBlock, got.value, line.kind) : got;
      if (!block.ok) return block;
      for (const row of rowsOf(block.value)) {
        const known = byCall.get(row.call);
        if (known) known.push(row);
        else byCall.set(row.call, [row]);
      }
    }
    packed.part.rows = byCall;
    return success(null);
  }

  // Rows are unpacked when a question needs them.
  async load(id: number | "all"): Promise<Result<unknown>> {
    const places = id === "all" ? [...this.parts.keys()] : [this.#where(id).place];
    for (const place of places) {
      const loaded = await this.loadRows(place);
      if (!loaded.ok) return loaded;
    }
    return success(null);
  }
  // The node of a call: the target's, or the golden one where the target has none; -1: left out.
  idOfCall(place: number, call: number): number {
    const part = this.parts[place];
    const target = part?.calls.target[call] ?? NONE;
    if (target >= 0) return this.#id(place, "target", target);
    const golden = part?.calls.golden[call] ?? NONE;
    return golden >= 0 ? this.#id(place, "golden", golden) : NONE;
  }
  // The place of a rank of the overview; -1: it could not be compared.
  placeOfRank(rank: RankPlace): number {
    return this.parts.findIndex(({ data }) => data.step === rank.step && data.rank === rank.rank);
  }

  name(id: number): string {
    const { part, nodes, at } = this.#where(id);
    return part.nameOf(nodes, at);
  }

  row(id: number): NodeRow {
    const where = this.#where(id);
    const { place, part, side, nodes, at } = where;
    const { data } = nodes;
    const parent = data.parents[at] ?? NONE;
    const partner = data.partners[at] ?? NONE;
    const call = this.#callOf(where);
    const inside = this.#inside(where, partner);
    return {
      id,
      parent: parent < 0 ? NONE : this.#id(place, side, parent),
      partner: partner < 0 ? NONE : this.#id(place, side === "target" ? "golden" : "target", partner),
      name: part.nameOf(nodes, at),
      type: at === 0 ? "root" : (TYPES.get(data.types[at] ?? 0) ?? "module"),
      children: nodes.children[at] ?? 0,
      size: nodes.sizes[at] ?? 1,
      depth: nodes.depths[at] ?? 0,
      index: at === 0 ? NONE : (nodes.indexes[at] ?? NONE),
      order: data.orders[at] ?? 0,
      level: nodes.levels[at] ?? "none",
      overflow: "",
      ...inside,
      ms: data.micro_steps[at] ?? 0,
      error: known(part.calls.errors[call]),
      input_error: known(part.calls.input_errors[call]),
      flags: (data.flags[at] ?? 0) | this.#callFlags(where, call),
      hits: NONE,
      is_hit: false,
      change: "",
    };
  }

  // Requires: its rows.
  details(id: number): LocalDetails | null {
    const where = this.#where(id);
    const { part } = where;
    const call = this.#callOf(where);
    const rows = part.rows?.get(call) ?? [];
    if (call >= 0 && rows.length === 0 && (part.calls.rows[call] ?? 0) > 0) return null;
    const reason = part.unmatchedText(call);
    const { mode } = part.data.header;
    const hidden = where.nodes.data.hidden[where.at] ?? 0;
    return {
      stack: part.stackOf(call),
      golden_stack: [],
      pairing: part.pairingText(call),
      verdict: call < 0 ? "" : (VERDICTS[part.calls.verdicts[call] ?? 4] ?? ""),
      reason,
      reason_text: reason === "" ? whyOf(part, rows) : part.reasonText(reason),
      merge: hidden > 0 ? [`${hidden} calls within were left out of this file`] : [],
      values: rows.map((row) => pairOf(row, mode, part.data.reasons)),
    };
  }

  dtypes(id: number): readonly string[] {
    return this.#rowTexts(id, (row) => row.dtypes).map((dtype) => dtype.replace(/^torch\./, ""));
  }
  shapes(id: number): readonly string[] {
    return this.#rowTexts(id, (row) => row.shapes).map((shape) => shape.replaceAll(" ", ""));
  }

  // Of the same rank in all steps of the page. Requires: the rows of all places.
  overSteps(id: number, value: string): OverSteps | null {
    const { part, side } = this.#where(id);
    const name = this.name(id);
    const places = this.parts.filter(({ data }) => data.rank === part.data.rank);
    if (places.length < 2) return null;
    const rows = places.map((other) => {
      const nodes = side === "golden" ? other.golden : other.target;
      const at = Array.from(nodes.data.names.keys()).find((i) => other.nameOf(nodes, i) === name) ?? NONE;
      return other.rows?.get(nodes.calls[at] ?? NONE)?.find((row) => row.item === value);
    });
    const series = (of: 0 | 1) => {
      const statistic = (i: number): (number | null)[] => rows.map((row) => {
        const own = row?.statistics[of];
        return own && isTensor(own) ? numberOf(own[i]) : null;
      });
      return { max: statistic(0), min: statistic(1), mean: statistic(2), norm: statistic(3) };
    };
    return {
      steps: places.map(({ data }) => data.step ?? 0),
      target: series(0),
      golden: series(1),
      error: rows.map((row) => row?.error ?? null),
    };
  }

  // --- Nodes

  #id(place: number, side: Side, at: number): number {
    return (this.#begins[2 * place + (side === "golden" ? 1 : 0)] ?? 0) + at;
  }

  #where(id: number): Where {
    // The last begin that is not beyond `id`: an empty side begins where the next one does.
    const begin = lowerBound(this.#begins, id + 1) - 1;
    const place = begin >> 1;
    const part = this.parts[place];
    if (!part) throw new RangeError(`node ${id} of ${this.nodeCount}`);
    const side = begin % 2 === 0 ? "target" : "golden";
    return { place, part, side, nodes: part[side], at: id - (this.#begins[begin] ?? 0) };
  }

  #callOf({ nodes, at }: Where): number {
    return nodes.calls[at] ?? NONE;
  }

  // What was found out belongs to the target's node where there is one.
  #callFlags({ part, side }: Where, call: number): number {
    const flags = part.calls.flags[call] ?? 0;
    const isOthers = side === "golden" && (part.calls.target[call] ?? NONE) >= 0;
    return isOthers ? flags & FLAG.communicates : flags;
  }

  #inside({ part, side, nodes, at }: Where, partner: number): Pick<NodeRow, "worst" | "errors" | "warnings" | "unmatched"> {
    const [of, i] = side === "golden" && partner >= 0 ? [part.target, partner] : [nodes, at];
    const errors = of.errors[i] ?? 0, warnings = of.warnings[i] ?? 0, unmatched = nodes.unmatched[at] ?? 0;
    const worst: Level = errors > 0 ? "error" : warnings > 0 ? "warning" : unmatched > 0 ? "unmatched" : "none";
    return { worst, errors, warnings, unmatched };
  }

  #rowTexts(id: number, of: (row: ValueRow) => readonly [string, string]): readonly string[] {
    const where = this.#where(id);
    const rows = where.part.rows?.get(this.#callOf(where)) ?? [];
    return rows.map((row) => of(row)[where.side === "golden" ? 1 : 0]).filter((text) => text !== "");
  }

  // --- The answer

  #makeMeta(): Meta {
    const { overview } = this.head;
    const [part] = this.parts;
    const places = this.parts.map((_, place) => this.#placeInfo(place));
    return {
      etag: "file",
      kind: part?.isAlone === true ? "build" : "compare",
      mode: part?.data.header.mode ?? "",
      target: overview?.target ?? part?.data.header.target ?? "",
      golden: overview?.golden ?? part?.data.header.golden ?? "",
      answer: this.head.answer,
      complete: overview?.complete ?? part?.data.header.complete ?? false,
      source: "plumbline",
      first: this.#firstWrong(),
      steps: [...new Set(places.map(({ step }) => step))],
      ranks: [...new Set(places.map(({ rank }) => rank))].sort((a, b) => a - b),
      micro_steps: Math.max(1, ...this.parts.map(({ tree }) => tree.micro_steps)),
      overflow_check: false,
      has_tensors: false,
      places,
      notes: this.#notes(),
      facts: { [REPORT_FACT]: true },
    };
  }

  #placeInfo(place: number): Place {
    const part = this.parts[place] as Part;
    const { data, tree, target, golden } = part;
    return {
      step: data.step ?? 0,
      rank: data.rank ?? (this.parts.length > 1 && data.step === null ? place : 0),
      target_root: target.count > 0 ? this.#id(place, "target", 0) : NONE,
      golden_root: golden.count > 0 && !part.isAlone ? this.#id(place, "golden", 0) : NONE,
      nodes: target.count,
      golden_nodes: part.isAlone ? 0 : golden.count,
      micro_steps: tree.micro_steps,
      counts: tree.counts,
      overflows: { medium: 0, high: 0, critical: 0 },
      answer: data.answer[0] ?? "",
      first: data.header.first_wrong_call?.name ?? "",
    };
  }

  // The place of the answer and the call there, as far as the page has it.
  #firstWrong(): FirstWrong | null {
    const { overview } = this.head;
    const named = this.parts.findIndex(({ data }) => data.header.first_wrong_call !== null);
    const answer: FirstCall | null = overview ? overview.first_wrong_call : (this.parts[named]?.data.header.first_wrong_call ?? null);
    if (!answer) return null;
    const place = Math.max(0, overview?.first_wrong_call ? this.placeOfRank(overview.first_wrong_call) : named);
    const part = this.parts[place];
    const call = part ? callNamed(part, answer.name) : NONE;
    const { name, what, item, cause, cause_text, confidence, stack_line, stack, module_path } = answer;
    return { id: this.idOfCall(place, call), place, name, what, item, cause, cause_text, confidence, stack_line, stack, module_path };
  }

  #notes(): readonly string[] {
    const labelled = (part: Part, text: string): string => (part.data.label === "" ? text : `${part.data.label}: ${text}`);
    const { overview } = this.head;
    const lost = (overview?.ranks ?? []).filter(({ state }) => state === "missing" || state === "failed").map((rank) =>
      `${rankLabel(rank)}: ${rank.state === "missing" ? "not on both sides, not compared" : `not compared: ${rank.error ?? ""}`}`);
    return [
      ...lost,
      ...(overview?.notes ?? []),
      ...this.parts.flatMap((part) =>
        [...part.data.header.warnings, ...part.tree.notes, ...leftOut(part)].map((text) => labelled(part, text))),
    ];
  }

  // The answer, what other ranks name, then calls that are wrong though their inputs are right, then what
  // has no counterpart, then what only inherits; each in the order of steps, ranks and calls.
  #makeFirst(): { id: number; kind: FirstRow["kind"]; why: string }[] {
    const named = this.meta.first;
    const origins = this.head.overview?.origins.map((rank) => this.placeOfRank(rank)) ?? [];
    const kinds: Record<FirstRow["kind"], { id: number; why: string }[]> = { first: [], source: [], mismatch: [], carrier: [] };
    this.parts.forEach((part, place) => {
      const answer = part.data.header.first_wrong_call;
      for (let call = 0; call < part.callCount; call++) {
        const flags = part.calls.flags[call] ?? 0;
        const id = this.idOfCall(place, call);
        const unmatched = part.unmatchedText(call);
        if (id < 0) continue;
        if (id === named?.id && part.callName(call) === named.name) kinds.first.push({ id, why: named.what });
        else if (answer && (flags & FLAG.first) !== 0 && part.callName(call) === answer.name) kinds.first.push({ id, why: answer.what });
        else if ((flags & FLAG.source) !== 0) kinds.source.push({ id, why: unmatched === "" ? whyWrong(part, call) : part.reasonText(unmatched) });
        else if ((flags & FLAG.carrier) !== 0) kinds.carrier.push({ id, why: whyWrong(part, call) });
        else if (unmatched !== "") kinds.mismatch.push({ id, why: part.reasonText(unmatched) });
      }
    });
    const turn = ({ id }: { id: number }): number => (id === named?.id ? NONE : origins.indexOf(this.#where(id).place) >>> 0); // none: last
    kinds.first.sort((a, b) => turn(a) - turn(b));
    return (["first", "source", "mismatch", "carrier"] as const).flatMap((kind) => kinds[kind].map((row) => ({ ...row, kind })));
  }
}

// The lines of each part.
function partsOf(lines: readonly PackedLine[]): readonly (readonly PackedLine[])[] {
  const parts: PackedLine[][] = [];
  for (const line of lines) {
    if (line.kind === "part") parts.push([]);
    parts.at(-1)?.push(line);
  }
  return parts;
}

function callNamed(part: Part, name: string): number {
  for (let call = 0; call < part.callCount; call++) if (part.callName(call) === name) return call;
  return part.firstCall();
}

// NaN stands for "none".
function known(value: number | undefined): number | null {
  return value === undefined || Number.isNaN(value) ? null : value;
}

function numberOf(value: Scalar | null | undefined): number | null {
  return typeof value === "number" ? value : null;
}

// "step 2 rank 3", as the parts of a page are labelled; a run without numbers by the end of its path.
export function rankLabel(rank: RankPlace & { readonly target?: string | null; readonly golden?: string | null }): string {
  const path = (rank.target ?? "") === "" ? (rank.golden ?? "") : (rank.target ?? "");
  const name = rank.rank !== null ? `rank ${rank.rank}` : (path.split("/").pop() || "rank");
  return rank.step === null ? name : `step ${rank.step} ${name}`;
}

const short = (value: number): string => (value === 0 ? "0" : String(Number(value.toPrecision(3))));

// The reason of the worst row that is suspicious or broken.
function whyOf(part: Part, rows: readonly ValueRow[]): string {
  const [worst] = rows.filter(({ verdict }) => verdict === 2 || verdict === 3).sort((a, b) => b.verdict - a.verdict);
  return worst ? `${worst.item}: ${part.reasonText(worst.reason)}` : "";
}

function whyWrong(part: Part, call: number): string {
  const error = known(part.calls.errors[call]), inputs = known(part.calls.input_errors[call]);
  const explained = known(part.calls.explained[call]);
  const results = error === null ? "its results are wrong" : `its results differ by ${short(error)}, of which ${short(explained ?? 0)} is explained`;
  const flags = part.calls.flags[call] ?? 0;
  return (flags & FLAG.carrier) === 0 ? results : `${inputs === null ? "its inputs are wrong already" : `its inputs differ by ${short(inputs)} already`}; ${results}`;
}

// What the limit of the file's size left out, as sentences.
function leftOut({ end, data }: Part): readonly string[] {
  const notes: string[] = [];
  const count = (number: number): string => number.toLocaleString("en");
  const nodes = end.node_total + end.golden_node_total - end.nodes - end.golden_nodes;
  if (nodes > 0) notes.push(`This file leaves out ${count(nodes)} of ${count(end.node_total + end.golden_node_total)} nodes, to stay small: those farthest from what is wrong. "plumb view" shows all.`);
  if (end.rows < end.row_total) notes.push(`This file holds the values of ${count(end.rows)} of ${count(end.row_total)} rows, those that matter most. "plumb view" and the csv file have all.`);
  if (data.evidence_left_out) notes.push("The plots of the elements of the first wrong call were left out of this file. \"plumb view\" shows them.");
  return notes;
}
