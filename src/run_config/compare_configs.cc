#include "run_config/compare_configs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "base/file/file.h"
#include "base/process/log.h"
#include "base/text/number_text.h"
#include "base/text/text_parts.h"
#include "formats/table/xlsx.h"

namespace plumbline::run_config {

namespace {

constexpr size_t kMost = 1000;

struct Block {
  size_t at_a = 0, at_b = 0, size = 0;
};

// The longest common piece; of several the first in `a`, then in `b`.
Block LongestBlock(std::string_view a, std::string_view b) {
  Block best;
  std::vector<size_t> before(b.size() + 1, 0), now(b.size() + 1, 0);
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) {
      now[j + 1] = a[i] == b[j] ? before[j] + 1 : 0;
      if (now[j + 1] > best.size) best = {i + 1 - now[j + 1], j + 1 - now[j + 1], now[j + 1]};
    }
    before.swap(now);
  }
  return best;
}

size_t Matching(std::string_view a, std::string_view b) {
  std::vector<std::pair<std::string_view, std::string_view>> todo = {{a, b}};
  size_t count = 0;
  while (!todo.empty()) {
    const auto [left, right] = todo.back();
    todo.pop_back();
    const Block block = LongestBlock(left, right);
    if (block.size == 0) continue;
    count += block.size;
    todo.emplace_back(left.substr(0, block.at_a), right.substr(0, block.at_b));
    todo.emplace_back(left.substr(block.at_a + block.size), right.substr(block.at_b + block.size));
  }
  return count;
}

}  // namespace

double SimilarityRatio(std::string_view a, std::string_view b) {
  a = a.substr(0, kMost);
  b = b.substr(0, kMost);
  if (a.empty() && b.empty()) return 1;
  return 2.0 * static_cast<double>(Matching(a, b)) / static_cast<double>(a.size() + b.size());
}

