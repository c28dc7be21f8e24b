// The two recordings as indented lists with columns; rows in sight only are in the document.
import { render } from "preact";
import { formatError, shortName } from "../format";
import { actionOf } from "../keys";
import { ChangeMark, InsideMark, LevelMark, overflowKey } from "../marks";
import type { Tree } from "../tree";
import { FLAG, type NodeRow, type Side } from "../types";
import type { Context, View, ViewKind } from "../view";
import { VirtualRows } from "../virtual_rows";
import { marksOf } from "./graph_paint";
import { OutlineRows } from "./outline_rows";
import { hideTools, neighbour, showTools, toggle, treeKey } from "./tree_tools";

const ROW = 23;

class OutlineView implements View {
  readonly #root: HTMLElement;
  readonly #context: Context;
  readonly #rows = new WeakMap<Tree, OutlineRows>();

  constructor(root: HTMLElement, context: Context) {
    this.#root = root;
    this.#context = context;
  }

  show(): void {
    const isCompared = this.#context.session.meta.kind === "compare";
    render(
      <div class={isCompared ? "panes" : "panes single"}>
        {this.#side("target")}
        {isCompared && this.#side("golden")}
      </div>,
      this.#root,
    );
    showTools(this.#context, null);
  }

  #rowsOf(tree: Tree): OutlineRows {
    const known = this.#rows.get(tree);
    if (known) return known;
    const rows = new OutlineRows(tree);
    this.#rows.set(tree, rows);
    return rows;
  }

  #side(side: Side) {
    const { session, say } = this.#context;
    const tree = session.tree(side);
    if (!tree) return <div class="pane"><p class="empty">{say("tree.no-place")}</p></div>;
    const rows = this.#rowsOf(tree);
    const marked = side === session.side ? session.selected : session.partner;
    const focus = marked ? rows.indexOf(marked.id) : -1;
    return (
      <div class="pane">
        <div class="tree-head" aria-hidden="true">
          <span>{say(`side.${side}`)}</span><span>{say("column.inside")}</span><span>{say("column.input")}</span><span>{say("details.column.error")}</span>
        </div>
        {rows.count === 0 && <p class="empty">{say("tree.empty")}</p>}
        <VirtualRows count={rows.count} height={ROW} role="tree" label={say("tree.label", say(`side.${side}`))} focus={focus}
          onRange={(from, to) => this.#want(tree, rows, from, to)} row={(i) => this.#line(tree, rows, i, marked, side)} />
      </div>
    );
  }

  #want(tree: Tree, rows: OutlineRows, from: number, to: number): void {
    for (let i = from; i < to; i++) {
      const found = rows.at(i);
      if (found && found.row === null) tree.want(found.parent, found.at, found.at + 1);
    }
  }

  #line(tree: Tree, rows: OutlineRows, i: number, marked: NodeRow | null, side: Side) {
    const found = rows.at(i);
    if (!found) return null;
    const { say, session } = this.#context;
    const { row, depth } = found;
    if (!row) return <div class="tree-row faded" style={{ "--depth": String(depth) }}>…</div>;
    const isChosen = row.id === marked?.id;
    const isOwn = side === session.side;
    const isFaded = session.isFiltered && row.hits === 0;
    const isOpen = tree.isOpen(row.id);
    const classes = ["tree-row", isChosen ? (isOwn ? "chosen" : "partner") : "", isFaded ? "faded" : ""].join(" ");
    return (
      <div class={classes} role="treeitem" aria-level={depth} aria-selected={isChosen} aria-setsize={tree.branch(found.parent)?.total ?? -1}
        aria-posinset={found.at + 1} title={row.name} tabIndex={isChosen && isOwn ? 0 : -1}
        {...(row.children > 0 && { "aria-expanded": isOpen })}
        style={{ "--depth": String(depth - 1) }} onClick={() => this.#context.select(row)} onDblClick={() => void toggle(this.#context, row)}>
        <span class="what">
          <span class="twist" aria-hidden="true" onClick={(event) => {
            event.stopPropagation();
            void toggle(this.#context, row);
          }}>{row.children === 0 ? "" : isOpen ? "▼" : "▶"}</span>
          <LevelMark level={row.level} say={say} />
          <bdi>{shortName(row.name, row.type)}{marksOf(row)}</bdi>
          <ChangeMark change={row.change} say={say} />
          {row.overflow !== "" && <span class="badge">{say(overflowKey(row.overflow))}</span>}
          {(row.flags & FLAG.recomputed) !== 0 && <span class="badge">{say("flag.recomputed")}</span>}
        </span>
        <span class="number"><InsideMark row={row} say={say} /></span>
        <span class="number">{formatError(row.input_error)}</span>
        <span class={`number ${row.level}`}>{formatError(row.error)}</span>
      </div>
    );
  }

  key(event: KeyboardEvent): boolean {
    const action = actionOf(event);
    if (treeKey(this.#context, event)) return true;
    const { session } = this.#context;
    const tree = session.tree(session.side);
    if (!tree) return false;
    if (action === "up" || action === "down") return this.#step(tree, action === "up" ? -1 : 1);
    if (action !== "left" && action !== "right") return false;
    const row = session.selected;
    if (action === "left" && row && tree.isOpen(row.id) && row.id !== tree.root.id) void session.toggle(row, false);
    else void neighbour(this.#context, action).then((next) => next && next.id !== tree.root.id && this.#context.select(next));
    return true;
  }

  #step(tree: Tree, by: number): boolean {
    const rows = this.#rowsOf(tree);
    const at = this.#context.session.selected ? rows.indexOf(this.#context.session.selected.id) : -1;
    const found = rows.at(Math.max(0, at + by));
    if (found?.row) this.#context.select(found.row);
    return true;
  }

  dispose(): void {
    hideTools();
    render(null, this.#root);
  }
}

export const OUTLINE_VIEW: ViewKind = {
  key: "outline",
  title: "view.outline",
  shortcut: "2",
  appliesTo: () => true,
  create: (root, context) => new OutlineView(root, context),
};
