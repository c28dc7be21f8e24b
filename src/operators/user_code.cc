#include "operators/user_code.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "base/text/json.h"
#include "base/text/text_parts.h"
#include "formats/array/npy.h"
#include "load/derived_tensor.h"
#include "tensor/device_layout.h"
#include "tensor/strided_copy.h"

namespace plumbline::operators {

extern const std::string_view kUserCodeDriver;  // user_code_driver.py

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

namespace {

// Upstream's limits of the user's directory.
constexpr size_t kMostFiles = 1000;
constexpr int kMostLevels = 50;
constexpr uint64_t kLargestFile = uint64_t{1} << 20;

// What the driver loads functions from.
constexpr std::array<const char*, 2> kFolders = {"algorithm", "format_convert"};

bool HasFolder(const std::string& directory) {
  return std::ranges::any_of(kFolders, [&](const char* name) {
    return KindOf(JoinPath(directory, name)) == PathKind::kDirectory;
  });
}

DumpStatus CheckDirectory(const std::string& directory, int level, size_t& files) {
  if (level > kMostLevels) {
    return DumpFailure{DumpCode::kDangerousFile,
                       fmt::format("{}: more than {} levels deep", directory, kMostLevels)};
  }
  const auto names = ListDirectory(directory);
  if (!names) return Failed(DumpCode::kInvalidPath, names.error());
  for (const std::string& name : *names) {
    const std::string path = JoinPath(directory, name);
    if (KindOf(path) == PathKind::kDirectory) {
      PL_TRY(CheckDirectory(path, level + 1, files));
      continue;
    }
    const Result<uint64_t> size = FileSize(path);
    if (size && *size > kLargestFile) {
      return DumpFailure{DumpCode::kFileTooLarge,
                         fmt::format("{}: {} bytes (expected at most {} of a file of the user's "
                                     "functions)",
                                     path, *size, kLargestFile)};
    }
    if (++files > kMostFiles) {
      return DumpFailure{
          DumpCode::kDangerousFile,
          fmt::format("{}: more than {} files beside the user's functions", directory, kMostFiles)};
    }
  }
  return {};
}

// The layouts in the name of a converter: "convert_NC1HWC0_to_NCHW".
std::optional<std::pair<DeviceFormat, DeviceFormat>> LayoutsOf(std::string_view name) {
  constexpr std::string_view kStart = "convert_", kBetween = "_to_";
  const size_t between = name.find(kBetween, kStart.size());
  if (!name.starts_with(kStart) || between == std::string_view::npos) return std::nullopt;
  const auto from =
      ParseDeviceFormat(std::string(name.substr(kStart.size(), between - kStart.size())));
  const auto to = ParseDeviceFormat(std::string(name.substr(between + kBetween.size())));
  if (!from || !to) return std::nullopt;
  return std::pair(*from, *to);
}

std::string SizesText(const Shape& sizes) { return fmt::format("{}", fmt::join(sizes, ",")); }

std::string_view NumpyType(DType dtype) { return InfoOf(dtype).numpy_descr; }

Result<Shape> SizesOf(std::string_view text) {
  Shape sizes;
  if (text.empty()) return sizes;
  for (const std::string_view part : SplitAt(text, ',')) {
    const std::optional<int64_t> size = ParseNatural(part);
    if (!size) return Error(ErrorCode::kInternal, "the Python interpreter answered no shape");
    sizes.push_back(*size);
  }
  return sizes;
}

// The array that a converter left, by the texts of its answer.
Result<acl::Elements> ResultOf(std::string_view type, std::string_view shape,
                               std::vector<std::byte> bytes) {
  acl::Elements elements;
  const std::optional<DType> dtype = ParseDType(type);
  if (!dtype) {
    return Error(
        ErrorCode::kInternal,
        fmt::format("the converter gave elements of type {}, which no file here holds", type));
  }
  elements.dtype = *dtype;
  PL_TRY_ASSIGN(elements.sizes, SizesOf(shape));
  PL_TRY_ASSIGN(const int64_t count, ElementCount(elements.sizes));
  if (bytes.size() != static_cast<size_t>(count) * InfoOf(*dtype).size_bytes) {
    return Error(ErrorCode::kInternal,
                 fmt::format("the converter gave {} bytes for {} elements of {}", bytes.size(),
                             count, type));
  }
  elements.strides = ContiguousStrides(elements.sizes);
  elements.owned = std::move(bytes);
  elements.bytes = elements.owned;
  return elements;
}

void Reshape(const Shape& sizes, acl::Elements& elements) {
  elements.sizes = sizes;
  elements.strides = ContiguousStrides(sizes);
}

}  // namespace

Result<acl::Elements> CroppedTo(const Shape& wanted, acl::Elements elements) {
  if (load::WithoutOnes(elements.sizes) == load::WithoutOnes(wanted)) {
    Reshape(wanted, elements);
    return elements;
  }
  Shape from = elements.sizes, to = wanted;
  from.resize(std::max(from.size(), to.size()), 1);
  to.resize(from.size(), 1);
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] >= to[i]) continue;
    return Error(ErrorCode::kCorrupt, fmt::format("a result of the sizes {} (expected at least {})",
                                                  ShapeText(elements.sizes), ShapeText(wanted)));
  }
  acl::Elements cropped;
  cropped.dtype = elements.dtype;
  Reshape(wanted, cropped);
  const size_t width = InfoOf(elements.dtype).size_bytes;
  PL_TRY_ASSIGN(const int64_t count, ElementCount(to));
  cropped.owned.resize(static_cast<size_t>(count) * width);
  const std::vector<int64_t> from_strides = ContiguousStrides(from),
                             to_strides = ContiguousStrides(to);
  StridedCopy copy;
  for (size_t i = 0; i < to.size(); ++i)
    copy.axes.push_back({to[i], from_strides[i], to_strides[i]});
  if (count > 0) CopyStrided(copy, width, elements.bytes.data(), cropped.owned.data());
  cropped.bytes = cropped.owned;
  return cropped;
}

