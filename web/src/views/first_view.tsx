// First divergence: where it goes wrong first, ordered by execution over the ranks, with the reason.
import { render } from "preact";
import { formatError } from "../format";
import { LevelMark } from "../marks";
import type { Result } from "../result";
import type { State } from "../state";
import type { FirstList, FirstRow } from "../types";
import type { Context, View, ViewKind } from "../view";
import { VirtualRows } from "../virtual_rows";

const ROW = 46;

class FirstView implements View {
  readonly #root: HTMLElement;
  readonly #context: Context;
  #state: State | null = null;
  #list: Result<FirstList> | null = null;
  #asked = "";

  constructor(root: HTMLElement, context: Context) {
    this.#root = root;
    this.#context = context;
  }

  show(state: State): void {
    this.#state = state;
    const { session } = this.#context;
    const place = this.#isEverywhere() ? -1 : session.place;
    const asked = `${session.dataset}/${place}`;
    if (asked !== this.#asked) {
      this.#asked = asked;
      void this.#load(asked, place);
    }
    this.#draw();
  }

  // Everything at once is the default: the first of all ranks is what one wants to see first.
  #isEverywhere(): boolean {
    return (this.#state?.extra["first"] ?? "") !== "here";
  }

  async #load(asked: string, place: number): Promise<void> {
    const { api, session } = this.#context;
    const list = await api.first(session.dataset, place);
    if (asked !== this.#asked) return;
    this.#list = list;
    this.#draw();
    const top = list.ok ? list.value.rows[0] : undefined;
    if (top && !session.selected) this.#context.select(top);
  }

  #rows(): readonly FirstRow[] {
    return this.#list?.ok ? this.#list.value.rows : [];
  }

  #at(): number {
    return this.#rows().findIndex((row) => row.id === this.#context.session.selected?.id);
  }

  #step(by: number): boolean {
    const row = this.#rows()[Math.max(0, this.#at() + by)];
    if (row) this.#context.select(row);
    return row !== undefined;
  }

  key(event: KeyboardEvent): boolean {
    const by: Readonly<Record<string, number>> = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1 };
    const step = by[event.key];
    if (step !== undefined) return this.#step(step);
    const row = this.#rows()[Math.max(0, this.#at())];
    if (event.key !== "Enter" || !row) return false;
    this.#context.select(row, "graph");
    return true;
  }

  #draw(): void {
    const { say } = this.#context;
    const list = this.#list;
    const scope = this.#isEverywhere() ? "" : "here";
    render(
      <>
        <div class="first-head">
          <h2>{say("first.title")}</h2>
          {list?.ok && <span class="dim">{say("first.order", list.value.ordered_by)}</span>}
          <span class="grow" />
          <span class="dim">{say("first.hint")}</span>
          {this.#context.session.meta.places.length > 1 && (
            <select value={scope} aria-label={say("first.title")}
              onChange={(event) => this.#context.go({ extra: { ...this.#state?.extra, first: event.currentTarget.value } })}>
              <option value="">{say("first.everywhere")}</option>
              <option value="here">{say("first.here")}</option>
            </select>
          )}
        </div>
        {list === null && <p class="empty">{say("app.loading")}</p>}
        {list?.ok === false && <p class="empty bad">{list.error.message}</p>}
        {list?.ok && list.value.rows.length === 0 && <p class="empty">{say("first.none")}</p>}
        <VirtualRows count={this.#rows().length} height={ROW} label={say("view.first")} focus={this.#at()} row={(i) => this.#line(i)} />
      </>,
      this.#root,
    );
  }

  #line(i: number) {
    const row = this.#rows()[i];
    if (!row) return null;
    const { say, session } = this.#context;
    const place = session.meta.places.find((p) => row.id >= p.target_root && row.id < p.target_root + p.nodes);
    const classes = ["first-row", row.kind, row.id === session.selected?.id ? "chosen" : ""].join(" ");
    return (
      <button class={classes} title={row.name} tabIndex={i === Math.max(0, this.#at()) ? 0 : -1} onClick={() => this.#context.select(row)} onDblClick={() => this.#context.select(row, "graph")}>
        <span class={`kind ${row.kind}`}><LevelMark level={row.level} say={say} /> {say(`first.kind.${row.kind}`)}</span>
        <span class="dim">{place ? `${say("bar.step")} ${place.step} · ${place.rank}` : ""}</span>
        <bdi>{row.name}</bdi>
        <span class="number">{formatError(row.error)}</span>
        <span class="why-line" title={row.why}>{row.why}</span>
      </button>
    );
  }

  dispose(): void {
    this.#asked = "";
    render(null, this.#root);
  }
}

export const FIRST_VIEW: ViewKind = {
  key: "first",
  title: "view.first",
  shortcut: "F",
  appliesTo: (meta) => meta.kind === "compare",
  create: (root, context) => new FirstView(root, context),
};
