// The error of the calls along their order, and the calls around the first wrong one.
import { formatError } from "../format";
import { verdictKey } from "../marks";
import { PlainTable, type Column } from "../parts/table";
import type { Say } from "../texts";
import type { Part } from "./part";
import { Plot, rangeOf, type Axis, type Scales } from "./plot";
import { callNear } from "./ranks_card";
import type { GrowthPoint } from "./report_data";
import { NOT_COMPARABLE, type ValueRow } from "./value_rows";
import { levelOf, VerdictMark, VerdictMarks } from "./verdict_mark";

interface GrowthProps {
  readonly say: Say;
  readonly part: Part;
  readonly others: readonly Part[];
  readonly rowsOf: (call: number) => readonly ValueRow[];
  readonly onCall: (call: number) => void;
}

const WIDTH = 1240, HEIGHT = 400;
// Errors beyond these stand at the edge of the plot.
const LOWEST = -12;

export function GrowthCard(props: GrowthProps) {
  const { say, part, others } = props;
  const { growth } = part.data;
  const errors = growth.flatMap(({ error, explained }) => [error ?? 0, explained]).filter((value) => value > 0 && Number.isFinite(value)).map(Math.log10);
  const isShared = part.calls.total > growth.length * 1.5;
  return (
    <section class="report-section">
      <h2>{say("report.growth")}</h2>
      <div class="report-card">
        <h3>{say("report.growth-title")}</h3>
        {errors.length === 0 && <p class="dim">{say("report.growth-none")}</p>}
        <div class="legend">
          <VerdictMarks say={say} />
          <span><span class="dash" />{say("report.explained-key")}</span>
          {others.length > 0 && <span><span class="other-key" />{say("report.others-key")}</span>}
        </div>
        <Curve {...props} y={axisOf(errors)} />
        {isShared && <p class="dim">{say("report.growth-shared")}</p>}
        {growth.some((point) => isLate(nameOfPoint(part, point))) && <p class="dim">{say("report.growth-late")}</p>}
      </div>
      <Around {...props} />
    </section>
  );
}

function axisOf(errors: readonly number[]): Axis {
  const range = errors.length > 0 ? rangeOf(errors, 0.04) : { low: -16, high: 0 };
  const low = Math.max(LOWEST, Math.floor(range.low)), high = Math.max(Math.ceil(range.high), LOWEST);
  return { low, high: high === low ? high + 1 : high, isLog: true };
}

const isLate = (name: string): boolean => name.endsWith(".parameters_grad");

// Empty: the call of a point is not one of the page's.
function nameOfPoint(part: Part, point: GrowthPoint): string {
  const call = callNear(part, point.call);
  return part.calls.numbers[call] === point.call ? part.callName(call) : "";
}

function Curve(props: GrowthProps & { readonly y: Axis }) {
  const { say, part, others, y } = props;
  const { growth } = part.data;
  const height = (scales: Scales, value: number): number => {
    if (!(value > 0)) return scales.y(y.low);
    return scales.y(Number.isFinite(value) ? Math.min(y.high, Math.max(y.low, Math.log10(value))) : y.high);
  };
  const line = (scales: Scales, points: readonly GrowthPoint[], value: (point: GrowthPoint) => number | null): string =>
    points.filter((point) => (value(point) ?? 0) > 0).map((point) => `${scales.x(point.call)},${height(scales, value(point) ?? 0)}`).join(" ");
  const first = part.calls.numbers[part.firstCall()] ?? -1;
  return (
    <Plot width={WIDTH} height={HEIGHT} x={{ low: 0, high: Math.max(1, part.calls.total - 1), isWhole: true }} y={y}
      title={say("report.growth-title")} xLabel={say("report.column.call")}>
      {(scales) => (
        <>
          {first >= 0 && <First say={say} scales={scales} x={scales.x(first)} isLate={first > part.calls.total * 0.7} />}
          <polyline class="explained" points={line(scales, growth, ({ explained }) => explained)} />
          {others.map((other, i) => <polyline key={i} class="other" points={line(scales, other.data.growth, ({ error }) => error)} />)}
          {growth.map((point) => {
            const { call, error, verdict } = point;
            if (error === null && verdict === NOT_COMPARABLE) return null;
            const name = nameOfPoint(part, point);
            const said = `${name || `${say("report.column.call")} ${call}`}\n${say(verdictKey(verdict))}, ${say("report.column.error")} ${error === null ? say("report.not-finite") : formatError(error)}, ${say("report.column.explained")} ${formatError(point.explained)}`;
            return (
              <circle key={call} cx={scales.x(call)} cy={error === null ? scales.top : height(scales, error)} r={verdict >= 2 ? 4 : 3}
                class={`pick fill-${levelOf(verdict)} ${isLate(name) ? "ring" : ""}`} onClick={() => props.onCall(callNear(part, call))}>
                <title>{said}</title>
              </circle>
            );
          })}
        </>
      )}
    </Plot>
  );
}

