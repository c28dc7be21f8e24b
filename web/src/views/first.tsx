// First divergence: where it goes wrong first, ordered by execution over the ranks, with the reason.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { LevelMark } from "../marks";
import { Choose, keep, Trouble, useRedraw, type ViewProps } from "../parts/kit";
import { Pages } from "../parts/pages";
import { Table, type Column } from "../parts/table";
import { success } from "../result";
import type { FirstRow } from "../types";
import { nodeColumns } from "./node_columns";

const PAGE = 100;

export function FirstView({ context, state, keys }: ViewProps) {
  const { say, session, api } = context;
  const { dataset, selected, meta } = session;
  const redraw = useRedraw();
  // Everything at once is the default: the first of all ranks is what one wants to see first.
  const isHere = state.extra["first"] === "here";
  const place = isHere ? session.place : -1;
  const order = useRef("");
  const pages = useMemo(() => new Pages<FirstRow>(async (offset, limit) => {
    const got = await api.first(dataset, place, offset, limit);
    if (!got.ok) return got;
    order.current = got.value.ordered_by;
    return success(got.value);
  }, PAGE, redraw), [dataset, place]);
  const top = pages.row(0);
  useEffect(() => {
    if (top && !session.selected) context.select(top);
  }, [top]);
  const at = [...pages.known()].find(([, row]) => row.id === selected?.id)?.[0] ?? -1;
  const go = (i: number): boolean => {
    const row = pages.row(i);
    if (row) context.select(row);
    return row !== undefined;
  };
  const { place: placeColumn, name, error } = nodeColumns(say, session);
  const columns: readonly Column<FirstRow>[] = [
    { title: "", width: "7.5em", cell: (row) => <span class={`kind ${row.kind}`}><LevelMark level={row.level} say={say} /> {say(`first.kind.${row.kind}`)}</span> },
    ...(meta.places.length > 1 ? [placeColumn] : []), name, error,
    { title: say("first.why"), width: "minmax(16em, 1.3fr)", cell: (row) => <span title={row.why}>{row.why}</span> },
  ];
  return (
    <>
      <div class="bar-of-fields">
        <h2>{say("first.title")}</h2>
        {meta.places.length > 1 && (
          <Choose label={say("value.side")} value={isHere ? "here" : ""} choose={(first) => keep(context, state, { first })}
            choices={[{ key: "", text: say("first.everywhere") }, { key: "here", text: say("first.here") }]} />
        )}
        <span class="quiet">{say("first.hint")} {order.current !== "" && say("first.order", order.current)}</span>
      </div>
      {pages.failure && <Trouble error={pages.failure} say={say} />}
      {pages.total === 0 && <p class="quiet">{say("first.none")}</p>}
      <Table label={say("view.first")} columns={columns} total={pages.total} row={(i) => pages.row(i)} want={(from, to) => pages.want(from, to)}
        cursor={at} keys={keys} hint={(row) => row.name} rowClass={({ kind }) => kind} move={go} open={(row) => context.select(row, "graph")}
        press={(event) => (event.key === "j" || event.key === "k") && go(at + (event.key === "j" ? 1 : -1))} />
    </>
  );
}
