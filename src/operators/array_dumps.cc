#include "operators/array_dumps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "base/file/input_files.h"
#include "base/text/text_parts.h"
#include "formats/acl/acl_dump.h"
#include "formats/acl/acl_file_name.h"
#include "formats/array/npy.h"
#include "operators/output_names.h"

namespace plumbline::operators {
namespace {

constexpr std::string_view kArray = ".npy";
constexpr size_t kMostTensors = 100000;

std::string_view SuffixOf(ArrayDumpKind kind) {
  if (kind == ArrayDumpKind::kFramework) return ".pb";
  return kind == ArrayDumpKind::kQuantised ? ".quant" : "";
}

// One array's place in a dump.
struct Place {
  std::string dump;  // name of the dump file
  bool is_input = false;
  size_t index = 0;
};

// "32x256x13x13", or nothing of a scalar.
bool IsShapePart(std::string_view part) {
  return part.find_first_not_of("0123456789x") == std::string_view::npos;
}

// {dump}.{input|output}.{i}[.{shape}] or {dump}.{i}, of an operator of a device.
std::optional<Place> PlaceOnDevice(std::string_view stem) {
  std::vector<std::string_view> parts = SplitAt(stem, '.');
  const auto word = std::ranges::find_if(
      parts, [](std::string_view part) { return part == "input" || part == "output"; });
  Place place;
  if (word != parts.end()) {
    const auto behind = static_cast<size_t>(parts.end() - word) - 1;
    if (behind < 1 || behind > 2 || (behind == 2 && !IsShapePart(parts.back()))) return {};
    place.is_input = *word == "input";
    if (behind == 2) parts.pop_back();
  }
  const std::optional<int64_t> index = ParseNatural(parts.back());
  if (!index || static_cast<size_t>(*index) > kMostTensors) return std::nullopt;
  place.index = static_cast<size_t>(*index);
  parts.resize(parts.size() - (word != parts.end() ? 2 : 1));
  place.dump = fmt::format("{}", fmt::join(parts, "."));
  return acl::ParseDumpFileName(place.dump) ? std::optional(place) : std::nullopt;
}

// {name}.{output}.{time}
bool IsFrameworkName(std::string_view stem) {
  const std::vector<std::string_view> parts = SplitAt(stem, '.');
  return parts.size() >= 3 && IsDigits(parts.back()) && IsDigits(parts[parts.size() - 2]);
}

std::optional<Place> PlaceOf(const std::string& name, ArrayDumpKind kind) {
  if (!name.ends_with(kArray)) return std::nullopt;
  const std::string stem = name.substr(0, name.size() - kArray.size());
  if (kind == ArrayDumpKind::kDevice) return PlaceOnDevice(stem);
  if (!IsFrameworkName(stem)) return std::nullopt;
  return Place{stem + std::string(SuffixOf(kind)), false, 0};
}

// The names of the files, and the directory that they are in.
DumpResult<std::pair<std::string, std::vector<std::string>>> FilesOf(const std::string& input) {
  if (KindOf(input) == PathKind::kFile) {
    const std::string name(BaseName(input));
    const std::string directory = input.substr(0, input.size() - name.size());
    return std::pair(directory.empty() ? std::string(".") : directory, std::vector{name});
  }
  auto names = ListDirectory(input);
  if (!names) return Failed(DumpCode::kInvalidPath, names.error());
  std::erase_if(*names, [&](const std::string& name) {
    return KindOf(JoinPath(input, name)) != PathKind::kFile;
  });
  return std::pair(input, *std::move(names));
}

// Nothing is written where one of the files would take the place of one in `input`.
DumpStatus MakeOutput(const std::string& input, const std::string& output,
                      const std::vector<std::string>& names) {
  InputFiles inputs({input});
  for (const std::string& name : names) {
    const Status spared = inputs.CheckSpares(JoinPath(output, name));
    if (!spared) return Failed(DumpCode::kInvalidParameter, spared.error());
  }
  const Status made = MakeDirectories(output);
  if (!made) return Failed(DumpCode::kWriteError, made.error());
  return {};
}

DumpFailure NoFile(const std::string& input, std::string_view expected) {
  return {DumpCode::kDumpFileError,
          fmt::format("{}: no file of such a name (expected {})", input, expected)};
}

// One dump of the arrays at their places.
DumpStatus WriteOne(const std::string& path, const std::map<size_t, std::string>& inputs,
                    const std::map<size_t, std::string>& outputs) {
  std::vector<acl::DumpFile> files;  // hold the elements
  acl::Message message;
  message.version = "2.0";
  const auto read = [&](const std::map<size_t, std::string>& arrays, std::string_view side,
                        std::vector<acl::DumpedTensor>& tensors) -> DumpStatus {
    for (const auto& [index, array] : arrays) {
      if (index != tensors.size()) {
        return DumpFailure{DumpCode::kDumpFileError,
                           fmt::format("{}: {} {} is missing (the next is {})", path, side,
                                       tensors.size(), index)};
      }
      auto file = acl::DumpFile::Open(array);
      if (!file) {
        return Failed(file.error().code() == ErrorCode::kUnsupported ? DumpCode::kInvalidDataType
                                                                     : DumpCode::kInvalidDumpData,
                      file.error());
      }
      files.push_back(*std::move(file));
      acl::DumpedTensor tensor = files.back().message().outputs.front();
      tensor.format = DeviceFormat::kND;
      tensor.original_shape = tensor.shape;
      tensors.push_back(std::move(tensor));
    }
    return {};
  };
  PL_TRY(read(inputs, "input", message.inputs));
  PL_TRY(read(outputs, "output", message.outputs));
  const Status written = acl::WriteDump(path, message);
  if (!written) return Failed(DumpCode::kWriteError, written.error());
  return {};
}

// The array in a dump of a framework.
DumpStatus WriteArray(const std::string& from, const std::string& to) {
  const auto file = acl::DumpFile::Open(from);
  if (!file) return Failed(DumpCode::kInvalidDumpData, file.error());
  const std::vector<acl::DumpedTensor>& outputs = file->message().outputs;
  if (outputs.size() != 1) {
    return DumpFailure{DumpCode::kInvalidDumpData,
                       fmt::format("{}: {} outputs (expected 1)", from, outputs.size())};
  }
  auto tensor = AsDumped(outputs.front(), std::nullopt);
  if (!tensor) return DumpFailure{tensor.error().code, from + ": " + tensor.error().text};
  auto array = AtomicFile::Create(to);
  if (!array) return Failed(DumpCode::kWriteError, array.error());
  const auto written = WriteTensor(*tensor, OutputKind::kNpy, *array);
  if (!written) return DumpFailure{written.error().code, from + ": " + written.error().text};
  const Status committed = array->Commit(/*durable=*/false);
  if (!committed) return Failed(DumpCode::kWriteError, committed.error());
  return {};
}

void Note(const std::string& path, DumpStatus done, ArrayDumpReport& report) {
  if (done) {
    report.files.push_back(path);
  } else {
    report.failures.push_back(std::move(done).error());
  }
}

}  // namespace

DumpResult<ArrayDumpReport> DumpsFromArrays(const std::string& input, const std::string& output,
                                            ArrayDumpKind kind) {
  PL_TRY_ASSIGN(const auto found, FilesOf(input));
  const auto& [directory, names] = found;
  ArrayDumpReport report;
  struct Sides {
    std::map<size_t, std::string> inputs, outputs;
  };
  std::map<std::string, Sides> dumps;
  for (const std::string& name : names) {
    const std::optional<Place> place = PlaceOf(name, kind);
    if (!place) {
      report.left_out.push_back(name);
      continue;
    }
    Sides& sides = dumps[place->dump];
    auto& side = place->is_input ? sides.inputs : sides.outputs;
    const auto [entry, is_new] = side.try_emplace(place->index, JoinPath(directory, name));
    if (!is_new) {
      report.failures.push_back(
          {DumpCode::kDumpFileError,
           fmt::format("{}: the same tensor as {}", JoinPath(directory, name), entry->second)});
    }
  }
  if (dumps.empty()) {
    return NoFile(input, kind == ArrayDumpKind::kDevice ? "type.name.task.stream.time.output.0.npy"
                                                        : "name.output.time.npy");
  }
  std::vector<std::string> written;
  for (const auto& [name, sides] : dumps) written.push_back(name);
  PL_TRY(MakeOutput(input, output, written));
  for (const auto& [name, sides] : dumps) {
    const std::string path = JoinPath(output, name);
    Note(path, WriteOne(path, sides.inputs, sides.outputs), report);
  }
  return report;
}

DumpResult<ArrayDumpReport> ArraysFromDumps(const std::string& input, const std::string& output,
                                            ArrayDumpKind kind) {
  PL_TRY_ASSIGN(const auto found, FilesOf(input));
  const auto& [directory, names] = found;
  ArrayDumpReport report;
  const std::string suffix(SuffixOf(kind));
  std::vector<std::string> stems;
  for (const std::string& name : names) {
    const std::string stem = name.substr(0, name.size() - std::min(name.size(), suffix.size()));
    if (name.ends_with(suffix) && IsFrameworkName(stem)) {
      stems.push_back(stem);
    } else {
      report.left_out.push_back(name);
    }
  }
  if (stems.empty()) return NoFile(input, "name.output.time" + suffix);
  std::vector<std::string> written;
  for (const std::string& stem : stems) written.push_back(stem + std::string(kArray));
  PL_TRY(MakeOutput(input, output, written));
  for (const std::string& stem : stems) {
    const std::string path = JoinPath(output, stem + std::string(kArray));
    Note(path, WriteArray(JoinPath(directory, stem + suffix), path), report);
  }
  return report;
}

}  // namespace plumbline::operators
