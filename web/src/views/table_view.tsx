// The rows of a table that a command wrote, each with the level of its own result: sorted, filtered,
// the one below the cursor in full, and the way from it to the graph.
import { useMemo } from "preact/hooks";
import { formatCount } from "../format";
import { LevelMark, SEVERITY, SYMBOL } from "../marks";
import { Answer, Choose, keep, Trouble, useAsked, useRedraw, type ViewProps } from "../parts/kit";
import { Pages } from "../parts/pages";
import { Table, type Column } from "../parts/table";
import { success } from "../result";
import { NO_STATE } from "../state";
import { tablePage, tableQuestion, tableRow, type TablePage, type TableRow } from "../table_answers";

const PAGE = 50;
const widthOf = (column: string): string => (/name|message|stack|answer/i.test(column) ? "24em" : "9em");

export function TableView(props: ViewProps) {
  const { context, state } = props;
  const { api, session, say } = context;
  const path = `d/${encodeURIComponent(session.dataset)}/table`;
  const question = tableQuestion(state);
  const head = useAsked(() => api.ask(path, { ...question, limit: 1 }, tablePage), [path, ...Object.values(question)]);
  return <Answer asked={head} say={say}>{(value) => <Rows {...props} head={value} path={path} />}</Answer>;
}

function Rows({ context, state, head, path }: ViewProps & { readonly head: TablePage; readonly path: string }) {
  const { api, say } = context;
  const question = tableQuestion(state);
  const redraw = useRedraw();
  const pages = useMemo(() => new Pages<TableRow>(async (offset, limit) => {
    const got = await api.ask(path, { ...question, offset, limit }, tablePage);
    return got.ok ? success(got.value) : got;
  }, PAGE, redraw), [path, ...Object.values(question)]);
  const { at: chosen = "" } = state.extra;
  const cursor = Math.max(0, chosen === "" ? head.first : Number(chosen));
  const at = pages.row(cursor);
  const change = (extra: Readonly<Record<string, string>>): void => keep(context, state, { at: "", ...extra });
  const open = async (row: TableRow): Promise<void> => {
    if (!head.recordings || row.call === "") return;
    const { target, golden, step, rank } = head.recordings;
    const got = await api.open(target, golden);
    if (got.ok) context.go({ ...NO_STATE, dataset: got.value, node: row.call, step, rank });
    else context.notice(say("table.not-served", target, golden));
  };
  const columns: readonly Column<TableRow>[] = [
    { title: "", width: "5em", isNumber: true, cell: ({ row }) => formatCount(row + 1) },
    { title: say("open.column.level"), width: "8em", cell: (row) => <LevelMark level={row.level} say={say} withWord /> },
    ...head.columns.map((title, i): Column<TableRow> => ({ title, width: widthOf(title), cell: ({ cells }) => <bdi>{cells[i]}</bdi> })),
  ];
  const sorts = [
    { key: "", text: say("table.as-written") }, { key: "level", text: say("table.worst-first") },
    ...head.columns.flatMap((text, i) => [{ key: String(i), text: `${text} ↑` }, { key: `-${i}`, text: `${text} ↓` }]),
  ];
  return (
    <>
      <div class="bar-of-fields">
        {head.parts.length > 1 && (
          <Choose label={say("table.part")} value={question.part} choices={head.parts.map((text, i) => ({ key: String(i), text }))}
            choose={(part) => change({ part, sort: "", find: "" })} />
        )}
        <Choose label={say("table.order")} value={question.sort} choices={sorts} choose={(sort) => change({ sort })} />
        <label class="field">{say("table.find")}{" "}
          <input id="query" type="search" value={question.q} placeholder="level:error" onChange={(event) => change({ find: event.currentTarget.value })} />
        </label>
        {[...SEVERITY].reverse().map((level) => (head.counts[level] ?? 0) > 0 && (
          <button key={level} type="button" class="small-button" onClick={() => change({ find: `level:${level}` })}>
            {SYMBOL[level]} {formatCount(head.counts[level] ?? 0)} {say(`level.${level}`)}
          </button>
        ))}
        <span class="quiet">{say("table.shown", formatCount(head.total), formatCount(head.all))}</span>
      </div>
      {pages.failure && <Trouble error={pages.failure} say={say} />}
      <Table label={say("view.table")} columns={columns} total={head.total} row={(i) => pages.row(i)} want={(from, to) => pages.want(from, to)}
        cursor={cursor} move={(i) => keep(context, state, { at: String(i) })} open={(row) => void open(row)} />
      {head.recordings && at && at.call !== "" && (
        <p><button type="button" onClick={() => void open(at)}>{say("trend.open-node")} (Enter)</button> <bdi class="mono">{at.call}</bdi></p>
      )}
      {at && <WholeRow path={path} part={question.part} row={at.row} label={say("table.row", formatCount(at.row + 1))} context={context} />}
    </>
  );
}

function WholeRow({ path, part, row, label, context }: { path: string; part: string; row: number; label: string; context: ViewProps["context"] }) {
  const asked = useAsked(() => context.api.ask(`${path}/row`, { part, row }, tableRow), [path, part, row]);
  return (
    <section class="whole-row" tabIndex={0} aria-label={label}>
      <Answer asked={asked} say={context.say}>
        {({ columns, rows }) => <dl>{columns.map((name, i) => <div key={i}><dt>{name}</dt><dd><bdi>{rows[0]?.cells[i]}</bdi></dd></div>)}</dl>}
      </Answer>
    </section>
  );
}
