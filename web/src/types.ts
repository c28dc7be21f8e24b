// The data of docs/design/viewer.md, after checking. Plain read-only objects.

export type Side = "target" | "golden";
export type Level = "pass" | "warning" | "error" | "unmatched" | "none";
export type Overflow = "" | "medium" | "high" | "critical";
export type NodeType = "module" | "api" | "fused" | "group" | "root";
export type Change = "" | "same" | "better" | "worse" | "new";

// Bits of NodeRow.flags.
export const FLAG = {
  first: 1,
  source: 2,
  carrier: 4,
  communicates: 8,
  recomputed: 16,
  repaired: 32,
  merged: 64,
  byHand: 128,
} as const;

export interface NodeRow {
  readonly id: number;
  readonly parent: number;
  readonly partner: number;
  readonly name: string;
  readonly type: NodeType;
  readonly children: number;
  // Nodes of the subtree with the node itself.
  readonly size: number;
  readonly depth: number;
  // Position among the children of its parent; -1: not told.
  readonly index: number;
  readonly order: number;
  readonly level: Level;
  readonly overflow: Overflow;
  readonly worst: Level;
  readonly errors: number;
  readonly warnings: number;
  readonly unmatched: number;
  readonly ms: number;
  readonly error: number | null;
  readonly input_error: number | null;
  readonly flags: number;
  readonly hits: number;
  readonly is_hit: boolean;
  readonly change: Change;
}

export interface FirstRow extends NodeRow {
  readonly kind: "first" | "source" | "carrier" | "mismatch";
  readonly why: string;
}

export type DatasetKind = "graph" | "trend" | "table";

export interface Dataset {
  readonly id: string;
  readonly kind: DatasetKind;
  readonly state: "building" | "ready" | "failed";
  readonly title: string;
  readonly target: string;
  readonly golden: string;
  readonly progress: number;
  readonly error: string;
  readonly etag: string;
}

export interface Datasets {
  readonly datasets: readonly Dataset[];
  readonly read_only: boolean;
  readonly roots: readonly string[];
}

export interface RecordingEntry {
  readonly path: string;
  readonly name: string;
  readonly kind: "recording" | "vis" | "vis.db" | "trend.db" | "table" | "directory";
  readonly size: number;
  readonly ranks: number;
  readonly steps: number;
  readonly task: string;
  readonly level: string;
}

