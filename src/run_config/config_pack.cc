#include "run_config/config_pack.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "base/file/file.h"
#include "base/text/json.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/pytorch/zip.h"
#include "run_config/launch_script.h"

namespace plumbline::run_config {

namespace {

constexpr uint64_t kMaxMemberBytes = uint64_t{1} << 30;
constexpr int kMaxDepth = 400;

// A value that is no container, or the JSON text of one that is.
struct Leaf {
  std::string text;
  std::optional<double> number;
};

// The next scalar as Python's str() has it.
bool ReadScalar(json::Reader& in, Leaf& leaf) {
  switch (in.Peek()) {
    case json::Kind::kNull:
      leaf.text = "None";
      return in.ReadNull();
    case json::Kind::kBool: {
      bool truth = false;
      const bool read = in.ReadBool(truth);
      leaf.text = truth ? "True" : "False";
      return read;
    }
    case json::Kind::kNumber: {
      json::Number number;
      if (!in.ReadNumber(number)) return false;
      if (const auto* v = std::get_if<int64_t>(&number)) {
        leaf.text = std::to_string(*v);
        leaf.number = static_cast<double>(*v);
      } else if (const auto* real = std::get_if<double>(&number)) {
        leaf.text = PythonFloat(*real);
        leaf.number = *real;
      } else {
        leaf.text = std::get<std::string_view>(number);
      }
      return true;
    }
    default: {
      std::string_view text;
      if (!in.ReadString(text)) return false;
      leaf.text = text;
      return true;
    }
  }
}

// JSON text without the blanks between its parts, in which writers differ.
std::string WithoutBlanks(std::string_view text) {
  std::string out;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\') out += text[i++];
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (i < text.size() && (in_string || !blank)) out += text[i];
  }
  return out;
}

// The next value as text; of a container its JSON. `text` is what `in` reads.
std::string ReadAnyValue(json::Reader& in, const std::string& text) {
  const json::Kind kind = in.Peek();
  if (kind == json::Kind::kObject || kind == json::Kind::kArray) {
    const size_t from = in.offset();
    if (!in.SkipValue()) return {};
    return WithoutBlanks({text.data() + from, in.offset() - from});
  }
  Leaf leaf;
  ReadScalar(in, leaf);
  return leaf.text;
}

// Members of one flat object.
Status ReadFlat(const std::string& text, std::vector<std::pair<std::string, std::string>>& out) {
  json::Reader in(text, kMaxDepth);
  std::string_view key;
  in.EnterObject();
  while (!in.failed() && in.NextMember(key)) {
    std::string name(key);
    out.emplace_back(std::move(name), ReadAnyValue(in, text));
  }
  if (!in.failed()) in.ReadEnd();
  return in.failed() ? Status(in.error()) : Status();
}

using StatisticsByName = std::map<std::string, PackStatistics>;

// Objects down to those that hold max, min, mean and norm. Other values are of no interest.
void WalkStatistics(json::Reader& in, const std::string& path, StatisticsByName& out) {
  if (in.Peek() != json::Kind::kObject) {
    in.SkipValue();
    return;
  }
  static constexpr std::array<std::string_view, 4> kNames = {"max", "min", "mean", "norm"};
  std::string_view key;
  if (!in.EnterObject()) return;
  while (in.NextMember(key)) {
    const auto* name = std::ranges::find(kNames, key);
    const json::Kind kind = in.Peek();
    const bool is_scalar = kind != json::Kind::kObject && kind != json::Kind::kArray;
    if (name != kNames.end() && is_scalar && !path.empty()) {
      Leaf leaf;
      if (ReadScalar(in, leaf)) out[path][static_cast<size_t>(name - kNames.begin())] = leaf.number;
    } else {
      WalkStatistics(in, path.empty() ? std::string(key) : fmt::format("{}.{}", path, key), out);
    }
  }
}

Status ReadStatistics(const std::string& text, StatisticsByName& out) {
  json::Reader in(text, kMaxDepth);
  if (in.Peek() != json::Kind::kObject) return Error(ErrorCode::kCorrupt, "no object");
  WalkStatistics(in, "", out);
  in.ReadEnd();
  return in.failed() ? Status(in.error()) : Status();
}

using TextsByName = std::map<std::string, std::string>;

// Nested objects down to the texts that are not empty.
void WalkTexts(json::Reader& in, const std::string& path, TextsByName& out) {
  if (in.Peek() == json::Kind::kString) {
    std::string_view text;
    if (in.ReadString(text) && !text.empty()) out[path] = text;
    return;
  }
  if (in.Peek() != json::Kind::kObject) {
    in.SkipValue();
    return;
  }
  std::string_view key;
  if (!in.EnterObject()) return;
  while (in.NextMember(key)) {
    WalkTexts(in, path.empty() ? std::string(key) : fmt::format("{}.{}", path, key), out);
  }
}

Status ReadDigests(const std::string& text, TextsByName& dataset, TextsByName& weights) {
  json::Reader in(text, kMaxDepth);
  std::string_view key;
  if (in.EnterObject()) {
    while (in.NextMember(key)) {
      if (key == "dataset" || key == "weights") {
        WalkTexts(in, "", key == "dataset" ? dataset : weights);
      } else {
        in.SkipValue();
      }
    }
  }
  in.ReadEnd();
  return in.failed() ? Status(in.error()) : Status();
}

void ReadCalls(json::Reader& in, std::vector<RandomCall>& calls) {
  if (!in.EnterArray()) return;
  while (in.NextElement()) {
    RandomCall& call = calls.emplace_back();
    std::string_view key, frame;
    if (!in.EnterObject()) return;
    while (in.NextMember(key)) {
      if (key == "count") {
        Leaf leaf;
        if (ReadScalar(in, leaf)) call.count = static_cast<int64_t>(leaf.number.value_or(0));
      } else if (key == "stack" && in.Peek() == json::Kind::kArray) {
        in.EnterArray();
        while (in.NextElement() && in.ReadString(frame)) call.stack.emplace_back(frame);
      } else {
        in.SkipValue();
      }
    }
  }
}

Status ReadRandom(const std::string& text, std::map<std::string, std::vector<RandomCall>>& out) {
  json::Reader in(text, kMaxDepth);
  std::string_view key;
  if (in.EnterObject()) {
    while (in.NextMember(key)) ReadCalls(in, out[std::string(key)]);
  }
  in.ReadEnd();
  return in.failed() ? Status(in.error()) : Status();
}

void ReadPackages(std::string_view text, std::map<std::string, std::string>& out) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    out.insert_or_assign(LowerCase(line.substr(0, equals)), std::string(line.substr(equals + 1)));
  }
}

