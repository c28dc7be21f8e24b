// Verdicts of rows: a symbol, a colour and a word.
import { levelOfVerdict, SYMBOL, VERDICTS, verdictKey } from "../marks";
import type { Say } from "../texts";
import type { Level } from "../types";

export const levelOf = (verdict: number): Level => levelOfVerdict(VERDICTS[verdict] ?? "not comparable");

export function VerdictMark(props: { readonly verdict: number; readonly say: Say }) {
  const level = levelOf(props.verdict);
  const symbol = props.verdict === 0 ? "=" : SYMBOL[level];
  return <span class={`mark ${level}`}><i aria-hidden="true">{symbol}</i>{props.say(verdictKey(props.verdict))}</span>;
}

export const VerdictMarks = ({ say }: { readonly say: Say }) => <>{VERDICTS.map((name, i) => <VerdictMark key={name} verdict={i} say={say} />)}</>;
