// What is loaded of one dataset and selected in it; views read it and are told of changes.
import type { Api } from "./api";
import { isGraph } from "./dataset_kind";
import type { Failure, Result } from "./result";
import { Tree, type TreeFilter } from "./tree";
import type { Meta, NodeDetails, NodeRow, Place, Side } from "./types";
import { Hits } from "./hits";

const NO_FILTER: TreeFilter = { ms: -1, q: "", base: "" };

export interface SessionEvents {
  // Something that is shown has changed.
  readonly changed: () => void;
  readonly failed: (error: Failure) => void;
}

// What became of a name that was looked for.
type Selection = "exact" | "nearest" | "none";

export class Session {
  readonly api: Api;
  readonly dataset: string;
  readonly meta: Meta;
  // Index in meta.places.
  place = -1;
  trees: Readonly<Record<Side, Tree | null>> = { target: null, golden: null };
  // The selected node, which side it is of, its counterpart, and its numbers once they have come.
  selected: NodeRow | null = null;
  side: Side = "target";
  partner: NodeRow | null = null;
  details: Result<NodeDetails> | null = null;
  // What is being walked through with J and K.
  hits: Hits | null = null;
  // Whether opening and selecting on one side does so on the other.
  isLinked = true;
  filter: TreeFilter = NO_FILTER;
  // Grows whenever calls were matched by hand, or no longer are.
  matched = 0;
  readonly #on: SessionEvents;
  #ticket = 0;

  constructor(api: Api, dataset: string, meta: Meta, on: SessionEvents) {
    this.api = api;
    this.dataset = dataset;
    this.meta = meta;
    this.#on = on;
  }

  // To be called after the session was changed.
  changed(): void {
    this.#on.changed();
  }

  // Whether there is anything to look at: what is no graph has no places.
  get isReady(): boolean {
    return this.place >= 0 || !isGraph(this.meta);
  }

  // Whether what is no hit steps back; a faulty query has no hits to show.
  get isFiltered(): boolean {
    return this.filter.q !== "" && !this.hits?.error;
  }

  placeInfo(): Place | null {
    return this.meta.places[this.place] ?? null;
  }

  tree(side: Side): Tree | null {
    return this.trees[side];
  }

  // The place of a step and a rank; the first of that step, or of all, where there is none.
  placeOf(step: number, rank: number): number {
    const exact = this.meta.places.findIndex((p) => p.step === step && p.rank === rank);
    if (exact >= 0) return exact;
    const near = this.meta.places.findIndex((p) => (step < 0 || p.step === step) && (rank < 0 || p.rank === rank));
    return near >= 0 ? near : this.meta.places.length > 0 ? 0 : -1;
  }

  // Which side an id is of; every id belongs to one place.
  sideOf(id: number): Side {
    const place = this.placeInfo();
    return place && place.golden_root >= 0 && id >= place.golden_root ? "golden" : "target";
  }

  // Shows another rank or step, or the same with other filters; what is open and chosen by the time
  // that it comes stays so.
  async show(place: number, filter: TreeFilter): Promise<void> {
    const isSame = place === this.place;
    this.place = place;
    this.filter = filter;
    const info = this.placeInfo();
    const [target, golden] = await Promise.all([
      this.#rootTree(info?.target_root ?? -1),
      this.#rootTree(info?.golden_root ?? -1),
    ]);
    if (place !== this.place || filter !== this.filter) return;
    const opened = isSame ? this.#openRows() : { target: [], golden: [] };
    this.trees = { target, golden };
    await Promise.all([target?.openAll(opened.target), golden?.openAll(opened.golden)]);
    if (isSame) await this.#revealChosen();
    this.changed();
  }