// "dataset/step3/rank0/dataset.json"
std::optional<StepRank> PlaceOf(const std::vector<std::string_view>& parts) {
  if (parts.size() != 4) return std::nullopt;
  const auto step = NaturalAfter("step", parts[1]), rank = NaturalAfter("rank", parts[2]);
  if (!step || !rank) return std::nullopt;
  return StepRank{*step, *rank};
}

// Takes in one member; true if it is one of a pack.
Result<bool> AddMember(std::string_view name, const std::string& text, ConfigPack& pack) {
  const std::vector<std::string_view> parts = SplitAt(name, '/');
  if (name == "env") {
    std::vector<std::pair<std::string, std::string>> values;
    PL_TRY(ReadFlat(text, values));
    for (auto& [key, value] : values) pack.environment.insert_or_assign(key, std::move(value));
    return true;
  }
  if (name == "pip") {
    ReadPackages(text, pack.packages);
    return true;
  }
  if (parts[0] == "hyperparameters" && parts.size() == 2 && parts[1].ends_with(".json")) {
    PL_TRY(ReadFlat(text, pack.hyperparameters[std::string(parts[1])]));
    return true;
  }
  const std::optional<StepRank> place = PlaceOf(parts);
  if (place && (parts[0] == "dataset" || parts[0] == "weights")) {
    auto& values = parts[0] == "dataset" ? pack.dataset : pack.weights;
    PL_TRY(ReadStatistics(text, values[*place]));
    return true;
  }
  if (place && parts[0] == "digests") {
    PL_TRY(ReadDigests(text, pack.dataset_digests[*place], pack.weight_digests[*place]));
    return true;
  }
  constexpr std::string_view kEnding = ".json";
  if (parts[0] == "random" && parts.size() == 2 && parts[1].ends_with(kEnding)) {
    const std::string_view stem = parts[1].substr(0, parts[1].size() - kEnding.size());
    const auto rank = NaturalAfter("rank", stem);
    if (!rank) return false;
    PL_TRY(ReadRandom(text, pack.random[*rank]));
    return true;
  }
  return false;
}

}  // namespace

bool ConfigPack::holds(std::string_view item) const {
  return std::ranges::find(items, item) != items.end();
}

Result<ConfigPack> ReadConfigPack(const std::string& path) {
  PL_TRY_ASSIGN(const auto file, MappedFile::Open(path));
  const auto members = zip::ReadDirectory(file->bytes());
  if (!members) return members.error().In(path);
  ConfigPack pack;
  for (const zip::Member& member : *members) {
    if (member.name.ends_with('/')) continue;
    const auto text = zip::Extract(file->bytes(), member, kMaxMemberBytes);
    if (!text) return text.error().In(path);
    const Result<bool> known = AddMember(member.name, *text, pack);
    if (!known) return known.error().In(fmt::format("{}: {}", path, member.name));
    const std::string item(SplitAt(member.name, '/')[0]);
    if (*known && !pack.holds(item)) pack.items.push_back(item);
  }
  if (!pack.items.empty()) return pack;
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("{}: no pack of config_check (expected members env, pip, "
                           "hyperparameters/..., dataset/..., weights/..., random/...)",
                           path));
}

