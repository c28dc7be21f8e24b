// Several ranks or steps: a line for each, and where each goes wrong.
import { formatCount, formatError } from "../format";
import { verdictKey } from "../marks";
import { PlainTable, type Column } from "../parts/table";
import type { Say } from "../texts";
import { rankLabel, type FileDataset } from "./file_dataset";
import type { Part } from "./part";
import type { GrowthPoint, Overview, RankLine } from "./report_data";
import { levelOf, VerdictMarks } from "./verdict_mark";

interface RanksProps {
  readonly say: Say;
  readonly data: FileDataset;
  readonly place: number;
  readonly onPlace: (place: number) => void;
  // A call by its place and its index in the part's calls.
  readonly onCall: (place: number, call: number) => void;
}

const COUNTED = ["within noise", "suspicious", "broken", "not comparable"] as const;

// What a rank's first wrong call has to do with the answer over all ranks.
function standing(say: Say, overview: Overview, rank: RankLine): string {
  if (rank.state === "missing") return say("report.missing");
  if (rank.state === "failed") return rank.error ?? "";
  if (rank.wrong_calls === 0) return say(rank.complete ? "report.nothing-wrong" : "report.nothing-wrong-judged");
  const at = overview.origins.findIndex((origin) => origin.step === rank.step && origin.rank === rank.rank);
  if (at === 0) return say("report.starts-here");
  if (at > 0) return say("report.own-too");
  const first = overview.origins[0];
  if (first && first.step !== rank.step) return say("report.follows-step", first.step ?? 0);
  return say("report.follows-rank");
}

export function RanksCard(props: RanksProps & { readonly overview: Overview }) {
  const { say, data, overview } = props;
  const title = say(overview.unit === "step" ? "report.steps" : "report.ranks");
  const first = overview.origins[0];
  const isAnswer = (rank: RankLine): boolean => first !== undefined && first.step === rank.step && first.rank === rank.rank;
  const name = (rank: RankLine) => {
    const place = data.placeOfRank(rank);
    return (
      <button class="plain" disabled={place < 0} aria-pressed={place === props.place} onClick={() => props.onPlace(place)}>
        {place === props.place ? <b>{rankLabel(rank)}</b> : rankLabel(rank)}
      </button>
    );
  };
  const columns: readonly Column<RankLine>[] = [
    { title, cell: name },
    { title: say("report.what-there"), cell: (rank) => <bdi>{standing(say, overview, rank)}</bdi> },
    { title: say("report.its-first"), cell: (rank) => <bdi class="mono">{data.parts[data.placeOfRank(rank)]?.data.header.first_wrong_call?.name}</bdi> },
    ...COUNTED.map((kind, i): Column<RankLine> => ({
      title: say(verdictKey(i + 1)), isNumber: true, cell: ({ counts }) => (counts ? formatCount(counts[kind] ?? 0) : ""),
    })),
  ];
  return (
    <section class="report-section">
      <h2>{title}</h2>
      <div class="report-card scroll">
        <PlainTable columns={columns} rows={overview.ranks} rowClass={(rank) => (isAnswer(rank) ? "marked" : "")} />
      </div>
      <Strips {...props} />
      {overview.notes.map((note) => <p key={note} class="dim">{say("report.not-judged-note", note)}</p>)}
    </section>
  );
}

const WIDTH = 1240, LABELS = 120, RIGHT = 14, ABOVE = 6;

