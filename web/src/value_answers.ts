// Answers about the elements of a value: src/view/values/value_answers.h of the program, which says
// what they mean.
import {
  flag, integer, list, nullable, number, oneOf, optional, record, scalar, text, type Decoded, type Decoder,
} from "./decode";
import { formatNumber, formatScalar } from "./format";

// Counts above 2^53 travel as texts; as numbers they are exact enough to be drawn.
const count: Decoder<number> = (value, at) =>
  typeof value === "string" && /^\d+$/.test(value) ? Number(value) : number(value, at);

const special = { nan: count, inf: count, minus_inf: count, zero: count, subnormal: count };
const formOf = { dtype: text, shape: list(integer) };
const form = record(formOf);
const distributionOf = { ...special, elements: count, min: number, max: number, mean: number, norm: number, quantiles: list(number) };
const distribution = record(distributionOf);
const bins = record({ edges: list(number), counts: list(count) });
const errors = record({
  nonfinite: count,
  nonfinite_mismatch: count,
  equal: count,
  relative_infinite: count,
  absolute: bins,
  relative: bins,
  ulp: nullable(bins),
  deciles: list(record({ low: number, high: number, count, absolute_mean: number, absolute_max: number, relative_max: number })),
});
const notes = optional(list(text), []);

const sideStats = nullable(record({ ...formOf, ...distributionOf }));
export const valueStats = record({
  target: sideStats, golden: sideStats, difference: nullable(distribution), quantiles_at: list(number), notes,
});

const sideCounts = record({ ...formOf, ...special, counts: list(count) });
export const histogram = record({
  target: nullable(sideCounts), golden: nullable(sideCounts), edges: list(number), errors: nullable(errors), notes,
});

const sides = { target: nullable(form), golden: nullable(form), notes };

const sliceSide = oneOf("target", "golden", "difference");
export const slice = record({
  ...sides,
  axes: list(integer),
  fixed: list(integer),
  // First and one after the last.
  rows: list(integer),
  columns: list(integer),
  width: integer,
  height: integer,
  is_exact: flag,
  pooling: oneOf("none", "mean", "largest"),
  side: sliceSide,
  // By rows.
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
const worstElement = record({
  index: list(integer), target: element, golden: element, difference: nullable(number), relative: nullable(number),
});
export const worstElements = record({ ...sides, worst: list(worstElement) });

const curve = list(nullable(number));
export const profile = record({
  ...sides,
  axis: integer,
  length: integer,
  begins: list(integer),
  elements: list(count),
  // Elements that are in no other number.
  nonfinite: list(count),
  absolute_max: curve,
  target_mean: curve,
  golden_mean: curve,
  target_norm: curve,
  golden_norm: curve,
});

export type Distribution = Decoded<typeof distribution>;
export type Errors = Decoded<typeof errors>;
export type ValueStats = Decoded<typeof valueStats>;
export type SideCounts = Decoded<typeof sideCounts>;
export type Histogram = Decoded<typeof histogram>;
export type SliceSide = Decoded<typeof sliceSide>;
export type Slice = Decoded<typeof slice>;
export type WorstElement = Decoded<typeof worstElement>;
export type Profile = Decoded<typeof profile>;
