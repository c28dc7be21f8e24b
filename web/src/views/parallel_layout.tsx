// How a parallel training is laid out: its sizes as fields, and the picture that plumb layout draws.
import { keep, Trouble, useAsked, type ViewProps } from "../parts/kit";
import { record, text } from "../decode";

const layoutPicture = record({ title: text, svg: text });

export interface Sizes {
  readonly world: number;
  readonly tp: number;
  readonly pp: number;
}

const size = (value: unknown): number => {
  const known = Number(value ?? 0);
  return Number.isInteger(known) && known > 0 ? known : 0;
};

// As the address has them, otherwise as the result tells.
export const sizesOf = ({ context, state }: ViewProps, world: number): Sizes => {
  const { facts } = context.session.meta;
  return { world, tp: size(state.extra["tp"] ?? facts["tp"]), pp: size(state.extra["pp"] ?? facts["pp"]) };
};

export function ParallelLayout({ context, state, sizes }: ViewProps & { readonly sizes: Sizes }) {
  const { api, say } = context;
  const { world, tp, pp } = sizes;
  const layers = size(state.extra["layers"]);
  const isAsked = api.isServed && world > 0 && tp > 0 && pp > 0 && layers > 0;
  const asked = useAsked(() => (isAsked ? api.ask("layout", { world, layers, tp, pp }, layoutPicture) : null), [isAsked, world, layers, tp, pp]);
  const field = (key: "tp" | "pp" | "layers", name: string, value: number, most: number) => (
    <label class="field">{name}{" "}
      <input type="number" min={0} max={most} value={value === 0 ? "" : value} onChange={(event) => keep(context, state, { [key]: event.currentTarget.value })} />
    </label>
  );
  return (
    <>
      <div class="bar-of-fields">
        {field("tp", "TP", tp, world)}{field("pp", "PP", pp, world)}
        {api.isServed && field("layers", say("layout.layers"), layers, 256)}
        {!isAsked && api.isServed && <span class="quiet">{say("layout.hint")}</span>}
      </div>
      {asked.ok === false && <Trouble error={asked.error} say={say} />}
      {asked.ok === true && <img class="layout-picture" alt={asked.value.title} src={`data:image/svg+xml;charset=utf-8,${encodeURIComponent(asked.value.svg)}`} />}
    </>
  );
}
