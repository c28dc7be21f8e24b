// What every view of forms, tables and charts is made of.
import "./parts.css";
import { render, type ComponentChild, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Failure, Result } from "../result";
import type { State } from "../state";
import type { Say } from "../texts";
import type { Context, View } from "../view";
import { PlainTable } from "./table";

export interface ViewProps {
  readonly context: Context;
  readonly state: State;
  // Where a view puts what it does with keys.
  readonly keys: KeyHandler;
}

export interface KeyHandler {
  take: ((event: KeyboardEvent) => boolean) | null;
}

// A view that is drawn by one component.
export class PartsView implements View {
  readonly #root: HTMLElement;
  readonly #context: Context;
  readonly #Component: ComponentType<ViewProps>;
  readonly #keys: KeyHandler = { take: null };

  constructor(root: HTMLElement, context: Context, component: ComponentType<ViewProps>) {
    this.#root = root;
    this.#context = context;
    this.#Component = component;
    root.classList.add("parts");
  }

  show(state: State): void {
    this.#keys.take = null;
    const Component = this.#Component;
    render(<Component context={this.#context} state={state} keys={this.#keys} />, this.#root);
  }

  key(event: KeyboardEvent): boolean {
    return this.#keys.take?.(event) ?? false;
  }

  dispose(): void {
    render(null, this.#root);
    this.#root.classList.remove("parts");
  }
}

// Changes what the view keeps in the address.
export function keep(context: Context, state: State, change: Readonly<Record<string, string>>): void {
  context.go({ extra: { ...state.extra, ...change } }, { replace: true });
}

export type Asked<T> = { readonly ok: null } | Result<T>;

// Asks whenever one of `on` changes; the last answer stays while the next is under way.
export function useAsked<T>(ask: () => Promise<Result<T>> | null, on: readonly unknown[]): Asked<T> {
  const [answer, setAnswer] = useState<Asked<T>>({ ok: null });
  useEffect(() => {
    let isCurrent = true;
    const asked = ask();
    if (asked === null) setAnswer({ ok: null });
    void asked?.then((got) => {
      if (isCurrent) setAnswer(got);
    });
    return () => {
      isCurrent = false;
    };
  }, on);
  return answer;
}

// What draws a view anew once it has been told something.
export function useRedraw(): () => void {
  const [, setCount] = useState(0);
  return () => setCount((n) => n + 1);
}

export function Trouble({ error, say }: { error: Failure; say: Say }) {
  return <p class="trouble" role="alert">✕ {say("app.error", error.message)}</p>;
}

// What a program remarks on its answer.
export const Notes = ({ notes }: { readonly notes: readonly string[] }) =>
  notes.length === 0 ? null : <ul class="notes">{notes.map((note) => <li key={note}>! {note}</li>)}</ul>;

// What has been asked for, or that it is under way, or why it did not come.
export function Answer<T>(props: { asked: Asked<T>; say: Say; children: (value: T) => ComponentChild }) {
  const { asked, say, children } = props;
  if (asked.ok === null) return <p class="quiet" role="status">{say("app.loading")}</p>;
  return asked.ok ? <>{children(asked.value)}</> : <Trouble error={asked.error} say={say} />;
}

export interface Choice {
  readonly key: string;
  readonly text: string;
}

export function Choose(props: { label: string; value: string; choices: readonly Choice[]; choose: (key: string) => void }) {
  return (
    <label class="field">{props.label}{" "}
      <select value={props.value} disabled={props.choices.length < 2} onChange={(event) => props.choose(event.currentTarget.value)}>
        {props.choices.map(({ key, text }) => <option key={key} value={key}>{text}</option>)}
      </select>
    </label>
  );
}

export function Check(props: { label: string; checked: boolean; change: (checked: boolean) => void }) {
  return (
    <label class="field">
      <input type="checkbox" checked={props.checked} onChange={(event) => props.change(event.currentTarget.checked)} />
      {" "}{props.label}
    </label>
  );
}

// Tells of a value when it is let go.
export function Slider(props: { label: string; value: number; count: number; change: (value: number) => void }) {
  const [moving, setMoving] = useState<number | null>(null);
  const at = moving ?? props.value;
  return (
    <label class="field">{props.label}{" "}
      <input type="range" min={0} max={props.count - 1} value={at} onInput={(event) => setMoving(Number(event.currentTarget.value))}
        onChange={(event) => {
          setMoving(null);
          props.change(Number(event.currentTarget.value));
        }} />
      {" "}<output>{at}</output>
    </label>
  );
}

// One of several, by arrow keys as a list of tabs.
export function Tabs(props: { label: string; value: string; choices: readonly Choice[]; choose: (key: string) => void }) {
  const move = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0 || !(event.currentTarget instanceof HTMLElement)) return;
    event.preventDefault();
    event.stopPropagation();
    const at = props.choices.findIndex(({ key }) => key === props.value) + step + props.choices.length;
    const next = at % props.choices.length;
    props.choose(props.choices[next]?.key ?? props.value);
    const button = event.currentTarget.children[next];
    if (button instanceof HTMLElement) button.focus();
  };
  return (
    <div class="sections" role="tablist" aria-label={props.label} onKeyDown={move}>
      {props.choices.map(({ key, text }) => (
        <button key={key} type="button" role="tab" aria-selected={key === props.value}
          tabIndex={key === props.value ? 0 : -1} onClick={() => props.choose(key)}>{text}</button>
      ))}
    </div>
  );
}

// A small table of texts and numbers, all of it in the page.
export function Facts(props: { caption: string; head: readonly string[]; rows: readonly (readonly string[])[] }) {
  const columns = props.head.map((title, i) => ({ title, isNumber: i > 0, cell: (row: readonly string[]) => row[i] ?? "" }));
  return <PlainTable class="fact-table" caption={props.caption} columns={columns} rows={props.rows} />;
}
