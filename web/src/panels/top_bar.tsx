// The top line: what is open, which step and rank, the query, and what holds for the whole page.
import { useEffect, useRef, useState } from "preact/hooks";
import { Choose, type Choice } from "../parts/kit";
import type { State } from "../state";
import type { Say } from "../texts";
import type { Context } from "../view";

export type Theme = "auto" | "light" | "dark";

interface BarProps {
  readonly say: Say;
  readonly state: State;
  readonly context: Context | null;
  readonly theme: Theme;
  readonly isServed: boolean;
  readonly onList: () => void;
  readonly onTheme: () => void;
  readonly onLanguage: () => void;
  readonly onHelp: () => void;
  readonly onExport: () => void;
}

// Bytes of a query within an address; the program takes addresses of 8 KiB.
const MOST_BYTES = 6 * 1024;

// Asks while one writes, half a second after the last key, and at once with Enter.
function QueryBox(props: { readonly say: Say; readonly q: string; readonly fault: string; readonly onQuery: (q: string) => void }) {
  const [text, setText] = useState(props.q);
  const timer = useRef(0);
  useEffect(() => setText(props.q), [props.q]);
  const isLong = (value: string): boolean => `${new URLSearchParams({ value })}`.length > MOST_BYTES;
  const fault = isLong(text) ? props.say("bar.query.long") : props.fault;
  const ask = (value: string, wait: number): void => {
    clearTimeout(timer.current);
    if (isLong(value)) return;
    timer.current = window.setTimeout(() => props.onQuery(value.trim()), wait);
  };
  return (
    <div class={fault ? "query fault" : "query"} role="search">
      <input id="query" type="search" spellcheck={false} autocomplete="off" aria-label={props.say("bar.query")}
        aria-invalid={fault !== ""} aria-describedby="query-fault" title={fault}
        placeholder={props.say("bar.query.hint")} value={text} dir="auto"
        onInput={(event) => {
          setText(event.currentTarget.value);
          ask(event.currentTarget.value, 400);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") ask(event.currentTarget.value, 0);
          if (event.key !== "Escape") return;
          // Leaves the box; the query stays.
          event.preventDefault();
          event.currentTarget.blur();
        }} />
      <span id="query-fault" class={isLong(text) ? "query-long" : "heard"} role="status">{fault}</span>
    </div>
  );
}

const numbers = (values: readonly number[]): readonly Choice[] => values.map((value) => ({ key: String(value), text: String(value) }));

export function TopBar(props: BarProps) {
  const { say, state, context } = props;
  const session = context?.session;
  const place = session?.placeInfo() ?? null;
  const fault = session?.hits?.error;
  return (
    <header class="bar">
      <button class="brand" title={say("app.back")} onClick={props.onList} disabled={!props.isServed}>
        <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d="M8 0v8M8 16l-3.2-5.5h6.4z" /></svg>
        {say("app.name")}
      </button>
      {context && session && place && (
        <>
          <Choose label={say("bar.step")} value={String(place.step)} choices={numbers(session.meta.steps)} choose={(step) => context.go({ step: Number(step) })} />
          <Choose label={say("bar.rank")} value={String(place.rank)} choices={numbers(session.meta.ranks)} choose={(rank) => context.go({ rank: Number(rank) })} />
          {place.micro_steps > 1 && (
            <Choose label={say("bar.ms")} value={String(state.ms)} choose={(ms) => context.go({ ms: Number(ms) })}
              choices={[{ key: "-1", text: say("bar.all") }, ...numbers([...Array(place.micro_steps).keys()])]} />
          )}
          <QueryBox say={say} q={state.q} fault={fault ? say("hits.fault", fault.at + 1, fault.message) : ""}
            onQuery={(q) => context.go({ q })} />
        </>
      )}
      {!place && <span class="grow" />}
      <div class="tools">
        {context && <button onClick={() => context.copy(location.href, say("app.copied"))} title={`${say("bar.share")} (Ctrl+L)`}>{say("bar.share")}</button>}
        {session && <button onClick={props.onExport}>{say("bar.export")}</button>}
        <button onClick={props.onTheme} title={say("bar.theme", say(`bar.theme.${props.theme}`))} aria-label={say("bar.theme", say(`bar.theme.${props.theme}`))}>
          <span aria-hidden="true">{props.theme === "auto" ? "◐" : props.theme === "light" ? "☀" : "☾"}</span>
        </button>
        <button onClick={props.onLanguage} lang={say("bar.language") === "English" ? "en" : "zh"}>{say("bar.language")}</button>
        <button onClick={props.onHelp} title={`${say("bar.help")} (?)`} aria-label={say("bar.help")}>?</button>
      </div>
    </header>
  );
}
