#include "graphs/finish_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/file/file_bytes.h"
#include "base/memory/digest.h"
#include "base/process/parallel.h"
#include "base/text/csv.h"
#include "base/text/text_parts.h"
#include "formats/array/npy.h"
#include "formats/table/statistic_csv.h"
#include "graphs/graph_sheets.h"
#include "load/name_mapping.h"
#include "load/statistic_table.h"
#include "record/run_files.h"

namespace plumbline::graphs {

Result<PassLock> PassLock::Take(const std::string& directory) {
  PL_TRY_ASSIGN(Directory place, Directory::Open(directory));
  PL_TRY_ASSIGN(File file, File::OpenAppend(JoinPath(directory, run_files::kFinishLock)));
  PL_TRY_ASSIGN(const bool is_alone, file.TryLock());
  // A pass that ended in between has removed the file: another may hold one of that name.
  if (is_alone && place.Holds(run_files::kFinishLock, file)) {
    return PassLock(std::move(place), std::move(file));
  }
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: another pass is at work. Try again when it is done", directory));
}

PassLock::PassLock(Directory place, File file) : place_(std::move(place)), file_(std::move(file)) {}

PassLock::~PassLock() {
  // One that stays is taken over as that of a killed pass.
  if (file_.is_open()) static_cast<void>(place_.Remove(run_files::kFinishLock));
}

namespace {

using load::KernelFile;

constexpr size_t kMaxProblems = 20;

enum class FileState : uint8_t { kDone, kUnfinished, kUnreadable, kOther, kContradicted };

// One tensor file of an iteration, and its row.
struct TensorFile {
  std::string_view file;
  bool is_regular = false;  // by the list
  int64_t timestamp = 0;
  size_t row = 0;       // where it begins in the rows of the block
  size_t row_size = 0;  // 0: it is there already, or cannot be made
  FileState state = FileState::kDone;
};

// Some files of an iteration: those that the file system listed together.
struct FileBlock {
  explicit FileBlock(NameBlock of_files) : names(std::move(of_files)) {
    files.reserve(names.names().size());
    for (const ListedName& one : names.names()) {
      if (one.name.ends_with(npy::kEnding))
        files.push_back({.file = one.name, .is_regular = one.is_regular});
    }
  }
  [[nodiscard]] std::string_view RowOf(const TensorFile& one) const {
    return std::string_view(rows).substr(one.row, one.row_size);
  }

  NameBlock names;  // the files borrow from it
  std::vector<TensorFile> files;
  std::string rows;
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
  DirectoryPass(const std::string& directory, const load::NextNames& next,
                const FinishOptions& options, bool is_live, FinishReport& report)
      : directory_(directory),
        table_(JoinPath(directory, run_files::kStatisticCsv)),
        options_(options),
        is_live_(is_live),
        report_(report),
        next_(next) {}

  // Whether nothing is left that a later pass could do.
  Result<bool> Run() {
    const std::string header = statistic_csv::HeaderLine(options_.items);
    PL_TRY_ASSIGN(mapping_, load::NameMapping::Read(directory_));
    for (const std::string& note : mapping_.notes()) Problem(note);
    PL_TRY_ASSIGN(const bool has_files, ListSome());
    if (!has_files) {  // the rows are all that is left
      if (KindOf(table_) != PathKind::kFile) return true;
      PL_TRY(CheckTable(table_));
      return true;
    }
    if (options_.sample_num > 0 && !is_live_) PL_TRY(Sample());
    PL_TRY_ASSIGN(old_, ReadOldRows(table_, header));
    PL_TRY(DescribeAll());
    PL_TRY(WriteTable(header));
    CountStates();
    if (options_.drops_tensors) PL_TRY(DropTensors());
    return unfinished_ == 0;
  }

 private:
  void Problem(std::string text) {
    if (report_.problems.size() < kMaxProblems) report_.problems.push_back(std::move(text));
  }

  // Lists until there is a tensor file; false: there is none.
  Result<bool> ListSome() {
    while (blocks_.empty() || blocks_.back().files.empty()) {
      PL_TRY_ASSIGN(const bool is_more, ListMore());
      if (!is_more) return false;
    }
    return true;
  }
  // False: that was all.
  Result<bool> ListMore() {
    PL_TRY_ASSIGN(NameBlock names, next_());
    if (names.empty()) return false;
    blocks_.emplace_back(std::move(names));
    return true;
  }

  Status Sample() {
    for (bool is_more = true; is_more;) {
      PL_TRY_ASSIGN(is_more, ListMore());
    }
    std::vector<std::string> names;
    ForEachFile([&](const FileBlock&, const TensorFile& one) {
      if (load::ParseKernelFile(NameOf(one))) names.emplace_back(one.file);
    });
    std::ranges::sort(names);
    PL_TRY_ASSIGN(const uint64_t sampled, SampleTensors(directory_, names, options_.sample_num));
    report_.sampled += sampled;
    return {};
  }

  // The name in full: that of the file, or what mapping.csv says.
  [[nodiscard]] std::string NameOf(const TensorFile& one) const {
    return mapping_.NameOf(one.file);
  }

