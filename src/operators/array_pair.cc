#include "operators/array_pair.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file/file.h"
#include "formats/array/npy.h"
#include "report/result_names.h"
#include "tensor/device_layout.h"

namespace plumbline::operators {

Result<ArrayPair> CompareArrayFiles(const std::string& target, const std::string& golden,
                                    std::span<const measure::DumpAlgorithm> algorithms,
                                    const OwnFunctions& own) {
  PL_TRY_ASSIGN(const npy::NpyFile mine, npy::NpyFile::Open(target));
  PL_TRY_ASSIGN(const npy::NpyFile theirs, npy::NpyFile::Open(golden));
  PL_TRY_ASSIGN(const Tensor x, Tensor::Copy(mine.view()));
  PL_TRY_ASSIGN(const Tensor y, Tensor::Copy(theirs.view()));
  const TensorView a = x.view(), b = y.view();
  const Shape a_sizes(a.sizes.begin(), a.sizes.end()), b_sizes(b.sizes.begin(), b.sizes.end());
  if (a_sizes != b_sizes) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("{}: another shape than {} (expected {}, got {})", target, golden,
                             ShapeText(b_sizes), ShapeText(a_sizes)));
  }
  ArrayPair pair;
  std::vector<measure::AlgorithmText> texts =
      measure::RunDumpAlgorithms(algorithms, {a, b, target, golden});
  for (size_t i = 0; i < texts.size(); ++i) {
    pair.values.emplace_back(measure::DumpAlgorithmName(algorithms[i]), std::move(texts[i]));
  }
  texts = own.Compare({a, b, target, golden});
  for (size_t i = 0; i < texts.size(); ++i) {
    pair.values.emplace_back(own.algorithms[i], std::move(texts[i]));
  }
  pair.verdict = measure::JudgePair(a, b);
  return pair;
}

std::string ArrayPairText(const ArrayPair& pair) {
  std::string text;
  for (const auto& [algorithm, value] : pair.values) {
    text += fmt::format("{}: {}\n", algorithm, value.value);
  }
  const std::string_view reason = pair.verdict.reason;
  text += fmt::format("Verdict: {}{}{}\n", VerdictName(pair.verdict.verdict),
                      reason.empty() ? "" : ", ", reason);
  return text;
}

Result<std::string> WriteArrayPair(const ArrayPair& pair, const std::string& directory) {
  PL_TRY(MakeDirectories(directory));
  const report::FreeName name = report::FreePath(directory, "file_result", ".txt");
  PL_TRY(WriteFileAtomically(name.text, ArrayPairText(pair), false));
  return name.text;
}

}  // namespace plumbline::operators
