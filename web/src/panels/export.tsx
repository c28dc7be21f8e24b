// Takes along what is shown: the view as a picture, the hits as a table, the result as a file.
import { useEffect, useState } from "preact/hooks";
import { Dialog } from "./dialogs";
import { kindOf } from "../dataset_kind";
import { useAsked } from "../parts/kit";
import type { Session } from "../session";
import type { State } from "../state";
import { tableQuestion } from "../table_answers";
import type { Say } from "../texts";
import type { DatasetKind, ExportFormat } from "../types";
import type { Picture } from "../view";

interface ExportProps {
  readonly say: Say;
  readonly session: Session;
  readonly state: State;
  readonly picture: () => Picture | null;
  readonly onClose: () => void;
}

const FORMATS: Readonly<Record<DatasetKind, readonly ExportFormat[]>> = {
  graph: ["csv", "xlsx", "html", "vis", "vis.db"], table: ["csv", "xlsx"], trend: [],
};

// Hands data over as a file.
export function save(name: string, data: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(data);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

export function ExportDialog(props: ExportProps) {
  const { say, session, state } = props;
  const [fault, setFault] = useState("");
  const picture = props.picture();
  const { api } = session;
  const kind = kindOf(session.meta);
  const [changes, setChanges] = useState(0);
  const refresh = (): void => setChanges((count) => count + 1);
  const asked = useAsked(() => api.jobs(), [api, changes]);
  const jobs = asked.ok ? asked.value : [];
  useEffect(() => api.watch("jobs", refresh), [api]);
  const start = async (format: ExportFormat): Promise<void> => {
    const got = await api.export(session.dataset, format, kind === "table" ? tableQuestion(state) : { q: state.q, place: session.place });
    if (got.ok) refresh();
    else setFault(got.error.message);
  };
  const png = async (): Promise<void> => {
    const blob = await picture?.png();
    if (blob) save(`plumbline_${state.view}.png`, blob);
  };
  return (
    <Dialog title={say("bar.export")} say={say} onClose={props.onClose}>
      <div class="export">
        <h3>{say("export.picture")}</h3>
        <p>
          <button disabled={!picture} onClick={() => void png()}>PNG</button>{" "}
          <button disabled={!picture} onClick={() => picture && save(`plumbline_${state.view}.svg`, new Blob([picture.svg()], { type: "image/svg+xml" }))}>SVG</button>
          {!picture && <span class="dim"> {say("export.no-picture")}</span>}
        </p>
        <h3>{say("export.result")}</h3>
        <p>
          {FORMATS[kind].map((format) => <><button key={format} disabled={!api.isServed} onClick={() => void start(format)}>{format.toUpperCase()}</button>{" "}</>)}
          {!api.isServed && <span class="dim">{say("export.only-served")}</span>}
        </p>
        {state.q !== "" && <p class="dim">{say("export.query", state.q)}</p>}
        {fault && <p class="bad" role="alert">{fault}</p>}
        <ul class="jobs">
          {jobs.map((job) => (
            <li key={job.id}>
              <span>{job.what}</span>
              {job.state === "running" && <><progress value={job.progress} aria-label={job.what} /><button onClick={() => void api.cancel(job.id).then(refresh)}>{say("export.cancel")}</button></>}
              {job.state === "done" && (job.file ? <a href={api.jobFile(job.id)} download={job.file.split("/").pop()}>{job.file.split("/").pop()}</a> : say("export.done"))}
              {job.state === "failed" && <span class="bad">{job.error}</span>}
              {job.state === "cancelled" && <span class="dim">{say("export.cancelled")}</span>}
            </li>
          ))}
        </ul>
      </div>
    </Dialog>
  );
}
