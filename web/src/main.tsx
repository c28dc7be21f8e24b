// Starts the page: over the program that serves it, or over the data that stand in it.
import "./page.css";
import { HttpApi } from "./api";
import { FILE_DATASET, FileApi } from "./file_api";
import { startPage } from "./shell";
import { Address, NO_STATE } from "./state";

async function start(root: HTMLElement, data: HTMLElement | null): Promise<void> {
  const address = new Address(data === null);
  if (data === null) {
    startPage(root, new HttpApi(address.base), address);
    return;
  }
  const api = await FileApi.open(data.textContent ?? "");
  // What was read stands in memory now.
  data.remove();
  if (!api.ok) {
    root.textContent = api.error.message;
    return;
  }
  // Without an address of its own a file is read from its beginning: the report.
  if (address.read().dataset === "") address.write({ ...NO_STATE, dataset: FILE_DATASET, view: "report" }, false);
  startPage(root, api.value, address);
}

const root = document.getElementById("page");
if (root) void start(root, document.getElementById("data"));
