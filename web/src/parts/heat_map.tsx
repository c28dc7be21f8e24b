// A grid of coloured cells on a canvas. Cells that do not fit are reached by moving: with arrow keys,
// the wheel, or a click. A dragged rectangle asks for a closer look.
import { useRef, useState } from "preact/hooks";
import { formatNumber, formatShort } from "../format";
import type { Say } from "../texts";
import { Canvas, type Sheet } from "./canvas";
import { css, inkOn, NAN_COLOUR, rampColour, type Ramp } from "./colours";
import { labelled, moveCursor, windowOf, type Range, type Window } from "./grid";
import { ticksOf, type Scale } from "./scale";

export interface Cell {
  readonly row: number;
  readonly column: number;
}

interface HeatProps {
  readonly title: string;
  readonly say: Say;
  readonly rows: number;
  readonly columns: number;
  // Least and largest pixels of a cell.
  readonly least: Readonly<{ width: number; height: number }>;
  readonly most?: Readonly<{ width: number; height: number }>;
  readonly cursor: Cell | null;
  // 0xRRGGBB or GAP.
  colour(row: number, column: number): number;
  // Drawn in cells that are large enough for it; else what is brief.
  text(row: number, column: number): string;
  readonly brief?: (row: number, column: number) => string;
  rowLabel(row: number): string;
  columnLabel(column: number): string;
  describe(row: number, column: number): string;
  move(cell: Cell): void;
  readonly open?: (cell: Cell) => void;
  readonly zoom?: (rows: Range, columns: Range) => void;
  readonly press?: (event: KeyboardEvent) => boolean;
  // Told of the cells in sight whenever they are drawn.
  readonly shown?: (rows: Range, columns: Range) => void;
}

interface Layout {
  readonly left: number;
  readonly across: Window;
  readonly down: Window;
}

const BOTTOM = 20;
const TEXT_HEIGHT = 14;
// Cells of this size are drawn with lines between them.
const SEPARATED = 18;

// The end of a text that is too long: names differ there.
function fitEnd(pen: CanvasRenderingContext2D, text: string, room: number): string {
  if (pen.measureText(text).width <= room) return text;
  let keep = Math.max(1, Math.floor((text.length * room) / pen.measureText(text).width));
  while (keep > 1 && pen.measureText(`…${text.slice(-keep)}`).width > room) keep--;
  return `…${text.slice(-keep)}`;
}

function layOut(sheet: Sheet, props: HeatProps, from: Cell): Layout {
  const { pen } = sheet;
  const labels = Array.from({ length: Math.min(40, props.rows) }, (_, i) => props.rowLabel(from.row + i));
  const widest = Math.max(...labels.map((label) => pen.measureText(label).width), 10);
  const left = Math.min(sheet.width * 0.3, widest + 10);
  const { least, most, cursor } = props;
  return {
    left,
    across: windowOf(props.columns, sheet.width - left - 4, least.width, most?.width ?? Infinity, from.column, cursor?.column ?? -1),
    down: windowOf(props.rows, sheet.height - BOTTOM, least.height, most?.height ?? Infinity, from.row, cursor?.row ?? -1),
  };
}

function drawCells(sheet: Sheet, props: HeatProps, { left, across, down }: Layout): void {
  const width = across.to - across.from;
  const height = down.to - down.from;
  if (width === 0 || height === 0) return;
  const dots = new ImageData(width, height);
  for (let r = 0, at = 0; r < height; r++) {
    for (let c = 0; c < width; c++, at += 4) {
      const colour = props.colour(down.from + r, across.from + c);
      if (colour < 0) continue;
      dots.data[at] = colour >> 16;
      dots.data[at + 1] = (colour >> 8) & 255;
      dots.data[at + 2] = colour & 255;
      dots.data[at + 3] = 255;
    }
  }
  const small = new OffscreenCanvas(width, height);
  small.getContext("2d")?.putImageData(dots, 0, 0);
  const { pen } = sheet;
  pen.clearRect(left, 0, width * across.size, height * down.size);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(small, left, 0, width * across.size, height * down.size);
  if (Math.min(across.size, down.size) < SEPARATED) return;
  pen.fillStyle = sheet.colour("--ground");
  for (let c = 1; c < width; c++) pen.fillRect(Math.round(left + c * across.size), 0, 1, height * down.size);
  for (let r = 1; r < height; r++) pen.fillRect(left, Math.round(r * down.size), width * across.size, 1);
}

