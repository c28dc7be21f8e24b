// Overflows: critical, then high, then medium ones, each in order of execution; or, as they spread,
// everything after the first of them.
import { useMemo } from "preact/hooks";
import { formatCount } from "../format";
import { Hits } from "../hits";
import { Check, keep, Trouble, useRedraw, type ViewProps } from "../parts/kit";
import { Table, type Column } from "../parts/table";
import type { NodeRow, Overflow } from "../types";
import { nodeColumns } from "./node_columns";

const GRADES = ["critical", "high", "medium"] as const;
const ANY = `overflow:${GRADES.join(",")}`;
const OVERFLOW_SYMBOLS: Readonly<Record<Overflow, string>> = { "": "", medium: "△", high: "▲", critical: "⬤" };

export function OverflowView({ context, state, keys }: ViewProps) {
  const { say, session, api } = context;
  const { dataset, place } = session;
  const isSpread = state.extra["spread"] === "1";
  const redraw = useRedraw();
  const lists = useMemo(() => {
    const found = (q: string): Hits => new Hits(q, (cursor) => api.find(dataset, { q, place, side: "target", cursor, order: "execution" }), redraw);
    return isSpread ? [found(ANY)] : GRADES.map((grade) => found(`overflow:${grade}`));
  }, [dataset, place, isSpread]);

  const total = lists.reduce((sum, list) => sum + list.total, 0);
  const at = (i: number): readonly [Hits, number] | null => {
    for (const list of lists) {
      if (i < list.total) return [list, i];
      i -= list.total;
    }
    return null;
  };
  const row = (i: number): NodeRow | undefined => {
    const found = at(i);
    return found?.[0].rows[found[1]];
  };
  // Pages come one after the other.
  const want = (_: number, to: number): void => {
    const last = at(Math.min(to, total) - 1);
    if (last && last[1] >= last[0].rows.length) void last[0].more();
  };
  const failed = lists.find((list) => list.state === "failed");
  const first = row(0);
  const { order, name, level, error } = nodeColumns(say, session);
  const columns: readonly Column<NodeRow>[] = [
    { title: say("overflow.grade"), width: "12em", cell: ({ overflow }) => <><b aria-hidden="true">{OVERFLOW_SYMBOLS[overflow]}</b> {say(`overflow.${overflow}`)}</> },
    order, name, level, error,
  ];
  const summary = session.placeInfo()?.overflows;
  return (
    <>
      <div class="bar-of-fields">
        {summary && GRADES.map((grade) => <span key={grade}>{OVERFLOW_SYMBOLS[grade]} {formatCount(summary[grade])} {say(`overflow.${grade}`)}</span>)}
        <Check label={say("overflow.spread")} checked={isSpread} change={(on) => keep(context, state, { spread: on ? "1" : "" })} />
        {first && <button type="button" onClick={() => context.go({ view: "graph", colours: "overflow", q: ANY, node: first.name, side: "target" })}>{say("report.open-graph")}</button>}
      </div>
      {failed && <Trouble error={{ code: "", message: failed.message }} say={say} />}
      {isSpread && first && <p>{say("overflow.downstream", first.order, formatCount(total - 1))} <bdi class="mono">{first.name}</bdi></p>}
      {total === 0 && lists.every((list) => list.state === "ready") &&
        <p class="quiet">{say(session.meta.overflow_check ? "overflow.none" : "overflow.unchecked")}</p>}
      <Table label={say("view.overflow")} columns={columns} total={total} row={row} want={want} keys={keys} hint={(node) => node.name} open={(node) => context.select(node, "graph")}
        move={(i) => {
          const node = row(i);
          if (node) context.select(node);
        }} />
    </>
  );
}