  // What was found in trees that others have replaced meanwhile is not open in these.
  async #revealChosen(): Promise<void> {
    for (const row of [this.selected, this.partner]) {
      const tree = row && this.tree(this.sideOf(row.id));
      if (row && tree && !tree.isVisible(row.id)) await this.#revealId(tree, row.id);
    }
  }

  #openRows(): Record<Side, readonly NodeRow[]> {
    const of = (tree: Tree | null): readonly NodeRow[] =>
      tree ? [...tree.visible()].filter((row) => row.id !== tree.root.id && tree.isOpen(row.id)) : [];
    return { target: of(this.trees.target), golden: of(this.trees.golden) };
  }

  async #rootTree(id: number): Promise<Tree | null> {
    if (id < 0) return null;
    const answer = await this.api.path(this.dataset, id);
    const root = answer.ok ? answer.value.rows[0] : undefined;
    if (!answer.ok) this.#on.failed(answer.error);
    if (!root) return null;
    const tree = new Tree(this.api, this.dataset, root, this.filter, this.#on);
    tree.want(root.id, 0, 1);
    await tree.settled();
    return tree;
  }

  // Opens or closes a node, and its counterpart with it.
  async toggle(row: NodeRow, isOpen: boolean): Promise<void> {
    const side = this.sideOf(row.id);
    const tree = this.tree(side);
    if (!tree) return;
    if (isOpen) tree.open(row);
    else tree.close(row);
    if (this.isLinked && row.partner >= 0) await this.#togglePartner(side, row, isOpen);
  }

  async #togglePartner(side: Side, row: NodeRow, isOpen: boolean): Promise<void> {
    const other = this.tree(side === "target" ? "golden" : "target");
    if (!other) return;
    const known = other.node(row.partner) ?? (isOpen ? await this.#revealId(other, row.partner) : null);
    if (!known) return;
    if (isOpen) other.open(known);
    else other.close(known);
  }

  async #revealId(tree: Tree, id: number): Promise<NodeRow | null> {
    const answer = await this.api.path(this.dataset, id);
    return answer.ok ? tree.reveal(answer.value.rows) : null;
  }

  // Selects a node by its row, of any place that is shown, and loads what is said of it.
  async select(row: NodeRow): Promise<void> {
    const ticket = ++this.#ticket;
    this.selected = row;
    this.side = this.sideOf(row.id);
    this.partner = null;
    this.details = null;
    this.changed();
    const own = this.tree(this.side);
    const other = this.tree(this.side === "target" ? "golden" : "target");
    const showing = own && !own.isVisible(row.id) ? this.#revealId(own, row.id) : null;
    const partner = row.partner >= 0 && other ? this.#partnerRow(other, row.partner) : null;
    const details = this.api.node(this.dataset, row.id);
    await showing;
    const found = await partner;
    if (ticket !== this.#ticket) return;
    this.partner = found;
    await this.#revealChosen();
    this.changed();
    const said = await details;
    if (ticket !== this.#ticket) return;
    this.details = said;
    if (said.ok && !this.partner) this.partner = said.value.partner_row;
    this.changed();
  }

  #partnerRow(tree: Tree, id: number): Promise<NodeRow | null> | NodeRow | null {
    const known = tree.node(id);
    return known && tree.isVisible(id) ? known : this.#revealId(tree, id);
  }

  deselect(): void {
    this.#ticket++;
    this.selected = this.partner = this.details = null;
    this.changed();
  }

  // Selects by name, as a link does: the nearest ancestor where that node does not exist.
  async selectName(name: string, side: Side): Promise<Selection> {
    const ticket = ++this.#ticket;
    const answer = await this.api.pathOf(this.dataset, name, this.place, side);
    if (ticket !== this.#ticket) return "exact";
    if (!answer.ok) {
      if (answer.error.code !== "not-found") this.#on.failed(answer.error);
      this.deselect();
      return "none";
    }
    const row = answer.value.rows.at(-1);
    if (!row) return "none";
    await this.tree(side)?.reveal(answer.value.rows);
    if (ticket === this.#ticket) await this.select(row);
    return answer.value.exact ? "exact" : "nearest";
  }

  // A first look: opens the tree as long as that is little.
  async openFew(): Promise<void> {
    for (const tree of [this.trees.target, this.trees.golden]) {
      if (!tree) continue;
      tree.want(tree.root.id, 0, 1);
      await tree.settled();
      let rows = (tree.branch(tree.root.id)?.rows ?? []).slice(0, FEW);
      while (rows.length === 1 && rows[0] && rows[0].children > 0) {
        tree.open(rows[0]);
        await tree.settled();
        rows = (tree.branch(rows[0].id)?.rows ?? []).slice(0, FEW);
      }
    }
    this.changed();
  }

  // Opens everything down to a depth, on both sides.
  // Whether all of it is open now: not above OPEN_AT_ONCE nodes of a side.
  async openToDepth(depth: number): Promise<boolean> {
    const opened = await Promise.all([this.trees.target, this.trees.golden].map((tree) => !tree || openDown(tree, tree.root, depth)));
    this.changed();
    return opened.every(Boolean);
  }

  // Opens what lies below a node, as openToDepth().
  async openBelow(row: NodeRow): Promise<boolean> {
    await this.toggle(row, true);
    const below = async (tree: Tree | null, from: NodeRow | undefined): Promise<boolean> =>
      !tree || !from || openDown(tree, from, Infinity);
    const side = this.sideOf(row.id);
    const other = this.tree(side === "target" ? "golden" : "target");
    const opened = await Promise.all([
      below(this.tree(side), row),
      below(this.isLinked ? other : null, other?.node(row.partner)),
    ]);
    this.changed();
    return opened.every(Boolean);
  }

  // Opens only what leads to failures, the first WORST_AT_ONCE of them; returns how many lead there.
  async openToWorst(): Promise<number> {
    const place = this.placeInfo();
    if (!place) return 0;
    const { error, warning } = place.counts;
    const level = error > 0 ? "error" : warning > 0 ? "warning" : "unmatched";
    let total = 0;
    for (const side of ["target", "golden"] as const) {
      const tree = this.tree(side);
      if (!tree) continue;
      const answer = await this.api.find(this.dataset, {
        q: `worst:${level}`, place: this.place, side, limit: WORST_AT_ONCE,
      });
      if (!answer.ok) {
        this.#on.failed(answer.error);
        return 0;
      }
      total = Math.max(total, answer.value.total);
      tree.closeAll();
      await tree.openAll(answer.value.rows);
    }
    this.changed();
    return total;
  }
}

export const WORST_AT_ONCE = 500;
const FEW = 2;
// Opening "everything" stops here: more boxes than that are no picture.
export const OPEN_AT_ONCE = 2000;

async function openDown(tree: Tree, from: NodeRow, depth: number): Promise<boolean> {
  let level: NodeRow[] = [from];
  let count = 0;
  while (level.length > 0) {
    for (const row of level) {
      if (count++ >= OPEN_AT_ONCE) return tree.settled().then(() => false);
      if (row.id !== tree.root.id) tree.open(row);
      tree.want(row.id, 0, Infinity);
    }
    await tree.settled();
    level = level.flatMap((row) => (tree.branch(row.id)?.rows ?? []).filter(
      (child): child is NodeRow => child !== undefined && child.children > 0 && child.depth < depth));
  }
  return true;
}
