// Answers about tables: src/view/tables/table_answers.h of the program.
import { dictionary, integer, list, nullable, record, text, type Decoded, type Decoder } from "./decode";
import { level } from "./decoders";
import type { State } from "./state";

// A row as [number in the file, level, call, cells].
const row: Decoder<{ row: number; level: Decoded<typeof level>; call: string; cells: readonly string[] }> = (value, at) => {
  const [number, of, call, cells] = Array.isArray(value) ? (value as readonly unknown[]) : [];
  return { row: integer(number, `${at}[0]`), level: level(of, `${at}[1]`), call: text(call, `${at}[2]`), cells: list(text)(cells, `${at}[3]`) };
};

export const tableRow = record({ columns: list(text), rows: list(row) });

export const tablePage = record({
  parts: list(text),
  part: integer,
  columns: list(text),
  all: integer,
  total: integer,
  counts: dictionary(integer),
  // Position of the first bad row; -1: none.
  first: integer,
  // What was compared, where it is still there.
  recordings: nullable(record({ target: text, golden: text, step: integer, rank: integer })),
  rows: list(row),
});

export type TableRow = Decoded<typeof row>;
export type TablePage = Decoded<typeof tablePage>;

// Which rows are shown, in which order; the export takes the same.
export const tableQuestion = ({ extra }: State): { readonly part: string; readonly sort: string; readonly q: string } =>
  ({ part: extra["part"] ?? "0", sort: extra["sort"] ?? "", q: extra["find"] ?? "" });
