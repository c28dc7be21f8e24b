// Starts the page: over the program that serves it, or over the data that stand in it.
import "./page.css";
import { HttpApi } from "./api";
import { FILE_DATASET, FileApi } from "./file_api";
import { startPage } from "./shell";
import { Address, NO_STATE } from "./state";

const root = document.getElementById("page");
const data = document.getElementById("data");

// A file is read from its beginning: without an address of its own it shows the report first.
async function startFile(page: HTMLElement, text: string): Promise<void> {
  const api = await FileApi.open(text);
  if (!api.ok) {
    page.textContent = api.error.message;
    return;
  }
  const address = new Address(false);
  if (address.read().dataset === "") address.write({ ...NO_STATE, dataset: FILE_DATASET, view: "report" }, false);
  startPage(page, api.value, address);
}

if (root && data) {
  void startFile(root, data.textContent ?? "");
} else if (root) {
  const address = new Address(true);
  startPage(root, new HttpApi(address.base), address);
}
