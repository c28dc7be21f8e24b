// The data of docs/design/viewer.md, field by field; types.ts has their types.
import {
  dictionary, flag, integer, list, nullable, number, oneOf, optional, record, scalar, table,
  tableRow, text, unknown, type Decoded, type Decoder,
} from "./decode";

export const side = oneOf("target", "golden");
export const level = oneOf("pass", "warning", "error", "unmatched", "none");
export const overflow = oneOf("", "medium", "high", "critical");
export const nodeType = oneOf("module", "api", "fused", "group", "root");
export const change = oneOf("", "same", "better", "worse", "new");
export const role = oneOf("input", "parameter", "output", "buffer", "gradient");

const nodeFields = {
  id: integer,
  parent: integer,
  partner: integer,
  name: text,
  type: nodeType,
  children: integer,
  // Nodes of the subtree with the node itself.
  size: integer,
  depth: integer,
  // Position among the children of its parent; -1: not told.
  index: optional(integer, -1),
  order: integer,
  level,
  overflow,
  worst: level,
  errors: integer,
  warnings: integer,
  unmatched: integer,
  ms: integer,
  error: nullable(number),
  input_error: nullable(number),
  flags: integer,
  hits: optional(integer, -1),
  is_hit: optional(flag, false),
  change: optional<Decoded<typeof change>>(change, ""),
};

export const nodeRow = record(nodeFields);
const nodeRows = table(nodeRow);

export const firstRow = record({
  ...nodeFields,
  kind: oneOf("first", "source", "carrier", "mismatch"),
  why: text,
});

export const dataset = record({
  id: text,
  kind: oneOf("graph", "trend", "table"),
  state: oneOf("building", "ready", "failed"),
  title: text,
  target: text,
  golden: text,
  progress: number,
  error: text,
  etag: text,
});

export const datasets = record({
  datasets: list(dataset),
  read_only: flag,
  roots: list(text),
});

export const recordingEntry = record({
  path: text,
  name: text,
  kind: oneOf(
    "recording", "vis", "vis.db", "trend.db", "table", "directory"),
  size: number,
  ranks: integer,
  steps: integer,
  task: text,
  level: text,
});

export const recordings = record({
  entries: list(recordingEntry),
});

export const opened = record({ id: text });

export const firstWrong = record({
  id: integer,
  place: integer,
  name: text,
  what: text,
  item: text,
  cause: text,
  cause_text: text,
  confidence: text,
  stack_line: text,
  stack: list(text),
  module_path: list(text),
});

const placeCounts = record({
  pass: integer,
  warning: integer,
  error: integer,
  none: integer,
  unmatched_target: integer,
  unmatched_golden: integer,
});

// One rank of one step.
export const place = record({
  step: integer,
  rank: integer,
  target_root: integer,
  golden_root: integer,
  nodes: integer,
  golden_nodes: integer,
  micro_steps: integer,
  counts: placeCounts,
  overflows: record({ medium: integer, high: integer, critical: integer }),
  answer: text,
  first: text,
});

export const meta = record({
  etag: text,
  kind: oneOf("build", "compare"),
  mode: oneOf("statistics", "md5", "tensor", "structure", ""),
  target: text,
  golden: text,
  answer: list(text),
  complete: flag,
  source: oneOf("plumbline", "msprobe"),
  first: nullable(firstWrong),
  steps: list(integer),
  ranks: list(integer),
  micro_steps: integer,
  overflow_check: flag,
  has_tensors: flag,
  places: list(place),
  notes: list(text),
  facts: dictionary(unknown),
});

const childList = record({ node: integer, total: integer, offset: integer, rows: nodeRows });
export const childLists = record({ lists: list(childList) });

export const pathAnswer = record({ exact: flag, rows: nodeRows });

// One value of a call as one recording holds it. null: not recorded.
export const valueSide = record({
  type: text,
  dtype: text,
  shape: nullable(list(integer)),
  max: nullable(scalar),
  min: nullable(scalar),
  mean: nullable(scalar),
  norm: nullable(scalar),
  value: unknown,
  md5: text,
  requires_grad: nullable(flag),
  data_name: text,
});

export const valuePair = record({
  name: text,
  role,
  target: nullable(valueSide),
  golden: nullable(valueSide),
  verdict: text,
  reason: text,
  reason_text: text,
  error: nullable(number),
  // The part of the error that the inputs account for.
  explained: nullable(number),
  metrics: dictionary(nullable(scalar)),
  notes: list(text),
});

// A table of one row.
const oneRow: Decoder<Decoded<typeof nodeRow>> = (value, at) => nodeRows(value, at)[0] ?? nodeRow(null, at);

export const nodeDetails = record({
  row: oneRow,
  partner_row: nullable(oneRow),
  path: list(text),
  stack: list(text),
  golden_stack: list(text),
  pairing: text,
  verdict: text,
  reason: text,
  reason_text: text,
  merge: list(text),
  values: list(valuePair),
});

export const found = record({
  total: integer,
  rows: nodeRows,
  cursor: text,
  error: nullable(record({ at: integer, message: text })),
});

export const firstList = record({
  rows: table(firstRow),
  total: integer,
  ordered_by: text,
});

export const flow = record({ total: integer, rows: nodeRows });

export const peer = record({
  place: integer,
  rank: integer,
  id: integer,
  name: text,
  type: oneOf("send", "receive", "send_receive"),
  level,
  mismatch: text,
});

export const peers = record({
  peers: list(peer),
});

export const communicationCall = record({
  key: text,
  kind: text,
  ends: list(record({ rank: integer, id: integer, order: integer, level, mismatch: text })),
});

export const timeline = record({ ranks: list(integer), calls: list(communicationCall), total: integer });

const suggestion = record({ id: integer, name: text, score: number, why: text });

// The rows of nodes are lists here; `fields` of the whole answer names their entries.
const structureWith = (fields: readonly string[]) => {
  const node: Decoder<Decoded<typeof nodeRow>> = (row, where) => tableRow(fields, nodeRow, row, where);
  return record({
    total: integer,
    rows: list(record({ target: nullable(node), golden: nullable(node), depth: integer, suggestion: nullable(suggestion) })),
  });
};

export const structure: Decoder<Decoded<ReturnType<typeof structureWith>>> = (value, at) =>
  structureWith(record({ fields: list(text) })(value, at).fields)(value, at);

const numbers = list(nullable(number));
export const series = record({ max: numbers, min: numbers, mean: numbers, norm: numbers });

export const overSteps = record({
  steps: list(integer),
  target: series,
  golden: series,
  error: numbers,
});

export const sourceText = record({ file: text, first: integer, lines: list(text) });

export const baseline = record({
  better: integer,
  worse: integer,
  same: integer,
  new: integer,
  total: integer,
  rows: nodeRows,
});

const namePair: Decoder<readonly [string, string]> = (value, at) => {
  const [target, golden] = list(text)(value, at);
  return [text(target, `${at}[0]`), text(golden, `${at}[1]`)];
};

export const matches = record({ pairs: list(namePair), can_undo: flag });

export const mapping = record({ yaml: text, matched: integer, unmatched: integer });

export const startedJob = record({ job: text });

export const job = record({
  id: text,
  what: text,
  state: oneOf("running", "done", "failed", "cancelled"),
  progress: number,
  error: text,
  file: text,
});

export const jobs = record({
  jobs: list(job),
});

export const failureBody = record({
  error: record({ code: text, message: text }),
});