  template <class F>
  void ForEachFile(const F& visit) const {
    for (const FileBlock& block : blocks_) {
      for (const TensorFile& one : block.files) visit(block, one);
    }
  }

  // Files are read while the rest of the directory is being listed: each takes its time.
  Status DescribeAll() {
    PL_TRY_ASSIGN(place_, Directory::Open(directory_));
    Status listed;
    size_t taken = 0;
    ParallelJobs([&]() -> std::function<void()> {
      if (taken == blocks_.size()) {
        const Result<bool> is_more = ListMore();
        if (!is_more) listed = is_more.error();
        if (!is_more || !*is_more) return {};
      }
      return [this, &block = blocks_[taken++]] { Describe(block); };
    });
    return listed;
  }

  void Describe(FileBlock& block) const {
    // Most tensors of a dump are small: copying one costs less than mapping it.
    constexpr size_t kSmallBytes = size_t{64} << 10;
    static thread_local const auto buffer =
        std::make_unique_for_overwrite<std::byte[]>(kSmallBytes);
    constexpr size_t kUsualRow = 160;
    block.rows.reserve(block.files.size() * kUsualRow);
    for (TensorFile& one : block.files) {
      one.row = block.rows.size();
      Describe(one, {buffer.get(), kSmallBytes}, block.rows);
      one.row_size = block.rows.size() - one.row;
    }
  }

  void Describe(TensorFile& one, std::span<std::byte> buffer, std::string& rows) const {
    const bool has_mapping = mapping_.size() > 0;
    const std::string mapped = has_mapping ? NameOf(one) : std::string();
    const std::optional<KernelFile> parts =
        load::ParseKernelFile(has_mapping ? std::string_view(mapped) : one.file);
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
    const size_t before = rows.size();
    AppendRow(one, buffer, key, parts->dtype, rows);
    const auto row = std::string_view(rows).substr(before);
    if (row.empty()) one.state = is_live_ ? FileState::kUnfinished : FileState::kUnreadable;
    if (!has_row) return;
    if (!row.empty() && row != old->second.text) one.state = FileState::kContradicted;
    rows.resize(before);
  }

  // Nothing when the file is damaged.
  void AppendRow(const TensorFile& one, std::span<std::byte> buffer, const Key& key,
                 std::string_view dtype, std::string& out) const {
    if (one.is_regular) {  // reading a pipe would wait for somebody to write into it
      const auto bytes = ReadSmallFile(*place_, one.file, buffer);
      const auto small = npy::NpyFile::Parse(bytes.value_or(std::span<const std::byte>()));
      if (small) return AppendRowOf(key, dtype, small->view(), out);
    }
    const Result<npy::NpyFile> file = npy::NpyFile::Open(JoinPath(directory_, one.file));
    if (file) AppendRowOf(key, dtype, file->view(), out);
  }

  // `dtype`: as the name spells it, which knows of types that .npy files do not have.
  void AppendRowOf(const Key& key, std::string_view dtype, const TensorView& view,
                   std::string& out) const {
    const std::string named = LowerCase(dtype);
    const DTypeInfo& info = InfoOf(ParseDType(named).value_or(view.dtype));
    const fmt::format_int bytes(static_cast<size_t>(view.element_count()) * info.size_bytes);
    const std::string shape = statistic_csv::ShapeCell(view.sizes);
    const std::vector<std::string> values =
        load::StatisticTexts(view, options_.items, options_.digits);
    std::vector<std::string_view> cells;
    cells.reserve(statistic_csv::kFixedCount + values.size());
    cells.assign(key.cells().begin(), key.cells().end());
    cells.insert(cells.end(),
                 {{bytes.data(), bytes.size()}, named.empty() ? info.name : named, shape});
    cells.insert(cells.end(), values.begin(), values.end());
    statistic_csv::AppendRow(cells, out);
  }

  // In the order in which the kernels ran; of one time, rows of earlier passes and then the new
  // ones by the names of their files.
  Status WriteTable(const std::string& header) {
    struct Row {
      std::string_view text, file;
    };
    std::vector<Row> rows;
    std::vector<std::pair<int64_t, size_t>> order;
    const auto add = [&](int64_t time, const Row& row) {
      order.emplace_back(time, rows.size());
      rows.push_back(row);
    };
    for (const auto& [key, old] : old_) add(old.timestamp, {old.text, {}});
    ForEachFile([&](const FileBlock& block, const TensorFile& one) {
      if (one.row_size > 0) add(one.timestamp, {block.RowOf(one), one.file});
    });
    if (rows.size() == old_.size()) return {};
    report_.rows += rows.size() - old_.size();
    ++report_.directories;
    std::ranges::sort(order, [&](const auto& a, const auto& b) {
      if (a.first != b.first) return a.first < b.first;
      const Row &one = rows[a.second], &other = rows[b.second];
      return one.file != other.file ? one.file < other.file : a.second < b.second;
    });
    PL_TRY_ASSIGN(AtomicFile file, AtomicFile::Create(table_));
    constexpr size_t kPart = size_t{1} << 20;  // written at a time, from memory that is kept
    std::string text = header;
    for (const auto& [time, index] : order) {
      text += rows[index].text;
      if (text.size() < kPart) continue;
      PL_TRY(file.Write(text));
      text.clear();
    }
    PL_TRY(file.Write(text));
    return file.Commit(/*durable=*/options_.drops_tensors);
  }

