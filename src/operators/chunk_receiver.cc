#include "operators/chunk_receiver.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/file/remove_directory.h"
#include "base/text/csv.h"
#include "base/text/text_parts.h"
#include "formats/acl/acl_dump.h"
#include "formats/acl/acl_file_name.h"
#include "operators/convert_file.h"
#include "operators/host_tensor.h"
#include "operators/output_names.h"
#include "record/run_files.h"

namespace plumbline::operators {

namespace {

constexpr std::string_view kFirstColumn = "Input/Output";
constexpr std::array<std::string_view, 6> kTensorColumns = {"input/output", "index",  "datasize",
                                                            "datatype",     "format", "shape"};
constexpr size_t kShape = 5;  // the only cell that may hold commas, as the device does not quote
constexpr const char* kHeader =
    "Op Type,Op Name,Task ID,Stream ID,Timestamp,Input/Output,Slot,Data Size,Data Type,Format,"
    "Shape";

struct Statistic {
  std::string_view column;                  // of statistic.csv, in its order
  std::array<std::string_view, 2> spelled;  // by devices, without case and blanks
};
constexpr std::array<Statistic, 8> kStatistics = {
    {{"Max Value", {"maxvalue", "max"}},
     {"Min Value", {"minvalue", "min"}},
     {"Avg Value", {"avgvalue", "avg"}},
     {"L2 Norm Value", {"l2normvalue", "l2norm"}},
     {"Nan Count", {"nancount", "nan"}},
     {"Negative Inf Count", {"negativeinfcount", "negativeinf"}},
     {"Positive Inf Count", {"positiveinfcount", "positiveinf"}},
     {"MD5 Value", {"md5value", "md5"}}}};

std::string Plain(std::string_view name) {
  std::string text = LowerCase(name);
  std::erase(text, ' ');
  return text;
}

std::optional<size_t> PlaceOf(const csv::Row& header, std::span<const std::string_view> names) {
  for (size_t i = 0; i < header.size(); ++i) {
    if (std::ranges::find(names, Plain(header[i])) != names.end()) return i;
  }
  return std::nullopt;
}

// Which cells of a device's row go where.
struct Layout {
  std::vector<size_t> cells;  // of tensor and statistics, in the order of statistic.csv
  std::string header;         // line of statistic.csv
  size_t count = 0;           // cells of a row
};

Result<Layout> LayoutOf(const csv::Row& header, const std::string& piece) {
  Layout layout{{}, kHeader, header.size()};
  for (const std::string_view& name : kTensorColumns) {
    const auto place = PlaceOf(header, {&name, 1});
    if (!place) {
      return Error(ErrorCode::kCorrupt, fmt::format("{}: has no column {}", piece, name));
    }
    layout.cells.push_back(*place);
  }
  for (const Statistic& statistic : kStatistics) {
    const auto place = PlaceOf(header, statistic.spelled);
    if (!place) continue;
    layout.cells.push_back(*place);
    layout.header += fmt::format(",{}", statistic.column);
  }
  layout.header += "\n";
  return layout;
}

// With the commas of an unquoted shape, "(2,3)", in one cell again.
Result<csv::Row> WholeRow(csv::Row row, const Layout& layout, const std::string& piece) {
  if (row.size() < layout.count) {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: a row has too few cells (expected {}, got "
                                                  "{})",
                                                  piece, layout.count, row.size()));
  }
  const size_t place = layout.cells[kShape], surplus = row.size() - layout.count;
  for (size_t i = 0; i < surplus; ++i) row[place] += "," + row[place + 1 + i];
  const auto first = row.begin() + static_cast<std::ptrdiff_t>(place) + 1;
  row.erase(first, first + static_cast<std::ptrdiff_t>(surplus));
  return row;
}

Result<std::string> RowsText(const std::vector<csv::Row>& table, const Layout& layout,
                             const std::string& piece, const acl::DumpFileName& name) {
  const std::string task = std::to_string(name.task_id);
  const std::string stream = name.stream_id ? std::to_string(*name.stream_id) : "";
  std::string text;
  for (size_t i = 1; i < table.size(); ++i) {
    if (table[i].empty()) continue;
    PL_TRY_ASSIGN(const csv::Row row, WholeRow(table[i], layout, piece));
    csv::Row cells = {name.op_type, name.op_name, task, stream, name.timestamp};
    for (const size_t place : layout.cells) cells.push_back(row[place]);
    csv::AppendRow(cells, text);
  }
  return text;
}

}  // namespace