// One strip per part along the call order, coloured by verdict; larger errors are stronger.
function Strips(props: RanksProps) {
  const { say, data, place } = props;
  const { parts } = data;
  const line = Math.max(9, Math.min(26, 520 / parts.length));
  const height = ABOVE + line * parts.length + 34;
  const last = Math.max(1, ...parts.map((part) => part.calls.total));
  const x = (call: number): number => LABELS + (call / last) * (WIDTH - LABELS - RIGHT);
  const every = Math.ceil(parts.length / 40);
  return (
    <div class="report-card">
      <h3>{say("report.strips")}</h3>
      <div class="legend">
        <VerdictMarks say={say} />
        <span><span class="bar-key" />{say("report.strip-first")}</span>
      </div>
      <svg class="report-plot" viewBox={`0 0 ${WIDTH} ${height}`} role="img" aria-label={say("report.strips")}>
        {parts.map((part, i) => {
          const top = ABOVE + i * line;
          const firstCall = part.firstCall();
          const at = x(part.calls.numbers[firstCall] ?? -1);
          return (
            <g key={i}>
              {i % every === 0 && <text x={LABELS - 8} y={top + line / 2 + 4} text-anchor="end" class={i === place ? "now" : ""}>{part.data.label}</text>}
              {marksOf(part.data.growth, part.calls.total).map((mark) => (
                <rect key={mark.from} x={x(mark.from)} y={top + 1} width={Math.max(1, x(mark.to) - x(mark.from))} height={line - 2}
                  class={`fill-${levelOf(mark.verdict)}`} fill-opacity={mark.strength} />
              ))}
              {firstCall >= 0 && <line class="first" x1={at} x2={at} y1={top} y2={top + line} />}
              <rect class="pick" x={LABELS} y={top} width={WIDTH - LABELS - RIGHT} height={line} fill-opacity={0}
                onMouseMove={(event) => {
                  const hint = event.currentTarget.querySelector("title");
                  if (hint) hint.textContent = pointText(say, part, callUnder(event, last));
                }}
                onClick={(event) => props.onCall(i, callNear(part, callUnder(event, last)))}>
                <title>{part.data.answer[0]}</title>
              </rect>
            </g>
          );
        })}
        <text x={(LABELS + WIDTH) / 2} y={height - 6} text-anchor="middle">{say("report.column.call")}</text>
      </svg>
    </div>
  );
}

// The number of the call under the mouse.
function callUnder(event: MouseEvent & { readonly currentTarget: Element }, last: number): number {
  const box = event.currentTarget.getBoundingClientRect();
  return ((event.clientX - box.left) / box.width) * last;
}

function pointText(say: Say, part: Part, number: number): string {
  const point = [...part.data.growth].reverse().find(({ call }) => call <= number);
  if (!point) return part.data.label;
  const call = callNear(part, point.call);
  const name = part.calls.numbers[call] === point.call ? part.callName(call) : `${say("report.column.call")} ${point.call}`;
  return `${part.data.label} ${name}\n${say(verdictKey(point.verdict))}, ${say("report.column.error")} ${formatError(point.error)}`;
}

// The last call of the page that is not behind the number of a call.
export function callNear(part: Part, number: number): number {
  let near = 0;
  part.calls.numbers.forEach((each, call) => {
    if (each <= number) near = call;
  });
  return near;
}

interface StripMark {
  readonly from: number;
  readonly to: number;
  readonly verdict: number;
  readonly strength: number;
}

// Neighbours that look alike are one mark: many ranks have many calls.
function marksOf(growth: readonly GrowthPoint[], end: number): readonly StripMark[] {
  const marks: StripMark[] = [];
  growth.forEach((point, i) => {
    const mark = { from: point.call, to: growth[i + 1]?.call ?? end, verdict: point.verdict, strength: strengthOf(point) };
    const before = marks.at(-1);
    if (before && before.verdict === mark.verdict && before.strength === mark.strength) marks[marks.length - 1] = { ...before, to: mark.to };
    else marks.push(mark);
  });
  return marks;
}

function strengthOf({ verdict, error }: GrowthPoint): number {
  if (verdict <= 1) return 0.35;
  if (verdict === 4) return 0.3;
  const size = error !== null && error > 0 ? Math.log10(error) : 0;
  return Math.round(Math.max(0.35, Math.min(1, 0.9 + size / 8)) * 10) / 10;
}

