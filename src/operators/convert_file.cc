#include "operators/convert_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "base/file/lost_mapping.h"
#include "base/text/number_text.h"
#include "formats/acl/acl_dump.h"
#include "formats/acl/acl_file_name.h"
#include "formats/acl/acl_overflow.h"
#include "formats/acl/atb_bin.h"
#include "formats/pytorch/tensor_convert.h"
#include "kernels/kernel_table.h"
#include "operators/output_names.h"

namespace plumbline::operators {

namespace {

// A file that is read, where it really lies.
struct FilePlace {
  std::string directory, name;
  const load::DumpPath* input;
};

// Where `name` may have been put together of the name of a dump and the rest of an output's:
// behind the first of these.
std::vector<size_t> StemEnds(std::string_view name) {
  std::vector<size_t> ends;
  for (const std::string_view word : {".input.", ".output.", ".l1buffer.", ".space."}) {
    for (size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
      ends.push_back(at);
    }
  }
  return ends;
}

bool HasEndOf(std::string_view name, OutputKind kind) {
  return name.ends_with(OutputSuffix(kind)) || name.ends_with(".bin") || name.ends_with(".json");
}

// What may be replaced: inputs with names that outputs have.
std::vector<FilePlace> FindPlaces(const std::vector<load::DumpPath>& files,
                                  const ConvertOptions& options) {
  std::vector<FilePlace> places;
  for (const load::DumpPath& file : files) {
    const Result<PathFacts> facts = Inspect(file.path);
    const auto may_be_output = [&](std::string_view name) {
      return HasEndOf(name, options.kind) && (options.takes_atb || !StemEnds(name).empty());
    };
    if (!facts || (!facts->is_link && !may_be_output(BaseName(file.path)))) continue;
    const Result<std::string> path = RealPath(file.path);
    if (!path || !may_be_output(BaseName(*path))) continue;
    places.push_back({std::string(DirectoryOf(*path)), std::string(BaseName(*path)), &file});
  }
  return places;
}

// The start of the names of a dump's outputs.
std::string StemOf(const load::DumpPath& file, const ConvertOptions& options) {
  if (options.kind != OutputKind::kMsNpy) return file.name;
  const Result<acl::DumpFile> dump = acl::DumpFile::Open(file.path, file.name);
  return dump ? OutputStem(file.name, dump->message().op_name, options.kind) : file.name;
}

}  // namespace

DumpStatus CheckSparesInputs(const std::vector<load::DumpPath>& files,
                             const std::string& output_directory, const ConvertOptions& options) {
  const std::vector<FilePlace> places = FindPlaces(files, options);
  if (places.empty()) return {};
  // Directory and start of the names of outputs.
  std::map<std::pair<std::string, std::string>, const load::DumpPath*> stems;
  std::map<std::string, std::optional<std::string>> directories;
  for (const load::DumpPath& file : files) {
    const auto [entry, is_new] = directories.try_emplace(file.directory);
    if (is_new) {
      const Result<std::string> path = RealPath(
          file.directory.empty() ? output_directory : JoinPath(output_directory, file.directory));
      if (path) entry->second = *path;
    }
    if (!entry->second) continue;  // nothing can lie there
    stems.try_emplace({*entry->second, StemOf(file, options)}, &file);
    if (options.takes_atb && atb::IsBinFileName(file.name)) {
      stems.try_emplace({*entry->second, file.name + std::string(OutputSuffix(options.kind))},
                        &file);
    }
  }
  for (const FilePlace& place : places) {
    std::vector<size_t> ends = StemEnds(place.name);
    if (options.takes_atb) ends.push_back(place.name.size());
    for (const size_t end : ends) {
      const auto found = stems.find({place.directory, place.name.substr(0, end)});
      if (found == stems.end() || found->second == place.input) continue;
      return DumpFailure{
          DumpCode::kInvalidParameter,
          fmt::format("{}: is one of the inputs, and an output of {} may take its place. Choose "
                      "another output directory",
                      place.input->path, found->second->path)};
    }
  }
  return {};
}

namespace {

// Integers that a double may not hold.
template <class T>
TensorExtremes OfIntegers(const acl::Elements& elements) {
  T max = std::numeric_limits<T>::lowest(), min = std::numeric_limits<T>::max();
  double sum = 0;
  const size_t count = elements.bytes.size() / sizeof(T);
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, elements.bytes.data() + i * sizeof(T), sizeof(T));
    max = std::max(max, value);
    min = std::min(min, value);
    sum += static_cast<double>(value);
  }
  return {std::to_string(max), std::to_string(min), PythonFloat(sum / static_cast<double>(count))};
}

