#include "pipeline/operators/name_pairs.h"

#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace plumbline::pipeline {
namespace {

// Name, thread and, of arrays, the output.
struct Key {
  std::string_view name;
  int64_t thread, output;

  explicit Key(const load::OperatorDump& dump)
      : name(dump.op_name), thread(dump.thread_id.value_or(-1)), output(dump.output.value_or(-1)) {}
  bool operator==(const Key&) const = default;
};

struct HashOfKey {
  size_t operator()(const Key& key) const {
    const size_t numbers = static_cast<size_t>(key.thread) * 31 + static_cast<size_t>(key.output);
    return std::hash<std::string_view>()(key.name) ^ numbers * 0x9E3779B97F4A7C15;
  }
};

// Files without a counterpart so far, by key; those of one key in the order of the list.
class Waiting {
 public:
  // Borrows the names.
  explicit Waiting(const std::vector<load::OperatorDump>& files) : next_(files.size(), kNone) {
    queues_.reserve(files.size());
    for (size_t i = 0; i < files.size(); ++i) {
      const auto [at, is_new] = queues_.try_emplace(Key(files[i]), Queue{i, i});
      if (is_new) continue;
      next_[at->second.last] = i;
      at->second.last = i;
    }
  }
  // The first one; kNone: there is none left.
  size_t Take(const load::OperatorDump& dump) {
    const auto found = queues_.find(Key(dump));
    if (found == queues_.end() || found->second.first == kNone) return kNone;
    return std::exchange(found->second.first, next_[found->second.first]);
  }

  static constexpr size_t kNone = SIZE_MAX;

 private:
  struct Queue {
    size_t first, last;
  };
  std::unordered_map<Key, Queue, HashOfKey> queues_;
  std::vector<size_t> next_;
};

// All but the name, which may be borrowed.
void TakeGoldenFile(load::OperatorDump& theirs, PairedOperator& pair) {
  pair.golden_path = std::move(theirs.path);
  pair.golden_slices = std::move(theirs.slices);
  pair.golden_file_name = std::move(theirs.file_name);
}

}  // namespace

std::vector<PairedOperator> PairByName(load::OperatorDumps target, load::OperatorDumps golden) {
  Waiting waiting(golden.files);
  std::vector<bool> is_paired(golden.files.size());
  std::vector<PairedOperator> pairs;
  pairs.reserve(target.files.size());
  for (load::OperatorDump& mine : target.files) {
    PairedOperator& pair = pairs.emplace_back();
    pair.index = pairs.size() - 1;
    const size_t found = waiting.Take(mine);
    if (found == Waiting::kNone) {
      pair.reason = "There is no the ground truth dump file for the op " + mine.op_name + ".";
    } else {
      is_paired[found] = true;
      pair.golden_name = mine.op_name;
      TakeGoldenFile(golden.files[found], pair);
    }
    pair.op_type = std::move(mine.op_type);
    pair.target_name = std::move(mine.op_name);
    pair.target_path = std::move(mine.path);
    pair.target_slices = std::move(mine.slices);
    pair.target_file_name = std::move(mine.file_name);
  }
  for (size_t i = 0; i < golden.files.size(); ++i) {
    if (is_paired[i]) continue;
    load::OperatorDump& theirs = golden.files[i];
    PairedOperator& pair = pairs.emplace_back();
    pair.index = pairs.size() - 1;
    pair.reason = "There is no the my output dump file for the op " + theirs.op_name + ".";
    pair.op_type = std::move(theirs.op_type);
    pair.golden_name = std::move(theirs.op_name);
    TakeGoldenFile(theirs, pair);
  }
  return pairs;
}

}  // namespace plumbline::pipeline
