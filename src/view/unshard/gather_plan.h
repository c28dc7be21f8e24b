// Where both runs recorded tensors: how those of the ranks make up golden's, element by element.

#ifndef PLUMBLINE_VIEW_UNSHARD_GATHER_PLAN_H_
#define PLUMBLINE_VIEW_UNSHARD_GATHER_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "load/gathered_tensor.h"
#include "view/merge/parallel_layout.h"
#include "view/merge/rank_tree.h"
#include "view/unshard/parallel_run.h"
#include "view/unshard/shard_fold.h"

namespace plumbline::view {

// The order of elements is proven by values: at one place of a model (in any layer) it is one,
// which some layer must show by coming near golden's tensor in that order alone. Layers that do not
// come near it are compared in it all the same, so that elements which two ranks exchanged are
// seen. Where nothing shows an order, the elements of both sides are compared in order of size.
// Reads the files of one value at a time.
class GatherPlan {
 public:
  // One value of a call, as it was folded by its statistics.
  struct Value {
    std::string kind{};  // its place, the same for all layers
    std::string place{};
    const Part* golden = nullptr;
    const Part* out = nullptr;
    const TensorRecord* tensor = nullptr;  // golden's
    std::vector<size_t> ranks{};           // that have a part
    std::vector<const TensorRecord*> parts{};
    Share share = Share::kUnknown;  // before a sum that a reduction made of summands
    bool is_summed = false;         // there is such a sum
    double divisor = 1;             // of every element
    bool is_parameter = false;      // never in the order of a sequence
  };

  explicit GatherPlan(TensorPlaces places) : places_(std::move(places)) {}

  // The groups whose ranks sum up. Requires: before any Add().
  void SumIn(RankGroups groups) { groups_ = std::move(groups); }

  // What the first module gets tells whether the sequence is divided in zig-zag: each rank with a
  // block from the front and one from the back. Requires: before any Add().
  void SetInput(const Value& input, const FoldedTensor& folded);
  void Add(const Value& value, const FoldedTensor& folded);
  // Names the files of both sides' values; others have none afterwards.
  void Finish(RankTree& golden, RankTree& out);
  // Whether a value ("CALL.PLACE") has files. Requires: after Finish().
  [[nodiscard]] bool Compares(const std::string& name) const { return compared_.contains(name); }
  // What was found, in one line.
  [[nodiscard]] std::string Text() const;

 private:
  struct Candidate {
    std::string label;  // the same order in another layer
    load::GatheredTensor recipe;
    double distance;  // from golden, as a share of its norm
  };
  struct Pending {
    const Part* golden = nullptr;
    const Part* out = nullptr;
    std::string place{}, kind{};
    std::string golden_file{};
    std::vector<Candidate> candidates{};
    std::optional<load::GatheredTensor> any_order{};  // where nothing shows one
    bool are_copies = false, has_one_order = false;
    size_t farthest = 0;     // of copies, by their statistics
    bool do_differ = false;  // their statistics
  };
  using Files = std::vector<std::vector<std::string>>;  // of each part; several: summands

  [[nodiscard]] std::string FileOf(const Value& value, size_t part) const;
  [[nodiscard]] std::string GoldenFileOf(const Value& value) const;
  [[nodiscard]] Files SummandsOf(const Value& value) const;
  [[nodiscard]] std::vector<load::GatheredTensor> JoinsOf(const Value& value, const Files& files,
                                                          const Shape& part) const;
  void AddCandidates(const Value& value, const FoldedTensor& folded, Pending& pending) const;
  void AddSums(const Value& value, Pending& pending) const;
  [[nodiscard]] bool IsZigZag(const Value& value, size_t dimension, int64_t parts) const;
  [[nodiscard]] const Candidate* ChoiceOf(const Pending& pending) const;

  // Of each side below its own directory.
  [[nodiscard]] Result<TensorFile> TargetOf(const load::GatheredTensor& recipe) const;
  [[nodiscard]] Result<TensorFile> GoldenOf(const load::GatheredTensor& recipe) const;
  [[nodiscard]] double ChangeOf(const Shape& shape, const std::string& file,
                                const TensorView& golden) const;

  TensorPlaces places_;
  RankGroups groups_;
  int64_t zigzag_parts_ = 0, zigzag_size_ = 0;  // of the sequence; 0: it is not so
  std::vector<Pending> pending_;
  std::map<std::pair<std::string, std::string>, uint64_t> shown_;  // kind and label: by so many
  std::set<std::string> compared_;
  uint64_t in_order_ = 0, by_size_ = 0;
  std::vector<std::string> named_by_size_;
};

}  // namespace plumbline::view

#endif  // PLUMBLINE_VIEW_UNSHARD_GATHER_PLAN_H_