  void CountStates() {
    std::vector<const TensorFile*> odd;
    ForEachFile([&](const FileBlock&, const TensorFile& one) {
      if (one.state != FileState::kDone) odd.push_back(&one);
    });
    std::ranges::sort(odd, {}, &TensorFile::file);
    for (const TensorFile* one : odd) CountState(*one);
    report_.unfinished += unfinished_;
  }

  void CountState(const TensorFile& one) {
    const std::string path = JoinPath(directory_, one.file);
    if (one.state == FileState::kUnfinished) ++unfinished_;
    if (one.state == FileState::kOther) {
      ++report_.left_out;
      Problem(fmt::format("{}: not the name of a kernel's tensor; left out", path));
    }
    if (one.state == FileState::kContradicted) {
      ++report_.contradicted;
      Problem(
          fmt::format("{}: its row in {} is of other values or digits (expected what the file "
                      "holds). The file stays; move the table away to have it made anew",
                      path, run_files::kStatisticCsv));
    }
    if (one.state != FileState::kUnreadable) return;
    ++report_.unreadable;
    Problem(fmt::format("{}: cannot be read; it has no row", path));
  }

  Status DropTensors() {
    std::vector<std::string_view> done;
    ForEachFile([&](const FileBlock&, const TensorFile& one) {
      if (one.state == FileState::kDone) done.push_back(one.file);
    });
    std::ranges::sort(done);  // the one that an error names does not depend on the file system
    for (const std::string_view file : done) {
      PL_TRY(RemoveFile(JoinPath(directory_, file)));
      ++report_.dropped;
    }
    return {};
  }

  const std::string& directory_;
  const std::string table_;
  const FinishOptions& options_;
  const bool is_live_;
  FinishReport& report_;
  const load::NextNames& next_;
  load::NameMapping mapping_;
  std::deque<FileBlock> blocks_;  // grows while earlier ones are read: elements never move
  OldRows old_;
  std::optional<Directory> place_;  // while files are read
  uint64_t unfinished_ = 0;
};

Status CheckItems(const std::vector<std::string>& items) {
  if (items.empty()) {
    return Error(ErrorCode::kInvalidArgument, "statistics: none is named (expected max, min, ...)");
  }
  for (const std::string& item : items) {
    const auto column = statistic_csv::ColumnOf(item);
    if (!column) {
      return Error(
          ErrorCode::kInvalidArgument,
          fmt::format("statistics: \"{}\" is unknown (expected max, min, avg, l2norm, md5, "
                      "hash:sha1, count, ...)",
                      item));
    }
    if (*column == statistic_csv::kMd5) PL_TRY(Md5Hex({}));
    if (*column == statistic_csv::kSha1) PL_TRY(Sha1Hex({}));
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
    load::VisitGraphNames(tree_,
                          [&](const load::GraphDirectory& place, const load::NextNames& next) {
                            found = true;
                            if (status) status = FinishDirectory(place.path, next, is_live, report);
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

Status DumpFinisher::FinishDirectory(const std::string& path, const load::NextNames& next,
                                     bool is_live, FinishReport& report) {
  const Result<int64_t> changed = ModifiedAt(path);
  const auto known = done_.find(path);
  if (is_live && changed && known != done_.end() && known->second == *changed) return {};
  bool done = false;
  {
    // Rows that another pass wrote since the listing are read behind it.
    PL_TRY_ASSIGN(const PassLock lock, PassLock::Take(path));
    PL_TRY_ASSIGN(done, DirectoryPass(path, next, options_, is_live, report).Run());
  }
  // Writing the table and dropping files are no news.
  const Result<int64_t> after = ModifiedAt(path);
  if (done && after) done_[path] = *after;
  return {};
}

void BackgroundFinisher::Begin() {
  if (runs_.exchange(true)) return;
  if (thread_.joinable()) thread_.join();
  thread_ = std::jthread([this] {
    Add(finisher_.Pass(/*is_live=*/true));
    runs_ = false;
  });
}

Result<FinishReport> BackgroundFinisher::Finish() {
  if (thread_.joinable()) thread_.join();
  const Result<FinishReport> last = finisher_.Pass(/*is_live=*/false);
  Add(last);
  if (!last) return last.error();
  if (error_) return *error_;
  return total_;
}

void BackgroundFinisher::Add(const Result<FinishReport>& report) {
  if (!report) {
    error_ = report.error();
    return;
  }
  total_.directories += report->directories;
  total_.rows += report->rows;
  total_.dropped += report->dropped;
  total_.sampled += report->sampled;
  // The last pass counts what is left.
  total_.unfinished = report->unfinished;
  total_.unreadable = report->unreadable;
  total_.contradicted = report->contradicted;
  total_.left_out = report->left_out;
  total_.problems = report->problems;
}

}  // namespace plumbline::graphs
