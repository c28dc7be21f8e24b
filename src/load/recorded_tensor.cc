#include "load/recorded_tensor.h"

#include <fmt/format.h>

#include <functional>

#include "base/file.h"
#include "load/derived_tensor.h"
#include "record/run_files.h"

namespace plumbline::load {
namespace {

using PathOf = std::function<std::string(const std::string&)>;

Result<TensorFile> OpenNamed(const PathOf& path_of, const std::string& data_name,
                             torch_pt::DataCheck check) {
  if (const auto derived = ParseDerivedName(data_name)) {
    return MakeDerivedTensor(*derived, [&](const std::string& file) -> Result<TensorFile> {
      if (ParseDerivedName(file)) return Error(ErrorCode::kInvalidArgument, file);
      return OpenNamed(path_of, file, check);
    });
  }
  if (data_name.empty() || data_name == ".." || data_name.find('/') != std::string::npos) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}: not a file name", data_name));
  }
  return TensorFile::Open(path_of(data_name), check);
}

}  // namespace

Result<TensorFile> OpenTensorIn(const std::string& directory, const std::string& data_name,
                                torch_pt::DataCheck check) {
  const auto path_of = [&](const std::string& file) { return JoinPath(directory, file); };
  return OpenNamed(path_of, data_name, check);
}

Result<TensorFile> OpenTensor(const Run& run, const std::string& data_name) {
  const auto path_of = [&](const std::string& file) { return run.TensorPath(file); };
  return OpenNamed(path_of, data_name, torch_pt::DataCheck::kVerify);
}

std::string NoteOnTensorDirectory(const Run& run) {
  const std::string& named = run.header().dump_data_dir;
  if (run.header().of_graphs || named.empty()) return {};
  const std::string beside =
      JoinPath(DirectoryOf(run.dump_json_path()), run_files::kTensorDirectory);
  if (KindOf(beside) == PathKind::kDirectory) return {};
  const std::string used(DirectoryOf(run.TensorPath("x")));
  if (used != beside) {
    return fmt::format(
        "{}: no {} lies beside it; its tensors are read from {}, which its dump_data_dir names",
        run.dump_json_path(), run_files::kTensorDirectory, used);
  }
  if (KindOf(named) != PathKind::kDirectory) return {};
  return fmt::format(
      "{}: no {} lies beside it, and {}, which its dump_data_dir names, is of another recording by "
      "now: not read",
      run.dump_json_path(), run_files::kTensorDirectory, named);
}

}  // namespace plumbline::load
