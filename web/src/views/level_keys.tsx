// What the colours and symbols of cells stand for.
import { SEVERITY, SYMBOL } from "../marks";
import { css, inkOn, LEVEL_COLOURS } from "../parts/colours";
import type { Say } from "../texts";

export function LevelKeys({ say, extra }: { say: Say; extra: string }) {
  return (
    <ul class="level-keys" aria-label={say("help.marks")}>
      {[...SEVERITY].reverse().map((level) => (
        <li key={level}>
          <b style={{ background: css(LEVEL_COLOURS[level]), color: inkOn(LEVEL_COLOURS[level]) }}>{SYMBOL[level]}</b> {say(`level.${level}`)}
        </li>
      ))}
      <li>{extra}</li>
    </ul>
  );
}