export interface FirstWrong {
  readonly id: number;
  readonly place: number;
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

export interface Counts {
  readonly pass: number;
  readonly warning: number;
  readonly error: number;
  readonly none: number;
  readonly unmatched_target: number;
  readonly unmatched_golden: number;
}

// One rank of one step.
export interface Place {
  readonly step: number;
  readonly rank: number;
  readonly target_root: number;
  readonly golden_root: number;
  readonly nodes: number;
  readonly golden_nodes: number;
  readonly micro_steps: number;
  readonly counts: Counts;
  readonly overflows: { readonly medium: number; readonly high: number; readonly critical: number };
  readonly answer: string;
  readonly first: string;
}

export interface Meta {
  readonly etag: string;
  readonly kind: "build" | "compare";
  readonly mode: "statistics" | "md5" | "tensor" | "structure" | "";
  readonly target: string;
  readonly golden: string;
  readonly answer: readonly string[];
  readonly complete: boolean;
  readonly source: "plumbline" | "msprobe";
  readonly first: FirstWrong | null;
  readonly steps: readonly number[];
  readonly ranks: readonly number[];
  readonly micro_steps: number;
  readonly overflow_check: boolean;
  readonly has_tensors: boolean;
  readonly places: readonly Place[];
  readonly notes: readonly string[];
  readonly facts: Readonly<Record<string, unknown>>;
}

export interface ChildList {
  readonly node: number;
  readonly total: number;
  readonly offset: number;
  readonly rows: readonly NodeRow[];
}

export interface PathAnswer {
  readonly exact: boolean;
  // From the root down.
  readonly rows: readonly NodeRow[];
}

export type Scalar = string | number | boolean;

// One value of a call as one recording holds it. null: not recorded.
export interface ValueSide {
  readonly type: string;
  readonly dtype: string;
  readonly shape: readonly number[] | null;
  readonly max: Scalar | null;
  readonly min: Scalar | null;
  readonly mean: Scalar | null;
  readonly norm: Scalar | null;
  readonly value: unknown;
  readonly md5: string;
  readonly requires_grad: boolean | null;
  readonly data_name: string;
}

export type ValueRole = "input" | "parameter" | "output" | "buffer" | "gradient";

export interface ValuePair {
  readonly name: string;
  readonly role: ValueRole;
  readonly target: ValueSide | null;
  readonly golden: ValueSide | null;
  readonly verdict: string;
  readonly reason: string;
  readonly reason_text: string;
  readonly error: number | null;
  // The part of the error that the inputs account for.
  readonly explained: number | null;
  readonly metrics: Readonly<Record<string, Scalar | null>>;
  readonly notes: readonly string[];
}

export interface NodeDetails {
  readonly row: NodeRow;
  readonly partner_row: NodeRow | null;
  readonly path: readonly string[];
  readonly stack: readonly string[];
  readonly golden_stack: readonly string[];
  readonly pairing: string;
  readonly verdict: string;
  readonly reason: string;
  readonly reason_text: string;
  readonly merge: readonly string[];
  readonly values: readonly ValuePair[];
}

export interface QueryError {
  // Position in the query, from 0.
  readonly at: number;
  readonly message: string;
}

export interface Found {
  readonly total: number;
  readonly rows: readonly NodeRow[];
  // Where the next page begins; empty at the end.
  readonly cursor: string;
  readonly error: QueryError | null;
}

export type FindOrder = "execution" | "name" | "error";

export interface FirstList {
  readonly rows: readonly FirstRow[];
  readonly total: number;
  readonly ordered_by: string;
}

export interface Peer {
  readonly place: number;
  readonly rank: number;
  readonly id: number;
  readonly name: string;
  readonly type: "send" | "receive" | "send_receive";
  readonly level: Level;
  readonly mismatch: string;
}

export interface CallEnd {
  readonly rank: number;
  readonly id: number;
  readonly order: number;
  readonly level: Level;
  readonly mismatch: string;
}

export interface CommunicationCall {
  readonly key: string;
  readonly kind: string;
  readonly ends: readonly CallEnd[];
}

export interface Timeline {
  readonly ranks: readonly number[];
  readonly calls: readonly CommunicationCall[];
  readonly total: number;
}

export interface Suggestion {
  readonly id: number;
  readonly name: string;
  readonly score: number;
  readonly why: string;
}

export interface StructureRow {
  readonly target: NodeRow | null;
  readonly golden: NodeRow | null;
  readonly depth: number;
  readonly suggestion: Suggestion | null;
}

export interface Structure {
  readonly total: number;
  readonly rows: readonly StructureRow[];
}

export interface Series {
  readonly max: readonly (number | null)[];
  readonly min: readonly (number | null)[];
  readonly mean: readonly (number | null)[];
  readonly norm: readonly (number | null)[];
}

export interface OverSteps {
  readonly steps: readonly number[];
  readonly target: Series;
  readonly golden: Series;
  readonly error: readonly (number | null)[];
}

export interface SourceText {
  readonly file: string;
  readonly first: number;
  readonly lines: readonly string[];
}

export interface Baseline {
  readonly better: number;
  readonly worse: number;
  readonly same: number;
  readonly new: number;
  readonly rows: readonly NodeRow[];
}

export interface Matches {
  readonly pairs: readonly (readonly [string, string])[];
  readonly can_undo: boolean;
}

export interface MatchRequest {
  readonly pairs: readonly (readonly [string, string])[];
  readonly place: number;
  readonly with_children: boolean;
}

export interface Mapping {
  readonly yaml: string;
  readonly matched: number;
  readonly unmatched: number;
}

export type ExportFormat = "csv" | "xlsx" | "html" | "vis" | "vis.db";

export interface Job {
  readonly id: string;
  readonly what: string;
  readonly state: "running" | "done" | "failed" | "cancelled";
  readonly progress: number;
  readonly error: string;
  readonly file: string;
}
