// A list of calls that is walked through: the hits of a query, or the failures in order.
import type { Result } from "./result";
import type { NodeRow, QueryError } from "./types";

interface HitPage {
  readonly rows: readonly NodeRow[];
  readonly total: number;
  readonly cursor: string;
  readonly error: QueryError | null;
}

export class Hits {
  // What is listed, as people wrote or chose it.
  readonly label: string;
  readonly rows: NodeRow[] = [];
  total = 0;
  at = -1;
  state: "loading" | "ready" | "failed" = "loading";
  message = "";
  error: QueryError | null = null;
  readonly #load: (cursor: string) => Promise<Result<HitPage>>;
  readonly #changed: () => void;
  #cursor = "";
  #work: Promise<void> | null = null;

  constructor(label: string, load: (cursor: string) => Promise<Result<HitPage>>, changed: () => void) {
    this.label = label;
    this.#load = load;
    this.#changed = changed;
    void this.more();
  }

  get hasMore(): boolean {
    return this.state === "loading" || this.#cursor !== "";
  }

  // The next page, if there is one.
  more(): Promise<void> {
    if (this.#work === null && this.hasMore) {
      this.#work = this.#next().finally(() => (this.#work = null));
    }
    return this.#work ?? Promise.resolve();
  }

  async #next(): Promise<void> {
    const answer = await this.#load(this.#cursor);
    if (answer.ok) {
      this.rows.push(...answer.value.rows);
      this.total = answer.value.total;
      this.error = answer.value.error;
      this.#cursor = answer.value.cursor;
      this.state = "ready";
    } else {
      this.state = "failed";
      this.message = answer.error.message;
      this.#cursor = "";
    }
    this.#changed();
  }

  // Steps to the next or previous hit; null at the ends.
  async step(by: 1 | -1): Promise<NodeRow | null> {
    const next = this.at + by;
    if (next < 0) return null;
    if (next >= this.rows.length) await this.more();
    const row = this.rows[next];
    if (!row) return null;
    this.at = next;
    this.#changed();
    return row;
  }

  // Stands on a row that somebody chose.
  stand(id: number): void {
    this.at = this.rows.findIndex((row) => row.id === id);
  }
}