namespace {

using report::Cell;

constexpr size_t kMostFindings = 50;
constexpr double kSameFrame = 0.8;
constexpr std::string_view kPackages[] = {"transformers", "deepspeed", "megatron",  "numpy",
                                          "datasets",     "peft",      "mindspore", "torch"};

void Raise(ConfigSheet& sheet, ConfigLevel level, std::string finding) {
  sheet.level = std::max(sheet.level, level);
  sheet.findings.push_back(std::move(finding));
}

Cell LevelCell(ConfigLevel level) { return std::string(ConfigLevelName(level)); }

bool IsNpu(const ConfigPack& pack) {
  return std::ranges::any_of(pack.environment, [](const auto& entry) {
    return entry.first.find("ASCEND") != std::string::npos;
  });
}

std::string ValueOf(const ConfigPack& pack, std::string_view name, std::string_view otherwise) {
  const auto found = pack.environment.find(std::string(name));
  return found == pack.environment.end() ? std::string(otherwise) : found->second;
}

void CompareEnvironment(const ConfigPack& bench, const ConfigPack& cmp, ConfigSheet& sheet) {
  const bool bench_npu = IsNpu(bench), cmp_npu = IsNpu(cmp);
  for (const EnvironmentRule& rule : EnvironmentRules()) {
    const std::string bench_name(bench_npu ? rule.npu_name : rule.gpu_name);
    const std::string cmp_name(cmp_npu ? rule.npu_name : rule.gpu_name);
    if (bench_name.empty() && cmp_name.empty()) continue;
    if (bench_name.empty() || cmp_name.empty()) {
      const bool only_bench = cmp_name.empty();
      const std::string& name = only_bench ? bench_name : cmp_name;
      const ConfigPack& pack = only_bench ? bench : cmp;
      if (!pack.environment.contains(name)) continue;
      const std::string value = ValueOf(pack, name, "");
      const std::string note = only_bench ? "only bench has this env" : "only cmp has this env";
      sheet.rows.push_back({only_bench ? name : note, only_bench ? note : name,
                            only_bench ? value : "", only_bench ? "" : value,
                            LevelCell(ConfigLevel::kWarning)});
      Raise(sheet, ConfigLevel::kWarning, fmt::format("{}: {}", name, note));
      continue;
    }
    const std::string left = ValueOf(bench, bench_name, rule.default_value);
    const std::string right = ValueOf(cmp, cmp_name, rule.default_value);
    if (left == right) continue;
    sheet.rows.push_back({bench_name, cmp_name, left, right, LevelCell(ConfigLevel::kError)});
    Raise(sheet, ConfigLevel::kError,
          fmt::format("{}: {} in bench, {} in cmp", bench_name, left, right));
  }
}

void ComparePackages(const ConfigPack& bench, const ConfigPack& cmp, ConfigSheet& sheet) {
  for (const std::string_view package : kPackages) {
    const auto version = [&](const ConfigPack& pack) {
      const auto found = pack.packages.find(std::string(package));
      return found == pack.packages.end() ? std::string("None") : found->second;
    };
    const std::string left = version(bench), right = version(cmp);
    if (left == right) continue;
    sheet.rows.push_back({std::string(package), left, right, LevelCell(ConfigLevel::kError)});
    Raise(sheet, ConfigLevel::kError,
          fmt::format("{}: {} in bench, {} in cmp", package, left, right));
  }
}

using StatisticsByPlace = std::map<StepRank, std::map<std::string, PackStatistics>>;

Cell NumberCell(double value) {
  return std::isfinite(value) ? Cell(value) : Cell(PythonFloat(value));
}

// The four relative differences; blank where bench is 0.
void AddRelative(const PackStatistics& bench, const PackStatistics& cmp, std::vector<Cell>& row) {
  for (size_t i = 0; i < bench.size(); ++i) {
    const bool defined = bench[i] && cmp[i] && *bench[i] != 0;
    row.push_back(defined ? NumberCell(std::abs(*bench[i] - *cmp[i]) / *bench[i]) : Cell());
  }
}

// Values that are missing, and NaN on both sides, prove nothing and are not equal.
bool AllEqual(const PackStatistics& bench, const PackStatistics& cmp) {
  for (size_t i = 0; i < bench.size(); ++i) {
    if (!bench[i] || !cmp[i] || *bench[i] != *cmp[i]) return false;
  }
  return true;
}

using DigestsByPlace = std::map<StepRank, std::map<std::string, std::string>>;

// Whether both sides have a checksum of the value, and not the same: its elements were permuted, or
// are of another type or shape.
bool DigestsDiffer(const DigestsByPlace& bench, const DigestsByPlace& cmp, const StepRank& place,
                   const std::string& name) {
  const auto find = [&](const DigestsByPlace& side) -> const std::string* {
    const auto values = side.find(place);
    if (values == side.end()) return nullptr;
    const auto found = values->second.find(name);
    return found == values->second.end() ? nullptr : &found->second;
  };
  const std::string* left = find(bench);
  const std::string* right = find(cmp);
  return left != nullptr && right != nullptr && *left != *right;
}

// What one item of a pack says of tensors.
struct TensorFacts {
  const StatisticsByPlace& statistics;
  const DigestsByPlace& digests;
};

// `one_side_is_wrong`: values of one side alone are "False", not named as such (upstream's
// dataset).
void CompareTensors(const TensorFacts& bench, const TensorFacts& cmp, bool one_side_is_wrong,
                    ConfigSheet& sheet) {
  std::set<std::pair<StepRank, std::string>> all;
  for (const StatisticsByPlace* side : {&bench.statistics, &cmp.statistics}) {
    for (const auto& [place, values] : *side) {
      for (const auto& value : values) all.emplace(place, value.first);
    }
  }
  const auto find = [](const StatisticsByPlace& side, const StepRank& place,
                       const std::string& name) -> const PackStatistics* {
    const auto values = side.find(place);
    if (values == side.end()) return nullptr;
    const auto found = values->second.find(name);
    return found == values->second.end() ? nullptr : &found->second;
  };
  for (const auto& [place, name] : all) {
    const PackStatistics* left = find(bench.statistics, place, name);
    const PackStatistics* right = find(cmp.statistics, place, name);
    const bool both = left != nullptr && right != nullptr;
    const bool alike = both && AllEqual(*left, *right);
    const bool moved = alike && DigestsDiffer(bench.digests, cmp.digests, place, name);
    std::string equal = alike && !moved ? "True" : "False";
    if (!both && !one_side_is_wrong) equal = left != nullptr ? "only bench have" : "only cmp have";
    std::vector<Cell> row = {place.step, place.rank, name, equal};
    if (both) {
      AddRelative(*left, *right, row);
    } else {
      row.resize(row.size() + 4);
    }
    sheet.rows.push_back(std::move(row));
    if (equal == "True") continue;
    Raise(sheet, equal == "False" ? ConfigLevel::kError : ConfigLevel::kWarning,
          fmt::format("{} of step {} rank {}: {}", name, place.step, place.rank,
                      moved              ? "other elements with the same statistics"
                      : equal == "False" ? "differs"
                                         : equal));
  }
}

// "File a.py, line 3, in f, code" taken apart: file, function, code.
struct Frame {
  std::string_view file, function, code;
};
Frame FrameOf(std::string_view text) {
  Frame frame;
  constexpr std::string_view kFile = "File ", kLine = ", line ", kIn = ", in ";
  if (text.starts_with(kFile)) text.remove_prefix(kFile.size());
  const size_t line = text.find(kLine);
  const size_t in = line == std::string_view::npos ? line : text.find(kIn, line);
  if (in == std::string_view::npos) return {"", "", text};
  frame.file = text.substr(0, line);
  frame.file = frame.file.substr(frame.file.rfind('/') + 1);
  const std::string_view rest = text.substr(in + kIn.size());
  const size_t comma = std::min(rest.find(", "), rest.size());
  frame.function = rest.substr(0, comma);
  frame.code = rest.substr(std::min(comma + 2, rest.size()));
  return frame;
}

bool SameStack(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const Frame x = FrameOf(a[i]), y = FrameOf(b[i]);
    const double score = (x.file == y.file ? 1.0 : 0.0) + (x.function == y.function ? 1.0 : 0.0) +
                         SimilarityRatio(x.code, y.code);
    if (score / 3 < kSameFrame) return false;
  }
  return true;
}

