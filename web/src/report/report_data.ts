// The data of a page that stands in a file, after checking. src/report/html_report.h has the meaning of
// every member.
import {
  dictionary, flag, integer, list, nullable, number, optional, record, text, unknown, type Decoded, type Decoder,
} from "../decode";

// Columns have one entry per node or call, and are many: they are checked in one go.
const integers: Decoder<Int32Array> = (value, at) =>
  Array.isArray(value) && value.every(Number.isInteger)
    ? Int32Array.from(value as number[])
    : Int32Array.from(list(integer)(value, at));
const numbers: Decoder<Float64Array> = (value, at) => {
  const entries = list(nullable(number))(value, at);
  return Float64Array.from(entries, (entry) => entry ?? NaN);
};

const firstCallFields = {
  name: text,
  what: text,
  item: text,
  cause: text,
  cause_text: text,
  confidence: text,
  stack_line: text,
  stack: list(text),
  module_path: list(text),
};
const firstCall = record(firstCallFields);
const certainty = record({ level: text, text });

const mode: Decoder<"statistics" | "tensor" | "md5"> = (value, at) => {
  const name = text(value, at);
  return name === "tensor" || name === "md5" ? name : "statistics";
};

// The machine form of one comparison, as far as the page shows it.
const header = record({
  mode,
  target: text,
  golden: text,
  first_wrong_call: nullable(firstCall),
  complete: flag,
  certainty: nullable(certainty),
  counts: dictionary(number),
  warnings: list(text),
  as_test: optional(text, ""),
});

// [number of the call, error, explained, verdict]
const growthPoint = (value: unknown, at: string) => {
  const cells = list(nullable(number))(value, at);
  return { call: cells[0] ?? 0, error: cells[1] ?? null, explained: cells[2] ?? 0, verdict: cells[3] ?? 4 };
};

// [index, target, golden]
const elementPair = (value: unknown, at: string) => {
  const cells = list(number)(value, at);
  return { index: cells[0] ?? 0, target: cells[1] ?? NaN, golden: cells[2] ?? NaN };
};

const evidence = record({
  item: text,
  count: number,
  shape: list(number),
  pairs: list(elementPair),
  worst: list(elementPair),
  histogram: record({ low: number, step: number, equal: number, nonfinite: number, total: number, counts: list(number) }),
  profile: list(nullable(number)),
});

export const partData = record({
  label: text,
  step: nullable(integer),
  rank: nullable(integer),
  answer: list(text),
  header,
  next_config: text,
  reasons: dictionary(text),
  foreign: list(integer),
  growth: list(growthPoint),
  evidence: nullable(evidence),
  evidence_left_out: flag,
});

const sideData = record({
  names: list(text),
  types: integers,
  parents: integers,
  orders: integers,
  micro_steps: integers,
  levels: integers,
  partners: integers,
  flags: integers,
  hidden: integers,
  total: integer,
});

export const treeData = record({
  micro_steps: integer,
  counts: record({
    pass: integer, warning: integer, error: integer, none: integer, unmatched_target: integer, unmatched_golden: integer,
  }),
  notes: list(text),
  target: sideData,
  golden: sideData,
});

export const callData = record({
  total: integer,
  numbers: integers,
  target: integers,
  golden: integers,
  verdicts: integers,
  flags: integers,
  rows: integers,
  errors: numbers,
  explained: numbers,
  input_errors: numbers,
  stacks: integers,
  unmatched: list(list(integer)),
  pairings: list(list(integer)),
  frames: list(text),
  foreign: list(integer),
  lists: list(list(integer)),
  texts: list(text),
});

export const rowBlock = record({ rows: list(list(unknown)), texts: list(text) });

// What a part holds, and of how much.
export const endData = record({
  rows: integer,
  row_total: integer,
  calls: integer,
  call_total: integer,
  nodes: integer,
  node_total: integer,
  golden_nodes: integer,
  golden_node_total: integer,
});

const placeFields = { step: nullable(integer), rank: nullable(integer) };

// One rank of one step in the answer over all of them.
const rankLine = record({
  ...placeFields,
  target: nullable(text),
  golden: nullable(text),
  state: text,
  error: nullable(text),
  complete: optional(flag, false),
  wrong_calls: optional(integer, 0),
  counts: nullable(dictionary(number)),
});

const overview = record({
  answer: text,
  target: text,
  golden: text,
  unit: optional(text, "rank"),
  complete: flag,
  certainty: nullable(certainty),
  first_wrong_call: nullable(record({ ...firstCallFields, ...placeFields })),
  origins: list(record(placeFields)),
  ranks: list(rankLine),
  notes: list(text),
});

export const pageHead = record({
  format: text,
  version: integer,
  answer: list(text),
  overview: nullable(overview),
  parts: integer,
});

export type FirstCall = Decoded<typeof firstCall>;
export type Certainty = Decoded<typeof certainty>;
export type Header = Decoded<typeof header>;
export type GrowthPoint = ReturnType<typeof growthPoint>;
export type ElementPair = ReturnType<typeof elementPair>;
export type Evidence = Decoded<typeof evidence>;
export type PartData = Decoded<typeof partData>;
export type SideData = Decoded<typeof sideData>;
export type TreeData = Decoded<typeof treeData>;
export type CallData = Decoded<typeof callData>;
export type RowBlock = Decoded<typeof rowBlock>;
export type EndData = Decoded<typeof endData>;
export type RankLine = Decoded<typeof rankLine>;
export type RankPlace = Pick<RankLine, "step" | "rank">;
export type Overview = Decoded<typeof overview>;
export type PageHead = Decoded<typeof pageHead>;
