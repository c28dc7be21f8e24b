// The page around the views: reads the address, loads what it names, and hands keys to who uses them.
import { render } from "preact";
import type { Api } from "./api";
import { Hits } from "./hits";
import { actionOf, isTyping, type Action } from "./keys";
import { Layout } from "./layout";
import { Help, GoToName, SourceDialog } from "./panels/dialogs";
import { ExportDialog } from "./panels/export";
import type { Theme } from "./panels/top_bar";
import { metaWithoutGraph } from "./dataset_kind";
import { failure, success, type Failure, type Result } from "./result";
import { Session, type SessionEvents } from "./session";
import { NO_STATE, type Address, type State } from "./state";
import { speaker, type Language, type Say } from "./texts";
import type { Dataset, Datasets, FirstWrong, Meta, NodeRow, SourceText } from "./types";
import type { Context, GoOptions, View, ViewKind } from "./view";
import { viewsOf } from "./views";

type OpenDialog = "" | "help" | "name" | "export" | { readonly line: number; readonly source: Result<SourceText> };

const NOTICE_MS = 6000;
const POLL_MS = 1000;

export function startPage(root: HTMLElement, api: Api, address: Address): void {
  void new Page(root, api, address).start();
}

class Page {
  readonly #root: HTMLElement;
  readonly #api: Api;
  readonly #address: Address;
  readonly #viewRoot = document.createElement("div");
  #state: State = NO_STATE;
  #say: Say;
  #language: Language;
  #theme: Theme;
  #datasets: Result<Datasets> | null = null;
  #session: Session | null = null;
  #view: View | null = null;
  #kind: ViewKind | null = null;
  #dialog: OpenDialog = "";
  #notice = "";
  #failure: Failure | null = null;
  #noticeTimer = 0;
  #ticket = 0;
  #datasetsAsked = 0;
  #isDrawQueued = false;
  #isDrawing = false;

  constructor(root: HTMLElement, api: Api, address: Address) {
    this.#root = root;
    this.#api = api;
    this.#address = address;
    this.#viewRoot.className = "view";
    this.#viewRoot.id = "view";
    this.#language = kept("language") === "zh" || (kept("language") === "" && navigator.language.startsWith("zh")) ? "zh" : "en";
    const theme = kept("theme");
    this.#theme = theme === "light" || theme === "dark" ? theme : "auto";
    this.#say = speaker(this.#language);
  }

