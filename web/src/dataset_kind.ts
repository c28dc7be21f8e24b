// Datasets that are no graph: they have no calls, so that what the page knows of a graph is empty.
import type { Dataset, DatasetKind, Meta } from "./types";

const KIND_FACT = "kind of dataset";

export const metaWithoutGraph = (dataset: Dataset): Meta => ({
  etag: dataset.etag, kind: "build", mode: "", target: dataset.target, golden: dataset.golden, answer: [], complete: true, source: "plumbline",
  first: null, steps: [], ranks: [], micro_steps: 0, overflow_check: false, has_tensors: false, places: [], notes: [], facts: { [KIND_FACT]: dataset.kind },
});

export function kindOf(meta: Meta): DatasetKind {
  const kind = meta.facts[KIND_FACT];
  return kind === "trend" || kind === "table" ? kind : "graph";
}

export const isGraph = (meta: Meta): boolean => kindOf(meta) === "graph";
