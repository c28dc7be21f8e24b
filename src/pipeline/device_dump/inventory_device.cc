#include "pipeline/device_dump/inventory_device.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <string_view>
#include <utility>

#include "base/parallel.h"
#include "formats/acl_dump.h"
#include "formats/acl_file_name.h"
#include "formats/acl_types.h"
#include "pipeline/device_dump/dump_files.h"

namespace plumbline {
namespace {

std::string_view ContainerName(acl::Container container) {
  switch (container) {
    case acl::Container::kVersion2:
      return "version 2";
    case acl::Container::kVersion1:
      return "version 1";
    case acl::Container::kNano:
      return "nano";
    case acl::Container::kNpy:
      return "array";
  }
  return "";
}

// "2021-02-04 11:52:43 UTC" of microseconds; empty for zero.
std::string TimeText(uint64_t microseconds) {
  if (microseconds == 0) return {};
  const auto seconds = static_cast<std::time_t>(microseconds / 1'000'000);
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return {};
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", parts);
}

std::string TypeText(int32_t code) {
  const acl::TypeInfo* type = acl::FindType(code);
  return type == nullptr || type->file_name.empty() ? acl::TypeName(code)
                                                    : std::string(type->file_name);
}

void AddTensors(const std::vector<acl::DumpedTensor>& tensors, std::string_view role,
                DeviceDumpFacts& facts) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const acl::DumpedTensor& tensor = tensors[i];
    DumpedTensorFacts& one = facts.tensors.emplace_back();
    one.place = fmt::format("{} {}", role, i);
    one.dtype = TypeText(tensor.data_type);
    one.format = DeviceFormatName(tensor.format);
    one.shape = acl::KnownShape(tensor.shape);
    const std::optional<Shape> before = acl::KnownShape(tensor.original_shape);
    if (before && !before->empty() && before != one.shape) one.shape_before = before;
    one.bytes = tensor.size;
    one.is_cut = tensor.is_cut();
  }
}

}  // namespace

DeviceDumpFacts ReadDeviceDump(const std::string& path, const std::string& name) {
  DeviceDumpFacts facts;
  facts.path = path;
  if (const auto parts = acl::ParseDumpFileName(name)) {
    facts.op_type = parts->op_type;
    facts.op_name = parts->op_name;
    facts.timestamp = parts->timestamp;
    facts.time = TimeText(parts->sort_time());
  }
  const Result<acl::DumpFile> file = acl::DumpFile::Open(path, name);
  if (!file) {
    facts.problem = file.error().message();
    const std::string place = path + ": ";
    if (facts.problem.starts_with(place)) facts.problem.erase(0, place.size());
    return facts;
  }
  const acl::Message& message = file->message();
  if (!message.op_name.empty()) facts.op_name = message.op_name;
  facts.container = ContainerName(file->container());
  AddTensors(message.inputs, "input", facts);
  AddTensors(message.outputs, "output", facts);
  facts.buffers = message.buffers.size();
  facts.spaces = message.spaces.size();
  for (const auto* parts : {&message.buffers, &message.spaces}) {
    for (const acl::DumpedBytes& part : *parts) facts.other_bytes += part.size;
  }
  facts.surplus_bytes = file->surplus_bytes();
  const std::string cut = file->FirstCutPart();
  if (!cut.empty()) facts.problem = fmt::format("the file is cut: {} is not all there", cut);
  return facts;
}

Result<std::vector<DeviceDumpFacts>> ReadDeviceDumps(const std::string& directory) {
  PL_TRY_ASSIGN(const pipeline::DumpFiles found,
                pipeline::FindDumpFiles(directory, {.recursive = true}));
  std::vector<DeviceDumpFacts> all(found.files.size());
  ParallelFor(all.size(),
              [&](size_t i) { all[i] = ReadDeviceDump(found.files[i].path, found.files[i].name); });
  return all;
}

}  // namespace plumbline
