// CompareRuns() (plumbline/compare.h) for callers that pair calls themselves or need some stages.

#ifndef PLUMBLINE_COMPARE_COMPARE_RUNS_H_
#define PLUMBLINE_COMPARE_COMPARE_RUNS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compare/carried_values.h"
#include "compare/pair_calls.h"
#include "match/mapping_file.h"
#include "plumbline/compare.h"

namespace plumbline::compare {

class StepChain;

// Pairs the calls in place of PairCalls(). Of one comparison.
struct Pairing {
  // May replace the lists of calls by others. Empty: PairCalls().
  std::function<Result<std::vector<match::CallPair>>(
      const PairingSide& target, const PairingSide& golden, Comparison& comparison)>
      pair{};
  // Calls of the target and golden ones that a person says are the same; for PairCalls().
  match::TextPairs by_hand{};
  // Puts the names to show into the finished comparison; may be empty.
  std::function<void(Comparison& comparison)> show_names{};
  // Sees every entry as it is read, also those that occur again; the sides are read at once. May be
  // empty.
  std::function<void(const Call& call, bool of_target)> see{};
};

// As CompareRuns().
Result<Comparison> ComparePaired(const std::string& target, const std::string& golden,
                                 const CompareOptions& options, const Pairing& pairing);

// The stages of a comparison, for those who need some of them only. Move-only; single-threaded.
class RunPair {
 public:
  // Reads both runs, pairs their calls and measures their tensors: the rows have no verdicts yet.
  // `keep_names`: target() holds the names of all calls, and the arguments of those that
  // communicate. Errors: those of CompareRuns(). The options must outlive the pair.
  static Result<RunPair> Load(const std::string& target, const std::string& golden,
                              const CompareOptions& options, bool keep_names = false,
                              const Pairing& pairing = {});
  RunPair(RunPair&&) noexcept;
  RunPair& operator=(RunPair&&) = delete;
  ~RunPair();

  // Results and colours as upstream has them.
  void FillTable();
  // The verdicts of all rows and calls, and the first wrong call; compares the run that
  // options.noise_path names first. `received`: what other ranks of the target sent. `chain`: what
  // is wrong by itself is judged behind the steps before it; null: it stays so.
  Status Judge(const SentValues& received = {}, StepChain* chain = nullptr);
  // The cause of the first wrong call, what to record next, stacks, counts, warnings, and the names
  // to show. kIo where a file became shorter while it was read: nothing found is true then.
  Status Explain();
  [[nodiscard]] const Run& target() const;
  [[nodiscard]] const Run& golden() const;
  [[nodiscard]] const Comparison& comparison() const;
  // Requires: not called before.
  Comparison Take() &&;

 private:
  struct Impl;
  explicit RunPair(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// All stages but the last: what ComparePaired() gives, with the runs it came from. The options must
// outlive it.
Result<RunPair> JudgePaired(const std::string& target, const std::string& golden,
                            const CompareOptions& options, const Pairing& pairing);

}  // namespace plumbline::compare

#endif  // PLUMBLINE_COMPARE_COMPARE_RUNS_H_
