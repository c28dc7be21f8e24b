#include "watch/grad_similarity.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <mutex>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/process/parallel.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/array/npy.h"
#include "formats/array/sign_pack.h"
#include "formats/table/grad_summary.h"
#include "store/run_layout.h"

namespace plumbline {
namespace {

// ---- signs

// The signs of one gradient: a byte or a bit per element.
struct SignsView {
  Shape sizes;
  std::span<const std::byte> bytes;
  bool is_packed = false;
  std::optional<npy::NpyFile> file;  // owns the bytes, unless they are packed
  Tensor copy;                       // owns them where the file is not in row-major order
};

uint64_t EqualBytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  uint64_t equal = 0;
  constexpr size_t kBlock = 128;  // whose sum a byte holds
  for (size_t i = 0; i < a.size();) {
    const size_t end = std::min(a.size(), i + kBlock);
    uint8_t part = 0;
    for (; i < end; ++i) {
      part = static_cast<uint8_t>(part + ((a[i] != std::byte{0}) == (b[i] != std::byte{0}) ? 1 : 0));
    }
    equal += part;
  }
  return equal;
}

uint64_t EqualBits(std::span<const std::byte> a, std::span<const std::byte> b, uint64_t elements) {
  uint64_t different = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    different += static_cast<uint64_t>(std::popcount(static_cast<uint8_t>(a[i] ^ b[i])));
  }
  return elements - different;
}

// Of packed signs and bytes.
uint64_t EqualUnpacked(std::span<const std::byte> bits, std::span<const std::byte> bytes) {
  std::byte unpacked[size_t{32} << 10];
  uint64_t equal = 0;
  for (size_t at = 0; at < bytes.size(); at += sizeof(unpacked)) {
    const size_t count = std::min(sizeof(unpacked), bytes.size() - at);
    sign_pack::Unpack(bits.subspan(at / 8, sign_pack::BytesFor(count)), unpacked);
    equal += EqualBytes(std::span<const std::byte>(unpacked, count), bytes.subspan(at, count));
  }
  return equal;
}

uint64_t EqualSigns(const SignsView& a, const SignsView& b, uint64_t elements) {
  if (a.is_packed && b.is_packed) return EqualBits(a.bytes, b.bytes, elements);
  if (!a.is_packed && !b.is_packed) return EqualBytes(a.bytes, b.bytes);
  return a.is_packed ? EqualUnpacked(a.bytes, b.bytes) : EqualUnpacked(b.bytes, a.bytes);
}

// The signs of one step on one side.
class StepSigns {
 public:
  static Result<StepSigns> Open(const std::string& rank_directory, int64_t step) {
    StepSigns signs;
    signs.directory_ = JoinPath(rank_directory, run_layout::StepName(step));
    const std::string packed = JoinPath(signs.directory_, sign_pack::kFileName);
    if (KindOf(packed) == PathKind::kFile) {
      PL_TRY_ASSIGN(signs.packed_, sign_pack::SignFile::Open(packed));
      for (const sign_pack::Entry& entry : signs.packed_->entries()) {
        signs.entries_.emplace(entry.name, &entry);
      }
    }
    const std::string table = JoinPath(rank_directory, grad_summary::FileName(step));
    if (KindOf(table) == PathKind::kFile) {
      PL_TRY_ASSIGN(const auto entries, grad_summary::ReadEntries(table));
      for (const grad_summary::Entry& entry : entries) {
        signs.names_.push_back(entry.name);
        if (entry.is_nonfinite) signs.nonfinite_.insert(entry.name);
      }
      signs.has_table_ = true;
    }
    run_layout::TensorNames files(npy::kEnding);
    for (const std::string& name : signs.names_) signs.files_.emplace(name, files.Reserve(name));
    return signs;
  }

