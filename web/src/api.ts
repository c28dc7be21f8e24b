// What the page asks, and the one place that sends it over HTTP. docs/design/viewer.md, "Questions".
import { decode, type Decoder } from "./decode";
import * as d from "./decoders";
import { failure, success, type Result } from "./result";
import type * as t from "./types";

export type Parameters = Readonly<Record<string, string | number | boolean | undefined>>;

export interface ChildrenQuestion {
  readonly nodes: readonly number[];
  readonly offset?: number;
  readonly limit?: number;
  readonly ms?: number;
  readonly q?: string;
  readonly base?: string;
}

export interface FindQuestion {
  readonly q: string;
  readonly place?: number;
  readonly side?: t.Side;
  readonly cursor?: string;
  readonly limit?: number;
  readonly order?: t.FindOrder;
}

export type EventKind = "datasets" | "jobs";

const map = <T, U>(result: Result<T>, change: (value: T) => U): Result<U> =>
  result.ok ? success(change(result.value)) : result;

const of = (dataset: string, question: string): string =>
  `d/${encodeURIComponent(dataset)}/${question}`;

// Where the answers come from: a program, or data in the page itself.
export abstract class Api {
  // False where nothing can be opened, matched or exported: the page stands in a file.
  abstract readonly isServed: boolean;
  protected abstract get(path: string, parameters: Parameters): Promise<Result<unknown>>;
  protected abstract post(path: string, body: unknown): Promise<Result<unknown>>;
  protected abstract remove(path: string): Promise<Result<unknown>>;
  // Calls back with every change; returns what ends that.
  abstract watch(kind: EventKind, changed: () => void): () => void;
  // Address of a job's file.
  abstract jobFile(job: string): string;

  // Any question whose address and answer a view knows itself.
  async ask<T>(path: string, parameters: Parameters, answer: Decoder<T>): Promise<Result<T>> {
    const got = await this.get(path, parameters);
    return got.ok ? decode(answer, got.value, path) : got;
  }

  async tell<T>(path: string, body: unknown, answer: Decoder<T>): Promise<Result<T>> {
    const got = await this.post(path, body);
    return got.ok ? decode(answer, got.value, path) : got;
  }

  datasets() {
    return this.ask("datasets", {}, d.datasets);
  }
  async recordings(path: string) {
    return map(await this.ask("recordings", { path }, d.recordings), (answer) => answer.entries);
  }
  async open(target: string, golden: string) {
    return map(await this.tell("open", { target, golden }, d.opened), (answer) => answer.id);
  }
  meta(dataset: string) {
    return this.ask(of(dataset, "meta"), {}, d.meta);
  }
  async children(dataset: string, question: ChildrenQuestion) {
    const { nodes, ...rest } = question;
    const answer = await this.ask(of(dataset, "children"), { node: nodes.join(","), ...rest }, d.childLists);
    return map(answer, (value) => value.lists);
  }
  path(dataset: string, node: number) {
    return this.ask(of(dataset, "path"), { node }, d.pathAnswer);
  }
  pathOf(dataset: string, name: string, place: number, side: t.Side) {
    return this.ask(of(dataset, "path"), { name, place, side }, d.pathAnswer);
  }
  node(dataset: string, node: number) {
    return this.ask(of(dataset, "node"), { node }, d.nodeDetails);
  }
  find(dataset: string, question: FindQuestion) {
    return this.ask(of(dataset, "find"), { ...question }, d.found);
  }
  first(dataset: string, place: number, offset = 0, limit = 100) {
    return this.ask(of(dataset, "first"), { place, offset, limit }, d.firstList);
  }
  flow(dataset: string, node: number, offset: number, limit: number) {
    return this.ask(of(dataset, "flow"), { node, offset, limit }, d.flow);
  }
  async peers(dataset: string, node: number) {
    return map(await this.ask(of(dataset, "comm"), { node }, d.peers), (answer) => answer.peers);
  }
  timeline(dataset: string, step: number, offset: number, limit: number) {
    return this.ask(of(dataset, "timeline"), { step, offset, limit }, d.timeline);
  }
  structure(dataset: string, question: Parameters) {
    return this.ask(of(dataset, "structure"), question, d.structure);
  }
  overSteps(dataset: string, node: number, value: string) {
    return this.ask(of(dataset, "over_steps"), { node, value }, d.overSteps);
  }
  source(dataset: string, file: string, line: number) {
    return this.ask(of(dataset, "source"), { file, line }, d.sourceText);
  }
  baseline(dataset: string, base: string, offset: number, limit: number) {
    return this.ask(of(dataset, "baseline"), { base, offset, limit }, d.baseline);
  }
  matches(dataset: string) {
    return this.ask(of(dataset, "matches"), {}, d.matches);
  }
  match(dataset: string, request: t.MatchRequest) {
    return this.tell(of(dataset, "match"), request, d.matches);
  }
  unmatch(dataset: string, request: t.MatchRequest) {
    return this.tell(of(dataset, "unmatch"), request, d.matches);
  }
  undo(dataset: string) {
    return this.tell(of(dataset, "undo"), {}, d.matches);
  }
  mapping(dataset: string) {
    return this.ask(of(dataset, "mapping"), {}, d.mapping);
  }
  async export(dataset: string, format: t.ExportFormat, what: Parameters) {
    const answer = await this.tell(of(dataset, "export"), { format, ...what }, d.startedJob);
    return map(answer, (started) => started.job);
  }
  async jobs() {
    return map(await this.ask("jobs", {}, d.jobs), (answer) => answer.jobs);
  }
  cancel(job: string) {
    return this.remove(`jobs/${encodeURIComponent(job)}`);
  }
}

export class HttpApi extends Api {
  readonly isServed = true;
  readonly #base: string;
  #events: EventSource | null = null;

  // `base`: address below which `api/` lies, with a slash at its end.
  constructor(base: string) {
    super();
    this.#base = base;
  }

  override watch(kind: EventKind, changed: () => void): () => void {
    this.#events ??= new EventSource(`${this.#base}api/events`);
    const events = this.#events;
    events.addEventListener(kind, changed);
    return () => events.removeEventListener(kind, changed);
  }

  override jobFile(job: string): string {
    return `${this.#base}api/jobs/${encodeURIComponent(job)}/file`;
  }

  protected override get(path: string, parameters: Parameters): Promise<Result<unknown>> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters)) {
      if (value !== undefined) query.set(name, String(value));
    }
    const text = query.toString();
    return this.#send(text === "" ? path : `${path}?${text}`, {});
  }

  protected override post(path: string, body: unknown): Promise<Result<unknown>> {
    return this.#send(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  }

  protected override remove(path: string): Promise<Result<unknown>> {
    return this.#send(path, { method: "DELETE" });
  }

  async #send(path: string, options: RequestInit): Promise<Result<unknown>> {
    let response: Response;
    let text: string;
    try {
      response = await fetch(`${this.#base}api/${path}`, { credentials: "same-origin", ...options });
      text = await response.text();
    } catch {
      return failure("no-answer", "The program does not answer. Is \"plumb view\" still running?");
    }
    let body: unknown;
    try {
      body = text === "" ? {} : JSON.parse(text);
    } catch {
      return failure("bad-answer", `${path.split("?")[0]}: the answer is no JSON (HTTP ${response.status})`);
    }
    if (response.ok) return success(body);
    const told = decode(d.failureBody, body, path);
    return told.ok
      ? failure(told.value.error.code, told.value.error.message)
      : failure("bad-answer", `The program refused the question (HTTP ${response.status}).`);
  }
}
