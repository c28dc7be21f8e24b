// What the graph and the outline have in common: their tools, and the keys that open and close.
import { render } from "preact";
import { actionOf } from "../keys";
import { OPEN_AT_ONCE, WORST_AT_ONCE } from "../session";
import type { NodeRow } from "../types";
import type { Context } from "../view";

const DEPTHS = [1, 2, 3, 4, 5, 6];

export async function openToWorst(context: Context): Promise<void> {
  const total = await context.session.openToWorst();
  if (total > WORST_AT_ONCE) context.notice(context.say("tree.worst.more", total, WORST_AT_ONCE));
}

async function tellIfCut(context: Context, opening: Promise<boolean>): Promise<void> {
  if (!(await opening)) context.notice(context.say("tree.cut", OPEN_AT_ONCE));
}

export function showTools(context: Context, fit: (() => void) | null): void {
  const { say, session } = context;
  const place = document.getElementById("view-tools");
  if (!place) return;
  const closeAll = (): void => {
    session.trees.target?.closeAll();
    session.trees.golden?.closeAll();
  };
  render(
    <>
      <select aria-label={say("tree.expand")} value="" onChange={(event) => {
        const depth = Number(event.currentTarget.value);
        event.currentTarget.value = "";
        if (depth > 0) void tellIfCut(context, session.openToDepth(depth));
      }}>
        <option value="">{say("tree.expand")}</option>
        {DEPTHS.map((depth) => <option key={depth} value={String(depth)}>{depth}</option>)}
      </select>
      {session.meta.kind === "compare" && <button title="E" onClick={() => void openToWorst(context)}>{say("tree.worst")}</button>}
      <button onClick={closeAll}>{say("tree.collapse")}</button>
      {session.trees.golden && (
        <button aria-pressed={session.isLinked} title={`${say("key.link")} (L)`} onClick={() => {
          session.isLinked = !session.isLinked;
          session.changed();
        }}>{say("tree.link")}</button>
      )}
      {fit && <button title="0" onClick={fit}>{say("tree.fit")}</button>}
    </>,
    place,
  );
}

export function hideTools(): void {
  const place = document.getElementById("view-tools");
  if (place) render(null, place);
}

// Opens, closes and walks up and down from the selected node; true if the key was one of these.
export function treeKey(context: Context, event: KeyboardEvent): boolean {
  const action = actionOf(event);
  const { session } = context;
  const row = session.selected ?? session.trees.target?.root ?? null;
  if (!row || action === null) return false;
  if (action === "to-worst") void openToWorst(context);
  else if (action === "enter") void toggle(context, row);
  else if (action === "enter-all") void tellIfCut(context, session.openBelow(row));
  else return false;
  return true;
}

export async function toggle(context: Context, row: NodeRow): Promise<void> {
  const { session } = context;
  const tree = session.tree(session.sideOf(row.id));
  if (!tree || row.children === 0 || row.id === tree.root.id) return;
  await session.toggle(row, !tree.isOpen(row.id));
}

// Parent, first child or a sibling of the selected node.
export async function neighbour(context: Context, way: "up" | "down" | "left" | "right"): Promise<NodeRow | null> {
  const { session } = context;
  const tree = session.tree(session.side);
  const row = session.selected ?? session.trees.target?.root;
  if (!tree || !row) return null;
  if (way === "left") return row.id === tree.root.id ? null : (tree.node(row.parent) ?? null);
  if (way === "right") {
    if (row.children === 0) return null;
    if (!tree.isOpen(row.id)) await session.toggle(row, true);
    return tree.childAt(row.id, 0);
  }
  return tree.childAt(row.parent, tree.position(row.id) + (way === "up" ? -1 : 1));
}
