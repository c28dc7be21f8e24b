// What is loaded of one dataset and selected in it; views read it and are told of changes.
import type { Api } from "./api";
import type { Meta, NodeRow } from "./types";

export class Session {
  readonly api: Api;
  readonly dataset: string;
  readonly meta: Meta;
  // Index in meta.places.
  place = 0;
  selected: NodeRow | null = null;
  partner: NodeRow | null = null;
  readonly #changed: () => void;

  constructor(api: Api, dataset: string, meta: Meta, changed: () => void) {
    this.api = api;
    this.dataset = dataset;
    this.meta = meta;
    this.#changed = changed;
  }

  // To be called after the session was changed.
  changed(): void {
    this.#changed();
  }
}
