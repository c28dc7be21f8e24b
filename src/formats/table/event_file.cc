#include "formats/table/event_file.h"

#include <span>

#include "base/memory/bytes.h"
#include "base/memory/digest.h"

namespace plumbline::event_file {
namespace {

// Numbers of the fields of the messages Event, Summary, Summary.Value and Summary.Image.
enum EventField : uint64_t { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5 };
constexpr uint64_t kValue = 1;
enum ValueField : uint64_t { kTag = 1, kSimpleValue = 2, kImage = 4 };
enum ImageField : uint64_t { kHeight = 1, kWidth = 2, kColorspace = 3, kEncoded = 4 };
constexpr uint64_t kRgb = 3;

// A record may be longer, but readers hold one in memory.
constexpr size_t kMostSummaryBytes = size_t{1} << 20;

// As readers expect it, so that the checksum of bytes that hold one is no trivial number.
uint32_t Masked(std::string_view bytes) {
  const uint32_t crc = Crc32c(std::as_bytes(std::span(bytes)));
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

void AppendRecord(std::string_view event, std::string& out) {
  std::string head;
  AppendU64(event.size(), head);
  AppendU32(Masked(head), head);
  out += head;
  out += event;
  AppendU32(Masked(event), out);
}

std::string VersionEvent(double wall_time) {
  protobuf::MessageWriter version;
  version.AddDouble(kWallTime, wall_time);
  version.AddBytes(kFileVersion, "brain.Event:2");
  return std::string(version.text());
}

// The event of a step, whose values are taken.
std::string StepEvent(double wall_time, int64_t step, protobuf::MessageWriter* summary) {
  protobuf::MessageWriter event;
  event.AddDouble(kWallTime, wall_time);
  event.AddNumber(kStep, static_cast<uint64_t>(step));
  event.AddMessage(kSummary, summary->text());
  *summary = protobuf::MessageWriter();
  return std::string(event.text());
}

void AddScalarTo(std::string_view tag, float value, protobuf::MessageWriter* summary) {
  protobuf::MessageWriter scalar;
  scalar.AddBytes(kTag, tag);
  scalar.AddFloat(kSimpleValue, value);
  summary->AddMessage(kValue, scalar.text());
}

}  // namespace

Result<Writer> Writer::Create(const std::string& directory, const std::string& name,
                              double wall_time) {
  std::string unfinished = JoinPath(directory, kUnfinished);
  PL_TRY_ASSIGN(TextFile file, TextFile::Create(unfinished));
  Writer writer(std::move(file), std::move(unfinished), JoinPath(directory, name), wall_time);
  PL_TRY(writer.WriteRecord(VersionEvent(wall_time)));
  return writer;
}

Status Writer::AddScalar(std::string_view tag, int64_t step, float value) {
  if (step != step_ || summary_.text().size() > kMostSummaryBytes) PL_TRY(EndStep());
  step_ = step;
  AddScalarTo(tag, value, &summary_);
  return {};
}

Status Writer::EndStep() {
  if (summary_.text().empty()) return {};
  return WriteRecord(StepEvent(wall_time_, step_, &summary_));
}

Status Writer::WriteRecord(std::string_view event) {
  std::string record;
  AppendRecord(event, record);
  return file_.Write(record);
}

Status Writer::Close() {
  PL_TRY(EndStep());
  PL_TRY(file_.Close());
  return RenameFile(unfinished_, path_);
}

Result<LiveWriter> LiveWriter::Create(const std::string& path, double wall_time) {
  PL_TRY_ASSIGN(File file, File::Create(path));
  LiveWriter writer(std::move(file));
  std::string record;
  AppendRecord(VersionEvent(wall_time), record);
  PL_TRY(writer.file_.Write(record));
  return writer;
}

void LiveWriter::AddScalar(std::string_view tag, float value) {
  AddScalarTo(tag, value, &summary_);
}

void LiveWriter::AddImage(std::string_view tag, std::string_view png, uint32_t width,
                          uint32_t height) {
  protobuf::MessageWriter image;
  image.AddNumber(kHeight, height);
  image.AddNumber(kWidth, width);
  image.AddNumber(kColorspace, kRgb);
  image.AddBytes(kEncoded, png);
  protobuf::MessageWriter value;
  value.AddBytes(kTag, tag);
  value.AddMessage(kImage, image.text());
  summary_.AddMessage(kValue, value.text());
}

Status LiveWriter::EndStep(int64_t step, double wall_time) {
  if (summary_.text().empty()) return {};
  records_.clear();
  AppendRecord(StepEvent(wall_time, step, &summary_), records_);
  bytes_ += records_.size();
  return file_.Write(records_);
}

}  // namespace plumbline::event_file
