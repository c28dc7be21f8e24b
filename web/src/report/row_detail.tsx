// What is known of one row: both sides, how far they differ, remarks, the stack of its call.
import { formatScalar } from "../format";
import type { Say } from "../texts";
import { StackList } from "./evidence_card";
import type { Part } from "./part";
import { bothOf, isTensor, pairOf, type ValueRow } from "./value_rows";
import { VerdictMark } from "./verdict_mark";

const STATISTICS = ["max", "min", "mean", "norm"] as const;

export function RowDetail(props: { readonly say: Say; readonly part: Part; readonly row: ValueRow | null; readonly onOpen: (row: ValueRow) => void }) {
  const { say, part, row } = props;
  if (!row) return <aside class="report-detail"><p class="empty">{say("report.no-row")}</p></aside>;
  const { mode } = part.data.header;
  const unmatched = part.unmatchedText(row.call);
  const stack = part.stackOf(row.call);
  const words = part.reasonText(row.reason);
  const metrics = Object.entries(pairOf(row, mode, part.data.reasons).metrics).filter(([, value]) => value !== null);
  const facts = [["error", row.error], ["explained", row.explained], ...metrics] as const;
  const hasBoth = row.statistics[0] !== null && row.statistics[1] !== null;
  return (
    <aside class="report-detail" aria-live="polite">
      <h3 class="mono"><bdi>{`${part.callName(row.call)}.${row.item}`}</bdi></h3>
      <p><VerdictMark verdict={row.verdict} say={say} /> <span class="dim">{words === row.reason ? words : `${row.reason}: ${words}`}</span></p>
      <p class="mono">{bothOf(row.dtypes)} {bothOf(row.shapes)}</p>
      {unmatched !== "" && <p>{say("report.no-counterpart", part.reasonText(unmatched))}</p>}
      {mode !== "md5" && <Sides say={say} row={row} />}
      {hasBoth && (
        <table class="report-table">
          <tbody>
            {facts.filter(([, value]) => value !== null).map(([name, value]) => <tr key={name}><td>{name}</td><td class="number">{formatScalar(value)}</td></tr>)}
          </tbody>
        </table>
      )}
      {row.notes.map(([code, note]) => <p key={code} class="dim"><bdi>[{code}] {note}</bdi></p>)}
      <p><button onClick={() => props.onOpen(row)}>{say("report.open-graph")}</button></p>
      {stack.length > 0 && <><h3>{say("details.stack")}</h3><StackList say={say} frames={stack} foreign={part.foreignOf(row.call)} /></>}
    </aside>
  );
}

function Sides(props: { readonly say: Say; readonly row: ValueRow }) {
  const { say } = props;
  const [target, golden] = props.row.statistics;
  const names = (target ?? golden ?? []).length > 1 ? STATISTICS : (["value"] as const);
  const cell = (side: ValueRow["statistics"][0], i: number): string => {
    if (!side || isTensor(side) !== names.length > 1) return "";
    return formatScalar(side[i] ?? null);
  };
  return (
    <table class="report-table sides">
      <thead><tr><th /><th class="number">{say("side.target")}</th><th class="number">{say("side.golden")}</th></tr></thead>
      <tbody>
        {names.map((name, i) => (
          <tr key={name}><td>{name}</td><td class="number"><bdi>{cell(target, i)}</bdi></td><td class="number"><bdi>{cell(golden, i)}</bdi></td></tr>
        ))}
      </tbody>
    </table>
  );
}
