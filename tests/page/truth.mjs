// What the page is held to, found without it: in the files of the recordings.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("truth.py", import.meta.url));

export function ask(...parameters) {
  return JSON.parse(execFileSync(process.env.PYTHON ?? "python3", [SCRIPT, ...parameters], { encoding: "utf8" }));
}

// One rank of one step of a recording.
export class Place {
  constructor(recording, step = 0, rank = 0) {
    this.directory = `${recording}/step${step}/rank${rank}`;
    const read = (name) => JSON.parse(readFileSync(`${this.directory}/${name}`, "utf8"));
    this.calls = read("dump.json").data;
    this.parents = read("construct.json");
    this.stacks = read("stack.json");
  }

  static of(recording, step, rank) {
    return new Place(recording, step, rank);
  }

  values(name) {
    const { input_args: inputs = [], input_kwargs: named = {}, output = [], ...others } = this.calls[name] ?? {};
    const flat = (value) => (Array.isArray(value) ? value.flatMap(flat) : value?.type || value?.dtype ? [value] : []);
    return { inputs: flat([...(inputs ?? []), ...Object.values(named)]), outputs: flat(output ?? []), all: flat([inputs, output, Object.values(named), ...Object.values(others)]) };
  }

  output(name) {
    return this.values(name).outputs[0];
  }

  // The children of a module whose output is another one than in `golden` while its tensors are not.
  makersOfDifference(module, golden) {
    const numbers = (values) => JSON.stringify(values.filter(({ Norm }) => Norm !== undefined).map(({ Max, Min, Norm }) => [Max, Min, Norm]));
    return Object.keys(this.parents).filter((name) => {
      if (this.parents[name] !== module) return false;
      const [own, other] = [this.values(name), golden.values(name)];
      return numbers(own.inputs) === numbers(other.inputs) && numbers(own.outputs) !== numbers(other.outputs);
    });
  }

  // As a query counts them: by the last part before the direction, and the shape of a value.
  countOf(operator, shape) {
    const name = (call) => call.replace(/\.(forward|backward)(\..*)?$/, "").split(".").filter((part) => !/^\d+$/.test(part)).pop().toLowerCase();
    return Object.keys(this.calls).filter((call) => name(call) === operator &&
      this.values(call).all.some((value) => JSON.stringify(value.shape) === shape)).length;
  }

  // Calls that make what is not finite out of what is.
  beginnersOfOverflow() {
    const isBad = (value) => [value.Max, value.Min, value.Norm].some((number) => typeof number === "string" || (number !== null && number !== undefined && !Number.isFinite(number)));
    return Object.keys(this.calls).filter((name) => {
      const { inputs, outputs } = this.values(name);
      return outputs.some(isBad) && !inputs.some(isBad);
    });
  }

  // Where a call stands in a file of whoever made the recording.
  frame(name, file) {
    const lines = Object.values(this.stacks).map((entry) => (Array.isArray(entry[0]) ? entry : [[name], entry]));
    const stack = this.stacks[name] ?? lines.find(([names]) => names.includes(name))?.[1] ?? [];
    const found = stack.map((line) => /File "?(.+?)"?, line (\d+)/.exec(line)).find((match) => match?.[1].endsWith(file));
    return found && { file: found[1], line: Number(found[2]), folder: dirname(found[1]) };
  }
}

export const product = (shape) => shape.reduce((all, size) => all * size, 1);

// As the page writes a number: six digits.
export function shown(value) {
  if (value === 0 || Number.isInteger(value)) return String(value).replace("-", "−");
  const size = Math.abs(value);
  const text = size >= 1e-4 && size < 1e6 ? String(Number(value.toPrecision(6))) : value.toExponential(4);
  return text.replace("-", "−").replace("e+", "e").replace("e-", "e−");
}
