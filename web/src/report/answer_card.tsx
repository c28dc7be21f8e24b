// The answer of a report with its facts, and how many rows have which verdict.
import { formatCount } from "../format";
import { VERDICTS, verdictKey } from "../marks";
import type { Say } from "../texts";
import { rankLabel, type FileDataset } from "./file_dataset";
import type { Part } from "./part";
import type { Certainty, FirstCall } from "./report_data";
import { levelOf } from "./verdict_mark";

export function AnswerCard(props: { readonly say: Say; readonly data: FileDataset; readonly part: Part }) {
  const { say, data, part } = props;
  const { overview } = data.head;
  const of = overview ?? part.data.header;
  const line = overview?.answer ?? part.data.answer[0] ?? "";
  const answer = of.first_wrong_call;
  const weak = of.certainty && of.certainty.level !== "high" ? of.certainty : null;
  if (!answer) return <NothingNamed say={say} line={line} weak={weak} />;
  const lead = overview?.first_wrong_call
    ? say("report.first-over", overview.ranks.length, say(overview.unit === "step" ? "report.unit.step" : "report.unit.rank"), rankLabel(overview.first_wrong_call))
    : say("answer.first");
  return (
    <section class="report-answer error" aria-label={say("answer.first")}>
      <div class="dim">{lead}</div>
      <div class="report-name"><bdi>{answer.name}</bdi></div>
      {answer.cause !== "" && <p><b>{causeText(say, answer)}</b> <bdi>{answer.cause_text}</bdi></p>}
      {answer.what !== answer.cause_text && <p><bdi>{answer.what}</bdi></p>}
      {weak && <CertaintyLine say={say} certainty={weak} />}
      <Facts say={say} answer={answer} part={part} isComplete={of.complete} isWhole={overview === null} />
    </section>
  );
}

function causeText(say: Say, answer: FirstCall): string {
  if (answer.cause === "unexplained") return say("report.cause-unknown");
  const sure = answer.confidence === "" ? "" : ` ${say("report.confidence", answer.confidence)}`;
  return say("report.cause", answer.cause) + sure;
}

function NothingNamed(props: { readonly say: Say; readonly line: string; readonly weak: Certainty | null }) {
  const { say, line, weak } = props;
  const isGood = line.startsWith("no wrong call");
  const lead = !isGood ? say("report.not-judged") : weak ? say("report.good-weak") : say("report.good");
  return (
    <section class={`report-answer ${isGood ? "pass" : "none"}`}>
      <div class="dim">{lead}</div>
      <p class="report-line"><bdi>{line}</bdi></p>
      {isGood && weak && <CertaintyLine say={say} certainty={weak} />}
    </section>
  );
}

function CertaintyLine(props: { readonly say: Say; readonly certainty: Certainty }) {
  return <p><b>{props.say("report.certainty", props.certainty.level)}</b> {props.certainty.text}</p>;
}

function Facts(props: {
  readonly say: Say; readonly answer: FirstCall; readonly part: Part; readonly isComplete: boolean; readonly isWhole: boolean;
}) {
  const { say, answer, part, isWhole } = props;
  const facts: readonly (readonly [string, string])[] = [
    [say("report.called-at"), answer.stack_line],
    [say("report.inside"), answer.module_path.join("  <  ")],
    [say("report.seen-in"), answer.item],
    [say("report.as-test"), isWhole ? part.data.header.as_test : ""],
    [say("report.mode"), part.data.header.mode],
  ];
  return (
    <dl class="facts">
      {facts.filter(([, value]) => value !== "").map(([name, value]) => (
        <><dt>{name}</dt><dd class="mono"><bdi>{value}</bdi></dd></>
      ))}
      {isWhole && part.data.next_config !== "" && (
        <><dt>{say("report.next")}</dt><dd><details><summary>config.json</summary><pre class="mono config">{part.data.next_config}</pre></details></dd></>
      )}
      {!props.isComplete && <><dt /><dd>{say("report.incomplete")}</dd></>}
    </dl>
  );
}

export function Counts(props: { readonly say: Say; readonly part: Part }) {
  const { say, part } = props;
  const { counts } = part.data.header;
  const of = (name: string): number => counts[name] ?? 0;
  const extra = ([
    ["unmatched target", "report.unmatched-target"], ["unmatched golden", "report.unmatched-golden"],
    ["unreadable files", "report.unreadable"], ["missing values", "report.missing-values"],
  ] as const).filter(([name]) => of(name) > 0);
  const box = (name: string, count: number, level: string) => <li key={name} class={`total-${level}`}><b>{formatCount(count)}</b> {name}</li>;
  return (
    <ul class="totals" aria-label={say("report.counts")}>
      {VERDICTS.map((name, i) => box(say("report.count-rows", say(verdictKey(i))), of(name), levelOf(i)))}
      {box(say("report.paired"), of("paired calls"), "none")}
      {extra.map(([name, key]) => box(say(key), of(name), "warning"))}
    </ul>
  );
}
