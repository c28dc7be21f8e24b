// The query language of docs/design/viewer.md, "Queries", for data that stands in the page itself. The
// program has its own, over its index; both are held to the same table of examples in query_test.ts.
import type { NodeRow, QueryError, Side } from "./types";
import { FLAG } from "./types";

// A node with what only its dataset knows.
export interface QueryNode {
  readonly row: NodeRow;
  readonly side: Side;
  readonly step: number;
  readonly rank: number;
  // dtypes and shapes of its values, as "bfloat16" and "[2,8]".
  readonly dtypes: readonly string[];
  readonly shapes: readonly string[];
}

type Matcher = (node: QueryNode) => boolean;

interface ParsedQuery {
  readonly matches: Matcher;
  readonly error: QueryError | null;
}

class Fault extends Error {
  readonly at: number;
  constructor(at: number, message: string) {
    super(message);
    this.at = at;
  }
}

const LEVELS = ["pass", "warning", "error", "unmatched", "none"];
const OVERFLOWS = ["none", "medium", "high", "critical"];
const TYPES = ["module", "api", "fused", "group", "root"];
const FLAGS: Readonly<Record<string, number>> = {
  first: FLAG.first, source: FLAG.source, carrier: FLAG.carrier, communicates: FLAG.communicates,
  recomputed: FLAG.recomputed, repaired: FLAG.repaired, merged: FLAG.merged, hand: FLAG.byHand,
};
const DTYPES: Readonly<Record<string, string>> = {
  bf16: "bfloat16", fp16: "float16", fp32: "float32", fp64: "float64", f16: "float16",
  f32: "float32", f64: "float64", half: "float16", float: "float32", double: "float64",
};
const DIRECTION = /\.(forward|backward)(\.|$)/;

export function operatorOf(name: string): string {
  const found = DIRECTION.exec(name);
  const parts = (found ? name.slice(0, found.index) : name).split(".");
  let last = parts.pop() ?? "";
  if (/^\d+$/.test(last) && parts.length > 0) last = parts.pop() ?? last;
  return last.toLowerCase();
}

function choice(values: string, known: readonly string[], at: number, field: string): Set<string> {
  const chosen = values.toLowerCase().split(",").filter((value) => value !== "");
  for (const value of chosen) {
    if (!known.includes(value)) throw new Fault(at, `${field}: expected ${known.join(", ")}, got '${value}'`);
  }
  if (chosen.length === 0) throw new Fault(at, `${field}: expected ${known.join(", ")}`);
  return new Set(chosen);
}

function wholeNumbers(values: string, at: number, field: string): Set<number> {
  const chosen = values.split(",").filter((value) => value !== "");
  for (const value of chosen) {
    if (!/^\d+$/.test(value)) throw new Fault(at, `${field}: expected whole numbers, got '${value}'`);
  }
  return new Set(chosen.map(Number));
}

type Term = (value: string, at: number) => Matcher;

