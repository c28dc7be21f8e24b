// Starts the page: over the program that serves it, or over the data that stand in it.
import "./page.css";
import { HttpApi } from "./api";
import { FileApi } from "./file_api";
import { startPage } from "./shell";
import { Address } from "./state";

const root = document.getElementById("page");
const data = document.getElementById("data");

async function startFile(page: HTMLElement, text: string): Promise<void> {
  const api = await FileApi.open(text);
  if (api.ok) startPage(page, api.value, new Address(false));
  else page.textContent = api.error.message;
}

if (root && data) {
  void startFile(root, data.textContent ?? "");
} else if (root) {
  const address = new Address(true);
  startPage(root, new HttpApi(address.base), address);
}