bool IsDeviceTable(const std::string& piece) {
  const Result<std::string> start = ReadStart(piece, kFirstColumn.size());
  return start && *start == kFirstColumn;
}

Result<uint64_t> AddDeviceTable(const std::string& piece, const std::string& target) {
  const auto name = acl::ParseDumpFileName(BaseName(target));
  if (!name) {
    return Error(ErrorCode::kCorrupt, fmt::format("{}: is no name of a dump file", target));
  }
  PL_TRY_ASSIGN(const std::vector<csv::Row> table, csv::ReadRows(piece));
  PL_TRY_ASSIGN(const Layout layout, LayoutOf(table.front(), target));
  PL_TRY_ASSIGN(const std::string rows, RowsText(table, layout, target, *name));
  const std::string path = JoinPath(DirectoryOf(target), run_files::kStatisticCsv);
  PL_TRY_ASSIGN(File out, File::OpenAppend(path));
  for (;;) {
    PL_TRY_ASSIGN(const bool locked, out.TryLock());
    if (locked) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  PL_TRY_ASSIGN(const uint64_t size, FileSize(path));
  PL_TRY_ASSIGN(const std::string start, ReadStart(path, layout.header.size()));
  if (size > 0 && start != layout.header) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: has other columns than the rows to add", path));
  }
  PL_TRY(out.Write((size == 0 ? layout.header : std::string()) + rows));
  return static_cast<uint64_t>(std::ranges::count(rows, '\n'));
}

namespace {

constexpr size_t kImageDimensions = 4;

std::string SurplusText(const acl::DumpFile& file) {
  return fmt::format("{} bytes behind the last part are described by nothing",
                     file.surplus_bytes());
}

class Received {
 public:
  Received(const std::string& piece, const std::string& target, OutputDirectory& directory)
      : piece_(piece), name_(BaseName(target)), directory_(directory) {}

  ReceivedFile Run() {
    if (acl::IsOverflowFileName(name_)) return ConvertRecords();
    const Result<acl::DumpFile> file = acl::DumpFile::Open(piece_, name_);
    if (!file) {
      Fail(file.error().message());
      return std::move(result_);
    }
    const std::string cut = file->FirstCutPart();
    if (!cut.empty()) Fail("the file is cut at " + cut);
    if (file->surplus_bytes() > 0) Fail(SurplusText(*file));
    const acl::Message& message = file->message();
    for (size_t i = 0; i < message.inputs.size(); ++i) Write(message.inputs[i], "input", i);
    for (size_t i = 0; i < message.outputs.size(); ++i) Write(message.outputs[i], "output", i);
    return std::move(result_);
  }

 private:
  void Fail(std::string_view problem) {
    result_.problems.push_back(fmt::format("{}: {}", name_, problem));
  }

  ReceivedFile ConvertRecords() {
    const FileConversion conversion = ConvertFile(piece_, name_, {}, directory_);
    result_.outputs = conversion.outputs.size();
    for (const ConvertFailure& failure : conversion.failures) Fail(failure.failure.text);
    return std::move(result_);
  }

  void Write(const acl::DumpedTensor& tensor, std::string_view side, size_t slot) {
    if (tensor.size == 0) return;
    const auto written = TryWrite(tensor, fmt::format("{}.{}.{}", name_, side, slot));
    if (written) {
      ++result_.outputs;
    } else {
      Fail(fmt::format("{} {}: {}", side, slot, written.error().text));
    }
  }

