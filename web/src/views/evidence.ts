// What a comparison says of one place beside its nodes: the error along the calls, the elements of the
// first wrong call's tensors, what it was certain of. A page in a file has it for each place.
import { decode, dictionary, integer, list, nullable, number, optional, record, text, unknown, type Decoder } from "../decode";
import type { Meta } from "../types";

export interface ElementPair {
  readonly index: number;
  readonly target: number;
  readonly golden: number;
}

export interface GrowthPoint {
  readonly call: number;
  readonly error: number | null;
  readonly explained: number | null;
  readonly verdict: number;
}

export interface Evidence {
  readonly item: string;
  readonly count: number;
  readonly shape: readonly number[];
  readonly pairs: readonly ElementPair[];
  readonly worst: readonly ElementPair[];
  readonly histogram: {
    readonly low: number; readonly step: number; readonly equal: number; readonly nonfinite: number; readonly total: number;
    readonly counts: readonly number[];
  };
  readonly profile: readonly (number | null)[];
}

export interface PlaceFacts {
  readonly growth: readonly GrowthPoint[];
  readonly evidence: Evidence | null;
  readonly next_config: string;
  readonly header: {
    readonly warnings: readonly string[];
    readonly certainty: Readonly<Record<string, unknown>>;
    readonly counts: Readonly<Record<string, number>>;
    readonly other_way: string;
    readonly narrowed: string;
    readonly as_test: string;
  };
}



const pair: Decoder<ElementPair> = (value, at) => {
  const [index, target, golden] = list(number)(value, at);
  return { index: integer(index, at), target: number(target, at), golden: number(golden, at) };
};

const point: Decoder<GrowthPoint> = (value, at) => {
  const [call, error, explained, verdict] = list(nullable(number))(value, at);
  return { call: integer(call, at), error: error ?? null, explained: explained ?? null, verdict: integer(verdict, at) };
};

const evidence = record<Evidence>({
  item: text, count: integer, shape: list(integer), pairs: list(pair), worst: list(pair),
  histogram: record<Evidence["histogram"]>({
    low: number, step: number, equal: integer, nonfinite: integer, total: integer, counts: list(integer),
  }),
  profile: list(nullable(number)),
});

const placeFacts = record<PlaceFacts>({
  growth: optional(list(point), []),
  evidence: nullable(evidence),
  next_config: optional(text, ""),
  header: record<PlaceFacts["header"]>({
    warnings: optional(list(text), []), certainty: optional(dictionary(unknown), {}), counts: optional(dictionary(number), {}),
    other_way: optional(text, ""), narrowed: optional(text, ""), as_test: optional(text, ""),
  }),
});


export function factsOf(meta: Meta, place: number): PlaceFacts | null {
  const parts = meta.facts["parts"];
  const got = Array.isArray(parts) ? decode(placeFacts, parts[place], "facts") : null;
  return got?.ok ? got.value : null;
}

