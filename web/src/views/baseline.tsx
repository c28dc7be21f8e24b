// The same comparison before and after a fix: which calls became better or worse.
import { formatCount, formatError } from "../format";
import { ChangeMark, LevelMark } from "../marks";
import { Answer, Choose, useAsked, type ViewProps } from "../parts/kit";
import { Table, type Column } from "../parts/table";
import type { NodeRow } from "../types";
import { placeName } from "./summary";

const CHANGES = ["worse", "new", "better", "same"] as const;
export function BaselineView({ context, state }: ViewProps) {
  const { say, session, api } = context;
  const { dataset, meta } = session;
  const datasets = useAsked(() => api.datasets(), []);
  const known = datasets.ok ? datasets.value.datasets : [];
  const others = known.filter(({ id, kind, state: is }) => id !== dataset && kind === "graph" && is === "ready");
  const asked = useAsked(() => (state.base === "" ? null : api.baseline(dataset, state.base)), [dataset, meta.etag, state.base]);
  const columns: readonly Column<NodeRow>[] = [
    { title: say("baseline.change"), width: "9em", cell: (row) => <ChangeMark change={row.change} say={say} /> },
    { title: `${say("bar.step")} / ${say("bar.rank")}`, width: "8em", cell: (row) => placeName(meta.places, row.id) },
    { title: say("column.level"), width: "9em", cell: (row) => <LevelMark level={row.level} say={say} withWord /> },
    { title: say("column.error"), width: "7em", isNumber: true, cell: (row) => formatError(row.error) },
    { title: say("column.name"), width: "minmax(16em, 1fr)", cell: (row) => <bdi class="mono">{row.name}</bdi> },
  ];
  return (
    <>
      <div class="bar-of-fields">
        <Choose label={say("baseline.choose")} value={state.base} choose={(base) => context.go({ base })}
          choices={[{ key: "", text: say("baseline.no") }, ...others.map(({ id, title }) => ({ key: id, text: title }))]} />
        {datasets.ok && others.length === 0 && <span class="quiet">{say("baseline.none")}</span>}
      </div>
      {state.base === "" ? <p class="quiet">{say("baseline.what")}</p> : (
        <Answer asked={asked} say={say}>
          {(value) => (
            <>
              <ul class="totals">
                {CHANGES.map((change) => <li key={change} class={`total-${change}`}><b>{formatCount(value[change])}</b> <ChangeMark change={change} say={say} /></li>)}
              </ul>
              {value.rows.length === 0 ? <p class="quiet">{say("baseline.same")}</p>
                : <Table label={say("view.baseline")} columns={columns} total={value.rows.length} row={(i) => value.rows[i]} open={(row) => context.select(row, "graph")} />}
            </>
          )}
        </Answer>
      )}
    </>
  );
}