  // Nothing: there is no file.
  Result<std::optional<SignsView>> Find(const std::string& parameter) const {
    if (packed_) {
      const auto entry = entries_.find(parameter);
      if (entry == entries_.end()) return std::optional<SignsView>();
      SignsView view;
      view.sizes = entry->second->sizes;
      view.bytes = entry->second->bits;
      view.is_packed = true;
      return std::optional(std::move(view));
    }
    std::string path = JoinPath(directory_, parameter + std::string(npy::kEnding));
    const auto file = files_.find(parameter);
    // Names that are no names of files, and those that fall together.
    if (file != files_.end()) {
      const std::string reserved = JoinPath(directory_, file->second);
      if (KindOf(reserved) == PathKind::kFile) path = reserved;
    }
    if (KindOf(path) != PathKind::kFile) return std::optional<SignsView>();
    PL_TRY_ASSIGN(SignsView view, Read(path));
    return std::optional(std::move(view));
  }

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] bool has_table() const { return has_table_; }
  [[nodiscard]] bool is_nonfinite(const std::string& name) const {
    return nonfinite_.contains(name);
  }

 private:
  static Result<SignsView> Read(const std::string& path) {
    SignsView view;
    PL_TRY_ASSIGN(view.file, npy::NpyFile::Open(path));
    TensorView array = view.file->view();
    if (array.dtype != DType::kBool) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{}: its elements are {} (expected bool, the signs of a gradient)",
                               path, InfoOf(array.dtype).name));
    }
    view.sizes.assign(array.sizes.begin(), array.sizes.end());
    if (!array.is_contiguous()) {
      PL_TRY_ASSIGN(view.copy, Tensor::Copy(array));
      array = view.copy.view();
    }
    view.bytes = {array.data, array.size_bytes()};
    return view;
  }

  std::string directory_;
  std::optional<sign_pack::SignFile> packed_;
  std::unordered_map<std::string, const sign_pack::Entry*> entries_;
  std::vector<std::string> names_;  // of the table
  std::unordered_set<std::string> nonfinite_;
  bool has_table_ = false;
  std::unordered_map<std::string, std::string> files_;
};

// ---- steps

// What was found of a parameter in a step.
enum class Found : uint8_t { kNowhere, kTarget, kGolden, kBoth };
struct Cell {
  Found found = Found::kNowhere;
  uint64_t equal = 0, elements = 0;
  Found nonfinite = Found::kNowhere;
};

Found FoundOn(bool in_target, bool in_golden) {
  if (in_target) return in_golden ? Found::kBoth : Found::kTarget;
  return in_golden ? Found::kGolden : Found::kNowhere;
}

struct StepCells {
  std::map<std::string, Cell> cells;
  std::vector<std::string> order;  // as the tables name them, the target's first
  bool has_table = false;
};

Result<Cell> CompareParameter(const StepSigns& target, const StepSigns& golden,
                              const std::string& parameter, int64_t step) {
  PL_TRY_ASSIGN(const std::optional<SignsView> a, target.Find(parameter));
  PL_TRY_ASSIGN(const std::optional<SignsView> b, golden.Find(parameter));
  if (!a || !b) {
    return Cell{.found = FoundOn(a.has_value(), b.has_value())};
  }
  if (a->sizes != b->sizes) {
    return Error(ErrorCode::kUnsupported,
                 fmt::format("{}, step {}: shapes differ, [{}] and [{}] (expected two trainings of "
                             "one model)",
                             parameter, step, fmt::join(a->sizes, ", "),
                             fmt::join(b->sizes, ", ")));
  }
  PL_TRY_ASSIGN(const int64_t count, ElementCount(a->sizes));
  const auto elements = static_cast<uint64_t>(count);
  return Cell{.found = Found::kBoth, .equal = EqualSigns(*a, *b, elements), .elements = elements};
}

Result<StepCells> CompareStep(const std::string& target, const std::string& golden, int64_t step) {
  PL_TRY_ASSIGN(const StepSigns a, StepSigns::Open(target, step));
  PL_TRY_ASSIGN(const StepSigns b, StepSigns::Open(golden, step));
  StepCells result;
  result.has_table = a.has_table() && b.has_table();
  for (const std::vector<std::string>* names : {&a.names(), &b.names()}) {
    for (const std::string& name : *names) {
      if (!result.cells.emplace(name, Cell()).second) continue;
      result.order.push_back(name);
      Cell& cell = result.cells[name];
      PL_TRY_ASSIGN(cell, CompareParameter(a, b, name, step));
      cell.nonfinite = FoundOn(a.is_nonfinite(name), b.is_nonfinite(name));
    }
  }
  return result;
}

// ---- ranks

Error NothingInCommon(const std::string& target, const std::string& golden, std::string_view what) {
  return Error(ErrorCode::kNotFound,
               fmt::format("{}, {}: no {} in both. Record both trainings with one configuration",
                           target, golden, what));
}

