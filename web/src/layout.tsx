// Where everything stands: bar, answer, tabs, hits, the view, the flow and the details.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { isGraph } from "./dataset_kind";
import type { Api } from "./api";
import { Answer } from "./panels/answer";
import { Details } from "./panels/details";
import { Flow } from "./panels/flow";
import { HitsPanel } from "./panels/hits";
import { OpenPanel } from "./panels/open";
import { TopBar, type Theme } from "./panels/top_bar";
import type { Failure, Result } from "./result";
import type { State } from "./state";
import type { Say } from "./texts";
import type { Datasets } from "./types";
import type { Context } from "./view";
import { viewsOf } from "./views";

interface LayoutProps {
  readonly say: Say;
  readonly state: State;
  // null: nothing is open.
  readonly context: Context | null;
  readonly api: Api;
  readonly datasets: Result<Datasets> | null;
  readonly theme: Theme;
  readonly notice: string;
  readonly failure: Failure | null;
  // Of a comparison that still runs; -1: none does.
  readonly progress: number;
  readonly viewRoot: HTMLElement;
  readonly view: string;
  readonly dialog: ComponentChildren;
  readonly onOpen: (dataset: string) => void;
  readonly onList: () => void;
  readonly onTheme: () => void;
  readonly onLanguage: () => void;
  readonly onHelp: () => void;
  readonly onExport: () => void;
}

export function Layout(props: LayoutProps) {
  const { say, context, state } = props;
  const isReady = context?.session.isReady === true;
  return (
    <>
      <a class="skip" href="#view" onClick={(event) => {
        event.preventDefault();
        props.viewRoot.querySelector<HTMLElement>("[tabindex='0']")?.focus();
      }}>{say("app.skip")}</a>
      <TopBar {...props} isServed={props.api.isServed} />
      {isReady && <Opened {...props} context={context} />}
      {state.dataset === "" && <OpenPanel say={say} api={props.api} datasets={props.datasets} onOpen={props.onOpen} />}
      {state.dataset !== "" && !isReady && <Waiting {...props} />}
      <div class="notice" role="status" aria-live="polite">{props.notice && <p>{props.notice}</p>}</div>
      {props.dialog}
    </>
  );
}

function Waiting(props: LayoutProps) {
  const { say, failure, progress, context } = props;
  if (failure) return <main class="open" id="view"><p class="empty bad" role="alert">{failure.message}</p></main>;
  if (context?.session.meta.places.length === 0) return <main class="open" id="view"><p class="empty">{say("tree.empty")}</p></main>;
  const known = props.datasets?.ok ? props.datasets.value.datasets.find(({ id }) => id === props.state.dataset) : undefined;
  return (
    <main class="open waiting" id="view" aria-busy="true">
      <h1>{progress >= 0 ? say("app.building", `${Math.round(progress * 100)} %`) : say("app.loading")}</h1>
      {/* Without a value it moves: nothing is known yet, but something is done. */}
      {progress >= 0 && <progress {...(progress > 0 && { value: progress })} aria-label={say("app.building", "")} />}
      {known && <p class="mono"><bdi>{known.target}</bdi></p>}
      {known?.golden && <p class="mono"><bdi>{known.golden}</bdi></p>}
    </main>
  );
}

function Opened(props: LayoutProps & { readonly context: Context }) {
  const { context, state } = props;
  const { say, session } = context;
  const hits = state.q !== "" ? session.hits : null;
  return (
    <>
      {isGraph(session.meta) && <Answer context={context} />}
      <nav class="tabs" aria-label={say("bar.views")}>
        <div role="tablist" aria-label={say("bar.views")}>
          {viewsOf(session).map((kind) => (
            <button key={kind.key} role="tab" aria-selected={kind.key === props.view} title={kind.shortcut && `${say(kind.title)} (${kind.shortcut})`}
              onClick={() => context.go({ view: kind.key })}>{say(kind.title)}</button>
          ))}
        </div>
        <div class="tab-tools" id="view-tools" />
      </nav>
      <main class={hits ? "work with-hits" : "work"}>
        {hits && <HitsPanel context={context} state={state} hits={hits} />}
        <Splits viewRoot={props.viewRoot} say={say} isSmall={session.selected === null}
          below={viewsOf(session).find((kind) => kind.key === props.view)?.isWhole === true ? null : (
            <>
              <Flow context={context} />
              <Details context={context} state={state} />
            </>
          )} />
      </main>
    </>
  );
}

const LOWEST = 120;

// The view above, what is said of the selected call below, and a border that can be moved.
function Splits(props: {
  readonly viewRoot: HTMLElement; readonly say: Say; readonly isSmall: boolean; readonly below: ComponentChildren;
}) {
  const holder = useRef<HTMLDivElement>(null);
  const [height, setHeight] = useState(Math.round(Math.min(380, Math.max(LOWEST, innerHeight * 0.4))));
  useEffect(() => holder.current?.replaceChildren(props.viewRoot), [props.viewRoot]);
  const limit = (value: number): void => setHeight(Math.round(Math.min(Math.max(value, LOWEST), innerHeight - 260)));
  return (
    <div class="splits" style={{ gridTemplateRows: props.below === null ? "minmax(0, 1fr)" : `minmax(0, 1fr) 7px ${props.isSmall ? LOWEST : height}px` }}>
      <div class="view-holder" ref={holder} />
      {props.below !== null && <div class="splitter" role="separator" aria-orientation="horizontal" tabIndex={0} aria-valuenow={height} aria-valuemin={LOWEST}
        aria-valuemax={innerHeight - 260} aria-label={props.say("details.title")}
        onKeyDown={(event) => {
          const by = { ArrowUp: 24, ArrowDown: -24 }[event.key];
          if (by === undefined) return;
          event.preventDefault();
          limit(height + by);
        }}
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={(event) => {
          if (event.currentTarget.hasPointerCapture(event.pointerId)) limit(innerHeight - event.clientY);
        }} />}
      {props.below !== null && <div class="below">{props.below}</div>}
    </div>
  );
}
