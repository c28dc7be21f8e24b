// The evidence of the first wrong call: its rows, its statistics, plots of its tensors.
import { formatCount, formatError, formatNumber, formatScalar } from "../format";
import { Bars } from "../parts/bars";
import { PlainTable, type Column } from "../parts/table";
import type { Say } from "../texts";
import type { Scalar } from "../types";
import type { Part } from "./part";
import { Plot, rangeOf } from "./plot";
import type { ElementPair, Evidence } from "./report_data";
import { bothOf, isTensor, ROLES, STATISTICS, type ValueRow } from "./value_rows";
import { VerdictMark } from "./verdict_mark";

interface EvidenceProps {
  readonly say: Say;
  readonly part: Part;
  // Of the calls of the part; a call whose values were left out has none.
  readonly rowsOf: (call: number) => readonly ValueRow[];
  readonly onRow: (row: ValueRow) => void;
}

const namesOf = (row: ValueRow): readonly string[] => (isTensor(row.statistics[0] ?? []) ? STATISTICS : ["value"]);

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
const itemColumn = (say: Say): Column<ValueRow> => ({ title: say("report.column.value"), cell: ({ item }) => <bdi class="mono">{item}</bdi> });

function RowsOfCall(props: EvidenceProps & { readonly rows: readonly ValueRow[]; readonly isWide: boolean }) {
  const { say, part } = props;
  const item = part.data.header.first_wrong_call?.item;
  const columns: readonly Column<ValueRow>[] = [
    itemColumn(say),
    { title: say("report.column.shape"), cell: (row) => bothOf(row.shapes) },
    { title: say("report.column.dtype"), cell: (row) => bothOf(row.dtypes) },
    { title: say("report.column.verdict"), cell: (row) => <VerdictMark verdict={row.verdict} say={say} /> },
    {
      title: say("report.column.error"), isNumber: true,
      cell: (row) => (row.reason.startsWith("nonfinite-") ? say("report.not-finite") : formatError(row.error)),
    },
    { title: say("report.column.explained"), isNumber: true, cell: (row) => formatError(row.explained) },
  ];
  return (
    <div class={`report-card ${props.isWide ? "w12" : "w7"}`}>
      <h3>{say("report.in-and-out")}</h3>
      <PlainTable columns={columns} rows={props.rows} rowClass={(row) => (fullName(part, row) === item ? "marked" : "")} open={props.onRow} />
      <p class="dim">{say("report.error-note")}</p>
    </div>
  );
}

// A call that one side has alone: there is nothing to compare, so what it takes and returns is shown.
function LoneCall(props: EvidenceProps & { readonly call: number; readonly isWide: boolean }) {
  const { say, part, call } = props;
  const at = (part.calls.target[call] ?? -1) >= 0 ? 0 : 1;
  const side = say(at === 0 ? "side.target" : "side.golden");
  const number = (row: ValueRow, i: number): Scalar | null => row.statistics[at]?.[i] ?? null;
  const isArgument = (row: ValueRow): boolean => row.statistics[at] !== null && !isTensor(row.statistics[at]);
  const rows = props.rowsOf(call);
  const columns: readonly Column<ValueRow>[] = [
    itemColumn(say),
    { title: "", cell: ({ role }) => say(`role.${ROLES[role] ?? "input"}`) },
    { title: say("report.column.shape"), cell: ({ shapes }) => shapes[at] },
    { title: say("report.column.dtype"), cell: ({ dtypes }) => dtypes[at] },
    ...STATISTICS.map((title, i): Column<ValueRow> => ({ title, isNumber: true, cell: (row) => (isArgument(row) ? "" : formatScalar(number(row, i))) })),
    ...(rows.some(isArgument) ? [{ title: "", cell: (row: ValueRow) => isArgument(row) && <bdi class="mono">{formatScalar(number(row, 0))}</bdi> }] : []),
  ];
  return (
    <div class={`report-card ${props.isWide ? "w12" : "w7"}`}>
      <h3>{say("report.takes-returns", side)}</h3>
      <PlainTable columns={columns} rows={rows} open={props.onRow} />
      <p class="dim">{say("report.lone-note", part.reasonText(part.unmatchedText(call)), side)}</p>
    </div>
  );
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

// One number of a value of both sides.
interface Line {
  readonly row: ValueRow;
  readonly i: number;
  readonly name: string;
}
const linesOf = (rows: readonly ValueRow[]): readonly Line[] => rows.flatMap((row) => namesOf(row).map((name, i) => ({ row, i, name })));
const sideOf = ({ row, i }: Line, at: 0 | 1): Scalar | null => row.statistics[at]?.[i] ?? null;
const lineColumns = (say: Say, title: (row: ValueRow) => string): readonly Column<Line>[] => [
  { title: say("report.column.value"), cell: ({ row, i }) => i === 0 && <bdi class="mono">{title(row)}</bdi> },
  { title: "", cell: ({ name }) => name },
  { title: say("side.target"), isNumber: true, cell: (line) => formatScalar(sideOf(line, 0)) },
  { title: say("side.golden"), isNumber: true, cell: (line) => formatScalar(sideOf(line, 1)) },
];

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
      <PlainTable columns={lineColumns(say, (row) => fullName(part, row))} rows={linesOf(taken)} rowClass={() => "marked"} />
    </div>
  );
}

