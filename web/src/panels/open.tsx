// The list of results, and of what lies under the served roots: two clicks open two recordings.
import { useState } from "preact/hooks";
import type { Api } from "../api";
import { formatBytes } from "../format";
import { useAsked } from "../parts/kit";
import { PlainTable, type Column } from "../parts/table";
import type { Result } from "../result";
import type { Say } from "../texts";
import type { Datasets, RecordingEntry } from "../types";

interface OpenProps {
  readonly say: Say;
  readonly api: Api;
  readonly datasets: Result<Datasets> | null;
  readonly onOpen: (dataset: string) => void;
}

export function OpenPanel(props: OpenProps) {
  const { say, datasets } = props;
  if (datasets === null) return <main class="open"><p class="empty">{say("app.loading")}</p></main>;
  if (!datasets.ok) return <main class="open"><p class="empty bad" role="alert">{datasets.error.message}</p></main>;
  const { datasets: list } = datasets.value;
  const roots = outermost(datasets.value);
  return (
    <main class="open" id="view">
      <h1>{say("open.title")}</h1>
      {list.length === 0 && <p class="empty">{say("open.none")}</p>}
      <ul class="datasets">
        {list.map((dataset) => (
          <li key={dataset.id}>
            <button onClick={() => props.onOpen(dataset.id)}>
              <b><bdi>{dataset.title}</bdi></b>
              <span class={dataset.state === "failed" ? "bad" : "dim"}>
                {say(`open.state.${dataset.state}`)}
                {dataset.state === "building" && ` ${Math.round(dataset.progress * 100)} %`}
              </span>
              <span class="dim mono wide"><bdi>{dataset.target}</bdi>{dataset.golden && <> · <bdi>{dataset.golden}</bdi></>}</span>
              {dataset.error && <span class="bad wide">{dataset.error}</span>}
            </button>
          </li>
        ))}
      </ul>
      {roots.length > 0 && <Recordings {...props} roots={roots} />}
    </main>
  );
}

// What lies below another root is found there; a recording that is open already is nothing to choose from.
function outermost({ roots, datasets }: Datasets): readonly string[] {
  const isOpen = (path: string): boolean => datasets.some(({ target, golden }) => target === path || golden === path);
  const outer = roots.filter((root) => !roots.some((other) => root !== other && root.startsWith(`${other}/`)));
  return [...outer].sort((a, b) => Number(isOpen(a)) - Number(isOpen(b)));
}

function Recordings(props: OpenProps & { readonly roots: readonly string[] }) {
  const { say, api, roots } = props;
  const [path, setPath] = useState(roots[0] ?? "");
  const [target, setTarget] = useState("");
  const [golden, setGolden] = useState("");
  const [fault, setFault] = useState("");
  const entries = useAsked(() => api.recordings(path), [path, api]);
  const open = async (): Promise<void> => {
    const got = await api.open(target, golden);
    if (got.ok) props.onOpen(got.value);
    else setFault(got.error.message);
  };
  const columns: readonly Column<RecordingEntry>[] = [
    {
      title: say("open.column.name"),
      cell: ({ kind, path: at, name }) => kind === "directory"
        ? <button class="plain mono" onClick={() => setPath(at)}><bdi>{name}/</bdi></button> : <bdi class="mono">{name}</bdi>,
    },
    { title: say("open.column.kind"), cell: ({ kind }) => kind },
    { title: say("open.column.size"), isNumber: true, cell: ({ size }) => (size > 0 ? formatBytes(size) : "") },
    { title: say("open.column.ranks"), isNumber: true, cell: ({ ranks }) => ranks || "" },
    { title: say("open.column.steps"), isNumber: true, cell: ({ steps }) => steps || "" },
    { title: say("open.column.task"), cell: ({ task }) => task },
    { title: say("open.column.level"), cell: ({ level }) => level },
    {
      title: "",
      cell: ({ kind, path: at }) => kind !== "directory" && (
        <span class="choices">
          <button class="plain" onClick={() => setTarget(at)}>{say("open.as-target")}</button>
          <button class="plain" onClick={() => setGolden(at)}>{say("open.as-golden")}</button>
        </span>
      ),
    },
  ];
  const root = roots.find((each) => path === each || path.startsWith(`${each}/`));
  return (
    <section>
      <h1>{say("open.new")}</h1>
      <div class="chosen-paths">
        <label>{say("side.target")} <input class="mono" value={target} onInput={(event) => setTarget(event.currentTarget.value)} /></label>
        <label>{say("side.golden")} <input class="mono" value={golden} onInput={(event) => setGolden(event.currentTarget.value)} /></label>
        <button class="main" disabled={target === ""} onClick={() => void open()}>{say(golden === "" ? "open.alone" : "open.compare")}</button>
      </div>
      {fault && <p class="bad" role="alert">{fault}</p>}
      <p class="where">
        {roots.length > 1 && roots.map((each) => <button key={each} class="plain mono" onClick={() => setPath(each)}>{each}</button>)}
        <span class="mono"><bdi>{path}</bdi></span>
        {path !== root && <button class="plain" onClick={() => setPath(path.replace(/\/[^/]*$/, ""))}>{say("open.up")}</button>}
      </p>
      {entries.ok === null && <p class="empty">{say("app.loading")}</p>}
      {entries?.ok === false && <p class="empty bad">{entries.error.message}</p>}
      {entries?.ok && entries.value.length === 0 && <p class="empty">{say("open.empty")}</p>}
      {entries?.ok && entries.value.length > 0 && (
        <PlainTable columns={columns} rows={entries.value} />
      )}
    </section>
  );
}
