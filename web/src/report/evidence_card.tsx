// The evidence of the first wrong call: its rows, its statistics, plots of its tensors.
import { formatCount, formatError, formatNumber, formatScalar } from "../format";
import type { Say } from "../texts";
import type { Scalar } from "../types";
import type { Part } from "./part";
import { Plot, rangeOf } from "./plot";
import type { ElementPair, Evidence } from "./report_data";
import { bothOf, isTensor, ROLES, type ValueRow } from "./value_rows";
import { VerdictMark } from "./verdict_mark";

export interface EvidenceProps {
  readonly say: Say;
  readonly part: Part;
  // Of the calls of the part; a call whose values were left out has none.
  readonly rowsOf: (call: number) => readonly ValueRow[];
  readonly onRow: (row: ValueRow) => void;
}

const STATISTICS = ["max", "min", "mean", "norm"] as const;
const namesOf = (statistics: readonly unknown[]): readonly string[] => (isTensor(statistics) ? STATISTICS : ["value"]);

export function EvidenceCard(props: EvidenceProps) {
  const { say, part, rowsOf } = props;
  const answer = part.data.header.first_wrong_call;
  const call = part.firstCall();
  if (!answer || call < 0) return null;
  const rows = rowsOf(call);
  const isAlone = part.unmatchedText(call) !== "";
  const { evidence } = part.data;
  return (
    <section class="report-section">
      <h2>{say("report.evidence")}</h2>
      <div class="report-cards">
        {isAlone ? <LoneCall {...props} call={call} isWide={answer.stack.length === 0} /> : <RowsOfCall {...props} rows={rows} isWide={answer.stack.length === 0} />}
        {answer.stack.length > 0 && (
          <div class="report-card w5"><h3>{say("report.stack")}</h3><StackList say={say} frames={answer.stack} foreign={part.data.foreign} /></div>
        )}
        {isAlone && <OtherSide {...props} call={call} />}
        {isAlone && <ResultTaken {...props} call={call} />}
        {evidence && <Plots say={say} evidence={evidence} />}
        {!evidence && !isAlone && part.data.header.mode === "statistics" && <Statistics {...props} rows={rows} item={answer.item} name={answer.name} />}
      </div>
    </section>
  );
}

// The innermost frame of the user's own code, then its callers; what it goes into is folded away.
export function StackList(props: { readonly say: Say; readonly frames: readonly string[]; readonly foreign: readonly number[] }) {
  const { say, frames } = props;
  const foreign = new Set(props.foreign);
  const own = Math.max(0, frames.findIndex((_, i) => !foreign.has(i)));
  const line = (frame: string, i: number) => <li key={i} class={i === own ? "own" : ""}><bdi>{frame}</bdi></li>;
  return (
    <div class="frames" tabIndex={0}>
      <ol class="report-stack">{frames.map((frame, i) => (i >= own ? line(frame, i) : null))}</ol>
      {own > 0 && (
        <details>
          <summary>{say("report.frames-inside", own)}</summary>
          <ol class="report-stack">{frames.slice(0, own).map(line)}</ol>
        </details>
      )}
    </div>
  );
}

const fullName = (part: Part, row: ValueRow): string => `${part.callName(row.call)}.${row.item}`;

function RowsOfCall(props: EvidenceProps & { readonly rows: readonly ValueRow[]; readonly isWide: boolean }) {
  const { say, part, rows } = props;
  const item = part.data.header.first_wrong_call?.item;
  return (
    <div class={`report-card ${props.isWide ? "w12" : "w7"}`}>
      <h3>{say("report.in-and-out")}</h3>
      <table class="report-table">
        <thead>
          <tr>
            {(["value", "shape", "dtype", "verdict"] as const).map((key) => <th key={key}>{say(`report.column.${key}`)}</th>)}
            <th class="number">{say("report.column.error")}</th><th class="number">{say("report.column.explained")}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i} class={fullName(part, row) === item ? "marked link" : "link"} onClick={() => props.onRow(row)}>
              <td><button class="plain mono" onClick={() => props.onRow(row)}><bdi>{row.item}</bdi></button></td>
              <td>{bothOf(row.shapes)}</td><td>{bothOf(row.dtypes)}</td>
              <td><VerdictMark verdict={row.verdict} say={say} /></td>
              <td class="number">{row.reason.startsWith("nonfinite-") ? say("report.not-finite") : formatError(row.error)}</td>
              <td class="number">{formatError(row.explained)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="dim">{say("report.error-note")}</p>
    </div>
  );
}