// {prefix}{digits} that are directories, ascending.
Result<std::vector<int64_t>> Numbered(const std::string& path, std::string_view prefix) {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectories(path));
  std::vector<int64_t> numbers;
  for (const std::string& name : names) {
    if (!name.starts_with(prefix)) continue;
    const auto number = ParseNatural(std::string_view(name).substr(prefix.size()));
    // "step01" is none of ours, and would be read as step1.
    if (number && name == fmt::format("{}{}", prefix, *number)) numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

struct NumbersOfBoth {
  std::vector<int64_t> common;
  uint64_t lonely = 0;
  std::vector<std::string> warnings;
};
Result<NumbersOfBoth> NumbersInBoth(const std::string& target, const std::string& golden,
                                    std::string_view prefix) {
  PL_TRY_ASSIGN(const std::vector<int64_t> a, Numbered(target, prefix));
  PL_TRY_ASSIGN(const std::vector<int64_t> b, Numbered(golden, prefix));
  NumbersOfBoth both;
  std::ranges::set_intersection(a, b, std::back_inserter(both.common));
  const auto tell = [&](const std::vector<int64_t>& own, const std::vector<int64_t>& other,
                        const std::string& path) {
    std::vector<int64_t> alone;
    std::ranges::set_difference(own, other, std::back_inserter(alone));
    if (alone.empty()) return;
    both.lonely += alone.size();
    both.warnings.push_back(fmt::format("{}: {} that the other side has not, from {}{} on", path,
                                        CountText(alone.size(), prefix), prefix, alone.front()));
  };
  tell(a, b, target);
  tell(b, a, golden);
  return both;
}

// A step that is wrong by the rules, of the values in order.
std::optional<SimilaritySuspect> FirstSuspect(const SimilarityRow& row,
                                              const std::vector<int64_t>& steps) {
  std::optional<double> before;
  std::optional<int64_t> step_before;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!row.values[i] || row.elements[i] == 0) continue;
    const double value = *row.values[i];
    SimilaritySuspect suspect{row.parameter, 0, steps[i], value, {}};
    if (!before && value < kLeastFirstSimilarity) {
      suspect.rule = fmt::format("below {} at the first step", kLeastFirstSimilarity);
      return suspect;
    }
    constexpr double kRounding = 1e-12;  // of shares: 0.97 - 0.94 is no more than 0.03
    if (before && *before - value > kMostSimilarityDrop + kRounding) {
      suspect.rule = fmt::format("more than {} below step {}", kMostSimilarityDrop, *step_before);
      return suspect;
    }
    before = value;
    step_before = steps[i];
  }
  return std::nullopt;
}

void SortSuspects(std::vector<SimilaritySuspect>& suspects) {
  std::ranges::stable_sort(suspects, [](const SimilaritySuspect& a, const SimilaritySuspect& b) {
    return std::pair(a.step, a.value) < std::pair(b.step, b.value);
  });
}

std::optional<double> Share(uint64_t equal, uint64_t elements) {
  return elements == 0 ? 0.0 : static_cast<double>(equal) / static_cast<double>(elements);
}

// Where one side alone has the gradient.
void TellMissing(const std::string& parameter, Found found, const std::vector<int64_t>& steps,
                 RankSimilarity* result) {
  if (steps.empty()) return;
  result->missing += steps.size();
  result->warnings.push_back(fmt::format("{}: no signs on the side of {} in {}, first in step {}",
                                         parameter, found == Found::kTarget ? "golden" : "target",
                                         CountText(steps.size(), "step"), steps.front()));
}

void TakeNonfinite(const std::string& parameter, Found found, int64_t step,
                   RankSimilarity* result) {
  if (found == Found::kNowhere) return;
  ++result->nonfinite;
  if (result->first_nonfinite && result->first_nonfinite->step <= step) return;
  const char* side = found == Found::kBoth ? "both" : found == Found::kTarget ? "target" : "golden";
  result->first_nonfinite = NonfiniteGradient{parameter, result->rank.value_or(0), step, side};
}

void FillRow(const std::string& parameter, const std::vector<StepCells>& steps,
             RankSimilarity* result) {
  SimilarityRow row{.parameter = parameter, .values = {}, .elements = {}};
  std::map<Found, std::vector<int64_t>> lonely;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto at = steps[i].cells.find(parameter);
    const Cell cell = at == steps[i].cells.end() ? Cell() : at->second;
    row.elements.push_back(cell.elements);
    row.values.push_back(cell.found == Found::kBoth ? Share(cell.equal, cell.elements)
                                                    : std::nullopt);
    lonely[cell.found].push_back(result->steps[i]);
    TakeNonfinite(parameter, cell.nonfinite, result->steps[i], result);
  }
  for (const Found found : {Found::kTarget, Found::kGolden}) {
    TellMissing(parameter, found, lonely[found], result);
  }
  if (auto suspect = FirstSuspect(row, result->steps)) {
    suspect->rank = result->rank.value_or(0);
    result->suspects.push_back(*std::move(suspect));
  }
  result->rows.push_back(std::move(row));
}

