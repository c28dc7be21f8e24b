// A made dataset of any size, for work on the page and for its benchmark: a transformer whose target
// went wrong in one layer. Not part of the bundle.
import type { LocalDataset, LocalDetails } from "../src/local_api";
import type { Level, Meta, NodeRow, NodeType, Place, ValuePair, ValueSide } from "../src/types";
import { success, type Result } from "../src/result";
import { FLAG } from "../src/types";

export interface FakeSize {
  readonly layers: number;
  readonly modules: number;
  readonly calls: number;
  readonly ranks: number;
  readonly steps: number;
}

const LEVELS: readonly Level[] = ["none", "pass", "unmatched", "warning", "error"];
const TYPES: readonly NodeType[] = ["root", "module", "api", "group", "fused"];
const MODULES = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "input_layernorm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "mlp.act_fn", "post_attention_layernorm"];
const KINDS = ["Linear", "Linear", "Linear", "Linear", "LlamaRMSNorm", "Linear", "Linear", "Linear", "SiLU", "LlamaRMSNorm"];
const OPERATORS = ["linear", "matmul", "softmax", "silu", "pow", "mean", "rsqrt", "mul", "add", "all_reduce"];

class Builder {
  readonly names: string[] = [];
  readonly parent: number[] = [];
  readonly type: number[] = [];
  readonly children: number[] = [];
  readonly size: number[] = [];
  readonly depth: number[] = [];
  readonly index: number[] = [];
  readonly level: number[] = [];
  readonly error: number[] = [];
  readonly inputError: number[] = [];
  readonly flags: number[] = [];
  readonly ms: number[] = [];

  add(parent: number, type: number, name: string): number {
    const id = this.names.length;
    this.names.push(name);
    this.parent.push(parent);
    this.type.push(type);
    this.children.push(0);
    this.size.push(1);
    this.depth.push(parent < 0 ? 0 : (this.depth[parent] ?? 0) + 1);
    this.index.push(parent < 0 ? 0 : (this.children[parent] ?? 0));
    this.level.push(1);
    this.error.push(0);
    this.inputError.push(0);
    this.flags.push(0);
    this.ms.push(0);
    if (parent >= 0) this.children[parent] = (this.children[parent] ?? 0) + 1;
    return id;
  }
}

function random(seed: number): () => number {
  return () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) | 0;
    return (seed >>> 8) / 0x1000000;
  };
}

// One place: target nodes, then golden ones. `bad`: the layer where it begins, -1 for none.
function addPlace(b: Builder, size: FakeSize, bad: number, next: () => number): { golden: number; first: number } {
  const start = b.names.length;
  let first = -1;
  for (const side of [0, 1]) {
    const root = b.add(-1, 0, "LlamaForCausalLM");
    for (let layer = 0; layer < size.layers; layer++) {
      const block = `Module.model.layers.${layer}.LlamaDecoderLayer.forward.0`;
      const top = b.add(root, 1, block);
      for (let m = 0; m < size.modules; m++) {
        const name = `Module.model.layers.${layer}.${MODULES[m % 10]}${m >= 10 ? m : ""}.${KINDS[m % 10]}.forward.0`;
        const module = b.add(top, 1, name);
        for (let c = 0; c < size.calls; c++) {
          const op = OPERATORS[(m + c) % OPERATORS.length] ?? "add";
          const extra = side === 0 && layer === 1 && m === 2 && c === size.calls - 1;
          const call = b.add(module, 2, op === "all_reduce" ? `Distributed.all_reduce.${layer * 100 + m * size.calls + c}.forward` : `Functional.${op}${extra ? "_fast" : ""}.${(layer * size.modules + m) * size.calls + c}.forward`);
          if (op === "all_reduce") b.flags[call] = FLAG.communicates;
          const isBad = bad >= 0 && (layer > bad || (layer === bad && (m > 4 || (m === 4 && c >= size.calls >> 1))));
          if (isBad) {
            const isFirst = first < 0;
            if (isFirst) first = call;
            const grown = 0.02 * Math.pow(1.3, layer - bad) * (0.5 + next());
            b.error[call] = isFirst ? 0.31 : grown;
            b.inputError[call] = isFirst ? 1e-7 : grown * 0.9;
            b.level[call] = isFirst || grown > 0.05 ? 4 : 3;
            if (side === 0) b.flags[call] = (b.flags[call] ?? 0) | (isFirst ? FLAG.first | FLAG.source : FLAG.carrier);
          } else {
            b.error[call] = next() * 1e-6;
            b.inputError[call] = next() * 1e-6;
          }
          if (extra) b.level[call] = 2;
        }
      }
    }
    const last = b.add(root, 3, "Apis_Between_Modules.0");
    b.add(last, 2, "Torch.argmax.0.forward");
  }
  return { golden: start + (b.names.length - start) / 2, first };
}