// A call that one side has alone: there is nothing to compare, so what it takes and returns is shown.
function LoneCall(props: EvidenceProps & { readonly call: number; readonly isWide: boolean }) {
  const { say, part, call } = props;
  const at = (part.calls.target[call] ?? -1) >= 0 ? 0 : 1;
  const side = say(at === 0 ? "side.target" : "side.golden");
  return (
    <div class={`report-card ${props.isWide ? "w12" : "w7"}`}>
      <h3>{say("report.takes-returns", side)}</h3>
      <table class="report-table">
        <thead>
          <tr>
            <th>{say("report.column.value")}</th><th /><th>{say("report.column.shape")}</th><th>{say("report.column.dtype")}</th>
            {STATISTICS.map((name) => <th key={name} class="number">{name}</th>)}
          </tr>
        </thead>
        <tbody>
          {props.rowsOf(call).map((row, i) => (
            <tr key={i} class="link" onClick={() => props.onRow(row)}>
              <td><button class="plain mono" onClick={() => props.onRow(row)}><bdi>{row.item}</bdi></button></td>
              <td>{say(`role.${ROLES[row.role] ?? "input"}`)}</td><td>{row.shapes[at]}</td><td>{row.dtypes[at]}</td>
              {cellsOf(row.statistics[at])}
            </tr>
          ))}
        </tbody>
      </table>
      <p class="dim">{say("report.lone-note", part.reasonText(part.unmatchedText(call)), side)}</p>
    </div>
  );
}

// An argument is one value, which may be a long text: it goes on to the end of the row.
function cellsOf(statistics: readonly (Scalar | null)[] | null) {
  if (!statistics) return <td colSpan={STATISTICS.length} />;
  if (!isTensor(statistics)) return <td class="mono" colSpan={STATISTICS.length}><bdi>{formatScalar(statistics[0] ?? null)}</bdi></td>;
  return statistics.map((value, i) => <td key={i} class="number">{formatScalar(value)}</td>);
}

// The call of that name on the other side, where the two are of unlike forms.
function OtherSide(props: EvidenceProps & { readonly call: number }) {
  const { part, call } = props;
  const isTarget = (part.calls.target[call] ?? -1) >= 0;
  const [here, there] = isTarget ? [part.target, part.calls.golden] : [part.golden, part.calls.target];
  const partner = here.data.partners[(isTarget ? part.calls.target : part.calls.golden)[call] ?? -1] ?? -1;
  const other = partner < 0 ? -1 : there.indexOf(partner);
  return other < 0 || other === call ? null : <LoneCall {...props} call={other} isWide />;
}

