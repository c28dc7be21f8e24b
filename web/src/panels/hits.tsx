// The list that J and K walk through: hits of the query, with its first page and more on demand.
import { formatCount, formatError, shortName } from "../format";
import type { Hits } from "../hits";
import { LevelMark } from "../marks";
import type { State } from "../state";
import type { Context } from "../view";
import { VirtualRows } from "../virtual_rows";

const ROW = 24;

export function HitsPanel({ context, state, hits }: { readonly context: Context; readonly state: State; readonly hits: Hits }) {
  const { say, session } = context;
  const more = (to: number): void => {
    if (to >= hits.rows.length - 10) void hits.more();
  };
  const setOrder = (order: string): void => context.go({ extra: { ...state.extra, order: order === "execution" ? "" : order } });
  return (
    <aside class="hits" aria-label={say("hits.title")}>
      <div class="panel-head">
        <h2>{say("hits.title")}</h2>
        <span class="dim" role="status">
          {hits.state === "ready" && say("hits.count", hits.at + 1, formatCount(hits.total))}
        </span>
        <select value={state.extra["order"] ?? "execution"} aria-label={say("hits.order.execution")} onChange={(event) => setOrder(event.currentTarget.value)}>
          <option value="execution">{say("hits.order.execution")}</option>
          <option value="name">{say("hits.order.name")}</option>
          <option value="error">{say("hits.order.error")}</option>
        </select>
        <button class="close" aria-label={say("app.close")} title={say("app.close")} onClick={() => context.go({ q: "" })}>✕</button>
      </div>
      {hits.error && <p class="empty bad">{say("hits.fault", hits.error.at + 1, hits.error.message)}</p>}
      {hits.state === "failed" && <p class="empty bad">{hits.message}</p>}
      {hits.state === "ready" && !hits.error && hits.total === 0 && <p class="empty">{say("hits.none")}</p>}
      <VirtualRows count={hits.rows.length} height={ROW} label={say("hits.title")} focus={hits.at} onRange={(_, to) => more(to)}
        row={(i) => {
          const row = hits.rows[i];
          if (!row) return null;
          return (
            <button class={row.id === session.selected?.id ? "hit chosen" : "hit"} title={row.name} onClick={() => context.select(row)}>
              <LevelMark level={row.level} say={say} />
              <bdi class="mono">{shortName(row.name, row.type)}</bdi>
              <span class="number">{formatError(row.error)}</span>
            </button>
          );
        }} />
    </aside>
  );
}
