// Rows of a comparison as they stand in a page's data: one value of one call, of both sides.
import { number, scalar } from "../decode";
import { VERDICTS } from "../marks";
import type { Scalar, ValuePair, ValueRole, ValueSide } from "../types";
import type { Header, RowBlock } from "./report_data";

// In the order of plumbline::ItemRole.
export const ROLES: readonly ValueRole[] = ["input", "parameter", "output", "buffer", "gradient"];
export const NOT_COMPARABLE = 4;

// Names of the metrics of each mode, in the order of the data.
export const METRICS: Readonly<Record<Header["mode"], readonly string[]>> = {
  tensor: ["cosine", "max abs error", "max rel error", "below 0.001", "below 0.005", "relative L2", "max ULP", "elements differing", "elements"],
  statistics: ["max diff", "min diff", "mean diff", "norm diff", "max %", "min %", "mean %", "norm %"],
  md5: ["target digest", "golden digest"],
};

// Positions in a row of the data (src/report/html_report.h).
const CALL = 0, ITEM = 1, ROLE = 2, VERDICT = 3, REASON = 4, ERROR = 5, EXPLAINED = 6, DTYPE = 7, SHAPE = 9,
  RESULT = 11, SIDES = 12, METRIC = 14, NOTES = 15;

export interface ValueRow {
  // Index among the calls of the page's part.
  readonly call: number;
  // As "output.0".
  readonly item: string;
  readonly role: number;
  readonly verdict: number;
  readonly reason: string;
  readonly error: number | null;
  readonly explained: number | null;
  // Of target and golden; empty: not there.
  readonly dtypes: readonly [string, string];
  readonly shapes: readonly [string, string];
  // What release 1.2.2 says in its column "Result".
  readonly result: string;
  // Max, min, mean and norm of a tensor, or one value; null: this side has no such value.
  readonly statistics: readonly [readonly (Scalar | null)[] | null, readonly (Scalar | null)[] | null];
  readonly metrics: readonly (Scalar | null)[];
  // Code and sentence.
  readonly notes: readonly (readonly [string, string])[];
}

export const STATISTICS = ["max", "min", "mean", "norm"] as const;

const numberOf = (cell: unknown, missing: number): number => (typeof cell === "number" ? cell : missing);
const errorOf = (cell: unknown): number | null => (typeof cell === "number" || typeof cell === "string" ? number(cell, "error") : null);
const scalarOf = (cell: unknown): Scalar | null => (cell === null || typeof cell === "object" ? null : scalar(cell, "value"));

function statisticsOf(cell: unknown): readonly (Scalar | null)[] | null {
  if (!Array.isArray(cell)) return null;
  if (cell[0] === "f" && cell.length === 5) return cell.slice(1).map((number) => Math.fround(errorOf(number) ?? NaN));
  return cell.map(scalarOf);
}

// Rows of a line of the data; what is no row is left out.
export function rowsOf(block: RowBlock): readonly ValueRow[] {
  const text = (cell: unknown): string => (typeof cell === "number" ? (block.texts[cell] ?? "") : "");
  return block.rows.map((cells) => {
    const target = statisticsOf(cells[SIDES]);
    const golden = cells[SIDES + 1] === 1 ? target : statisticsOf(cells[SIDES + 1]);
    const item = typeof cells[ITEM] === "string" ? cells[ITEM] : "";
    const metrics = cells[METRIC], notes = cells[NOTES];
    return {
      call: numberOf(cells[CALL], -1),
      item: item.startsWith(".") ? item.slice(1) : item,
      role: numberOf(cells[ROLE], 0),
      verdict: numberOf(cells[VERDICT], NOT_COMPARABLE),
      reason: text(cells[REASON]),
      error: errorOf(cells[ERROR]),
      explained: errorOf(cells[EXPLAINED]),
      dtypes: [text(cells[DTYPE]), text(cells[DTYPE + 1])],
      shapes: [text(cells[SHAPE]), text(cells[SHAPE + 1])],
      result: text(cells[RESULT]),
      statistics: [target, golden],
      metrics: Array.isArray(metrics) ? metrics.map(scalarOf) : [],
      notes: Array.isArray(notes) ? notes.map((pair: unknown) => (Array.isArray(pair) ? [text(pair[0]), text(pair[1])] : ["", ""])) : [],
    };
  });
}

// "target | golden" where they differ.
export function bothOf([target, golden]: readonly [string, string]): string {
  return target === golden || golden === "" ? target : `${target === "" ? "none" : target} | ${golden}`;
}

export function isTensor(statistics: readonly unknown[]): boolean {
  return statistics.length > 1;
}

// How many times the error is what rounding and the inputs explain; null: nothing is explained.
function ratioOf(row: ValueRow): number | null {
  return row.error !== null && row.explained !== null && row.explained > 0 ? row.error / row.explained : null;
}

function shapeOf(text: string): readonly number[] | null {
  if (!/^\[[\d, ]*\]$/.test(text)) return null;
  return text === "[]" ? [] : text.slice(1, -1).split(",").map(Number);
}

function sideOf(row: ValueRow, at: 0 | 1, mode: Header["mode"]): ValueSide | null {
  const statistics = row.statistics[at];
  if (!statistics) return null;
  const digest = mode === "md5" ? row.metrics[at] : null;
  const common = { md5: typeof digest === "string" ? digest : "", requires_grad: null, data_name: "" };
  if (!isTensor(statistics)) {
    return { ...common, type: row.dtypes[at].replace(/^<class '(.*)'>$/, "$1"), dtype: "", shape: null, max: null, min: null, mean: null, norm: null, value: statistics[0] ?? null };
  }
  const [max = null, min = null, mean = null, norm = null] = statistics;
  return { ...common, type: "torch.Tensor", dtype: row.dtypes[at], shape: shapeOf(row.shapes[at]), max, min, mean, norm, value: null };
}

function metricsOf(row: ValueRow, mode: Header["mode"]): Record<string, Scalar | null> {
  const metrics: Record<string, Scalar | null> = {};
  const ratio = ratioOf(row);
  if (ratio !== null) metrics["error / explained"] = ratio;
  const isArgument = row.statistics.every((side) => side === null || !isTensor(side));
  if (mode === "md5") return metrics;
  if (!isArgument) METRICS[mode].forEach((name, i) => (metrics[name] = row.metrics[i] ?? null));
  else if (mode === "statistics") Object.assign(metrics, { difference: row.metrics[0] ?? null, "difference %": row.metrics[4] ?? null });
  if (row.result !== "") metrics["result of msprobe 1.2.2"] = row.result;
  return metrics;
}

// As the page shows values everywhere. `reasons`: words of the codes.
export function pairOf(row: ValueRow, mode: Header["mode"], reasons: Readonly<Record<string, string>>): ValuePair {
  return {
    name: row.item,
    role: ROLES[row.role] ?? "input",
    target: sideOf(row, 0, mode),
    golden: sideOf(row, 1, mode),
    verdict: VERDICTS[row.verdict] ?? "not comparable",
    reason: row.reason,
    reason_text: reasons[row.reason] ?? row.reason,
    error: row.error,
    explained: row.explained,
    metrics: metricsOf(row, mode),
    notes: row.notes.map(([code, text]) => `[${code}] ${text}`),
  };
}
