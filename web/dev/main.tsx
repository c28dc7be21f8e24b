// The page over a made dataset: `npm run dev`, then /dev/?layers=100&modules=10&calls=100.
import "../src/page.css";
import { LocalApi } from "../src/local_api";
import { Address } from "../src/state";
import { startPage } from "../src/shell";
import { makeFake } from "./fake";

const query = new URLSearchParams(location.search);
const size = (name: string, missing: number): number => Number(query.get(name) ?? missing);

const data = makeFake({
  layers: size("layers", 12), modules: size("modules", 10), calls: size("calls", 5),
  ranks: size("ranks", 2), steps: size("steps", 1),
});
const root = document.getElementById("page");
if (root) startPage(root, new LocalApi(data), new Address(false));