// Where both sides have a value again, and they differ.
function ResultTaken(props: EvidenceProps & { readonly call: number }) {
  const { say, part } = props;
  const item = part.data.header.first_wrong_call?.item ?? "";
  const taken: ValueRow[] = [];
  for (const [call, rows] of part.rows ?? []) {
    if (call === props.call || !item.startsWith(part.callName(call))) continue;
    taken.push(...rows.filter((row) => fullName(part, row) === item && row.statistics[0] && row.statistics[1]));
  }
  if (taken.length === 0) return null;
  return (
    <div class="report-card w12">
      <h3>{say("report.result-taken")}</h3>
      <table class="report-table">
        <thead><tr><th>{say("report.column.value")}</th><th /><th class="number">{say("side.target")}</th><th class="number">{say("side.golden")}</th></tr></thead>
        <tbody>
          {taken.flatMap((row) => namesOf(row.statistics[0] ?? []).map((name, i) => (
            <tr key={`${row.item}${name}`} class="marked">
              <td class="mono">{i === 0 && <bdi>{fullName(part, row)}</bdi>}</td><td>{name}</td>
              <td class="number">{formatScalar(row.statistics[0]?.[i] ?? null)}</td><td class="number">{formatScalar(row.statistics[1]?.[i] ?? null)}</td>
            </tr>
          )))}
        </tbody>
      </table>
    </div>
  );
}

function Statistics(props: EvidenceProps & { readonly rows: readonly ValueRow[]; readonly item: string; readonly name: string }) {
  const { say, item, name } = props;
  const shown = props.rows.filter((row) => row.statistics[0] && row.statistics[1] && (row.role >= 2 || `${name}.${row.item}` === item));
  if (shown.length === 0) return null;
  return (
    <div class="report-card w12">
      <h3>{say("report.statistics")}</h3>
      <table class="report-table">
        <thead>
          <tr>
            <th>{say("report.column.value")}</th><th /><th class="number">{say("side.target")}</th><th class="number">{say("side.golden")}</th>
            <th class="number">{say("report.column.difference")}</th><th class="number">{say("report.column.relative")}</th>
          </tr>
        </thead>
        <tbody>
          {shown.flatMap((row) => namesOf(row.statistics[0] ?? []).map((statistic, i) => {
            const target = row.statistics[0]?.[i] ?? null, golden = row.statistics[1]?.[i] ?? null;
            const percent = row.metrics[4 + i];
            return (
              <tr key={`${row.item}${statistic}`} class={!Object.is(target, golden) && `${name}.${row.item}` === item ? "marked" : ""}>
                <td class="mono">{i === 0 && <bdi>{row.item}</bdi>}</td><td>{statistic}</td>
                <td class="number">{formatScalar(target)}</td><td class="number">{formatScalar(golden)}</td>
                <td class="number">{formatScalar(row.metrics[i] ?? null)}</td>
                <td class="number">{typeof percent === "number" && Number.isFinite(percent) ? `${formatNumber(percent)} %` : ""}</td>
              </tr>
            );
          }))}
        </tbody>
      </table>
      <p class="dim">{say("report.statistics-note")}</p>
    </div>
  );
}

function Plots(props: { readonly say: Say; readonly evidence: Evidence }) {
  return <><Pairs {...props} /><Errors {...props} /><Profile {...props} /><Worst {...props} /></>;
}

const WIDTH = 450, HEIGHT = 310;

function Pairs(props: { readonly say: Say; readonly evidence: Evidence }) {
  const { say, evidence } = props;
  const pairs = evidence.pairs.filter(({ target, golden }) => Number.isFinite(target) && Number.isFinite(golden));
  const axis = rangeOf(pairs.flatMap(({ target, golden }) => [target, golden]), 0.05);
  const title = ({ index, target, golden }: ElementPair): string =>
    `${say("report.element", index)}\n${say("side.target")} ${formatNumber(target)}\n${say("side.golden")} ${formatNumber(golden)}`;
  return (
    <div class="report-card w4">
      <h3>{say("report.pairs")}</h3>
      <Plot width={WIDTH} height={HEIGHT} x={axis} y={axis} title={say("report.pairs")} xLabel={say("side.golden")}>
        {({ x, y }) => (
          <>
            <line class="explained" x1={x(axis.low)} y1={y(axis.low)} x2={x(axis.high)} y2={y(axis.high)} />
            {pairs.map((pair) => (
              <circle key={pair.index} cx={x(pair.golden)} cy={y(pair.target)} r={3} fill-opacity={0.6} class={pair.target === pair.golden ? "fill-pass" : "fill-error"}>
                <title>{title(pair)}</title>
              </circle>
            ))}
          </>
        )}
      </Plot>
      <p class="dim">{say("report.pairs-note", pairs.length, formatCount(evidence.count))}</p>
    </div>
  );
}