void AddRandomRow(const std::string& function, int64_t rank, const RandomCall* bench,
                  const RandomCall* cmp, ConfigSheet& sheet) {
  const auto text = [](const RandomCall* call) {
    return call == nullptr ? std::string("no match stack")
                           : fmt::format("{}", fmt::join(call->stack, "\n"));
  };
  const int64_t left = bench == nullptr ? 0 : bench->count, right = cmp == nullptr ? 0 : cmp->count;
  const bool same = bench != nullptr && cmp != nullptr && left == right;
  sheet.rows.push_back(
      {function, rank, text(bench), text(cmp), left, right, std::string(same ? "True" : "False")});
  if (same) return;
  const RandomCall* known = bench != nullptr ? bench : cmp;
  Raise(sheet, ConfigLevel::kError,
        fmt::format("{} on rank {}: {} calls in bench, {} in cmp: {}", function, rank, left, right,
                    known->stack.empty() ? std::string() : known->stack.back()));
}

void CompareRandom(const ConfigPack& bench, const ConfigPack& cmp, ConfigSheet& sheet) {
  using Calls = std::vector<RandomCall>;
  std::set<std::pair<int64_t, std::string>> all;
  for (const ConfigPack* pack : {&bench, &cmp}) {
    for (const auto& [rank, functions] : pack->random) {
      for (const auto& function : functions) all.emplace(rank, function.first);
    }
  }
  static const Calls kNone;
  const auto find = [](const ConfigPack& pack, int64_t rank, const std::string& function) {
    const auto functions = pack.random.find(rank);
    if (functions == pack.random.end()) return &kNone;
    const auto found = functions->second.find(function);
    return found == functions->second.end() ? &kNone : &found->second;
  };
  for (const auto& [rank, function] : all) {
    const Calls& left = *find(bench, rank, function);
    const Calls& right = *find(cmp, rank, function);
    std::vector<bool> used(right.size(), false);
    for (const RandomCall& call : left) {
      const RandomCall* partner = nullptr;
      for (size_t i = 0; i < right.size() && partner == nullptr; ++i) {
        if (used[i] || !SameStack(call.stack, right[i].stack)) continue;
        used[i] = true;
        partner = &right[i];
      }
      AddRandomRow(function, rank, &call, partner, sheet);
    }
    for (size_t i = 0; i < right.size(); ++i) {
      if (!used[i]) AddRandomRow(function, rank, nullptr, &right[i], sheet);
    }
  }
}

