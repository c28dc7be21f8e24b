#include "pipeline/ranks/sent_values.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "measure/compared_row.h"
#include "pipeline/ranks/comm_call.h"

namespace plumbline::pipeline {
namespace {

// What does not tell where it comes from (zeros, one number) arrives from anywhere.
std::optional<ContentPair> ContentsOf(const ComparedRow& row) {
  if (!row.target || !row.golden || !IsTelling(*row.target)) return std::nullopt;
  const auto target = KeyOf(*row.target), golden = KeyOf(*row.golden);
  if (!target || !golden) return std::nullopt;
  return ContentPair{*target, *golden};
}

// Calls `visit(row, contents)` for the tensors of paired communication calls.
template <typename Visit>
void VisitCommunication(const Comparison& comparison, const Visit& visit) {
  for (const ComparedCall& call : comparison.calls) {
    if (!call.paired() || !CommunicationApi(call.target_name)) continue;
    for (const ComparedRow& row : measure::RowsOf(comparison, call)) {
      if (const auto contents = ContentsOf(row)) visit(row, *contents);
    }
  }
}

}  // namespace

std::vector<SentValue> SentWithinNoise(const Comparison& comparison) {
  std::vector<SentValue> sent;
  // What came from another rank and goes on is known from where it was made only.
  std::unordered_set<ContentPair, ContentPairHash> known;
  VisitCommunication(comparison, [&](const ComparedRow& row, const ContentPair& contents) {
    if (!known.insert(contents).second || !measure::IsInput(row)) return;
    if (row.verdict != Verdict::kWithinNoise || !std::isfinite(row.expected)) return;
    sent.push_back({contents, row.expected});
  });
  return sent;
}

std::vector<ContentPair> WrongArrivals(const Comparison& comparison) {
  std::vector<ContentPair> wrong;
  std::unordered_set<ContentPair, ContentPairHash> known;
  VisitCommunication(comparison, [&](const ComparedRow& row, const ContentPair& contents) {
    const bool is_wrong = !measure::IsInput(row) && measure::IsBad(row.verdict);
    if (is_wrong && known.insert(contents).second) wrong.push_back(contents);
  });
  return wrong;
}

void AddExplainedBySenders(const Comparison& comparison, const SentValues& sent,
                           std::vector<double>& explained) {
  explained.resize(comparison.rows.size(), 0);
  VisitCommunication(comparison, [&](const ComparedRow& row, const ContentPair& contents) {
    const auto found = sent.find(contents);
    if (found == sent.end() || measure::IsInput(row)) return;
    double& own = explained[static_cast<size_t>(&row - comparison.rows.data())];
    own = std::max(own, found->second);
  });
}

}  // namespace plumbline::pipeline
