// One side of one place as a tree that is loaded as far as it is looked at. Which nodes are open is
// kept here; where they are drawn is the business of the layouts.
import type { Api, ChildrenQuestion } from "./api";
import type { Failure } from "./result";
import type { NodeRow } from "./types";

// Children asked for at once: 100 rows are less than 20 KB.
export const PAGE = 100;
// Lists per request, so that opening many nodes takes few round trips; requests at once.
const LISTS_AT_ONCE = 20;
const AT_ONCE = 3;

// The children of a node: how many there are, those that were loaded, those that are open.
export interface Branch {
  total: number;
  readonly rows: (NodeRow | undefined)[];
  // Positions of open children, ascending.
  readonly open: number[];
  // Grows whenever something within is opened, closed or loaded.
  version: number;
}

export interface TreeFilter {
  readonly ms: number;
  readonly q: string;
  readonly base: string;
}

export class Tree {
  readonly root: NodeRow;
  readonly #api: Api;
  readonly #dataset: string;
  readonly #changed: () => void;
  readonly #failed: (error: Failure) => void;
  readonly #filter: TreeFilter;
  readonly #nodes = new Map<number, NodeRow>();
  readonly #positions = new Map<number, number>();
  readonly #branches = new Map<number, Branch>();
  readonly #wanted = new Map<number, Set<number>>();
  readonly #loading = new Map<string, Promise<void>>();
  #isQueued = false;
  #inFlight = 0;

  constructor(
    api: Api, dataset: string, root: NodeRow, filter: TreeFilter,
    on: { readonly changed: () => void; readonly failed: (error: Failure) => void },
  ) {
    this.#api = api;
    this.#dataset = dataset;
    this.root = root;
    this.#filter = filter;
    this.#changed = on.changed;
    this.#failed = on.failed;
    this.#nodes.set(root.id, root);
    this.#branch(root);
  }

  node(id: number): NodeRow | undefined {
    return this.#nodes.get(id);
  }

  // Of a node that is open or was once.
  branch(id: number): Branch | undefined {
    return this.#branches.get(id);
  }

  // Position among its siblings; -1: not loaded.
  position(id: number): number {
    return this.#positions.get(id) ?? -1;
  }

  isOpen(id: number): boolean {
    if (id === this.root.id) return true;
    const row = this.#nodes.get(id);
    const parent = row && this.#branches.get(row.parent);
    return parent !== undefined && indexOf(parent.open, this.position(id)) >= 0;
  }

  // Whether all ancestors are open.
  isVisible(id: number): boolean {
    let row = this.#nodes.get(id);
    while (row && row.id !== this.root.id) {
      if (!this.isOpen(row.parent)) return false;
      row = this.#nodes.get(row.parent);
    }
    return row !== undefined;
  }

  open(row: NodeRow): void {
    if (row.children === 0 || row.id === this.root.id) return;
    const parent = this.#branches.get(row.parent);
    const at = this.position(row.id);
    if (!parent || at < 0 || indexOf(parent.open, at) >= 0) return;
    parent.open.splice(lowerBound(parent.open, at), 0, at);
    this.#branch(row);
    this.#touch(row.id);
    this.want(row.id, 0, PAGE);
  }

  close(row: NodeRow): void {
    const parent = this.#branches.get(row.parent);
    const at = parent ? indexOf(parent.open, this.position(row.id)) : -1;
    if (!parent || at < 0) return;
    parent.open.splice(at, 1);
    this.#touch(row.parent);
  }

  closeAll(): void {
    for (const branch of this.#branches.values()) {
      branch.open.length = 0;
      branch.version++;
    }
    this.#changed();
  }

  // Loads children `from` to `to` of an open node soon, unless they are there or on their way.
  want(id: number, from: number, to: number): void {
    const branch = this.#branches.get(id);
    if (!branch) return;
    const last = Math.min(to, branch.total);
    for (let page = Math.floor(from / PAGE); page * PAGE < last; page++) {
      if (branch.rows[page * PAGE] !== undefined || this.#loading.has(`${id}/${page}`)) continue;
      const pages = this.#wanted.get(page);
      if (pages) pages.add(id);
      else this.#wanted.set(page, new Set([id]));
    }
    if (this.#wanted.size === 0 || this.#isQueued) return;
    this.#isQueued = true;
    queueMicrotask(() => {
      this.#isQueued = false;
      this.#sendWanted();
    });
  }

  // The child at a position, loaded if need be.
  async childAt(id: number, at: number): Promise<NodeRow | null> {
    const branch = this.#branches.get(id);
    if (!branch || at < 0 || at >= branch.total) return null;
    if (branch.rows[at] === undefined) await this.#loadPage([id], Math.floor(at / PAGE));
    return branch.rows[at] ?? null;
  }

  // Opens all ancestors of the last of `path`, rows from the root down.
  async reveal(path: readonly NodeRow[]): Promise<NodeRow | null> {
    let found: NodeRow = this.root;
    for (const step of path.slice(1)) {
      if (found.id !== this.root.id) this.open(found);
      const next = await this.#locate(found.id, step);
      if (!next) return null;
      found = next;
    }
    return found;
  }

  // Opens those of `rows` that are loaded or can be found below open parents; parents come first.
  async openAll(rows: readonly NodeRow[]): Promise<void> {
    const sorted = [...rows].sort((a, b) => a.depth - b.depth || a.id - b.id);
    let depth = 0;
    for (const row of sorted) {
      if (row.depth !== depth) {
        depth = row.depth;
        await this.settled();
      }
      if (row.id === this.root.id) continue;
      const known = this.#nodes.get(row.id) ?? (await this.#locate(row.parent, row));
      if (known) this.open(known);
    }
    await this.settled();
  }

  // Everything that was wanted has come.
  async settled(): Promise<void> {
    await Promise.resolve();
    while (this.#loading.size > 0 || this.#wanted.size > 0) {
      await Promise.all(this.#loading.values());
      await Promise.resolve();
    }
  }

  // Rows that are loaded, of open nodes, by depth first: what a person can see.
  *visible(from: NodeRow = this.root): Generator<NodeRow> {
    yield* this.#visible(from);
  }

  *#visible(row: NodeRow): Generator<NodeRow> {
    yield row;
    const branch = this.#branches.get(row.id);
    if (!branch || !this.isOpen(row.id)) return;
    for (const child of branch.rows) {
      if (child) yield* this.#visible(child);
    }
  }

  #branch(row: NodeRow): Branch {
    const known = this.#branches.get(row.id);
    if (known) return known;
    const branch: Branch = { total: row.children, rows: [], open: [], version: 0 };
    this.#branches.set(row.id, branch);
    return branch;
  }

  // Marks a node and its ancestors as changed.
  #touch(id: number): void {
    let row = this.#nodes.get(id);
    while (row) {
      const branch = this.#branches.get(row.id);
      if (branch) branch.version++;
      row = row.id === this.root.id ? undefined : this.#nodes.get(row.parent);
    }
    this.#changed();
  }

