// Starts the page: over the program that serves it, or over the data that stand in it.
import "./page.css";
import { HttpApi } from "./api";
import { readFileData } from "./file_data";
import { LocalApi } from "./local_api";
import { startPage } from "./shell";
import { Address } from "./state";

async function start(root: HTMLElement, data: HTMLElement | null): Promise<void> {
  const address = new Address(data === null);
  if (data === null) {
    startPage(root, new HttpApi(address.base), address);
    return;
  }
  const read = await readFileData((data.textContent ?? "").trim());
  // What was read stands in memory now.
  data.remove();
  if (read.ok) startPage(root, new LocalApi(read.value), address);
  else root.textContent = read.error.message;
}

const root = document.getElementById("page");
if (root) void start(root, document.getElementById("data"));
