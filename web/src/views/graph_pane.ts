// One canvas with the boxes of one side. Panning shifts the picture and draws only what came into
// sight; anything else is drawn anew in slices, while the last picture is shown scaled.
import type { Camera } from "../state";
import type { NodeRow } from "../types";
import { contains, type Box, type GraphLayout, type Place } from "./graph_layout";
import { paint, type Scene } from "./graph_paint";
import { MiniMap } from "./graph_minimap";
import { CanvasPen, SvgPen } from "./graph_pen";

// Of one animation frame, for both panes together.
const SLICE_MS = 4;
const ZOOM = { least: 0.002, most: 6 } as const;

interface PaneEvents {
  readonly moved: (from: GraphPane, before: Camera) => void;
  readonly select: (row: NodeRow) => void;
  readonly toggle: (row: NodeRow) => void;
}

// The selected node, or its counterpart; -1: neither is here.
interface Mark {
  readonly id: number;
  readonly isPartner: boolean;
}

interface Sheet {
  readonly canvas: HTMLCanvasElement;
  readonly context: CanvasRenderingContext2D;
}

function sheet(canvas: HTMLCanvasElement = document.createElement("canvas")): Sheet {
  const context = canvas.getContext("2d", { alpha: false });
  if (!context) throw new Error("this browser has no 2D canvas");
  return { canvas, context };
}

export class GraphPane {
  readonly element = document.createElement("div");
  readonly #front: Sheet;
  readonly #over = document.createElement("canvas");
  readonly #tip = document.createElement("div");
  readonly #events: PaneEvents;
  readonly #map = new MiniMap((x, y) => this.#centre(x, y));
  #done: Sheet;
  #work: Sheet;
  // What #done shows, if anything.
  #doneCamera: Camera | null = null;
  #job: { readonly camera: Camera; readonly steps: Iterator<void> } | null = null;
  #isStale = true;
  #isQueued = false;
  #scene: Scene | null = null;
  #mark: Mark = { id: -1, isPartner: false };
  #hover: Place | null = null;
  #size = { width: 0, height: 0 };
  #ratio = 1;
  #observer: ResizeObserver;
  camera: Camera = { x: -12, y: -12, zoom: 1 };

  constructor(label: string, events: PaneEvents) {
    this.#events = events;
    this.element.className = "pane";
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "img");
    this.element.setAttribute("aria-label", label);
    const title = document.createElement("div");
    title.className = "pane-title";
    title.textContent = label;
    this.#front = sheet();
    this.#done = sheet();
    this.#work = sheet();
    this.#over.className = "over";
    this.#tip.className = "tip";
    this.#tip.hidden = true;
    this.element.append(this.#front.canvas, this.#over, this.#map.element, title, this.#tip);
    this.#observer = new ResizeObserver(() => this.#resize());
    this.#observer.observe(this.element);
    this.#listen();
  }

  get canvas(): HTMLCanvasElement {
    return this.#front.canvas;
  }
  get size(): { readonly width: number; readonly height: number } {
    return this.#size;
  }
  get layout(): GraphLayout | null {
    return this.#scene?.layout ?? null;
  }

  dispose(): void {
    this.#observer.disconnect();
    this.#map.dispose();
    this.element.remove();
  }

  // Draws another scene, or the same after a change.
  show(scene: Scene, mark: Mark, isStale: boolean, look: string): void {
    this.#scene = scene;
    this.#map.show(scene, look);
    this.#mark = mark;
    if (isStale) this.#isStale = true;
    this.#queue();
  }

