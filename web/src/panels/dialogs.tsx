// Help, going to a name, and the text of a source file: what lies over the page until it is closed.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { KEYS } from "../keys";
import { LevelMark, SEVERITY } from "../marks";
import type { Result } from "../result";
import type { Session } from "../session";
import type { Say } from "../texts";
import type { NodeRow, SourceText } from "../types";

export function Dialog(props: { readonly title: string; readonly say: Say; readonly onClose: () => void; readonly children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  // At once: what a dialog tells of its closing by itself comes after the next key.
  const close = (): void => {
    dialog.current?.close();
    props.onClose();
  };
  return (
    <dialog ref={dialog} aria-label={props.title} onClick={(event) => event.target === dialog.current && close()}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}>
      <div class="dialog">
        <div class="panel-head">
          <h2>{props.title}</h2>
          <button class="close" aria-label={props.say("app.close")} onClick={close}>✕</button>
        </div>
        {props.children}
      </div>
    </dialog>
  );
}

const QUERIES = [
  "level:error,warning", "worst:error", "op:matmul", "type:api", "dir:backward", "rank:3 step:0 ms:1",
  "dtype:bf16 shape:[2,8]", "side:golden", "flag:source", "is:leaf", "overflow:high", "error>0.1 size>100",
  "-op:linear", "\"self_attn.q\"",
];

const KEY_NAMES: Readonly<Record<string, string>> = {
  ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc", Backspace: "⌫",
};

function keyLabel(key: string): string {
  return key.split("+").map((part) => KEY_NAMES[part] ?? (/^[a-z]$/.test(part) ? part.toUpperCase() : part)).join("+") || key;
}

export function Help(props: { readonly say: Say; readonly onClose: () => void }) {
  const { say } = props;
  return (
    <Dialog title={say("bar.help")} say={say} onClose={props.onClose}>
      <div class="help">
        <section>
          <h3>{say("help.keys")}</h3>
          <dl class="keys">
            {KEYS.map((line) => (
              <div key={line.action}>
                <dt>{line.keys.map((key) => <kbd key={key}>{key === "+" ? "+" : keyLabel(key)}</kbd>)}</dt>
                <dd>{say(line.text)}</dd>
              </div>
            ))}
          </dl>
          <p class="dim">{say("help.mouse")}</p>
        </section>
        <section>
          <h3>{say("help.query")}</h3>
          <p>{say("help.query.text")}</p>
          <ul class="queries">{QUERIES.map((query) => <li key={query}><code>{query}</code></li>)}</ul>
          <h3>{say("help.marks")}</h3>
          <ul class="queries">{SEVERITY.map((level) => <li key={level}><LevelMark level={level} say={say} withWord /></li>)}</ul>
        </section>
      </div>
    </Dialog>
  );
}

export function GoToName(props: {
  readonly say: Say; readonly session: Session; readonly onSelect: (row: NodeRow) => void; readonly onClose: () => void;
}) {
  const { say, session } = props;
  const [text, setText] = useState("");
  const [rows, setRows] = useState<readonly NodeRow[]>([]);
  const [at, setAt] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    if (text.trim() === "") setRows([]);
    else {
      const q = `"${text.trim().replace(/(["\\])/g, "\\$1")}"`;
      void session.api.find(session.dataset, { q, place: session.place, limit: 20 }).then((got) => {
        if (!isCurrent || !got.ok) return;
        setRows(got.value.rows);
        setAt(0);
      });
    }
    return () => {
      isCurrent = false;
    };
  }, [text, session]);
  const choose = (row: NodeRow | undefined): void => {
    if (!row) return;
    props.onClose();
    props.onSelect(row);
  };
  return (
    <Dialog title={say("key.name")} say={say} onClose={props.onClose}>
      <div class="goto">
        <input type="search" autofocus spellcheck={false} placeholder={say("name.hint")} aria-label={say("name.hint")} value={text}
          role="combobox" list={undefined} aria-expanded={rows.length > 0} aria-controls="goto-list" aria-activedescendant={rows.length > 0 ? `goto-${at}` : ""}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            const step = { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0;
            if (step !== 0) {
              event.preventDefault();
              setAt(Math.min(Math.max(at + step, 0), rows.length - 1));
            }
            if (event.key === "Enter") choose(rows[at]);
          }} />
        <ul id="goto-list" role="listbox" aria-label={say("key.name")}>
          {rows.map((row, i) => (
            <li key={row.id} id={`goto-${i}`} role="option" aria-selected={i === at} class={i === at ? "chosen" : ""} onClick={() => choose(row)}>
              <LevelMark level={row.level} say={say} /> <span class="dim">{say(`side.${session.sideOf(row.id)}`)}</span> <bdi class="mono">{row.name}</bdi>
            </li>
          ))}
        </ul>
        {text.trim() !== "" && rows.length === 0 && <p class="empty">{say("name.none")}</p>}
      </div>
    </Dialog>
  );
}

export function SourceDialog(props: {
  readonly say: Say; readonly line: number; readonly source: Result<SourceText>; readonly onClose: () => void;
}) {
  const { source, line, say } = props;
  return (
    <Dialog title={source.ok ? source.value.file : say("details.stack")} say={say} onClose={props.onClose}>
      {source.ok
        ? (
          <>
          <p class="source-link"><a href={`vscode://file${source.value.file.startsWith("/") ? "" : "/"}${encodeURI(source.value.file)}:${line}`}>{say("source.editor")}</a></p>
          <ol class="source-text" start={source.value.first}>
            {source.value.lines.map((text, i) => {
              const number = source.value.first + i;
              return <li key={number} value={number} class={number === line ? "chosen" : ""}><code>{text || " "}</code></li>;
            })}
          </ol>
          </>
        )
        : <p class="empty bad">{source.error.message}</p>}
    </Dialog>
  );
}
