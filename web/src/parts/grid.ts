// Which cells of a large grid are shown, and where: pure layout of heat maps and tables.

export interface Window {
  readonly from: number;
  readonly to: number;
  // Pixels of one cell.
  readonly size: number;
}

// The part of `count` cells that is shown in `pixels`, none smaller than `least` pixels, none larger
// than `most`, so that `cursor` is among them; `from` is where the part began before.
export function windowOf(count: number, pixels: number, least: number, most: number, from: number, cursor: number): Window {
  if (count <= 0 || pixels <= 0) return { from: 0, to: 0, size: least };
  const fitting = Math.max(1, Math.min(count, Math.floor(pixels / least)));
  const size = Math.min(most, pixels / fitting);
  let start = Math.min(Math.max(0, from), count - fitting);
  if (cursor >= 0 && cursor < start) start = cursor;
  if (cursor >= start + fitting) start = cursor - fitting + 1;
  return { from: start, to: start + fitting, size };
}

// Cells that carry a label: none closer than `apart` pixels.
export function labelled(window: Window, apart: number): number[] {
  const every = Math.max(1, Math.ceil(apart / window.size));
  const out: number[] = [];
  for (let i = window.from; i < window.to; i += every) out.push(i);
  return out;
}

// Moves a cursor by a key of a grid; null: no key of a grid.
export function moveCursor(key: string, cursor: number, count: number, page: number): number | null {
  const steps: Readonly<Record<string, number>> = {
    ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -count, End: count,
  };
  const step = steps[key];
  return step === undefined || count === 0 ? null : Math.min(count - 1, Math.max(0, cursor + step));
}

export interface Range {
  readonly from: number;
  readonly to: number;
}

// A range half or twice as long around a point, within 0 ... count.
export function zoomed(range: Range, around: number, factor: number, count: number): Range {
  const length = Math.min(count, Math.max(1, Math.round((range.to - range.from) * factor)));
  const part = (around - range.from) / Math.max(1, range.to - range.from);
  const from = Math.min(count - length, Math.max(0, Math.round(around - part * length)));
  return { from, to: from + length };
}

interface ParallelPlace {
  readonly tp: number;
  readonly dp: number;
  readonly pp: number;
}

// Where a rank stands when ranks are numbered by tensor, then data, then pipeline parts; null where
// the sizes do not divide the number of ranks.
export function parallelPlace(rank: number, world: number, tp: number, pp: number): ParallelPlace | null {
  if (tp < 1 || pp < 1 || world % (tp * pp) !== 0) return null;
  const dp = world / (tp * pp);
  return { tp: rank % tp, dp: Math.floor(rank / tp) % dp, pp: Math.floor(rank / (tp * dp)) };
}
