#include "load/run_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "base/file/file_bytes.h"
#include "base/memory/name_table.h"
#include "formats/acl/acl_dump.h"
#include "formats/acl/acl_file_name.h"
#include "formats/json/dump_json.h"
#include "formats/pytorch/debug_mode_log.h"
#include "load/derived_tensor.h"
#include "load/detect.h"
#include "load/gathered_tensor.h"
#include "load/graph_dump.h"
#include "load/name_mapping.h"
#include "load/operator_dumps.h"
#include "load/processed_tensor.h"
#include "plumbline/run.h"
#include "record/run_files.h"

namespace plumbline::load {

namespace {

using PathOf = std::function<std::string(const std::string&)>;

Result<TensorFile> OpenNamed(const PathOf& path_of, const std::string& data_name,
                             torch_pt::DataCheck check) {
  if (const auto processed = ParseProcessedName(data_name)) {
    PL_TRY_ASSIGN(const TensorFile file, OpenNamed(path_of, processed->file, check));
    return Process(file.view(), processed->steps);
  }
  if (const auto gathered = ParseGatheredName(data_name)) {
    return Gather(*gathered,
                  [&](const std::string& file) { return TensorFile::Open(path_of(file), check); });
  }
  if (const auto derived = ParseDerivedName(data_name)) {
    return MakeDerivedTensor(*derived, [&](const std::string& file) -> Result<TensorFile> {
      if (ParseDerivedName(file)) return Error(ErrorCode::kInvalidArgument, file);
      return OpenNamed(path_of, file, check);
    });
  }
  if (data_name.empty() || data_name == ".." || data_name.find('/') != std::string::npos) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}: not a file name", data_name));
  }
  return TensorFile::Open(path_of(data_name), check);
}

}  // namespace

Result<TensorFile> OpenTensorIn(const std::string& directory, const std::string& data_name,
                                torch_pt::DataCheck check) {
  const auto path_of = [&](const std::string& file) { return JoinPath(directory, file); };
  return OpenNamed(path_of, data_name, check);
}

Result<TensorFile> OpenTensor(const Run& run, const std::string& data_name) {
  const auto path_of = [&](const std::string& file) { return run.TensorPath(file); };
  return OpenNamed(path_of, data_name, torch_pt::DataCheck::kVerify);
}

std::string NoteOnTensorDirectory(const Run& run) {
  const std::string& named = run.header().dump_data_dir;
  // What was made of several recordings has its tensors there.
  if (run.header().of_graphs || run.header().is_merged || named.empty()) return {};
  const std::string beside =
      JoinPath(DirectoryOf(run.dump_json_path()), run_files::kTensorDirectory);
  if (KindOf(beside) == PathKind::kDirectory) return {};
  const std::string used(DirectoryOf(run.TensorPath("x")));
  if (used != beside) {
    return fmt::format(
        "{}: no {} lies beside it; its tensors are read from {}, which its dump_data_dir names",
        run.dump_json_path(), run_files::kTensorDirectory, used);
  }
  if (KindOf(named) != PathKind::kDirectory) return {};
  return fmt::format(
      "{}: no {} lies beside it, and {}, which its dump_data_dir names, is of another recording by "
      "now: not read",
      run.dump_json_path(), run_files::kTensorDirectory, named);
}

namespace {

// Endings of files that have readers of their own.
constexpr std::array<std::string_view, 16> kOtherEndings = {
    ".npy", ".npz",  ".pt",  ".pth",  ".bin", ".safetensors", ".json", ".csv",
    ".h5",  ".hdf5", ".txt", ".xlsx", ".db",  ".yaml",        ".log",  ".ckpt"};

bool HasOtherEnding(std::string_view name) {
  return std::ranges::any_of(kOtherEndings,
                             [&](std::string_view ending) { return name.ends_with(ending); });
}

bool IsDumpByContents(const std::string& path) {
  const Result<acl::DumpFile> file = acl::DumpFile::Open(path, "a.a.0.0.0");
  return file && file->message().has_parts();
}

}  // namespace

std::optional<std::string> DumpNameOf(const std::string& path) {
  if (KindOf(path) != PathKind::kFile) return std::nullopt;
  std::string name(BaseName(path));
  const Result<NameMapping> mapping = NameMapping::Read(std::string(DirectoryOf(path)));
  if (mapping) name = mapping->NameOf(name);
  if (HasOtherEnding(name)) return std::nullopt;
  const bool is_named = acl::ParseDumpFileName(name) || ParseOperatorDumpName(name);
  if (!is_named && !IsDumpByContents(path)) return std::nullopt;
  return name;
}

}  // namespace plumbline::load

