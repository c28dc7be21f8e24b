// The keys of the page, in the order of the help. One table: what is not here does nothing, what is
// here stands in the help.
import type { TextKey } from "./texts";

export type Action =
  | "first" | "query" | "name" | "partner" | "communication" | "values" | "overflow" | "trend"
  | "next-hit" | "previous-hit" | "next-step" | "previous-step" | "next-rank" | "previous-rank"
  | "next-ms" | "previous-ms" | "help" | "undo" | "share" | "escape" | "back"
  // Taken by the views:
  | "up" | "down" | "left" | "right" | "enter" | "enter-all" | "to-worst" | "depth"
  | "zoom-in" | "zoom-out" | "pan-left" | "pan-right" | "fit" | "link"
  | "view-graph" | "view-outline" | "view-list";

interface KeyLine {
  readonly keys: readonly string[];
  readonly action: Action;
  readonly text: TextKey;
}

export const KEYS: readonly KeyLine[] = [
  { keys: ["f"], action: "first", text: "view.first" },
  { keys: ["j"], action: "next-hit", text: "key.next-hit" },
  { keys: ["k"], action: "previous-hit", text: "key.previous-hit" },
  { keys: ["/"], action: "query", text: "key.query" },
  { keys: ["g"], action: "name", text: "key.name" },
  { keys: ["m"], action: "partner", text: "key.partner" },
  { keys: ["v"], action: "values", text: "key.values" },
  { keys: ["t"], action: "trend", text: "key.trend" },
  { keys: ["c"], action: "communication", text: "key.communication" },
  { keys: ["o"], action: "overflow", text: "key.overflow" },
  { keys: ["1"], action: "view-graph", text: "view.graph" },
  { keys: ["2"], action: "view-outline", text: "view.outline" },
  { keys: ["3"], action: "view-list", text: "view.list" },
  { keys: ["ArrowUp"], action: "up", text: "key.up" },
  { keys: ["ArrowDown"], action: "down", text: "key.down" },
  { keys: ["ArrowLeft"], action: "left", text: "key.left" },
  { keys: ["ArrowRight"], action: "right", text: "key.right" },
  { keys: ["Enter"], action: "enter", text: "key.enter" },
  { keys: ["Shift+Enter"], action: "enter-all", text: "key.enter-all" },
  { keys: ["e"], action: "to-worst", text: "key.to-worst" },
  { keys: ["l"], action: "link", text: "key.link" },
  { keys: ["["], action: "previous-step", text: "key.previous-step" },
  { keys: ["]"], action: "next-step", text: "key.next-step" },
  { keys: ["{"], action: "previous-rank", text: "key.previous-rank" },
  { keys: ["}"], action: "next-rank", text: "key.next-rank" },
  { keys: [","], action: "previous-ms", text: "key.previous-ms" },
  { keys: ["."], action: "next-ms", text: "key.next-ms" },
  { keys: ["w", "+", "="], action: "zoom-in", text: "key.zoom-in" },
  { keys: ["s", "-"], action: "zoom-out", text: "key.zoom-out" },
  { keys: ["a"], action: "pan-left", text: "key.pan-left" },
  { keys: ["d"], action: "pan-right", text: "key.pan-right" },
  { keys: ["0"], action: "fit", text: "key.fit" },
  { keys: ["Ctrl+l"], action: "share", text: "key.share" },
  { keys: ["Ctrl+z"], action: "undo", text: "key.undo" },
  { keys: ["Backspace"], action: "back", text: "key.back" },
  { keys: ["Escape"], action: "escape", text: "key.escape" },
  { keys: ["?"], action: "help", text: "key.help" },
];

const BY_KEY: ReadonlyMap<string, Action> = new Map(
  KEYS.flatMap((line) => line.keys.map((key) => [key, line.action] as const)),
);

// How a key is written in the table: "Ctrl+l", "Shift+Enter", "{" as it is typed.
function keyName(event: KeyboardEvent): string {
  const base = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const control = event.ctrlKey || event.metaKey ? "Ctrl+" : "";
  return `${control}${event.shiftKey && event.key.length > 1 ? "Shift+" : ""}${base}`;
}

export function actionOf(event: KeyboardEvent): Action | null {
  if (event.altKey) return null;
  return BY_KEY.get(keyName(event)) ?? null;
}

// Whether the key belongs to what is being typed or chosen.
export function isTyping(event: KeyboardEvent): boolean {
  const at = event.target;
  if (!(at instanceof HTMLElement)) return false;
  return at.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(at.tagName);
}
