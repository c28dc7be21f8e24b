#include "verdict/contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/file/file.h"
#include "base/process/parallel.h"
#include "load/run_reader.h"
#include "measure/cause_class.h"
#include "measure/compared_row.h"
#include "measure/propagation.h"
#include "measure/standards.h"
#include "measure/verdict.h"
#include "record/recorded_number.h"
#include "record/run_files.h"

namespace plumbline::verdict {

namespace {

constexpr double kMostElements = 1 << 20;

// The file of one tensor.
struct TensorPlace {
  std::string directory, file;
};

constexpr std::string_view kBehindDump = "//";  // no path of a dump.json ends in it

// `tensors`: as in a Comparison.
std::string DirectoryBeside(const std::string& dump_json, const std::string& tensors) {
  return tensors.empty() ? JoinPath(DirectoryOf(dump_json), run_files::kTensorDirectory) : tensors;
}

TensorPlace PlaceOf(const Comparison& comparison, const Item& item, bool of_target) {
  const std::string_view name = item.data_name;
  for (const EarlierStep& step : comparison.earlier) {
    const std::string& dump = of_target ? step.target_path : step.golden_path;
    if (!name.starts_with(dump) || !name.substr(dump.size()).starts_with(kBehindDump)) continue;
    return {DirectoryBeside(dump, of_target ? step.target_tensors : step.golden_tensors),
            std::string(name.substr(dump.size() + kBehindDump.size()))};
  }
  return {TensorDirectoryOf(comparison, of_target), std::string(name)};
}

}  // namespace

std::string TensorDirectoryOf(const Comparison& comparison, bool of_target) {
  return of_target ? DirectoryBeside(comparison.target_path, comparison.target_tensors)
                   : DirectoryBeside(comparison.golden_path, comparison.golden_tensors);
}

std::string EarlierFile(std::string_view dump_json, std::string_view file) {
  return fmt::format("{}{}{}", dump_json, kBehindDump, file);
}

std::optional<std::vector<double>> RecordedElements(const Comparison& comparison, const Item& item,
                                                    bool of_target, std::optional<int64_t> rows) {
  double count = measure::ElementsOf(item);
  if (rows) count *= static_cast<double>(*rows) / static_cast<double>(item.shape[0]);
  if (item.data_name.empty() || count > kMostElements) return std::nullopt;
  const TensorPlace place = PlaceOf(comparison, item, of_target);
  const auto file = load::OpenTensorIn(place.directory, place.file);
  if (!file) return std::nullopt;
  TensorView view = file->view();
  Shape sizes(view.sizes.begin(), view.sizes.end());
  if (rows) sizes[0] = *rows;
  view.sizes = sizes;
  Result<std::vector<double>> values = measure::DoublesOf(view);
  if (!values || static_cast<double>(values->size()) != count) return std::nullopt;
  return std::move(*values);
}

size_t ContentKeyHash::operator()(const ContentKey& key) const {
  size_t hash = std::hash<std::string_view>()(key.digest) ^ static_cast<size_t>(key.element_count);
  for (const uint64_t word : key.statistics) {
    hash = (hash ^ word) * size_t{0x9E3779B97F4A7C15};
    hash ^= hash >> 29;
  }
  return hash;
}

std::optional<ContentKey> KeyOf(const Item& item) {
  if (!item.is_tensor) return std::nullopt;
  ContentKey key;
  const Result<int64_t> count = ElementCount(item.shape);
  key.element_count = count ? *count : -1;
  if (item.has_recorded_digest) {
    key.digest = item.digest;
    return key;
  }
  bool any = false;
  for (size_t i = 0; i < key.statistics.size(); ++i) {
    if (const std::optional<double> value = NumberOf(item.statistics[i])) {
      key.statistics[i] = std::bit_cast<uint64_t>(*value);
      any = true;
    }
  }
  if (!any) return std::nullopt;
  return key;
}

ContentKey NegativeOf(const Item& item, const ContentKey& key) {
  const auto negative = [&](size_t i) {
    const std::optional<double> value = NumberOf(item.statistics[i]);
    return value ? std::bit_cast<uint64_t>(-*value) : key.statistics[i];
  };
  ContentKey other = key;
  other.statistics = {negative(1), negative(0), negative(2), key.statistics[3]};
  // Recorders write a single number's own value as its norm, with its sign.
  if (item.shape.empty()) other.statistics[3] = negative(3);
  return other;
}

bool IsNumberLess(const Item& item, const Item& other) {
  if (measure::ElementsOf(item) != measure::ElementsOf(other)) return false;
  std::array<double, 3> sums{};
  double largest = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const std::array<size_t, 3> turned{1, 0, 2};
    const std::optional<double> a = NumberOf(item.statistics[i]);
    const std::optional<double> b = NumberOf(other.statistics[turned[i]]);
    if (!a || !b || !std::isfinite(*a) || !std::isfinite(*b)) return false;
    sums[i] = *a + *b;
    largest = std::max({largest, std::abs(*a), std::abs(*b)});
  }
  const double rounding = measure::kNoiseFactor * measure::RoundoffOf(item, other) * largest;
  return std::abs(sums[0] - sums[1]) <= rounding && std::abs(sums[0] - sums[2]) <= rounding;
}

