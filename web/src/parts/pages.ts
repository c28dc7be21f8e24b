// Rows of a long list, of which only the pages that are looked at are asked for.
import type { Failure, Result } from "../result";

export interface Page<T> {
  readonly total: number;
  readonly rows: readonly T[];
}

type AskPage<T> = (offset: number, limit: number) => Promise<Result<Page<T>>>;

export class Pages<T> {
  // -1: not known yet.
  total = -1;
  failure: Failure | null = null;
  readonly #ask: AskPage<T>;
  readonly #size: number;
  readonly #changed: () => void;
  readonly #pages = new Map<number, readonly T[]>();

  constructor(ask: AskPage<T>, size: number, changed: () => void) {
    this.#ask = ask;
    this.#size = size;
    this.#changed = changed;
  }

  row(i: number): T | undefined {
    return this.#pages.get(Math.floor(i / this.#size))?.[i % this.#size];
  }

  // What has come so far, in order.
  *known(): Iterable<readonly [number, T]> {
    for (const page of [...this.#pages.keys()].sort((a, b) => a - b)) {
      for (const [i, row] of (this.#pages.get(page) ?? []).entries()) yield [page * this.#size + i, row];
    }
  }

  // Asks for what is missing of the rows from `from` up to before `to`.
  want(from: number, to: number): void {
    const end = this.total < 0 ? Math.max(1, to) : Math.min(to, this.total);
    for (let page = Math.max(0, Math.floor(from / this.#size)); page * this.#size < end; page++) {
      if (!this.#pages.has(page)) void this.#load(page);
    }
  }

  async #load(page: number): Promise<void> {
    this.#pages.set(page, []);
    const rows: T[] = [];
    // An answer may hold fewer rows than asked for, as it is kept short.
    for (let isCut = true; isCut;) {
      const answer = await this.#ask(page * this.#size + rows.length, this.#size - rows.length);
      this.failure = answer.ok ? null : answer.error;
      if (answer.ok) {
        rows.push(...answer.value.rows);
        this.total = answer.value.total;
      }
      isCut = answer.ok && answer.value.rows.length > 0 && rows.length < Math.min(this.#size, this.total - page * this.#size);
      this.#pages.set(page, [...rows]);
      this.#changed();
    }
  }
}
