// Answers about a database of trends: src/view/trends/trend_answers.h of the program.
import { dictionary, flag, integer, list, nullable, number, oneOf, optional, record, text, type Decoder } from "./decode";
import type { Dataset, Meta } from "./types";

// What a series is of.
export interface Target {
  readonly id: number;
  readonly name: string;
  readonly vppStage: number;
  readonly microStep: number;
}

export const target: Decoder<Target> = (value, at) => {
  const [id, name, vppStage, microStep] = Array.isArray(value) ? (value as readonly unknown[]) : [];
  return {
    id: integer(id, `${at}[0]`), name: text(name, `${at}[1]`), vppStage: integer(vppStage, `${at}[2]`), microStep: integer(microStep, `${at}[3]`),
  };
};

export type Label = number | Target;
const label: Decoder<Label> = (value, at) => (typeof value === "number" ? value : target(value, at));

export interface TrendMeta {
  readonly metrics: readonly { readonly name: string; readonly statistics: readonly string[] }[];
  readonly ranks: readonly number[];
  readonly steps: readonly number[];
  readonly exact_steps: boolean;
  // Empty: the database has no metric.
  readonly metric: string;
  // Names by category.
  readonly tags: Readonly<Record<string, readonly string[]>>;
  readonly targets: { readonly total: number; readonly offset: number; readonly rows: readonly Target[] };
}
export const trendMeta = record<TrendMeta>({
  metrics: list(record<TrendMeta["metrics"][number]>({ name: text, statistics: list(text) })),
  ranks: list(integer),
  steps: list(integer),
  exact_steps: flag,
  metric: (value, at) => nullable(text)(value, at) ?? "",
  tags: optional(dictionary(list(text)), {}),
  targets: optional(record<TrendMeta["targets"]>({ total: integer, offset: integer, rows: list(target) }), { total: 0, offset: 0, rows: [] }),
});

export type AxisKind = "rank" | "step" | "module";
export interface HeatAxis {
  readonly kind: AxisKind;
  readonly total: number;
  readonly offset: number;
  readonly labels: readonly Label[];
}
export interface Heat {
  readonly x: HeatAxis;
  readonly y: HeatAxis;
  // By rows of y; null: there is no row, or the statistic was not recorded.
  readonly cells: readonly (readonly (number | null)[])[];
  readonly min: number | null;
  readonly max: number | null;
  readonly mean: number | null;
  readonly deviation: number | null;
  readonly notes: readonly string[];
}
const axis = record<HeatAxis>({ kind: oneOf<AxisKind>("rank", "step", "module"), total: integer, offset: integer, labels: list(label) });
const notes = optional(list(text), []);
export const heat = record<Heat>({
  x: axis,
  y: axis,
  cells: list(list(nullable(number))),
  min: nullable(number),
  max: nullable(number),
  mean: nullable(number),
  deviation: nullable(number),
  notes,
});

export interface TrendSeries {
  readonly target: Target;
  readonly rank: number | null;
  readonly step: number | null;
  readonly side: "target" | "against";
  readonly values: readonly (number | null)[];
}
export interface TrendLines {
  readonly x: readonly number[];
  readonly total: number;
  readonly series: readonly TrendSeries[];
  readonly series_total: number;
  readonly notes: readonly string[];
}
export const trendLines = record<TrendLines>({
  x: list(integer),
  total: integer,
  series: list(record<TrendSeries>({
    target, rank: nullable(integer), step: nullable(integer), side: oneOf<TrendSeries["side"]>("target", "against"), values: list(nullable(number)),
  })),
  series_total: integer,
  notes,
});

export interface TrendAlert {
  readonly target: Target;
  readonly rank: number;
  readonly step: number;
  readonly kind: "nan" | "inf" | "z" | "ratio";
  readonly value: number;
  readonly z: number | null;
  readonly ratio: number | null;
}
export interface TrendAlerts {
  readonly rule: string;
  readonly total: number;
  readonly alerts: readonly TrendAlert[];
}
export const trendAlerts = record<TrendAlerts>({
  rule: text,
  total: integer,
  alerts: list(record<TrendAlert>({
    target, rank: integer, step: integer, kind: oneOf<TrendAlert["kind"]>("nan", "inf", "z", "ratio"), value: number, z: nullable(number), ratio: nullable(number),
  })),
});

// A dataset of trends in the place of a graph: it has no calls.
const TREND_FACT = "trend database";
export function metaOfTrend(dataset: Dataset): Meta {
  return {
    etag: dataset.etag, kind: "build", mode: "", target: dataset.target, golden: dataset.golden, answer: [], complete: true, source: "plumbline",
    first: null, steps: [], ranks: [], micro_steps: 0, overflow_check: false, has_tensors: false, places: [], notes: [], facts: { [TREND_FACT]: true },
  };
}
export const isTrend = (meta: Meta): boolean => meta.facts[TREND_FACT] === true;

// The node of a graph that a series is of. The importer takes direction and call out of the name.
export function nodeName({ name, microStep }: Target, metric: string): string {
  const call = name.replace(/\.(input|output|parameters)(\.[^.]*)*$/, "");
  return metric === "parameters_grad" ? `${call.replace(/\.[^.]*$/, "")}.parameters_grad` : `${call}.${metric === "backward" ? "backward" : "forward"}.${microStep}`;
}

export const targetLabel = ({ name, vppStage, microStep }: Target): string =>
  `${name}${vppStage === 0 ? "" : ` vpp${vppStage}`}${microStep === 0 ? "" : ` #${microStep}`}`;