std::vector<EnvironmentRule> EnvironmentRules() {
  return {{"HCCL_DETERMINISTIC", "NCCL_DETERMINISTIC", "False"},
          {"HCCL_ALGO", "NCCL_ALGO", "None"},
          {"HCCL_INTRA_ROCE_ENABLE", "", "0"},
          {"HCCL_INTRA_PCIE_ENABLE", "", "1"},
          {"ASCEND_LAUNCH_BLOCKING", "CUDA_LAUNCH_BLOCKING", "0"},
          {"ASCEND_RT_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "None"}};
}

}  // namespace plumbline::run_config

// WriteConfigPack(): what can be seen of a training from outside.
extern char** environ;

namespace plumbline::run_config {
namespace {

using Texts = std::map<std::string, std::string>;

Texts EnvironmentOf(bool all) {
  std::set<std::string_view> wanted;
  for (const EnvironmentRule& rule : EnvironmentRules()) {
    wanted.insert(rule.npu_name);
    wanted.insert(rule.gpu_name);
  }
  Texts values;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view entry = *each;
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    // Any name with ASCEND says which kind of device the side has.
    if (!all && !wanted.contains(name) && name.find("ASCEND") == std::string_view::npos) continue;
    values.emplace(name, entry.substr(equals + 1));
  }
  return values;
}

std::string JsonOf(const Texts& values) {
  std::string text = "{";
  for (const auto& [name, value] : values) {
    text += text.size() > 1 ? ",\n    " : "\n    ";
    json::AppendString(name, text);
    text += ": ";
    json::AppendString(value, text);
  }
  return text + (values.empty() ? "}" : "\n}");
}

// The directory above the bin/ of `python3` on the path.
std::string PrefixOnPath() {
  const char* virtual_environment = std::getenv("VIRTUAL_ENV");
  if (virtual_environment != nullptr && *virtual_environment != 0) return virtual_environment;
  const char* variable = std::getenv("PATH");
  std::string_view rest = variable == nullptr ? std::string_view() : variable;
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    const std::string directory(rest.substr(0, colon));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
    if (KindOf(JoinPath(directory, "python3")) == PathKind::kFile) {
      return std::string(DirectoryOf(directory));
    }
  }
  return {};
}

// "Name: x" of a METADATA or PKG-INFO file.
std::string FieldOf(const std::string& text, std::string_view field) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line(text.data() + at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) break;  // the description follows
    if (line.starts_with(field)) return std::string(line.substr(field.size()));
    at = end + 1;
  }
  return {};
}

void AddPackages(const std::string& site, Texts& packages) {
  const auto names = ListDirectory(site);
  if (!names) return;
  for (const std::string& name : *names) {
    const bool is_wheel = name.ends_with(".dist-info");
    if (!is_wheel && !name.ends_with(".egg-info")) continue;
    const auto text = ReadFile(JoinPath(JoinPath(site, name), is_wheel ? "METADATA" : "PKG-INFO"));
    if (!text) continue;
    const std::string package = FieldOf(*text, "Name: "), version = FieldOf(*text, "Version: ");
    if (!package.empty() && !version.empty()) packages.emplace(package, version);
  }
}

// What is installed in lib/python3.*/site-packages and dist-packages below `prefix`.
Texts PackagesBelow(const std::string& prefix) {
  Texts packages;
  for (const std::string_view library : {"lib", "lib64", "local/lib"}) {
    const std::string directory = JoinPath(prefix, library);
    const auto names = ListDirectory(directory);
    if (!names) continue;
    for (const std::string& name : *names) {
      if (!name.starts_with("python3")) continue;
      for (const std::string_view site : {"site-packages", "dist-packages"}) {
        AddPackages(JoinPath(JoinPath(directory, name), site), packages);
      }
    }
  }
  return packages;
}

}  // namespace

Status WriteConfigPack(const std::string& path, const CollectOptions& options) {
  if (!path.ends_with(".zip")) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{}: expected a .zip file", path));
  }
  LaunchArguments arguments;
  for (const std::string& file : options.files) PL_TRY(ReadLaunchFile(file, arguments));
  const std::string prefix = options.python_prefix.empty() ? PrefixOnPath() : options.python_prefix;
  std::string packages;
  for (const auto& [name, version] : PackagesBelow(prefix)) {
    packages += fmt::format("{}={}\n", name, version);
  }
  PL_TRY(MakeDirectories(std::string(DirectoryOf(path))));
  PL_TRY_ASSIGN(zip::StreamWriter out, zip::StreamWriter::Create(path));
  PL_TRY(out.Begin("env"));
  PL_TRY(out.Write(JsonOf(EnvironmentOf(options.all_environment))));
  PL_TRY(out.Begin("pip"));
  PL_TRY(out.Write(packages));
  if (!arguments.empty()) {
    PL_TRY(out.Begin("hyperparameters/hyperparameters_static.json"));
    PL_TRY(out.Write(arguments.Json()));
  }
  return out.Close();
}

}  // namespace plumbline::run_config
