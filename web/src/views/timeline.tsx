// Communication: the same call on all ranks in order, what does not agree is marked; and the peers of
// the selected call with their values.
import { useMemo, useState } from "preact/hooks";
import type { Api } from "../api";
import { formatScalar } from "../format";
import { LevelMark, SYMBOL } from "../marks";
import { GAP, LEVEL_COLOURS } from "../parts/colours";
import { HeatMap, type Cell } from "../parts/heat_map";
import { Answer, Trouble, useAsked, useRedraw, type ViewProps } from "../parts/kit";
import { Pages } from "../parts/pages";
import { Table, type Column } from "../parts/table";
import { success, type Result } from "../result";
import { FLAG, type CallEnd, type CommunicationCall, type Level, type Peer, type ValuePair } from "../types";
import type { Context } from "../view";
import { LevelKeys } from "./level_keys";

const PAGE = 200;
// Peers whose values are shown; more would be as many questions.
const PEERS_WITH_VALUES = 32;

interface ValuedPeer extends Peer {
  // The first output, else the first value.
  readonly value: ValuePair | null;
}

async function valuedPeers(api: Api, dataset: string, node: number): Promise<Result<readonly ValuedPeer[]>> {
  const peers = await api.peers(dataset, node);
  if (!peers.ok) return peers;
  const details = await Promise.all(peers.value.slice(0, PEERS_WITH_VALUES).map((peer) => api.node(dataset, peer.id)));
  return success(peers.value.map((peer, i) => {
    const known = details[i];
    const values = known?.ok ? known.value.values : [];
    return { ...peer, value: values.find((value) => value.role === "output") ?? values[0] ?? null };
  }));
}

// To the same call on another rank; "back" of the browser, or Backspace, returns.
function hop(context: Context, rank: number, name: string): void {
  context.go({ rank, node: name, side: context.session.side });
}

export function Peers({ context }: { context: Context }) {
  const { say, session, api } = context;
  const selected = session.selected;
  const asked = useAsked(() => (selected ? valuedPeers(api, session.dataset, selected.id) : null), [session.dataset, selected?.id]);
  if (!selected) return <p class="quiet">{say("comm.select")}</p>;
  const number = (name: "max" | "min" | "mean" | "norm"): Column<ValuedPeer> => ({
    title: say(`details.column.${name}`), width: "7.5em", isNumber: true, cell: ({ value }) => formatScalar(value?.[session.side]?.[name] ?? null),
  });
  const columns: readonly Column<ValuedPeer>[] = [
    { title: say("bar.rank"), width: "5em", isNumber: true, cell: (peer) => peer.rank },
    { title: say("comm.type"), width: "12em", cell: (peer) => say(`comm.${peer.type}`) },
    { title: say("details.column.verdict"), width: "9em", cell: (peer) => <LevelMark level={peer.level} say={say} withWord /> },
    { title: say("column.name"), width: "minmax(12em, 2fr)", cell: (peer) => <bdi class="mono">{peer.name}</bdi> },
    number("max"), number("min"), number("mean"), number("norm"),
    { title: say("comm.mismatch"), width: "minmax(10em, 1fr)", cell: (peer) => (peer.mismatch === "" ? "" : `≠ ${peer.mismatch}`) },
  ];
  return (
    <section class="brief" aria-label={say("comm.peers")}>
      <h2>{say("comm.peers")}: <bdi class="mono">{selected.name}</bdi></h2>
      <Answer asked={asked} say={say}>
        {(peers) => peers.length === 0
          ? <p class="quiet">{say((selected.flags & FLAG.communicates) === 0 ? "comm.no-communication" : "comm.no-peers")}</p>
          : <Table label={say("comm.peers")} columns={columns} atMost={8} total={peers.length} row={(i) => peers[i]} open={(peer) => hop(context, peer.rank, peer.name)} />}
      </Answer>
    </section>
  );
}

interface End extends CallEnd {
  readonly key: string;
}