function First(props: { readonly say: Say; readonly scales: Scales; readonly x: number; readonly isLate: boolean }) {
  const { scales, x } = props;
  return (
    <>
      <line class="first-call" x1={x} x2={x} y1={scales.top} y2={scales.bottom} />
      <text x={x + (props.isLate ? -6 : 6)} y={scales.top + 12} text-anchor={props.isLate ? "end" : "start"}>{props.say("answer.first")}</text>
    </>
  );
}

const BEFORE = 4, BEHIND = 9;

// The worst output of each of the calls around the first wrong one.
function Around(props: GrowthProps) {
  const { say, part } = props;
  const first = part.firstCall();
  if (first < 0) return null;
  const weight = (row: ValueRow): number => (row.verdict === 3 ? 1e300 : 0) + (row.error ?? 0);
  const lines: ValueRow[] = [];
  for (let call = Math.max(0, first - BEFORE); call <= Math.min(part.callCount - 1, first + BEHIND); call++) {
    const outputs = props.rowsOf(call).filter((row) => row.role >= 2);
    const [worst] = [...outputs].sort((a, b) => weight(b) - weight(a));
    if (worst) lines.push(worst);
  }
  const columns: readonly Column<ValueRow>[] = [
    { title: say("report.column.call"), cell: (row) => <bdi class="mono">{part.callName(row.call)}</bdi> },
    {
      title: say("report.column.verdict"),
      cell: (row) => (
        <span title={row.reason === "" ? "" : part.reasonText(row.reason)}>
          <VerdictMark verdict={row.verdict} say={say} />
          {row.verdict === NOT_COMPARABLE && <div class="dim">{part.reasonText(row.reason)}</div>}
        </span>
      ),
    },
    { title: say("report.column.error"), cell: (row) => <Bar row={row} /> },
    { title: "", isNumber: true, cell: (row) => formatError(row.error) },
  ];
  return (
    <div class="report-card">
      <h3>{say("report.around")}</h3>
      <PlainTable class="around" columns={columns} rows={lines} rowClass={(row) => (row.call === first ? "marked" : "")} open={(row) => props.onCall(row.call)} />
      <div class="legend"><span><span class="dash" />{say("report.explained-key")}</span></div>
    </div>
  );
}

// An error on a logarithmic scale from 1e-12 to 100, with what is explained as a mark.
function Bar(props: { readonly row: ValueRow }) {
  const { verdict, error, explained } = props.row;
  const place = (value: number): number => Math.max(0, Math.min(100, ((Math.log10(value) - LOWEST) / 14) * 100));
  const isWorst = verdict === 3 && (error === null || !Number.isFinite(error));
  const width = isWorst ? 100 : error !== null && error > 0 ? Math.max(1, place(error)) : 0;
  return (
    <div class={`report-bar ${levelOf(verdict)}`}>
      <b style={{ width: `${width}%` }} />
      {explained !== null && explained > 0 && <i style={{ left: `${place(explained)}%` }} />}
    </div>
  );
}
