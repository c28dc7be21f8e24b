#include "formats/table/event_file.h"

#include <span>

#include "base/memory/bytes.h"
#include "base/memory/digest.h"

namespace plumbline::event_file {
namespace {

// Numbers of the fields of the messages Event, Summary and Summary.Value.
enum EventField : uint64_t { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5 };
constexpr uint64_t kValue = 1;
enum ValueField : uint64_t { kTag = 1, kSimpleValue = 2 };

// A record may be longer, but readers hold one in memory.
constexpr size_t kMostSummaryBytes = size_t{1} << 20;

// As readers expect it, so that the checksum of bytes that hold one is no trivial number.
uint32_t Masked(std::string_view bytes) {
  const uint32_t crc = Crc32c(std::as_bytes(std::span(bytes)));
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

}  // namespace

Result<Writer> Writer::Create(const std::string& directory, const std::string& name,
                              double wall_time) {
  std::string unfinished = JoinPath(directory, kUnfinished);
  PL_TRY_ASSIGN(TextFile file, TextFile::Create(unfinished));
  Writer writer(std::move(file), std::move(unfinished), JoinPath(directory, name), wall_time);
  protobuf::MessageWriter version;
  version.AddDouble(kWallTime, wall_time);
  version.AddBytes(kFileVersion, "brain.Event:2");
  PL_TRY(writer.WriteRecord(version.text()));
  return writer;
}

Status Writer::AddScalar(std::string_view tag, int64_t step, float value) {
  if (step != step_ || summary_.text().size() > kMostSummaryBytes) PL_TRY(EndStep());
  step_ = step;
  protobuf::MessageWriter scalar;
  scalar.AddBytes(kTag, tag);
  scalar.AddFloat(kSimpleValue, value);
  summary_.AddMessage(kValue, scalar.text());
  return {};
}

Status Writer::EndStep() {
  if (summary_.text().empty()) return {};
  protobuf::MessageWriter event;
  event.AddDouble(kWallTime, wall_time_);
  event.AddNumber(kStep, static_cast<uint64_t>(step_));
  event.AddMessage(kSummary, summary_.text());
  summary_ = protobuf::MessageWriter();
  return WriteRecord(event.text());
}

Status Writer::WriteRecord(std::string_view event) {
  std::string record;
  AppendU64(event.size(), record);
  AppendU32(Masked(record), record);
  record += event;
  AppendU32(Masked(event), record);
  return file_.Write(record);
}

Status Writer::Close() {
  PL_TRY(EndStep());
  PL_TRY(file_.Close());
  return RenameFile(unfinished_, path_);
}

}  // namespace plumbline::event_file
