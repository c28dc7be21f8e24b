// The data of a page that stands in a file, after checking. src/report/html_report.h has the meaning of
// every member.
import {
  dictionary, flag, integer, list, nullable, number, optional, record, text, unknown, type Decoder,
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

export interface FirstCall {
  readonly name: string;
  readonly what: string;
  readonly item: string;
  readonly cause: string;
  readonly cause_text: string;
  readonly confidence: string;
  readonly stack_line: string;
  readonly stack: readonly string[];
  readonly module_path: readonly string[];
}

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
const firstCall = record<FirstCall>(firstCallFields);

export interface Certainty {
  readonly level: string;
  readonly text: string;
}
const certainty = record<Certainty>({ level: text, text });

// The machine form of one comparison, as far as the page shows it.
export interface Header {
  readonly mode: "statistics" | "tensor" | "md5";
  readonly target: string;
  readonly golden: string;
  readonly first_wrong_call: FirstCall | null;
  readonly complete: boolean;
  readonly certainty: Certainty | null;
  readonly counts: Readonly<Record<string, number>>;
  readonly warnings: readonly string[];
  readonly as_test: string;
}

const mode: Decoder<Header["mode"]> = (value, at) => {
  const name = text(value, at);
  return name === "tensor" || name === "md5" ? name : "statistics";
};

const header = record<Header>({
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
export interface GrowthPoint {
  readonly call: number;
  readonly error: number | null;
  readonly explained: number;
  readonly verdict: number;
}
const growthPoint: Decoder<GrowthPoint> = (value, at) => {
  const cells = list(nullable(number))(value, at);
  return { call: cells[0] ?? 0, error: cells[1] ?? null, explained: cells[2] ?? 0, verdict: cells[3] ?? 4 };
};

// [index, target, golden]
export interface ElementPair {
  readonly index: number;
  readonly target: number;
  readonly golden: number;
}
const elementPair: Decoder<ElementPair> = (value, at) => {
  const cells = list(number)(value, at);
  return { index: cells[0] ?? 0, target: cells[1] ?? NaN, golden: cells[2] ?? NaN };
};

export interface Evidence {
  readonly item: string;
  readonly count: number;
  readonly shape: readonly number[];
  readonly pairs: readonly ElementPair[];
  readonly worst: readonly ElementPair[];
  readonly histogram: {
    readonly low: number; readonly step: number; readonly equal: number; readonly nonfinite: number;
    readonly total: number; readonly counts: readonly number[];
  };
  readonly profile: readonly (number | null)[];
}
const evidence = record<Evidence>({
  item: text,
  count: number,
  shape: list(number),
  pairs: list(elementPair),
  worst: list(elementPair),
  histogram: record<Evidence["histogram"]>({
    low: number, step: number, equal: number, nonfinite: number, total: number, counts: list(number),
  }),
  profile: list(nullable(number)),
});

export interface PartData {
  readonly label: string;
  readonly step: number | null;
  readonly rank: number | null;
  readonly answer: readonly string[];
  readonly header: Header;
  readonly next_config: string;
  readonly reasons: Readonly<Record<string, string>>;
  readonly foreign: readonly number[];
  readonly growth: readonly GrowthPoint[];
  readonly evidence: Evidence | null;
  readonly evidence_left_out: boolean;
}
export const partData = record<PartData>({
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

export interface SideData {
  readonly names: readonly string[];
  readonly types: Int32Array;
  readonly parents: Int32Array;
  readonly orders: Int32Array;
  readonly micro_steps: Int32Array;
  readonly levels: Int32Array;
  readonly partners: Int32Array;
  readonly flags: Int32Array;
  readonly hidden: Int32Array;
  readonly total: number;
}
const sideData = record<SideData>({
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

export interface TreeData {
  readonly micro_steps: number;
  readonly counts: {
    readonly pass: number; readonly warning: number; readonly error: number; readonly none: number;
    readonly unmatched_target: number; readonly unmatched_golden: number;
  };
  readonly notes: readonly string[];
  readonly target: SideData;
  readonly golden: SideData;
}
export const treeData = record<TreeData>({
  micro_steps: integer,
  counts: record<TreeData["counts"]>({
    pass: integer, warning: integer, error: integer, none: integer, unmatched_target: integer,
    unmatched_golden: integer,
  }),
  notes: list(text),
  target: sideData,
  golden: sideData,
});

export interface CallData {
  readonly total: number;
  readonly numbers: Int32Array;
  readonly target: Int32Array;
  readonly golden: Int32Array;
  readonly verdicts: Int32Array;
  readonly flags: Int32Array;
  readonly rows: Int32Array;
  readonly errors: Float64Array;
  readonly explained: Float64Array;
  readonly input_errors: Float64Array;
  readonly stacks: Int32Array;
  readonly unmatched: readonly (readonly number[])[];
  readonly pairings: readonly (readonly number[])[];
  readonly frames: readonly string[];
  readonly foreign: readonly number[];
  readonly lists: readonly (readonly number[])[];
  readonly texts: readonly string[];
}
export const callData = record<CallData>({
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

export interface RowBlock {
  readonly rows: readonly (readonly unknown[])[];
  readonly texts: readonly string[];
}
export const rowBlock = record<RowBlock>({ rows: list(list(unknown)), texts: list(text) });

// What a part holds, and of how much.
export interface EndData {
  readonly rows: number;
  readonly row_total: number;
  readonly calls: number;
  readonly call_total: number;
  readonly nodes: number;
  readonly node_total: number;
  readonly golden_nodes: number;
  readonly golden_node_total: number;
}
export const endData = record<EndData>({
  rows: integer,
  row_total: integer,
  calls: integer,
  call_total: integer,
  nodes: integer,
  node_total: integer,
  golden_nodes: integer,
  golden_node_total: integer,
});

// One rank of one step in the answer over all of them.
export interface RankLine {
  readonly step: number | null;
  readonly rank: number | null;
  readonly target: string | null;
  readonly golden: string | null;
  readonly state: string;
  readonly error: string | null;
  readonly complete: boolean;
  readonly wrong_calls: number;
  readonly counts: Readonly<Record<string, number>> | null;
}
const rankLine = record<RankLine>({
  step: nullable(integer),
  rank: nullable(integer),
  target: nullable(text),
  golden: nullable(text),
  state: text,
  error: nullable(text),
  complete: optional(flag, false),
  wrong_calls: optional(integer, 0),
  counts: nullable(dictionary(number)),
});

export interface RankPlace {
  readonly step: number | null;
  readonly rank: number | null;
}
const rankPlace = record<RankPlace>({ step: nullable(integer), rank: nullable(integer) });

export interface Overview {
  readonly answer: string;
  readonly target: string;
  readonly golden: string;
  readonly unit: string;
  readonly complete: boolean;
  readonly certainty: Certainty | null;
  readonly first_wrong_call: (FirstCall & RankPlace) | null;
  readonly origins: readonly RankPlace[];
  readonly ranks: readonly RankLine[];
  readonly notes: readonly string[];
}
const overview = record<Overview>({
  answer: text,
  target: text,
  golden: text,
  unit: optional(text, "rank"),
  complete: flag,
  certainty: nullable(certainty),
  first_wrong_call: nullable(record<FirstCall & RankPlace>({ ...firstCallFields, step: nullable(integer), rank: nullable(integer) })),
  origins: list(rankPlace),
  ranks: list(rankLine),
  notes: list(text),
});

export interface PageHead {
  readonly format: string;
  readonly version: number;
  readonly answer: readonly string[];
  readonly overview: Overview | null;
  readonly parts: number;
}
export const pageHead = record<PageHead>({
  format: text,
  version: integer,
  answer: list(text),
  overview: nullable(overview),
  parts: integer,
});
