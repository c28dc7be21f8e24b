// Verdicts of rows: a symbol, a colour and a word.
import type { Say, TextKey } from "../texts";
import { SYMBOL } from "../marks";
import type { Level } from "../types";

export const VERDICT_COUNT = 5;
const LEVELS: readonly Level[] = ["pass", "pass", "warning", "error", "unmatched"];

export const verdictKey = (verdict: number): TextKey => `verdict.${clamped(verdict)}`;
export const levelOf = (verdict: number): Level => LEVELS[clamped(verdict)] ?? "none";

function clamped(verdict: number): 0 | 1 | 2 | 3 | 4 {
  return verdict === 0 || verdict === 1 || verdict === 2 || verdict === 3 ? verdict : 4;
}

export function VerdictMark(props: { readonly verdict: number; readonly say: Say }) {
  const level = levelOf(props.verdict);
  const symbol = props.verdict === 0 ? "=" : SYMBOL[level];
  return <span class={`mark ${level}`}><i aria-hidden="true">{symbol}</i>{props.say(verdictKey(props.verdict))}</span>;
}