function Ends({ context, call }: { context: Context; call: CommunicationCall }) {
  const { say, session, api } = context;
  const columns: readonly Column<End>[] = [
    { title: say("bar.rank"), width: "5em", isNumber: true, cell: (end) => end.rank },
    { title: say("column.order"), width: "7em", isNumber: true, cell: (end) => end.order },
    { title: say("details.column.verdict"), width: "10em", cell: (end) => <LevelMark level={end.level} say={say} withWord /> },
    { title: say("comm.mismatch"), width: "1fr", cell: (end) => (end.mismatch === "" ? "" : `≠ ${end.mismatch}`) },
  ];
  const open = async (end: End): Promise<void> => {
    const path = await api.path(session.dataset, end.id);
    const row = path.ok ? path.value.rows.at(-1) : undefined;
    if (row) hop(context, end.rank, row.name);
  };
  const ends = call.ends.map((end) => ({ ...end, key: call.key }));
  return (
    <section class="brief" aria-label={say("comm.ends")}>
      <h2>{call.kind} <bdi class="mono">{call.key}</bdi></h2>
      <Table label={say("comm.ends")} columns={columns} atMost={8} total={ends.length} row={(i) => ends[i]} open={(end) => void open(end)} />
    </section>
  );
}

export function TimelineView({ context }: ViewProps) {
  const { say, session, api } = context;
  const step = session.placeInfo()?.step ?? 0;
  const redraw = useRedraw();
  const [cursor, setCursor] = useState<Cell>({ row: 0, column: 0 });
  const [chosen, setChosen] = useState<number | null>(null);
  const [ranks, setRanks] = useState<readonly number[]>([]);
  const calls = useMemo(() => {
    const pages = new Pages<CommunicationCall>(async (offset, limit) => {
      const answer = await api.timeline(session.dataset, step, offset, limit);
      if (!answer.ok) return answer;
      setRanks(answer.value.ranks);
      return success({ total: answer.value.total, rows: answer.value.calls });
    }, PAGE, redraw);
    pages.want(0, 1);
    return pages;
  }, [session.dataset, step]);
  const end = ({ row, column }: Cell): CallEnd | undefined => calls.row(column)?.ends.find((each) => each.rank === ranks[row]);
  const level = (of: CallEnd): Level => (of.mismatch !== "" && of.level !== "error" ? "warning" : of.level);
  const open = chosen === null ? undefined : calls.row(chosen);
  return (
    <>
      <Peers context={context} />
      {calls.failure && <Trouble error={calls.failure} say={say} />}
      {calls.total === 0 && <p class="quiet">{say("comm.none", step)}</p>}
      {calls.total > 0 && (
        <>
          <HeatMap title={say("comm.timeline", step, calls.total)} say={say} rows={ranks.length} columns={calls.total} cursor={cursor} move={setCursor}
            least={{ width: 24, height: 20 }} most={{ width: 48, height: 30 }}
            shown={(_, columns) => calls.want(columns.from, columns.to)}
            rowLabel={(row) => `rank ${ranks[row] ?? ""}`} columnLabel={(column) => String(column)}
            colour={(row, column) => {
              const at = end({ row, column });
              return at ? LEVEL_COLOURS[level(at)] : GAP;
            }}
            text={(row, column) => {
              const at = end({ row, column });
              return at ? `${at.mismatch === "" ? "" : "≠"}${SYMBOL[at.level]}` : "";
            }}
            describe={(row, column) => {
              const at = end({ row, column });
              const call = calls.row(column);
              if (!call) return "…";
              const told = at ? `${say(`level.${at.level}`)}${at.mismatch === "" ? "" : ` ≠ ${at.mismatch}`}` : say("comm.absent");
              return `${column}: ${call.kind} ${call.key}, rank ${ranks[row] ?? ""}: ${told}`;
            }}
            open={(cell) => setChosen(cell.column)} />
          <LevelKeys say={say} extra={`≠ ${say("comm.mismatch")}`} />
        </>
      )}
      {open && <Ends context={context} call={open} />}
    </>
  );
}
