// The whole picture in a corner of its pane, with what is in sight; a click or a drag goes there.
// Only shown where there is more than fits.
import type { Camera } from "../state";
import { paint, type Scene } from "./graph_paint";
import { CanvasPen } from "./graph_pen";

const LARGEST = { width: 130, height: 170 } as const;
const LARGEST_SHARE = { width: 0.22, height: 0.4 } as const;
const LEAST_PANE = 160;
const REST_MS = 250;
const SLICE_MS = 3;

export class MiniMap {
  readonly element = document.createElement("canvas");
  readonly #moveTo: (x: number, y: number) => void;
  readonly #picture = document.createElement("canvas");
  #scene: Scene | null = null;
  #version = -1;
  #look = "";
  #timer = 0;
  #zoom = 1;
  #job: Iterator<void> | null = null;
  #view = { camera: { x: 0, y: 0, zoom: 1 }, width: 0, height: 0 };

  constructor(moveTo: (x: number, y: number) => void) {
    this.#moveTo = moveTo;
    this.element.className = "minimap";
    this.element.hidden = true;
    this.element.setAttribute("aria-hidden", "true");
    const move = (event: PointerEvent): void => {
      event.stopPropagation();
      if (event.type === "pointerdown") this.element.setPointerCapture(event.pointerId);
      if (!this.element.hasPointerCapture(event.pointerId)) return;
      const box = this.element.getBoundingClientRect();
      this.#moveTo((event.clientX - box.left) / this.#zoom, (event.clientY - box.top) / this.#zoom);
    };
    this.element.addEventListener("pointerdown", move);
    this.element.addEventListener("pointermove", move);
    this.element.addEventListener("pointerup", (event) => event.stopPropagation());
    this.element.addEventListener("dblclick", (event) => event.stopPropagation());
  }

  // `look` and the tree's version tell whether the picture is another one.
  show(scene: Scene, look: string): void {
    const version = scene.tree.branch(scene.tree.root.id)?.version ?? 0;
    const isSame = this.#scene?.tree === scene.tree && version === this.#version && look === this.#look;
    this.#scene = scene;
    if (isSame) return;
    this.#version = version;
    this.#look = look;
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.#start(), REST_MS);
  }

  // Where the pane looks.
  follow(camera: Camera, width: number, height: number): void {
    this.#view = { camera, width, height };
    const frame = this.#scene?.layout.frame(this.#scene.tree.root.id);
    const fits = !frame || (frame.width * camera.zoom <= width && frame.height * camera.zoom <= height);
    this.element.hidden = fits || height < LEAST_PANE;
    if (!this.element.hidden) this.#draw();
  }

  dispose(): void {
    clearTimeout(this.#timer);
    this.#job = null;
  }

  #start(): void {
    const scene = this.#scene;
    const context = this.#picture.getContext("2d");
    if (!scene || !context) return;
    if (this.#view.width === 0) {
      // The pane has not been drawn yet.
      this.#timer = window.setTimeout(() => this.#start(), REST_MS);
      return;
    }
    const frame = scene.layout.frame(scene.tree.root.id);
    const most = {
      width: Math.min(LARGEST.width, this.#view.width * LARGEST_SHARE.width),
      height: Math.min(LARGEST.height, this.#view.height * LARGEST_SHARE.height),
    };
    this.#zoom = Math.min(most.width / frame.width, most.height / frame.height);
    const width = Math.max(1, Math.ceil(frame.width * this.#zoom));
    const height = Math.max(1, Math.ceil(frame.height * this.#zoom));
    this.#picture.width = width;
    this.#picture.height = height;
    context.fillStyle = scene.palette.page;
    context.fillRect(0, 0, width, height);
    // What nobody looks at closely need not be loaded for it.
    const quiet: Scene = { ...scene, want: () => undefined };
    this.#job = paint(new CanvasPen(context), quiet, { x: 0, y: 0, zoom: this.#zoom }, { x: 0, y: 0, width, height });
    requestAnimationFrame(() => this.#continue());
  }

  #continue(): void {
    const until = performance.now() + SLICE_MS;
    while (this.#job && performance.now() < until) {
      if (!this.#job.next().done) continue;
      this.#job = null;
      this.#draw();
    }
    if (this.#job) requestAnimationFrame(() => this.#continue());
  }

  #draw(): void {
    const { camera, width, height } = this.#view;
    this.element.width = this.#picture.width;
    this.element.height = this.#picture.height;
    const c = this.element.getContext("2d");
    if (!c || !this.#scene) return;
    c.drawImage(this.#picture, 0, 0);
    c.strokeStyle = getComputedStyle(this.element).getPropertyValue("--link").trim();
    c.lineWidth = 2;
    const scale = this.#zoom;
    c.strokeRect(camera.x * scale, camera.y * scale, Math.max((width / camera.zoom) * scale, 3), Math.max((height / camera.zoom) * scale, 3));
  }
}
