#include "load/recorded_tensor.h"

#include <fmt/format.h>

#include "base/file.h"

namespace plumbline::load {
namespace {

Result<TensorFile> OpenNamed(const std::string& path, const std::string& data_name,
                             torch_pt::DataCheck check) {
  if (data_name.empty() || data_name == ".." || data_name.find('/') != std::string::npos) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}: not a file name", data_name));
  }
  return TensorFile::Open(path, check);
}

}  // namespace

Result<TensorFile> OpenTensorIn(const std::string& directory, const std::string& data_name,
                                torch_pt::DataCheck check) {
  return OpenNamed(JoinPath(directory, data_name), data_name, check);
}

Result<TensorFile> OpenTensor(const Run& run, const std::string& data_name) {
  return OpenNamed(run.TensorPath(data_name), data_name, torch_pt::DataCheck::kVerify);
}

}  // namespace plumbline::load
