// Starts the page: over the program that serves it, or over the data that stands in it.
import "./page.css";
import { HttpApi } from "./api";
import { startPage } from "./shell";
import { Address } from "./state";

const root = document.getElementById("page");
if (root) {
  const address = new Address(true);
  startPage(root, new HttpApi(address.base), address);
}
