// Colours of numbers: two ramps that people with every kind of colour vision can follow, as 0xRRGGBB.
import type { Level } from "../types";
import type { Scale } from "./scale";

export type Ramp = "sequential" | "diverging";

// Where there is nothing: what lies behind shows through.
export const GAP = -1;
// Numbers that have no place on a scale.
export const NAN_COLOUR = 0xe6007e;

const STOPS: Readonly<Record<Ramp, readonly number[]>> = {
  sequential: [0x440154, 0x414487, 0x2a788e, 0x22a884, 0x7ad151, 0xfde725],
  diverging: [0x2166ac, 0x67a9cf, 0xf7f7f7, 0xf4a582, 0xb2182b],
};

function mix(a: number, b: number, part: number): number {
  const of = (shift: number): number => {
    const from = (a >> shift) & 255;
    return Math.round(from + (((b >> shift) & 255) - from) * part) << shift;
  };
  return of(16) | of(8) | of(0);
}

export function rampColour(ramp: Ramp, at: number): number {
  const stops = STOPS[ramp];
  const place = Math.min(1, Math.max(0, at)) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(place));
  return mix(stops[i] ?? 0, stops[i + 1] ?? 0, place - i);
}

export function numberColour(value: number | null, scale: Scale, ramp: Ramp): number {
  if (value === null) return GAP;
  return Number.isNaN(value) ? NAN_COLOUR : rampColour(ramp, scale.at(value));
}

export const css = (colour: number): string => `#${colour.toString(16).padStart(6, "0")}`;

// Black or white, whichever is easier to read on a colour.
export function inkOn(colour: number): string {
  const light = 0.299 * ((colour >> 16) & 255) + 0.587 * ((colour >> 8) & 255) + 0.114 * (colour & 255);
  return light > 140 ? "#000" : "#fff";
}

// Cells of a verdict; the same in both schemes, and always with its symbol.
export const LEVEL_COLOURS: Readonly<Record<Level, number>> = {
  pass: 0x5aa9a0, warning: 0xe8b84a, error: 0xc8452f, unmatched: 0x8e8e96, none: 0xc9c9ce,
};
