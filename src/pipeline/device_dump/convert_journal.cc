#include "pipeline/device_dump/convert_journal.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/csv.h"
#include "base/text_parts.h"

namespace plumbline::pipeline {
namespace {

constexpr std::string_view kName = ".plumb_convert_journal";
constexpr size_t kFixedCells = 3;  // path, size, time; path and size of each output follow

using Done = std::map<std::string, ConvertedFile>;

bool ReadOutputs(const csv::Row& row, ConvertedFile& file) {
  for (size_t i = kFixedCells; i + 1 < row.size(); i += 2) {
    const auto size = ParseNatural(row[i + 1]);
    if (!size) return false;
    file.outputs.push_back({row[i], static_cast<uint64_t>(*size)});
  }
  return (row.size() - kFixedCells) % 2 == 0;
}

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
    ConvertedFile file{row[0], static_cast<uint64_t>(*size), *time, {}};
    if (ReadOutputs(row, file)) done[row[0]] = std::move(file);
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
  const ConvertedFile& file = found->second;
  if (!size || !time || *size != file.size_bytes || *time != file.modified_at) return false;
  return std::ranges::all_of(file.outputs, [](const PlacedFile& output) {
    const Result<uint64_t> left = FileSize(output.path);
    return KindOf(output.path) == PathKind::kFile && left && *left == output.bytes;
  });
}

DumpStatus ConvertJournal::Add(const ConvertedFile& file) {
  csv::Row row{file.path, std::to_string(file.size_bytes), std::to_string(file.modified_at)};
  for (const PlacedFile& output : file.outputs) {
    row.push_back(output.path);
    row.push_back(std::to_string(output.bytes));
  }
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
