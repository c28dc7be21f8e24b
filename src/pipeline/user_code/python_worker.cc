#include "pipeline/user_code/python_worker.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/json.h"

namespace plumbline::pipeline {

extern const std::string_view kUserCodeDriver;  // driver.py

namespace {

constexpr const char* kChosen = "PLUMBLINE_PYTHON";
constexpr size_t kAlignment = 64;

Result<std::string> FindPython() {
  const char* chosen = std::getenv(kChosen);
  if (chosen != nullptr && *chosen != '\0') {
    std::string path = FindProgram(chosen);
    if (!path.empty()) return path;
    return Error(ErrorCode::kNotFound,
                 fmt::format("{}: no program {} (expected a Python interpreter with NumPy)",
                             kChosen, chosen));
  }
  for (const char* name : {"python3", "python"}) {
    std::string path = FindProgram(name);
    if (!path.empty()) return path;
  }
  return Error(
      ErrorCode::kNotFound,
      fmt::format("the user's own functions need a Python interpreter with NumPy, and PATH "
                  "has no python3 or python. Name one with {}",
                  kChosen));
}

std::string LineOf(const PythonWorker::Texts& texts) {
  std::string line = "[";
  for (const std::string& text : texts) {
    if (line.size() > 1) line += ',';
    json::AppendString(text, line);
  }
  return line + "]";
}

Result<PythonWorker::Texts> TextsOf(std::string_view line) {
  PythonWorker::Texts texts;
  json::Reader in(line, 2);
  if (in.EnterArray()) {
    std::string_view text;
    while (in.NextElement() && in.ReadString(text)) texts.emplace_back(text);
  }
  if (in.failed()) return in.error().In("answer of the Python interpreter");
  if (texts.empty()) return Error(ErrorCode::kIo, "the Python interpreter answered nothing");
  return texts;
}

}  // namespace

Result<std::pair<PythonWorker, PythonWorker::Texts>> PythonWorker::Start(const Texts& arguments) {
  PythonWorker worker;
  PL_TRY_ASSIGN(std::string python, FindPython());
  worker.words_ = {std::move(python), "-c", std::string(kUserCodeDriver)};
  worker.words_.insert(worker.words_.end(), arguments.begin(), arguments.end());
  PL_TRY_ASSIGN(worker.arrays_, SharedBytes::Create());
  PL_TRY_ASSIGN(worker.result_, SharedBytes::Create());
  PL_TRY_ASSIGN(Texts first, worker.StartChild());
  return std::pair(std::move(worker), std::move(first));
}

Result<PythonWorker::Texts> PythonWorker::StartChild() {
  const std::array<const SharedBytes*, 2> memory = {&arrays_, &result_};
  PL_TRY_ASSIGN(child_, ChildProcess::Start(words_, memory));
  const Result<std::string> line = child_.ReadLine();
  if (!line) {
    return Error(ErrorCode::kIo,
                 fmt::format("{}: the interpreter ended with {} while it loaded the "
                             "user's files",
                             words_.front(), line.error().message()));
  }
  return TextsOf(*line);
}

Result<std::vector<size_t>> PythonWorker::Place(
    std::span<const std::span<const std::byte>> arrays) {
  std::vector<size_t> places;
  size_t end = 0;
  for (const auto& array : arrays) {
    places.push_back(end);
    end += (array.size() + kAlignment - 1) / kAlignment * kAlignment;
  }
  PL_TRY(arrays_.Reset(end));
  for (size_t i = 0; i < arrays.size(); ++i) PL_TRY(arrays_.WriteAt(arrays[i], places[i]));
  return places;
}

Result<PythonWorker::Texts> PythonWorker::Ask(const Texts& request) {
  if (!child_.is_running()) PL_TRY(StartChild());
  const Result<std::string> line = child_.Ask(LineOf(request));
  if (!line) {
    return Error(ErrorCode::kIo,
                 fmt::format("the Python interpreter ended with {}", line.error().message()));
  }
  return TextsOf(*line);
}

}  // namespace plumbline::pipeline