interface Rolled {
  readonly worst: Uint8Array;
  readonly errors: Uint32Array;
  readonly warnings: Uint32Array;
  readonly unmatched: Uint32Array;
}

function rollUp(b: Builder): Rolled {
  const n = b.names.length;
  const out: Rolled = {
    worst: new Uint8Array(n), errors: new Uint32Array(n), warnings: new Uint32Array(n), unmatched: new Uint32Array(n),
  };
  for (let id = n - 1; id >= 0; id--) {
    const parent = b.parent[id] ?? -1;
    if (parent < 0) continue;
    const level = b.level[id] ?? 0;
    b.size[parent] = (b.size[parent] ?? 1) + (b.size[id] ?? 1);
    out.worst[parent] = Math.max(out.worst[parent] ?? 0, out.worst[id] ?? 0, level);
    out.errors[parent] = (out.errors[parent] ?? 0) + (out.errors[id] ?? 0) + (level === 4 ? 1 : 0);
    out.warnings[parent] = (out.warnings[parent] ?? 0) + (out.warnings[id] ?? 0) + (level === 3 ? 1 : 0);
    out.unmatched[parent] = (out.unmatched[parent] ?? 0) + (out.unmatched[id] ?? 0) + (level === 2 ? 1 : 0);
    if (b.children[id] && (b.error[id] ?? 0) > (b.error[parent] ?? 0) && b.parent[parent] !== -1) b.error[parent] = b.error[id] ?? 0;
  }
  // A module is judged by its own outputs: those of its last call.
  for (let id = 0; id < n; id++) {
    if (!b.children[id] || b.type[id] === 0) continue;
    const last = id + (b.size[id] ?? 1) - 1;
    b.error[id] = b.error[last] ?? 0;
    b.inputError[id] = b.inputError[id + 1] ?? 0;
    b.level[id] = Math.max(1, b.level[last] === 2 ? 1 : (b.level[last] ?? 1));
  }
  return out;
}

function side(value: number, dtype: string, shape: readonly number[]): ValueSide {
  return {
    type: "torch.Tensor", dtype, shape, max: value * 3.1, min: -value * 2.9, mean: value * 0.013,
    norm: value * 88.25, value: null, md5: "", requires_grad: false, data_name: "",
  };
}

function values(id: number, row: NodeRow, isOneSided: boolean): ValuePair[] {
  const next = random(id + 7);
  const pair = (name: string, role: ValuePair["role"], error: number | null, shape: readonly number[]): ValuePair => {
    const base = 1 + next();
    const is = row.level === "unmatched" || isOneSided;
    const shift = error ?? 0;
    return {
      name, role, target: side(base * (1 + shift), "torch.bfloat16", shape), golden: is ? null : side(base, "torch.bfloat16", shape),
      verdict: is ? "not comparable" : shift > 0.05 ? "broken" : shift > 0.01 ? "suspicious" : shift > 0 ? "within noise" : "same",
      reason: is ? "missing" : shift > 0.01 ? "error-not-explained" : "explained",
      reason_text: is ? "the other recording has no such value" : shift > 0.01 ? `relative error ${shift.toPrecision(3)} is beyond 8 roundings of bfloat16 (0.031) and the inputs explain 2e-7` : "within what rounding explains",
      error: is ? null : error, explained: is ? null : (row.input_error ?? 0) * 1.5,
      metrics: { "MaxRelativeErr": shift, "MinRelativeErr": shift * 0.8, "MeanRelativeErr": shift * 1.4, "NormRelativeErr": shift * 0.2 },
      notes: [],
    };
  };
  return [
    pair("input.0", "input", row.input_error, [2, 128, 4096]),
    pair("weight", "parameter", 0, [4096, 4096]),
    pair("output.0", "output", row.error, [2, 128, 4096]),
  ];
}

