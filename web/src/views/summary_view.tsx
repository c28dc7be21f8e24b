// The comparison as a whole: the answer, counts, where each rank stands, the error along the calls,
// the elements behind the first wrong call, the worst calls, and what could not be judged.
import { render } from "preact";
import { formatCount, formatError, formatNumber } from "../format";
import { LevelMark } from "../marks";
import type { Found, NodeRow, Place } from "../types";
import type { Context, View, ViewKind } from "../view";
import { ErrorsChart, GrowthChart, PairsChart, ProfileChart } from "./charts";
import { factsOf, overviewOf, type Evidence, type PlaceFacts } from "./evidence";

const WORST = 10;

class SummaryView implements View {
  readonly #root: HTMLElement;
  readonly #context: Context;
  #worst: Found | null = null;
  #asked = -2;

  constructor(root: HTMLElement, context: Context) {
    this.#root = root;
    this.#context = context;
  }

  show(): void {
    const { session } = this.#context;
    if (session.place !== this.#asked) {
      this.#asked = session.place;
      void this.#load(session.place);
    }
    this.#draw();
  }

  async #load(place: number): Promise<void> {
    const { api, session } = this.#context;
    const found = await api.find(session.dataset, { q: "error>0 is:leaf", place, side: "target", limit: WORST, order: "error" });
    if (place !== this.#asked || !found.ok) return;
    this.#worst = found.value;
    this.#draw();
  }

  #draw(): void {
    const { session, say } = this.#context;
    const { meta } = session;
    const facts = factsOf(meta, session.place);
    const notes = [...new Set([...meta.notes, ...(facts?.header.warnings ?? []), ...(overviewOf(meta)?.notes ?? [])])];
    render(
      <div class="summary" tabIndex={0}>
        <section class="wide"><h2>{say("answer.all")}</h2><pre>{meta.answer.join("\n")}</pre></section>
        {facts && <Certainty facts={facts} context={this.#context} />}
        {meta.places.length > 1 && <section class="wide"><h2>{say("summary.places")}</h2>{this.#places(meta.places)}</section>}
        {facts && facts.growth.length > 1 && (
          <section class="wide"><h2>{say("summary.growth")}</h2><p class="dim">{say("summary.growth.hint")}</p><GrowthChart points={facts.growth} say={say} /></section>
        )}
        {facts?.evidence && <EvidenceCards evidence={facts.evidence} context={this.#context} />}
        <section class="wide"><h2>{say("summary.worst")}</h2>{this.#worstTable(this.#worst?.rows ?? [])}</section>
        {notes.length > 0 && <section class="wide"><h2>{say("summary.notes")}</h2><ul>{notes.map((note) => <li key={note}>{note}</li>)}</ul></section>}
        {facts && facts.next_config !== "" && <section class="wide"><h2>{say("summary.next")}</h2><pre>{facts.next_config}</pre></section>}
      </div>,
      this.#root,
    );
  }

  #places(places: readonly Place[]) {
    const { say, session } = this.#context;
    return (
      <table class="values">
        <thead>
          <tr>
            <th>{say("bar.step")}</th><th>{say("bar.rank")}</th><th>{say("answer.first")}</th>
            {(["error", "warning", "none", "pass"] as const).map((level) => <th key={level} class="number">{say(`level.${level}`)}</th>)}
            <th class="number">{say("level.unmatched")}</th>
          </tr>
        </thead>
        <tbody>
          {places.map((place, i) => (
            <tr key={i} class={i === session.place ? "chosen" : ""}>
              <td><button class="plain" onClick={() => this.#context.go({ step: place.step, rank: place.rank, node: place.first })}>{place.step}</button></td>
              <td><button class="plain" onClick={() => this.#context.go({ step: place.step, rank: place.rank, node: place.first })}>{place.rank}</button></td>
              <td><bdi class="mono">{place.first || place.answer}</bdi></td>
              <td class="number">{formatCount(place.counts.error)}</td><td class="number">{formatCount(place.counts.warning)}</td>
              <td class="number">{formatCount(place.counts.none)}</td><td class="number">{formatCount(place.counts.pass)}</td>
              <td class="number">{formatCount(place.counts.unmatched_target + place.counts.unmatched_golden)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    );
  }

  #worstTable(rows: readonly NodeRow[]) {
    const { say } = this.#context;
    if (rows.length === 0) return <p class="dim">{say("summary.worst.none")}</p>;
    return (
      <table class="values">
        <thead><tr><th>{say("column.level")}</th><th>{say("column.name")}</th><th class="number">{say("column.input")}</th><th class="number">{say("column.error")}</th></tr></thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id}>
              <td><LevelMark level={row.level} say={say} withWord /></td>
              <td><button class="plain mono" onClick={() => this.#context.select(row, "graph")}><bdi>{row.name}</bdi></button></td>
              <td class="number">{formatError(row.input_error)}</td><td class="number">{formatError(row.error)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    );
  }

  dispose(): void {
    render(null, this.#root);
  }
}

function Certainty(props: { readonly facts: PlaceFacts; readonly context: Context }) {
  const { header } = props.facts;
  const lines = [header.certainty["level"], header.certainty["text"], header.certainty["limit"], header.narrowed, header.other_way, header.as_test]
    .filter((line): line is string => typeof line === "string" && line !== "");
  const counts = Object.entries(header.counts);
  return (
    <section class="wide">
      <h2>{props.context.say("summary.certainty")}</h2>
      {lines.map((line) => <p key={line}>{line}</p>)}
      <p class="dim">{counts.map(([name, count]) => `${name} ${formatCount(count)}`).join(" · ")}</p>
    </section>
  );
}

function EvidenceCards(props: { readonly evidence: Evidence; readonly context: Context }) {
  const { evidence, context: { say } } = props;
  const { histogram } = evidence;
  return (
    <>
      <section><h2>{say("summary.pairs")}</h2><PairsChart evidence={evidence} say={say} /><p class="dim">{say("summary.pairs.hint", evidence.pairs.length, formatCount(evidence.count))}</p></section>
      <section><h2>{say("summary.errors")}</h2><ErrorsChart evidence={evidence} say={say} /><p class="dim">{say("summary.errors.hint", formatCount(histogram.equal), formatCount(histogram.total), formatCount(histogram.nonfinite))}</p></section>
      <section><h2>{say("summary.profile")}</h2><ProfileChart evidence={evidence} say={say} /><p class="dim">{say("summary.profile.hint")}</p></section>
      <section class="wide">
        <h2>{say("summary.elements", evidence.item)}</h2>
        <table class="values">
          <thead><tr><th>{say("summary.element")}</th><th class="number">{say("side.target")}</th><th class="number">{say("side.golden")}</th><th class="number">{say("summary.difference")}</th></tr></thead>
          <tbody>
            {evidence.worst.map(({ index, target, golden }) => (
              <tr key={index}><td class="mono">{position(index, evidence.shape)}</td><td class="number">{String(target)}</td><td class="number">{String(golden)}</td><td class="number">{formatNumber(target - golden)}</td></tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}

// A place in memory order as one index for each dimension.
function position(index: number, shape: readonly number[]): string {
  const places: number[] = [];
  for (const size of [...shape].reverse()) {
    places.unshift(index % size);
    index = Math.floor(index / size);
  }
  return `[${places.join(", ")}]`;
}

export const SUMMARY_VIEW: ViewKind = {
  key: "summary",
  title: "view.summary",
  shortcut: "",
  appliesTo: (meta) => meta.kind === "compare",
  create: (root, context) => new SummaryView(root, context),
};
