// Numbers to places between 0 and 1 and back, with marks that people read easily.

export type ScaleKind = "linear" | "log" | "symlog";

export interface Scale {
  readonly kind: ScaleKind;
  readonly low: number;
  readonly high: number;
  // 0 at `low`, 1 at `high`; NaN for NaN; infinities at the ends.
  at(value: number): number;
  value(at: number): number;
}

// Below this part of the largest magnitude a symmetric logarithm is linear; as in the program.
const SYMLOG_PART = 1e-6;

const symlog = (value: number, unit: number): number => Math.sign(value) * Math.log1p(Math.abs(value) / unit);
const symexp = (value: number, unit: number): number => Math.sign(value) * Math.expm1(Math.abs(value)) * unit;

function bend(kind: ScaleKind, low: number, high: number): [(value: number) => number, (at: number) => number] {
  if (kind === "log") return [(value) => Math.log(Math.max(value, low)), Math.exp];
  const unit = Math.max(Math.abs(low), Math.abs(high)) * SYMLOG_PART || 1;
  if (kind === "symlog") return [(value) => symlog(value, unit), (at) => symexp(at, unit)];
  return [(value) => value, (at) => at];
}

// A logarithm of a range that is not above 0 is a symmetric one.
export function scaleOf(wanted: ScaleKind, low: number, high: number): Scale {
  const kind = wanted === "log" && low <= 0 ? "symlog" : wanted;
  const [into, out] = bend(kind, low, high);
  const from = into(low);
  const span = into(high) - from || 1;
  return {
    kind,
    low,
    high,
    at: (value) => (Number.isNaN(value) ? NaN : Math.min(1, Math.max(0, (into(value) - from) / span))),
    value: (at) => (at <= 0 ? low : at >= 1 ? high : out(from + at * span)),
  };
}

// At most `count` + 1 round numbers in the range.
export function linearTicks(low: number, high: number, count: number): number[] {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0) || !Number.isFinite(rough)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((unit) => unit * power >= rough) ?? 10);
  const out: number[] = [];
  for (let i = Math.ceil(low / step); i * step <= high && out.length <= count; i++) {
    out.push(Number((i * step).toPrecision(12)));
  }
  return out;
}

export function ticksOf(scale: Scale, count: number): number[] {
  if (scale.low === scale.high) return [scale.low];
  if (scale.kind === "linear") return linearTicks(scale.low, scale.high, count);
  // Places that are even on the scale, at the round number beside them.
  const out = new Set<number>();
  for (let i = 0; i <= count; i++) {
    const exact = scale.value(i / count);
    out.add(i === 0 || i === count || exact === 0 ? exact : Number(exact.toPrecision(1)));
  }
  return [...out];
}

interface Extent {
  readonly low: number;
  readonly high: number;
}

// A range with 0 in its middle, for differences.
export function symmetric(extent: Extent): Extent {
  const high = Math.max(Math.abs(extent.low), Math.abs(extent.high));
  return { low: -high, high };
}