  setCamera(camera: Camera): void {
    const zoom = Math.min(Math.max(camera.zoom, ZOOM.least), ZOOM.most);
    // Whole device pixels: a shifted picture is then exact.
    const snap = (value: number): number => Math.round(value * zoom * this.#ratio) / (zoom * this.#ratio);
    this.camera = { x: snap(camera.x), y: snap(camera.y), zoom };
    this.#queue();
  }

  pan(dx: number, dy: number): void {
    const before = this.camera;
    this.setCamera({ ...before, x: before.x + dx / before.zoom, y: before.y + dy / before.zoom });
    this.#events.moved(this, before);
  }

  #centre(x: number, y: number): void {
    const before = this.camera;
    this.setCamera({ x: x - this.#size.width / 2 / before.zoom, y: y - this.#size.height / 2 / before.zoom, zoom: before.zoom });
    this.#events.moved(this, before);
  }

  zoomBy(factor: number, at: { readonly x: number; readonly y: number } = { x: this.#size.width / 2, y: this.#size.height / 2 }): void {
    const before = this.camera;
    const zoom = Math.min(Math.max(before.zoom * factor, ZOOM.least), ZOOM.most);
    this.setCamera({ x: before.x + at.x / before.zoom - at.x / zoom, y: before.y + at.y / before.zoom - at.y / zoom, zoom });
    this.#events.moved(this, before);
  }

  // The camera that shows everything.
  fitCamera(): Camera {
    const root = this.#scene?.tree.root;
    const box = root && this.layout?.boxOf(root.id);
    if (!box || this.#size.width === 0) return this.camera;
    const zoom = Math.min((this.#size.width - 24) / box.width, (this.#size.height - 24) / box.height, 1);
    return { x: box.x - (this.#size.width / zoom - box.width) / 2, y: box.y - 12 / zoom, zoom };
  }

  // Moves as little as needed for a node to be in sight; false: it is nowhere.
  reveal(id: number): boolean {
    const box = this.layout?.boxOf(id);
    if (!box) return false;
    const { zoom } = this.camera;
    const margin = 40;
    const x = (box.x - this.camera.x) * zoom;
    const y = (box.y - this.camera.y) * zoom;
    const width = Math.min(box.width * zoom, this.#size.width / 2);
    const height = Math.min(box.height * zoom, this.#size.height / 2);
    const isIn = x >= 0 && y >= margin / 2 && x + width <= this.#size.width && y + height <= this.#size.height - margin / 2;
    if (isIn && zoom * 24 >= 10) return true;
    const next = Math.max(zoom, 0.8);
    const inX = x >= 0 && x + width <= this.#size.width && next === zoom;
    this.setCamera({
      x: inX ? this.camera.x : Math.max(box.x - margin / next, Math.min(box.x, this.camera.x)),
      y: box.y - this.#size.height / 3 / next,
      zoom: next,
    });
    return true;
  }

  // Where a node is on the screen, in pixels of the pane.
  screenY(id: number): number | null {
    const box = this.layout?.boxOf(id);
    return box ? (box.y - this.camera.y) * this.camera.zoom : null;
  }

  svg(pen: SvgPen): void {
    if (!this.#scene) return;
    const view = { x: 0, y: 0, ...this.#size };
    for (const _ of paint(pen, this.#scene, this.camera, view)) continue;
  }

  #listen(): void {
    const pane = this.element;
    let drag: { x: number; y: number; isMoved: boolean } | null = null;
    pane.addEventListener("pointerdown", (event) => {
      if (event.button > 1) return;
      pane.focus({ preventScroll: true });
      pane.setPointerCapture(event.pointerId);
      drag = { x: event.clientX, y: event.clientY, isMoved: false };
    });
    pane.addEventListener("pointermove", (event) => {
      if (!drag) return this.#hoverAt(event);
      const dx = drag.x - event.clientX;
      const dy = drag.y - event.clientY;
      if (!drag.isMoved && Math.abs(dx) + Math.abs(dy) < 4) return undefined;
      drag = { x: event.clientX, y: event.clientY, isMoved: true };
      return this.pan(dx, dy);
    });
    pane.addEventListener("pointerup", (event) => {
      const isClick = drag !== null && !drag.isMoved;
      drag = null;
      const row = isClick ? this.#placeAt(event)?.row : null;
      if (row) this.#events.select(row);
    });
    pane.addEventListener("pointercancel", () => (drag = null));
    pane.addEventListener("pointerleave", () => this.#setHover(null));
    pane.addEventListener("dblclick", (event) => {
      const row = this.#placeAt(event)?.row;
      if (row) this.#events.toggle(row);
    });
    pane.addEventListener("wheel", (event) => {
      event.preventDefault();
      const unit = event.deltaMode === 1 ? 24 : 1;
      if (event.ctrlKey || event.metaKey) this.zoomBy(Math.exp(-event.deltaY * unit * 0.0022), this.#point(event));
      else this.pan(event.shiftKey ? event.deltaY * unit : event.deltaX * unit, event.shiftKey ? 0 : event.deltaY * unit);
    }, { passive: false });
  }

  #point(event: MouseEvent): { readonly x: number; readonly y: number } {
    const box = this.element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  #placeAt(event: MouseEvent): Place | null {
    const point = this.#point(event);
    const { camera } = this;
    return this.layout?.at(camera.x + point.x / camera.zoom, camera.y + point.y / camera.zoom) ?? null;
  }

  #hoverAt(event: MouseEvent): void {
    const point = this.#point(event);
    const { camera } = this;
    const [x, y] = [camera.x + point.x / camera.zoom, camera.y + point.y / camera.zoom];
    const isSame = this.#hover?.row !== null && this.#hover && this.#hover.at >= 0 && contains(this.#hover.box, x, y) && this.#hover.row?.children === 0;
    if (!isSame) this.#setHover(this.layout?.at(x, y) ?? null);
    this.#tip.style.left = `${Math.min(point.x + 14, this.#size.width - 240)}px`;
    this.#tip.style.top = point.y > this.#size.height - 70 ? `${point.y - 54}px` : `${point.y + 16}px`;
  }

  #setHover(place: Place | null): void {
    if (place?.row === this.#hover?.row && place?.at === this.#hover?.at) return;
    this.#hover = place;
    this.#tip.hidden = !place?.row;
    this.#tip.textContent = place?.row ? place.row.name.slice(0, 400) : "";
    this.#queue();
  }

  #resize(): void {
    this.#ratio = devicePixelRatio || 1;
    this.#size = { width: this.element.clientWidth, height: this.element.clientHeight };
    for (const canvas of [this.#front.canvas, this.#done.canvas, this.#work.canvas, this.#over]) {
      canvas.width = Math.max(1, Math.round(this.#size.width * this.#ratio));
      canvas.height = Math.max(1, Math.round(this.#size.height * this.#ratio));
      // As many pixels of the screen as it has itself, or its letters blur.
      canvas.style.width = `${canvas.width / this.#ratio}px`;
      canvas.style.height = `${canvas.height / this.#ratio}px`;
    }
    this.#doneCamera = null;
    this.#job = null;
    this.#isStale = true;
    this.#queue();
  }

  #queue(): void {
    if (this.#isQueued) return;
    this.#isQueued = true;
    requestAnimationFrame(() => {
      this.#isQueued = false;
      this.#frame(performance.now());
    });
  }

  #frame(began: number): void {
    const scene = this.#scene;
    if (!scene || this.#size.width === 0) return;
    const done = this.#doneCamera;
    const isMoved = done && !sameCamera(done, this.camera);
    if (!this.#isStale && !this.#job && isMoved && done.zoom === this.camera.zoom) this.#shift(scene, done);
    else if (!this.#job && (this.#isStale || isMoved || !done)) this.#start(scene);
    if (this.#job) this.#continue(began);
    this.#present(scene);
    this.#drawOver(scene);
    this.#map.follow(this.camera, this.#size.width, this.#size.height);
    if (this.#job) this.#queue();
  }

  // Moves the whole picture and draws the strips that came into sight.
  #shift(scene: Scene, done: Camera): void {
    const dx = Math.round((done.x - this.camera.x) * this.camera.zoom * this.#ratio);
    const dy = Math.round((done.y - this.camera.y) * this.camera.zoom * this.#ratio);
    const { width, height } = this.#work.canvas;
    if (Math.abs(dx) >= width || Math.abs(dy) >= height) {
      this.#start(scene);
      return;
    }
    const { context } = this.#work;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(this.#done.canvas, dx, dy);
    if (dx !== 0) this.#strip(scene, { x: dx > 0 ? 0 : width + dx, y: 0, width: Math.abs(dx), height });
    if (dy !== 0) this.#strip(scene, { x: 0, y: dy > 0 ? 0 : height + dy, width, height: Math.abs(dy) });
    this.#swap(this.camera);
  }

  // `strip` in device pixels. What crosses its border is drawn whole and clipped.
  #strip(scene: Scene, strip: Box): void {
    const { context } = this.#work;
    context.save();
    context.beginPath();
    context.rect(strip.x, strip.y, strip.width, strip.height);
    context.clip();
    context.fillStyle = scene.palette.page;
    context.fillRect(strip.x, strip.y, strip.width, strip.height);
    context.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    const view = {
      x: strip.x / this.#ratio, y: strip.y / this.#ratio, width: strip.width / this.#ratio, height: strip.height / this.#ratio,
    };
    const steps = paint(new CanvasPen(context), scene, this.camera, view);
    for (const _ of steps) continue;
    context.restore();
  }

  #start(scene: Scene): void {
    this.#isStale = false;
    const { context, canvas } = this.#work;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.globalAlpha = 1;
    context.fillStyle = scene.palette.page;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    const view = { x: 0, y: 0, ...this.#size };
    this.#job = { camera: this.camera, steps: paint(new CanvasPen(context), scene, this.camera, view) };
  }

  #continue(began: number): void {
    const job = this.#job;
    if (!job) return;
    while (performance.now() - began < SLICE_MS) {
      if (!job.steps.next().done) continue;
      this.#job = null;
      this.#swap(job.camera);
      if (this.#isStale || !sameCamera(job.camera, this.camera)) this.#queue();
      return;
    }
  }

  #swap(camera: Camera): void {
    [this.#done, this.#work] = [this.#work, this.#done];
    this.#doneCamera = camera;
  }

  #present(scene: Scene): void {
    const { context, canvas } = this.#front;
    const done = this.#doneCamera;
    if (done && sameCamera(done, this.camera)) {
      context.drawImage(this.#done.canvas, 0, 0);
      return;
    }
    context.fillStyle = scene.palette.page;
    context.fillRect(0, 0, canvas.width, canvas.height);
    if (!done) return;
    const scale = this.camera.zoom / done.zoom;
    const x = (done.x - this.camera.x) * this.camera.zoom * this.#ratio;
    const y = (done.y - this.camera.y) * this.camera.zoom * this.#ratio;
    context.imageSmoothingEnabled = false;
    context.drawImage(this.#done.canvas, x, y, canvas.width * scale, canvas.height * scale);
  }

  #drawOver(scene: Scene): void {
    const c = this.#over.getContext("2d");
    if (!c) return;
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.clearRect(0, 0, this.#over.width, this.#over.height);
    c.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    const style = getComputedStyle(this.element);
    if (this.#hover) this.#outline(c, this.#hover.box, scene.palette.dim, 1);
    const link = style.getPropertyValue("--link").trim();
    const marked = this.layout?.boxOf(this.#mark.id);
    if (marked) this.#outline(c, marked, link, 3, this.#mark.isPartner ? [7, 4] : []);
  }

  #outline(c: CanvasRenderingContext2D, box: Box, colour: string, width: number, dash: readonly number[] = []): void {
    const { camera } = this;
    const x = (box.x - camera.x) * camera.zoom;
    const y = (box.y - camera.y) * camera.zoom;
    c.strokeStyle = colour;
    c.lineWidth = width;
    c.setLineDash([...dash]);
    c.strokeRect(x - width / 2, y - width / 2, Math.max(box.width * camera.zoom, 3) + width, Math.max(box.height * camera.zoom, 3) + width);
  }
}

function sameCamera(a: Camera, b: Camera): boolean {
  return a.x === b.x && a.y === b.y && a.zoom === b.zoom;
}
