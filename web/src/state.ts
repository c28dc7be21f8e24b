// What the page shows, as its address says it: everything that a colleague must see in the same way.
// Names, never ids, so that a link outlives the index it was made from.
import type { Side } from "./types";

export interface Camera {
  readonly x: number;
  readonly y: number;
  readonly zoom: number;
}

export interface State {
  // Empty: the list of datasets.
  readonly dataset: string;
  // Key of a view in views.ts.
  readonly view: string;
  // -1: the first there is.
  readonly step: number;
  readonly rank: number;
  // -1: all micro steps.
  readonly ms: number;
  readonly side: Side;
  // Name of the selected node; empty: none.
  readonly node: string;
  // Value of the selected node, as "output.0".
  readonly param: string;
  readonly q: string;
  readonly base: string;
  readonly colours: "level" | "overflow";
  readonly cam: Camera | null;
  // What a view keeps beside these, as "x.metric": "norm". Empty texts are left out.
  readonly extra: Readonly<Record<string, string>>;
}

export const NO_STATE: State = {
  dataset: "",
  view: "graph",
  step: -1,
  rank: -1,
  ms: -1,
  side: "target",
  node: "",
  param: "",
  q: "",
  base: "",
  colours: "level",
  cam: null,
  extra: {},
};

const EXTRA = "x.";

function wholeNumber(text: string | null): number {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : -1;
}

function camera(text: string | null): Camera | null {
  const parts = (text ?? "").split(",").map(Number);
  const [x, y, zoom] = parts;
  if (parts.length !== 3 || x === undefined || y === undefined || zoom === undefined) return null;
  return Number.isFinite(x) && Number.isFinite(y) && zoom > 0 && zoom < 1e6 ? { x, y, zoom } : null;
}

// `address`: "g/{dataset}?step=0&...", what follows the page's own place. Anything else, or empty: no
// dataset.
export function parseState(address: string): State {
  const [path = "", query = ""] = address.split(/\?(.*)/s);
  const dataset = /^\/?g\/([^/]+)\/?$/.exec(path)?.[1] ?? "";
  const p = new URLSearchParams(query);
  const extra: Record<string, string> = {};
  for (const [key, value] of p) {
    if (key.startsWith(EXTRA) && value !== "") extra[key.slice(EXTRA.length)] = value;
  }
  return {
    dataset: safeDecode(dataset),
    view: p.get("view") || NO_STATE.view,
    step: wholeNumber(p.get("step")),
    rank: wholeNumber(p.get("rank")),
    ms: wholeNumber(p.get("ms")),
    side: p.get("side") === "g" ? "golden" : "target",
    node: p.get("node") ?? "",
    param: p.get("param") ?? "",
    q: p.get("q") ?? "",
    base: p.get("base") ?? "",
    colours: p.get("colours") === "overflow" ? "overflow" : "level",
    cam: camera(p.get("cam")),
    extra,
  };
}

function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// The inverse of parseState: what is as in NO_STATE is left out.
export function formatState(state: State): string {
  if (state.dataset === "") return "";
  const p = new URLSearchParams();
  if (state.step >= 0) p.set("step", String(state.step));
  if (state.rank >= 0) p.set("rank", String(state.rank));
  if (state.ms >= 0) p.set("ms", String(state.ms));
  if (state.side === "golden") p.set("side", "g");
  if (state.node !== "") p.set("node", state.node);
  if (state.view !== NO_STATE.view) p.set("view", state.view);
  if (state.param !== "") p.set("param", state.param);
  if (state.q !== "") p.set("q", state.q);
  if (state.base !== "") p.set("base", state.base);
  if (state.colours !== "level") p.set("colours", state.colours);
  if (state.cam) p.set("cam", [state.cam.x, state.cam.y, state.cam.zoom].map(shortNumber).join(","));
  for (const [key, value] of Object.entries(state.extra)) {
    if (value !== "") p.set(EXTRA + key, value);
  }
  const query = p.toString();
  return `g/${encodeURIComponent(state.dataset)}${query === "" ? "" : `?${query}`}`;
}

const shortNumber = (value: number): string => String(Number(value.toPrecision(7)));

// Where the page stands and how its address holds a state. A served page uses paths, one in a file
// only the part behind "#", which needs no server.
export class Address {
  readonly #isServed: boolean;
  // Address of the page itself, with a slash at its end where it is served.
  readonly base: string;

  constructor(isServed: boolean) {
    this.#isServed = isServed;
    this.base = isServed ? location.pathname.replace(/(g\/[^/]*\/?|[^/]*)$/, "") : location.pathname + location.search;
  }

  read(): State {
    if (!this.#isServed) return parseState(location.hash.slice(1));
    return parseState(location.pathname.slice(this.base.length) + location.search);
  }

  // `isStep`: whether the browser's "back" returns to the state before.
  write(state: State, isStep: boolean): void {
    const text = formatState(state);
    const url = this.#isServed ? this.base + text : `${this.base}#/${text}`;
    if (isStep) history.pushState(null, "", url);
    else history.replaceState(null, "", url);
  }
}
