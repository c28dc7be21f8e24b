#include "pipeline/device_dump/received_file.h"

#include <fmt/format.h>

#include <optional>

#include "base/file.h"
#include "formats/acl_dump.h"
#include "formats/acl_file_name.h"
#include "pipeline/device_dump/convert_file.h"
#include "pipeline/device_dump/host_tensor.h"
#include "pipeline/device_dump/output_names.h"
#include "pipeline/device_dump/received_statistics.h"
#include "pipeline/device_dump/tensor_output.h"

namespace plumbline::pipeline {
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

}  // namespace

namespace {

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

}  // namespace plumbline::pipeline