const std::vector<std::string_view> kStatisticNames = {"max_relative_diff", "min_relative_diff",
                                                       "mean_relative_diff", "norm_relative_diff"};

std::vector<std::string_view> WithStatistics(std::vector<std::string_view> header) {
  header.insert(header.end(), kStatisticNames.begin(), kStatisticNames.end());
  return header;
}

Status WriteCells(xlsx::Writer& out, const std::vector<Cell>& row) {
  PL_TRY(out.BeginRow(xlsx::Fill::kNone));
  for (const Cell& cell : row) PL_TRY(report::WriteCell(cell, out));
  return {};
}

}  // namespace

std::string_view ConfigLevelName(ConfigLevel level) {
  switch (level) {
    case ConfigLevel::kPass:
      return "pass";
    case ConfigLevel::kWarning:
      return "warning";
    case ConfigLevel::kError:
      return "error";
  }
  return "";
}

ConfigLevel ConfigComparison::level() const {
  ConfigLevel worst =
      only_bench.empty() && only_cmp.empty() ? ConfigLevel::kPass : ConfigLevel::kWarning;
  for (const ConfigSheet& sheet : sheets) worst = std::max(worst, sheet.level);
  return worst;
}

ConfigComparison CompareConfigs(const ConfigPack& bench, const ConfigPack& cmp) {
  ConfigComparison comparison;
  const auto add = [&](const std::string& item, std::vector<std::string_view> header,
                       const auto& compare) {
    const bool left = bench.holds(item), right = cmp.holds(item);
    if (left && !right) comparison.only_bench.push_back(item);
    if (right && !left) comparison.only_cmp.push_back(item);
    if (!left || !right) return;
    ConfigSheet& sheet = comparison.sheets.emplace_back();
    sheet.name = item;
    sheet.header = std::move(header);
    compare(sheet);
  };
  add("env", {"bench_env_name", "cmp_env_name", "bench_value", "cmp_value", "level"},
      [&](ConfigSheet& sheet) { CompareEnvironment(bench, cmp, sheet); });
  add("pip", {"package", "bench version", "cmp version", "level"},
      [&](ConfigSheet& sheet) { ComparePackages(bench, cmp, sheet); });
  add("dataset", WithStatistics({"step", "rank", "tag", "equal"}), [&](ConfigSheet& sheet) {
    CompareTensors({bench.dataset, bench.dataset_digests}, {cmp.dataset, cmp.dataset_digests},
                   /*one_side_is_wrong=*/true, sheet);
  });
  add("weights", WithStatistics({"step", "rank", "weight_name", "equal"}), [&](ConfigSheet& sheet) {
    CompareTensors({bench.weights, bench.weight_digests}, {cmp.weights, cmp.weight_digests},
                   /*one_side_is_wrong=*/false, sheet);
  });
  add("hyperparameters",
      {"file_name", "bench_para", "cmp_para", "bench_value", "cmp_value", "matched_with", "level"},
      [&](ConfigSheet& sheet) { CompareHyperparameters(bench, cmp, sheet); });
  add("random",
      {"op", "rank", "bench_stack", "cmp_stack", "bench_count", "cmp_count", "check_result"},
      [&](ConfigSheet& sheet) { CompareRandom(bench, cmp, sheet); });
  return comparison;
}

