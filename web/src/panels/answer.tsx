// The first line is the answer, as plumb compare prints it; a click goes there.
import { useState } from "preact/hooks";
import { formatCount } from "../format";
import { LevelMark } from "../marks";
import type { Session } from "../session";
import type { Level } from "../types";
import type { Context } from "../view";

export function Answer({ context }: { readonly context: Context }) {
  const { say, session } = context;
  const [isWhole, setWhole] = useState(false);
  const { answer, first, complete, golden, target, notes, kind } = session.meta;
  const [line = "", ...rest] = answer;
  const lines = [...rest, ...notes];
  const level: Level = first ? "error" : kind === "compare" && isGood(session) ? "pass" : "none";
  return (
    <section class={`answer ${level}`} aria-label={say("answer.first")}>
      <div class="answer-line">
        <LevelMark level={level} say={say} />
        <h1>
          <button class="lead" disabled={!first} title={first ? say("answer.open") : ""} onClick={() => context.first()}><bdi>{line || say("answer.alone")}</bdi></button>
        </h1>
        {!first && rest[0] && !isWhole && <span class="second"><bdi>{rest[0]}</bdi></span>}
        {lines.length > 0 && (
          <button class="more" aria-expanded={isWhole} title={say("answer.all")} onClick={() => setWhole(!isWhole)}>
            {notes.length > 0 && !isWhole && <>{say("answer.notes", notes.length)} </>}<span aria-hidden="true">{isWhole ? "▴" : "▾"}</span><span class="heard">{say("answer.all")}</span>
          </button>
        )}
        <CountChips context={context} />
      </div>
      {first && !isWhole && (
        <p class="second">
          {first.cause_text && <><bdi>{say("answer.cause", first.cause, first.confidence, first.cause_text)}</bdi> · </>}
          <bdi>{first.what}</bdi>
        </p>
      )}
      {isWhole && <pre class="answer-rest">{lines.join("\n")}</pre>}
      <div class="paths">
        {first?.stack_line && !isWhole && <bdi class="stack-line" title={first.stack_line}>{first.stack_line}</bdi>}
        <span>{say("side.target")}</span> <bdi title={target}>{target}</bdi>
        {golden && <><span>{say("side.golden")}</span> <bdi title={golden}>{golden}</bdi></>}
        {!complete && <em>{say("app.incomplete")}</em>}
      </div>
    </section>
  );
}

// Nothing is "good" as long as anything is wrong, unmatched or not judged at any place.
function isGood(session: Session): boolean {
  return session.meta.complete && session.meta.places.length > 0 && session.meta.places.every(({ counts }) =>
    counts.pass > 0 && counts.warning + counts.error + counts.none + counts.unmatched_target + counts.unmatched_golden === 0);
}

function CountChips({ context }: { readonly context: Context }) {
  const { say, session } = context;
  const place = session.placeInfo();
  if (!place || session.meta.kind === "build") return null;
  const { counts } = place;
  const chips: readonly [Level, number][] = [
    ["error", counts.error], ["warning", counts.warning],
    ["unmatched", counts.unmatched_target + counts.unmatched_golden], ["none", counts.none], ["pass", counts.pass],
  ];
  return (
    <div class="chips">
      {chips.map(([level, count]) => (
        <button key={level} class={`chip ${level}`} disabled={count === 0} title={say(`level.${level}`)}
          onClick={() => context.go({ q: `level:${level}` })}>
          <LevelMark level={level} say={say} />{formatCount(count)}
        </button>
      ))}
    </div>
  );
}