std::string Spelled(DTypeKind kind, double value) {
  if (kind == DTypeKind::kBool) return value != 0 ? "True" : "False";
  if (kind == DTypeKind::kFloat) return PythonFloat(value);
  return std::to_string(static_cast<int64_t>(value));
}

}  // namespace

TensorExtremes ExtremesOf(const acl::Elements& elements) {
  if (elements.dtype == DType::kInt64) return OfIntegers<int64_t>(elements);
  if (elements.dtype == DType::kUInt64) return OfIntegers<uint64_t>(elements);
  const DTypeInfo& info = InfoOf(elements.dtype);
  const size_t count = elements.bytes.size() / info.size_bytes;
  const kernels::Moments moments = kernels::MomentsOf(elements.dtype, elements.bytes.data(), count);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const bool has_nan = moments.nan_count > 0;
  return {Spelled(info.kind, has_nan ? nan : moments.max),
          Spelled(info.kind, has_nan ? nan : moments.min),
          PythonFloat(moments.sum / static_cast<double>(count))};
}

namespace {

// Why a file could not be opened, in upstream's numbers.
DumpFailure OpenFailure(const std::string& path, std::string_view name, const Error& error) {
  constexpr uint64_t kLengthBytes = 8;
  DumpCode code = DumpCode::kInvalidDumpData;
  if (error.code() == ErrorCode::kNotFound) code = DumpCode::kInvalidPath;
  if (error.code() == ErrorCode::kIo) code = DumpCode::kCannotOpen;
  if (error.code() == ErrorCode::kUnsupported) code = DumpCode::kInvalidDataType;
  if (error.code() == ErrorCode::kCorrupt && !name.ends_with(".npy")) {
    const Result<uint64_t> size = FileSize(path);
    if (size && *size > 0 && *size <= kLengthBytes) code = DumpCode::kSizeDoesNotMatch;
    const Result<std::string> start = ReadStart(path, 2 * kLengthBytes);
    if (start && acl::LooksLikeNano(std::as_bytes(std::span(*start)))) code = DumpCode::kNanoParse;
  }
  return {code, error.message()};
}

// Of one output of the operator that watches for overflows.
DumpResult<acl::OverflowRecord> RecordIn(const acl::DumpedTensor& output) {
  Result<acl::OverflowRecord> record = acl::ReadOverflow(output.data);
  if (record) return *std::move(record);
  const bool is_kind = record.error().code() == ErrorCode::kUnsupported;
  return Failed(is_kind ? DumpCode::kInvalidOverflowType : DumpCode::kInvalidDumpData,
                record.error());
}

class Conversion {
 public:
  // Without a directory nothing can be written.
  Conversion(const std::string& path, const std::string& name, const ConvertOptions& options,
             OutputDirectory* directory)
      : path_(path), name_(name), options_(options), directory_(directory) {}

  FileConversion Run() {
    if (options_.takes_atb && atb::IsBinFileName(name_)) {
      WriteAtb();
      return std::move(result_);
    }
    Result<acl::DumpFile> file = acl::DumpFile::Open(path_, name_);
    if (!file) {
      Fail("", OpenFailure(path_, name_, file.error()));
      return std::move(result_);
    }
    if (acl::IsOverflowFileName(name_)) {
      ReadRecords(*file, [&](size_t i, const acl::OverflowRecord& record) {
        const std::string json = acl::OverflowJson(record);
        return WriteBytes(fmt::format("{}.output.{}.json", name_, i),
                          std::as_bytes(std::span(json)));
      });
    } else {
      ReadSlices(file->message());
      WriteTensors(file->message());
      if (!options_.layout) WriteBlobs(file->message());
    }
    CheckWhole(*file);
    return std::move(result_);
  }

  std::vector<ConvertFailure> CheckRecords() {
    const Result<acl::DumpFile> file = acl::DumpFile::Open(path_, name_);
    if (file) {
      ReadRecords(*file, [](size_t, const acl::OverflowRecord&) { return DumpStatus(); });
      CheckWhole(*file);
    } else {
      Fail("", OpenFailure(path_, name_, file.error()));
    }
    return std::move(result_.failures);
  }

