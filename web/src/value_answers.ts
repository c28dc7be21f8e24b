// Answers about the elements of a value: src/view/values/value_answers.h of the program.
import { flag, integer, list, nullable, number, oneOf, optional, record, scalar, text, type Decoder } from "./decode";
import { formatNumber, formatScalar } from "./format";
import type { Side } from "./types";

// Counts above 2^53 travel as texts; as numbers they are exact enough to be drawn.
const count: Decoder<number> = (value, at) =>
  typeof value === "string" && /^\d+$/.test(value) ? Number(value) : number(value, at);

export interface SpecialCounts {
  readonly nan: number;
  readonly inf: number;
  readonly minus_inf: number;
  readonly zero: number;
  readonly subnormal: number;
}

export interface ValueForm {
  readonly dtype: string;
  readonly shape: readonly number[];
}

export interface Distribution extends SpecialCounts {
  readonly elements: number;
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  readonly norm: number;
  readonly quantiles: readonly number[];
}

export interface Bins {
  readonly edges: readonly number[];
  readonly counts: readonly number[];
}

export interface DecileErrors {
  readonly low: number;
  readonly high: number;
  readonly count: number;
  readonly absolute_mean: number;
  readonly absolute_max: number;
  readonly relative_max: number;
}

export interface Errors {
  readonly nonfinite: number;
  readonly nonfinite_mismatch: number;
  readonly equal: number;
  readonly relative_infinite: number;
  readonly absolute: Bins;
  readonly relative: Bins;
  readonly ulp: Bins | null;
  readonly deciles: readonly DecileErrors[];
}

const special = { nan: count, inf: count, minus_inf: count, zero: count, subnormal: count };
const form = { dtype: text, shape: list(integer) };
const distribution = {
  ...special, elements: count, min: number, max: number, mean: number, norm: number, quantiles: list(number),
};
const bins = record<Bins>({ edges: list(number), counts: list(count) });
const errors = record<Errors>({
  nonfinite: count,
  nonfinite_mismatch: count,
  equal: count,
  relative_infinite: count,
  absolute: bins,
  relative: bins,
  ulp: nullable(bins),
  deciles: list(record<DecileErrors>({
    low: number, high: number, count, absolute_mean: number, absolute_max: number, relative_max: number,
  })),
});
const notes = optional(list(text), []);

export type SideStats = ValueForm & Distribution;
const sideStats = record<SideStats>({ ...form, ...distribution });
export interface ValueStats {
  readonly target: SideStats | null;
  readonly golden: SideStats | null;
  readonly difference: Distribution | null;
  readonly quantiles_at: readonly number[];
  readonly notes: readonly string[];
}
export const valueStats = record<ValueStats>({
  target: nullable(sideStats),
  golden: nullable(sideStats),
  difference: nullable(record<Distribution>(distribution)),
  quantiles_at: list(number),
  notes,
});

export type SideCounts = ValueForm & SpecialCounts & { readonly counts: readonly number[] };
const sideCounts = record<SideCounts>({ ...form, ...special, counts: list(count) });
export interface Histogram {
  readonly target: SideCounts | null;
  readonly golden: SideCounts | null;
  readonly edges: readonly number[];
  readonly errors: Errors | null;
  readonly notes: readonly string[];
}
export const histogram = record<Histogram>({
  target: nullable(sideCounts), golden: nullable(sideCounts), edges: list(number), errors: nullable(errors), notes,
});

interface Sides {
  readonly target: ValueForm | null;
  readonly golden: ValueForm | null;
  readonly notes: readonly string[];
}
const sides = { target: nullable(record<ValueForm>(form)), golden: nullable(record<ValueForm>(form)), notes };

export type SliceSide = Side | "difference";
export interface Slice extends Sides {
  readonly axes: readonly number[];
  readonly fixed: readonly number[];
  // First and one after the last.
  readonly rows: readonly number[];
  readonly columns: readonly number[];
  readonly width: number;
  readonly height: number;
  readonly is_exact: boolean;
  readonly pooling: "none" | "mean" | "largest";
  readonly side: SliceSide;
  // By rows.
  readonly cells: readonly (readonly number[])[];
  readonly min: number | null;
  readonly max: number | null;
}
export const slice = record<Slice>({
  ...sides,
  axes: list(integer),
  fixed: list(integer),
  rows: list(integer),
  columns: list(integer),
  width: integer,
  height: integer,
  is_exact: flag,
  pooling: oneOf<Slice["pooling"]>("none", "mean", "largest"),
  side: oneOf<SliceSide>("target", "golden", "difference"),
  cells: list(list(number)),
  min: nullable(number),
  max: nullable(number),
});

// An element as it is: an integer with all its digits, a complex number with both parts.
const element: Decoder<string> = (value, at) => {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return list(number)(value, at).map(formatNumber).join(" + ") + "i";
  return formatScalar(scalar(value, at));
};

export interface WorstElement {
  readonly index: readonly number[];
  readonly target: string;
  readonly golden: string;
  readonly difference: number | null;
  readonly relative: number | null;
}
export interface WorstElements extends Sides {
  readonly worst: readonly WorstElement[];
}
export const worstElements = record<WorstElements>({
  ...sides,
  worst: list(record<WorstElement>({
    index: list(integer),
    target: element,
    golden: element,
    difference: nullable(number),
    relative: nullable(number),
  })),
});

export interface Profile extends Sides {
  readonly axis: number;
  readonly length: number;
  readonly begins: readonly number[];
  readonly elements: readonly number[];
  // Elements that are in no other number.
  readonly nonfinite: readonly number[];
  readonly absolute_max: readonly (number | null)[];
  readonly relative_max: readonly (number | null)[];
  readonly target_mean: readonly (number | null)[];
  readonly golden_mean: readonly (number | null)[];
  readonly target_norm: readonly (number | null)[];
  readonly golden_norm: readonly (number | null)[];
}
const curve = optional(nullable(list(nullable(number))), []);
const line: Decoder<readonly (number | null)[]> = (value, at) => curve(value, at) ?? [];
export const profile = record<Profile>({
  ...sides,
  axis: integer,
  length: integer,
  begins: list(integer),
  elements: list(count),
  nonfinite: list(count),
  absolute_max: line,
  relative_max: line,
  target_mean: line,
  golden_mean: line,
  target_norm: line,
  golden_norm: line,
});
