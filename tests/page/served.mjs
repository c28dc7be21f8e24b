// The program: what it serves, and what it prints.
import { execFileSync, spawn } from "node:child_process";
import { createInterface } from "node:readline";

const TOKEN = "test-of-the-page";

export class Server {
  constructor(child, address) {
    this.child = child;
    this.base = new URL("/", address).href;
    this.address = address;
  }

  static start(plumb, paths) {
    const child = spawn(plumb, ["view", ...paths, "--token", TOKEN, "--no-cache", "--until-eof"],
      { stdio: ["pipe", "pipe", "inherit"] });
    return new Promise((resolve, reject) => {
      child.once("exit", (code) => reject(new Error(`plumb view ended with ${code}`)));
      createInterface({ input: child.stdout }).on("line", (line) => {
        const found = /(http:\/\/\S+)/.exec(line);
        if (found) resolve(new Server(child, found[1]));
      });
    });
  }

  async ask(path, body) {
    const headers = { Cookie: `plumb_view_${new URL(this.base).port}=${TOKEN}`, Origin: this.base.slice(0, -1), "Content-Type": "application/json" };
    const answer = await fetch(`${this.base}api/${path}`, { headers, ...(body && { method: "POST", body: JSON.stringify(body) }) });
    const got = await answer.json();
    if (!answer.ok) throw new Error(`${path}: ${got.error.message}`);
    return got;
  }

  // The id of a dataset once it is ready.
  async open(target, golden = "") {
    const { id } = await this.ask("open", { target, golden });
    for (;;) {
      const { datasets } = await this.ask("datasets");
      const own = datasets.find((each) => each.id === id);
      if (own?.state === "ready") return id;
      if (own?.state === "failed") throw new Error(own.error);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  stop() {
    this.child.removeAllListeners("exit");
    this.child.stdin.end();
  }
}

// The lines that a comparison prints.
export function compare(plumb, target, golden, ...rest) {
  const out = execFileSync(plumb, ["compare", target, golden, ...rest], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  return out.split("\n");
}
