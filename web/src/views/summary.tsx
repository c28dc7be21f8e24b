// The whole run on one page: the answer, counts per place, the ten worst calls, and what was left out
// and why.
import { formatCount } from "../format";
import { LevelMark, SYMBOL } from "../marks";
import { Answer, Facts, useAsked, type ViewProps } from "../parts/kit";
import { Table, type Column } from "../parts/table";
import { REPORT_FACT } from "../report/file_dataset";
import type { Counts, Place } from "../types";
import { nodeColumns } from "./node_columns";
import { placeLevel } from "./ranks";

const KINDS = ["error", "warning", "unmatched_target", "unmatched_golden", "pass", "none"] as const;
const WORST = 10;

const factText = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value) ?? "");

export function SummaryView({ context }: ViewProps) {
  const { say, session, api } = context;
  const { meta, dataset } = session;
  const sum = (kind: keyof Counts): number => meta.places.reduce((all, { counts }) => all + counts[kind], 0);
  const worst = useAsked(() => api.find(dataset, { q: "level:error,warning", place: -1, side: "target", order: "error", limit: WORST }), [dataset, meta.etag]);
  const { place, level, error, input, name } = nodeColumns(say, session);
  const places: readonly Column<Place>[] = [
    { title: say("bar.step"), width: "5em", isNumber: true, cell: (place) => place.step },
    { title: say("bar.rank"), width: "5em", isNumber: true, cell: (place) => place.rank },
    { title: say("details.column.verdict"), width: "9em", cell: (place) => <LevelMark level={placeLevel(place)} say={say} withWord /> },
    ...KINDS.map((kind): Column<Place> => ({ title: say(`summary.${kind}`), width: "8em", isNumber: true, cell: ({ counts }) => formatCount(counts[kind]) })),
    { title: say("answer.first"), width: "minmax(14em, 1fr)", cell: (place) => <bdi class="mono">{place.first}</bdi> },
  ];
  return (
    <div class="page">
      <section>
        <h2>{say("summary.answer")}</h2>
        {!meta.complete && <p>! {say("app.incomplete")}</p>}
        <pre class="answer-text">{meta.answer.join("\n")}</pre>
      </section>
      <section>
        <h2>{say("summary.counts")}</h2>
        <ul class="totals">
          {KINDS.map((kind) => (
            <li key={kind} class={`total-${kind.split("_")[0] ?? kind}`}>
              <b>{formatCount(sum(kind))}</b> {SYMBOL[kind.startsWith("unmatched") ? "unmatched" : (kind as "pass")]} {say(`summary.${kind}`)}
            </li>
          ))}
        </ul>
      </section>
      <section class="brief">
        <h2>{say("summary.worst")}</h2>
        <Answer asked={worst} say={say}>
          {(found) => found.rows.length === 0 ? <p class="quiet">{say("summary.no-worst")}</p>
            : <Table label={say("summary.worst")} columns={[place, level, error, input, name]} atMost={10} total={found.rows.length}
                row={(i) => found.rows[i]} hint={(node) => node.name} open={(node) => context.select(node, "graph")} />}
        </Answer>
      </section>
      {meta.places.length > 1 && (
        <section class="brief">
          <h2>{say("summary.places")}</h2>
          <Table label={say("summary.places")} columns={places} atMost={8} total={meta.places.length} row={(i) => meta.places[i]}
            open={(place) => context.go({ view: "graph", step: place.step, rank: place.rank, node: place.first })} />
        </section>
      )}
      <section>
        <h2>{say("summary.notes")}</h2>
        {meta.notes.length === 0 ? <p class="quiet">{say("summary.no-notes")}</p> : <ul class="notes">{meta.notes.map((note) => <li key={note}>{note}</li>)}</ul>}
      </section>
      <section>
        <Facts caption={say("summary.facts")} head={[say("summary.fact"), say("value.value")]} rows={[
          [say("side.target"), meta.target], ...(meta.golden === "" ? [] : [[say("side.golden"), meta.golden]]),
          [say("summary.mode"), meta.mode], ...Object.entries(meta.facts).filter(([name]) => name !== REPORT_FACT).map(([name, value]) => [name, factText(value)])]} />
      </section>
    </div>
  );
}
