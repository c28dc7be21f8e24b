// What a comparison says of one place beside its nodes: the error along the calls, the elements of the
// first wrong call's tensors, what it was certain of. A page in a file has it for each place.
import { decode, dictionary, integer, list, nullable, number, optional, record, text, unknown, type Decoded } from "../decode";
import type { Meta } from "../types";

const pair = (value: unknown, at: string) => {
  const [index, target, golden] = list(number)(value, at);
  return { index: integer(index, at), target: number(target, at), golden: number(golden, at) };
};

const point = (value: unknown, at: string) => {
  const [call, error, explained, verdict] = list(nullable(number))(value, at);
  return { call: integer(call, at), error: error ?? null, explained: explained ?? null, verdict: integer(verdict, at) };
};

const evidence = record({
  item: text, count: integer, shape: list(integer), pairs: list(pair), worst: list(pair),
  histogram: record({ low: number, step: number, equal: integer, nonfinite: integer, total: integer, counts: list(integer) }),
  profile: list(nullable(number)),
});

const placeFacts = record({
  growth: optional(list(point), []),
  evidence: nullable(evidence),
  next_config: optional(text, ""),
  header: record({
    warnings: optional(list(text), []), certainty: optional(dictionary(unknown), {}), counts: optional(dictionary(number), {}),
    other_way: optional(text, ""), narrowed: optional(text, ""), as_test: optional(text, ""),
  }),
});

export type GrowthPoint = ReturnType<typeof point>;
export type Evidence = Decoded<typeof evidence>;
export type PlaceFacts = Decoded<typeof placeFacts>;

export function factsOf(meta: Meta, place: number): PlaceFacts | null {
  const parts = meta.facts["parts"];
  const got = Array.isArray(parts) ? decode(placeFacts, parts[place], "facts") : null;
  return got?.ok ? got.value : null;
}

