// The statistics of the selected value over the steps of the recording.
import { useMemo } from "preact/hooks";
import type { Api } from "../api";
import { Answer, Choose, keep, useAsked, type ViewProps } from "../parts/kit";
import { LineChart, Spark, type Line } from "../parts/line_chart";
import { NO_STATE } from "../state";
import type { Say } from "../texts";
import { seriesOf } from "../trend_answers";

const STATISTICS = ["norm", "max", "min", "mean"] as const;

export function NodeTrend({ context, state }: ViewProps) {
  const { say, session, api } = context;
  const { selected, details, dataset } = session;
  const values = details?.ok ? details.value.values : [];
  const value = values.find(({ name }) => name === state.param) ?? values.find(({ role }) => role === "output") ?? values[0];
  const statistic = STATISTICS.find((name) => name === state.extra["stat"]) ?? "norm";
  const asked = useAsked(() => (selected && value ? api.overSteps(dataset, selected.id, value.name) : null), [dataset, selected?.id, value?.name]);
  const known = asked.ok ? asked.value : null;
  const charts = useMemo(() => known && {
    steps: known.steps,
    sides: [
      { label: say("side.target"), values: known.target[statistic], colour: "--target" },
      { label: say("side.golden"), values: known.golden[statistic], colour: "--golden", isDashed: true },
    ].filter((line) => line.values.some((each) => each !== null)) satisfies Line[],
    error: [{ label: say("details.column.error"), values: known.error, colour: "--error" }] satisfies Line[],
  }, [known, statistic, say]);
  const datasets = useAsked(() => api.datasets(), []);
  const trend = datasets.ok ? datasets.value.datasets.find(({ kind, state: is }) => kind === "trend" && is === "ready") : undefined;
  if (!selected) return <p class="quiet">{say("trend.no-node")}</p>;
  if (details && !value) return <p class="quiet">{say("details.no-values")}</p>;
  const open = (i: number): void => context.go({ step: charts?.steps[i] ?? state.step });
  return (
    <>
      <div class="bar-of-fields">
        <Choose label={say("value.value")} value={value?.name ?? ""} choose={(param) => context.go({ param }, { replace: true })}
          choices={values.map(({ name }) => ({ key: name, text: name }))} />
        <Choose label={say("trend.statistic")} value={statistic} choose={(stat) => keep(context, state, { stat })}
          choices={STATISTICS.map((key) => ({ key, text: say(`details.column.${key}`) }))} />
        <bdi class="mono">{selected.name}</bdi>
        {trend && (
          <button type="button" onClick={() => context.go({ ...NO_STATE, dataset: trend.id, view: "trend", extra: seriesOf(selected.name) })}>
            {say("trend.show-in", trend.title)}
          </button>
        )}
      </div>
      <Answer asked={asked} say={say}>
        {() => charts && (
          <>
            {charts.steps.length < 2 && <p class="quiet">{say("trend.one-step")}</p>}
            <LineChart title={`${value?.name ?? ""} ${say(`details.column.${statistic}`)}`} xLabel={say("bar.step")} x={charts.steps} lines={charts.sides} scale="linear" say={say} open={open} />
            {charts.error[0]?.values.some((each) => each !== null) === true &&
              <LineChart title={say("details.column.error")} xLabel={say("bar.step")} x={charts.steps} lines={charts.error} scale="log" say={say} open={open} />}
          </>
        )}
      </Answer>
    </>
  );
}

// The same as small as a word, for a line of the details; nothing where there are no numbers.
export function StepSparks(props: { api: Api; dataset: string; node: number; value: string; say: Say }) {
  const { api, dataset, node, value, say } = props;
  const asked = useAsked(() => api.overSteps(dataset, node, value), [dataset, node, value]);
  const known = asked.ok ? asked.value : null;
  if (!known || known.target.norm.every((each) => each === null)) return null;
  const name = say("details.column.norm");
  return (
    <>
      <dt>{say("details.over-steps", value)}</dt>
      <dd class="sparks">
        <Spark label={`${say("side.target")} ${name}`} values={known.target.norm} colour="--target" />
        <Spark label={`${say("side.golden")} ${name}`} values={known.golden.norm} colour="--golden" />
      </dd>
    </>
  );
}