namespace plumbline {

// Run: the index of one rank's dump, read once.

struct Run::Impl {
  std::string dump_json_path;
  std::string tensor_directory;
  dump_json::DumpFile dump;
  dump_json::CallTree tree;
  NameTable tree_index;                                  // rows of `tree`
  std::vector<Shared<std::vector<std::string>>> stacks;  // of each row of `tree`
  dump_json::StackTable other_stacks;                    // of calls that stand in none
  NameTable other_index;                                 // rows of `other_stacks`
  std::vector<std::string> graph_directories;            // of a static-graph dump
  std::string stack_path;  // not read yet; empty: nothing is left to be read
  std::once_flag stacks_read;

  void ReadStacks();
  void TakeStacks(dump_json::StackTable table);
  [[nodiscard]] std::optional<size_t> TreeRow(std::string_view name) const;
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

auto NameIn(const dump_json::StackTable& table) {
  return [&table](size_t row) { return table[row].first.view(); };
}
auto NameIn(const dump_json::CallTree& tree) {
  return [&tree](size_t row) { return tree.rows[row].name.view(); };
}

// Names occur once in these tables.
template <class Table>
NameTable IndexByName(const Table& table, size_t rows) {
  NameTable index(rows);
  for (size_t i = 0; i < rows; ++i) index.Add(i, NameIn(table));
  return index;
}

}  // namespace

void Run::Impl::ReadStacks() {
  std::call_once(stacks_read, [this] {
    if (stack_path.empty()) return;
    dump_json::StackTable table;
    ReadSideFile(stack_path, dump_json::ReadStack, table, dump.loss);
    TakeStacks(std::move(table));
  });
}

// Nearly all names stand in both tables: they are kept once.
void Run::Impl::TakeStacks(dump_json::StackTable table) {
  stacks.resize(tree.rows.size());
  for (auto& row : table) {
    if (const auto at = TreeRow(row.first)) {
      stacks[*at] = std::move(row.second);
    } else {
      other_stacks.push_back(std::move(row));
    }
  }
  other_index = IndexByName(other_stacks, other_stacks.size());
}

std::optional<size_t> Run::Impl::TreeRow(std::string_view name) const {
  return tree_index.Find(name, NameIn(tree));
}

namespace {

// The usual name of a file like this one.
std::string_view MainFileOf(std::string_view path) {
  return path.ends_with(run_files::kDebugJson) ? run_files::kDebugJson : run_files::kDumpJson;
}

// Whether the tensors in `tensors` may be those of `dump_json`: a dump.json beside them that says
// something else, or a recording that has not written its own yet, belongs to another run, which
// has overwritten them.
bool MayBelong(const std::string& tensors, const std::string& dump_json) {
  if (KindOf(tensors) != PathKind::kDirectory) return false;
  const std::string other = JoinPath(DirectoryOf(tensors), MainFileOf(dump_json));
  if (KindOf(other) == PathKind::kMissing) {
    return KindOf(JoinPath(DirectoryOf(tensors), run_files::kJournal)) == PathKind::kMissing;
  }
  return HaveSameBytes(other, dump_json);
}

// The sibling directory is preferred: dumps are moved more often than their header is edited.
std::string FindTensorDirectory(const std::string& dump_json, const RunHeader& header) {
  const std::string directory(DirectoryOf(dump_json));
  std::string sibling = JoinPath(directory, run_files::kTensorDirectory);
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

Result<Run> Run::OpenGraph(const std::string& path, const OpenOptions& options) {
  auto impl = std::make_unique<Impl>();
  PL_TRY_ASSIGN(impl->graph_directories, load::ResolveGraphPath(path));
  RunHeader& header = impl->dump.header;
  header.framework = "mindspore";
  header.level = "L2";
  header.of_graphs = true;
  const auto keep = [&](Call call, bool has_tensors) {
    header.task = has_tensors ? "tensor" : "statistics";
    const bool is_kept = !options.keep || options.keep(call, header);
    if (is_kept) impl->dump.calls.push_back(std::move(call));
  };
  PL_TRY_ASSIGN(load::GraphRecords records, load::VisitGraphDump(impl->graph_directories, keep));
  impl->dump.loss.side_files = std::move(records.problems);
  impl->dump_json_path = JoinPath(load::GraphPath(impl->graph_directories),
                                  records.has_tensors ? "*.npy" : run_files::kStatisticCsv);
  return Run(std::move(impl));
}

Result<Run> Run::OpenLog(const std::string& path, const OpenOptions& options) {
  auto impl = std::make_unique<Impl>();
  PL_TRY_ASSIGN(debug_mode::LogFile log, debug_mode::ReadLog(path, options.salvage, options.keep));
  impl->dump_json_path = path;
  impl->dump = {std::move(log.header), std::move(log.calls), std::move(log.loss)};
  impl->tree = std::move(log.tree);
  impl->tree_index = IndexByName(impl->tree, impl->tree.rows.size());
  impl->TakeStacks(std::move(log.stacks));
  return Run(std::move(impl));
}

Result<Run> Run::Open(const std::string& path, const OpenOptions& options) {
  if (load::IsGraphDump(path)) return OpenGraph(path, options);
  if (debug_mode::FormOfLog(path)) return OpenLog(path, options);
  auto impl = std::make_unique<Impl>();
  PL_TRY_ASSIGN(impl->dump_json_path, load::ResolveDumpJson(path));
  PL_TRY_ASSIGN(impl->dump,
                dump_json::ReadDump(impl->dump_json_path, options.salvage, options.keep));
  const std::string directory(DirectoryOf(impl->dump_json_path));
  RunLoss& loss = impl->dump.loss;
  if (!impl->dump.header.holds_saves()) {
    impl->stack_path = JoinPath(directory, run_files::kStackJson);
    if (!options.defer_stacks) impl->ReadStacks();
    ReadSideFile(JoinPath(directory, run_files::kConstructJson), dump_json::ReadCallTree,
                 impl->tree, loss);
  }
  const load::RecordingState state = load::StateOf(directory, MainFileOf(impl->dump_json_path));
  loss.recorder_drops = state.losses;
  loss.compiled_regions = state.compiled_regions;
  loss.ended_early = state.ended_early;
  if (!state.log_problem.empty()) loss.side_files.push_back(state.log_problem);
  loss.unfinished = state.unfinished;
  impl->dump.header.by_plumbline =
      KindOf(JoinPath(directory, run_files::kRunMark)) == PathKind::kFile;
  if (!impl->dump.header.by_plumbline) {
    const auto grouped = dump_json::IsGroupedStack(JoinPath(directory, run_files::kStackJson));
    impl->dump.header.digests_own_bytes =
        BaseName(directory).starts_with("proc") || (grouped && *grouped);
  }
  impl->tree_index = IndexByName(impl->tree, impl->tree.rows.size());
  impl->tensor_directory = FindTensorDirectory(impl->dump_json_path, impl->dump.header);
  return Run(std::move(impl));
}

const RunHeader& Run::header() const { return impl_->dump.header; }
const RunLoss& Run::loss() const {
  impl_->ReadStacks();
  return impl_->dump.loss;
}
const RunLoss& Run::loss_so_far() const { return impl_->dump.loss; }
const std::string& Run::dump_json_path() const { return impl_->dump_json_path; }
const std::vector<Call>& Run::calls() const { return impl_->dump.calls; }

const Shared<std::vector<std::string>>& Run::StackOf(std::string_view call_name) const {
  static const Shared<std::vector<std::string>> kUnknown;
  impl_->ReadStacks();
  const auto row = impl_->TreeRow(call_name);
  if (row && *row < impl_->stacks.size()) return impl_->stacks[*row];
  const auto other = impl_->other_index.Find(call_name, NameIn(impl_->other_stacks));
  return other ? impl_->other_stacks[*other].second : kUnknown;
}

std::string_view Run::ParentOf(std::string_view call_name) const {
  const auto row = impl_->TreeRow(call_name);
  return row ? impl_->tree.rows[*row].parent.view() : std::string_view();
}

const dump_json::CallTree& load::CallTreeOf(const Run& run) { return run.impl_->tree; }

const std::vector<std::string>& Run::graph_directories() const { return impl_->graph_directories; }

std::string Run::TensorPath(std::string_view data_name) const {
  if (header().of_graphs) {
    return load::GraphFile(impl_->graph_directories, data_name, header().task == "tensor");
  }
  return JoinPath(impl_->tensor_directory, data_name);
}

}  // namespace plumbline
