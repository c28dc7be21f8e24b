#include "pipeline/device_dump/output_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/csv.h"
#include "base/file_bytes.h"
#include "base/text_digest.h"
#include "base/text_parts.h"
#include "load/name_mapping.h"
#include "record/run_files.h"

namespace plumbline::pipeline {
namespace {

constexpr size_t kLongName = 255;  // from here on upstream gives another one
// A temporary is the name with a point in front and this behind.
constexpr std::string_view kTemporaryEnd = ".tmp";

std::string Dimensions(const Shape& sizes, std::string_view between) {
  return fmt::format("{}", fmt::join(sizes, between));
}

DumpFailure CannotWrite(const Error& error) { return Failed(DumpCode::kWriteError, error); }

Result<bool> HaveSameBytes(const std::string& one, const std::string& other) {
  PL_TRY_ASSIGN(const FileBytes a, FileBytes::Open(one));
  PL_TRY_ASSIGN(const FileBytes b, FileBytes::Open(other));
  return std::ranges::equal(a.bytes(), b.bytes());
}

// MindSpore makes its tables read-only: such a one is replaced by its copy.
Result<File> OpenMapping(const Directory& directory) {
  Result<File> file = File::OpenAppend(directory, run_files::kMappingCsv);
  if (file || directory.KindOf(run_files::kMappingCsv) != PathKind::kFile) return file;
  PL_TRY_ASSIGN(const std::string text,
                ReadFile(JoinPath(directory.path(), run_files::kMappingCsv)));
  PL_TRY(WriteFileAtomically(directory, run_files::kMappingCsv, text, /*durable=*/false));
  return File::OpenAppend(directory, run_files::kMappingCsv);
}

}  // namespace

std::string OutputStem(std::string_view file_name, std::string_view op_name, OutputKind kind) {
  constexpr size_t kOrdinaryParts = 5;
  std::vector<std::string_view> parts = SplitAt(file_name, '.');
  if (kind != OutputKind::kMsNpy || parts.size() != kOrdinaryParts || op_name.empty()) {
    return std::string(file_name);
  }
  const size_t slash = op_name.rfind('/');
  parts[1] = slash == std::string_view::npos ? op_name : op_name.substr(slash + 1);
  return fmt::format("{}", fmt::join(parts, "."));
}

std::string OutputName(std::string_view stem, const HostTensor& tensor, OutputKind kind,
                       bool is_converted) {
  if (kind == OutputKind::kMsNpy || kind == OutputKind::kGraphNpy) {
    return fmt::format("{}.{}.npy", stem, DeviceFormatName(tensor.format));
  }
  if (kind == OutputKind::kBin) {
    const acl::TypeInfo* type = acl::FindType(tensor.data_type);
    const std::string type_name =
        type != nullptr ? std::string(type->file_name) : LowerCase(acl::TypeName(tensor.data_type));
    return fmt::format("{}.{}.{}.{}.bin", stem, Dimensions(tensor.sizes, "_"), type_name,
                       DeviceFormatName(tensor.format));
  }
  if (!is_converted) return fmt::format("{}{}", stem, OutputSuffix(kind));
  return fmt::format("{}.{}{}", stem, Dimensions(tensor.sizes, "x"), OutputSuffix(kind));
}

std::string_view OutputSuffix(OutputKind kind) {
  switch (kind) {
    case OutputKind::kNpy:
    case OutputKind::kMsNpy:
    case OutputKind::kGraphNpy:
      return ".npy";
    case OutputKind::kBin:
      return ".bin";
    case OutputKind::kPt:
      return ".pt";
    case OutputKind::kTxt:
      return ".txt";
  }
  return "";
}

std::string HashedName(std::string_view name) {
  constexpr std::array<uint8_t, 16> kDns = {0x6b, 0xa7, 0xb8, 0x10, 0x9d, 0xad, 0x11, 0xd1,
                                            0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8};
  std::string text(kDns.begin(), kDns.end());
  text += name;
  std::string hex = Md5Hex(std::as_bytes(std::span(text)));
  // Version 3, and the variant in the two highest bits of the ninth byte.
  hex[12] = '3';
  constexpr std::string_view kDigits = "0123456789abcdef";
  hex[16] = kDigits[(kDigits.find(hex[16]) & 0x3) | 0x8];
  return hex;
}

DumpResult<OutputDirectory> OutputDirectory::Open(const std::string& path, IfThere if_there) {
  const Status made = MakeDirectories(path);
  if (!made) return Failed(DumpCode::kInvalidPath, made.error());
  Result<Directory> directory = Directory::Open(path);
  if (!directory) return Failed(DumpCode::kInvalidPath, directory.error());
  Result<load::NameMapping> mapping = load::NameMapping::Read(path);
  if (!mapping) return Failed(DumpCode::kInvalidPath, mapping.error());
  return OutputDirectory(*std::move(directory), *std::move(mapping), if_there);
}

DumpResult<PlacedFile> OutputDirectory::Write(const std::string& name, const Fill& fill,
                                              bool is_read_only) {
  PL_TRY_ASSIGN(const std::string placed, Place(name));
  PL_TRY_ASSIGN(AtomicFile file, Create(placed));
  PL_TRY_ASSIGN(const uint64_t bytes, fill(file));
  if (if_there_ == IfThere::kKeep && directory_.KindOf(placed) == PathKind::kFile) {
    const std::string path = JoinPath(directory_.path(), placed);
    const Result<bool> is_same = HaveSameBytes(file.temporary_path(), path);
    if (!is_same) return CannotWrite(is_same.error());
    if (*is_same) return PlacedFile{path, bytes};
    ++kept_;
    return DumpFailure{DumpCode::kWriteError,
                       fmt::format("{}: is there with other contents, and stays", path)};
  }
  const Status committed = file.Commit(/*durable=*/false);
  if (!committed) return CannotWrite(committed.error());
  if (is_read_only) (void)directory_.MakeReadOnly(placed);
  return PlacedFile{JoinPath(directory_.path(), placed), bytes};
}

DumpResult<std::string> OutputDirectory::Place(const std::string& name) {
  // An operator's name in a file, or a table of names, is anything.
  if (name.find_first_of(std::string_view("/\0", 2)) != std::string::npos) {
    return DumpFailure{DumpCode::kWriteError,
                       fmt::format("{}: \"{}\" is no file name (expected no slash and no NUL)",
                                   directory_.path(), name.substr(0, name.find('\0')))};
  }
  const std::lock_guard lock(mutex_);
  if (!placed_.insert(name).second) {
    return DumpFailure{DumpCode::kWriteError,
                       fmt::format("{}: another dump has an output of this name. Convert them into "
                                   "different directories",
                                   JoinPath(directory_.path(), name))};
  }
  if (name.size() < kLongName) return name;
  const std::string placed = HashedName(name) + name.substr(name.rfind('.'));
  const auto added = added_.find(placed);
  if ((added != added_.end() ? added->second : mapping_.Find(placed)) == name) return placed;
  std::string row = placed + ",";
  csv::AppendExactly(name, row);
  Result<File> file = OpenMapping(directory_);
  if (!file) return CannotWrite(file.error());
  const Status written = file->Write(row + "\n");
  if (!written) return CannotWrite(written.error());
  const Status closed = file->Close();
  if (!closed) return CannotWrite(closed.error());
  added_.insert_or_assign(placed, name);
  return placed;
}

DumpResult<AtomicFile> OutputDirectory::Create(const std::string& placed_name) const {
  constexpr size_t kLongestName = 255;
  const bool has_room = placed_name.size() + 1 + kTemporaryEnd.size() <= kLongestName;
  Result<AtomicFile> file = has_room ? AtomicFile::Create(directory_, placed_name)
                                     : AtomicFile::Create(JoinPath(directory_.path(), placed_name));
  if (!file) return CannotWrite(file.error());
  return *std::move(file);
}

}  // namespace plumbline::pipeline