 private:
  void Fail(const std::string& part, DumpFailure failure) {
    result_.failures.push_back({part, std::move(failure)});
  }

  DumpStatus Write(const std::string& name, const OutputDirectory::Fill& fill) {
    const auto fill_and_check = [&](AtomicFile& file) -> DumpResult<uint64_t> {
      PL_TRY_ASSIGN(const uint64_t bytes, fill(file));
      const Status kept = watch_.Check();
      if (!kept) return Failed(DumpCode::kCannotOpen, kept.error());
      return bytes;
    };
    PL_TRY_ASSIGN(PlacedFile written,
                  directory_->Write(name, fill_and_check, options_.kind == OutputKind::kGraphNpy));
    result_.outputs.push_back(std::move(written));
    return {};
  }

  DumpStatus WriteBytes(const std::string& name, std::span<const std::byte> bytes) {
    return Write(name, [&](AtomicFile& file) -> DumpResult<uint64_t> {
      const Status written = file.Write(bytes);
      if (!written) return Failed(DumpCode::kWriteError, written.error());
      return bytes.size();
    });
  }

  // A tensor file of ATB keeps its whole name: several may differ in their ends alone.
  void WriteAtb() {
    const Result<atb::BinFile> file = atb::BinFile::Open(path_);
    if (!file) return Fail("", OpenFailure(path_, name_, file.error()));
    const bool is_pt = options_.kind == OutputKind::kPt;
    const DumpStatus written = Write(
        fmt::format("{}.{}", name_, is_pt ? "pt" : "npy"),
        [&](AtomicFile& out) -> DumpResult<uint64_t> {
          const auto tensor = is_pt ? WritePt(file->view(), out) : WriteNpy(file->view(), out);
          if (!tensor) {
            const bool is_type = tensor.error().code() == ErrorCode::kUnsupported;
            return Failed(is_type ? DumpCode::kInvalidDataType : DumpCode::kWriteError,
                          tensor.error());
          }
          return tensor->bytes;
        });
    if (!written) Fail("", written.error());
  }

  void ReadSlices(const acl::Message& message) {
    Result<std::optional<acl::ThreadSlices>> slices = acl::ReadThreadSlices(message);
    const std::optional<acl::DumpFileName> name = acl::ParseDumpFileName(name_);
    if (!slices) {
      result_.notes.push_back(slices.error().message());
    } else if (*slices && (*slices)->is_automatic && name && name->thread) {
      slices_ = std::move(*slices);
      thread_ = name->thread->thread_id;
    }
  }

  [[nodiscard]] std::optional<Shape> SliceOf(bool is_input, size_t index) const {
    if (!slices_) return std::nullopt;
    return is_input ? slices_->InputOf(thread_, index) : slices_->OutputOf(thread_, index);
  }

  void WriteTensors(const acl::Message& message) {
    stem_ = OutputStem(name_, message.op_name, options_.kind);
    if (options_.only_input) return WriteOnly(message.inputs, true, *options_.only_input);
    if (options_.only_output) return WriteOnly(message.outputs, false, *options_.only_output);
    for (size_t i = 0; i < message.inputs.size(); ++i) WriteOne(message.inputs[i], true, i);
    for (size_t i = 0; i < message.outputs.size(); ++i) WriteOne(message.outputs[i], false, i);
  }

  void WriteOnly(const std::vector<acl::DumpedTensor>& side, bool is_input, size_t index) {
    const std::string_view word = is_input ? "input" : "output";
    if (index < side.size()) return WriteOne(side[index], is_input, index);
    Fail(fmt::format("{}:{}", word, index),
         {DumpCode::kIndexOutOfBounds,
          fmt::format("there is no {} {} (the file has {})", word, index, side.size())});
  }

  void WriteOne(const acl::DumpedTensor& tensor, bool is_input, size_t index) {
    const std::string_view word = is_input ? "input" : "output";
    if (tensor.shape && !acl::KnownShape(tensor.shape)) {
      result_.notes.push_back(fmt::format(
          "{} {}: a size of its shape is unknown; written in one dimension", word, index));
    }
    const DumpStatus written = TryWriteOne(tensor, is_input, index);
    if (!written) Fail(fmt::format("{}:{}", word, index), written.error());
  }

