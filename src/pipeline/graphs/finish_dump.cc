#include "pipeline/graphs/finish_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/csv.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/parallel.h"
#include "base/small_file.h"
#include "base/text_parts.h"
#include "formats/npy.h"
#include "formats/statistic_csv.h"
#include "load/graph_dump.h"
#include "load/name_mapping.h"
#include "load/statistic_table.h"
#include "pipeline/graphs/pass_lock.h"
#include "pipeline/graphs/sample_tensors.h"
#include "record/run_files.h"

namespace plumbline::pipeline {
namespace {

using load::KernelFile;

constexpr size_t kMaxProblems = 20;
constexpr std::string_view kNpy = ".npy";

enum class FileState : uint8_t { kDone, kUnfinished, kUnreadable, kOther, kContradicted };

// One tensor file of an iteration, and its row.
struct TensorFile {
  std::string file;
  std::string_view name;  // in full: that of the file, or what mapping.csv says
  int64_t timestamp = 0;
  std::string row;  // empty: it is there already, or cannot be made
  FileState state = FileState::kDone;
};

// The cells that tell one tensor from every other. Borrows from `parts`.
class Key {
 public:
  explicit Key(const KernelFile& parts)
      : time_(parts.timestamp),
        slot_(parts.slot),
        cells_{parts.op_type,
               parts.op_name,
               parts.task,
               parts.stream,
               {time_.data(), time_.size()},
               parts.is_output ? "output" : "input",
               {slot_.data(), slot_.size()}} {}
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;

  [[nodiscard]] const std::array<std::string_view, statistic_csv::kKeyCount>& cells() const {
    return cells_;
  }

 private:
  fmt::format_int time_, slot_;
  std::array<std::string_view, statistic_csv::kKeyCount> cells_;
};

template <class Cells>
std::string TextOf(const Cells& cells) {
  std::string key;
  for (size_t i = 0; i < statistic_csv::kKeyCount; ++i) {
    key += cells[i];
    key += '\n';
  }
  return key;
}

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Whether something may still be written to the file, or its mode changed.
bool IsYoung(const std::string& path) {
  constexpr int64_t kSecond = 1'000'000'000;
  const Result<int64_t> changed = ModifiedAt(path);
  return changed && Now() - *changed < kSecond;
}

// The rows of an earlier pass by key, with the time that orders them.
struct OldRow {
  int64_t timestamp = 0;
  std::string text;
};
using OldRows = std::map<std::string, OldRow>;

// kCorrupt for a table of any release that is cut or holds something else.
Status CheckTable(const std::string& path) {
  PL_TRY_ASSIGN(const File file, File::OpenRead(path));
  PL_TRY_ASSIGN(const uint64_t size, FileSize(path));
  std::byte last{};
  PL_TRY_ASSIGN(const size_t read, file.ReadAt({&last, 1}, size == 0 ? 0 : size - 1));
  if (read == 0 || last != std::byte{'\n'}) {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: is cut in its last line. Move it away to "
                                                  "have it made anew from the tensors that are "
                                                  "still there",
                                                  path));
  }
  return load::VisitStatisticTable(path, [](const load::StatisticRow& /*row*/) {});
}

Result<OldRows> ReadOldRows(const std::string& path, std::string_view header) {
  OldRows out;
  if (KindOf(path) != PathKind::kFile) return out;
  PL_TRY_ASSIGN(const std::string start, ReadStart(path, header.size()));
  if (start != header) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: has other columns (expected {}). Move it away to have it made "
                             "anew from the tensors that are still there",
                             path, header.substr(0, header.size() - 1)));
  }
  PL_TRY(CheckTable(path));
  size_t columns = 0, line = 0;
  PL_TRY(csv::VisitRows(path, [&](const csv::Row& row) -> Status {
    if (++line == 1) columns = row.size();
    if (line == 1 || row.empty()) return {};
    const bool is_whole =
        row.size() == columns || (row.size() == columns + 1 && row.back().empty());
    const auto time = is_whole ? ParseNatural(row[statistic_csv::kTimestamp]) : std::nullopt;
    if (!time) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("line {}: no row of a tensor; the file may be cut. Move it away to "
                               "have it made anew from the tensors that are still there",
                               line));
    }
    std::vector<std::string_view> cells(row.begin(), row.begin() + static_cast<ptrdiff_t>(columns));
    const std::string shape = '"' + row[statistic_csv::kShape] + '"';
    cells[statistic_csv::kShape] = shape;
    OldRow& old = out[TextOf(row)];
    old.timestamp = *time;
    old.text.clear();
    statistic_csv::AppendRow(cells, old.text);
    return {};
  }));
  return out;
}

