// Answers the questions that a page in a file cannot ask - values, trends, communication, structure,
// jobs - with made data. Not part of the bundle.
import { JsonApi, type EventKind, type Parameters } from "../src/api";
import { unknown } from "../src/decode";
import { LocalApi, type LocalDataset } from "../src/local_api";
import { failure, success, type Result } from "../src/result";
import { FLAG, type NodeRow } from "../src/types";

const FIELDS = [
  "id", "parent", "partner", "name", "type", "children", "size", "depth", "index", "order", "level", "overflow", "worst", "errors", "warnings",
  "unmatched", "ms", "error", "input_error", "flags", "hits", "is_hit", "change",
] as const satisfies readonly (keyof NodeRow)[];
const SHAPE = [2, 48, 300];
const METRICS = [{ name: "forward", statistics: ["norm", "max", "min", "mean"] }, { name: "backward", statistics: ["norm", "max", "min", "mean"] }];
const TARGETS = Array.from({ length: 260 }, (_, i) =>
  [i + 1, `Module.model.layers.${Math.floor(i / 10)}.mlp.proj${i % 10}.Linear.${i % 2 === 0 ? "output.0" : "input.0"}`, 0, 0] as const);
const STEPS = Array.from({ length: 120 }, (_, i) => i);
const RANKS = [0, 1, 2, 3, 4, 5, 6, 7];

type Get = (name: string) => string;

const json = (value: number): unknown => (Number.isNaN(value) ? "nan" : Number.isFinite(value) ? value : value > 0 ? "inf" : "-inf");
const noise = (seed: number): number => {
  const x = Math.sin(seed * 12.9898) * 43758.5453;
  return x - Math.floor(x);
};
const whole = (text: string, missing: number): number => (text === "" ? missing : Number(text));

// Normal, heavy-tailed where `tail` says so.
function element(index: number, side: string): number {
  const base = Math.sqrt(-2 * Math.log(noise(index) + 1e-9)) * Math.cos(6.283 * noise(index + 0.5));
  if (side === "golden") return base;
  const error = base * 0.01 * (noise(index + 7) - 0.5) + (index % 300 === 37 ? 0.8 * noise(index) : 0);
  if (index === 4321) return NaN;
  return side === "difference" ? error : base + error;
}

function trendValue(target: number, rank: number, step: number, against: boolean): number | null {
  if ((target * 7 + step) % 97 === 0) return null;
  if (target === 33 && step > 80) return NaN;
  if (target === 12 && step === 60) return 5e4;
  const value = 10 * Math.exp(-step / 60) * (1 + 0.2 * Math.sin(target)) + 0.3 * noise(target * 31 + rank * 7 + step);
  return against ? value - 10 * Math.exp(-step / 60) * (1 + 0.2 * Math.sin(target)) * (step > 40 ? 1.1 : 1) : value;
}

const distribution = (side: string): object => ({
  elements: 28800, nan: side === "golden" ? 0 : 1, inf: 0, minus_inf: 0, zero: side === "difference" ? 812 : 12, subnormal: 0,
  min: -4.2, max: 4.4, mean: 0.0013, norm: 169.7, quantiles: [-4.2, -3.09, -2.33, -0.674, 0, 0.674, 2.33, 3.09, 4.4],
});
const form = { dtype: "bfloat16", shape: SHAPE };

export class FakeServer extends JsonApi {
  override readonly isServed = true;
  readonly #data: LocalDataset;
  readonly #inner: LocalApi;
  readonly #communicating: readonly number[];
  #pairs: [string, string][] = [];

  constructor(data: LocalDataset) {
    super();
    this.#data = data;
    this.#inner = new LocalApi(data);
    const place = data.meta.places[0];
    const ids: number[] = [];
    for (let id = place?.target_root ?? 0; place && id < place.golden_root; id++) {
      if ((data.row(id).flags & FLAG.communicates) !== 0) ids.push(id);
    }
    this.#communicating = ids;
  }

  override watch(_kind: EventKind, _changed: () => void): () => void {
    return () => undefined;
  }
  override jobFile(job: string): string {
    return `#${job}`;
  }
  protected override remove(): Promise<Result<unknown>> {
    return Promise.resolve(success({}));
  }

