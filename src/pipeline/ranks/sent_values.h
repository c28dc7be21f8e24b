// What ranks send each other: a value that differs by rounding where it was made differs by no more
// where it arrives.

#ifndef PLUMBLINE_PIPELINE_RANKS_SENT_VALUES_H_
#define PLUMBLINE_PIPELINE_RANKS_SENT_VALUES_H_

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "pipeline/culprit/content_key.h"
#include "plumbline/compare.h"

namespace plumbline::pipeline {

// The contents of one tensor on both sides.
struct ContentPair {
  ContentKey target, golden;
  friend bool operator==(const ContentPair&, const ContentPair&) = default;
};

struct ContentPairHash {
  size_t operator()(const ContentPair& pair) const {
    const ContentKeyHash hash;
    return hash(pair.target) * size_t{0x9E3779B97F4A7C15} ^ hash(pair.golden);
  }
};

// A value that a rank gave to a communication call and that is within noise there.
struct SentValue {
  ContentPair contents;
  double explained = 0;  // relative error that is explained where it was sent
};

// Contents that differ, and what explains them on the rank that sent them.
using SentValues = std::unordered_map<ContentPair, double, ContentPairHash>;

// The inputs of the communication calls of one rank that differ within noise, but for what such a
// call brought before. Requires: verdicts.
std::vector<SentValue> SentWithinNoise(const Comparison& comparison);

// What communication calls of one rank bring and is wrong. Requires: verdicts.
std::vector<ContentPair> WrongArrivals(const Comparison& comparison);

// Raises `explained` (per row, a relative error; empty: 0 throughout) of the tensors that
// communication calls bring and whose contents, target's and golden's, are a pair that another rank
// `sent`.
void AddExplainedBySenders(const Comparison& comparison, const SentValues& sent,
                           std::vector<double>& explained);

}  // namespace plumbline::pipeline

#endif  // PLUMBLINE_PIPELINE_RANKS_SENT_VALUES_H_
