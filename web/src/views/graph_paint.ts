// Draws the boxes of one tree as far as they are in sight, coarser the smaller they are: below READABLE
// no letters, below SEPARATE no gaps but runs of one colour, below VISIBLE a box is one spot of the worst
// colour within. A spot is never better than what it stands for.
import { shortName } from "../format";
import { OVERFLOWS, SEVERITY, severity, SYMBOL, worstOf } from "../marks";
import type { State } from "../state";
import type { Branch, Tree } from "../tree";
import { FLAG, type NodeRow } from "../types";
import { CELL, cellBox, firstBelow, TITLE, type Box, type Frame, type GraphLayout, type Segment } from "./graph_layout";
import { fitted, type Look, type Pen } from "./graph_pen";
import type { Camera } from "../state";

const VISIBLE = 2;
const SEPARATE = 6;
const READABLE = 8;
const LETTER_SHARE = 0.5;
const LARGEST_LETTER = 15;
const FADED = 0.3;
// Steps between looks at the clock.
const STEPS = 64;

export interface Palette {
  readonly page: string;
  readonly box: string;
  readonly boxEdge: string;
  readonly text: string;
  readonly dim: string;
  // By severity(): of levels, then of overflows.
  readonly fills: readonly string[];
  readonly edges: readonly string[];
  readonly symbols: readonly string[];
  readonly overflowFills: readonly string[];
  readonly unloaded: string;
}

export function readPalette(element: HTMLElement): Palette {
  const style = getComputedStyle(element);
  const read = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  return {
    page: read("page"), box: read("box"), boxEdge: read("box-edge"), text: read("text"), dim: read("dim"),
    fills: SEVERITY.map((level) => read(`${level}-fill`)),
    edges: SEVERITY.map((level) => read(`${level}-edge`)),
    symbols: SEVERITY.map((level) => read(level)),
    overflowFills: OVERFLOWS.map((level) => read(level === "" ? "none-fill" : `${level}-fill`)),
    unloaded: read("soft"),
  };
}

export interface Scene {
  readonly tree: Tree;
  readonly layout: GraphLayout;
  readonly palette: Palette;
  readonly colours: State["colours"];
  readonly isFiltered: boolean;
  // Names where the page wants children `from` to `to` of a node.
  readonly want: (id: number, from: number, to: number) => void;
}

// What can be seen, in pixels; the camera says which point of the picture is at its top left.
export function* paint(pen: Pen, scene: Scene, camera: Camera, view: Box): Generator<void> {
  yield* new Painter(pen, scene, camera, view).run();
}

class Painter {
  readonly #pen: Pen;
  readonly #scene: Scene;
  readonly #camera: Camera;
  readonly #view: Box;
  #steps = 0;

  constructor(pen: Pen, scene: Scene, camera: Camera, view: Box) {
    this.#pen = pen;
    this.#scene = scene;
    this.#camera = camera;
    this.#view = view;
  }

  *run(): Generator<void> {
    const { root } = this.#scene.tree;
    const frame = this.#scene.layout.frame(root.id);
    yield* this.#open(root, frame, 0, 0);
  }

  #x(value: number): number {
    return (value - this.#camera.x) * this.#camera.zoom;
  }
  #y(value: number): number {
    return (value - this.#camera.y) * this.#camera.zoom;
  }