DumpResult<std::shared_ptr<UserCode>> UserCode::Load(const UserCodeRequest& request) {
  if (KindOf(request.directory) != PathKind::kDirectory) {
    return DumpFailure{DumpCode::kInvalidPath,
                       request.directory + ": there is no such directory of functions"};
  }
  if (!HasFolder(request.directory)) {
    return DumpFailure{DumpCode::kInvalidPath,
                       fmt::format("{}: holds no directory {} or {} (expected the directory that "
                                   "they are in)",
                                   request.directory, kFolders[0], kFolders[1])};
  }
  size_t files = 0;
  PL_TRY(CheckDirectory(request.directory, 1, files));
  PythonWorker::Texts arguments = {request.directory, request.with_algorithms ? "all" : "convert"};
  for (const auto& [algorithm, parameters] : request.parameters) {
    for (const auto& [name, value] : parameters) {
      arguments.insert(arguments.end(), {algorithm, name, value});
    }
  }
  auto started = PythonWorker::Start(arguments);
  if (!started) return Failed(DumpCode::kConverterFailed, started.error());
  auto& [worker, answer] = *started;
  if (answer.front() != "ready") {
    return DumpFailure{DumpCode::kConverterFailed, answer.back()};
  }
  const std::shared_ptr<UserCode> code(new UserCode(std::move(worker)));
  for (size_t i = 1; i < answer.size(); ++i) code->Add(answer[i]);
  if (!code->broken_.empty()) {
    const size_t more = code->broken_.size() - 1;
    return DumpFailure{
        DumpCode::kConverterFailed,
        code->broken_.front() + (more == 0 ? "" : fmt::format(" (and {} more files)", more))};
  }
  if (code->algorithms_.empty() && code->converters_.empty()) {
    code->warnings_.push_back(
        fmt::format("{}: holds no function (expected {}format_convert/convert_FORMAT_to_FORMAT.py)",
                    request.directory, request.with_algorithms ? "algorithm/alg_NAME.py or " : ""));
  }
  return code;
}