  // In the layout of the host where that is known and can be reached.
  static DumpResult<HostTensor> OnHost(const acl::DumpedTensor& tensor) {
    const std::optional<Shape> shape = acl::KnownShape(tensor.original_shape);
    if (!shape || shape->empty()) return AsDumped(tensor, std::nullopt);
    const bool is_image = shape->size() == kImageDimensions;
    const WantedLayout wanted{is_image ? DeviceFormat::kNCHW : DeviceFormat::kND, std::nullopt};
    DumpResult<HostTensor> host = InLayout(tensor, std::nullopt, wanted);
    if (host) return host;
    return AsDumped(tensor, std::nullopt);
  }

  DumpResult<PlacedFile> TryWrite(const acl::DumpedTensor& tensor, const std::string& stem) {
    PL_TRY_ASSIGN(const HostTensor host, OnHost(tensor));
    const std::string name =
        fmt::format("{}.{}.{}", stem, DeviceFormatName(host.format), acl::TypeName(host.data_type));
    DumpResult<PlacedFile> written = WriteAs(host, OutputKind::kNpy, name + ".npy");
    if (written || written.error().code != DumpCode::kInvalidDataType) return written;
    return WriteAs(host, OutputKind::kBin, name);
  }

  DumpResult<PlacedFile> WriteAs(const HostTensor& host, OutputKind kind, const std::string& name) {
    return directory_.Write(name, [&](AtomicFile& file) { return WriteTensor(host, kind, file); });
  }

  const std::string& piece_;
  const std::string name_;
  OutputDirectory& directory_;
  ReceivedFile result_;
};

// Moves a delivery beside its outputs and gives a line that says why it is there.
std::string KeepDelivery(const std::string& piece, const std::string& target,
                         std::string_view reason) {
  for (size_t number = 2;; ++number) {
    const std::string path = fmt::format("{}.delivery-{}", target, number);
    if (KindOf(path) != PathKind::kMissing) continue;
    const std::string_view name = BaseName(target);
    const Status moved = RenameFile(piece, path);
    if (!moved)
      return fmt::format("{}: {}, and is lost: {}", name, reason, moved.error().message());
    return fmt::format("{}: {}; that is kept as it came, as {}", name, reason, path);
  }
}

// Why the tensors of a file may be others than they seem; empty: they are not. A piece without a
// place that came twice or never has moved what is behind it.
std::string WhyMoved(const std::string& piece, std::string_view name) {
  const Result<acl::DumpFile> file = acl::DumpFile::Open(piece, name);
  if (!file) return "";  // said where it is converted
  const std::string cut = file->FirstCutPart();
  const std::string odd = cut.empty() ? SurplusText(*file) : "the file is cut at " + cut;
  if (cut.empty() && file->surplus_bytes() == 0) return "";
  return odd + ", and pieces without a place came twice or not at all";
}

}  // namespace

bool IsWhole(const std::string& piece, std::string_view name) {
  const Result<acl::DumpFile> file = acl::DumpFile::Open(piece, name);
  return file && file->FirstCutPart().empty() && file->surplus_bytes() == 0;
}

ReceivedFile ConvertReceived(const std::string& piece, const std::string& target,
                             bool is_appended) {
  const std::string parent(DirectoryOf(target));
  const Status made = MakeDirectories(parent);
  if (!made) return {0, {made.error().message()}};
  if (IsDeviceTable(piece)) {
    const Result<uint64_t> rows = AddDeviceTable(piece, target);
    if (!rows) return {0, {rows.error().message()}};
    return {*rows, {}};
  }
  const std::string moved = is_appended ? WhyMoved(piece, BaseName(target)) : "";
  if (!moved.empty()) return {0, {KeepDelivery(piece, target, moved)}};
  DumpResult<OutputDirectory> directory = OutputDirectory::Open(parent, IfThere::kKeep);
  if (!directory) return {0, {directory.error().text}};
  ReceivedFile received = Received(piece, target, *directory).Run();
  // The first delivery of a file stays; another one is nobody's to throw away.
  if (directory->kept() > 0) {
    received.problems.push_back(KeepDelivery(piece, target, "came again with other contents"));
  }
  return received;
}

namespace {

constexpr std::string_view kPieces = ".receiving-";
constexpr std::string_view kLock = "lock";
constexpr size_t kMostOpenFiles = 256;
constexpr size_t kMostProblems = 20;

// rank, time, step, time, device, model name, model id, iteration, name.
constexpr size_t kModelLevels = 9;
constexpr size_t kKeptLevels = 3;

}  // namespace