Status WriteConfigWorkbook(const ConfigComparison& comparison, const std::string& path) {
  PL_TRY(MakeDirectories(std::string(DirectoryOf(path))));
  PL_TRY_ASSIGN(xlsx::Writer out, xlsx::Writer::CreateEmpty(path));
  constexpr std::array<std::string_view, 2> kSummary = {"filename", "pass_check"};
  PL_TRY(out.BeginSheet("summary", kSummary));
  for (const ConfigSheet& sheet : comparison.sheets) {
    PL_TRY(WriteCells(out, {sheet.name, LevelCell(sheet.level)}));
  }
  for (const auto* side : {&comparison.only_bench, &comparison.only_cmp}) {
    for (const std::string& item : *side) {
      PL_TRY(WriteCells(out, {item, LevelCell(ConfigLevel::kWarning)}));
    }
  }
  for (const ConfigSheet& sheet : comparison.sheets) {
    PL_TRY(out.BeginSheet(sheet.name, sheet.header));
    for (const std::vector<Cell>& row : sheet.rows) PL_TRY(WriteCells(out, row));
  }
  return out.Close();
}

std::string ConfigSummary(const ConfigComparison& comparison) {
  std::string text;
  const ConfigLevel worst = comparison.level();
  if (comparison.sheets.empty()) {
    text = "not judged: the packs have no item in common\n";
  } else if (worst == ConfigLevel::kPass) {
    text = "the configurations agree\n";
  } else {
    text = worst == ConfigLevel::kError ? "the configurations differ\n"
                                        : "the configurations agree where both say something\n";
  }
  for (const ConfigSheet& sheet : comparison.sheets) {
    text += fmt::format("{}: {}\n", sheet.name, ConfigLevelName(sheet.level));
    const size_t shown = std::min(sheet.findings.size(), kMostFindings);
    for (size_t i = 0; i < shown; ++i) text += fmt::format("  {}\n", OneLine(sheet.findings[i]));
    if (shown < sheet.findings.size()) {
      text += fmt::format("  and {} more\n", sheet.findings.size() - shown);
    }
  }
  for (const std::string& item : comparison.only_bench) text += OneLine(item) + ": only in bench\n";
  for (const std::string& item : comparison.only_cmp) text += OneLine(item) + ": only in cmp\n";
  return text;
}

// CompareHyperparameters(): which parameter of one training is which of the other.

namespace {

using Parameter = std::pair<std::string, std::string>;  // name, value
using Parameters = std::vector<Parameter>;

constexpr double kAlike = 0.8;

// Names that mean the same.
constexpr std::array<std::array<std::string_view, 5>, 8> kAliases = {{
    {"learning_rate", "lr", "learningrate"},
    {"batch_size", "batch", "bs", "batch_size_per_gpu"},
    {"epochs", "num_epochs", "max_epochs", "epoch"},
    {"weight_decay", "wd", "weightdecay"},
    {"dropout", "dropout_rate", "drop_rate"},
    {"compute_dtype", "bf16", "fp32"},
    {"residual_dtype", "fp32_residual_connection"},
    {"softmax_compute_dtype", "attention_softmax_in_fp32"},
}};

// The last dotted part, in one spelling.
std::string PlainName(std::string_view name) {
  std::string plain(name.substr(name.rfind('.') + 1));
  std::ranges::replace(plain, '-', '_');
  return plain;
}

bool IsAlias(const std::string& a, const std::string& b) {
  return std::ranges::any_of(kAliases, [&](const auto& group) {
    return std::ranges::find(group, a) != group.end() && std::ranges::find(group, b) != group.end();
  });
}

struct Match {
  size_t index = 0;
  std::string how;
};

class Matcher {
 public:
  Matcher(const Parameters& bench, const Parameters& cmp) : bench_(bench), cmp_(cmp) {
    found_.resize(bench.size());
    for (size_t i = 0; i < cmp.size(); ++i) left_.insert(i);
  }

  // Every stage takes what the one before left, so that a good match is never taken by a worse.
  const std::vector<std::optional<Match>>& Run() {
    Stage([](const std::string& a, const std::string& b) { return a == b; }, "pure name");
    Stage([](const std::string& a, const std::string& b) { return PlainName(a) == PlainName(b); },
          "pure name");
    Stage([](const std::string& a,
             const std::string& b) { return IsAlias(PlainName(a), PlainName(b)); },
          "mapping");
    for (size_t i = 0; i < bench_.size(); ++i) {
      if (!found_[i]) MatchAlike(i);
    }
    return found_;
  }

