#include "pipeline/device_dump/convert_journal.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/csv.h"
#include "base/text_parts.h"

namespace plumbline::pipeline {
namespace {

constexpr std::string_view kName = ".plumb_convert_journal";
constexpr size_t kFixedCells = 3;  // path, size, time; the outputs follow

using Done = std::map<std::string, ConvertedFile>;

// Rows of a journal for the same request; nothing of another one or of damaged text. The last line
// may be cut.
Done ReadDone(const std::string& text, const std::string& wanted) {
  Done done;
  const size_t end = text.rfind('\n');
  if (end == std::string::npos) return done;
  const Result<std::vector<csv::Row>> rows = csv::Parse(std::string_view(text).substr(0, end + 1));
  if (!rows || rows->empty() || rows->front() != csv::Row{wanted}) return done;
  for (size_t i = 1; i < rows->size(); ++i) {
    const csv::Row& row = (*rows)[i];
    if (row.size() < kFixedCells) continue;
    const auto size = ParseNatural(row[1]);
    const auto time = ParseInteger(row[2]);
    if (!size || !time) continue;
    done[row[0]] = {row[0], static_cast<uint64_t>(*size), *time, {row.begin() + 3, row.end()}};
  }
  return done;
}

DumpFailure CannotWrite(const Error& error) { return Failed(DumpCode::kWriteError, error); }

}  // namespace

DumpResult<ConvertJournal> ConvertJournal::Open(const std::string& directory,
                                                const std::string& wanted) {
  const std::string path = JoinPath(directory, kName);
  Done done;
  if (const Result<std::string> text = ReadFile(path)) done = ReadDone(*text, wanted);
  // Written anew: what a killed run left may end inside a line.
  std::string text;
  csv::AppendRow(csv::Row{wanted}, text);
  Result<File> file = File::Create(path);
  if (!file) return CannotWrite(file.error());
  ConvertJournal journal(path, *std::move(file), {});
  const Status begun = journal.file_.Write(text);
  if (!begun) return CannotWrite(begun.error());
  for (const auto& [name, converted] : done) PL_TRY(journal.Add(converted));
  journal.done_ = std::move(done);
  return journal;
}

bool ConvertJournal::IsDone(const std::string& path) const {
  const auto found = done_.find(path);
  if (found == done_.end()) return false;
  const Result<uint64_t> size = FileSize(path);
  const Result<int64_t> time = ModifiedAt(path);
  return size && time && *size == found->second.size_bytes && *time == found->second.modified_at &&
         std::ranges::all_of(found->second.outputs, [](const std::string& output) {
           return KindOf(output) == PathKind::kFile;
         });
}

DumpStatus ConvertJournal::Add(const ConvertedFile& file) {
  csv::Row row{file.path, std::to_string(file.size_bytes), std::to_string(file.modified_at)};
  row.insert(row.end(), file.outputs.begin(), file.outputs.end());
  std::string line;
  csv::AppendRow(row, line);
  const std::lock_guard lock(mutex_);
  const Status written = file_.Write(line);
  if (!written) return CannotWrite(written.error());
  return {};
}

DumpStatus ConvertJournal::Finish() {
  const Status closed = file_.Close();
  if (!closed) return CannotWrite(closed.error());
  const Status removed = RemoveFile(path_);
  if (!removed) return CannotWrite(removed.error());
  return {};
}

}  // namespace plumbline::pipeline
