// All calls of a place in one list, in order of execution: the hits of the query, or everything.
import { render } from "preact";
import { formatCount, formatError } from "../format";
import { Hits } from "../hits";
import { ChangeMark, LevelMark } from "../marks";
import type { State } from "../state";
import type { Context, View, ViewKind } from "../view";
import { VirtualRows } from "../virtual_rows";

const ROW = 24;

class ListView implements View {
  readonly #root: HTMLElement;
  readonly #context: Context;
  #hits: Hits | null = null;
  #asked = "";

  constructor(root: HTMLElement, context: Context) {
    this.#root = root;
    this.#context = context;
  }

  show(state: State): void {
    const { session, api } = this.#context;
    const q = state.q === "" ? "is:leaf" : state.q;
    const asked = `${session.dataset}/${session.place}/${q}/${state.side}`;
    if (asked !== this.#asked) {
      this.#asked = asked;
      const { place } = session;
      this.#hits = new Hits(asked, (cursor) => api.find(session.dataset, { q, place, side: state.side, cursor }), () => this.#draw());
    }
    this.#draw();
  }

  key(event: KeyboardEvent): boolean {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const hits = this.#hits;
    if (event.key === "Enter" && this.#context.session.selected) {
      this.#context.select(this.#context.session.selected, "graph");
      return true;
    }
    if (by === undefined || !hits) return false;
    const row = hits.rows[Math.max(0, this.#at() + by)];
    if (row) this.#context.select(row);
    else void hits.more();
    return true;
  }

  #at(): number {
    const { selected } = this.#context.session;
    return selected === null ? -1 : (this.#hits?.rows.findIndex((row) => row.id === selected.id) ?? -1);
  }

  #draw(): void {
    const { say } = this.#context;
    const hits = this.#hits;
    if (!hits) return;
    render(
      <>
        <div class="list-row head">
          <span class="number">{say("column.order")}</span><span>{say("column.level")}</span>
          <span>{say("column.name")} <span class="dim">{hits.state === "ready" && formatCount(hits.total)}</span></span>
          <span>{say("column.inside")}</span>
          <span class="number">{say("column.input")}</span><span class="number">{say("column.error")}</span>
        </div>
        {hits.state === "loading" && <p class="empty">{say("app.loading")}</p>}
        {hits.state === "failed" && <p class="empty bad">{hits.message}</p>}
        {hits.error && <p class="empty bad">{say("hits.fault", hits.error.at + 1, hits.error.message)}</p>}
        {hits.state === "ready" && hits.total === 0 && !hits.error && <p class="empty">{say("hits.none")}</p>}
        <VirtualRows count={hits.rows.length} height={ROW} label={say("view.list")} focus={this.#at()}
          onRange={(_, to) => to >= hits.rows.length - 20 && void hits.more()} row={(i) => this.#line(i)} />
      </>,
      this.#root,
    );
  }

  #line(i: number) {
    const row = this.#hits?.rows[i];
    if (!row) return null;
    const { say, session } = this.#context;
    return (
      <button class={row.id === session.selected?.id ? "list-row chosen" : "list-row"} title={row.name} tabIndex={i === Math.max(0, this.#at()) ? 0 : -1}
        onClick={() => this.#context.select(row)} onDblClick={() => this.#context.select(row, "graph")}>
        <span class="number dim">{row.order}</span>
        <LevelMark level={row.level} say={say} withWord />
        <bdi>{row.name}</bdi>
        <span class="dim">{row.overflow === "" ? "" : say(`overflow.${row.overflow}`)} <ChangeMark change={row.change} say={say} /></span>
        <span class="number">{formatError(row.input_error)}</span>
        <span class="number">{formatError(row.error)}</span>
      </button>
    );
  }

  dispose(): void {
    this.#asked = "";
    render(null, this.#root);
  }
}

export const LIST_VIEW: ViewKind = {
  key: "list",
  title: "view.list",
  shortcut: "3",
  appliesTo: () => true,
  create: (root, context) => new ListView(root, context),
};
