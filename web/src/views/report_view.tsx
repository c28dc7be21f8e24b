// The report of a comparison on one page: the answer with its facts, ranks, evidence, errors along the
// calls, and all rows. Only of a page in a file, which has what they need (report/file_dataset.ts).
import "../report/report.css";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { fileDataOf } from "../file_api";
import { VERDICTS } from "../marks";
import { useAsked, type ViewProps } from "../parts/kit";
import { AnswerCard, Counts } from "../report/answer_card";
import { EvidenceCard } from "../report/evidence_card";
import type { FileDataset } from "../report/file_dataset";
import { GrowthCard } from "../report/growth_card";
import type { Part } from "../report/part";
import { RanksCard } from "../report/ranks_card";
import { RowTable } from "../report/row_table";
import type { ValueRow } from "../report/value_rows";
import { VerdictMark } from "../report/verdict_mark";
import type { TextKey } from "../texts";
import type { Context } from "../view";

export function ReportView({ context }: ViewProps) {
  const data = fileDataOf(context.api);
  const part = data?.parts[context.session.place];
  return data && part ? <Report context={context} data={data} part={part} /> : null;
}

// What the answer names, else the first row.
function firstRow(part: Part, rows: readonly ValueRow[]): ValueRow | null {
  const first = part.data.header.first_wrong_call;
  const of = first ? rows.filter(({ call }) => call === part.firstCall()) : [];
  return of.find((row) => first?.item === `${first?.name}.${row.item}`) ?? of[0] ?? rows[0] ?? null;
}

// The worst output of a call.
function worstRow(part: Part, call: number): ValueRow | undefined {
  const rows = part.rows?.get(call) ?? [];
  const outputs = rows.filter((row) => row.role >= 2);
  return [...(outputs.length > 0 ? outputs : rows)].sort((a, b) => Number(b.verdict === 3) - Number(a.verdict === 3))[0];
}

function Report({ context, data, part }: { readonly context: Context; readonly data: FileDataset; readonly part: Part }) {
  const { say, session } = context;
  const { place } = session;
  const [chosen, setChosen] = useState<ValueRow | null>(null);
  // A call to be shown once the rows of another place are there.
  const wanted = useRef(-1);
  const loaded = useAsked(() => data.loadRows(place), [place]);
  const byCall = part.rows;
  const rows = useMemo(() => byCall && [...byCall.keys()].sort((a, b) => a - b).flatMap((call) => byCall.get(call) ?? []), [byCall]);
  const showCall = (call: number): void => {
    const row = worstRow(part, call);
    if (!row) return;
    setChosen(row);
    document.getElementById("report-rows")?.scrollIntoView({ block: "start" });
  };
  useEffect(() => {
    setChosen(rows && firstRow(part, rows));
    if (rows && wanted.current >= 0) showCall(wanted.current);
    if (rows) wanted.current = -1;
  }, [rows]);
  const goTo = (at: number, call = -1): void => {
    const info = session.meta.places[at];
    if (at === place) showCall(call);
    else if (info) {
      wanted.current = call;
      context.go({ step: info.step, rank: info.rank, node: "" });
    }
  };
  const open = (row: ValueRow): void => {
    const id = data.idOfCall(place, row.call);
    if (id >= 0) context.select(data.row(id), "graph");
  };
  const rowsOf = (call: number): readonly ValueRow[] => byCall?.get(call) ?? [];
  const { overview } = data.head;
  return (
    <div class="report" tabIndex={0}>
      <AnswerCard say={say} data={data} part={part} />
      {overview && <RanksCard say={say} data={data} overview={overview} place={place} onPlace={goTo} onCall={goTo} />}
      {overview && <h2 class="of-part">{part.data.label}: <bdi>{part.data.answer[0]}</bdi></h2>}
      <Counts say={say} part={part} />
      {loaded.ok === false && <p class="empty bad">{loaded.error.message}</p>}
      {rows && <EvidenceCard say={say} part={part} rowsOf={rowsOf} onRow={setChosen} />}
      <GrowthCard say={say} part={part} others={data.parts.filter((other) => other !== part)} rowsOf={rowsOf} onCall={showCall} />
      {rows ? <RowTable say={say} part={part} rows={rows} chosen={chosen} onRow={setChosen} onOpen={open} />
        : <p class="empty" role="status">{say("app.loading")}</p>}
      <Notes context={context} />
    </div>
  );
}

function Notes({ context }: { readonly context: Context }) {
  const { say, session } = context;
  const { notes } = session.meta;
  return (
    <section class="report-section">
      <h2>{say("report.notes")}</h2>
      {notes.length > 0 && <><h3>{say("report.warnings")}</h3><ul class="notes">{notes.map((note) => <li key={note}><bdi>{note}</bdi></li>)}</ul></>}
      <dl class="report-words">
        {VERDICTS.map((_, i) => (
          <><dt><VerdictMark verdict={i} say={say} /></dt><dd>{say(`report.means.${i}` as TextKey)}</dd></>
        ))}
        <dt>{say("report.inherited")}</dt><dd>{say("report.means.inherited")}</dd>
      </dl>
    </section>
  );
}
