// Data that stand in the page itself: lines "KIND LETTERS", where the letters are the base64 of a raw
// deflate stream of one JSON document (src/report/html_report.h).
import { failure, success, type Result } from "../result";

export interface PackedLine {
  readonly kind: string;
  readonly letters: string;
}

export function linesOf(text: string): readonly PackedLine[] {
  const lines: PackedLine[] = [];
  for (const line of text.split("\n")) {
    const space = line.indexOf(" ");
    if (space > 0) lines.push({ kind: line.slice(0, space), letters: line.slice(space + 1).trim() });
  }
  return lines;
}

export async function unpack(line: PackedLine): Promise<Result<unknown>> {
  if (typeof DecompressionStream === "undefined") {
    return failure("old-browser", "This browser cannot unpack the data of this file. Open it with one of 2023 or newer.");
  }
  try {
    const bytes = Uint8Array.from(atob(line.letters), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    const value: unknown = JSON.parse(await new Response(stream).text());
    return success(value);
  } catch {
    return failure("damaged", `The data of this file are damaged (${line.kind}). Write the file again.`);
  }
}
