// The page over a made dataset whose program answers every question: `npm run dev`, then
// /dev/served.html?ranks=8&steps=3.
import "../src/page.css";
import { Address } from "../src/state";
import { startPage } from "../src/shell";
import { makeFake } from "./fake";
import { FakeServer } from "./fake_server";

const query = new URLSearchParams(location.search);
const size = (name: string, missing: number): number => Number(query.get(name) ?? missing);

const data = makeFake({
  layers: size("layers", 6), modules: size("modules", 10), calls: size("calls", 5), ranks: size("ranks", 8), steps: size("steps", 3),
});
const root = document.getElementById("page");
if (root) startPage(root, new FakeServer(data), new Address(false));
