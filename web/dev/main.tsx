// The page over a made dataset: `npm run dev`, then /dev/?layers=100&modules=10&calls=100.
import "../src/page.css";
import type { ChildrenQuestion } from "../src/api";
import { LocalApi } from "../src/local_api";
import { Address } from "../src/state";
import { startPage } from "../src/shell";
import { makeFake } from "./fake";

const query = new URLSearchParams(location.search);
const size = (name: string, missing: number): number => Number(query.get(name) ?? missing);

const data = makeFake({
  layers: size("layers", 12), modules: size("modules", 10), calls: size("calls", 5),
  ranks: size("ranks", 2), steps: size("steps", 1),
});
// What the benchmark reads: when the graph was drawn first, and how many rows were asked for.
declare global {
  interface Window {
    made: { rows: number; firstPaintMs: number; heapBefore: number };
  }
}

class CountingApi extends LocalApi {
  override async children(dataset: string, question: ChildrenQuestion) {
    const answer = await super.children(dataset, question);
    if (answer.ok) window.made.rows += answer.value.reduce((sum, list) => sum + list.rows.length, 0);
    return answer;
  }
}

function heap(): number {
  const { memory } = performance as unknown as { readonly memory?: { readonly usedJSHeapSize: number } };
  return memory?.usedJSHeapSize ?? 0;
}

window.made = { rows: 0, firstPaintMs: 0, heapBefore: heap() };
const began = performance.now();
const root = document.getElementById("page");
if (root) startPage(root, new CountingApi(data), new Address(false));

function look(): void {
  // Two frames after the canvas is there, it has been drawn.
  if (document.querySelector(".pane canvas") === null) requestAnimationFrame(look);
  else requestAnimationFrame(() => requestAnimationFrame(() => (window.made.firstPaintMs = performance.now() - began)));
}
look();
