// Numbers and names as people read them.
import type { NodeType, Scalar } from "./types";

// Six significant digits, as the reports of plumbline print them; "NaN" and "Inf" by name.
export function formatNumber(value: number | null): string {
  if (value === null) return "";
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "−Inf";
  if (value === 0) return "0";
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value).replace("-", "−");
  const size = Math.abs(value);
  const text = size >= 1e-4 && size < 1e6 ? String(Number(value.toPrecision(6))) : value.toExponential(4);
  return text.replace("-", "−").replace("e+", "e").replace("e-", "e−");
}

// A recorded argument as Python and the answer of the program write it: 1e-05, 1.0 (a float), 1 (an int).
export function formatRecorded(value: unknown, type: string): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return `[${value.map((each) => formatRecorded(each, "")).join(", ")}]`;
  if (typeof value !== "number" || type === "int") return JSON.stringify(value) ?? "";
  const size = Math.abs(value);
  if (value !== 0 && (size < 1e-4 || size >= 1e16)) return value.toExponential().replace(/([+-])(\d)$/, "$10$2");
  return type === "float" && Number.isInteger(value) ? value.toFixed(1) : String(value);
}

export function formatScalar(value: Scalar | null): string {
  return typeof value === "number" ? formatNumber(value) : value === null ? "" : String(value);
}

// A relative error: two digits are enough to compare by eye.
export function formatError(value: number | null): string {
  if (value === null) return "";
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return "Inf";
  if (value === 0) return "0";
  if (value >= 0.001 && value < 1000) return Number(value.toPrecision(3)).toString();
  return value.toExponential(1).replace("e+", "e").replace("e-", "e−");
}

// Two or three digits with the sign, for marks of axes and cells.
export function formatShort(value: number | null): string {
  return value === null || !(value < 0) ? formatError(value) : `−${formatError(-value)}`;
}

export function formatCount(value: number): string {
  return value.toLocaleString("en-US").replaceAll(",", " ");
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function formatBytes(value: number): string {
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit] ?? ""}`;
}

export function formatShape(shape: readonly number[] | null): string {
  return shape === null ? "" : `[${shape.join(", ")}]`;
}

const DIRECTIONS = new Set(["forward", "backward", "parameters_grad"]);

// "Module.layers.3.mlp.down_proj.Linear.forward.0" -> "down_proj.Linear.forward.0": what tells a node
// from its siblings. Numbered parts keep the name before them ("layers.3.Block.forward.0").
export function shortName(name: string, type: NodeType): string {
  if (type === "root") return name === "" ? "model" : name;
  const parts = name.split(".");
  const at = parts.findIndex((part) => DIRECTIONS.has(part));
  if (at < 2) return parts.length > 4 ? parts.slice(-4).join(".") : name;
  const keep = type === "module" ? 2 : 1;
  let from = at - keep;
  if (/^\d+$/.test(parts[from] ?? "")) from--;
  return parts.slice(Math.max(from, 1)).join(".");
}

export function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, Math.max(1, length - 1))}…`;
}
