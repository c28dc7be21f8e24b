// Nested boxes: closed children in rows like words of a text, open ones in boxes of their own. Sizes
// are kept per open node and computed anew only where something changed.
import { firstNot, type Tree } from "../tree";
import type { NodeRow } from "../types";

// In units of the picture: pixels at zoom 1.
export const CELL = { width: 168, height: 24, gap: 6 } as const;
const PADDING = 9;
export const TITLE = 24;
const LEAST_WIDTH = 240;
const LEAST_COLUMNS = 3;
// A cell is about this many times as wide as high: rows that make a long list about square.
const ASPECT = 5;
// Open boxes stand below each other, as one reads; a picture higher than this forms columns until it
// is about as high as wide.
const STACKED = 8000;

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

// Closed children `from` to `to`, or one open child, relative to the box they are in.
export interface Segment extends Box {
  readonly from: number;
  readonly to: number;
  readonly columns: number;
  readonly open: NodeRow | null;
}

export interface Frame {
  readonly version: number;
  readonly width: number;
  readonly height: number;
  // By y; segments beside each other have the same y.
  readonly segments: readonly Segment[];
  // Largest height of a segment: how far above a point one that covers it may begin.
  readonly tallest: number;
}

export interface Place {
  // null: not loaded yet.
  readonly row: NodeRow | null;
  readonly parent: number;
  readonly at: number;
  readonly box: Box;
}

const EMPTY: Frame = { version: -1, width: LEAST_WIDTH, height: TITLE + PADDING, segments: [], tallest: 0 };

function runSize(count: number, columns: number): { width: number; height: number } {
  const rows = Math.ceil(count / columns);
  return {
    width: Math.min(count, columns) * (CELL.width + CELL.gap) - CELL.gap,
    height: rows * (CELL.height + CELL.gap) - CELL.gap,
  };
}

export function cellBox(segment: Segment, at: number): Box {
  const i = at - segment.from;
  const column = i % segment.columns;
  const row = (i - column) / segment.columns;
  return {
    x: segment.x + column * (CELL.width + CELL.gap),
    y: segment.y + row * (CELL.height + CELL.gap),
    width: CELL.width,
    height: CELL.height,
  };
}

export class GraphLayout {
  readonly #tree: Tree;
  readonly #frames = new Map<number, Frame>();

  constructor(tree: Tree) {
    this.#tree = tree;
  }

  // Of an open node.
  frame(id: number): Frame {
    const branch = this.#tree.branch(id);
    if (!branch) return EMPTY;
    const known = this.#frames.get(id);
    if (known && known.version === branch.version) return known;
    const frame = this.#arrange(id, branch.version);
    this.#frames.set(id, frame);
    return frame;
  }