function Errors(props: { readonly say: Say; readonly evidence: Evidence }) {
  const { say } = props;
  const { low, step, counts, equal, total, nonfinite } = props.evidence.histogram;
  const most = Math.max(1, ...counts);
  const edge = (i: number): string => formatNumber(Math.pow(10, low + i * step));
  return (
    <div class="report-card w4">
      <h3>{say("report.histogram")}</h3>
      <Plot width={WIDTH} height={HEIGHT} x={{ low, high: low + counts.length * step, isLog: true }} y={{ low: 0, high: most * 1.05, isWhole: true }}
        title={say("report.histogram")} xLabel={say("report.histogram-axis")}>
        {({ x, y, bottom }) => counts.map((count, i) => count === 0 ? null : (
          <rect key={i} x={x(low + i * step) + 0.5} width={Math.max(1, x(low + (i + 1) * step) - x(low + i * step) - 1)} y={y(count)} height={bottom - y(count)} class="fill-error" fill-opacity={0.75}>
            <title>{`${formatCount(count)}: ${edge(i)} … ${edge(i + 1)}`}</title>
          </rect>
        ))}
      </Plot>
      <p class="dim">
        {say("report.histogram-note", formatCount(equal), formatCount(total))}
        {nonfinite > 0 && ` ${say("report.nonfinite-note", formatCount(nonfinite))}`}
      </p>
    </div>
  );
}

function Profile(props: { readonly say: Say; readonly evidence: Evidence }) {
  const { say, evidence } = props;
  const { profile, count } = evidence;
  const values = profile.map((value) => (value !== null && Number.isFinite(value) ? value : 0));
  const top = Math.max(...values) || 1;
  return (
    <div class="report-card w4">
      <h3>{say("report.profile")}</h3>
      <Plot width={WIDTH} height={HEIGHT} x={{ low: 0, high: count, isWhole: true }} y={{ low: 0, high: top * 1.05 }}
        title={say("report.profile")} xLabel={say("report.profile-axis")}>
        {({ x, y, bottom }) => values.map((value, i) => {
          const left = x((i * count) / values.length), right = x(((i + 1) * count) / values.length);
          const own = profile[i] ?? null;
          const isBad = own === null || !Number.isFinite(own);
          const height = bottom - y(isBad ? top : value);
          return <rect key={i} x={left} width={Math.max(1, right - left)} y={bottom - height} height={height} class={isBad ? "fill-unmatched" : "fill-error"} />;
        })}
      </Plot>
      <p class="dim">{say("report.profile-note")}</p>
    </div>
  );
}

// A row-major index as one index per dimension.
export function positionOf(index: number, shape: readonly number[]): string {
  const places: number[] = [];
  let rest = index;
  for (const size of [...shape].reverse()) {
    places.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return `[${places.join(", ")}]`;
}

function Worst(props: { readonly say: Say; readonly evidence: Evidence }) {
  const { say, evidence } = props;
  return (
    <div class="report-card w12">
      <h3>{say("report.worst", evidence.item)}</h3>
      <table class="report-table">
        <thead>
          <tr>
            <th>{say("report.column.index")}</th><th class="number">{say("side.target")}</th><th class="number">{say("side.golden")}</th>
            <th class="number">{say("report.column.difference")}</th>
          </tr>
        </thead>
        <tbody>
          {evidence.worst.map(({ index, target, golden }) => (
            <tr key={index}>
              <td class="mono">{positionOf(index, evidence.shape)}</td><td class="number">{String(target)}</td><td class="number">{String(golden)}</td>
              <td class="number">{formatNumber(target - golden)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