// One file on its way.
struct ChunkReceiver::Assembly {
  std::mutex mutex;  // of the next members; not waited for while the receiver's is held
  File file;         // closed while others are at work
  std::map<uint64_t, uint64_t> ranges;  // of the bytes that are there, apart: begin, end
  [[nodiscard]] uint64_t end() const { return ranges.empty() ? 0 : ranges.rbegin()->second; }
  bool is_appended = false;  // chunks without a place lie behind others
  std::string lost;          // why a chunk is not in the piece; empty: all are
  std::string piece;
  std::atomic<uint64_t> last_use = 0;
  // Of the receiver's mutex.
  size_t deliveries = 0;  // chunks that are being written
  bool has_ended = false;
};

namespace {

void AddRange(std::map<uint64_t, uint64_t>& ranges, uint64_t begin, uint64_t end) {
  if (begin == end) return;
  auto next = ranges.upper_bound(begin);
  if (next != ranges.begin() && std::prev(next)->second >= begin) --next;
  while (next != ranges.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    next = ranges.erase(next);
  }
  ranges.emplace(begin, end);
}

// The first byte of a chunk for `place` that is there as another one; nothing if there is none.
Result<std::optional<uint64_t>> FindOther(const File& file,
                                          const std::map<uint64_t, uint64_t>& ranges,
                                          std::span<const std::byte> chunk, uint64_t place) {
  auto range = ranges.upper_bound(place);
  if (range != ranges.begin()) --range;
  std::vector<std::byte> there;
  for (; range != ranges.end() && range->first < place + chunk.size(); ++range) {
    const uint64_t begin = std::max(range->first, place);
    const uint64_t end = std::min(range->second, place + chunk.size());
    if (begin >= end) continue;
    there.resize(end - begin);
    PL_TRY_ASSIGN(const size_t count, file.ReadAt(there, begin));
    const auto given = chunk.subspan(begin - place, end - begin);
    const auto other = std::ranges::mismatch(given, std::span(there).first(count)).in1;
    if (other != given.end())
      return std::optional(begin + static_cast<uint64_t>(other - given.begin()));
  }
  return std::optional<uint64_t>();
}

// What lies between chunks and never came; empty: nothing.
std::string MissingBytes(const std::map<uint64_t, uint64_t>& ranges) {
  uint64_t end = 0;
  for (const auto& [begin, behind] : ranges) {
    if (begin > end) return fmt::format("bytes {} to {} never came", end, begin - 1);
    end = behind;
  }
  return "";
}

}  // namespace

Result<std::string> ReceivedPath(const std::string& dump_path, std::string_view path) {
  const Error outside(ErrorCode::kInvalidArgument,
                      fmt::format("{}: not below the dump path (expected {})", path, dump_path));
  PL_TRY_ASSIGN(const std::string root, AbsolutePath(dump_path));
  PL_TRY_ASSIGN(const std::string full, AbsolutePath(std::string(path)));
  if (!full.starts_with(root + "/")) return outside;
  const std::string_view below = std::string_view(full).substr(root.size() + 1);
  const std::vector<std::string_view> parts = SplitAt(below, '/');
  if (parts.size() < kModelLevels) return std::string(below);
  std::string kept;
  for (size_t i = 0; i < kKeptLevels; ++i) kept += fmt::format("{}/", parts[i]);
  return kept + std::string(parts.back());
}

ChunkReceiver::ChunkReceiver(std::string dump_path, std::string pieces, File lock)
    : dump_path_(std::move(dump_path)), pieces_(std::move(pieces)), lock_(std::move(lock)) {}

