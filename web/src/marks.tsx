// Verdicts as people see them: a symbol, a colour and a word, never the colour alone.
import type { Say, TextKey } from "./texts";
import { FLAG, type Change, type Level, type NodeRow, type Overflow } from "./types";

export const SYMBOL: Readonly<Record<Level, string>> = {
  pass: "✓", warning: "!", error: "✕", unmatched: "?", none: "–",
};

// Worst last, so that the larger of two positions is the worse level.
export const SEVERITY: readonly Level[] = ["none", "pass", "unmatched", "warning", "error"];
export const OVERFLOWS: readonly Overflow[] = ["", "medium", "high", "critical"];

export function severity(level: Level): number {
  return SEVERITY.indexOf(level);
}

// Of the node itself or of anything within it.
export function worstOf(row: NodeRow): Level {
  return severity(row.worst) > severity(row.level) ? row.worst : row.level;
}

// In the order of plumbline::Verdict.
export const VERDICTS = ["same", "within noise", "suspicious", "broken", "not comparable"] as const;

// A verdict as a word of the page's language; files of msprobe have others.
export function verdictText(verdict: string, say: Say): string {
  const at = VERDICTS.findIndex((known) => known === verdict);
  return at < 0 ? verdict : say(verdictKey(at));
}

export const verdictKey = (verdict: number): TextKey => `verdict.${verdict === 0 || verdict === 1 || verdict === 2 || verdict === 3 ? verdict : 4}`;

// The verdicts of plumb compare in terms of levels.
export function levelOfVerdict(verdict: string): Level {
  switch (verdict) {
    case "same":
    case "within noise":
    case "pass":
      return "pass";
    case "suspicious":
    case "warning":
      return "warning";
    case "broken":
    case "error":
      return "error";
    case "not comparable":
    case "unmatched":
      return "unmatched";
    default:
      return "none";
  }
}

const levelKey = (level: Level): TextKey => `level.${level}`;
export const overflowKey = (overflow: Overflow): TextKey => `overflow.${overflow}`;

export function LevelMark(props: { readonly level: Level; readonly say: Say; readonly withWord?: boolean }) {
  const word = props.say(levelKey(props.level));
  return (
    <span class={`mark ${props.level}`} title={word}>
      <i aria-hidden="true">{SYMBOL[props.level]}</i>
      {props.withWord ? word : <span class="heard">{word}</span>}
    </span>
  );
}

// Errors, warnings and unmatched calls within a node that is closed.
export function InsideMark(props: { readonly row: NodeRow; readonly say: Say }) {
  const { row, say } = props;
  if (row.errors + row.warnings + row.unmatched === 0) return null;
  const said = say("details.inside", row.errors, row.warnings, row.unmatched);
  return (
    <span class="inside" title={said}>
      <span class="heard">{said}</span>
      {row.errors > 0 && <span class="mark error" aria-hidden="true"><i>{SYMBOL.error}</i>{row.errors}</span>}
      {row.warnings > 0 && <span class="mark warning" aria-hidden="true"><i>{SYMBOL.warning}</i>{row.warnings}</span>}
      {row.unmatched > 0 && <span class="mark unmatched" aria-hidden="true"><i>{SYMBOL.unmatched}</i>{row.unmatched}</span>}
    </span>
  );
}

const FLAG_NAMES = Object.keys(FLAG) as readonly (keyof typeof FLAG)[];

// Of the first wrong call that is all there is to say: an argument that differs is its own fault, though
// it makes an input wrong.
export function flagTexts(row: NodeRow, say: Say): string[] {
  const hidden = (row.flags & FLAG.first) === 0 ? 0 : FLAG.source | FLAG.carrier;
  return FLAG_NAMES.filter((name) => (row.flags & ~hidden & FLAG[name]) !== 0).map((name) => say(`flag.${name}`));
}

const CHANGES: Readonly<Record<Change, string>> = { worse: "▼", better: "▲", same: "=", new: "+", "": "" };

// What became of a call since an older result.
export function ChangeMark(props: { readonly change: Change; readonly say: Say }) {
  const { change, say } = props;
  if (change === "") return null;
  return <span class={`change change-${change}`}><b aria-hidden="true">{CHANGES[change]}</b> {say(`change.${change}`)}</span>;
}