  protected override post(path: string, body: unknown): Promise<Result<unknown>> {
    if (path.endsWith("/match")) this.#pairs.push(...(body as { pairs: [string, string][] }).pairs);
    else if (path.endsWith("/undo")) this.#pairs.pop();
    else if (path.endsWith("/export")) return Promise.resolve(success({ job: "1" }));
    else return Promise.resolve(failure("not-found", "This fake opens nothing."));
    return Promise.resolve(success(this.#matches()));
  }

  protected override async get(path: string, parameters: Parameters): Promise<Result<unknown>> {
    const p: Get = (name) => String(parameters[name] ?? "");
    const own = this.#own(path.replace(/^d\/[^/]*\//, ""), p);
    if (own !== undefined) return success(own);
    return this.#inner.ask(path, parameters, unknown);
  }

  #own(question: string, p: Get): unknown {
    switch (question) {
      case "datasets":
        return {
          datasets: [
            this.#dataset("0", "graph", "llama fused against eager"), this.#dataset("1", "graph", "before the fix"),
            this.#dataset("t", "trend", "monitor_data.trend.db"), this.#dataset("u", "trend", "other run.trend.db"),
          ],
          read_only: false, roots: ["/data/runs"],
        };
      case "jobs":
        return { jobs: [{ id: "1", what: "XLSX of all calls", state: "running", progress: 0.4, error: "", file: "" }] };
      case "values": return this.#values(p);
      case "trend/meta": return this.#trendMeta(p);
      case "trend/heat": return this.#heat(p);
      case "trend/line": return this.#line(p);
      case "trend/alerts": return this.#alerts(whole(p("offset"), 0), whole(p("limit"), 100));
      case "over_steps": return this.#overSteps();
      case "comm": return { peers: this.#peers(Number(p("node"))) };
      case "timeline": return this.#timeline(whole(p("offset"), 0), whole(p("limit"), 100));
      case "structure": return this.#structure(p);
      case "baseline": return this.#baseline();
      case "matches": return this.#matches();
      case "mapping": return { yaml: "LlamaDecoderLayer:\n  self_attn: attention\n", matched: 812, unmatched: 3 };
      case "source": return { file: "modeling_llama.py", first: 70, lines: ["def forward(self, x):", "    return x"] };
      default: return undefined;
    }
  }

  #dataset(id: string, kind: string, title: string): object {
    return { id, kind, state: "ready", title, target: "/data/runs/a", golden: "", progress: 1, error: "", etag: id === "0" ? "fake" : id };
  }

  #matches(): object {
    return { pairs: this.#pairs, can_undo: this.#pairs.length > 0 };
  }

  #table(rows: readonly NodeRow[], extra: (row: NodeRow) => Partial<NodeRow> = () => ({})): object {
    return { fields: FIELDS, rows: rows.map((row) => this.#cells({ ...row, ...extra(row) })) };
  }

  #cells(row: NodeRow): unknown[] {
    return FIELDS.map((field) => (typeof row[field] === "number" ? json(row[field]) : row[field]));
  }

  #values(p: Get): unknown {
    const notes = p("what") === "stats" ? [] : [];
    const sides = { target: form, golden: form, notes };
    switch (p("what")) {
      case "stats":
        return {
          target: { ...form, ...distribution("target") }, golden: { ...form, ...distribution("golden") }, difference: distribution("difference"),
          quantiles_at: [0, 0.001, 0.01, 0.25, 0.5, 0.75, 0.99, 0.999, 1], notes, metrics: null,
        };
      case "histogram": return this.#histogram(p("scale") === "linear");
      case "slice": return this.#slice(p, sides);
      case "topk":
        return {
          ...sides, worst: Array.from({ length: 100 }, (_, i) => ({
            index: [i % 2, i % 48, 37], target: 1.5 + 1 / (i + 1), golden: 1.5, difference: 1 / (i + 1), relative: i === 3 ? "inf" : 0.67 / (i + 1),
          })),
        };
      default: {
        const axis = whole(p("axis"), 2);
        const length = SHAPE[axis] ?? 1;
        const begins = Array.from({ length }, (_, i) => i);
        return {
          ...sides, axis, length, begins, elements: begins.map(() => 96), nonfinite: begins.map(() => 0),
          absolute_max: begins.map((i) => (i === 37 ? 0.8 : 0.01 * noise(i))), relative_max: begins.map((i) => noise(i)),
          target_mean: begins.map((i) => 0.1 * noise(i)), golden_mean: begins.map((i) => 0.1 * noise(i) + 0.01), target_norm: begins.map((i) => 5 + noise(i)),
          golden_norm: begins.map((i) => 5 + noise(i + 3)),
        };
      }
    }
  }

