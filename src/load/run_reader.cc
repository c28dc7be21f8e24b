// Run: the index of one rank's dump, read once.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "formats/dump_json.h"
#include "load/detect.h"
#include "plumbline/run.h"

namespace plumbline {
namespace {

using NameIndex = std::unordered_map<std::string_view, size_t>;

// Header fields that old or foreign files leave out.
void InferHeader(RunHeader& header, const std::vector<Call>& calls) {
  if (!header.framework.empty()) return;
  header.framework = "pytorch";
  for (const Call& call : calls) {
    if (call.name.starts_with("Cell.") || call.name.starts_with("Mint")) {
      header.framework = "mindspore";
      return;
    }
  }
}

}  // namespace

struct Run::Impl {
  std::string dump_json_path;
  std::string tensor_directory;
  dump_json::DumpFile dump;
  dump_json::StackTable stacks;
  dump_json::ConstructTable parents;
  NameIndex stack_index;   // views of the names in `stacks`
  NameIndex parent_index;  // views of the names in `parents`
};

namespace {

// Optional side files, which name and explain but hold no numbers: absent or damaged is empty.
template <class Table>
void ReadSideFile(const std::string& path, Result<Table> (*read)(const std::string&), Table& table,
                  RunLoss& loss) {
  if (KindOf(path) != PathKind::kFile) return;
  Result<Table> result = read(path);
  if (result) {
    table = std::move(*result);
  } else {
    loss.side_files.push_back(result.error().message());
  }
}

// What the recorder itself counted: lines "[time] [ERROR] counter: N (sentence)". Other recorders'
// lines count one each.
uint64_t CountedLosses(const std::string& directory) {
  const Result<std::string> text = ReadFile(JoinPath(directory, load::kErrorLogName));
  if (!text) return 0;
  constexpr std::string_view kMark = "] [ERROR] ";
  // Kept in memory while the journal could not be written, and published later.
  constexpr std::string_view kNoLoss = "records_not_journaled";
  uint64_t losses = 0;
  for (size_t at = text->find(kMark); at != std::string::npos; at = text->find(kMark, at)) {
    at += kMark.size();
    const size_t end = std::min(text->find('\n', at), text->size());
    const std::string_view line = std::string_view(*text).substr(at, end - at);
    if (line.starts_with(kNoLoss)) continue;
    const size_t colon = line.find(": ");
    uint64_t count = 0;
    if (colon != std::string_view::npos) {
      std::from_chars(line.data() + colon + 2, line.data() + line.size(), count);
    }
    losses += std::max<uint64_t>(count, 1);
  }
  return losses;
}

// A journal that was written to after dump.json holds calls that dump.json lacks.
bool IsUnfinished(const std::string& directory, const std::string& dump_json) {
  const std::string journal = JoinPath(directory, load::kJournalName);
  if (KindOf(journal) != PathKind::kFile) return false;
  const Result<int64_t> journal_time = ModifiedAt(journal);
  const Result<int64_t> dump_time = ModifiedAt(dump_json);
  return journal_time && dump_time && *journal_time > *dump_time;
}

template <class Table>
NameIndex IndexByName(const Table& table) {
  NameIndex index;
  index.reserve(table.size());
  for (size_t i = 0; i < table.size(); ++i) index.insert_or_assign(table[i].first, i);
  return index;
}

// Whether the tensors in `tensors` may be those of `dump_json`: a dump.json beside them that says
// something else belongs to another run, which has overwritten them.
bool MayBelong(const std::string& tensors, const std::string& dump_json) {
  if (KindOf(tensors) != PathKind::kDirectory) return false;
  const std::string other = JoinPath(DirectoryOf(tensors), load::kDumpJsonName);
  if (KindOf(other) == PathKind::kMissing) return true;
  const Result<std::string> there = ReadFile(other);
  const Result<std::string> here = ReadFile(dump_json);
  return there && here && *there == *here;
}

// The sibling directory is preferred: dumps are moved more often than their header is edited.
std::string FindTensorDirectory(const std::string& dump_json, const RunHeader& header) {
  const std::string directory(DirectoryOf(dump_json));
  std::string sibling = JoinPath(directory, load::kTensorDirectoryName);
  if (KindOf(sibling) == PathKind::kDirectory || header.dump_data_dir.empty()) return sibling;
  if (MayBelong(header.dump_data_dir, dump_json)) return header.dump_data_dir;
  const std::string beside = JoinPath(directory, header.dump_data_dir);
  return MayBelong(beside, dump_json) ? beside : sibling;
}

}  // namespace

Run::Run(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Run::Run(Run&&) noexcept = default;
Run& Run::operator=(Run&&) noexcept = default;
Run::~Run() = default;

Result<Run> Run::Open(const std::string& path, const OpenOptions& options) {
  auto impl = std::make_unique<Impl>();
  PL_TRY_ASSIGN(impl->dump_json_path, load::ResolveDumpJson(path));
  PL_TRY_ASSIGN(impl->dump, dump_json::ReadDump(impl->dump_json_path, options.salvage));
  InferHeader(impl->dump.header, impl->dump.calls);
  const std::string directory(DirectoryOf(impl->dump_json_path));
  RunLoss& loss = impl->dump.loss;
  ReadSideFile(JoinPath(directory, load::kStackJsonName), dump_json::ReadStack, impl->stacks, loss);
  ReadSideFile(JoinPath(directory, load::kConstructJsonName), dump_json::ReadConstruct,
               impl->parents, loss);
  loss.recorder_drops = CountedLosses(directory);
  loss.unfinished = IsUnfinished(directory, impl->dump_json_path);
  impl->dump.header.by_plumbline =
      KindOf(JoinPath(directory, load::kRunMarkName)) == PathKind::kFile;
  impl->stack_index = IndexByName(impl->stacks);
  impl->parent_index = IndexByName(impl->parents);
  impl->tensor_directory = FindTensorDirectory(impl->dump_json_path, impl->dump.header);
  return Run(std::move(impl));
}

const RunHeader& Run::header() const { return impl_->dump.header; }
const RunLoss& Run::loss() const { return impl_->dump.loss; }
const std::string& Run::dump_json_path() const { return impl_->dump_json_path; }
const std::vector<Call>& Run::calls() const { return impl_->dump.calls; }

const std::vector<std::string>& Run::StackOf(std::string_view call_name) const {
  static const std::vector<std::string> kUnknown;
  const auto found = impl_->stack_index.find(call_name);
  return found == impl_->stack_index.end() ? kUnknown : impl_->stacks[found->second].second;
}

std::string_view Run::ParentOf(std::string_view call_name) const {
  const auto found = impl_->parent_index.find(call_name);
  return found == impl_->parent_index.end() ? std::string_view()
                                            : impl_->parents[found->second].second;
}

std::string Run::TensorPath(std::string_view data_name) const {
  return JoinPath(impl_->tensor_directory, data_name);
}

}  // namespace plumbline