void UserCode::Add(const std::string& entry) {
  const std::string name = entry.substr(1);
  if (entry.starts_with('w')) {
    warnings_.push_back(name);
  } else if (entry.starts_with('b')) {
    broken_.push_back(name);
  } else if (entry.starts_with('a')) {
    algorithms_.push_back(name);
  } else if (const auto layouts = LayoutsOf(name)) {
    converters_[*layouts] = name;
  } else {
    broken_.push_back(fmt::format("{}/{}: names a layout that is not known", kFolders[1], name));
  }
}

std::vector<measure::AlgorithmText> UserCode::Compare(const std::vector<std::string>& names,
                                                      const measure::DumpPair& pair) {
  const auto failed = [&](const Error& error) {
    return measure::AlgorithmText{"NaN", error.message()};
  };
  const auto run = [&]() -> Result<std::vector<measure::AlgorithmText>> {
    PL_TRY_ASSIGN(const auto x, npy::MakeContents(pair.target.dtype, pair.target.sizes,
                                                  {pair.target.data, pair.target.size_bytes()}));
    PL_TRY_ASSIGN(const auto y, npy::MakeContents(pair.golden.dtype, pair.golden.sizes,
                                                  {pair.golden.data, pair.golden.size_bytes()}));
    const int64_t count = pair.target.element_count();
    const std::lock_guard lock(mutex_);
    const std::array<std::span<const std::byte>, 2> arrays = {x.data, y.data};
    PL_TRY_ASSIGN(const std::vector<size_t> places, worker_.Place(arrays));
    std::vector<measure::AlgorithmText> texts;
    for (const std::string& name : names) {
      const auto answer = worker_.Ask({"compare", name, std::string(NumpyType(x.dtype)),
                                       std::string(NumpyType(y.dtype)), std::to_string(places[1]),
                                       std::to_string(count), std::string(pair.target_file),
                                       std::string(pair.golden_file), count == 1 ? "1" : ""});
      if (answer && answer->size() == 2) {
        texts.push_back({(*answer)[0], (*answer)[1]});
      } else {
        texts.push_back(
            failed(Error(ErrorCode::kInternal,
                         fmt::format("Failed to execute 'compare' in '{}'. {}", name,
                                     answer ? answer->back() : answer.error().message()))));
      }
    }
    return texts;
  };
  auto texts = run();
  if (texts) return *std::move(texts);
  return std::vector<measure::AlgorithmText>(names.size(), failed(texts.error()));
}

std::vector<measure::AlgorithmText> OwnFunctions::Compare(const measure::DumpPair& pair) const {
  if (algorithms.empty()) return {};
  if (pair.target.dtype != DType::kBool || pair.golden.dtype != DType::kBool) {
    return code->Compare(algorithms, pair);
  }
  std::vector<measure::AlgorithmText> texts;
  for (const std::string& name : algorithms) {
    texts.push_back({"NaN", fmt::format("Algorithm {} does not support Boolean types.", name)});
  }
  return texts;
}

Result<acl::Elements> UserCode::Convert(const Conversion& conversion,
                                        const acl::Elements& elements) {
  const std::string& name = converters_.at({conversion.from, conversion.to});
  PL_TRY_ASSIGN(const auto stored,
                npy::MakeContents(elements.dtype, elements.sizes, elements.bytes));
  const size_t count = stored.data.size() / InfoOf(stored.dtype).size_bytes;
  const std::lock_guard lock(mutex_);
  const std::array<std::span<const std::byte>, 1> arrays = {stored.data};
  PL_TRY(worker_.Place(arrays));
  PL_TRY_ASSIGN(const PythonWorker::Texts answer,
                worker_.Ask({"convert", name, std::string(NumpyType(stored.dtype)),
                             std::to_string(count), SizesText(elements.sizes),
                             SizesText(conversion.wanted), std::to_string(conversion.groups)}));
  if (answer.front() != "ok" || answer.size() != 3) {
    return Error(ErrorCode::kInternal, answer.back());
  }
  PL_TRY_ASSIGN(std::vector<std::byte> bytes, worker_.Array());
  Result<acl::Elements> result = ResultOf(answer[1], answer[2], std::move(bytes));
  if (!result) return result.error().In(name);
  return result;
}

}  // namespace plumbline::operators