  #histogram(isLinear: boolean): unknown {
    const at = (i: number): number => {
      const x = (i / 256) * 2 - 1;
      return isLinear ? 4.4 * x : Math.sign(x) * Math.expm1(Math.abs(x) * Math.log1p(1e6)) * 4.4e-6;
    };
    const edges = Array.from({ length: 257 }, (_, i) => at(i));
    const counts = (shift: number): number[] => edges.slice(1).map((high, i) => {
      const low = edges[i] ?? 0;
      return Math.round(28000 * (high - low) * 0.4 * Math.exp(-(((low + high) / 2 + shift) ** 2) / 2));
    });
    const special = { nan: 1, inf: 0, minus_inf: 0, zero: 12, subnormal: 0 };
    const octaves = Array.from({ length: 60 }, (_, i) => 2 ** (i / 2 - 30));
    const bell = octaves.slice(1).map((_, i) => Math.round(2000 * Math.exp(-((i - 30) ** 2) / 60)));
    return {
      target: { ...form, ...special, counts: counts(0.1) }, golden: { ...form, ...special, nan: 0, counts: counts(0) }, edges, notes: ["One NaN of target has a number as its counterpart."],
      errors: {
        nonfinite: 1, nonfinite_mismatch: 1, equal: 812, relative_infinite: 2, absolute: { edges: octaves, counts: bell }, relative: { edges: octaves, counts: bell },
        ulp: { edges: [0, 1, 2, 4, 8, 16, 32, 64], counts: [812, 9000, 12000, 5000, 1500, 300, 40] },
        deciles: Array.from({ length: 10 }, (_, i) => ({
          low: i * 0.2, high: (i + 1) * 0.2, count: 2880, absolute_mean: 0.001 * (i + 1), absolute_max: 0.8, relative_max: i === 0 ? "inf" : 1 / i,
        })),
      },
    };
  }

  #slice(p: Get, sides: object): unknown {
    const [down = 1, across = 2] = p("axes") === "" ? [] : p("axes").split(",").map(Number);
    const range = (text: string, length: number): [number, number] => (text === "" ? [0, length] : (text.split(":").map(Number) as [number, number]));
    const rows = range(p("rows"), SHAPE[down] ?? 1);
    const columns = range(p("columns"), SHAPE[across] ?? 1);
    const width = Math.min(columns[1] - columns[0], Number(p("width")));
    const height = Math.min(rows[1] - rows[0], Number(p("height")));
    const side = p("side") || "difference";
    const cells: unknown[][] = [];
    for (let r = 0; r < height; r++) {
      cells.push([]);
      for (let c = 0; c < width; c++) {
        const row = rows[0] + Math.floor((r * (rows[1] - rows[0])) / height);
        const column = columns[0] + Math.floor((c * (columns[1] - columns[0])) / width);
        cells[r]?.push(json(element(row * 300 + column, side)));
      }
    }
    const isExact = width === columns[1] - columns[0] && height === rows[1] - rows[0];
    return {
      ...sides, side, axes: [down, across], fixed: [0], rows, columns, width, height, is_exact: isExact,
      pooling: isExact ? "none" : side === "difference" ? "largest" : "mean", cells, min: side === "difference" ? -0.01 : -4.2, max: side === "difference" ? 0.8 : 4.4,
    };
  }

  #trendMeta(p: Get): unknown {
    const rows = TARGETS.filter(([, name]) => name.includes(p("q")));
    return {
      metrics: METRICS, ranks: RANKS, steps: STEPS, exact_steps: true, metric: p("metric") || "forward",
      tags: { layer: ["layers.0", "layers.1", "layers.2"], index: ["input.0", "output.0"] }, targets: { total: rows.length, offset: 0, rows: rows.slice(0, 200) },
    };
  }

  #heat(p: Get): unknown {
    const targets = TARGETS.filter(([, name]) => name.includes(p("q")));
    const [x, y] = { step: [RANKS, targets], rank: [STEPS, targets], module: [STEPS, RANKS] }[p("dimension") as "step"];
    if (!x || !y) return null;
    const kinds = { step: ["rank", "module"], rank: ["step", "module"], module: ["step", "rank"] }[p("dimension") as "step"];
    const [xo, yo] = [whole(p("x_offset"), 0), whole(p("y_offset"), 0)];
    const [xs, ys] = [x.slice(xo, xo + 200), y.slice(yo, yo + 200)];
    const fixed = Number(p("value"));
    const cells = ys.map((row) => xs.map((column) => {
      const of = (kind: string): number => {
        const label = kinds?.[0] === kind ? column : kinds?.[1] === kind ? row : fixed;
        return typeof label === "number" ? label : label[0];
      };
      const value = trendValue(of("module"), of("rank"), of("step"), p("against") !== "");
      return value === null ? null : json(value);
    }));
    const isDifference = p("against") !== "";
    return {
      x: { kind: kinds?.[0], total: x.length, offset: xo, labels: xs }, y: { kind: kinds?.[1], total: y.length, offset: yo, labels: ys }, cells,
      min: isDifference ? -1.2 : 1.1, max: isDifference ? 0.3 : 12.3, mean: 5.2, deviation: 2.1, notes: [],
    };
  }

  #line(p: Get): unknown {
    const target = TARGETS[Number(p("targets")) - 1] ?? TARGETS[0];
    const rank = Number(p("ranks"));
    const series = (side: string) => ({
      target, rank, side, values: STEPS.map((step) => {
        const value = trendValue(target?.[0] ?? 1, rank, step, false);
        return value === null ? null : json(side === "against" ? value * 1.1 : value);
      }),
    });
    const all = [series("target"), ...(p("against") === "" ? [] : [series("against")])];
    return { along: "step", x: STEPS, total: STEPS.length, series: all, series_total: all.length, notes: [] };
  }

  #alerts(offset: number, limit: number): unknown {
    const all = Array.from({ length: 240 }, (_, i) => ({
      target: TARGETS[i % 260], rank: i % 8, step: 60 + Math.floor(i / 4), kind: ["nan", "inf", "z", "ratio"][i % 4], value: ["nan", "inf", 7.5, 5e4][i % 4], z: i % 4 === 2 ? 6.1 : null, ratio: i % 4 === 3 ? 4321 : null,
    }));
    return { rule: "NaN, infinite, more than 4 deviations from the 20 values before, or 10 times their median.", total: all.length, alerts: all.slice(offset, offset + limit) };
  }

  #overSteps(): unknown {
    const of = (scale: number): object => {
      const line = STEPS.map((step) => (step % 31 === 30 ? null : scale * (1 + noise(step))));
      return { max: line, min: line.map((value) => value && -value), mean: line.map((value) => value && value * 0.01), norm: line.map((value) => value && value * 88) };
    };
    return { steps: STEPS, target: of(1), golden: of(1.02), error: STEPS.map((step) => 1e-6 * (1 + step) ** 2) };
  }

  #peers(id: number): unknown[] {
    const { places } = this.#data.meta;
    const own = places.findIndex((place) => id >= place.target_root && id < place.target_root + place.nodes);
    const at = places[own];
    if (!at || (this.#data.row(id).flags & FLAG.communicates) === 0) return [];
    return places.flatMap((place, i) => {
      const peer = place.target_root + id - at.target_root;
      if (place.step !== at.step || i === own) return [];
      return [{ place: i, rank: place.rank, id: peer, name: this.#data.name(peer), type: "send_receive", level: this.#data.row(peer).level, mismatch: place.rank === 3 ? "dtype float32 against bfloat16" : "" }];
    });
  }

  #timeline(offset: number, limit: number): unknown {
    const { ranks, places } = this.#data.meta;
    const base = places[0]?.target_root ?? 0;
    const calls = this.#communicating.slice(offset, offset + limit).map((id, i) => ({
      key: `tp_0all_reduce_${offset + i + 1}`, kind: "all_reduce",
      ends: ranks.filter((rank) => !(rank === 5 && i % 7 === 0)).map((rank) => {
        const end = (places[rank]?.target_root ?? 0) + id - base;
        return { rank, id: end, order: id, level: this.#data.row(end).level, mismatch: rank === 3 && i === 4 ? "Norm 12.5 against 12.1" : "" };
      }),
    }));
    return { ranks, calls, total: this.#communicating.length };
  }

  #structure(p: Get): unknown {
    const place = this.#data.meta.places[whole(p("place"), 0)];
    const rows: unknown[] = [];
    for (let id = place?.target_root ?? 0; place && id < place.golden_root; id++) {
      const row = this.#data.row(id);
      const golden = row.partner >= 0 ? this.#data.row(row.partner) : null;
      const isLone = golden === null || id % 40 === 7;
      if (p("only") !== "" && !isLone) continue;
      const suggestion = isLone ? { id: id + 1, name: row.name.replace("_fast", ""), score: 0.93, why: "same shapes, same place among its siblings" } : null;
      rows.push({ target: this.#cells(row), golden: isLone || !golden ? null : this.#cells(golden), depth: row.depth, suggestion });
      if (isLone && id % 40 === 7 && golden) rows.push({ target: null, golden: this.#cells(golden), depth: row.depth, suggestion: null });
    }
    const offset = whole(p("offset"), 0);
    return { fields: FIELDS, total: rows.length, rows: rows.slice(offset, offset + whole(p("limit"), 100)) };
  }

  #baseline(): unknown {
    const rows = this.#data.first.slice(0, 60).map(({ id }) => this.#data.row(id));
    return { better: 40, worse: 12, same: 900, new: 8, rows: this.#table(rows, ({ id }) => ({ change: id % 3 === 0 ? "worse" : id % 3 === 1 ? "better" : "new" })) };
  }
}
