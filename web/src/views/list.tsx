// All calls of a place in one list, in order of execution: the hits of the query, or everything.
import { useMemo } from "preact/hooks";
import { formatCount } from "../format";
import { Hits } from "../hits";
import { ChangeMark } from "../marks";
import { Trouble, useRedraw, type ViewProps } from "../parts/kit";
import { Table } from "../parts/table";
import { nodeColumns } from "./node_columns";

export function ListView({ context, state, keys }: ViewProps) {
  const { say, session, api } = context;
  const { dataset, place, selected } = session;
  const q = state.q === "" ? "is:leaf" : state.q;
  const redraw = useRedraw();
  const hits = useMemo(
    () => new Hits(q, (cursor) => api.find(dataset, { q, place, side: state.side, cursor }), redraw), [dataset, place, q, state.side]);
  const { order, level, name, input, error } = nodeColumns(say, session);
  const columns = [order, level, { ...name, title: `${name.title} ${hits.state === "ready" ? formatCount(hits.total) : ""}` }, {
    title: "", width: "12em", cell: (row: typeof hits.rows[0]) =>
      <>{row.overflow === "" ? "" : say(`overflow.${row.overflow}`)} <ChangeMark change={row.change} say={say} /></>,
  }, input, error];
  return (
    <>
      {hits.state === "loading" && <p class="quiet" role="status">{say("app.loading")}</p>}
      {hits.state === "failed" && <Trouble error={{ code: "", message: hits.message }} say={say} />}
      {hits.error && <p class="trouble">{say("hits.fault", hits.error.at + 1, hits.error.message)}</p>}
      {hits.state === "ready" && hits.total === 0 && !hits.error && <p class="quiet">{say("hits.none")}</p>}
      <Table label={say("view.list")} columns={columns} total={hits.rows.length} row={(i) => hits.rows[i]} hint={(row) => row.name} keys={keys}
        want={(_, to) => to >= hits.rows.length - 20 && void hits.more()} cursor={hits.rows.findIndex(({ id }) => id === selected?.id)}
        move={(i) => hits.rows[i] && context.select(hits.rows[i])} open={(row) => context.select(row, "graph")} />
    </>
  );
}