function drawTexts(sheet: Sheet, props: HeatProps, { left, across, down }: Layout): void {
  const { pen } = sheet;
  if (across.size < 14 || down.size < TEXT_HEIGHT) return;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (let r = down.from; r < down.to; r++) {
    for (let c = across.from; c < across.to; c++) {
      const text = [props.text(r, c), props.brief?.(r, c) ?? ""].find((each) => pen.measureText(each).width <= across.size - 6) ?? "";
      if (text === "") continue;
      const colour = props.colour(r, c);
      pen.fillStyle = colour < 0 ? sheet.colour("--muted") : inkOn(colour);
      pen.fillText(text, left + (c - across.from + 0.5) * across.size, (r - down.from + 0.5) * down.size);
    }
  }
}

function drawLabels(sheet: Sheet, props: HeatProps, { left, across, down }: Layout): void {
  const { pen } = sheet;
  pen.fillStyle = sheet.colour("--muted");
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const r of labelled(down, TEXT_HEIGHT)) {
    pen.fillText(fitEnd(pen, props.rowLabel(r), left - 6), left - 4, Math.max(6, (r - down.from + 0.5) * down.size));
  }
  pen.textAlign = "center";
  const bottom = (down.to - down.from) * down.size + 11;
  const widest = Math.max(20, pen.measureText(props.columnLabel(across.to - 1)).width, pen.measureText(props.columnLabel(across.from)).width);
  for (const c of labelled(across, widest + 12)) {
    pen.fillText(props.columnLabel(c), left + (c - across.from + 0.5) * across.size, bottom);
  }
}

function outline(sheet: Sheet, { left, across, down }: Layout, a: Cell, b: Cell): void {
  const x = left + (Math.min(a.column, b.column) - across.from) * across.size;
  const y = (Math.min(a.row, b.row) - down.from) * down.size;
  const width = (Math.abs(a.column - b.column) + 1) * across.size;
  const height = (Math.abs(a.row - b.row) + 1) * down.size;
  for (const [colour, line] of [["--ground", 4], ["--ink", 2]] as const) {
    sheet.pen.strokeStyle = sheet.colour(colour);
    sheet.pen.lineWidth = line;
    sheet.pen.strokeRect(x, y, Math.max(3, width), Math.max(3, height));
  }
}

