// What the graph is drawn with: a canvas on the screen, or SVG text for an export.
import type { Picture } from "../view";

export interface Look {
  readonly fill: string;
  readonly edge: string;
  readonly isDashed?: boolean;
  readonly isHatched?: boolean;
}

export interface Pen {
  rect(x: number, y: number, width: number, height: number, look: Look): void;
  // `size`: height of the letters in pixels; `align` end: `x` is the right end.
  text(x: number, y: number, text: string, size: number, colour: string, isEnd?: boolean): void;
  alpha(value: number): void;
}

// Letters of the first kind all have the same width, which saves measuring each name.
const FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
const LETTER = 0.602;
// Wide letters count twice.
const WIDE = /[\u1100-\u115f\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\u{1f000}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const PLAIN = /^[\x20-\x7e]*$/;

// `text` cut to `width` pixels; what is not plain is kept from turning its surroundings around.
export function fitted(text: string, width: number, size: number): string {
  const room = Math.floor(width / (size * LETTER));
  if (room < 2) return "";
  if (PLAIN.test(text)) return text.length <= room ? text : `${text.slice(0, room - 1)}…`;
  let used = 0;
  let out = "";
  for (const letter of text) {
    used += WIDE.test(letter) ? 2 : 1;
    if (used >= room) {
      out += "…";
      break;
    }
    out += letter;
  }
  return `\u2068${out}\u2069`;
}

export class CanvasPen implements Pen {
  readonly #context: CanvasRenderingContext2D;
  #font = "";
  #hatch: CanvasPattern | null = null;

  constructor(context: CanvasRenderingContext2D) {
    this.#context = context;
    context.textBaseline = "middle";
  }

  // `dimensions` are those of the whole, on device pixels so that edges are sharp.
  rect(x: number, y: number, width: number, height: number, look: Look): void {
    const c = this.#context;
    c.fillStyle = look.fill;
    c.fillRect(x, y, width, height);
    if (look.isHatched) this.#fillHatch(x, y, width, height, look.edge);
    if (look.edge === "" || width < 4 || height < 4) return;
    c.strokeStyle = look.edge;
    c.lineWidth = 1;
    if (look.isDashed) c.setLineDash([4, 3]);
    c.strokeRect(Math.round(x) + 0.5, Math.round(y) + 0.5, Math.round(width) - 1, Math.round(height) - 1);
    if (look.isDashed) c.setLineDash([]);
  }

  #fillHatch(x: number, y: number, width: number, height: number, colour: string): void {
    const c = this.#context;
    this.#hatch ??= hatch(c, colour);
    if (!this.#hatch) return;
    c.fillStyle = this.#hatch;
    c.fillRect(x, y, width, height);
  }

  text(x: number, y: number, text: string, size: number, colour: string, isEnd = false): void {
    const c = this.#context;
    const font = `${size}px ${FONT}`;
    if (font !== this.#font) c.font = this.#font = font;
    c.fillStyle = colour;
    c.textAlign = isEnd ? "right" : "left";
    c.fillText(text, x, y);
  }

  alpha(value: number): void {
    this.#context.globalAlpha = value;
  }
}

function hatch(context: CanvasRenderingContext2D, colour: string): CanvasPattern | null {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const c = tile.getContext("2d");
  if (!c) return null;
  c.strokeStyle = colour;
  c.globalAlpha = 0.45;
  for (const x of [-6, 0, 6]) {
    c.moveTo(x, 6);
    c.lineTo(x + 6, 0);
  }
  c.stroke();
  return context.createPattern(tile, "repeat");
}

const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter] ?? "")
    // XML knows no control characters.
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "\ufffd");

export class SvgPen implements Pen {
  readonly #parts: string[] = [];
  #alpha = "";

  rect(x: number, y: number, width: number, height: number, look: Look): void {
    const edge = look.edge === "" ? "" : ` stroke="${look.edge}"${look.isDashed ? ' stroke-dasharray="4 3"' : ""}`;
    this.#parts.push(`<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" fill="${look.fill}"${edge}${this.#alpha}/>`);
  }

  text(x: number, y: number, text: string, size: number, colour: string, isEnd = false): void {
    const anchor = isEnd ? ' text-anchor="end"' : "";
    this.#parts.push(`<text x="${round(x)}" y="${round(y)}" font-size="${size}" fill="${colour}" dominant-baseline="central"${anchor}${this.#alpha}>${escaped(text)}</text>`);
  }

  alpha(value: number): void {
    this.#alpha = value === 1 ? "" : ` opacity="${value}"`;
  }

  group(x: number, y: number): void {
    this.#parts.push(`<g transform="translate(${round(x)} ${round(y)})">`);
  }

  groupEnd(): void {
    this.#parts.push("</g>");
  }

  document(width: number, height: number, background: string): string {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${escaped(FONT)}"><rect width="100%" height="100%" fill="${background}"/>${this.#parts.join("")}</svg>`;
  }
}

const round = (value: number): number => Math.round(value * 100) / 100;

// A picture of canvases beside each other, drawn once more as SVG.
export function pictureOf(canvases: readonly HTMLCanvasElement[], svg: () => string): Picture {
  return {
    svg,
    png: () => {
      const whole = document.createElement("canvas");
      whole.width = canvases.reduce((sum, canvas) => sum + canvas.width, 0);
      whole.height = Math.max(0, ...canvases.map((canvas) => canvas.height));
      const c = whole.getContext("2d");
      let x = 0;
      for (const canvas of canvases) {
        c?.drawImage(canvas, x, 0);
        x += canvas.width;
      }
      return new Promise((done) => whole.toBlob(done, "image/png"));
    },
  };
}
