// Answers about a database of trends: src/view/trends/trend_answers.h of the program.
import { dictionary, flag, integer, list, nullable, number, oneOf, optional, record, text, type Decoded, type Decoder } from "./decode";

// What a series is of.
const target = (value: unknown, at: string) => {
  const [id, name, vppStage, microStep] = Array.isArray(value) ? (value as readonly unknown[]) : [];
  return {
    id: integer(id, `${at}[0]`), name: text(name, `${at}[1]`), vppStage: integer(vppStage, `${at}[2]`), microStep: integer(microStep, `${at}[3]`),
  };
};

export type Target = ReturnType<typeof target>;
export type Label = number | Target;
const label: Decoder<Label> = (value, at) => (typeof value === "number" ? value : target(value, at));

export const trendMeta = record({
  metrics: list(record({ name: text, statistics: list(text) })),
  ranks: list(integer),
  steps: list(integer),
  exact_steps: flag,
  // Empty: the database has no metric.
  metric: (value, at) => nullable(text)(value, at) ?? "",
  // Names by category.
  tags: optional(dictionary(list(text)), {}),
  targets: optional(record({ total: integer, offset: integer, rows: list(target) }), { total: 0, offset: 0, rows: [] }),
});

const axisKind = oneOf("rank", "step", "module");
const axis = record({ kind: axisKind, total: integer, offset: integer, labels: list(label) });
const notes = optional(list(text), []);
export const heat = record({
  x: axis,
  y: axis,
  // By rows of y; null: there is no row, or the statistic was not recorded.
  cells: list(list(nullable(number))),
  min: nullable(number),
  max: nullable(number),
  mean: nullable(number),
  deviation: nullable(number),
  notes,
});

export const trendLines = record({
  x: list(integer),
  series: list(record({ target, rank: nullable(integer), side: oneOf("target", "against"), values: list(nullable(number)) })),
  notes,
});

const trendAlert = record({
  target, rank: integer, step: integer, kind: oneOf("nan", "inf", "z", "ratio"), value: number, z: nullable(number), ratio: nullable(number),
});
export const trendAlerts = record({ rule: text, total: integer, alerts: list(trendAlert) });

export type TrendMeta = Decoded<typeof trendMeta>;
export type AxisKind = Decoded<typeof axisKind>;
export type HeatAxis = Decoded<typeof axis>;
export type Heat = Decoded<typeof heat>;
export type TrendLines = Decoded<typeof trendLines>;
export type TrendAlert = Decoded<typeof trendAlert>;

// The node of a graph that a series is of. The importer takes direction and call out of the name.
export function nodeName({ name, microStep }: Target, metric: string): string {
  const call = name.replace(/\.(input|output|parameters)(\.[^.]*)*$/, "");
  if (metric === "parameters_grad") return `${call.replace(/\.[^.]*$/, "")}.parameters_grad`;
  const direction = metric === "backward" ? "backward" : "forward";
  return /^(Module|Cell)\./.test(call) ? `${call}.${direction}.${microStep}` : `${call}.${microStep}.${direction}`;
}

// The inverse, for a search: metric and the part of a series' name that is the call's.
export function seriesOf(node: string): { readonly metric: string; readonly q: string } {
  const found = /^(.*)\.(forward|backward|parameters_grad)(\.\d+)?$/.exec(node);
  return { metric: found?.[2] ?? "", q: (found?.[1] ?? node).replace(/\.\d+$/, "") };
}

export const targetLabel = ({ name, vppStage, microStep }: Target): string =>
  `${name}${vppStage === 0 ? "" : ` vpp${vppStage}`}${microStep === 0 ? "" : ` #${microStep}`}`;
