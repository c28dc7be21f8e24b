// What lies around the dump files of devices. The first byte says what the others are: mapping.csv,
// the attribute of the parts of a cut operator, chunks of a file on its way, or a file of overflow
// records.

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/file/file.h"
#include "base/text/csv.h"
#include "formats/acl/acl_dump.h"
#include "load/name_mapping.h"
#include "load/operator_slices.h"
#include "operators/chunk_receiver.h"
#include "operators/convert_file.h"
#include "operators/operator_tensors.h"

namespace {

namespace acl = plumbline::acl;
namespace load = plumbline::load;
namespace operators = plumbline::operators;

constexpr int32_t kUInt8 = 4;

void Require(bool holds) {
  if (!holds) std::abort();
}

// A directory in memory, empty at first, for this process.
const std::string& Scratch() {
  static const std::string path = "/dev/shm/fuzz_device_dump-" + std::to_string(::getpid());
  std::filesystem::remove_all(path);
  Require(plumbline::MakeDirectories(path).has_value());
  static const int at_end = std::atexit([] { std::filesystem::remove_all(path); });
  Require(at_end == 0);
  return path;
}

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

// One output of `rows` rows of three bytes.
acl::Message RowsOf(std::string_view data, uint64_t rows) {
  acl::Message message;
  message.version = "2.0";
  acl::DumpedTensor& output = message.outputs.emplace_back();
  output.data_type = kUInt8;
  output.format = plumbline::DeviceFormat::kND;
  output.shape = output.original_shape = acl::Dims{rows, 3};
  output.data = BytesOf(data);
  output.size = data.size();
  return message;
}

// What is read is the same when it is written and read again.
void Mapping(std::string_view text) {
  const std::string& directory = Scratch();
  const std::string path = plumbline::JoinPath(directory, "mapping.csv");
  Require(plumbline::WriteFileAtomically(path, text, false).has_value());
  const auto mapping = load::NameMapping::Read(directory);
  Require(mapping.has_value());
  std::string again;
  for (const auto& [file, name] : mapping->rows()) {
    (void)mapping->NameOf(file);
    plumbline::csv::AppendExactly(file, again);
    again += ",";
    plumbline::csv::AppendExactly(name, again);
    again += "\n";
  }
  if (again.starts_with("\xEF\xBB\xBF")) return;
  Require(plumbline::WriteFileAtomically(path, again, false).has_value());
  const auto read = load::NameMapping::Read(directory);
  Require(read.has_value() && read->rows() == mapping->rows() && read->notes().empty());
}

// Three parts of two rows each: what is put together and whole has the bytes of one or of all.
void Slices(std::string_view attribute) {
  constexpr std::string_view kParts[] = {"abcdef", "ghijkl", "mnopqr"};
  constexpr uint64_t kRows = 6;
  const std::string& directory = Scratch();
  for (size_t i = 0; i < std::size(kParts); ++i) {
    acl::Message message = RowsOf(kParts[i], kRows);
    message.attributes.push_back({"_ffts", std::string(attribute)});
    const std::string name =
        "Add.a.3.7.161243956300000" + std::to_string(9 - i) + ".4.9." + std::to_string(i) + ".0";
    Require(acl::WriteDump(plumbline::JoinPath(directory, name), message).has_value());
  }
  for (const bool is_joined : {false, true}) {
    auto dumps = load::ReadOperatorDumps(directory);
    Require(dumps.has_value());
    is_joined ? load::JoinSlices(*dumps) : load::CountSlices(*dumps);
    for (const load::OperatorDump& dump : dumps->files) {
      const auto tensors = operators::OperatorTensors::Open(dump.path, dump.file_name, dump.slices);
      if (!tensors || !tensors->is_whole()) continue;
      const acl::DumpedTensor& output = tensors->message().outputs.at(0);
      const std::string_view text(reinterpret_cast<const char*>(output.data.data()),
                                  output.data.size());
      std::string sorted(text);
      std::ranges::sort(sorted);
      Require(std::ranges::count(kParts, text) == 1 || sorted == "abcdefghijklmnopqr");
      Require(!is_joined || text.size() > kParts[0].size() || !tensors->Disagreement(0).empty());
      (void)acl::ElementsOf(output);
    }
  }
}

// Three bytes a chunk: flags with the file's number, the place in the file, the size. An array of
// other bytes than the dump's is never taken for a good one.
void Chunks(std::string_view commands) {
  constexpr size_t kCommand = 3, kFiles = 2;
  constexpr uint8_t kIsLast = 2, kAppends = 4, kIsOther = 8;
  constexpr std::string_view kData = "abcdefghijklmnopqr";
  const std::string dump = acl::MakeHeader(RowsOf(kData, 6)) + std::string(kData);
  const std::string& directory = Scratch();
  auto receiver = operators::ChunkReceiver::Open(directory);
  Require(receiver.has_value());
  const auto path_of = [&](size_t file) {
    return plumbline::JoinPath(directory, "Add.a" + std::to_string(file) + ".3.7.1612439563000000");
  };
  bool has_other = false;
  for (; commands.size() >= kCommand; commands.remove_prefix(kCommand)) {
    const auto flags = static_cast<uint8_t>(commands[0]);
    const size_t begin = static_cast<uint8_t>(commands[1]) % (dump.size() + 1);
    std::string bytes = dump.substr(begin, static_cast<uint8_t>(commands[2]));
    if ((flags & kIsOther) != 0 && !bytes.empty()) {
      bytes.back() = static_cast<char>(bytes.back() ^ 1);
      has_other = true;
    }
    const int64_t offset = (flags & kAppends) != 0 ? -1 : static_cast<int64_t>(begin);
    (void)(*receiver)->Receive(
        {path_of(flags % kFiles), BytesOf(bytes), offset, (flags & kIsLast) != 0});
  }
  const operators::ReceiverReport report = (*receiver)->Close();
  for (size_t file = 0; file < kFiles; ++file) {
    const auto array = plumbline::ReadFile(path_of(file) + ".output.0.ND.UINT8.npy");
    Require(!array || array->ends_with(kData) || has_other || report.failed > 0);
  }
}

void Records(std::string_view bytes) {
  const std::string name = "Opdebug.Node_OpDebug.7.10.1";
  const std::string path = plumbline::JoinPath(Scratch(), name);
  Require(plumbline::WriteFileAtomically(path, bytes, false).has_value());
  (void)operators::CheckRecords(path, name);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'm':
      Mapping(rest);
      break;
    case 's':
      Slices(rest);
      break;
    case 'c':
      Chunks(rest);
      break;
    case 'r':
      Records(rest);
      break;
    default:
      break;
  }
  return 0;
}