  DumpStatus TryWriteOne(const acl::DumpedTensor& tensor, bool is_input, size_t index) {
    const std::string stem = fmt::format("{}.{}.{}", stem_, is_input ? "input" : "output", index);
    const std::optional<Shape> slice = SliceOf(is_input, index);
    DumpResult<HostTensor> host =
        options_.layout ? InLayout(tensor, slice, *options_.layout, options_.own.get())
                        : AsDumped(tensor, slice);
    if (host) return WriteHost(stem, *host, options_.layout.has_value());
    const bool is_graph = options_.kind == OutputKind::kGraphNpy;
    if (!options_.layout || (options_.kind != OutputKind::kMsNpy && !is_graph)) return host.error();
    // Better in its own layout, which the name tells, than not at all.
    const DumpResult<HostTensor> dumped = AsDumped(tensor, slice);
    const DumpStatus written =
        dumped ? WriteHost(stem, *dumped, false) : DumpStatus(dumped.error());
    return is_graph ? written : host.error();
  }

  DumpStatus WriteHost(const std::string& stem, const HostTensor& tensor, bool is_converted) {
    return Write(OutputName(stem, tensor, options_.kind, is_converted),
                 [&](AtomicFile& file) { return WriteTensor(tensor, options_.kind, file); });
  }

  void WriteBlobs(const acl::Message& message) {
    const auto write = [&](const std::vector<acl::DumpedBytes>& blobs, std::string_view word,
                           std::string_view part) {
      for (size_t i = 0; i < blobs.size(); ++i) {
        DumpStatus written = DumpFailure{DumpCode::kInvalidDumpData, "the file is cut"};
        if (!blobs[i].is_cut()) {
          written = WriteBytes(fmt::format("{}.{}.{}.bin", name_, word, i), blobs[i].data);
        }
        if (!written) Fail(fmt::format("{}:{}", part, i), written.error());
      }
    };
    write(message.buffers, "l1buffer", "buffer");
    write(message.spaces, "space", "space");
  }

  // Outputs of the operator that watches for overflows.
  void ReadRecords(const acl::DumpFile& file,
                   const std::function<DumpStatus(size_t, const acl::OverflowRecord&)>& take) {
    const std::vector<acl::DumpedTensor>& outputs = file.message().outputs;
    if (outputs.empty()) {
      Fail("", {DumpCode::kInvalidDumpData,
                fmt::format("{}: the file holds no overflow record", path_)});
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const DumpResult<acl::OverflowRecord> record = RecordIn(outputs[i]);
      const DumpStatus taken = record ? take(i, *record) : DumpStatus(record.error());
      if (!taken) Fail(fmt::format("output:{}", i), taken.error());
    }
  }

  void CheckWhole(const acl::DumpFile& file) {
    const std::string cut = file.FirstCutPart();
    if (!cut.empty()) {
      Fail("", {file.container() == acl::Container::kNano ? DumpCode::kSizeDoesNotMatch
                                                          : DumpCode::kInvalidDumpData,
                fmt::format("{}: the file is cut at {}. What stands in front of it was converted",
                            path_, cut)});
    }
    if (file.surplus_bytes() == 0) return;
    const std::string surplus =
        fmt::format("{} bytes behind the last part are described by nothing", file.surplus_bytes());
    if (file.container() == acl::Container::kNano) {
      Fail("", {DumpCode::kSizeDoesNotMatch, fmt::format("{}: {}", path_, surplus)});
    } else if (!file.message().has_parts()) {
      Fail("", {DumpCode::kInvalidDumpData, fmt::format("{}: {}", path_, surplus)});
    } else {
      result_.notes.push_back(surplus);
    }
  }

  const LossWatch watch_;  // the dump is mapped, and may be cut off while it is read
  const std::string& path_;
  const std::string& name_;
  const ConvertOptions& options_;
  OutputDirectory* directory_;
  std::string stem_;
  std::optional<acl::ThreadSlices> slices_;
  uint64_t thread_ = 0;
  FileConversion result_;
};

}  // namespace

FileConversion ConvertFile(const std::string& path, const std::string& name,
                           const ConvertOptions& options, OutputDirectory& directory) {
  return Conversion(path, name, options, &directory).Run();
}

std::vector<ConvertFailure> CheckRecords(const std::string& path, const std::string& name) {
  const ConvertOptions options;
  return Conversion(path, name, options, nullptr).CheckRecords();
}

}  // namespace plumbline::operators
