// Small charts as SVG: few marks, axes that say what they are, every mark with its numbers on hover.
import type { ComponentChildren } from "preact";
import { formatError, formatNumber } from "../format";
import type { Say } from "../texts";
import type { Evidence, GrowthPoint } from "./evidence";

const WIDTH = 460;
const HEIGHT = 230;
const EDGE = { left: 58, right: 12, top: 10, bottom: 34 } as const;

export interface Axis {
  readonly low: number;
  readonly high: number;
  // Ticks are powers of ten.
  readonly isLog?: boolean;
}

export interface Scale {
  readonly x: (value: number) => number;
  readonly y: (value: number) => number;
  readonly bottom: number;
}

function ticks(axis: Axis): readonly number[] {
  const span = axis.high - axis.low || 1;
  const least = axis.isLog ? 1 : 0;
  const rough = Math.max(least, span / 5);
  const base = 10 ** Math.floor(Math.log10(rough));
  const step = axis.isLog ? Math.ceil(rough) : (([1, 2, 5, 10].find((factor) => factor * base >= rough) ?? 10) * base);
  const out: number[] = [];
  for (let at = Math.ceil(axis.low / step) * step; at <= axis.high + step * 1e-9; at += step) out.push(at);
  return out;
}

export function Plot(props: {
  readonly title: string; readonly x: Axis; readonly y: Axis; readonly xLabel: string; readonly yLabel: string;
  readonly width?: number; readonly draw: (scale: Scale) => ComponentChildren;
}) {
  const { x, y, width = WIDTH } = props;
  const bottom = HEIGHT - EDGE.bottom;
  const scale: Scale = {
    x: (value) => EDGE.left + ((value - x.low) / (x.high - x.low || 1)) * (width - EDGE.left - EDGE.right),
    y: (value) => bottom - ((value - y.low) / (y.high - y.low || 1)) * (bottom - EDGE.top),
    bottom,
  };
  const label = (axis: Axis, value: number): string => (axis.isLog ? `1e${value}` : formatNumber(Number(value.toPrecision(6)))).replace("-", "−");
  return (
    <svg viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={props.title} class="plot">
      {ticks(y).map((value) => (
        <g key={value}>
          <line class="tick" x1={EDGE.left} x2={width - EDGE.right} y1={scale.y(value)} y2={scale.y(value)} />
          <text x={EDGE.left - 6} y={scale.y(value) + 4} text-anchor="end">{label(y, value)}</text>
        </g>
      ))}
      {ticks(x).map((value) => <text key={value} x={scale.x(value)} y={bottom + 15} text-anchor="middle">{label(x, value)}</text>)}
      <text x={(width + EDGE.left) / 2} y={HEIGHT - 4} text-anchor="middle">{props.xLabel}</text>
      <text x={4} y={EDGE.top + 2} class="y-label">{props.yLabel}</text>
      {props.draw(scale)}
    </svg>
  );
}

const VERDICT_CLASSES = ["pass", "pass", "warning", "error", "none"];
const LEAST = -12;

const logOf = (value: number | null): number =>
  value === null || Number.isNaN(value) || value <= 0 ? LEAST : Math.max(LEAST, Math.log10(value));

export function GrowthChart(props: { readonly points: readonly GrowthPoint[]; readonly say: Say }) {
  const { points, say } = props;
  const last = Math.max(1, ...points.map((point) => point.call));
  const high = Math.min(300, Math.max(0, ...points.map((point) => (Number.isFinite(point.error ?? 0) ? Math.ceil(logOf(point.error)) : 0))));
  return (
    <Plot title={say("summary.growth")} x={{ low: 0, high: last }} y={{ low: LEAST, high, isLog: true }} width={1000}
      xLabel={say("summary.call")} yLabel=""
      draw={(scale) => (
        <>
          <polyline class="explained" points={points.map((point) => `${scale.x(point.call)},${scale.y(Math.min(high, logOf(point.explained)))}`).join(" ")} />
          {points.map((point) => (
            <circle key={point.call} class={`dot ${VERDICT_CLASSES[point.verdict] ?? "none"}`} r={point.verdict >= 2 ? 4 : 2.2}
              cx={scale.x(point.call)} cy={scale.y(Number.isNaN(point.error ?? 0) ? high : Math.min(high, logOf(point.error)))}>
              <title>{`${say("summary.call")} ${point.call}\n${say("column.error")} ${formatError(point.error)}\n${say("details.column.explained")} ${formatError(point.explained)}`}</title>
            </circle>
          ))}
        </>
      )} />
  );
}

