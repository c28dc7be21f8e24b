// The two recordings as nested boxes beside each other.
import { actionOf } from "../keys";
import { NO_STATE, type Camera, type State } from "../state";
import type { Tree } from "../tree";
import type { NodeRow, Side } from "../types";
import type { Context, Picture, View, ViewKind } from "../view";
import { GraphLayout } from "./graph_layout";
import { GraphPane } from "./graph_pane";
import { readPalette, type Palette } from "./graph_paint";
import { pictureOf, SvgPen } from "./graph_pen";
import { hideTools, neighbour, showTools, toggle, treeKey } from "./tree_tools";

const PAN_STEP = 60;
const ZOOM_STEP = 1.25;
// The address follows the camera when it has come to rest.
const REST_MS = 400;

interface Half {
  readonly side: Side;
  readonly pane: GraphPane;
  tree: Tree | null;
  layout: GraphLayout | null;
  version: number;
  look: string;
}

class GraphView implements View {
  readonly #root: HTMLElement;
  readonly #context: Context;
  readonly #panes = document.createElement("div");
  readonly #halves: readonly Half[];
  #state: State = NO_STATE;
  #selected = -1;
  #shown = -1;
  // The camera is where a person, or a link, put it for this selection.
  #isMoved = false;
  #isOpening = true;
  #written: Camera | null = null;
  #rest = 0;
  #palette: Palette;
  #theme = "";

  constructor(root: HTMLElement, context: Context) {
    this.#root = root;
    this.#context = context;
    this.#panes.className = "panes";
    this.#palette = readPalette(document.documentElement);
    const sides: readonly Side[] = context.session.meta.kind === "compare" ? ["target", "golden"] : ["target"];
    this.#halves = sides.map((side) => this.#half(side));
    this.#panes.classList.toggle("single", sides.length === 1);
    this.#panes.append(...this.#halves.map((half) => half.pane.element));
    root.append(this.#panes);
  }

  #half(side: Side): Half {
    const pane = new GraphPane(this.#context.say(`side.${side}`), {
      moved: (from, before) => this.#moved(from, before),
      select: (row) => this.#context.select(row),
      toggle: (row) => void toggle(this.#context, row),
    });
    return { side, pane, tree: null, layout: null, version: -1, look: "" };
  }

