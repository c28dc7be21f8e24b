// One part of a page's data: a rank of a step, with its trees, calls and rows.
import type { Level } from "../types";
import type { CallData, EndData, PartData, SideData, TreeData } from "./report_data";
import type { ValueRow } from "./value_rows";

const LEVELS: readonly Level[] = ["pass", "warning", "error"];
const NONE = -1;

// The nodes of one side, in pre-order, with what is known from their positions.
export class SideNodes {
  readonly data: SideData;
  readonly count: number;
  // Of the subtree with the node itself; distance from the root; children; position among siblings.
  readonly sizes: Int32Array;
  readonly depths: Int32Array;
  readonly children: Int32Array;
  readonly indexes: Int32Array;
  // The call whose rows the node shows; -1: none.
  readonly calls: Int32Array;
  readonly levels: Level[] = [];
  // Of the subtree without the node itself.
  readonly errors: Int32Array;
  readonly warnings: Int32Array;
  readonly unmatched: Int32Array;

  constructor(data: SideData) {
    this.data = data;
    this.count = data.names.length;
    const column = (): Int32Array => new Int32Array(this.count);
    this.sizes = column().fill(1);
    this.depths = column();
    this.children = column();
    this.indexes = column();
    this.calls = column().fill(NONE);
    this.errors = column();
    this.warnings = column();
    this.unmatched = column();
    for (let i = 0; i < this.count; i++) {
      const parent = data.parents[i] ?? NONE;
      if (parent < 0 || parent >= i) continue;
      this.depths[i] = (this.depths[parent] ?? 0) + 1;
      this.indexes[i] = this.children[parent] ?? 0;
      add(this.children, parent, 1);
    }
    for (let i = this.count - 1; i > 0; i--) add(this.sizes, data.parents[i], this.sizes[i]);
  }

  // Fills levels: of the target its own, of golden those of the counterparts.
  judge(levelOf: (node: number) => Level): void {
    for (let i = 0; i < this.count; i++) this.levels.push(levelOf(i));
  }

  // Adds up what is wrong within each node, by `own` and what is missing on the other side.
  rollUp(own: (node: number) => Level): void {
    for (let i = this.count - 1; i > 0; i--) {
      const parent = this.data.parents[i];
      const level = own(i);
      add(this.errors, parent, (this.errors[i] ?? 0) + (level === "error" ? 1 : 0));
      add(this.warnings, parent, (this.warnings[i] ?? 0) + (level === "warning" ? 1 : 0));
      add(this.unmatched, parent, (this.unmatched[i] ?? 0) + (level === "unmatched" ? 1 : 0));
    }
  }
}

function add(column: Int32Array, at: number | undefined, count: number | undefined): void {
  if (at !== undefined && at >= 0) column[at] = (column[at] ?? 0) + (count ?? 0);
}

export class Part {
  readonly data: PartData;
  readonly tree: TreeData;
  readonly calls: CallData;
  readonly end: EndData;
  readonly target: SideNodes;
  readonly golden: SideNodes;
  // By call, once they were asked for; a call that is not there was left out of the page.
  rows: ReadonlyMap<number, readonly ValueRow[]> | null = null;
  readonly #unmatched: ReadonlyMap<number, string>;
  readonly #pairings: ReadonlyMap<number, string>;
  readonly #foreign: ReadonlySet<number>;

  constructor(data: PartData, tree: TreeData, calls: CallData, end: EndData) {
    this.data = data;
    this.tree = tree;
    this.calls = calls;
    this.end = end;
    this.target = new SideNodes(tree.target);
    this.golden = new SideNodes(tree.golden);
    this.#unmatched = textsOf(calls, calls.unmatched);
    this.#pairings = textsOf(calls, calls.pairings);
    this.#foreign = new Set(calls.foreign);
    calls.target.forEach((node, call) => this.#place(this.target, node, call));
    calls.golden.forEach((node, call) => this.#place(this.golden, node, call));
    this.#judge();
  }

  // Of one recording there is nothing to compare with.
  get isAlone(): boolean {
    return this.data.header.golden === "";
  }
  get callCount(): number {
    return this.calls.numbers.length;
  }

  nameOf(side: SideNodes, node: number): string {
    const own = side.data.names[node] ?? "";
    if (own !== "" || side === this.target) return own;
    return this.target.data.names[side.data.partners[node] ?? NONE] ?? "";
  }

  // Of the target, else of golden.
  callName(call: number): string {
    const target = this.calls.target[call] ?? NONE;
    return target >= 0 ? this.nameOf(this.target, target) : this.nameOf(this.golden, this.calls.golden[call] ?? NONE);
  }

  // "shape-differs ([2], golden [3])"; empty: the call is paired.
  unmatchedText(call: number): string {
    return this.#unmatched.get(call) ?? "";
  }
  pairingText(call: number): string {
    return this.#pairings.get(call) ?? "";
  }

  // The words of a reason code, with what stands behind it.
  reasonText(reason: string): string {
    const space = reason.indexOf(" ");
    const code = space < 0 ? reason : reason.slice(0, space);
    const words = this.data.reasons[code];
    return words === undefined ? reason : words + (space < 0 ? "" : reason.slice(space));
  }

  stackOf(call: number): readonly string[] {
    const list = this.calls.lists[this.calls.stacks[call] ?? NONE] ?? [];
    return list.map((frame) => this.calls.frames[frame] ?? "");
  }

  // Which frames of that stack are not the user's.
  foreignOf(call: number): readonly number[] {
    const list = this.calls.lists[this.calls.stacks[call] ?? NONE] ?? [];
    return [...list.keys()].filter((i) => this.#foreign.has(list[i] ?? NONE));
  }

  // The call that the answer names; -1: none, or not one of this page.
  firstCall(): number {
    return this.calls.flags.findIndex((flags) => (flags & 1) !== 0);
  }

  // The first call on a node stays: a node has one, but for names that occur again.
  #place(side: SideNodes, node: number, call: number): void {
    if (node >= 0 && (side.calls[node] ?? NONE) < 0) side.calls[node] = call;
  }

  #judge(): void {
    const { target, golden } = this;
    const own = (side: SideNodes, node: number): Level => {
      if (this.isAlone) return "none";
      if (side.data.partners[node] === NONE) return node === 0 ? "none" : "unmatched";
      return LEVELS[side.data.levels[node] ?? NONE] ?? "none";
    };
    target.judge((node) => own(target, node));
    golden.judge((node) => {
      const partner = golden.data.partners[node] ?? NONE;
      return partner >= 0 ? (target.levels[partner] ?? "none") : own(golden, node);
    });
    target.rollUp((node) => target.levels[node] ?? "none");
    golden.rollUp((node) => golden.levels[node] ?? "none");
  }
}

function textsOf(calls: CallData, pairs: readonly (readonly number[])[]): ReadonlyMap<number, string> {
  return new Map(pairs.map(([call = NONE, text = NONE]) => [call, calls.texts[text] ?? ""]));
}