const TERMS: Readonly<Record<string, Term>> = {
  level: (value, at) => {
    const chosen = choice(value, LEVELS, at, "level");
    return ({ row }) => chosen.has(row.level);
  },
  worst: (value, at) => {
    const chosen = choice(value, LEVELS, at, "worst");
    return ({ row }) => row.size > 1 && chosen.has(row.worst);
  },
  overflow: (value, at) => {
    const chosen = choice(value, OVERFLOWS, at, "overflow");
    return ({ row }) => chosen.has(row.overflow || "none");
  },
  type: (value, at) => {
    const chosen = choice(value, TYPES, at, "type");
    return ({ row }) => chosen.has(row.type);
  },
  op: (value) => {
    const chosen = new Set(value.toLowerCase().split(","));
    return ({ row }) => chosen.has(operatorOf(row.name));
  },
  dir: (value, at) => {
    const chosen = choice(value, ["forward", "backward"], at, "dir");
    return ({ row }) => chosen.has(DIRECTION.exec(row.name)?.[1] ?? "");
  },
  rank: (value, at) => {
    const chosen = wholeNumbers(value, at, "rank");
    return ({ rank }) => chosen.has(rank);
  },
  step: (value, at) => {
    const chosen = wholeNumbers(value, at, "step");
    return ({ step }) => chosen.has(step);
  },
  ms: (value, at) => {
    const chosen = wholeNumbers(value, at, "ms");
    return ({ row }) => chosen.has(row.ms);
  },
  dtype: (value) => {
    const chosen = new Set(value.toLowerCase().split(",").map((name) => DTYPES[name] ?? name));
    return ({ dtypes }) => dtypes.some((dtype) => chosen.has(dtype.replace(/^torch\./, "").toLowerCase()));
  },
  shape: (value) => {
    const wanted = `[${value.replace(/[[\]\s]/g, "")}]`;
    return ({ shapes }) => shapes.includes(wanted);
  },
  side: (value, at) => {
    const chosen = choice(value, ["target", "golden"], at, "side");
    return ({ side }) => chosen.has(side);
  },
  flag: (value, at) => {
    const bits = [...choice(value, Object.keys(FLAGS), at, "flag")].reduce((sum, name) => sum | (FLAGS[name] ?? 0), 0);
    return ({ row }) => (row.flags & bits) !== 0;
  },
  is: (value, at) => {
    const chosen = choice(value, ["leaf", "matched", "unmatched"], at, "is");
    return ({ row }) =>
      (chosen.has("leaf") && row.children === 0) ||
      (chosen.has("matched") && row.partner >= 0) ||
      (chosen.has("unmatched") && row.level === "unmatched");
  },
};

const NUMBERS: Readonly<Record<string, (row: NodeRow) => number | null>> = {
  error: (row) => row.error,
  input_error: (row) => row.input_error,
  size: (row) => row.size,
  depth: (row) => row.depth,
  errors: (row) => row.errors,
};

function comparison(name: string, sign: string, value: string, at: number): Matcher {
  const of = NUMBERS[name];
  const limit = value === "inf" ? Infinity : Number(value);
  if (!of) throw new Fault(at, `${name}: expected one of ${Object.keys(NUMBERS).join(", ")}`);
  if (value === "" || Number.isNaN(limit)) throw new Fault(at, `${name}: expected a number, got '${value}'`);
  return ({ row }) => {
    const number = of(row);
    if (number === null) return false;
    // What is no number is beyond every limit: it must not hide from a search for large errors.
    if (Number.isNaN(number)) return sign.startsWith(">");
    if (sign === ">") return number > limit;
    if (sign === ">=") return number >= limit;
    if (sign === "<") return number < limit;
    if (sign === "<=") return number <= limit;
    return number === limit;
  };
}

function term(word: string, at: number): Matcher {
  const compared = /^([a-z_]+)(>=|<=|>|<|=)(.*)$/i.exec(word);
  if (compared) return comparison((compared[1] ?? "").toLowerCase(), compared[2] ?? "", compared[3] ?? "", at);
  const named = /^([a-z_]+):(.*)$/is.exec(word);
  const known = named && TERMS[(named[1] ?? "").toLowerCase()];
  if (named && known) return known(named[2] ?? "", at);
  if (named) throw new Fault(at, `'${named[1]}:' is not known; expected one of ${Object.keys(TERMS).join(", ")}, or put the text in "quotes"`);
  return containing(word);
}

function containing(text: string): Matcher {
  const wanted = text.toLowerCase();
  return ({ row }) => row.name.toLowerCase().includes(wanted);
}

function parseTerms(query: string): Matcher[] {
  const terms: Matcher[] = [];
  const word = /\s*(-?)(?:"((?:[^"\\]|\\.)*)("?)|(\S+))/gy;
  for (let found = word.exec(query); found; found = word.exec(query)) {
    const at = found.index + found[0].length - (found[2] === undefined ? (found[4] ?? "").length : 0);
    if (found[2] !== undefined && found[3] === "") throw new Fault(found.index, "the quote is not closed");
    const matches = found[2] !== undefined ? containing(found[2].replace(/\\(.)/g, "$1")) : term(found[4] ?? "", at);
    terms.push(found[1] === "-" ? (node) => !matches(node) : matches);
  }
  return terms;
}

export function parseQuery(query: string): ParsedQuery {
  try {
    const terms = parseTerms(query);
    return { matches: (node) => terms.every((matches) => matches(node)), error: null };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { matches: () => false, error: { at: error.at, message: error.message } };
  }
}