  #arrange(id: number, version: number): Frame {
    const branch = this.#tree.branch(id);
    if (!branch) return EMPTY;
    const isLong = (branch.total / LEAST_COLUMNS) * (CELL.height + CELL.gap) > STACKED;
    const columns = isLong ? Math.max(LEAST_COLUMNS, Math.round(Math.sqrt(branch.total / ASPECT))) : LEAST_COLUMNS;
    const segments: Segment[] = [];
    let y = TITLE;
    let next = 0;
    let i = 0;
    const run = (to: number): void => {
      if (to <= next) return;
      const size = runSize(to - next, columns);
      segments.push({ from: next, to, columns, open: null, x: PADDING, y, ...size });
      y += size.height + CELL.gap;
    };
    while (i < branch.open.length) {
      const from = branch.open[i] ?? 0;
      run(from);
      let last = i;
      while (branch.open[last + 1] === (branch.open[last] ?? 0) + 1) last++;
      y = this.#shelves(branch.open.slice(i, last + 1), branch.rows, y, segments);
      next = (branch.open[last] ?? 0) + 1;
      i = last + 1;
    }
    run(branch.total);
    const width = segments.reduce((most, segment) => Math.max(most, segment.x + segment.width), 0) + PADDING;
    const tallest = segments.reduce((most, segment) => Math.max(most, segment.height), 0);
    return { version, width: Math.max(width, LEAST_WIDTH), height: y - CELL.gap + PADDING, segments, tallest };
  }

  // Open children that follow each other, below each other or in as many columns as keep a long
  // picture in shape; returns where it goes on.
  #shelves(open: readonly number[], rows: readonly (NodeRow | undefined)[], from: number, out: Segment[]): number {
    const columns = this.#columns(open, rows);
    let y = from;
    for (let i = 0; i < open.length; i += columns) {
      let x = PADDING;
      let height = 0;
      for (const at of open.slice(i, i + columns)) {
        const row = rows[at];
        if (!row) continue;
        const frame = this.frame(row.id);
        out.push({ from: at, to: at + 1, columns: 1, open: row, x, y, width: frame.width, height: frame.height });
        x += frame.width + CELL.gap;
        height = Math.max(height, frame.height);
      }
      y += height + CELL.gap;
    }
    return y;
  }

  #columns(open: readonly number[], rows: readonly (NodeRow | undefined)[]): number {
    let height = 0;
    let width = 1;
    for (const at of open) {
      const row = rows[at];
      const frame = row ? this.frame(row.id) : EMPTY;
      height += frame.height + CELL.gap;
      width = Math.max(width, frame.width);
    }
    const columns = height <= STACKED ? 1 : Math.max(1, Math.round(Math.sqrt(height / width)));
    // As few in the last line as in the others.
    return Math.ceil(open.length / Math.ceil(open.length / columns));
  }

  // Where a node that can be seen is, in the picture; null for one that cannot.
  boxOf(id: number): Box | null {
    const { root } = this.#tree;
    if (id === root.id) {
      const frame = this.frame(id);
      return { x: 0, y: 0, width: frame.width, height: frame.height };
    }
    const row = this.#tree.node(id);
    if (!row || !this.#tree.isOpen(row.parent)) return null;
    const outer = this.boxOf(row.parent);
    const at = this.#tree.position(id);
    const segment = this.frame(row.parent).segments.find((each) => at >= each.from && at < each.to);
    if (!outer || !segment) return null;
    const box = segment.open ? segment : cellBox(segment, at);
    return { x: outer.x + box.x, y: outer.y + box.y, width: box.width, height: box.height };
  }

  // What is at a point of the picture, the innermost.
  at(x: number, y: number): Place | null {
    const { root } = this.#tree;
    const frame = this.frame(root.id);
    const box = { x: 0, y: 0, width: frame.width, height: frame.height };
    if (!contains(box, x, y)) return null;
    return this.#within(root, box, x, y);
  }

  #within(row: NodeRow, box: Box, x: number, y: number): Place {
    const frame = this.frame(row.id);
    const own: Place = { row, parent: row.parent, at: this.#tree.position(row.id), box };
    const inner = { x: x - box.x, y: y - box.y };
    const first = firstBelow(frame, inner.y - frame.tallest);
    for (let i = first; i < frame.segments.length; i++) {
      const segment = frame.segments[i];
      if (!segment || segment.y > inner.y) break;
      if (!contains(segment, inner.x, inner.y)) continue;
      const outer = { x: box.x + segment.x, y: box.y + segment.y, width: segment.width, height: segment.height };
      if (segment.open) return this.#within(segment.open, outer, x, y);
      return this.#cell(row, segment, box, inner) ?? own;
    }
    return own;
  }

  #cell(parent: NodeRow, segment: Segment, outer: Box, point: { readonly x: number; readonly y: number }): Place | null {
    const column = Math.floor((point.x - segment.x) / (CELL.width + CELL.gap));
    const line = Math.floor((point.y - segment.y) / (CELL.height + CELL.gap));
    const at = segment.from + line * segment.columns + column;
    if (at >= segment.to) return null;
    const cell = cellBox(segment, at);
    if (!contains(cell, point.x, point.y)) return null;
    const row = this.#tree.branch(parent.id)?.rows[at] ?? null;
    return { row, parent: parent.id, at, box: { ...cell, x: outer.x + cell.x, y: outer.y + cell.y } };
  }
}

export function contains(box: Box, x: number, y: number): boolean {
  return x >= box.x && y >= box.y && x < box.x + box.width && y < box.y + box.height;
}

// First segment that begins at or below `y`.
export function firstBelow(frame: Frame, y: number): number {
  return firstNot(frame.segments.length, (at) => (frame.segments[at]?.y ?? 0) < y);
}