function Statistics(props: EvidenceProps & { readonly rows: readonly ValueRow[]; readonly item: string; readonly name: string }) {
  const { say, item, name } = props;
  const isNamed = (row: ValueRow): boolean => `${name}.${row.item}` === item;
  const shown = props.rows.filter((row) => row.statistics[0] && row.statistics[1] && (row.role >= 2 || isNamed(row)));
  if (shown.length === 0) return null;
  const percent = ({ row, i }: Line): string => {
    const value = row.metrics[4 + i];
    return typeof value === "number" && Number.isFinite(value) ? `${formatNumber(value)} %` : "";
  };
  const columns: readonly Column<Line>[] = [
    ...lineColumns(say, (row) => row.item),
    { title: say("report.column.difference"), isNumber: true, cell: ({ row, i }) => formatScalar(row.metrics[i] ?? null) },
    { title: say("report.column.relative"), isNumber: true, cell: percent },
  ];
  return (
    <div class="report-card w12">
      <h3>{say("report.statistics")}</h3>
      <PlainTable columns={columns} rows={linesOf(shown)}
        rowClass={(line) => (isNamed(line.row) && !Object.is(sideOf(line, 0), sideOf(line, 1)) ? "marked" : "")} />
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
  const edge = (i: number): string => formatError(Math.pow(10, low + i * step));
  return (
    <div class="report-card w4">
      <Bars title={`${say("report.histogram")}: ${say("report.histogram-axis")}`} up={counts} isLog={false} say={say} mark={edge} label={(i) => `${edge(i)} … ${edge(i + 1)}`} />
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
  const from = (i: number): number => Math.ceil((i * count) / profile.length);
  return (
    <div class="report-card w4">
      <Bars title={`${say("report.profile")}: ${say("report.profile-axis")}`} up={profile.map((value) => (value === null || Number.isNaN(value) ? Infinity : value))}
        isLog={false} say={say} mark={(i) => String(from(i))} label={(i) => `${from(i)} … ${from(i + 1) - 1}`} number={formatError} />
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
  const columns: readonly Column<ElementPair>[] = [
    { title: say("report.column.index"), cell: ({ index }) => <span class="mono">{positionOf(index, evidence.shape)}</span> },
    { title: say("side.target"), isNumber: true, cell: ({ target }) => String(target) },
    { title: say("side.golden"), isNumber: true, cell: ({ golden }) => String(golden) },
    { title: say("report.column.difference"), isNumber: true, cell: ({ target, golden }) => formatNumber(target - golden) },
  ];
  return (
    <div class="report-card w12">
      <h3>{say("report.worst", evidence.item)}</h3>
      <PlainTable columns={columns} rows={evidence.worst} />
    </div>
  );
}
