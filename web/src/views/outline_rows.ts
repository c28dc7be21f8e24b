// The rows of an outline without a list of them: how many rows each open node takes is kept, and the
// row at any position is found by walking down.
import { firstNot, lowerBound, type Branch, type Tree } from "../tree";
import type { NodeRow } from "../types";

interface OutlineRow {
  // null: not loaded yet.
  readonly row: NodeRow | null;
  readonly parent: number;
  readonly at: number;
  readonly depth: number;
}

interface Sums {
  readonly version: number;
  readonly count: number;
  // before[i]: rows that the open children before the i-th one add.
  readonly before: readonly number[];
}

export class OutlineRows {
  readonly #tree: Tree;
  readonly #sums = new Map<number, Sums>();

  constructor(tree: Tree) {
    this.#tree = tree;
  }

  // The root has no row of its own.
  get count(): number {
    return this.#below(this.#tree.root.id).count;
  }

  #below(id: number): Sums {
    const branch = this.#tree.branch(id);
    if (!branch) return { version: -1, count: 0, before: [] };
    const known = this.#sums.get(id);
    if (known && known.version === branch.version) return known;
    const before: number[] = [];
    let added = 0;
    for (const at of branch.open) {
      before.push(added);
      added += this.#countOf(branch, at);
    }
    const sums = { version: branch.version, count: branch.total + added, before };
    this.#sums.set(id, sums);
    return sums;
  }

  #countOf(branch: Branch, at: number): number {
    const row = branch.rows[at];
    return row ? this.#below(row.id).count : 0;
  }

  at(index: number): OutlineRow | null {
    let id = this.#tree.root.id;
    let rest = index;
    for (let depth = 1; ; depth++) {
      const branch = this.#tree.branch(id);
      if (!branch || rest < 0 || rest >= this.#below(id).count) return null;
      const { before } = this.#below(id);
      // The last open child whose row comes at or before this one.
      const last = firstNot(branch.open.length, (at) => (branch.open[at] ?? 0) + (before[at] ?? 0) <= rest) - 1;
      const open = branch.open[last];
      if (open === undefined) return { row: branch.rows[rest] ?? null, parent: id, at: rest, depth };
      const first = open + (before[last] ?? 0);
      const inside = this.#countOf(branch, open);
      if (rest === first) return { row: branch.rows[open] ?? null, parent: id, at: open, depth };
      if (rest > first + inside) {
        const at = rest - (before[last] ?? 0) - inside;
        return { row: branch.rows[at] ?? null, parent: id, at, depth };
      }
      const next = branch.rows[open];
      if (!next) return null;
      id = next.id;
      rest -= first + 1;
    }
  }

  // Position of a node; -1 for one that cannot be seen, and for the root.
  indexOf(id: number): number {
    const row = this.#tree.node(id);
    if (!row || id === this.#tree.root.id || !this.#tree.isOpen(row.parent)) return -1;
    const branch = this.#tree.branch(row.parent);
    const at = this.#tree.position(id);
    if (!branch || at < 0) return -1;
    const opened = lowerBound(branch.open, at);
    const { before } = this.#below(row.parent);
    const added = opened < branch.open.length ? (before[opened] ?? 0) : this.#below(row.parent).count - branch.total;
    if (row.parent === this.#tree.root.id) return at + added;
    const parent = this.indexOf(row.parent);
    return parent < 0 ? -1 : parent + 1 + at + added;
  }
}
