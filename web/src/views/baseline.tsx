// The same comparison before and after a fix: which calls became better or worse.
import { useMemo, useRef } from "preact/hooks";
import { formatCount } from "../format";
import { ChangeMark } from "../marks";
import { Choose, Trouble, useAsked, useRedraw, type ViewProps } from "../parts/kit";
import { Pages } from "../parts/pages";
import { Table, type Column } from "../parts/table";
import { success } from "../result";
import type { Baseline, NodeRow } from "../types";
import { nodeColumns } from "./node_columns";

const PAGE = 100;
const CHANGES = ["worse", "new", "better", "same"] as const;

export function BaselineView({ context, state, keys }: ViewProps) {
  const { say, session, api } = context;
  const { dataset, meta } = session;
  const { base } = state;
  const datasets = useAsked(() => api.datasets(), []);
  const known = datasets.ok ? datasets.value.datasets : [];
  const others = known.filter(({ id, kind, state: is }) => id !== dataset && kind === "graph" && is === "ready");
  const redraw = useRedraw();
  const counts = useRef<Baseline | null>(null);
  const pages = useMemo(() => new Pages<NodeRow>(async (offset, limit) => {
    if (base === "") return success({ total: 0, rows: [] });
    const got = await api.baseline(dataset, base, offset, limit);
    counts.current = got.ok ? got.value : null;
    return got;
  }, PAGE, redraw), [dataset, meta.etag, base]);
  const { place, level, error, name } = nodeColumns(say, session);
  const columns: readonly Column<NodeRow>[] = [
    { title: say("baseline.change"), width: "9em", cell: (row) => <ChangeMark change={row.change} say={say} /> }, place, level, error, name,
  ];
  return (
    <>
      <div class="bar-of-fields">
        <Choose label={say("baseline.choose")} value={base} choose={(key) => context.go({ base: key })}
          choices={[{ key: "", text: say("baseline.no") }, ...others.map(({ id, title }) => ({ key: id, text: title }))]} />
        {datasets.ok && others.length === 0 && <span class="quiet">{say("baseline.none")}</span>}
      </div>
      {base === "" && <p class="quiet">{say("baseline.what")}</p>}
      {pages.failure && <Trouble error={pages.failure} say={say} />}
      {base !== "" && pages.total >= 0 && counts.current && (
        <ul class="totals">
          {CHANGES.map((change) => <li key={change} class={`total-${change}`}><b>{formatCount(counts.current?.[change] ?? 0)}</b> <ChangeMark change={change} say={say} /></li>)}
        </ul>
      )}
      {base !== "" && pages.total === 0 && <p class="quiet">{say("baseline.same")}</p>}
      {base !== "" && (
        <Table label={say("view.baseline")} columns={columns} total={pages.total} row={(i) => pages.row(i)} want={(from, to) => pages.want(from, to)}
          keys={keys} hint={(row) => row.name} open={(row) => context.select(row, "graph")} />
      )}
    </>
  );
}
