// Checks data of outside field by field. A decoder returns the typed value or throws Mismatch, which
// decode() turns into a Result.
import { failure, success, type Result } from "./result";

export type Decoder<T> = (value: unknown, at: string) => T;

export type Decoded<D> = D extends Decoder<infer T> ? T : never;

class Mismatch extends Error {}

function wrong(value: unknown, at: string, expected: string): never {
  const got = value === undefined ? "nothing" : (JSON.stringify(value) ?? String(value)).slice(0, 60);
  throw new Mismatch(`${at}: expected ${expected}, got ${got}`);
}

export function decode<T>(decoder: Decoder<T>, value: unknown, at: string): Result<T> {
  try {
    return success(decoder(value, at));
  } catch (error) {
    if (!(error instanceof Mismatch)) throw error;
    return failure("bad-answer", `${error.message}; page and program are of different versions?`);
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const text: Decoder<string> = (value, at) =>
  typeof value === "string" ? value : wrong(value, at, "a text");

export const flag: Decoder<boolean> = (value, at) =>
  typeof value === "boolean" ? value : wrong(value, at, "true or false");

// JSON has no NaN and no infinities: they travel as texts.
const SPECIAL: ReadonlyMap<unknown, number> = new Map<unknown, number>([
  ["nan", NaN],
  ["inf", Infinity],
  ["-inf", -Infinity],
]);

export const number: Decoder<number> = (value, at) => {
  if (typeof value === "number") return value;
  return SPECIAL.get(value) ?? wrong(value, at, "a number");
};

export const integer: Decoder<number> = (value, at) =>
  typeof value === "number" && Number.isInteger(value) ? value : wrong(value, at, "a whole number");

// A value of a recording: integers above 2^53 and texts stay texts.
export const scalar: Decoder<string | number | boolean> = (value, at) => {
  if (typeof value === "boolean" || typeof value === "number") return value;
  if (typeof value !== "string") return wrong(value, at, "a number, a text or true/false");
  return SPECIAL.get(value) ?? value;
};

export const unknown: Decoder<unknown> = (value) => value;

export const list =
  <T>(item: Decoder<T>): Decoder<readonly T[]> =>
  (value, at) =>
    Array.isArray(value)
      ? value.map((entry: unknown, i) => item(entry, `${at}[${i}]`))
      : wrong(value, at, "a list");

export const nullable =
  <T>(inner: Decoder<T>): Decoder<T | null> =>
  (value, at) =>
    value === null || value === undefined ? null : inner(value, at);

// What an older program does not send.
export const optional =
  <T>(inner: Decoder<T>, missing: T): Decoder<T> =>
  (value, at) =>
    value === undefined ? missing : inner(value, at);

export const oneOf =
  <T extends string>(...values: readonly T[]): Decoder<T> =>
  (value, at) =>
    values.find((known) => known === value) ?? wrong(value, at, `one of ${values.join(", ")}`);

export const dictionary =
  <T>(item: Decoder<T>): Decoder<Readonly<Record<string, T>>> =>
  (value, at) => {
    if (!isRecord(value)) return wrong(value, at, "an object");
    return Object.fromEntries(
      Object.entries(value).map(([key, entry]) => [key, item(entry, `${at}.${key}`)]),
    );
  };

export const record =
  <T extends object>(fields: { readonly [K in keyof T]-?: Decoder<T[K]> }): Decoder<Readonly<T>> =>
  (value, at) => {
    if (!isRecord(value)) return wrong(value, at, "an object");
    const out: Partial<T> = {};
    for (const key of Object.keys(fields) as (keyof T & string)[]) {
      out[key] = fields[key](value[key], `${at}.${key}`);
    }
    return out as T;
  };

// {"fields": ["id", ...], "rows": [[7, ...], ...]}: rows as objects, each checked by `row`.
export const table =
  <T>(row: Decoder<T>): Decoder<readonly T[]> =>
  (value, at) => {
    if (!isRecord(value)) return wrong(value, at, "an object with fields and rows");
    const fields = list(text)(value["fields"], `${at}.fields`);
    return list((cells, where) => tableRow(fields, row, cells, where))(value["rows"], `${at}.rows`);
  };

export function tableRow<T>(
  fields: readonly string[],
  row: Decoder<T>,
  cells: unknown,
  at: string,
): T {
  if (!Array.isArray(cells)) return wrong(cells, at, "a list");
  const entries: Record<string, unknown> = {};
  fields.forEach((field, i) => (entries[field] = cells[i]));
  return row(entries, at);
}