export function makeFake(size: FakeSize): LocalDataset {
  const b = new Builder();
  const next = random(42);
  const raw: { step: number; rank: number; start: number; golden: number; end: number; first: number }[] = [];
  for (let step = 0; step < size.steps; step++) {
    for (let rank = 0; rank < size.ranks; rank++) {
      const start = b.names.length;
      const { golden, first } = addPlace(b, size, size.ranks > 1 && rank === size.ranks - 1 ? -1 : Math.floor(size.layers * 0.4), next);
      raw.push({ step, rank, start, golden, end: b.names.length, first });
    }
  }
  const rolled = rollUp(b);
  const row = (id: number): NodeRow => {
    const place = raw.find((p) => id < p.end) ?? raw[0];
    const half = place ? place.golden - place.start : 0;
    const isGolden = place !== undefined && id >= place.golden;
    const judged = isGolden ? id - half : id;
    const level = LEVELS[b.level[judged] ?? 0] ?? "none";
    return {
      id, parent: b.parent[id] ?? -1, partner: level === "unmatched" ? -1 : isGolden ? id - half : id + half,
      name: b.names[id] ?? "", type: TYPES[b.type[id] ?? 0] ?? "api", children: b.children[id] ?? 0,
      size: b.size[id] ?? 1, depth: b.depth[id] ?? 0, index: b.index[id] ?? 0,
      order: id - (isGolden ? (place?.golden ?? 0) : (place?.start ?? 0)), level, overflow: level !== "error" ? "" : (b.flags[id] ?? 0) & FLAG.first ? "critical" : id % 3 === 0 ? "medium" : "high",
      worst: LEVELS[rolled.worst[judged] ?? 0] ?? "none", errors: rolled.errors[judged] ?? 0,
      warnings: rolled.warnings[judged] ?? 0, unmatched: rolled.unmatched[id] ?? 0, ms: b.ms[id] ?? 0,
      error: level === "unmatched" || b.type[id] === 0 ? null : (b.error[judged] ?? 0),
      input_error: level === "unmatched" || b.type[id] === 0 ? null : (b.inputError[judged] ?? 0),
      flags: b.flags[id] ?? 0, hits: -1, is_hit: false, change: "",
    };
  };
  return new Fake(b, row, fakeMeta(b, raw), raw.map((p) => p.first).filter((id) => id >= 0));
}

interface RawPlace {
  readonly step: number;
  readonly rank: number;
  readonly start: number;
  readonly golden: number;
  readonly end: number;
  readonly first: number;
}