  #isOutside(x: number, y: number, width: number, height: number): boolean {
    const view = this.#view;
    return x > view.x + view.width || y > view.y + view.height || x + width < view.x || y + height < view.y;
  }

  // The colour of a node by itself, or of the worst within it.
  #code(row: NodeRow, withInside: boolean): number {
    if (this.#scene.colours === "overflow") return OVERFLOWS.indexOf(row.overflow);
    return severity(withInside ? worstOf(row) : row.level);
  }

  #fill(code: number): string {
    const { palette, colours } = this.#scene;
    return (colours === "overflow" ? palette.overflowFills : palette.fills)[code] ?? palette.unloaded;
  }

  #edge(code: number): string {
    const { palette, colours } = this.#scene;
    return colours === "overflow" ? palette.boxEdge : (palette.edges[code] ?? palette.boxEdge);
  }

  *#pause(): Generator<void> {
    if (++this.#steps % STEPS === 0) yield;
  }

  // An open node: its box, its name, what is in it.
  *#open(row: NodeRow, frame: Frame, left: number, top: number): Generator<void> {
    const { zoom } = this.#camera;
    const [x, y, width, height] = [this.#x(left), this.#y(top), frame.width * zoom, frame.height * zoom];
    if (this.#isOutside(x, y, width, height)) return;
    yield* this.#pause();
    const worst = this.#code(row, true);
    if (height < VISIBLE * 2 || width < VISIBLE * 2) {
      this.#pen.rect(x, y, Math.max(width, 1), Math.max(height, 1), { fill: this.#fill(worst), edge: "" });
      return;
    }
    this.#fade(row);
    this.#pen.rect(x, y, width, height, { fill: this.#scene.palette.box, edge: this.#edge(worst), ...this.#style(row) });
    this.#title(row, x, y, width);
    this.#pen.alpha(1);
    const from = firstBelow(frame, this.#camera.y + this.#view.y / zoom - top - frame.tallest);
    const last = this.#camera.y + (this.#view.y + this.#view.height) / zoom - top;
    for (let i = from; i < frame.segments.length; i++) {
      const segment = frame.segments[i];
      if (!segment || segment.y > last) break;
      if (segment.open) {
        yield* this.#open(segment.open, this.#scene.layout.frame(segment.open.id), left + segment.x, top + segment.y);
      } else {
        yield* this.#run(row, segment, left, top);
      }
    }
  }

  #style(row: NodeRow): Pick<Look, "isDashed" | "isHatched"> {
    return { isDashed: row.type === "group" || row.type === "fused", isHatched: (row.flags & FLAG.recomputed) !== 0 };
  }

  #fade(row: NodeRow): void {
    this.#pen.alpha(this.#scene.isFiltered && row.hits === 0 ? FADED : 1);
  }

  #title(row: NodeRow, x: number, y: number, width: number): void {
    const size = this.#letter(TITLE * LETTER_SHARE * this.#camera.zoom);
    if (size < READABLE) return;
    const middle = y + (TITLE * this.#camera.zoom) / 2;
    const start = x + size * 0.6;
    const symbol = this.#symbol(row, start, middle, size);
    const label = fitted(`${shortName(row.name, row.type)}${marksOf(row)}`, x + width - start - symbol - size, size);
    this.#pen.text(start + symbol, middle, label, size, this.#scene.palette.text);
  }

  #letter(size: number): number {
    return Math.min(LARGEST_LETTER, Math.round(size * 2) / 2);
  }

  // Draws the symbol of a level and returns how wide it is.
  #symbol(row: NodeRow, x: number, y: number, size: number): number {
    const code = severity(row.level);
    this.#pen.text(x, y, SYMBOL[row.level], size, this.#scene.palette.symbols[code] ?? "");
    return size * 1.2;
  }

  // Closed children: as cells, or, where cells are too small, as stretches of one colour.
  *#run(parent: NodeRow, segment: Segment, left: number, top: number): Generator<void> {
    const { zoom } = this.#camera;
    const x = this.#x(left + segment.x);
    const y = this.#y(top + segment.y);
    if (this.#isOutside(x, y, segment.width * zoom, segment.height * zoom)) return;
    const branch = this.#scene.tree.branch(parent.id);
    if (!branch) return;
    const step = (CELL.height + CELL.gap) * zoom;
    const rows = Math.ceil((segment.to - segment.from) / segment.columns);
    // Lines that are merged are always the same ones, wherever the view begins.
    const stride = Math.max(1, Math.floor(VISIBLE / 2 / step));
    const first = Math.floor(Math.max(0, (this.#view.y - y) / step) / stride) * stride;
    const last = Math.min(rows, Math.ceil((this.#view.y + this.#view.height - y) / step));
    const from = segment.from + first * segment.columns;
    const to = Math.min(segment.to, segment.from + last * segment.columns);
    this.#scene.want(parent.id, from, to);
    if (CELL.height * zoom < SEPARATE) yield* this.#stretches(segment, branch, { x, y, first, last, stride });
    else yield* this.#cells(segment, branch, { left, top, from, to });
  }

  *#cells(
    segment: Segment, branch: Branch,
    at: { readonly left: number; readonly top: number; readonly from: number; readonly to: number },
  ): Generator<void> {
    const { zoom } = this.#camera;
    const [width, height] = [CELL.width * zoom, CELL.height * zoom];
    for (let i = at.from; i < at.to; i++) {
      const box = cellBox(segment, i);
      const x = this.#x(at.left + box.x);
      if (x > this.#view.x + this.#view.width || x + width < this.#view.x) continue;
      yield* this.#pause();
      const y = this.#y(at.top + box.y);
      const row = branch.rows[i];
      if (row) this.#cell(row, x, y, width, height);
      else this.#pen.rect(x, y, width, height, { fill: this.#scene.palette.unloaded, edge: "" });
    }
    this.#pen.alpha(1);
  }

  #cell(row: NodeRow, x: number, y: number, width: number, height: number): void {
    const own = this.#code(row, false);
    const inside = this.#code(row, true);
    this.#fade(row);
    this.#pen.rect(x, y, width, height, { fill: this.#fill(own), edge: this.#edge(inside), ...this.#style(row) });
    const bar = row.children > 0 ? Math.max(2, 5 * this.#camera.zoom) : 0;
    if (bar > 0) this.#pen.rect(x, y, bar, height, { fill: this.#edge(inside), edge: "" });
    const size = this.#letter(height * LETTER_SHARE);
    if (size < READABLE) return;
    const middle = y + height / 2;
    const start = x + bar + size * 0.5;
    const symbol = this.#symbol(row, start, middle, size);
    const badge = row.children > 0 ? insideText(row) : "";
    const badgeWidth = badge === "" ? 0 : (badge.length + 1) * size * 0.6;
    const label = fitted(`${shortName(row.name, row.type)}${marksOf(row)}`, x + width - start - symbol - badgeWidth - size * 0.4, size);
    this.#pen.text(start + symbol, middle, label, size, this.#scene.palette.text);
    if (badge !== "") this.#pen.text(x + width - size * 0.5, middle, badge, size, this.#scene.palette.symbols[severity(row.worst)] ?? "", true);
  }

  // Rows of cells that fall onto the same pixel are merged; so are neighbours of one colour. What most
  // cells have is laid below, so that usually only the others are drawn.
  *#stretches(
    segment: Segment, branch: Branch,
    at: { readonly x: number; readonly y: number; readonly first: number; readonly last: number; readonly stride: number },
  ): Generator<void> {
    const { zoom } = this.#camera;
    const { stride } = at;
    const step = (CELL.height + CELL.gap) * zoom;
    const common = this.#common(segment, branch, at);
    const full = Math.floor((segment.to - segment.from) / segment.columns);
    const solid = Math.min(at.last, full);
    if (solid > at.first) {
      this.#pen.rect(at.x, at.y + at.first * step, segment.width * zoom, (solid - at.first) * step - CELL.gap * zoom, { fill: this.#fill(common), edge: "" });
    }
    const codes = new Int8Array(segment.columns);
    for (let line = at.first; line < at.last; line += stride) {
      codes.fill(-1);
      const end = Math.min(segment.to, segment.from + Math.min(line + stride, at.last) * segment.columns);
      for (let i = segment.from + line * segment.columns; i < end; i++) {
        const row = branch.rows[i];
        const column = (i - segment.from) % segment.columns;
        const code = row ? this.#code(row, true) : -1;
        if (code > (codes[column] ?? -1)) codes[column] = code;
      }
      yield* this.#line(codes, line < full ? common : -2, at.x, at.y + line * step, Math.max(1, step * stride - CELL.gap * zoom), segment, end);
    }
  }

  *#line(codes: Int8Array, below: number, x: number, y: number, height: number, segment: Segment, end: number): Generator<void> {
    const step = (CELL.width + CELL.gap) * this.#camera.zoom;
    const columns = Math.min(segment.columns, end - segment.from);
    for (let from = 0; from < columns;) {
      let to = from + 1;
      while (to < columns && codes[to] === codes[from]) to++;
      const code = codes[from] ?? -1;
      if (code !== below) {
        yield* this.#pause();
        this.#pen.rect(x + from * step, y, (to - from) * step - CELL.gap * this.#camera.zoom, height, { fill: this.#fill(code), edge: "" });
      }
      from = to;
    }
  }

  // The colour of most cells, of a sample.
  #common(segment: Segment, branch: Branch, at: { readonly first: number; readonly last: number }): number {
    const counts = new Map<number, number>();
    const from = segment.from + at.first * segment.columns;
    const to = Math.min(segment.to, segment.from + at.last * segment.columns);
    const step = Math.max(1, Math.floor((to - from) / 50));
    let best = -1;
    for (let i = from; i < to; i += step) {
      const row = branch.rows[i];
      const code = row ? this.#code(row, true) : -1;
      const count = (counts.get(code) ?? 0) + 1;
      counts.set(code, count);
      if (count > (counts.get(best) ?? 0)) best = code;
    }
    return best;
  }
}

// Signs behind a name.
export function marksOf(row: NodeRow): string {
  let marks = "";
  if (row.flags & FLAG.first) marks += " ◆";
  if (row.flags & FLAG.communicates) marks += " ⇄";
  if (row.flags & FLAG.repaired) marks += " ↷";
  if (row.flags & FLAG.byHand) marks += " ✎";
  if (row.change === "better") marks += " ▲";
  if (row.change === "worse") marks += " ▼";
  if (row.change === "new") marks += " ＋";
  return marks;
}

// The roll-up of a closed node.
function insideText(row: NodeRow): string {
  const parts = [
    row.errors > 0 ? `${SYMBOL.error}${row.errors}` : "",
    row.warnings > 0 ? `${SYMBOL.warning}${row.warnings}` : "",
    row.unmatched > 0 ? `${SYMBOL.unmatched}${row.unmatched}` : "",
  ].filter((part) => part !== "");
  // The worst alone where there is no room for more.
  return parts.length > 2 ? `${parts[0]}…` : parts.join(" ");
}
