#include "pipeline/graphs/sample_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <span>
#include <string_view>
#include <variant>

#include "base/file.h"
#include "base/json.h"
#include "formats/json_document.h"
#include "formats/npy.h"
#include "load/graph_dump.h"

namespace plumbline::pipeline {
namespace {

constexpr std::string_view kSampleNum = "sample_num", kTensors = "tensors";
using Shapes = std::map<std::string, Shape>;  // of files before they were cut

bool ReadShapes(json::Reader& in, Shapes& shapes) {
  std::string_view key;
  if (!in.EnterObject()) return false;
  while (in.NextMember(key)) {
    Shape& shape = shapes[std::string(key)];
    if (!in.EnterArray()) return false;
    json::Number number;
    while (in.NextElement() && in.ReadNumber(number)) {
      const auto* size = std::get_if<int64_t>(&number);
      if (size == nullptr) return false;
      shape.push_back(*size);
    }
  }
  return !in.failed();
}

Result<Shapes> ReadSamples(const std::string& path) {
  Shapes shapes;
  if (KindOf(path) != PathKind::kFile) return shapes;
  PL_TRY_ASSIGN(const std::string text, ReadFile(path));
  json::Reader in(text);
  std::string_view key;
  bool fine = in.EnterObject();
  while (fine && in.NextMember(key)) {
    fine = key == kTensors ? ReadShapes(in, shapes) : in.SkipValue();
  }
  if (fine && in.ReadEnd()) return shapes;
  return Error(ErrorCode::kCorrupt, fmt::format("{}: no table of samples", path));
}

Result<std::string> SamplesText(const Shapes& shapes, uint64_t sample_num) {
  json::Document out;
  out.Open('{');
  out.Number(kSampleNum, sample_num);
  out.Key(kTensors);
  out.Open('{');
  for (const auto& [file, shape] : shapes) {
    out.Key(file);
    out.Raw(fmt::format("[{}]", fmt::join(shape, ",")));
  }
  out.Close('}');
  out.Close('}');
  return out.Finish();
}

Status Cut(const std::string& path, uint64_t sample_num) {
  const Result<npy::NpyFile> file = npy::NpyFile::Open(path);
  if (!file) return file.error().In(path);
  PL_TRY_ASSIGN(const Tensor tensor, Tensor::Copy(file->view()));
  const TensorView view = tensor.view();
  const Shape sizes = {static_cast<int64_t>(sample_num)};
  PL_TRY_ASSIGN(const std::string header, npy::MakeGraphHeader(view.dtype, sizes));
  PL_TRY_ASSIGN(AtomicFile out, AtomicFile::Create(path));
  PL_TRY(out.Write(header));
  PL_TRY(out.Write(std::span(view.data, sample_num * InfoOf(view.dtype).size_bytes)));
  return out.Commit(/*durable=*/false);
}

}  // namespace

Result<uint64_t> SampleTensors(const std::string& directory, const std::vector<std::string>& files,
                               uint64_t sample_num) {
  const std::string table = JoinPath(directory, load::kSampleJson);
  PL_TRY_ASSIGN(Shapes shapes, ReadSamples(table));
  std::vector<std::string> large;
  for (const std::string& name : files) {
    const Result<npy::NpyFile> file = npy::NpyFile::Open(JoinPath(directory, name));
    if (!file || static_cast<uint64_t>(file->view().element_count()) <= sample_num) continue;
    const TensorView view = file->view();
    shapes.try_emplace(name, view.sizes.begin(), view.sizes.end());
    large.push_back(name);
  }
  if (large.empty()) return 0;
  PL_TRY_ASSIGN(const std::string text, SamplesText(shapes, sample_num));
  PL_TRY(WriteFileAtomically(table, text + "\n", /*durable=*/true));
  for (const std::string& name : large) PL_TRY(Cut(JoinPath(directory, name), sample_num));
  return large.size();
}

}  // namespace plumbline::pipeline