export function HeatMap(props: HeatProps) {
  const { rows, columns, cursor, say } = props;
  const from = useRef<Cell>({ row: 0, column: 0 });
  const layout = useRef<Layout | null>(null);
  const [drag, setDrag] = useState<{ start: Cell; end: Cell } | null>(null);

  const draw = (sheet: Sheet): void => {
    const own = layOut(sheet, props, from.current);
    layout.current = own;
    from.current = { row: own.down.from, column: own.across.from };
    props.shown?.(own.down, own.across);
    // Gaps show the pattern behind the canvas; what lies around the cells does not.
    sheet.pen.fillStyle = sheet.colour("--ground");
    sheet.pen.fillRect(0, 0, sheet.width, sheet.height);
    drawCells(sheet, props, own);
    drawTexts(sheet, props, own);
    drawLabels(sheet, props, own);
    if (drag) outline(sheet, own, drag.start, drag.end);
    else if (cursor) outline(sheet, own, cursor, cursor);
  };
  const cellAt = (event: MouseEvent): Cell | null => {
    const own = layout.current;
    if (!own) return null;
    const row = own.down.from + Math.floor(event.offsetY / own.down.size);
    const column = own.across.from + Math.floor((event.offsetX - own.left) / own.across.size);
    const isInside = row >= 0 && row < Math.min(rows, own.down.to) && column >= own.across.from && column < Math.min(columns, own.across.to);
    return isInside ? { row, column } : null;
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const at = cursor ?? { row: 0, column: 0 };
    const sideways: Readonly<Record<string, string>> = { ArrowRight: "ArrowDown", ArrowLeft: "ArrowUp", Home: "Home", End: "End" };
    const across = sideways[event.key];
    const isUsed = ((): boolean => {
      if (event.ctrlKey || event.altKey || event.metaKey) return false;
      if (event.key === "Enter" && props.open) props.open(at);
      else if (across !== undefined) props.move({ ...at, column: moveCursor(across, at.column, columns, 10) ?? 0 });
      else {
        const row = moveCursor(event.key, at.row, rows, 10);
        if (row === null) return props.press?.(event) ?? false;
        props.move({ ...at, row });
      }
      return true;
    })();
    if (!isUsed) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const finish = (): void => {
    if (!drag) return;
    const { start, end } = drag;
    setDrag(null);
    if (start.row === end.row && start.column === end.column) return;
    const range = (a: number, b: number): Range => ({ from: Math.min(a, b), to: Math.max(a, b) + 1 });
    props.zoom?.(range(start.row, end.row), range(start.column, end.column));
  };
  const onWheel = (event: WheelEvent): void => {
    const own = layout.current;
    if (!own || own.down.to - own.down.from >= rows) return;
    event.preventDefault();
    const row = from.current.row + Math.sign(event.deltaY) * 3;
    from.current = { ...from.current, row };
    const inside = Math.min(rows - 1, Math.max(0, Math.sign(event.deltaY) > 0 ? Math.max(cursor?.row ?? 0, row) : Math.min(cursor?.row ?? 0, row + own.down.to - own.down.from - 1)));
    props.move({ row: inside, column: cursor?.column ?? 0 });
  };
  const isThere = cursor !== null && cursor.row < rows && cursor.column < columns;
  return (
    <figure class="heat">
      <figcaption>{props.title}</figcaption>
      <Canvas label={`${props.title}. ${say("chart.keys")}`} draw={draw} onKeyDown={onKeyDown} onWheel={onWheel}
        height={props.most && Number.isFinite(props.most.height) ? `min(${rows * props.most.height + BOTTOM}px, max(160px, 44vh))` : "44vh"}
        onPointerDown={(event) => {
          const cell = cellAt(event);
          if (!cell) return;
          props.move(cell);
          if (props.zoom) setDrag({ start: cell, end: cell });
        }}
        onPointerMove={(event) => {
          const cell = drag && cellAt(event);
          if (drag && cell) setDrag({ ...drag, end: cell });
        }}
        onPointerUp={finish}
        onDblClick={(event) => {
          const cell = cellAt(event);
          if (cell) props.open?.(cell);
        }} />
      <p class="reading" aria-live="polite">{isThere ? props.describe(cursor.row, cursor.column) : " "}</p>
    </figure>
  );
}

// The colours of a scale with its numbers, and what NaN and gaps look like.
export function Legend(props: { scale: Scale; ramp: Ramp; say: Say; title: string }) {
  const { scale, ramp } = props;
  const draw = (sheet: Sheet): void => {
    const { pen, width } = sheet;
    pen.clearRect(0, 0, width, sheet.height);
    const right = width - 160;
    for (let x = 0; x < right - 20; x++) {
      pen.fillStyle = css(rampColour(ramp, x / (right - 21)));
      pen.fillRect(10 + x, 0, 1, 12);
    }
    pen.textBaseline = "top";
    pen.textAlign = "center";
    pen.fillStyle = sheet.colour("--muted");
    let end = -Infinity;
    for (const tick of ticksOf(scale, Math.max(2, Math.floor(right / 110)))) {
      const text = formatShort(tick);
      const half = pen.measureText(text).width / 2;
      const x = 10 + scale.at(tick) * (right - 20);
      if (Math.max(half, x) - half < end + 8) continue;
      end = Math.max(half, x) + half;
      pen.fillRect(x, 12, 1, 4);
      pen.fillText(text, Math.max(half, x), 18);
    }
    pen.textAlign = "left";
    pen.fillStyle = css(NAN_COLOUR);
    pen.fillRect(right + 10, 0, 12, 12);
    pen.strokeStyle = sheet.colour("--muted");
    pen.strokeRect(right + 64.5, 0.5, 11, 11);
    pen.fillStyle = sheet.colour("--ink");
    pen.fillText("NaN", right + 26, 0);
    pen.fillText(props.say("chart.gap"), right + 82, 0);
  };
  const { say, title } = props;
  return (
    <div class="legend">
      <Canvas label={say("chart.legend", title, formatNumber(scale.low), formatNumber(scale.high))} draw={draw} />
    </div>
  );
}
