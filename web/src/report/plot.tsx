// Plots of a report: axes, and what stands between them. One unit is one pixel where the plot is shown
// in its own width.
import type { ComponentChildren } from "preact";
import { formatNumber } from "../format";
import { linearTicks } from "../parts/scale";

export interface Axis {
  readonly low: number;
  readonly high: number;
  // Values are decimal logarithms; ticks stand at whole ones.
  readonly isLog?: boolean;
  // Ticks stand at whole numbers.
  readonly isWhole?: boolean;
}

export interface Scales {
  readonly x: (value: number) => number;
  readonly y: (value: number) => number;
  readonly top: number;
  readonly bottom: number;
}

const LEFT = 64, RIGHT = 14, TOP = 10, BOTTOM = 40;

export function Plot(props: {
  readonly width: number; readonly height: number; readonly x: Axis; readonly y: Axis;
  readonly title: string; readonly xLabel: string; readonly children: (scales: Scales) => ComponentChildren;
}) {
  const { width, height, x, y } = props;
  const bottom = height - BOTTOM;
  const scales: Scales = {
    x: (value) => LEFT + ((value - x.low) / (x.high - x.low || 1)) * (width - LEFT - RIGHT),
    y: (value) => bottom - ((value - y.low) / (y.high - y.low || 1)) * (bottom - TOP),
    top: TOP,
    bottom,
  };
  return (
    <svg class="report-plot" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={props.title}>
      {ticksOf(y).map((at) => (
        <g key={`y${at}`}>
          <line class="tick" x1={LEFT} x2={width - RIGHT} y1={scales.y(at)} y2={scales.y(at)} />
          <text x={LEFT - 8} y={scales.y(at) + 4} text-anchor="end">{tickText(y, at)}</text>
        </g>
      ))}
      {ticksOf(x).map((at) => <text key={`x${at}`} x={scales.x(at)} y={bottom + 17} text-anchor="middle">{tickText(x, at)}</text>)}
      <line class="axis" x1={LEFT} x2={width - RIGHT} y1={bottom} y2={bottom} />
      <text x={(LEFT + width - RIGHT) / 2} y={height - 5} text-anchor="middle">{props.xLabel}</text>
      {props.children(scales)}
    </svg>
  );
}

function tickText(axis: Axis, at: number): string {
  if (axis.isLog !== true) return formatNumber(at);
  return at === 0 ? "1" : `1e${String(at).replace("-", "−")}`;
}

// At most eight round numbers within the axis.
export function ticksOf({ low, high, isLog, isWhole }: Axis): readonly number[] {
  return linearTicks(low, high, 7).filter((at) => (isLog !== true && isWhole !== true) || Number.isInteger(at));
}

// From the least to the largest of `values`, and some more at both ends.
export function rangeOf(values: readonly number[], margin: number): Axis {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return { low: 0, high: 1 };
  const extra = (high - low || Math.abs(high) || 1) * margin;
  return { low: low - extra, high: high + extra };
}