export function PairsChart(props: { readonly evidence: Evidence; readonly say: Say }) {
  const { evidence, say } = props;
  const pairs = evidence.pairs.filter((pair) => Number.isFinite(pair.target) && Number.isFinite(pair.golden));
  const values = pairs.flatMap((pair) => [pair.target, pair.golden]);
  const low = Math.min(0, ...values);
  const high = Math.max(...values, low + 1e-30);
  return (
    <Plot title={say("summary.pairs")} x={{ low, high }} y={{ low, high }} xLabel={say("side.golden")} yLabel={say("side.target")}
      draw={(scale) => (
        <>
          <line class="explained" x1={scale.x(low)} y1={scale.y(low)} x2={scale.x(high)} y2={scale.y(high)} />
          {pairs.map((pair) => (
            <circle key={pair.index} class={`dot ${pair.target === pair.golden ? "none" : "error"}`} r={2.6} cx={scale.x(pair.golden)} cy={scale.y(pair.target)}>
              <title>{`[${pair.index}]\n${say("side.target")} ${formatNumber(pair.target)}\n${say("side.golden")} ${formatNumber(pair.golden)}`}</title>
            </circle>
          ))}
        </>
      )} />
  );
}

export function ErrorsChart(props: { readonly evidence: Evidence; readonly say: Say }) {
  const { histogram } = props.evidence;
  const most = Math.max(1, ...histogram.counts);
  const at = (i: number): number => histogram.low + i * histogram.step;
  return (
    <Plot title={props.say("summary.errors")} x={{ low: histogram.low, high: at(histogram.counts.length), isLog: true }} y={{ low: 0, high: most }}
      xLabel={props.say("summary.relative-error")} yLabel=""
      draw={(scale) => histogram.counts.map((count, i) => count > 0 && (
        <rect key={i} class="bar-mark error" x={scale.x(at(i)) + 0.5} width={Math.max(1, scale.x(at(i + 1)) - scale.x(at(i)) - 1)} y={scale.y(count)} height={scale.bottom - scale.y(count)}>
          <title>{`${count}\n${formatError(10 ** at(i))} – ${formatError(10 ** at(i + 1))}`}</title>
        </rect>
      ))} />
  );
}

export function ProfileChart(props: { readonly evidence: Evidence; readonly say: Say }) {
  const { profile, count } = props.evidence;
  const finite = profile.filter((value): value is number => value !== null && Number.isFinite(value));
  const top = Math.max(...finite, 1e-300);
  return (
    <Plot title={props.say("summary.profile")} x={{ low: 0, high: count }} y={{ low: 0, high: top }} xLabel={props.say("summary.element")} yLabel=""
      draw={(scale) => profile.map((value, i) => {
        const isFinite = value !== null && Number.isFinite(value);
        const left = scale.x((i * count) / profile.length);
        const y = scale.y(isFinite ? (value ?? 0) : top);
        return <rect key={i} class={`bar-mark ${isFinite ? "error" : "unmatched"}`} x={left} width={Math.max(1, scale.x(((i + 1) * count) / profile.length) - left)} y={y} height={scale.bottom - y}><title>{formatError(value)}</title></rect>;
      })} />
  );
}