  [[nodiscard]] const std::set<size_t>& left() const { return left_; }

 private:
  template <class Same>
  void Stage(const Same& same, std::string_view how) {
    for (size_t i = 0; i < bench_.size(); ++i) {
      if (found_[i]) continue;
      const auto at = std::ranges::find_if(
          left_, [&](size_t k) { return same(bench_[i].first, cmp_[k].first); });
      if (at == left_.end()) continue;
      found_[i] = Match{*at, std::string(how)};
      left_.erase(at);
    }
  }

  void MatchAlike(size_t i) {
    double best = kAlike;
    auto chosen = left_.end();
    const std::string name = LowerCase(PlainName(bench_[i].first));
    for (auto at = left_.begin(); at != left_.end(); ++at) {
      const double ratio = SimilarityRatio(name, LowerCase(PlainName(cmp_[*at].first)));
      if (ratio <= best) continue;
      best = ratio;
      chosen = at;
    }
    if (chosen == left_.end()) return;
    found_[i] = Match{*chosen, "similarity:" + PythonFloat(best)};
    left_.erase(chosen);
  }

  const Parameters& bench_;
  const Parameters& cmp_;
  std::vector<std::optional<Match>> found_;
  std::set<size_t> left_;
};

void CompareFile(const std::string& file, const Parameters& bench, const Parameters& cmp,
                 ConfigSheet& sheet) {
  Matcher matcher(bench, cmp);
  const std::vector<std::optional<Match>>& found = matcher.Run();
  const auto add = [&](const std::array<std::string, 5>& cells, ConfigLevel level) {
    std::vector<report::Cell> row = {file};
    row.insert(row.end(), cells.begin(), cells.end());
    row.emplace_back(std::string(ConfigLevelName(level)));
    sheet.rows.push_back(std::move(row));
    sheet.level = std::max(sheet.level, level);
  };
  for (size_t i = 0; i < bench.size(); ++i) {
    const auto& [name, value] = bench[i];
    if (!found[i]) {
      add({name, "Only in benchmark", value, "", ""}, ConfigLevel::kWarning);
      sheet.findings.push_back(fmt::format("{}: {} only in bench", name, value));
      continue;
    }
    const auto& [cmp_name, cmp_value] = cmp[found[i]->index];
    if (value == cmp_value) continue;
    add({name, cmp_name, value, cmp_value, found[i]->how}, ConfigLevel::kError);
    const std::string both = name == cmp_name ? name : fmt::format("{} ({})", name, cmp_name);
    sheet.findings.push_back(fmt::format("{}: {} in bench, {} in cmp", both, value, cmp_value));
  }
  for (const size_t k : matcher.left()) {
    add({"Only in comparison", cmp[k].first, "", cmp[k].second, ""}, ConfigLevel::kWarning);
    sheet.findings.push_back(fmt::format("{}: {} only in cmp", cmp[k].first, cmp[k].second));
  }
}

}  // namespace

void CompareHyperparameters(const ConfigPack& bench, const ConfigPack& cmp, ConfigSheet& sheet) {
  static const Parameters kNone;
  std::set<std::string> files;
  for (const auto* pack : {&bench, &cmp}) {
    for (const auto& entry : pack->hyperparameters) files.insert(entry.first);
  }
  for (const std::string& file : files) {
    const auto left = bench.hyperparameters.find(file), right = cmp.hyperparameters.find(file);
    CompareFile(file, left == bench.hyperparameters.end() ? kNone : left->second,
                right == cmp.hyperparameters.end() ? kNone : right->second, sheet);
  }
  std::ranges::sort(sheet.rows, [](const auto& a, const auto& b) {
    return std::ranges::lexicographical_compare(a, b,
                                                [](const report::Cell& x, const report::Cell& y) {
                                                  return report::CellText(x) < report::CellText(y);
                                                });
  });
}

}  // namespace plumbline::run_config
