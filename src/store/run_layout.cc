#include "store/run_layout.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <span>

#include "base/digest.h"
#include "base/file.h"
#include "record/run_files.h"

namespace plumbline::run_layout {
namespace {

// Bytes of a file name without extension; longer ones are cut (file systems allow 255, and a
// temporary name and ".dup{k}" need room).
constexpr size_t kMaxNameBytes = 200;
constexpr size_t kKeptNameBytes = 180;

bool IsAllowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

// The file name without its extension.
std::string Stem(std::string_view tensor_name) {
  std::string stem(tensor_name);
  for (char& c : stem) {
    if (!IsAllowed(c)) c = '_';
  }
  // A leading dot would hide the file and make it look like a temporary.
  if (stem.empty() || stem.front() == '.') stem.insert(stem.begin(), '_');
  if (stem.size() <= kMaxNameBytes) return stem;
  Xxh3 hash;
  hash.Update(std::as_bytes(std::span(tensor_name)));
  return fmt::format("{}.{:016x}", stem.substr(0, kKeptNameBytes), hash.Finish().low);
}

}  // namespace

std::string StepName(int64_t step) { return fmt::format("step{}", step); }

std::string RankName(std::optional<int> rank) {
  return rank ? fmt::format("rank{}", *rank) : "rank";
}

std::string RankDirectory(std::string_view dump_path, std::optional<int64_t> step,
                          std::optional<int> rank) {
  if (!step) return JoinPath(dump_path, RankName(rank));
  return JoinPath(JoinPath(dump_path, StepName(*step)), RankName(rank));
}

std::string ContestedDirectory(std::string_view rank_directory, pid_t pid) {
  return fmt::format("{}_{}", rank_directory, pid);
}

std::string StaleJournalName(std::time_t when, int attempt) {
  std::tm local{};
  ::localtime_r(&when, &local);
  const std::string name = fmt::format("{}.{:%Y%m%d%H%M%S}", run_files::kJournal, local);
  return attempt == 0 ? name : fmt::format("{}.{}", name, attempt);
}

bool IsStaleJournal(std::string_view name) {
  if (!name.starts_with(run_files::kJournal)) return false;
  name.remove_prefix(run_files::kJournal.size());
  return name.size() > 1 && name[0] == '.' && name[1] >= '0' && name[1] <= '9';
}

bool IsTemporary(std::string_view name) { return name.starts_with('.') && name.ends_with(".tmp"); }

std::string TensorFileName(std::string_view tensor_name, std::string_view extension) {
  return Stem(tensor_name).append(extension);
}

std::string_view TensorExtension(std::string_view framework) {
  return framework == "pytorch" ? ".pt" : ".npy";
}

std::string TensorNames::Reserve(std::string_view tensor_name) {
  const std::string stem = Stem(tensor_name);
  std::string name = stem;
  // The first use of a stem is plain; later ones are numbered. A numbered name may itself be taken
  // by a tensor whose own name looks like that, hence the loop.
  for (uint32_t& uses = uses_[stem];;) {
    const uint32_t use = uses++;
    if (use == 0) break;
    name = fmt::format("{}.dup{}", stem, use);
    if (uses_.emplace(name, 1).second) break;
  }
  return name.append(extension_);
}

std::string TensorNames::Replace(std::string_view tensor_name) {
  std::string stem = Stem(tensor_name);
  uses_.try_emplace(stem, 1);
  return stem.append(extension_);
}

}  // namespace plumbline::run_layout
