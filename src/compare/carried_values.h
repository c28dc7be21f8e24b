// Values that go from one comparison to another: between ranks, and from step to step.

#ifndef PLUMBLINE_COMPARE_CARRIED_VALUES_H_
#define PLUMBLINE_COMPARE_CARRIED_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/memory/digest.h"
#include "load/rank_directories.h"
#include "plumbline/compare.h"
#include "verdict/cause_candidates.h"
#include "verdict/optimizer_steps.h"

namespace plumbline::compare {

// What ranks send each other: a value that differs by rounding where it was made differs by no more
// where it arrives.

// The contents of one tensor on both sides: a digest of all that is known of them.
using ContentId = Digest128;

struct ContentIdHash {
  size_t operator()(const ContentId& id) const { return static_cast<size_t>(id.low); }
};

// A value that a rank gave to a communication call and that is within noise there.
struct SentValue {
  ContentId contents;
  double explained = 0;  // relative error that is explained where it was sent
};

// Contents that differ, and what explains them on the rank that sent them.
using SentValues = std::unordered_map<ContentId, double, ContentIdHash>;

// The inputs of the communication calls of one rank that differ within noise, but for what such a
// call brought before. Requires: verdicts.
std::vector<SentValue> SentWithinNoise(const Comparison& comparison);

// What communication calls of one rank bring and is wrong. Requires: verdicts.
std::vector<ContentId> WrongArrivals(const Comparison& comparison);

// Raises `explained` (per row, a relative error; empty: 0 throughout) of the tensors that
// communication calls bring and whose contents, target's and golden's, are a pair that another rank
// `sent`.
void AddExplainedBySenders(const Comparison& comparison, const SentValues& sent,
                           std::vector<double>& explained);

// The steps before the one that is compared, where each step is a directory of its own.

// Two directories of one rank, target and golden.
struct StepPair {
  int64_t step = 0;  // of the target
  std::string target, golden;
  std::string facts;  // sizes and times of their dump.json
};

// What lies in dumps of many steps; everything is looked at once. Single-threaded.
class StepDirectories {
 public:
  // Of a dump directory, in order of time; empty where it cannot be listed.
  const std::vector<load::StepDirectory>& StepsOf(const std::string& dump_path);
  struct Rank {
    bool is_there = false;
    std::string facts;  // of its dump.json
  };
  const Rank& RankAt(const std::string& rank_path);

 private:
  std::map<std::string, std::vector<load::StepDirectory>> steps_;
  std::map<std::string, Rank> ranks_;
};

struct StepsFound {
  std::vector<StepPair> steps;  // the first one first
  // Why they begin where they do, if one side alone has the step before them; else empty.
  std::string gap;
};

// The steps straight before the one that the two places hold: as long as there is one with the
// number before on both sides. Empty where they are no steps of two dumps.
StepsFound StepsBefore(const verdict::RunPlace& target, const verdict::RunPlace& golden,
                       StepDirectories& directories);

// Judged steps of one rank. Those that nobody handed over are read when they are asked for.
// Single-threaded.
class StepChain {
 public:
  // What other ranks sent to this one in a step.
  using ReceivedIn = std::function<const SentValues&(int64_t step)>;

  // `options`: of the comparison of every step; must outlive this. `received`: may be empty.
  // `is_shown`: the steps before have answers of their own, which the user sees.
  explicit StepChain(const CompareOptions& options, ReceivedIn received = {}, bool is_shown = false)
      : options_(options), received_(std::move(received)), is_shown_(is_shown) {}

  // Valid until the next call.
  const StepsFound& Find(const verdict::RunPlace& target, const verdict::RunPlace& golden);
  // The steps before that of the two runs, judged; null where there are none or the last one is
  // wrong or cannot be read.
  verdict::EarlierSteps* Before(const Run& target, const Run& golden);
  // What is not known of the steps before that of the two runs, or wrong in them: a sentence each,
  // for a step in which something looks wrong. After Before().
  std::vector<std::string> WhatIsMissing(const Run& target, const Run& golden);
  // Hands over what Before() would read otherwise: a step and its comparison, judged with this
  // chain.
  void Add(int64_t step, Comparison comparison) { steps_.Add(step, std::move(comparison)); }

 private:
  void Read(const std::vector<StepPair>& steps);
  void NoteTrouble(int64_t step, const Comparison& comparison);

  const CompareOptions& options_;
  ReceivedIn received_;
  const bool is_shown_;
  verdict::EarlierSteps steps_;
  bool is_reading_ = false;
  StepDirectories directories_;
  std::string found_for_;  // places
  StepsFound found_;
  std::map<int64_t, std::string> troubles_;  // of steps that were read
};

}  // namespace plumbline::compare

#endif  // PLUMBLINE_COMPARE_CARRIED_VALUES_H_