// One pass over the directory of one iteration.
class DirectoryPass {
 public:
  DirectoryPass(const std::string& directory, std::vector<std::string> names,
                const FinishOptions& options, bool is_live, FinishReport& report)
      : directory_(directory),
        table_(JoinPath(directory, run_files::kStatisticCsv)),
        options_(options),
        is_live_(is_live),
        report_(report),
        names_(std::move(names)) {}

  // Whether nothing is left that a later pass could do.
  Result<bool> Run() {
    const std::string header = statistic_csv::HeaderLine(options_.items);
    PL_TRY(ListFiles());
    if (files_.empty()) {  // the rows are all that is left
      if (KindOf(table_) != PathKind::kFile) return true;
      PL_TRY(CheckTable(table_));
      return true;
    }
    if (options_.sample_num > 0 && !is_live_) PL_TRY(Sample());
    PL_TRY_ASSIGN(old_, ReadOldRows(table_, header));
    constexpr size_t kBlock = 64;
    PL_TRY_ASSIGN(const Directory place, Directory::Open(directory_));
    ParallelBlocks(files_.size(), kBlock, [&](size_t begin, size_t end) {
      // Most tensors of a dump are small: copying one costs less than mapping it.
      constexpr size_t kSmallBytes = size_t{64} << 10;
      const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kSmallBytes);
      for (size_t i = begin; i < end; ++i) {
        Describe(files_[i], place, {buffer.get(), kSmallBytes});
      }
    });
    PL_TRY(WriteTable(header));
    CountStates();
    if (options_.drops_tensors) PL_TRY(DropTensors());
    return unfinished_ == 0;
  }

 private:
  void Problem(std::string text) {
    if (report_.problems.size() < kMaxProblems) report_.problems.push_back(std::move(text));
  }

  Status ListFiles() {
    PL_TRY_ASSIGN(mapping_, load::NameMapping::Read(directory_));
    for (const std::string& note : mapping_.notes()) Problem(note);
    files_.reserve(names_.size());  // names are views into elements
    for (std::string& file : names_) {
      if (!file.ends_with(kNpy)) continue;
      TensorFile& one = files_.emplace_back();
      one.file = std::move(file);
      one.name = mapping_.NameOf(one.file);
    }
    return {};
  }

  Status Sample() {
    std::vector<std::string> names;
    for (const TensorFile& one : files_) {
      if (load::ParseKernelFile(one.name)) names.push_back(one.file);
    }
    PL_TRY_ASSIGN(const uint64_t sampled, SampleTensors(directory_, names, options_.sample_num));
    report_.sampled += sampled;
    return {};
  }

  void Describe(TensorFile& one, const Directory& place, std::span<std::byte> buffer) const {
    const std::optional<KernelFile> parts = load::ParseKernelFile(one.name);
    if (!parts) {
      one.state = FileState::kOther;
      return;
    }
    one.timestamp = parts->timestamp;
    const Key key(*parts);
    const auto old = old_.empty() ? old_.end() : old_.find(TextOf(key.cells()));
    const bool has_row = old != old_.end();
    if (has_row && !options_.drops_tensors) return;
    if (is_live_ && IsYoung(JoinPath(directory_, one.file))) {
      one.state = FileState::kUnfinished;
      return;
    }
    std::string row = MakeRow(one.file, place, buffer, key, parts->dtype);
    if (row.empty()) {
      one.state = is_live_ ? FileState::kUnfinished : FileState::kUnreadable;
    } else if (!has_row) {
      one.row = std::move(row);
    } else if (row != old->second.text) {
      one.state = FileState::kContradicted;
    }
  }

  // Empty when the file is damaged.
  std::string MakeRow(const std::string& name, const Directory& place, std::span<std::byte> buffer,
                      const Key& key, std::string_view dtype) const {
    if (const auto bytes = ReadSmallFile(place, name, buffer); bytes && !bytes->empty()) {
      if (const auto small = npy::NpyFile::Parse(*bytes)) return RowOf(key, dtype, small->view());
    }
    const Result<npy::NpyFile> file = npy::NpyFile::Open(JoinPath(directory_, name));
    return file ? RowOf(key, dtype, file->view()) : std::string();
  }

  // `dtype`: as the name spells it, which knows of types that .npy files do not have.
  [[nodiscard]] std::string RowOf(const Key& key, std::string_view dtype,
                                  const TensorView& view) const {
    const std::string named = LowerCase(dtype);
    const DTypeInfo& info = InfoOf(ParseDType(named).value_or(view.dtype));
    const fmt::format_int bytes(static_cast<size_t>(view.element_count()) * info.size_bytes);
    const std::string shape = statistic_csv::ShapeCell(view.sizes);
    const std::vector<std::string> values = StatisticTexts(view, options_.items, options_.digits);
    std::vector<std::string_view> cells;
    cells.reserve(statistic_csv::kFixedCount + values.size());
    cells.assign(key.cells().begin(), key.cells().end());
    cells.insert(cells.end(),
                 {{bytes.data(), bytes.size()}, named.empty() ? info.name : named, shape});
    cells.insert(cells.end(), values.begin(), values.end());
    size_t size = cells.size() + 1;
    for (const std::string_view cell : cells) size += cell.size();
    std::string row;
    row.reserve(size);
    statistic_csv::AppendRow(cells, row);
    return row;
  }

  // In the order in which the kernels ran.
  Status WriteTable(const std::string& header) {
    std::vector<std::pair<int64_t, const std::string*>> rows;
    for (const auto& [key, old] : old_) rows.emplace_back(old.timestamp, &old.text);
    for (const TensorFile& one : files_) {
      if (!one.row.empty()) rows.emplace_back(one.timestamp, &one.row);
    }
    if (rows.size() == old_.size()) return {};
    report_.rows += rows.size() - old_.size();
    ++report_.directories;
    std::ranges::stable_sort(rows, {}, &std::pair<int64_t, const std::string*>::first);
    size_t size = header.size();
    for (const auto& [time, row] : rows) size += row->size();
    std::string text = header;
    text.reserve(size);
    for (const auto& [time, row] : rows) text += *row;
    return WriteFileAtomically(table_, text, /*durable=*/options_.drops_tensors);
  }

  void CountStates() {
    for (const TensorFile& one : files_) {
      if (one.state == FileState::kUnfinished) ++unfinished_;
      if (one.state == FileState::kOther) {
        ++report_.left_out;
        Problem(fmt::format("{}: not the name of a kernel's tensor; left out",
                            JoinPath(directory_, one.file)));
      }
      if (one.state == FileState::kContradicted) {
        ++report_.contradicted;
        Problem(
            fmt::format("{}: its row in {} is of other values or digits (expected what the file "
                        "holds). The file stays; move the table away to have it made anew",
                        JoinPath(directory_, one.file), run_files::kStatisticCsv));
      }
      if (one.state != FileState::kUnreadable) continue;
      ++report_.unreadable;
      Problem(fmt::format("{}: cannot be read; it has no row", JoinPath(directory_, one.file)));
    }
    report_.unfinished += unfinished_;
  }

  Status DropTensors() {
    for (const TensorFile& one : files_) {
      if (one.state != FileState::kDone) continue;
      PL_TRY(RemoveFile(JoinPath(directory_, one.file)));
      ++report_.dropped;
    }
    return {};
  }

  const std::string& directory_;
  const std::string table_;
  const FinishOptions& options_;
  const bool is_live_;
  FinishReport& report_;
  std::vector<std::string> names_;
  load::NameMapping mapping_;
  std::vector<TensorFile> files_;
  OldRows old_;
  uint64_t unfinished_ = 0;
};