void FillRows(const std::vector<StepCells>& steps, RankSimilarity* result) {
  std::vector<std::string> order;
  std::unordered_map<std::string, bool> is_known;
  result->summary.parameter = "summary";
  for (const StepCells& step : steps) {
    uint64_t equal = 0, elements = 0;
    for (const std::string& name : step.order) {
      if (is_known.emplace(name, true).second) order.push_back(name);
      equal += step.cells.at(name).equal;
      elements += step.cells.at(name).elements;
    }
    result->summary.values.push_back(Share(equal, elements));
    result->summary.elements.push_back(elements);
  }
  for (const std::string& name : order) FillRow(name, steps, result);
  SortSuspects(result->suspects);
}

}  // namespace

Result<RankSimilarity> CompareGradientsOfRank(const std::string& target, const std::string& golden,
                                              const GradCompareOptions& options) {
  PL_TRY_ASSIGN(NumbersOfBoth both, NumbersInBoth(target, golden, "step"));
  if (both.common.empty()) {
    return NothingInCommon(target, golden,
                           "directory step{N}, where signs are (level L0 has none),");
  }
  RankSimilarity result;
  result.steps = both.common;
  result.lonely_steps = both.lonely;
  result.warnings = std::move(both.warnings);
  std::vector<Result<StepCells>> steps(result.steps.size(), StepCells());
  std::atomic<uint64_t> done = 0;
  std::mutex progress;
  RunWithThreads(options.threads, [&] {
    ParallelFor(steps.size(), [&](size_t i) {
      steps[i] = CompareStep(target, golden, result.steps[i]);
      const uint64_t read = ++done;
      const std::lock_guard lock(progress);
      if (options.progress) options.progress(read, steps.size());
    });
  });
  std::vector<StepCells> cells;
  for (Result<StepCells>& step : steps) {
    if (!step) return std::move(step).error();
    cells.push_back(*std::move(step));
  }
  const auto has_table = [](const StepCells& step) { return step.has_table; };
  if (std::ranges::none_of(cells, has_table)) {
    return NothingInCommon(target, golden, "grad_summary_{step}.csv");
  }
  FillRows(cells, &result);
  return result;
}

Result<GradComparison> CompareGradients(const std::string& target, const std::string& golden,
                                        const GradCompareOptions& options) {
  GradComparison comparison;
  comparison.target = target;
  comparison.golden = golden;
  PL_TRY_ASSIGN(NumbersOfBoth ranks, NumbersInBoth(target, golden, "rank"));
  PL_TRY_ASSIGN(const NumbersOfBoth steps, NumbersInBoth(target, golden, "step"));
  comparison.is_distributed = !ranks.common.empty();
  if (ranks.common.empty() && steps.common.empty()) {
    return NothingInCommon(target, golden, "directory rank{R} or step{N} (level L0 has no signs)");
  }
  if (!comparison.is_distributed) {
    PL_TRY_ASSIGN(RankSimilarity one, CompareGradientsOfRank(target, golden, options));
    comparison.ranks.push_back(std::move(one));
  } else {
    comparison.lonely_ranks = ranks.lonely;
    comparison.warnings = std::move(ranks.warnings);
  }
  for (const int64_t rank : ranks.common) {
    const std::string name = fmt::format("rank{}", rank);
    PL_TRY_ASSIGN(RankSimilarity one, CompareGradientsOfRank(JoinPath(target, name),
                                                             JoinPath(golden, name), options));
    one.rank = rank;
    for (SimilaritySuspect& suspect : one.suspects) suspect.rank = rank;
    if (one.first_nonfinite) one.first_nonfinite->rank = rank;
    comparison.ranks.push_back(std::move(one));
  }
  std::vector<SimilaritySuspect> firsts;
  for (const RankSimilarity& rank : comparison.ranks) {
    if (!rank.suspects.empty()) firsts.push_back(rank.suspects.front());
    const auto& nonfinite = rank.first_nonfinite;
    auto& first = comparison.first_nonfinite;
    if (nonfinite && (!first || nonfinite->step < first->step)) first = nonfinite;
  }
  SortSuspects(firsts);
  if (!firsts.empty()) comparison.first = firsts.front();
  return comparison;
}

}  // namespace plumbline
