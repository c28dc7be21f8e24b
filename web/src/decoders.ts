// A decoder for every type of types.ts.
import {
  dictionary, flag, integer, list, nullable, number, oneOf, optional, record, scalar, table,
  tableRow, text, unknown, type Decoder,
} from "./decode";
import type * as t from "./types";

const level = oneOf<t.Level>("pass", "warning", "error", "unmatched", "none");

const nodeFields = {
  id: integer,
  parent: integer,
  partner: integer,
  name: text,
  type: oneOf<t.NodeType>("module", "api", "fused", "group", "root"),
  children: integer,
  size: integer,
  depth: integer,
  index: optional(integer, -1),
  order: integer,
  level,
  overflow: oneOf<t.Overflow>("", "medium", "high", "critical"),
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
  change: optional(oneOf<t.Change>("", "same", "better", "worse", "new"), ""),
};

export const nodeRow = record<t.NodeRow>(nodeFields);
export const nodeRows = table(nodeRow);

const firstRow = record<t.FirstRow>({
  ...nodeFields,
  kind: oneOf<t.FirstRow["kind"]>("first", "source", "carrier", "mismatch"),
  why: text,
});

export const dataset = record<t.Dataset>({
  id: text,
  kind: oneOf<t.DatasetKind>("graph", "trend", "table"),
  state: oneOf<t.Dataset["state"]>("building", "ready", "failed"),
  title: text,
  target: text,
  golden: text,
  progress: number,
  error: text,
  etag: text,
});

export const datasets = record<t.Datasets>({
  datasets: list(dataset),
  read_only: flag,
  roots: list(text),
});

export const recordings = record<{ readonly entries: readonly t.RecordingEntry[] }>({
  entries: list(
    record<t.RecordingEntry>({
      path: text,
      name: text,
      kind: oneOf<t.RecordingEntry["kind"]>(
        "recording", "vis", "vis.db", "trend.db", "table", "directory"),
      size: number,
      ranks: integer,
      steps: integer,
      task: text,
      level: text,
    }),
  ),
});

export const opened = record<{ readonly id: string }>({ id: text });

const firstWrong = record<t.FirstWrong>({
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

const place = record<t.Place>({
  step: integer,
  rank: integer,
  target_root: integer,
  golden_root: integer,
  nodes: integer,
  golden_nodes: integer,
  micro_steps: integer,
  counts: record<t.Counts>({
    pass: integer,
    warning: integer,
    error: integer,
    none: integer,
    unmatched_target: integer,
    unmatched_golden: integer,
  }),
  overflows: record<t.Place["overflows"]>({ medium: integer, high: integer, critical: integer }),
  answer: text,
  first: text,
});

export const meta = record<t.Meta>({
  etag: text,
  kind: oneOf<t.Meta["kind"]>("build", "compare"),
  mode: oneOf<t.Meta["mode"]>("statistics", "md5", "tensor", "structure", ""),
  target: text,
  golden: text,
  answer: list(text),
  complete: flag,
  source: oneOf<t.Meta["source"]>("plumbline", "msprobe"),
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

export const childLists = record<{ readonly lists: readonly t.ChildList[] }>({
  lists: list(
    record<t.ChildList>({ node: integer, total: integer, offset: integer, rows: nodeRows }),
  ),
});

export const pathAnswer = record<t.PathAnswer>({ exact: flag, rows: nodeRows });

const valueSide = record<t.ValueSide>({
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

const valuePair = record<t.ValuePair>({
  name: text,
  role: oneOf<t.ValueRole>("input", "parameter", "output", "buffer", "gradient"),
  target: nullable(valueSide),
  golden: nullable(valueSide),
  verdict: text,
  reason: text,
  reason_text: text,
  error: nullable(number),
  explained: nullable(number),
  metrics: dictionary(nullable(scalar)),
  notes: list(text),
});

export const nodeDetails: Decoder<t.NodeDetails> = (value, at) => {
  // A row stands for itself here, with the same field names as in a table.
  const one: Decoder<t.NodeRow> = (row, where) => {
    const rows = typeof row === "object" && row !== null && "fields" in row ? nodeRows(row, where) : [];
    return rows[0] ?? nodeRow(row, where);
  };
  return record<t.NodeDetails>({
    row: one,
    partner_row: nullable(one),
    path: list(text),
    stack: list(text),
    golden_stack: list(text),
    pairing: text,
    verdict: text,
    reason: text,
    reason_text: text,
    merge: list(text),
    values: list(valuePair),
  })(value, at);
};

export const found = record<t.Found>({
  total: integer,
  rows: nodeRows,
  cursor: text,
  error: nullable(record<t.QueryError>({ at: integer, message: text })),
});

export const firstList = record<t.FirstList>({
  rows: table(firstRow),
  total: integer,
  ordered_by: text,
});

export const flow = record<{ readonly rows: readonly t.NodeRow[] }>({ rows: nodeRows });

export const peers = record<{ readonly peers: readonly t.Peer[] }>({
  peers: list(
    record<t.Peer>({
      place: integer,
      rank: integer,
      id: integer,
      name: text,
      type: oneOf<t.Peer["type"]>("send", "receive", "send_receive"),
      level,
      mismatch: text,
    }),
  ),
});

export const timeline = record<t.Timeline>({
  ranks: list(integer),
  calls: list(
    record<t.CommunicationCall>({
      key: text,
      kind: text,
      ends: list(
        record<t.CallEnd>({ rank: integer, id: integer, order: integer, level, mismatch: text }),
      ),
    }),
  ),
  total: integer,
});

export const structure: Decoder<t.Structure> = (value, at) => {
  const fields = record<{ readonly fields: readonly string[] }>({ fields: list(text) })(value, at);
  const node: Decoder<t.NodeRow> = (row, where) => tableRow(fields.fields, nodeRow, row, where);
  return record<t.Structure>({
    total: integer,
    rows: list(
      record<t.StructureRow>({
        target: nullable(node),
        golden: nullable(node),
        depth: integer,
        suggestion: nullable(
          record<t.Suggestion>({ id: integer, name: text, score: number, why: text }),
        ),
      }),
    ),
  })(value, at);
};

const numbers = list(nullable(number));
const series = record<t.Series>({ max: numbers, min: numbers, mean: numbers, norm: numbers });

export const overSteps = record<t.OverSteps>({
  steps: list(integer),
  target: series,
  golden: series,
  error: numbers,
});

export const sourceText = record<t.SourceText>({ file: text, first: integer, lines: list(text) });

export const baseline = record<t.Baseline>({
  better: integer,
  worse: integer,
  same: integer,
  new: integer,
  rows: nodeRows,
});

const namePair: Decoder<readonly [string, string]> = (value, at) => {
  const [target, golden] = list(text)(value, at);
  return [text(target, `${at}[0]`), text(golden, `${at}[1]`)];
};

export const matches = record<t.Matches>({ pairs: list(namePair), can_undo: flag });

export const mapping = record<t.Mapping>({ yaml: text, matched: integer, unmatched: integer });

export const startedJob = record<{ readonly job: string }>({ job: text });

export const jobs = record<{ readonly jobs: readonly t.Job[] }>({
  jobs: list(
    record<t.Job>({
      id: text,
      what: text,
      state: oneOf<t.Job["state"]>("running", "done", "failed", "cancelled"),
      progress: number,
      error: text,
      file: text,
    }),
  ),
});

export const failureBody = record<{ readonly error: { readonly code: string; readonly message: string } }>({
  error: record<{ readonly code: string; readonly message: string }>({ code: text, message: text }),
});
