// The list of results, and of what lies under the served roots: two clicks open two recordings.
import { useEffect, useState } from "preact/hooks";
import type { Api } from "../api";
import { formatBytes } from "../format";
import type { Result } from "../result";
import type { Say } from "../texts";
import type { Datasets, RecordingEntry } from "../types";

export interface OpenProps {
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
              <span class="dim mono"><bdi>{dataset.target}</bdi></span>
              {dataset.golden && <span class="dim mono"><bdi>{dataset.golden}</bdi></span>}
              {dataset.error && <span class="bad">{dataset.error}</span>}
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
  const [entries, setEntries] = useState<Result<readonly RecordingEntry[]> | null>(null);
  const [target, setTarget] = useState("");
  const [golden, setGolden] = useState("");
  const [fault, setFault] = useState("");
  useEffect(() => {
    let isCurrent = true;
    void api.recordings(path).then((got) => isCurrent && setEntries(got));
    return () => {
      isCurrent = false;
    };
  }, [path, api]);
  const open = async (): Promise<void> => {
    const got = await api.open(target, golden);
    if (got.ok) props.onOpen(got.value);
    else setFault(got.error.message);
  };
  const root = roots.find((each) => path === each || path.startsWith(`${each}/`));
  return (
    <section>
      <h1>{say("open.new")}</h1>
      <div class="chosen-paths">
        <label>{say("open.target")} <input class="mono" value={target} onInput={(event) => setTarget(event.currentTarget.value)} /></label>
        <label>{say("open.golden")} <input class="mono" value={golden} onInput={(event) => setGolden(event.currentTarget.value)} /></label>
        <button class="main" disabled={target === ""} onClick={() => void open()}>{say(golden === "" ? "open.alone" : "open.compare")}</button>
      </div>
      {fault && <p class="bad" role="alert">{fault}</p>}
      <p class="where">
        {roots.length > 1 && roots.map((each) => <button key={each} class="plain mono" onClick={() => setPath(each)}>{each}</button>)}
        <span class="mono"><bdi>{path}</bdi></span>
        {path !== root && <button class="plain" onClick={() => setPath(path.replace(/\/[^/]*$/, ""))}>{say("open.up")}</button>}
      </p>
      {entries === null && <p class="empty">{say("app.loading")}</p>}
      {entries?.ok === false && <p class="empty bad">{entries.error.message}</p>}
      {entries?.ok && entries.value.length === 0 && <p class="empty">{say("open.empty")}</p>}
      {entries?.ok && entries.value.length > 0 && (
        <table class="values">
          <thead>
            <tr>
              <th>{say("open.column.name")}</th><th>{say("open.column.kind")}</th>
              <th class="number">{say("open.column.size")}</th><th class="number">{say("open.column.ranks")}</th>
              <th class="number">{say("open.column.steps")}</th><th>{say("open.column.task")}</th>
              <th>{say("open.column.level")}</th><th />
            </tr>
          </thead>
          <tbody>
            {entries.value.map((entry) => (
              <tr key={entry.path}>
                <td class="mono">
                  {entry.kind === "directory"
                    ? <button class="plain" onClick={() => setPath(entry.path)}><bdi>{entry.name}/</bdi></button>
                    : <bdi>{entry.name}</bdi>}
                </td>
                <td>{entry.kind}</td>
                <td class="number">{entry.size > 0 ? formatBytes(entry.size) : ""}</td>
                <td class="number">{entry.ranks || ""}</td><td class="number">{entry.steps || ""}</td>
                <td>{entry.task}</td><td>{entry.level}</td>
                <td class="choices">
                  {entry.kind !== "directory" && <button class="plain" onClick={() => setTarget(entry.path)}>{say("open.as-target")}</button>}{" "}
                  {entry.kind !== "directory" && <button class="plain" onClick={() => setGolden(entry.path)}>{say("open.as-golden")}</button>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
