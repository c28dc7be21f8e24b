// The report of a comparison on one page: the answer with its facts, ranks, evidence, errors along the
// calls, and all rows. Only of a page in a file, which has what they need (report/file_dataset.ts).
import "../report/report.css";
import { render } from "preact";
import { fileDataOf } from "../file_api";
import { AnswerCard, Counts } from "../report/answer_card";
import { EvidenceCard } from "../report/evidence_card";
import { REPORT_FACT, type FileDataset } from "../report/file_dataset";
import { GrowthCard } from "../report/growth_card";
import type { Part } from "../report/part";
import { RanksCard } from "../report/ranks_card";
import { RowTable } from "../report/row_table";
import type { ValueRow } from "../report/value_rows";
import { VerdictMark, VERDICT_COUNT } from "../report/verdict_mark";
import type { State } from "../state";
import type { TextKey } from "../texts";
import type { Context, View, ViewKind } from "../view";

class ReportView implements View {
  readonly #context: Context;
  readonly #data: FileDataset | null;
  readonly #box = document.createElement("div");
  // Of the place that is shown, in recorded order; null: not unpacked yet.
  #rows: readonly ValueRow[] | null = null;
  #place = -1;
  #chosen: ValueRow | null = null;
  #failure = "";
  // To be shown once the rows of another place are there.
  #wanted = -1;

  constructor(root: HTMLElement, context: Context) {
    this.#context = context;
    this.#data = fileDataOf(context.api);
    this.#box.className = "report";
    this.#box.tabIndex = 0;
    root.append(this.#box);
  }

  show(_state: State): void {
    const { place } = this.#context.session;
    if (place !== this.#place) {
      this.#place = place;
      this.#rows = this.#chosen = null;
      void this.#load(place);
    }
    this.#draw();
  }

  async #load(place: number): Promise<void> {
    const loaded = await this.#data?.loadRows(place);
    if (place !== this.#place) return;
    this.#failure = loaded && !loaded.ok ? loaded.error.message : "";
    const part = this.#part();
    const rows = part?.rows ?? new Map<number, readonly ValueRow[]>();
    this.#rows = [...rows.keys()].sort((a, b) => a - b).flatMap((call) => rows.get(call) ?? []);
    const first = part?.data.header.first_wrong_call;
    const of = first ? (rows.get(part.firstCall()) ?? []) : [];
    this.#chosen = of.find((row) => first?.item === `${first?.name}.${row.item}`) ?? of[0] ?? this.#rows[0] ?? null;
    this.#draw();
    if (this.#wanted >= 0) this.#showCall(this.#wanted);
    this.#wanted = -1;
  }

  #part(): Part | undefined {
    return this.#data?.parts[this.#place];
  }

  #choose(row: ValueRow): void {
    this.#chosen = row;
    this.#draw();
  }

  // The worst output of a call, in the table of all rows.
  #showCall(call: number): void {
    const rows = this.#part()?.rows?.get(call) ?? [];
    const outputs = rows.filter((row) => row.role >= 2);
    const [row] = [...(outputs.length > 0 ? outputs : rows)].sort((a, b) => Number(b.verdict === 3) - Number(a.verdict === 3));
    if (!row) return;
    this.#choose(row);
    this.#box.querySelector("#report-rows")?.scrollIntoView({ block: "start" });
  }

  #open(row: ValueRow): void {
    const id = this.#data?.idOfCall(this.#place, row.call) ?? -1;
    if (this.#data && id >= 0) this.#context.select(this.#data.row(id), "graph");
  }

  #draw(): void {
    const data = this.#data, part = this.#part();
    if (!data || !part) return;
    const { say } = this.#context;
    const rowsOf = (call: number): readonly ValueRow[] => part.rows?.get(call) ?? [];
    const onRow = (row: ValueRow): void => this.#choose(row);
    const { overview } = data.head;
    render(
      <>
        <AnswerCard say={say} data={data} part={part} />
        {overview && (
          <RanksCard say={say} data={data} overview={overview} place={this.#place} onPlace={(place) => this.#goTo(place)}
            onCall={(at, call) => this.#goTo(at, call)} />
        )}
        {overview && <h2 class="of-part">{part.data.label}: <bdi>{part.data.answer[0]}</bdi></h2>}
        <Counts say={say} part={part} />
        {this.#failure !== "" && <p class="empty bad">{this.#failure}</p>}
        {this.#rows !== null && <EvidenceCard say={say} part={part} rowsOf={rowsOf} onRow={onRow} />}
        <GrowthCard say={say} part={part} others={data.parts.filter((other) => other !== part)} rowsOf={rowsOf}
          onCall={(call) => this.#showCall(call)} />
        {this.#rows === null
          ? <p class="empty" role="status">{say("app.loading")}</p>
          : <RowTable say={say} part={part} rows={this.#rows} chosen={this.#chosen} onRow={onRow} onOpen={(row) => this.#open(row)} />}
        {this.#notes()}
      </>,
      this.#box,
    );
  }

  #goTo(place: number, call = -1): void {
    if (place === this.#place) {
      if (call >= 0) this.#showCall(call);
      return;
    }
    this.#wanted = call;
    const info = this.#context.session.meta.places[place];
    if (info) this.#context.go({ step: info.step, rank: info.rank, node: "" });
  }

  #notes() {
    const { say, session } = this.#context;
    const { notes } = session.meta;
    return (
      <section class="report-section">
        <h2>{say("report.notes")}</h2>
        {notes.length > 0 && <><h3>{say("report.warnings")}</h3><ul class="report-warnings">{notes.map((note) => <li key={note}><bdi>{note}</bdi></li>)}</ul></>}
        <dl class="report-words">
          {Array.from({ length: VERDICT_COUNT }, (_, i) => (
            <><dt><VerdictMark verdict={i} say={say} /></dt><dd>{say(`report.means.${i}` as TextKey)}</dd></>
          ))}
          <dt>{say("report.inherited")}</dt><dd>{say("report.means.inherited")}</dd>
        </dl>
      </section>
    );
  }

  dispose(): void {
    this.#place = -1;
    render(null, this.#box);
    this.#box.remove();
  }
}

export const REPORT_VIEW: ViewKind = {
  key: "report",
  title: "view.report",
  shortcut: "",
  isWhole: true,
  appliesTo: (meta) => meta.facts[REPORT_FACT] === true,
  create: (root, context) => new ReportView(root, context),
};