  show(state: State): void {
    const { session } = this.#context;
    this.#state = state;
    this.#readTheme();
    for (const half of this.#halves) this.#showHalf(half);
    if (state.cam && JSON.stringify(state.cam) !== JSON.stringify(this.#written)) {
      this.#written = state.cam;
      for (const half of this.#halves) half.pane.setCamera(state.cam);
      this.#isMoved = true;
    }
    this.#followSelection();
    showTools(this.#context, () => this.#fit());
    const selected = session.selected;
    const said = selected ? `${selected.name}, ${this.#context.say(`level.${selected.level}`)}` : "";
    for (const half of this.#halves) half.pane.element.setAttribute("aria-label", `${this.#context.say(`side.${half.side}`)}. ${said}`);
  }

  #readTheme(): void {
    const theme = document.documentElement.dataset["theme"] ?? "";
    if (theme === this.#theme) return;
    this.#theme = theme;
    this.#palette = readPalette(document.documentElement);
  }

  #showHalf(half: Half): void {
    const { session } = this.#context;
    const tree = session.tree(half.side);
    if (!tree) return;
    if (tree !== half.tree) {
      half.tree = tree;
      half.layout = new GraphLayout(tree);
      half.version = -1;
    }
    const layout = half.layout;
    if (!layout) return;
    const version = tree.branch(tree.root.id)?.version ?? 0;
    const isFiltered = session.isFiltered;
    const look = `${this.#theme}/${this.#state.colours}/${isFiltered}`;
    const isStale = version !== half.version || look !== half.look;
    // What comes above the selection moves it away again.
    if (version !== half.version && !this.#isMoved) this.#shown = 0;
    half.version = version;
    half.look = look;
    const isOwn = session.side === half.side;
    const mark = { id: (isOwn ? session.selected : session.partner)?.id ?? -1, isPartner: !isOwn };
    half.pane.show({
      tree, layout, palette: this.#palette, colours: this.#state.colours, isFiltered,
      want: (id, from, to) => tree.want(id, from, to),
    }, mark, isStale, look);
  }

  // Once for each selection, on each side as soon as its node is there.
  #followSelection(): void {
    const { session } = this.#context;
    const id = session.selected?.id ?? -1;
    if (id !== this.#selected) {
      this.#selected = id;
      this.#shown = 0;
      if (!this.#isOpening) this.#isMoved = false;
      this.#isOpening = false;
    }
    if (id < 0) return;
    const own = this.#halves.find((half) => half.side === session.side);
    const other = this.#halves.find((half) => half.side !== session.side);
    if (own && (this.#shown & 1) === 0 && own.pane.size.width > 0 && own.pane.reveal(id)) this.#shown |= 1;
    if (!own || !other || !session.partner || (this.#shown & 3) !== 1) return;
    if (session.isLinked ? this.#align(own, other, session.partner, id) : other.pane.reveal(session.partner.id)) this.#shown |= 2;
  }

  // Both at the same height and size, so that eyes need not search.
  #align(own: Half, other: Half, partner: NodeRow, id: number): boolean {
    const y = own.pane.screenY(id);
    const ownBox = own.layout?.boxOf(id);
    const box = other.layout?.boxOf(partner.id);
    if (y === null || !box || !ownBox) return false;
    const { zoom, x } = own.pane.camera;
    other.pane.setCamera({ x: x + box.x - ownBox.x, y: box.y - y / zoom, zoom });
    return true;
  }

  #moved(from: GraphPane, before: Camera): void {
    const after = from.camera;
    this.#isMoved = true;
    if (this.#context.session.isLinked) {
      for (const { pane } of this.#halves) {
        if (pane === from) continue;
        const { camera } = pane;
        pane.setCamera({ x: camera.x + after.x - before.x, y: camera.y + after.y - before.y, zoom: after.zoom });
      }
    }
    this.#keepCamera();
  }

  #keepCamera(): void {
    clearTimeout(this.#rest);
    this.#rest = window.setTimeout(() => {
      const camera = this.#halves[0]?.pane.camera;
      if (!camera) return;
      this.#written = camera;
      this.#context.go({ cam: camera }, { replace: true });
    }, REST_MS);
  }

  #fit(): void {
    this.#isMoved = true;
    const zoom = Math.min(...this.#halves.map((half) => half.pane.fitCamera().zoom));
    for (const { pane } of this.#halves) {
      const camera = pane.fitCamera();
      pane.setCamera({ x: camera.x, y: camera.y, zoom });
    }
    this.#keepCamera();
  }

  #activePane(): GraphPane | undefined {
    const focused = this.#halves.find((half) => half.pane.element === document.activeElement);
    return (focused ?? this.#halves.find((half) => half.side === this.#context.session.side))?.pane;
  }

  key(event: KeyboardEvent): boolean {
    const action = actionOf(event);
    const pane = this.#activePane();
    if (treeKey(this.#context, event)) return true;
    switch (action) {
      case "up":
      case "down":
      case "left":
      case "right":
        void neighbour(this.#context, action).then((row) => row && this.#context.select(row));
        return true;
      case "zoom-in":
        pane?.zoomBy(ZOOM_STEP);
        return true;
      case "zoom-out":
        pane?.zoomBy(1 / ZOOM_STEP);
        return true;
      case "pan-left":
        pane?.pan(-PAN_STEP, 0);
        return true;
      case "pan-right":
        pane?.pan(PAN_STEP, 0);
        return true;
      case "fit":
        this.#fit();
        return true;
      default:
        return false;
    }
  }

  picture(): Picture {
    const panes = this.#halves.map((half) => half.pane);
    return pictureOf(panes.map((pane) => pane.canvas), () => {
      const pen = new SvgPen();
      let x = 0;
      for (const pane of panes) {
        pen.group(x, 0);
        pane.svg(pen);
        pen.groupEnd();
        x += pane.size.width;
      }
      return pen.document(x, Math.max(...panes.map((pane) => pane.size.height)), this.#palette.page);
    });
  }

  dispose(): void {
    clearTimeout(this.#rest);
    hideTools();
    for (const half of this.#halves) half.pane.dispose();
    this.#root.replaceChildren();
  }
}

export const GRAPH_VIEW: ViewKind = {
  key: "graph",
  title: "view.graph",
  shortcut: "1",
  appliesTo: () => true,
  create: (root, context) => new GraphView(root, context),
};