bool IsTelling(const Item& item) {
  if (!item.is_tensor) return false;
  const std::optional<double> max = NumberOf(item.statistics[0]);
  const std::optional<double> min = NumberOf(item.statistics[1]);
  if (!max || !min) return item.has_recorded_digest;
  if (*max != *min) return true;  // NaN tells: it came from somewhere
  // One number with a fraction was computed; whole numbers are counts, flags and fills.
  const Result<int64_t> count = ElementCount(item.shape);
  return count && *count == 1 && std::trunc(*max) != *max;
}

namespace {

constexpr size_t kFirstSize = 1024;

}  // namespace

void ContentTable::Remember(size_t hash, uint32_t row) {
  if (2 * (taken_ + 1) > entries_.size()) Grow();
  Entry& entry = entries_[PlaceOf(hash, [&] { return KeyOf(*rows_[row].golden); })];
  if (entry.row == kFree) ++taken_;
  entry = {row, TagOf(hash)};
}

void ContentTable::Grow() {
  // Room for all rows at once: every growth would look up the contents of all rows again.
  const size_t size = std::max(kFirstSize, std::bit_ceil(2 * (rows_.size() + 1)));
  std::vector<Entry> old =
      std::exchange(entries_, std::vector<Entry>(entries_.empty() ? size : 2 * entries_.size()));
  const size_t mask = entries_.size() - 1;
  for (const Entry& entry : old) {
    if (entry.row == kFree) continue;
    size_t place = ContentKeyHash()(*KeyOf(*rows_[entry.row].golden)) & mask;
    while (entries_[place].row != kFree) place = (place + 1) & mask;
    entries_[place] = entry;
  }
}

namespace {

constexpr size_t kShare = 512;  // of calls that one thread prepares in one go

}  // namespace

void RowsAhead::Prepare(std::span<const uint32_t> calls) {
  uint32_t first = std::numeric_limits<uint32_t>::max(), end = 0;
  for (const uint32_t i : calls) {
    const ComparedCall& call = comparison_.calls[i];
    first = std::min(first, call.first_row);
    end = std::max(end, call.first_row + call.row_count);
  }
  next_.first_row = first;
  next_.rows.resize(end - std::min(end, first));
  ParallelBlocks(calls.size(), kShare, [&](size_t begin, size_t until) {
    for (const uint32_t i : calls.subspan(begin, until - begin)) {
      const ComparedCall& call = comparison_.calls[i];
      for (uint32_t k = call.first_row; call.paired() && k < call.first_row + call.row_count; ++k) {
        next_.rows[k - first] = Of(comparison_.rows[k]);
      }
    }
  });
}