  // Children stand in the order of their ids, so a page before or after is known from one row of it.
  async #locate(parent: number, step: NodeRow): Promise<NodeRow | null> {
    const branch = this.#branches.get(parent);
    if (!branch) return null;
    const known = this.#nodes.get(step.id);
    if (known) return known;
    let low = 0;
    let high = Math.ceil(branch.total / PAGE);
    let page = step.index >= 0 ? Math.floor(step.index / PAGE) : 0;
    while (low < high) {
      page = Math.min(Math.max(page, low), high - 1);
      if (branch.rows[page * PAGE] === undefined) await this.#loadPage([parent], page);
      const first = branch.rows[page * PAGE];
      if (!first) return null;
      const found = this.#nodes.get(step.id);
      if (found) return found;
      if (step.id < first.id) high = page;
      else low = page + 1;
      page = (low + high) >> 1;
    }
    return null;
  }

  // What was wanted last is most likely still in sight. Few requests at once: what a person asks for
  // must not wait behind what is only being passed.
  #sendWanted(): void {
    while (this.#inFlight < AT_ONCE && this.#wanted.size > 0) {
      const [page, ids] = [...this.#wanted].at(-1) ?? [0, new Set<number>()];
      const list = [...ids].filter((id) => !this.#loading.has(`${id}/${page}`)).slice(-LISTS_AT_ONCE);
      for (const id of list) ids.delete(id);
      if (list.length === 0 || ids.size === 0) this.#wanted.delete(page);
      if (list.length === 0) continue;
      this.#inFlight++;
      void this.#loadPage(list, page).finally(() => {
        this.#inFlight--;
        this.#sendWanted();
      });
    }
  }

  #loadPage(ids: readonly number[], page: number): Promise<void> {
    const known = ids.length === 1 ? this.#loading.get(`${ids[0]}/${page}`) : undefined;
    if (known) return known;
    const work = this.#fetch(ids, page * PAGE, (page + 1) * PAGE).finally(() => {
      for (const id of ids) this.#loading.delete(`${id}/${page}`);
    });
    for (const id of ids) this.#loading.set(`${id}/${page}`, work);
    return work;
  }

  // Children `from` to `to` of each; an answer may hold fewer, as it is kept short.
  async #fetch(ids: readonly number[], from: number, to: number): Promise<void> {
    const { ms, q, base } = this.#filter;
    const question: ChildrenQuestion = {
      nodes: ids, offset: from, limit: to - from,
      ...(ms >= 0 && { ms }), ...(q !== "" && { q }), ...(base !== "" && { base }),
    };
    const answer = await this.#api.children(this.#dataset, question);
    if (!answer.ok) {
      this.#failed(answer.error);
      return;
    }
    const none: number[] = [];
    const cut: [number, number][] = [];
    for (const list of answer.value) {
      const branch = this.#branches.get(list.node);
      if (!branch) continue;
      const next = list.offset + list.rows.length;
      if (next < Math.min(to, list.total)) {
        if (list.rows.length === 0) none.push(list.node);
        else cut.push([list.node, next]);
      }
      branch.total = list.total;
      list.rows.forEach((row, i) => {
        branch.rows[list.offset + i] = row;
        this.#nodes.set(row.id, row);
        this.#positions.set(row.id, list.offset + i);
      });
      this.#touch(list.node);
    }
    if (none.length > 0 && none.length < ids.length) await this.#fetch(none, from, to);
    for (const [id, next] of cut) await this.#fetch([id], next, to);
  }
}

// First of `count` positions that is not below what is looked for: those below come first.
export function firstNot(count: number, isBelow: (at: number) => boolean): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBelow(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

// First position in the ascending `list` whose value is not below `value`.
export function lowerBound(list: ArrayLike<number>, value: number): number {
  return firstNot(list.length, (at) => (list[at] ?? 0) < value);
}

function indexOf(list: readonly number[], value: number): number {
  const at = lowerBound(list, value);
  return list[at] === value ? at : -1;
}
