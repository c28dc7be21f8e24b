// The types of the data that decoders.ts checks. Plain read-only objects.
import type { Decoded } from "./decode";
import type * as d from "./decoders";

export type Side = Decoded<typeof d.side>;
export type Level = Decoded<typeof d.level>;
export type Overflow = Decoded<typeof d.overflow>;
export type NodeType = Decoded<typeof d.nodeType>;
export type Change = Decoded<typeof d.change>;
export type ValueRole = Decoded<typeof d.role>;
export type Scalar = string | number | boolean;

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

export type NodeRow = Decoded<typeof d.nodeRow>;
export type FirstRow = Decoded<typeof d.firstRow>;
export type Dataset = Decoded<typeof d.dataset>;
export type DatasetKind = Dataset["kind"];
export type Datasets = Decoded<typeof d.datasets>;
export type RecordingEntry = Decoded<typeof d.recordingEntry>;
export type FirstWrong = Decoded<typeof d.firstWrong>;
export type Place = Decoded<typeof d.place>;
export type Counts = Place["counts"];
export type Meta = Decoded<typeof d.meta>;
export type ValueSide = Decoded<typeof d.valueSide>;
export type ValuePair = Decoded<typeof d.valuePair>;
export type NodeDetails = Decoded<typeof d.nodeDetails>;
type Found = Decoded<typeof d.found>;
export type QueryError = NonNullable<Found["error"]>;
export type FindOrder = "execution" | "name" | "error";
export type Peer = Decoded<typeof d.peer>;
export type CommunicationCall = Decoded<typeof d.communicationCall>;
export type CallEnd = CommunicationCall["ends"][number];
export type Structure = Decoded<typeof d.structure>;
export type StructureRow = Structure["rows"][number];
export type Series = Decoded<typeof d.series>;
export type OverSteps = Decoded<typeof d.overSteps>;
export type SourceText = Decoded<typeof d.sourceText>;
export type Baseline = Decoded<typeof d.baseline>;
export type Matches = Decoded<typeof d.matches>;
export type Mapping = Decoded<typeof d.mapping>;
export type Job = Decoded<typeof d.job>;
export type ExportFormat = "csv" | "xlsx" | "html" | "vis" | "vis.db";

export interface MatchRequest {
  readonly pairs: readonly (readonly [string, string])[];
  readonly place: number;
  readonly with_children: boolean;
}
