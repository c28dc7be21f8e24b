// The list that J and K walk through: hits of the query, with its first page and more on demand.
import { useEffect, useRef } from "preact/hooks";
import { formatCount, formatError, shortName } from "../format";
import type { Hits } from "../hits";
import { LevelMark } from "../marks";
import type { Say } from "../texts";
import type { NodeRow } from "../types";
import { VirtualRows } from "../virtual_rows";

export interface HitsProps {
  readonly say: Say;
  readonly hits: Hits;
  readonly selected: number;
  readonly order: string;
  readonly onOrder: (order: string) => void;
  readonly onSelect: (row: NodeRow) => void;
  readonly onClose: () => void;
}

const ROW = 24;

export function HitsPanel(props: HitsProps) {
  const { say, hits } = props;
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const at = hits.at * ROW;
    const box = list.current?.querySelector(".rows");
    if (box && hits.at >= 0 && (at < box.scrollTop || at > box.scrollTop + box.clientHeight - ROW)) {
      box.scrollTop = at - box.clientHeight / 3;
    }
  }, [hits, hits.at]);
  const more = (to: number): void => {
    if (to >= hits.rows.length - 10) void hits.more();
  };
  return (
    <aside class="hits" aria-label={say("hits.title")} ref={list}>
      <div class="panel-head">
        <h2>{say("hits.title")}</h2>
        <span class="dim" role="status">
          {hits.state === "ready" && say("hits.count", hits.at + 1, formatCount(hits.total))}
        </span>
        <select value={props.order} aria-label={say("hits.order.execution")} onChange={(event) => props.onOrder(event.currentTarget.value)}>
          <option value="execution">{say("hits.order.execution")}</option>
          <option value="name">{say("hits.order.name")}</option>
          <option value="error">{say("hits.order.error")}</option>
        </select>
        <button class="close" aria-label={say("app.close")} title={say("app.close")} onClick={props.onClose}>✕</button>
      </div>
      {hits.error && <p class="empty bad">{say("hits.fault", hits.error.at + 1, hits.error.message)}</p>}
      {hits.state === "failed" && <p class="empty bad">{hits.message}</p>}
      {hits.state === "ready" && !hits.error && hits.total === 0 && <p class="empty">{say("hits.none")}</p>}
      <VirtualRows count={hits.rows.length} height={ROW} label={say("hits.title")} onRange={(_, to) => more(to)}
        row={(i) => {
          const row = hits.rows[i];
          if (!row) return null;
          return (
            <button class={row.id === props.selected ? "hit chosen" : "hit"} title={row.name} onClick={() => props.onSelect(row)}>
              <LevelMark level={row.level} say={say} />
              <bdi class="mono">{shortName(row.name, row.type)}</bdi>
              <span class="number">{formatError(row.error)}</span>
            </button>
          );
        }} />
    </aside>
  );
}
