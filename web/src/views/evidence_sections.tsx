// What a report has beside the nodes of a place: how certain the answer is, the error along the calls,
// the elements behind the first wrong call, and what to record next.
import { formatCount, formatNumber } from "../format";
import type { Session } from "../session";
import type { Say } from "../texts";
import { ErrorsChart, GrowthChart, PairsChart, ProfileChart } from "./charts";
import { factsOf, type Evidence, type PlaceFacts } from "./evidence";

interface SectionProps {
  readonly say: Say;
  readonly facts: PlaceFacts;
}

export function EvidenceSections(props: { readonly session: Session; readonly say: Say }) {
  const { session, say } = props;
  const facts = factsOf(session.meta, session.place);
  if (!facts) return null;
  const { warnings } = facts.header;
  return (
    <>
      {warnings.length > 0 && <section><h2>{say("summary.warnings")}</h2><ul class="notes">{warnings.map((line) => <li key={line}>{line}</li>)}</ul></section>}
      <Certainty facts={facts} say={say} />
      {facts.growth.length > 1 && (
        <section><h2>{say("summary.growth")}</h2><p class="quiet">{say("summary.growth.hint")}</p><GrowthChart points={facts.growth} say={say} /></section>
      )}
      {facts.evidence && <EvidenceCards evidence={facts.evidence} say={say} />}
      {facts.next_config !== "" && <section><h2>{say("summary.next")}</h2><pre class="answer-text">{facts.next_config}</pre></section>}
    </>
  );
}

function Certainty(props: SectionProps) {
  const { header } = props.facts;
  const lines = [header.certainty["level"], header.certainty["text"], header.certainty["limit"], header.narrowed, header.other_way, header.as_test]
    .filter((line): line is string => typeof line === "string" && line !== "");
  const counts = Object.entries(header.counts);
  return (
    <section>
      <h2>{props.say("summary.certainty")}</h2>
      {lines.map((line) => <p key={line}>{line}</p>)}
      <p class="quiet">{counts.map(([name, count]) => `${name} ${formatCount(count)}`).join(" · ")}</p>
    </section>
  );
}

function EvidenceCards(props: { readonly evidence: Evidence; readonly say: Say }) {
  const { evidence, say } = props;
  const { histogram } = evidence;
  return (
    <>
      <div class="three">
      <section><h2>{say("summary.pairs")}</h2><PairsChart evidence={evidence} say={say} /><p class="quiet">{say("summary.pairs.hint", evidence.pairs.length, formatCount(evidence.count))}</p></section>
      <section><h2>{say("summary.errors")}</h2><ErrorsChart evidence={evidence} say={say} /><p class="quiet">{say("summary.errors.hint", formatCount(histogram.equal), formatCount(histogram.total), formatCount(histogram.nonfinite))}</p></section>
      <section><h2>{say("summary.profile")}</h2><ProfileChart evidence={evidence} say={say} /><p class="quiet">{say("summary.profile.hint")}</p></section>
      </div>
      <section>
        <h2>{say("summary.elements", evidence.item)}</h2>
        <table class="values">
          <thead><tr><th>{say("summary.element")}</th><th class="number">{say("side.target")}</th><th class="number">{say("side.golden")}</th><th class="number">{say("summary.difference")}</th></tr></thead>
          <tbody>
            {evidence.worst.map(({ index, target, golden }) => (
              <tr key={index}><td class="mono">{position(index, evidence.shape)}</td><td class="number">{String(target)}</td><td class="number">{String(golden)}</td><td class="number">{formatNumber(target - golden)}</td></tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}

// A place in memory order as one index for each dimension.
function position(index: number, shape: readonly number[]): string {
  const places: number[] = [];
  for (const size of [...shape].reverse()) {
    places.unshift(index % size);
    index = Math.floor(index / size);
  }
  return `[${places.join(", ")}]`;
}