Result<std::unique_ptr<ChunkReceiver>> ChunkReceiver::Open(const std::string& dump_path) {
  static std::atomic<int> count = 0;
  PL_TRY(MakeDirectories(dump_path));
  const std::string pieces =
      JoinPath(dump_path, fmt::format("{}{}-{}", kPieces, ::getpid(), count++));
  PL_TRY(MakeDirectories(pieces));
  PL_TRY_ASSIGN(File lock, File::OpenUpdate(JoinPath(pieces, kLock)));
  PL_TRY_ASSIGN(const bool locked, lock.TryLock());
  if (!locked) {
    return Error(ErrorCode::kIo, fmt::format("{}: another process has its pieces there", pieces));
  }
  std::unique_ptr<ChunkReceiver> receiver(new ChunkReceiver(dump_path, pieces, std::move(lock)));
  PL_TRY(receiver->RemoveAbandoned());
  return receiver;
}

// Pieces of processes that are gone: nobody holds their lock.
Status ChunkReceiver::RemoveAbandoned() const {
  PL_TRY_ASSIGN(const std::vector<std::string> names, ListDirectory(dump_path_));
  for (const std::string& name : names) {
    const std::string path = JoinPath(dump_path_, name);
    if (!name.starts_with(kPieces) || path == pieces_) continue;
    Result<File> lock = File::OpenUpdate(JoinPath(path, kLock));
    if (!lock || !lock->TryLock().value_or(false)) continue;
    PL_TRY(RemoveDirectory(path));
  }
  return {};
}

ChunkReceiver::~ChunkReceiver() { Close(); }

Result<std::shared_ptr<ChunkReceiver::Assembly>> ChunkReceiver::Begin(const std::string& file) {
  const std::scoped_lock lock(mutex_);
  if (is_closing_) {
    return Error(ErrorCode::kInvalidArgument, file + ": came after the receiver was closed");
  }
  std::shared_ptr<Assembly>& assembly = assemblies_[file];
  if (assembly == nullptr) {
    assembly = std::make_shared<Assembly>();
    assembly->piece = JoinPath(pieces_, std::to_string(next_piece_++));
  }
  assembly->last_use = ++uses_;
  ++assembly->deliveries;
  ++deliveries_;
  return assembly;
}

// Closes those that were idle longest.
void ChunkReceiver::LimitOpenFiles() {
  const std::scoped_lock lock(mutex_);
  std::vector<std::shared_ptr<Assembly>> open;
  for (const auto& [file, assembly] : assemblies_) {
    const std::unique_lock own(assembly->mutex, std::try_to_lock);
    if (own.owns_lock() && assembly->file.is_open()) open.push_back(assembly);
  }
  if (open.size() <= kMostOpenFiles) return;
  std::ranges::sort(open, {}, [](const auto& one) { return one->last_use.load(); });
  open.resize(open.size() - kMostOpenFiles / 2);
  for (const auto& assembly : open) {
    const std::unique_lock own(assembly->mutex, std::try_to_lock);
    if (own.owns_lock()) assembly->file = File();
  }
}

Status ChunkReceiver::Receive(const Chunk& chunk) {
  PL_TRY_ASSIGN(const std::string target, ReceivedPath(dump_path_, chunk.file));
  if (chunk.bytes.empty() && !chunk.is_last) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}: a chunk has no bytes", chunk.file));
  }
  PL_TRY_ASSIGN(const std::shared_ptr<Assembly> assembly, Begin(std::string(chunk.file)));
  const Status written = Put(chunk, *assembly);
  if (Ends(chunk, *assembly)) Finish(target, *assembly);
  const std::scoped_lock lock(mutex_);
  --deliveries_;
  changed_.notify_all();
  return written;
}

Status ChunkReceiver::Put(const Chunk& chunk, Assembly& assembly) {
  bool was_closed = false;
  const auto write = [&]() -> Status {
    was_closed = !assembly.file.is_open();
    if (was_closed) {
      PL_TRY_ASSIGN(assembly.file, File::OpenUpdate(assembly.piece));
    }
    const uint64_t place = chunk.offset < 0 ? assembly.end() : static_cast<uint64_t>(chunk.offset);
    PL_TRY_ASSIGN(const auto other, FindOther(assembly.file, assembly.ranges, chunk.bytes, place));
    if (other) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("{}: byte {} came twice, as two different ones (expected the same "
                               "again). The file is not converted",
                               BaseName(chunk.file), *other));
    }
    const auto* text = reinterpret_cast<const char*>(chunk.bytes.data());
    PL_TRY(assembly.file.WriteAt({text, chunk.bytes.size()}, place));
    AddRange(assembly.ranges, place, place + chunk.bytes.size());
    if (chunk.offset < 0 && place > 0 && !chunk.bytes.empty()) assembly.is_appended = true;
    return {};
  };
  {
    const std::scoped_lock own(assembly.mutex);
    const Status written = write();
    if (!written) {
      if (assembly.lost.empty()) assembly.lost = written.error().message();
      return written;
    }
  }
  if (was_closed) LimitOpenFiles();
  return {};
}