  async start(): Promise<void> {
    this.#applyTheme();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#applyTheme());
    document.addEventListener("keydown", (event) => this.#key(event));
    const moved = (): void => void this.#apply(this.#address.read());
    addEventListener("popstate", moved);
    addEventListener("hashchange", moved);
    this.#api.watch("datasets", () => void this.#datasetsChanged());
    this.#draw();
    this.#datasets = await this.#api.datasets();
    const state = this.#address.read();
    const only = this.#datasets.ok && this.#datasets.value.datasets.length === 1 ? this.#datasets.value.datasets[0] : undefined;
    if (state.dataset === "" && only) this.#go({ ...state, dataset: only.id }, { replace: true });
    else await this.#apply(state);
  }

  // --- State

  #go(change: Partial<State>, options: GoOptions = {}): void {
    const next = { ...this.#state, ...change };
    const isSame = JSON.stringify(next) === JSON.stringify(this.#state);
    if (!isSame) this.#address.write(next, options.replace !== true);
    void this.#apply(next);
  }

  async #apply(state: State): Promise<void> {
    const ticket = ++this.#ticket;
    const before = this.#state;
    this.#state = state;
    this.#draw();
    if (state.dataset === "") {
      this.#dropSession();
      return;
    }
    if (!this.#session || this.#session.dataset !== state.dataset) {
      await this.#load(state.dataset, ticket);
      if (ticket !== this.#ticket) return;
    }
    const session = this.#session;
    if (!session) return;
    this.#applyQuery(session, state, before);
    await this.#applyPlace(session, state);
    if (ticket !== this.#ticket) return;
    await this.#applySelection(session, state);
    if (ticket === this.#ticket) this.#draw();
  }

  async #load(dataset: string, ticket: number): Promise<void> {
    this.#dropSession();
    const known = this.#datasets?.ok ? this.#datasets.value.datasets.find(({ id }) => id === dataset) : undefined;
    const meta = await this.#metaOf(dataset, known);
    if (ticket !== this.#ticket) return;
    if (meta.ok) {
      this.#failure = null;
      this.#session = new Session(this.#api, dataset, meta.value, this.#events());
    } else if (known?.state === "building") {
      this.#failure = null;
      setTimeout(() => ticket === this.#ticket && void this.#datasetsChanged(), POLL_MS);
    } else {
      this.#failure = known?.state === "failed" ? { code: "failed", message: known.error } : meta.error;
    }
  }

  // Nothing is asked of a comparison that has not found anything yet.
  #metaOf(dataset: string, known: Dataset | undefined): Promise<Result<Meta>> {
    if (known && known.kind !== "graph" && known.state === "ready") return Promise.resolve(success(metaWithoutGraph(known)));
    if (known?.state === "building" && known.etag === "") return Promise.resolve(failure("building", ""));
    return this.#api.meta(dataset);
  }

  #events(): SessionEvents {
    return { changed: () => this.#queueDraw(), failed: (error) => this.#tell(this.#say("app.error", error.message)) };
  }

  async #applyPlace(session: Session, state: State): Promise<void> {
    const place = session.placeOf(state.step, state.rank);
    const filter = { ms: state.ms, q: state.q, base: state.base };
    const isSame = place === session.place && JSON.stringify(filter) === JSON.stringify(session.filter);
    if (isSame) return;
    const isFirst = session.place < 0;
    const isMoved = place !== session.place;
    await session.show(place, filter);
    if (isMoved) session.deselect();
    if (isFirst && state.node === "" && state.q === "" && session.meta.first) this.#goFirst({ replace: true });
    else if (state.node === "" && (isFirst || isMoved)) await session.openFew();
  }

  #applyQuery(session: Session, state: State, before: State): void {
    const order = state.extra["order"] ?? "execution";
    const place = session.placeOf(state.step, state.rank);
    const label = `${state.q}\n${order}\n${place}`;
    if (state.q === "") {
      if (before.q !== "" || session.hits?.label.startsWith("\n") === false) session.hits = null;
      return;
    }
    if (session.hits?.label === label) return;
    session.hits = new Hits(label, (cursor) => session.api.find(session.dataset, {
      q: state.q, place, cursor, order: order === "name" || order === "error" ? order : "execution",
    }), () => this.#queueDraw());
  }

  async #applySelection(session: Session, state: State): Promise<void> {
    if (state.node === "") {
      if (session.selected) session.deselect();
      return;
    }
    if (session.selected?.name === state.node && session.side === state.side) return;
    const found = await session.selectName(state.node, state.side);
    if (found === "nearest") this.#tell(this.#say("app.nearest", state.node.slice(0, 120)));
    if (found === "none") this.#tell(this.#say("app.not-here"));
  }

  #dropSession(): void {
    this.#view?.dispose();
    this.#view = this.#kind = this.#session = null;
    this.#viewRoot.replaceChildren();
    this.#draw();
  }

  async #datasetsChanged(): Promise<void> {
    const asked = ++this.#datasetsAsked;
    const got = await this.#api.datasets();
    if (asked !== this.#datasetsAsked) return;  // a later answer may have come before
    const before = this.#datasets;
    this.#datasets = got;
    const of = (answer: Result<Datasets> | null) =>
      answer?.ok ? answer.value.datasets.find(({ id }) => id === this.#state.dataset) : undefined;
    const now = of(this.#datasets);
    const isNew = now !== undefined && now.etag !== this.#session?.meta.etag;
    if (this.#state.dataset !== "" && isNew && (now.state !== "building" || now.etag !== of(before)?.etag || !this.#session)) {
      const first = this.#session?.meta.first;
      const isInView = this.#viewRoot.contains(document.activeElement);
      this.#dropSession();
      await this.#apply(this.#state);
      if (isInView) this.#viewRoot.querySelector<HTMLElement>("[tabindex='0']")?.focus();
      const then = this.#session?.meta.first;
      if (first !== undefined && first?.name !== then?.name) this.#tell(this.#say("app.first-changed", then?.name ?? "–"));
    } else {
      this.#draw();
    }
  }

  // --- What views may do

  readonly #context = (session: Session): Context => ({
    api: this.#api,
    session,
    say: this.#say,
    go: (change, options) => this.#go(change, options),
    select: (row, view) => this.#select(row, view),
    first: () => this.#goFirst(),
    notice: (text) => this.#tell(text),
    copy: (text, said) => void this.#copy(text, said ?? this.#say("details.copied")),
    source: (file, line) => void this.#showSource(file, line),
  });

  #select(row: NodeRow, view?: string): void {
    const session = this.#session;
    if (!session) return;
    const place = session.meta.places.findIndex((p) => inPlace(row.id, p));
    const side = place === session.place ? session.sideOf(row.id) : this.#state.side;
    if (place === session.place) void session.select(row);
    session.hits?.stand(row.id);
    const at = session.meta.places[place];
    this.#go({
      node: row.name, side, param: "", ...(view && { view }),
      ...(place !== session.place && at && { step: at.step, rank: at.rank }),
    });
  }

  #tell(text: string): void {
    this.#notice = text;
    clearTimeout(this.#noticeTimer);
    this.#noticeTimer = window.setTimeout(() => {
      this.#notice = "";
      this.#draw();
    }, NOTICE_MS);
    this.#draw();
  }

  async #copy(text: string, said: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      this.#tell(said);
    } catch {
      this.#tell(this.#say("app.copy-failed"));
    }
  }

  async #showSource(file: string, line: number): Promise<void> {
    const source = this.#session ? await this.#api.source(this.#session.dataset, file, line) : failure("", "");
    this.#dialog = { line, source };
    this.#draw();
  }

  #goFirst(options?: GoOptions): void {
    const first = this.#session?.meta.first;
    const place = first ? this.#session?.meta.places[first.place] : undefined;
    if (!first || !place) return;
    const side = place.golden_root >= 0 && first.id >= place.golden_root ? "golden" : "target";
    this.#go({ step: place.step, rank: place.rank, side, node: first.name, param: withoutCall(first) }, options);
  }

  // --- Keys

  #key(event: KeyboardEvent): void {
    if (event.defaultPrevented || this.#dialog !== "" || isTyping(event)) return;
    const action = actionOf(event);
    const isButton = event.target instanceof HTMLElement && /^(BUTTON|SUMMARY|A)$/.test(event.target.tagName);
    if (isButton && (event.key === "Enter" || event.key === " ")) return;
    const used = (action !== null && this.#act(action)) || this.#view?.key?.(event) === true;
    if (used) event.preventDefault();
  }

  #act(action: Action): boolean {
    const session = this.#session;
    if (action === "help") return this.#open("help");
    if (!session) return false;
    const simple: Partial<Record<Action, () => void>> = {
      first: () => this.#go({ view: "first" }),
      query: () => document.getElementById("query")?.focus(),
      name: () => this.#open("name"),
      values: () => this.#goValues(session),
      trend: () => this.#goView("trend"),
      communication: () => this.#goView("timeline"),
      overflow: () => this.#go({ colours: this.#state.colours === "level" ? "overflow" : "level" }, { replace: true }),
      "view-graph": () => this.#go({ view: "graph" }),
      "view-outline": () => this.#go({ view: "outline" }),
      "view-list": () => this.#go({ view: "list" }),
      "next-step": () => this.#stepPlace("steps", 1),
      "previous-step": () => this.#stepPlace("steps", -1),
      "next-rank": () => this.#stepPlace("ranks", 1),
      "previous-rank": () => this.#stepPlace("ranks", -1),
      "next-ms": () => this.#stepMicro(1),
      "previous-ms": () => this.#stepMicro(-1),
      share: () => void this.#copy(location.href, this.#say("app.copied")),
      undo: () => void this.#undo(session),
      back: () => history.back(),
    };
    const act = simple[action];
    if (act) act();
    else if (action === "partner" && session.partner) this.#select(session.partner);
    else if (action === "link") session.isLinked = !session.isLinked;
    else if (action === "next-hit" || action === "previous-hit") return this.#stepHit(session, action === "next-hit" ? 1 : -1);
    else if (action === "escape") return this.#escape();
    else return false;
    this.#draw();
    return true;
  }

  #open(dialog: OpenDialog): boolean {
    this.#dialog = dialog;
    this.#draw();
    return true;
  }

  #escape(): boolean {
    if (this.#state.q !== "") this.#go({ q: "" });
    else if (this.#notice !== "") this.#notice = "";
    else return false;
    this.#draw();
    return true;
  }

  #goView(key: "trend" | "timeline"): void {
    if (!this.#session) return;
    if (viewsOf(this.#session).some((view) => view.key === key)) this.#go({ view: key });
    else this.#tell(this.#say("app.not-applicable", this.#say(`view.${key}`)));
  }

  #goValues(session: Session): void {
    const values = session.details?.ok ? session.details.value.values : [];
    const param = this.#state.param || (values.find((value) => value.role === "output") ?? values[0])?.name || "";
    this.#go({ view: "value", param });
  }

  #stepHit(session: Session, by: 1 | -1): boolean {
    const { hits } = session;
    if (!hits) return false;
    void hits.step(by).then((row) => row && this.#select(row));
    return true;
  }

  #stepPlace(axis: "steps" | "ranks", by: number): void {
    const session = this.#session;
    const place = session?.placeInfo();
    if (!session || !place) return;
    const values = session.meta[axis];
    const next = values[values.indexOf(axis === "steps" ? place.step : place.rank) + by];
    if (next !== undefined) this.#go(axis === "steps" ? { step: next, rank: place.rank } : { rank: next, step: place.step });
  }

  #stepMicro(by: number): void {
    const count = this.#session?.placeInfo()?.micro_steps ?? 1;
    const ms = Math.min(Math.max(this.#state.ms + by, -1), count - 1);
    if (count > 1) this.#go({ ms });
  }

  async #undo(session: Session): Promise<void> {
    const done = await this.#api.undo(session.dataset);
    this.#tell(done.ok ? this.#say("app.undone") : done.error.message);
    if (!done.ok) return;
    session.matched++;
    await this.#datasetsChanged();
  }

  // --- Drawing

  #applyTheme(): void {
    const isDark = this.#theme === "dark" || (this.#theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
    document.documentElement.dataset["theme"] = isDark ? "dark" : "light";
    this.#view?.show(this.#state);
  }

  #nextTheme(): void {
    this.#theme = this.#theme === "auto" ? "light" : this.#theme === "light" ? "dark" : "auto";
    keep("theme", this.#theme);
    this.#applyTheme();
    this.#draw();
  }

  #nextLanguage(): void {
    this.#language = this.#language === "en" ? "zh" : "en";
    keep("language", this.#language);
    this.#say = speaker(this.#language);
    document.documentElement.lang = this.#language;
    this.#view?.dispose();
    this.#view = this.#kind = null;
    this.#draw();
  }

  #queueDraw(): void {
    if (this.#isDrawQueued) return;
    this.#isDrawQueued = true;
    requestAnimationFrame(() => {
      this.#isDrawQueued = false;
      this.#draw();
    });
  }

  // The view that the state names, or the first one that has anything to show.
  #chooseView(session: Session): void {
    const usable = viewsOf(session);
    const kind = usable.find((view) => view.key === this.#state.view) ?? usable[0] ?? null;
    if (kind === this.#kind) return;
    this.#view?.dispose();
    this.#viewRoot.replaceChildren();
    this.#kind = kind;
    this.#view = kind?.create(this.#viewRoot, this.#context(session)) ?? null;
  }

  // What is drawn may ask for a drawing itself, as effects of the one before do. Begun within the
  // other it would make a view twice, so it comes with the next frame.
  #draw(): void {
    if (this.#isDrawing) return this.#queueDraw();
    this.#isDrawing = true;
    try {
      this.#drawNow();
    } finally {
      this.#isDrawing = false;
    }
  }

  #drawNow(): void {
    const session = this.#session;
    if (session?.isReady) this.#chooseView(session);
    const building = this.#datasets?.ok ? this.#datasets.value.datasets.find(({ id }) => id === this.#state.dataset) : undefined;
    render(
      <Layout
        say={this.#say} state={this.#state} context={session && this.#context(session)} viewRoot={this.#viewRoot} view={this.#kind?.key ?? ""}
        api={this.#api} datasets={this.#datasets} theme={this.#theme} notice={this.#notice} failure={this.#failure}
        progress={building?.state === "building" ? building.progress : -1}
        onOpen={(dataset) => this.#go({ dataset })} onList={() => this.#go(NO_STATE)}
        onTheme={() => this.#nextTheme()} onLanguage={() => this.#nextLanguage()} onHelp={() => this.#open("help")} onExport={() => this.#open("export")}
        dialog={this.#dialogBox()} />,
      this.#root,
    );
    if (session?.isReady) this.#view?.show(this.#state);
    document.title = session ? `${this.#state.node.split(".").slice(-3).join(".") || session.meta.target} · plumbline` : "plumbline";
  }

  #dialogBox() {
    const close = (): void => void this.#open("");
    const session = this.#session;
    if (this.#dialog === "help") return <Help say={this.#say} onClose={close} />;
    if (this.#dialog === "name" && session) {
      return <GoToName say={this.#say} session={session} onSelect={(row) => this.#select(row)} onClose={close} />;
    }
    if (this.#dialog === "export" && session) {
      return <ExportDialog say={this.#say} session={session} state={this.#state} picture={() => this.#view?.picture?.() ?? null} onClose={close} />;
    }
    if (typeof this.#dialog === "object") {
      return <SourceDialog say={this.#say} line={this.#dialog.line} source={this.#dialog.source} onClose={close} />;
    }
    return null;
  }
}

// "Functional.linear.0.forward.output.0" -> "output.0".
function withoutCall(first: FirstWrong): string {
  return first.item.startsWith(`${first.name}.`) ? first.item.slice(first.name.length + 1) : first.item;
}

function inPlace(id: number, place: { readonly target_root: number; readonly golden_root: number; readonly nodes: number; readonly golden_nodes: number }): boolean {
  const within = (root: number, count: number): boolean => root >= 0 && id >= root && id < root + count;
  return within(place.target_root, place.nodes) || within(place.golden_root, place.golden_nodes);
}

// What this browser remembers; a page in a file may not be allowed to.
function kept(key: string): string {
  try {
    return localStorage.getItem(`plumbline.${key}`) ?? "";
  } catch {
    return "";
  }
}

function keep(key: string, value: string): void {
  try {
    localStorage.setItem(`plumbline.${key}`, value);
  } catch {
    // Forgotten with the page, then.
  }
}