function fakeMeta(b: Builder, raw: readonly RawPlace[]): Meta {
  const places: Place[] = raw.map((p) => {
    const counts = { pass: 0, warning: 0, error: 0, none: 0, unmatched_target: 1, unmatched_golden: 1 };
    for (let id = p.start; id < p.golden; id++) {
      const level = LEVELS[b.level[id] ?? 0] ?? "none";
      if (level !== "unmatched") counts[level]++;
    }
    return {
      step: p.step, rank: p.rank, target_root: p.start, golden_root: p.golden, nodes: p.golden - p.start,
      golden_nodes: p.end - p.golden, micro_steps: 1, counts, overflows: { medium: 0, high: 0, critical: 0 },
      answer: p.first >= 0 ? `First wrong call: ${b.names[p.first]}` : "No wrong call.", first: p.first >= 0 ? (b.names[p.first] ?? "") : "",
    };
  });
  const bad = raw.find((p) => p.first >= 0);
  const name = bad ? (b.names[bad.first] ?? "") : "";
  return {
    etag: "fake", kind: "compare", mode: "statistics", target: "/data/runs/llama-fused/dump", golden: "/data/runs/llama-eager/dump",
    answer: bad
      ? [`First wrong call: ${name}`, "output.0: relative error 0.31, its inputs are fine (1e-07)", "Cause: another epsilon in the normalisation (confidence high)"]
      : ["No wrong call: every value agrees within what rounding explains."],
    complete: true, source: "plumbline",
    first: bad
      ? {
        id: bad.first, place: 0, name, what: "output.0 is wrong while all inputs are fine", item: "output.0",
        cause: "epsilon", cause_text: "another epsilon in the normalisation", confidence: "high",
        stack_line: "File modeling_llama.py, line 74, in forward, hidden_states * torch.rsqrt(variance + self.variance_epsilon)",
        stack: STACK, module_path: ["model", "layers.4", "input_layernorm"],
      }
      : null,
    steps: [...new Set(raw.map((p) => p.step))], ranks: [...new Set(raw.map((p) => p.rank))], micro_steps: 1,
    overflow_check: true, has_tensors: true, places, notes: [], facts: {},
  };
}

const STACK = [
  "File modeling_llama.py, line 74, in forward, \n hidden_states * torch.rsqrt(variance + self.variance_epsilon)",
  "File modeling_llama.py, line 310, in forward, \n hidden_states = self.input_layernorm(hidden_states)",
  "File modeling_llama.py, line 530, in forward, \n layer_outputs = decoder_layer(hidden_states)",
  "File train.py, line 88, in step, \n loss = model(**batch).loss",
];

class Fake implements LocalDataset {
  readonly meta: Meta;
  readonly nodeCount: number;
  readonly row: (id: number) => NodeRow;
  readonly first: LocalDataset["first"];
  readonly firstOrder = "step, micro step, call; a receive after its send";
  readonly #names: readonly string[];

  constructor(b: Builder, row: (id: number) => NodeRow, meta: Meta, sources: readonly number[]) {
    this.#names = b.names;
    this.row = row;
    this.meta = meta;
    this.nodeCount = b.names.length;
    const carriers: number[] = [];
    for (let id = 0; id < b.names.length && carriers.length < 300; id++) {
      if ((b.flags[id] ?? 0) & FLAG.carrier) carriers.push(id);
    }
    this.first = [
      ...sources.map((id, i) => ({ id, kind: i === 0 ? ("first" as const) : ("source" as const), why: "output.0: relative error 0.31 is beyond 8 roundings of bfloat16 (0.031); the inputs explain 2e-7" })),
      ...carriers.map((id) => ({ id, kind: "carrier" as const, why: "its inputs are already wrong; what it adds is explained by them" })),
    ];
  }

  name(id: number): string {
    return this.#names[id] ?? "";
  }

  async load(): Promise<Result<unknown>> {
    return success(null);
  }

  details(id: number): LocalDetails {
    const row = this.row(id);
    const isBad = row.level === "error" || row.level === "warning";
    return {
      stack: STACK, golden_stack: STACK.slice(0, 3), pairing: row.partner >= 0 ? "same name and shapes" : "",
      verdict: isBad ? "broken" : "same", reason: isBad ? "error-not-explained" : "",
      reason_text: isBad ? "output.0 differs by 0.31 while the inputs explain only 2e-7 of it" : "everything agrees within rounding",
      merge: [], values: row.type === "root" ? [] : values(id, row, false),
    };
  }

  dtypes(): readonly string[] {
    return ["torch.bfloat16"];
  }
  shapes(): readonly string[] {
    return ["[2,128,4096]"];
  }
  overSteps(): null {
    return null;
  }
}