// Whether `chunk`, which was written, is the last one of its file; waits for those that other
// threads are writing. From here on chunks of this name belong to another file.
bool ChunkReceiver::Ends(const Chunk& chunk, Assembly& assembly) {
  std::unique_lock lock(mutex_);
  --assembly.deliveries;
  changed_.notify_all();
  if (!chunk.is_last || assembly.has_ended) return false;
  assembly.has_ended = true;
  assemblies_.erase(std::string(chunk.file));
  changed_.wait(lock, [&] { return assembly.deliveries == 0; });
  return true;
}

// Requires: nobody else is at work in it.
void ChunkReceiver::Finish(const std::string& file, Assembly& assembly) {
  const Status closed = assembly.file.Close();
  if (!closed) assembly.lost = closed.error().message();
  if (assembly.lost.empty()) assembly.lost = MissingBytes(assembly.ranges);
  {
    // Deliveries of one file write the same outputs.
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return finishing_.insert(file).second; });
  }
  ReceivedFile received;
  if (!assembly.lost.empty()) {
    received.problems.push_back(fmt::format("{}: a chunk is lost: {}", file, assembly.lost));
  } else if (!IsRepeatedTable(file, assembly.piece)) {
    received = ConvertReceived(assembly.piece, JoinPath(dump_path_, file), assembly.is_appended);
  }
  static_cast<void>(RemoveFile(assembly.piece));
  const std::scoped_lock lock(mutex_);
  finishing_.erase(file);
  changed_.notify_all();
  if (assembly.lost.empty()) ++report_.files;
  report_.outputs += received.outputs;
  if (!received.problems.empty()) ++report_.failed;
  for (const std::string& problem : received.problems) Fail(problem);
}

// Rows are added to a table that has them of all operators: those of a file must not come twice.
bool ChunkReceiver::IsRepeatedTable(const std::string& file, const std::string& piece) {
  if (!IsDeviceTable(piece)) return false;
  const Result<std::string> table = ReadFile(piece);
  if (!table) return false;  // said where it is converted
  const std::string text = file + '\0' + *table;
  const Digest128 digest = Xxh3Of(std::as_bytes(std::span(text)));
  const std::scoped_lock lock(mutex_);
  return !tables_.insert(digest).second;
}

// Requires: mutex_ is held.
void ChunkReceiver::Fail(std::string problem) {
  if (report_.problems.size() < kMostProblems) report_.problems.push_back(std::move(problem));
}

ReceiverReport ChunkReceiver::Close() {
  {
    std::unique_lock lock(mutex_);
    if (std::exchange(is_closing_, true)) {
      changed_.wait(lock, [&] { return is_closed_; });
      return report_;
    }
    changed_.wait(lock, [&] { return deliveries_ == 0; });
  }
  // Nobody else is at work from here on.
  for (const auto& [file, assembly] : std::exchange(assemblies_, {})) {
    const Result<std::string> target = ReceivedPath(dump_path_, file);
    const bool is_lost = !assembly->lost.empty();
    if (target && (is_lost || IsWhole(assembly->piece, BaseName(*target)))) {
      Finish(*target, *assembly);
      continue;
    }
    const std::scoped_lock lock(mutex_);
    ++report_.unended;
    Fail(fmt::format("{}: its last chunk never came ({} bytes did)", file, assembly->end()));
  }
  const Status removed = RemoveDirectory(pieces_);
  const std::scoped_lock lock(mutex_);
  if (!removed) Fail(removed.error().message());
  is_closed_ = true;
  changed_.notify_all();
  return report_;
}

}  // namespace plumbline::operators