Status CheckItems(const std::vector<std::string>& items) {
  if (items.empty()) {
    return Error(ErrorCode::kInvalidArgument, "statistics: none is named (expected max, min, ...)");
  }
  for (const std::string& item : items) {
    if (statistic_csv::ColumnOf(item)) continue;
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("statistics: \"{}\" is unknown (expected max, min, avg, l2norm, md5, "
                             "hash:sha1, count, ...)",
                             item));
  }
  return {};
}

}  // namespace

Result<FinishReport> DumpFinisher::Pass(bool is_live) {
  PL_TRY(CheckItems(options_.items));
  options_.items = statistic_csv::WithoutRepeats(options_.items);
  FinishReport report;
  Status status;
  bool found = false;
  RunWithThreads(options_.threads, [&] {
    load::VisitGraphDirectories(
        tree_, [&](const load::GraphDirectory& place, std::vector<std::string> names) {
          found = true;
          if (status) status = FinishDirectory(place.path, std::move(names), is_live, report);
        });
  });
  if (!status) return status.error();
  if (found || is_live) return report;  // before the first iteration is over there is nothing
  return Error(
      KindOf(tree_) == PathKind::kMissing ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument,
      fmt::format("{}: no static-graph dump (expected .npy files of kernels in "
                  "rank_0/net/graph/step)",
                  tree_));
}

Status DumpFinisher::FinishDirectory(const std::string& path, std::vector<std::string> names,
                                     bool is_live, FinishReport& report) {
  const Result<int64_t> changed = ModifiedAt(path);
  const auto known = done_.find(path);
  if (is_live && changed && known != done_.end() && known->second == *changed) return {};
  bool done = false;
  {
    // Rows that another pass wrote since the listing are read behind it.
    PL_TRY_ASSIGN(const PassLock lock, PassLock::Take(path));
    PL_TRY_ASSIGN(done, DirectoryPass(path, std::move(names), options_, is_live, report).Run());
  }
  // Writing the table and dropping files are no news.
  const Result<int64_t> after = ModifiedAt(path);
  if (done && after) done_[path] = *after;
  return {};
}

}  // namespace plumbline::pipeline
