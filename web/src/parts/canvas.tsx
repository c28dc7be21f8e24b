// A canvas as large as the place it stands in, drawn again when that or the colours change.
import { useLayoutEffect, useRef } from "preact/hooks";

export interface Sheet {
  readonly pen: CanvasRenderingContext2D;
  readonly width: number;
  readonly height: number;
  // A colour of the page's scheme, as "--line".
  colour(name: string): string;
}

interface CanvasProps {
  readonly label: string;
  readonly draw: (sheet: Sheet) => void;
  // As in CSS; without: that of the style sheet.
  readonly height?: string;
  readonly onKeyDown?: (event: KeyboardEvent) => void;
  readonly onPointerDown?: (event: PointerEvent) => void;
  readonly onPointerMove?: (event: PointerEvent) => void;
  readonly onPointerUp?: (event: PointerEvent) => void;
  readonly onDblClick?: (event: MouseEvent) => void;
  readonly onWheel?: (event: WheelEvent) => void;
}

function sheetOf(canvas: HTMLCanvasElement): Sheet | null {
  const pen = canvas.getContext("2d");
  if (!pen) return null;
  const dots = devicePixelRatio;
  const { clientWidth: width, clientHeight: height } = canvas;
  canvas.width = Math.round(width * dots);
  canvas.height = Math.round(height * dots);
  pen.setTransform(dots, 0, 0, dots, 0, 0);
  const scheme = getComputedStyle(canvas);
  pen.font = `12px ${scheme.fontFamily}`;
  return { pen, width, height, colour: (name) => scheme.getPropertyValue(name).trim() };
}

export function Canvas({ label, draw, height, ...events }: CanvasProps) {
  const element = useRef<HTMLCanvasElement>(null);
  const drawing = useRef(draw);
  drawing.current = draw;
  const paint = (): void => {
    const sheet = element.current && sheetOf(element.current);
    if (sheet && sheet.width > 0) drawing.current(sheet);
  };
  useLayoutEffect(paint);
  useLayoutEffect(() => {
    if (!element.current) return;
    const observer = new ResizeObserver(paint);
    observer.observe(element.current);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const root = new MutationObserver(paint);
    root.observe(document.documentElement, { attributes: true });
    scheme.addEventListener("change", paint);
    return () => {
      observer.disconnect();
      root.disconnect();
      scheme.removeEventListener("change", paint);
    };
  }, []);
  return <canvas ref={element} role="img" aria-label={label} tabIndex={0} style={height === undefined ? {} : { height }} {...events} />;
}