RowAhead RowsAhead::Of(const ComparedRow& row) const {
  const bool real = comparison_.mode == CompareMode::kTensor;
  RowAhead ahead;
  ahead.difference =
      measure::DifferenceOf(*row.target, *row.golden, context_, real ? &*row.tensor : nullptr);
  const std::optional<ContentKey> key = KeyOf(*row.golden);
  if (!key) return ahead;
  ahead.has_contents = true;
  ahead.contents = ContentKeyHash()(*key);
  ahead.has_negative = measure::IsInput(row) && !key->HasDigest();
  if (ahead.has_negative) ahead.negative = ContentKeyHash()(NegativeOf(*row.golden, *key));
  return ahead;
}

namespace {

// Whether `wide` holds the values of `narrow`, a tensor of a narrower floating type, as far as
// recorded: such a cast is exact, but recorders sum up in the type of the tensor, so that mean and
// norm are those of the narrow one to its rounding.
bool IsCastOf(const Item& wide, const Item& narrow) {
  constexpr double kRoundings = 4;
  const auto key = KeyOf(wide), from = KeyOf(narrow);
  if (!key || !from || key->HasDigest() || from->HasDigest()) return false;
  if (key->element_count != from->element_count) return false;
  const double roundoff = measure::RoundoffOf(narrow, narrow);
  if (!(roundoff > measure::RoundoffOf(wide, wide))) return false;
  if (key->statistics[0] != from->statistics[0] || key->statistics[1] != from->statistics[1]) {
    return false;
  }
  const std::optional<double> size = measure::RmsOf(wide);
  const auto is_near = [&](size_t which, double scale) {
    const std::optional<double> a = NumberOf(wide.statistics[which]);
    const std::optional<double> b = NumberOf(narrow.statistics[which]);
    return a && b && std::abs(*a - *b) <= kRoundings * roundoff * scale;
  };
  return size && is_near(2, *size) && is_near(3, *size * std::sqrt(measure::ElementsOf(wide)));
}

}  // namespace

const ComparedRow* KnownContents::SourceOf(const measure::Difference& difference,
                                           const ComparedRow& row) const {
  using Kind = measure::Difference::Kind;
  const bool decided_bad = difference.kind == Kind::kDecided && measure::IsBad(difference.verdict);
  if (difference.kind != Kind::kNumeric && !decided_bad) return nullptr;
  const RowAhead& ahead = ahead_.Of(IndexOf(row));
  if (!ahead.has_contents) return nullptr;
  const auto negative = [](const Item& item) { return NegativeOf(item, *KeyOf(item)); };
  std::optional<uint32_t> found = known_.Find(ahead.contents, [&] { return KeyOf(*row.golden); });
  const bool is_negative = !found && ahead.has_negative;
  // `-x` is not recorded
  if (is_negative) found = known_.Find(ahead.negative, [&] { return negative(*row.golden); });
  if (!found) return nullptr;
  std::optional<ContentKey> target = KeyOf(*row.target);
  if (is_negative && !target) return nullptr;
  if (is_negative) target = NegativeOf(*row.target, *target);
  const ComparedRow& source = comparison_.rows[*found];
  const bool is_cast = !is_negative && IsCastOf(*row.target, *source.target);
  if (KeyOf(*source.target) != target && !is_cast) return nullptr;
  const bool explains = measure::IsBad(source.verdict) || source.verdict == Verdict::kWithinNoise ||
                        (source.verdict == Verdict::kNotComparable && source.error > 0);
  return explains ? &source : nullptr;
}

bool KnownContents::Has(const Item& golden) const {
  const std::optional<ContentKey> key = KeyOf(golden);
  return key && known_.Find(ContentKeyHash()(*key), [&] { return key; });
}

void KnownContents::Expect(uint32_t index) const {
  const ComparedCall& call = comparison_.calls[index];
  if (!call.paired()) return;
  for (uint32_t k = call.first_row; k < call.first_row + call.row_count; ++k) {
    const RowAhead& ahead = ahead_.Of(k);
    if (ahead.has_contents) known_.Expect(ahead.contents);
    if (ahead.has_negative) known_.Expect(ahead.negative);
  }
}

void KnownContents::Remember(const ComparedRow& row) {
  const uint32_t index = IndexOf(row);
  const RowAhead& ahead = ahead_.Of(index);
  if (ahead.has_contents) known_.Remember(ahead.contents, index);
}

}  // namespace plumbline::verdict
