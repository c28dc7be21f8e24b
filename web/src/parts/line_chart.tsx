// Lines over steps, ranks or channels; what is missing is a gap. Arrow keys read point by point.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { formatNumber, formatShort } from "../format";
import type { Say } from "../texts";
import type { ScaleKind } from "./scale";

export interface Line {
  readonly label: string;
  readonly values: readonly (number | null)[];
  // As "--target"; a second run is dashed.
  readonly colour: string;
  readonly isDashed?: boolean;
}

interface LineChartProps {
  readonly title: string;
  readonly xLabel: string;
  readonly x: readonly number[];
  readonly lines: readonly Line[];
  readonly scale: ScaleKind;
  readonly say: Say;
  // Called with a position in `x` by Enter or a click.
  readonly open?: (i: number) => void;
}

// NaN and infinities have no place on an axis: they are gaps that the reading names.
const plain = (value: number | null): number | null => (value !== null && Number.isFinite(value) ? value : null);

export const LINE_COLOURS = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"];

function options(props: LineChartProps, element: HTMLElement, moved: (i: number | null) => void): uPlot.Options {
  const scheme = getComputedStyle(element);
  const colour = (name: string): string => scheme.getPropertyValue(name).trim();
  const axis: uPlot.Axis = {
    stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") },
  };
  const values = props.lines.flatMap((line) => line.values.map(plain)).filter((value) => value !== null);
  const isLog = props.scale === "log" && values.length > 0 && values.every((value) => value > 0);
  const y: uPlot.Scale = isLog ? { distr: 3 } : props.scale === "linear" ? {} : { distr: 4, asinh: Math.max(...values.map(Math.abs), 1) * 1e-6 };
  return {
    width: element.clientWidth,
    height: 260,
    legend: { show: false },
    scales: { x: { time: false }, y },
    axes: [
      { ...axis, label: props.xLabel, labelSize: 18, size: 32, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 100000] },
      { ...axis, size: 76, values: (_, ticks) => ticks.map((tick) => formatShort(tick)) },
    ],
    series: [
      {},
      ...props.lines.map((line): uPlot.Series => ({
        label: line.label, stroke: colour(line.colour), width: 2, spanGaps: false, points: { show: props.x.length < 60, size: 5 },
        ...(line.isDashed === true ? { dash: [6, 4] } : {}),
      })),
    ],
    hooks: { setCursor: [(chart) => moved(chart.cursor.idx ?? null)] },
  };
}

export function LineChart(props: LineChartProps) {
  const holder = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const { say } = props;

  useEffect(() => {
    const element = holder.current;
    if (!element) return;
    const build = (): void => {
      chart.current?.destroy();
      const data: uPlot.AlignedData = [[...props.x], ...props.lines.map((line) => line.values.map(plain))];
      chart.current = new uPlot(options(props, element, setAt), data, element);
    };
    build();
    const sizes = new ResizeObserver(() => chart.current?.setSize({ width: element.clientWidth, height: 260 }));
    sizes.observe(element);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const root = new MutationObserver(build);
    root.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme", "class"] });
    scheme.addEventListener("change", build);
    return () => {
      sizes.disconnect();
      root.disconnect();
      scheme.removeEventListener("change", build);
      chart.current?.destroy();
      chart.current = null;
    };
  }, [props.x, props.lines, props.scale, props.xLabel]);

  const move = (i: number): void => {
    const own = chart.current;
    setAt(i);
    own?.setCursor({ left: own.valToPos(props.x[i] ?? 0, "x"), top: 10 }, false);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step !== 0) move(Math.min(props.x.length - 1, Math.max(0, at === null ? 0 : at + step)));
    else if (event.key === "Enter" && at !== null && props.open) props.open(at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const x = at === null ? undefined : props.x[at];
  return (
    <figure class="chart">
      <figcaption>{props.title}</figcaption>
      <div ref={holder} class="plot" role="img" tabIndex={0} aria-label={`${props.title}. ${say("chart.keys")}`}
        onKeyDown={onKeyDown} onClick={() => at !== null && props.open?.(at)} />
      <ul class="lines" aria-live="polite">
        {props.lines.map((line) => (
          <li key={line.label} style={{ "--own": `var(${line.colour})` }} class={line.isDashed === true ? "dashed" : ""}>
            {line.label}{x === undefined || at === null ? "" : `  [${x}] ${line.values[at] === null ? say("chart.gap") : formatNumber(line.values[at] ?? null)}`}
          </li>
        ))}
      </ul>
    </figure>
  );
}

// A line as small as a word.
export function Spark(props: { label: string; values: readonly (number | null)[]; colour: string }) {
  const known = props.values.map((value, i) => [i, plain(value)] as const);
  const numbers = known.flatMap(([, value]) => (value === null ? [] : [value]));
  if (numbers.length < 2) return null;
  const low = Math.min(...numbers);
  const span = Math.max(...numbers) - low || 1;
  let isDown = false;
  const path = known.map(([i, value]) => {
    if (value === null) {
      isDown = false;
      return "";
    }
    const part = `${isDown ? "L" : "M"}${((i / (known.length - 1)) * 96 + 2).toFixed(1)} ${(18 - ((value - low) / span) * 16).toFixed(1)}`;
    isDown = true;
    return part;
  }).join("");
  return (
    <svg class="spark" width="100" height="20" role="img" aria-label={`${props.label}: ${formatNumber(low)} … ${formatNumber(low + span)}`}>
      <path d={path} fill="none" stroke={`var(${props.colour})`} stroke-width="1.5" />
    </svg>
  );
}
