// Counts as bars: those of target upwards, those of golden downwards from the same line, so that the
// two are told apart without colours. Arrow keys read them one by one.
import { useState } from "preact/hooks";
import { formatCount } from "../format";
import type { Say } from "../texts";
import { Canvas, type Sheet } from "./canvas";
import { moveCursor } from "./grid";

interface BarsProps {
  readonly title: string;
  readonly up: readonly number[];
  readonly down?: readonly number[] | undefined;
  readonly isLog: boolean;
  readonly say: Say;
  // What bar i counts.
  label(i: number): string;
  // Marks below the bars; of all bars where there are few.
  mark(i: number): string;
  // Numbers of "up" that are no counts.
  readonly number?: (value: number) => string;
}

const LEFT = 8;
const BOTTOM = 20;
const TOP = 18;

const height = (count: number, most: number, isLog: boolean): number => {
  if (!(count > 0) || most <= 0) return 0;
  if (!Number.isFinite(count)) return 1;
  return isLog ? Math.log1p(count) / Math.log1p(most) : count / most;
};

const greatest = (...lists: readonly (readonly number[])[]): number =>
  lists.reduce((most, list) => list.reduce((a, b) => (Number.isFinite(b) && b > a ? b : a), most), 0);

function drawBars(sheet: Sheet, props: BarsProps, cursor: number): void {
  const { pen, width } = sheet;
  const { up, down } = props;
  const most = greatest(up, down ?? []);
  const room = sheet.height - BOTTOM - TOP;
  const base = TOP + (down ? room / 2 : room);
  const step = (width - 2 * LEFT) / Math.max(1, up.length);
  const gap = step > 6 ? Math.min(8, step * 0.2) : 0;
  const bar = (i: number, count: number, sign: number, colour: string): void => {
    const size = height(count, most, props.isLog) * (down ? room / 2 : room);
    if (size <= 0) return;
    pen.fillStyle = sheet.colour(colour);
    pen.fillRect(LEFT + i * step + gap / 2, sign > 0 ? base - Math.max(1, size) : base, Math.max(1, step - gap), Math.max(1, size));
  };
  pen.clearRect(0, 0, width, sheet.height);
  if (cursor >= 0) {
    pen.fillStyle = sheet.colour("--selected");
    pen.fillRect(LEFT + cursor * step, TOP, Math.max(2, step), room);
  }
  up.forEach((count, i) => bar(i, count, 1, "--target"));
  down?.forEach((count, i) => bar(i, count, -1, "--golden"));
  pen.fillStyle = sheet.colour("--line");
  pen.fillRect(LEFT, base, width - 2 * LEFT, 1);
  pen.fillStyle = sheet.colour("--muted");
  pen.textAlign = "left";
  pen.textBaseline = "top";
  const highest = props.number?.(most) ?? formatCount(most);
  pen.fillText(down ? `▲ ${props.say("side.target")}   ▼ ${props.say("side.golden")}   ≤ ${highest}` : `≤ ${highest}`, LEFT, 2);
  pen.textAlign = "center";
  const widest = Math.max(...up.map((_, i) => (i % Math.ceil(up.length / 16) === 0 ? pen.measureText(props.mark(i)).width : 0)));
  const every = Math.max(1, Math.ceil((widest + 14) / step));
  let end = -Infinity;
  for (let i = 0; i < up.length; i += every) {
    const at = LEFT + (i + (step > 20 ? 0.5 : 0)) * step;
    const text = props.mark(i);
    const half = pen.measureText(text).width / 2;
    const x = Math.min(width - half - 1, Math.max(half + 1, at));
    if (x - half < end + 8) continue;
    end = x + half;
    pen.fillText(text, x, sheet.height - BOTTOM + 5);
  }
}

export function Bars(props: BarsProps) {
  const [cursor, setCursor] = useState(-1);
  const { up, down, say } = props;
  const point = (event: PointerEvent): void => {
    if (!(event.currentTarget instanceof HTMLElement)) return;
    const step = (event.currentTarget.clientWidth - 2 * LEFT) / Math.max(1, up.length);
    const at = Math.floor((event.offsetX - LEFT) / step);
    setCursor(at >= 0 && at < up.length ? at : -1);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const key = event.key === "ArrowRight" ? "ArrowDown" : event.key === "ArrowLeft" ? "ArrowUp" : event.key;
    const next = event.key.startsWith("Arrow") && key === event.key ? null : moveCursor(key, cursor, up.length, 16);
    if (next === null) return;
    event.preventDefault();
    event.stopPropagation();
    setCursor(next);
  };
  const amount = (value: number | undefined): string => props.number?.(value ?? 0) ?? formatCount(value ?? 0);
  const reading = cursor < 0 || cursor >= up.length ? "" : down
    ? `${props.label(cursor)}: ${say("side.target")} ${amount(up[cursor])}, ${say("side.golden")} ${amount(down[cursor])}`
    : `${props.label(cursor)}: ${amount(up[cursor])}`;
  return (
    <figure class="bars">
      <figcaption>{props.title}</figcaption>
      <Canvas label={`${props.title}. ${say("chart.keys")}`} draw={(sheet) => drawBars(sheet, props, cursor)}
        onPointerMove={point} onKeyDown={onKeyDown} />
      <p class="reading" aria-live="polite">{reading || " "}</p>
    </figure>
  );
}
